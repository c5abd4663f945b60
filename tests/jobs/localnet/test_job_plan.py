"""A plan that describes no job is refused before anything starts."""

import pytest

from opfl_chain.adversaries.gradients.attack import UnknownAttack
from opfl_chain.jobs.localnet.daemon import PlanInvalid
from opfl_chain.jobs.localnet.plan import Plan
from opfl_chain.learning.errors import UnknownDataset


@pytest.mark.parametrize(
    ("fields", "error", "said"),
    [
        ({"clients": (None, None)}, PlanInvalid, "2 clients and 12 rounds are too few"),
        ({"rounds": 0}, PlanInvalid, "5 clients and 0 rounds are too few"),
        ({"members": (None, None)}, PlanInvalid, "2 members: a committee has 3"),
        ({"dataset": "minst"}, UnknownDataset, "unknown data set 'minst'.*synthetic"),
        ({"clients": (None, None, "steal")}, UnknownAttack, "'steal'.*withhold-shares"),
        (
            {"members": (None, None, "steal")},
            PlanInvalid,
            "unknown cheat 'steal'. Known cheats: withhold-beacon",
        ),
        ({"server": "steal"}, PlanInvalid, "unknown cheat 'steal'. Known cheats: wrong-model"),
    ],
)
def test_what_is_wrong_is_said(fields, error, said):
    with pytest.raises(error, match=said):
        Plan(**fields)
