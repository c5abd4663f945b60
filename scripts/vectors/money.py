"""Wei that are held of deposits, blocks from which audits end, and pay of work."""

from vectors.specification import spec
from vectors.values import Vector


def charges() -> Vector:
    ether = 10**18
    amounts = [(ether, 3 * ether), (ether, ether), (ether, ether - 1), (1, 0), (2**96 - 1, 5)]
    responses = [0, 1, 96, 2**31]
    outcomes = [spec.PASSED, spec.OUTSIDE, spec.UNANSWERED]
    return {
        "balances": [str(balance) for _, balance in amounts],
        "endsFrom": [[spec.ends_from(each, last) for last in responses] for each in outcomes],
        "held": [str(spec.held_of(*each)) for each in amounts],
        "outcomes": outcomes,
        "penalties": [str(penalty) for penalty, _ in amounts],
        "responses": responses,
    }


def rewards() -> Vector:
    terms = [(1, 3, 0, 0), (4, 5, 2, 9), (100, 1_000, 10**16, 5 * 10**16), (2**32 - 1, 4, 7, 1)]
    work = [(0, 2), (0, 3), (1, 2), (3, 3), (4, 2)]
    client_pay, member_pay = 10**16, 5 * 10**16
    return {
        "agreed": [agreed for _, agreed in work],
        "budgets": [str(spec.budget_of(*each)) for each in terms],
        "clientPays": [str(each[2]) for each in terms],
        "earned": [str(spec.earned_in(*each, client_pay, member_pay)) for each in work],
        "memberPays": [str(each[3]) for each in terms],
        "passed": [passed for passed, _ in work],
        "places": [each[1] for each in terms],
        "rounds": [each[0] for each in terms],
    }
