"""Hands one component of a contribution over, from the state folder of a member or a client.

The daemon may run meanwhile.
"""

from __future__ import annotations

import tomllib
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from opfl_chain.chain.deployment import Deployment
from opfl_chain.chain.keys import load_ethereum_key
from opfl_chain.chain.rpc import Rpc
from opfl_chain.mpc.audit.judge import Rules
from opfl_chain.mpc.replay.replays import Replays
from opfl_chain.protocol.delivery import Claim, Delivery, decode_delivery
from opfl_chain.protocol.errors import ProtocolError
from opfl_chain.protocol.exchange import answers_on
from opfl_chain.protocol.hand_over import HandOver
from opfl_chain.protocol.identifiers import Address, ClientIndex, JobId, RoundNumber
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.published_answers import ANSWERS, REPORT
from opfl_chain.protocol.shares import held_indices, holders_of
from opfl_chain.roles.client.client import Client
from opfl_chain.roles.client.conduct import Conduct
from opfl_chain.roles.client.contribution import Contributor, load_client_data
from opfl_chain.roles.client.store import ClientStore
from opfl_chain.roles.job import Job
from opfl_chain.roles.member.member import Member
from opfl_chain.roles.member.store import MemberStore
from opfl_chain.roles.settings import ClientSettings, MemberSettings, NodeError
from opfl_chain.roles.state import State
from opfl_chain.roles.view.view import ChainView

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS handed_over (
    round INTEGER, client INTEGER, component INTEGER, PRIMARY KEY (round, client)
);
"""
_STATE: Final = "state.sqlite"


class HandOverRefused(NodeError):
    """A component that is not here, or that must not be handed over."""


def read_settings(path: Path) -> MemberSettings | ClientSettings:
    """Read the settings of a member or of a client."""
    try:
        is_member = "bls_keystore" in tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        is_member = False  # the reader below says why
    return MemberSettings.read(path) if is_member else ClientSettings.read(path)


def hand_over(
    settings: MemberSettings | ClientSettings,
    number: int,
    client: int,
    component: int,
    conduct: Conduct | None = None,
) -> HandOver:
    """Return one component of an audited contribution of a decided round.

    A member gives only what is disputed. The first component of a contribution that is asked for
    is the only one that is ever given: whoever has two of them, and a member's help, could put the
    contribution together.
    """
    if not (settings.state / _STATE).exists():
        raise HandOverRefused(f"{settings.state} is not the state folder of a daemon that ran")
    with ExitStack() as opened:
        rpc = opened.enter_context(Rpc(settings.chain.rpc_url))
        deployment = Deployment.read(settings.chain.deployment)
        job = Job.find(rpc, deployment, JobId(settings.chain.job))
        account = load_ethereum_key(settings.account.keystore, settings.account.password())
        role = Member.ROLE if isinstance(settings, MemberSettings) else Client.ROLE
        owner = f"{role} {account.address} of job {job.id}"
        state = State(settings.state / _STATE, owner, _SCHEMA)
        opened.callback(state.close)
        view = ChainView(job, settings.state / "chain.sqlite")
        opened.callback(view.close)
        address, claim = _claim(view, number, client)
        if isinstance(settings, MemberSettings):
            delivery = _of_member(job, state, account.address, address, claim, component)
        else:
            if account.address != address:
                raise HandOverRefused(f"client {client} is {address}, we are {account.address}")
            delivery = _of_client(job, state, settings, conduct or Conduct(), claim, component)
        found = HandOver.of(claim, delivery, component)
        rules = _rules(job)
        if (form := rules.proof_form) is not None:
            found.verify(claim, rules.expected(holders_of(component)[0]), form)
        _require_first(state, found)
        if isinstance(settings, MemberSettings):
            require_dispute(MemberStore(state), found)
        _record(state, found)
        return found


def _claim(view: ChainView, number: int, client: int) -> tuple[Address, Claim]:
    round_ = view.round(number)
    if round_ is None or round_.verdict_hash is None:
        raise HandOverRefused(
            f"round {number} has no verdict yet: nothing of it is disputed, and nothing is handed"
            " over before all members have answered"
        )
    by_index = {each.index: each for each in view.clients().values()}
    if (known := by_index.get(ClientIndex(client))) is None:
        raise HandOverRefused(f"job {view.job.id} has {len(by_index)} clients, and no {client}")
    audited = view.is_audited(round_, known.address)
    if not audited:
        raise HandOverRefused(f"client {client} is not audited in round {number}")
    commitment = view.direct_commitment(round_.id, known.address) or b""
    claim = Claim(ClientIndex(client), RoundNumber(number), commitment, known.root, audited)
    return known.address, claim


def _of_member(
    job: Job, state: State, own: str, client: Address, claim: Claim, component: int
) -> Delivery:
    if own not in job.members:
        raise HandOverRefused(f"{own} is not a member of job {job.id}")
    rank = list(job.members).index(own)
    if component not in held_indices(rank):
        have = " and ".join(map(str, held_indices(rank)))
        raise HandOverRefused(f"member {rank} holds components {have}, not {component}")
    body = MemberStore(state).delivery(claim.round_number, client)
    if body is None:
        raise HandOverRefused(
            f"there is no delivery of client {claim.client} in round {claim.round_number} here: it"
            " never came, or was deleted when no slash could need it any more"
        )
    return decode_delivery(body, _rules(job).expected(rank))


def _of_client(
    job: Job,
    state: State,
    settings: ClientSettings,
    conduct: Conduct,
    claim: Claim,
    component: int,
) -> Delivery:
    store, number = ClientStore(state), claim.round_number
    contribution = store.contribution(number)
    if contribution is None:
        raise HandOverRefused(
            f"there is no contribution of round {number} here: a client keeps those of its last two"
            " rounds"
        )
    contributor = Contributor(
        job.policy,
        job.boundary,
        load_client_data(job.policy, settings.data, conduct),
        store.secret(),
        conduct,
        rounds=job.terms.rounds,
        threads=settings.threads,
    )
    return contributor.deliveries(number, contribution, audited=True)[holders_of(component)[0]]


def _rules(job: Job) -> Rules:
    return Rules(job.policy, job.boundary, Replays(job.policy))


def require_dispute(store: MemberStore, found: HandOver) -> None:
    """Raise unless both holders of a component have answered on it, and not the same.

    Only a liar disputes a component, and it holds it itself. Any other component may be asked for
    by the member that lacks it, as if it settled something: it would then hold all three.
    """
    given = [_answer(store, rank, found) for rank in holders_of(found.component)]
    if None in given or given[0] == given[1]:
        first, second = holders_of(found.component)
        raise HandOverRefused(
            f"members {first} and {second} do not differ on component {found.component} of client"
            f" {found.client} in round {found.round_number}: nothing is disputed, so nothing is"
            " handed over. The health page and the log name what is"
        )


def _answer(store: MemberStore, rank: int, found: HandOver) -> Answer | None:
    said = [store.audit_message(found.round_number, rank, stage) for stage in (REPORT, ANSWERS)]
    if said[0] is None or said[1] is None:
        return None
    try:
        answers = answers_on(said[0][0], said[1][0], rank, found.digest)
    except ProtocolError:
        return None
    return answers.by_component()[found.component] if answers else None


def _require_first(state: State, found: HandOver) -> None:
    """Raise if another component was handed over before."""
    place = found.round_number, found.client
    known = state.one("SELECT component FROM handed_over WHERE round = ? AND client = ?", *place)
    if known is not None and known[0] != found.component:
        raise HandOverRefused(
            f"component {known[0]} of client {found.client} in round {found.round_number} was"
            f" handed over before, so component {found.component} must not be: another holder may"
            " do it"
        )


def _record(state: State, found: HandOver) -> None:
    """Store which component is handed over; raise if it was another one before."""
    place = found.round_number, found.client
    state.write("INSERT OR IGNORE INTO handed_over VALUES (?, ?, ?)", *place, found.component)
    _require_first(state, found)
