"""Any auditor can run the protocol alone: no framework, no chain client, and of
ours only the arithmetic beside it.
"""

import subprocess
import sys

IMPORT_ALL = """
import importlib, pkgutil, sys
import opfl_chain.protocol as protocol
for module in pkgutil.walk_packages(protocol.__path__, "opfl_chain.protocol."):
    importlib.import_module(module.name)
print("\\n".join(sys.modules))
"""


def test_protocol_imports_stay_pure():
    run = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, check=True
    )
    loaded = set(run.stdout.split())
    assert "opfl_chain.protocol.statements" in loaded
    assert not {"torch", "jax", "spu", "web3", "eth_account"} & loaded
    ours = {name for name in loaded if name.startswith("opfl_chain.")}
    assert all(name.startswith(("opfl_chain.protocol", "opfl_chain.numerics")) for name in ours)
