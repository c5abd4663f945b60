import pytest
import torch

from opfl_chain.learning.devices import deterministic, pick_device
from opfl_chain.learning.errors import DeviceMissing


def test_default_is_cuda_when_present_and_else_the_cpu() -> None:
    assert pick_device().type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert pick_device("cpu").type == "cpu"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cuda:99", "torch .* sees [0-9]+ CUDA devices"),
        ("gpu", "is unknown, use cpu, cuda or cuda:N"),
        ("meta", "is not supported, use cpu, cuda or cuda:N"),
    ],
)
def test_a_device_that_is_not_there_is_refused(name: str, message: str) -> None:
    with pytest.raises(DeviceMissing, match=message):
        pick_device(name)


def test_deterministic_sets_what_it_says_and_puts_it_back() -> None:
    def settings() -> tuple[bool | int, ...]:
        return (
            torch.are_deterministic_algorithms_enabled(),
            torch.backends.cudnn.deterministic,
            torch.backends.cudnn.benchmark,
            torch.backends.cudnn.allow_tf32,
            torch.backends.cuda.matmul.allow_tf32,
            torch.get_num_threads(),
        )

    before = settings()
    with pytest.raises(KeyError), deterministic(threads=2):
        assert settings() == (True, True, False, False, False, 2)
        raise KeyError
    assert settings() == before
