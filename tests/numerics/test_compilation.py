"""The cache of compiled kernels: one signature each, many processes, no place to write."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from numba.core.dispatcher import Dispatcher

from opfl_chain.numerics import kernels
from opfl_chain.numerics.field import Elements
from opfl_chain.numerics.loading import load_kernels
from opfl_chain.numerics.projections import mix, project, project_words

KERNELS = {name: each for name, each in vars(kernels).items() if isinstance(each, Dispatcher)}

COMPUTE = """
import numpy as np
from opfl_chain.numerics import kernels
from opfl_chain.numerics.field import Elements
x = Elements.of_integers(np.arange(-3, 9))
y = (x * x + x).reshape(3, 4).matmul(x.reshape(4, 3))
print(y.to_signed()[0], sum(kernels.multiply.stats.cache_hits.values()))
"""
EXPECTED = sum((x * x + x) * (3 * k - 3) for k, x in enumerate(range(-3, 1)))


def start(**environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", COMPUTE],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def results(*processes: subprocess.Popen[str]) -> list[tuple[int, int]]:
    found = []
    for process in processes:
        output, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        value, hits = map(int, output.split())
        found.append((value, hits))
    return found


def use(elements: Elements, integers: np.ndarray, coins: bytes) -> None:
    """Call every kernel: ``elements`` are 16, and so are ``integers``, for 8 projections."""
    elements + elements, elements - elements, elements * elements, elements * 3, -elements
    elements.reshape(4, 4) * elements[:4], elements.reshape(4, 4, 1) * elements.reshape(4, 1, 4)
    elements.sum(), elements.reshape(2, 8).sum(0), elements.reshape(2, 8).sum(1)
    elements.reshape(4, 4).matmul(elements.reshape(4, 4)), elements.dot(elements)
    elements.reshape(4, 4).times_integers(integers.reshape(4, 4))
    Elements.of_integers(integers), Elements.of_integers(integers.reshape(4, 2, 2))
    Elements.uniform(coins[:16]), Elements.decode(elements.encode())
    elements.to_floats(), elements[0].to_floats()
    elements.rounded_shift(3), elements.bits(5), elements[0].bits(2)
    elements.bits(62).sum(1).square_root()
    project(elements, coins, 8), project_words(integers.view(np.uint64), coins, 8)
    mix(elements[:8], coins, 16)


def test_each_kernel_is_compiled_for_one_signature():
    coins, integers = bytes(range(32)), np.arange(16)
    limbs = np.arange(32, dtype=np.uint64).reshape(16, 2)
    use(Elements(limbs), integers, coins)
    frozen, apart = limbs.copy(), np.zeros((16, 4), np.uint64)
    frozen.flags.writeable = False
    still = integers.copy()
    still.flags.writeable = False
    unaligned = np.frombuffer(b"x" + bytes(128), np.int64, offset=1)
    use(Elements(frozen), still, bytearray(coins))
    use(Elements(apart[:, ::2]), unaligned, memoryview(b"x" + coins)[1:])
    signatures = {name: len(each.signatures) for name, each in KERNELS.items()}
    assert signatures == dict.fromkeys(KERNELS, 1)


def test_all_kernels_are_loaded_at_once(monkeypatch):
    called = set()

    def noting(name):
        def call(*arguments):
            called.add(name)
            return KERNELS[name](*arguments)

        return call

    for name in KERNELS:
        monkeypatch.setattr(kernels, name, noting(name))
    load_kernels()
    assert called == set(KERNELS)
    assert {name for name, each in KERNELS.items() if len(each.signatures) != 1} == set()


def test_processes_may_compile_at_the_same_time(tmp_path: Path):
    together = [start(NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(3)]
    assert [value for value, _ in results(*together)] == [EXPECTED] * 3
    assert results(start(NUMBA_CACHE_DIR=str(tmp_path))) == [(EXPECTED, 1)]


def test_without_a_writable_folder_each_process_compiles():
    nowhere = start(NUMBA_CACHE_LOCATOR_CLASSES="UserProvidedCacheLocator", NUMBA_CACHE_DIR="")
    assert results(nowhere) == [(EXPECTED, 0)]
