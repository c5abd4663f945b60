"""The split of a slash."""

from vectors.specification import spec
from vectors.values import Vector


def slashing() -> Vector:
    ether = 10**18
    inputs = [
        (0, 5_000, 2_000, 3),
        (1, 5_000, 2_000, 3),
        (1_000, 5_000, 2_000, 3),
        (1_001, 5_000, 2_000, 3),
        (ether, 10_000, 0, 3),
        (ether, 0, 10_000, 3),
        (ether, 0, 0, 3),
        (ether + 1, 3_333, 3_333, 3),
        (2**96 - 1, 1, 9_998, 3),
        (12_345_678_901_234_567_890, 4_999, 1_234, 2),
        (99_999, 2_500, 2_500, 1),
    ]
    splits = [spec.split_slash(*arguments) for arguments in inputs]
    return {
        "amounts": [str(amount) for amount, _, _, _ in inputs],
        "burnBps": [burn_bps for _, burn_bps, _, _ in inputs],
        "burns": [str(burn) for burn, _, _ in splits],
        "eachMember": [str(each) for _, _, each in splits],
        "members": [members for _, _, _, members in inputs],
        "treasuries": [str(treasury) for _, treasury, _ in splits],
        "treasuryBps": [treasury_bps for _, _, treasury_bps, _ in inputs],
    }
