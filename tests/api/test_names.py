"""The public names: flat, lazy, and all there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import opfl_chain
from opfl_chain import extend

HEAVY = ("torch", "jax", "numpy", "web3", "spu", "pydantic", "matplotlib")


@pytest.mark.parametrize("module", [opfl_chain, extend], ids=["opfl_chain", "extend"])
def test_every_public_name_resolves(module):
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert set(module.__all__) <= set(dir(module))


@pytest.mark.parametrize("module", [opfl_chain, extend], ids=["opfl_chain", "extend"])
def test_unknown_name_is_an_attribute_error(module):
    with pytest.raises(AttributeError, match="has no attribute 'nothing_of_this_name'"):
        module.nothing_of_this_name  # noqa: B018


@pytest.mark.parametrize("module", [opfl_chain, extend], ids=["opfl_chain", "extend"])
def test_completion_offers_public_names_only(module):
    assert [name for name in dir(module) if name[:2] != "__"] == sorted(module.__all__)


def test_type_checker_of_a_user_sees_types_and_misspellings(tmp_path):
    script = tmp_path / "user.py"
    script.write_text(
        "import opfl_chain\n"
        "from opfl_chain import extend\n"
        "opfl_chain.audit_stop\n"
        "extend.Attackk\n"
        "reveal_type(opfl_chain.run_job())\n"
    )
    mypy = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache"]
    quiet = ["--follow-imports", "silent", "--ignore-missing-imports", "--config-file", ""]
    ran = subprocess.run(
        [*mypy, *quiet, script],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(Path(opfl_chain.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert 'Module has no attribute "audit_stop"' in ran.stdout
    assert 'Module has no attribute "Attackk"' in ran.stdout
    assert 'Revealed type is "opfl_chain.api.job.JobResult"' in ran.stdout


def test_import_is_light():
    shown = f"print([name for name in {HEAVY} if name in sys.modules])"
    code = f"import sys, opfl_chain, opfl_chain.extend; {shown}"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
