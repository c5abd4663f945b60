"""The device of a step, and the settings that make steps reproducible."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from opfl_chain.learning.errors import DeviceMissing

_CUBLAS = "CUBLAS_WORKSPACE_CONFIG"


def pick_device(name: str | None = None) -> torch.device:
    """Return the device of this name (`cpu`, `cuda:1`); by default CUDA, or else the CPU."""
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
            f"device {name!r} is not available: torch {torch.__version__} sees {available} CUDA"
            " devices. Omit the device to use the default."
        )
    return device


@contextmanager
def deterministic(threads: int = 1) -> Iterator[None]:
    """Make steps in this context reproducible to the byte.

    - the CPU uses this number of threads, because it determines the order of sums; a step of a
      small model is fastest with one, by far if other processes are running;
    - operations without a deterministic form raise an error;
    - cuDNN uses deterministic algorithms and does not search for the fastest;
    - cuBLAS gets a workspace of fixed size, effective if the process has not used cuBLAS before;
    - products use full float32 on CUDA too, not TF32, whose 10 bits would exceed any boundary.

    The settings apply to the process, and are restored at the end.
    """
    # Not `use_deterministic_algorithms`: it also loads torch's compiler, which takes two seconds.
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
