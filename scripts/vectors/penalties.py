"""The split of a penalty, and deposits that deter."""

from vectors.specification import spec
from vectors.values import Vector


def penalties() -> Vector:
    """`paid` has what each recipient gets, in order; `compensated` is the sum of it."""
    ether = 10**18
    inputs = [
        (0, 2, 5, 2_000),
        (1, 2, 5, 2_000),
        (7, 2, 5, 2_000),
        (1_000, 0, 100, 2_500),
        (1_001, 2, 100, 2_500),
        (ether, 2, ether // 100, 0),
        (ether, 3, ether // 100, 10_000),
        (ether + 1, 2, ether // 3, 3_333),
        (2**96 - 1, 2, 2**95, 9_999),
        (12_345_678_901_234_567_890, 2, 0, 1_234),
    ]
    splits = [spec.split_penalty(*arguments) for arguments in inputs]
    return {
        "amounts": [str(amount) for amount, _, _, _ in inputs],
        "burnt": [str(burnt) for burnt, _, _ in splits],
        "compensated": [str(sum(paid)) for _, _, paid in splits],
        "compensations": [str(compensation) for _, _, compensation, _ in inputs],
        "paid": [[str(each) for each in paid] for _, _, paid in splits],
        "recipients": [recipients for _, recipients, _, _ in inputs],
        "treasuries": [str(treasury) for _, treasury, _ in splits],
        "treasuryShares": [share for _, _, _, share in inputs],
    }


def deposits() -> Vector:
    inputs = [
        (0.1, 1.0, 0.0, 0.0, 0.0, 1.0, 0.1),
        (0.1, 1.0, 0.0, 0.0, 0.01, 1.0, 0.1),
        (0.05, 1.0, 3.0, 1.5, 0.001, 0.5, 0.25),
        (1.0, 2.0, 0.0, 5.0, 0.0, 1.0, 0.0),
    ]
    names = ("auditRates", "savedCosts", "outsideGains", "pays", "honestRejections")
    columns = dict(
        zip((*names, "cheapestPenalties", "margins"), zip(*inputs, strict=True), strict=True)
    )
    return {
        **{name: list(values) for name, values in columns.items()},
        "deposits": [spec.required_deposit(*arguments) for arguments in inputs],
    }
