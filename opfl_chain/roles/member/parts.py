"""The parts of a member that audits and referees share."""

from __future__ import annotations

from dataclasses import dataclass, field

from opfl_chain.protocol.sealing import SealingKey
from opfl_chain.roles.member.audits import Judging
from opfl_chain.roles.member.charges import Charges
from opfl_chain.roles.member.contributions import Contributions
from opfl_chain.roles.member.hearings import Answers
from opfl_chain.roles.member.intake import Intake
from opfl_chain.roles.member.messages import Messages
from opfl_chain.roles.member.steps import Steps
from opfl_chain.roles.member.store import MemberStore
from opfl_chain.roles.node import Node


@dataclass(frozen=True)
class MemberParts:
    """Everything that a member needs to take part in a hearing."""

    node: Node
    store: MemberStore
    messages: Messages
    steps: Steps
    judging: Judging
    gradient_intake: Intake
    answer_intake: Intake
    contributions: Contributions
    answers: Answers
    charges: Charges
    sealing_key: SealingKey = field(repr=False)
