"""Where a step runs, and the settings under which it gives the same result twice."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from opfl_chain.training.errors import DeviceMissing

_CUBLAS = "CUBLAS_WORKSPACE_CONFIG"


def pick_device(name: str | None = None) -> torch.device:
    """The device of this name (`cpu`, `cuda`, `cuda:1`), or CUDA when present and else the CPU."""
    available = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name is None:
        return torch.device("cuda", 0) if available else torch.device("cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise DeviceMissing(f"device {name!r} is unknown, use cpu, cuda or cuda:N") from None
    if device.type not in ("cpu", "cuda"):
        raise DeviceMissing(f"device {name!r} is not supported, use cpu, cuda or cuda:N")
    if device.type == "cuda" and (device.index or 0) >= available:
        raise DeviceMissing(
            f"device {name!r} is not there: torch {torch.__version__} sees {available} CUDA"
            " devices. Leave the device out to take what is present."
        )
    return device


@contextmanager
def deterministic(threads: int = 1) -> Iterator[None]:
    """Run the same step twice to the same bytes.

    - the CPU uses so many threads, because their number decides in which order sums are made; a
      step of a small model is fastest with one, by far where other processes are at work;
    - operations without a deterministic form raise an error;
    - cuDNN takes deterministic algorithms and does not search for the fastest;
    - cuBLAS gets a workspace of fixed size, which counts if it was not used before in the process;
    - products are of full float32 on CUDA too, not of TF32, whose 10 bits leave any boundary.

    The settings are those of the process, and are put back at the end.
    """
    # `use_deterministic_algorithms` sets the same, and loads torch's compiler: two seconds.
    algorithms = torch.get_deterministic_debug_mode()
    cudnn, products = torch.backends.cudnn, torch.backends.cuda.matmul
    threads_before = torch.get_num_threads()
    before = (cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32, products.allow_tf32)
    os.environ.setdefault(_CUBLAS, ":4096:8")
    try:
        torch.set_num_threads(threads)
        torch.set_deterministic_debug_mode("error")
        cudnn.deterministic, cudnn.benchmark = True, False
        cudnn.allow_tf32 = products.allow_tf32 = False
        yield
    finally:
        torch.set_num_threads(threads_before)
        torch.set_deterministic_debug_mode(algorithms)
        cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32, products.allow_tf32 = before
