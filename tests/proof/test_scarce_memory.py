"""A process that has no memory for a statement gets a typed error."""

import subprocess
import sys

SCRIPT = """
import resource
from pathlib import Path

import numpy as np

from opfl_chain.learning.proved_step import statement_of
from opfl_chain.learning.registry import model_of
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.protocol.errors import OutOfMemory
from opfl_chain.protocol.proof.closing import Tolerance


def step(name, batch):
    policy = default_policy(name, rule="proved", batch_size=batch)
    layout = model_of(policy).layout
    zeros = {each.name: np.zeros(each.shape, np.float32) for each in layout}
    return policy, Tolerance(1 << 22, 1 << 20), zeros


small, large = step("lenet-61706", 1), step("lenet-431080", 8)
statement_of(*small)  # whatever is loaded once is loaded now
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 20), resource.RLIM_INFINITY))
try:
    statement_of(*large)
except OutOfMemory as error:
    print(error)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(len(statement_of(*large).hash))
"""


def test_a_statement_beyond_the_memory_is_a_typed_error_and_the_process_goes_on() -> None:
    ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    refusal, size = ended.stdout.splitlines()
    assert refusal.startswith("this machine has no memory for the statement of a step: ")
    assert size == "32"
