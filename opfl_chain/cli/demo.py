"""`opfl demo`: the whole protocol, live, on this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Container
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console

from opfl_chain.cli.options import Chain, JsonFile
from opfl_chain.system.files import write_atomically

if TYPE_CHECKING:
    from opfl_chain.jobs.localnet.plan import Plan


FEWEST_CLIENTS, MOST_CLIENTS = 3, 32
CHEATS = ("reuse:2", "amplify:10")


def demo(
    clients: Annotated[
        int,
        typer.Option(
            min=FEWEST_CLIENTS,
            max=MOST_CLIENTS,
            metavar="N",
            help="Number of clients, including cheats; one process each.",
        ),
    ] = 5,
    cheat: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Attack of a cheating client; repeat for several cheats, which are the last"
            " clients. Default: reuse:2 and amplify:10; `none` for no cheats.",
        ),
    ] = None,
    bad_member: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Attack of one committee member; see below. Default: none.",
        ),
    ] = None,
    bad_server: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Attack of the server; see below. Default: none."),
    ] = None,
    rounds: Annotated[
        int, typer.Option(min=1, max=1000, metavar="N", help="Number of rounds.")
    ] = 24,
    audit_rate: Annotated[
        float,
        typer.Option(
            metavar="P", min=0.0, max=1.0, help="Probability that a contribution is audited."
        ),
    ] = 0.3,
    chain: Chain = "anvil",
    model: Annotated[str, typer.Option(metavar="NAME", help="Model to train.")] = "lenet-61706",
    audit: Annotated[
        Literal["plain", "guided", "proved"],
        typer.Option(
            help="Kind of audits: replays inside MPC, plain (the paper's rule, which rejects honest"
            " steps as well, see docs/BOUNDARY.md) or guided by the client's advice (ours), or"
            " steps that clients prove.",
        ),
    ] = "guided",
    scheme: Annotated[
        Literal["shares", "mpc"],
        typer.Option(
            help="Commitment scheme of gradients: hashes of shares, or as in the paper a Keccak"
            " tree that is opened inside MPC, which takes seconds per gradient.",
        ),
    ] = "shares",
    dataset: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Training data: mnist, or synthetic, which needs no files."
        ),
    ] = "mnist",
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            max=2**31 - 1,
            metavar="N",
            help="Seed of the first model and the data. Keys, and thus the audits, are always new.",
        ),
    ] = 1,
    kill: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ROLE:N@roundR",
            help="Kill a process in the middle of a round and restart it four blocks later:"
            " committee:1@round3, standby:0@round1, client:0@round2, server@round4. May be"
            " repeated.",
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            help="Folder for logs, settings, audit trail and report.html; those of the last demo"
            " are moved to DIR-before.",
        ),
    ] = Path("runs/demo"),
    json_file: JsonFile = None,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.svg", help="Save the final screen as a picture.", dir_okay=False
        ),
    ] = None,
) -> None:
    """Run a whole job on this machine, in which cheats lose their deposits.

    Starts a chain and a process for every party: three committee members and a
    standby, a server, and clients that train a model together. Nothing is
    simulated: clients deliver sealed gradients, members agree on the roll and
    put it on chain, draw the audits, replay those steps inside secure
    multi-party computation (or check clients' proofs of them), attest their
    verdicts, and charge clients whose steps are outside the boundary. Accepted
    contributions and members' work are paid. Idle blocks are skipped.

    \b
    Cheats, with their parameter and its default:
      reuse[:K=5]         a fresh gradient every K rounds, reused in between
      reverse[:G=1]       minus G times the gradient
      amplify[:G=10]      G times the gradient
      free-rider[:S=0.1]  the last change of the model, plus noise
      backdoor[:G=10]     a trigger in the image, with G times the weight
      label-flip          trains on labels that it did not commit to
      adaptive[:B=1]      descends on the boundary, at B times the gradient's norm
      tail-1[:B=1], tail-10[:B=1]  the same on 1 % and 10 % of the coordinates
      drift[:P=0.5]       moves by P of the boundary: no audit sees it
      poison              commits to wrong labels from the start: no audit sees it
      withhold-answer     does not answer its audit
      evade               answers two members only, who give it to the third
      split               delivers to two members, and answers one
      high-s, high-s-answer  signs what contracts refuse: everything, or its answer
      withhold-shares, wrong-opening, wrong-commitment, spoil-shares, spoil-two,
      spoil-answer, two-contributions, two-answers, stale-answer, other-input
                          false bundles
      forge               ten times the gradient, with a forged proof (--audit proved)
      ATTACK+BUNDLE       both: amplify:10+evade

    \b
    Attacks of a member:
      flip, reveal-others       false answers on proved steps (--audit proved)
      leak                      guesses at secrets of proved steps (--audit proved)
      frame                     complains of bundles that open
      equivocate                tells each peer something else
      few, refuse-deliveries    keeps clients off its list
      copy, skip-audits         takes no part in audits
      hang                      never answers a peer
      lie, withhold-verdict     attests falsely, or nothing
      split                     lies for one more client, which answers it alone
      sums                      states a false part of the sum
      withhold-beacon           signs no beacon
      break-meetings            ends meetings inside MPC, and says so like everybody
      high-s                    signs what contracts refuse
      ATTACK+ATTACK             both, in different duties: flip+sums

    \b
    Attacks of the server:
      wrong-model, wrong-model-hash  sends or posts another model
      late-list, late-model     serves no model, so that clients would be late
      idle                      opens and ends no round
      hide                      is idle for one more client, which answers no audit

    Examples:

    \b
      opfl demo                                  # two cheats among five
      opfl demo --rounds 3 --audit-rate 1        # the quickest
      opfl demo --cheat free-rider --cheat wrong-opening --clients 4
      opfl demo --kill committee:1@round3 --kill server@round5
      opfl demo --cheat none --scheme mpc
      opfl demo --audit proved                   # no MPC: clients prove their steps
      opfl demo --audit proved --bad-member flip # a member that lies is named, and pays
      opfl demo --audit proved --bad-member split --bad-server late-list
    """
    started = time.monotonic()
    from opfl_chain.jobs.demo.demo import Kill, fresh_folder, run_demo
    from opfl_chain.jobs.demo.page import write_page
    from opfl_chain.jobs.demo.tables import print_result, save_picture
    from opfl_chain.jobs.localnet.daemon import PlanInvalid

    console = Console()
    plan = plan_of_demo(
        clients,
        cheat,
        bad_member,
        bad_server,
        rounds,
        audit_rate,
        chain,
        model,
        audit,
        scheme,
        dataset,
        seed,
    )
    try:
        kills = [Kill.parse(text, plan) for text in kill or ()]
    except PlanInvalid as error:
        raise typer.BadParameter(str(error), param_hint="--kill") from None
    _require_dataset(dataset)
    folder = fresh_folder(out)
    try:
        result = run_demo(plan, kills, folder, console, started)
    except KeyboardInterrupt:
        console.print(
            f"interrupted: all processes were stopped, their logs are in {folder / 'net'}"
        )
        raise
    print_result(console, result)
    text = json.dumps(result.report, indent=2) + "\n"
    write_atomically(folder / "result.json", text)
    if json_file is not None:
        write_atomically(json_file, text)
    write_page(folder / "report.html", result)
    if record is not None:
        save_picture(record, result)
    console.print(
        f"report: {folder / 'report.html'}, audit trail: {folder / 'trail' / 'index.html'}",
        soft_wrap=True,
        highlight=False,
    )
    if not result.trail.holds:
        raise typer.Exit(1)


def plan_of_demo(
    clients: int,
    cheats: list[str] | None,
    bad_member: str | None,
    bad_server: str | None,
    rounds: int,
    audit_rate: float,
    chain: Chain,
    model: str,
    audit: str,
    scheme: str,
    dataset: str,
    seed: int,
) -> Plan:
    """Make the plan; an error names the invalid option."""
    from opfl_chain.adversaries.gradients.attack import AttackError
    from opfl_chain.adversaries.members import MEMBERS, member_named
    from opfl_chain.adversaries.servers import SERVERS
    from opfl_chain.jobs.localnet.daemon import PlanInvalid
    from opfl_chain.jobs.localnet.plan import Plan
    from opfl_chain.learning.data.datasets import DATASETS
    from opfl_chain.learning.errors import ModelError
    from opfl_chain.learning.registry import model_named
    from opfl_chain.protocol.commitments import Scheme
    from opfl_chain.protocol.errors import DocumentError

    try:
        model_named(model)
    except ModelError as error:
        raise typer.BadParameter(str(error), param_hint="--model") from None
    if dataset not in DATASETS:
        known = ", ".join(DATASETS)
        raise typer.BadParameter(
            f"unknown data set {dataset!r}, known: {known}", param_hint="--dataset"
        )
    bad_member, siding = _cast("member", bad_member, MEMBERS)
    bad_server, hidden = _cast("server", bad_server, SERVERS)
    _require_attack("--bad-member", bad_member, member_named)
    _require_attack("--bad-server", bad_server, SERVERS.__getitem__)
    named = list(CHEATS) if cheats is None else [name for name in cheats if name != "none"]
    named += siding + hidden
    if clients - len(named) < 1:
        raise typer.BadParameter(
            f"{len(named)} cheats among {clients} clients: at least one must be honest",
            param_hint="--clients",
        )
    try:
        plan = Plan(
            clients=(*([None] * (clients - len(named))), *named),
            # A client that answers one member alone answers the first.
            members=(bad_member, None, None) if siding else (None, None, bad_member),
            server=bad_server,
            rounds=rounds,
            audit=audit,
            audit_rate=audit_rate,
            chain=chain,
            model=model,
            scheme=Scheme(scheme),
            dataset=dataset,
            seed=seed,
        )
    except (AttackError, PlanInvalid) as error:
        raise typer.BadParameter(str(error), param_hint="--cheat") from None
    try:
        _ = plan.policy  # refuses a scheme that does not fit the kind of audits
    except DocumentError as error:
        raise typer.BadParameter(str(error), param_hint="--scheme") from None
    _require_proved_steps(plan)
    return plan


def _cast(
    role: Literal["member", "server"], name: str | None, cheats: Container[str]
) -> tuple[str | None, list[str]]:
    """Return the cheats of a role in attacks, and those of clients that take part in them."""
    from opfl_chain.bench.attacks.catalogue import attack_named

    played, clients = [], list[str]()
    for part in name.split("+") if name is not None else ():
        attack = attack_named(part) if part not in cheats else None
        cheat = getattr(attack, role, None)
        played.append(cheat or part)
        if attack is not None and cheat is not None:
            clients += attack.accomplices
    return "+".join(played) or None, clients


def _require_proved_steps(plan: Plan) -> None:
    """Refuse cheats that would do nothing, or something else, where steps are replayed."""
    from opfl_chain.adversaries.clients import PROOFS
    from opfl_chain.adversaries.members import OF_PROVED_STEPS
    from opfl_chain.rules.registry import rule_of

    if rule_of(plan.boundary).tolerance(plan.boundary) is not None:
        return
    of_members = [each for cheat in plan.members if cheat for each in cheat.split("+")]
    for option, names, known in (
        ("--cheat", plan.clients, PROOFS),
        ("--bad-member", of_members, OF_PROVED_STEPS),
    ):
        for name in names:
            if name is not None and name in known:
                raise typer.BadParameter(
                    f"{name} is an attack on proved steps, and these audits are {plan.audit}:"
                    " add --audit proved (SECURITY.md says what works inside MPC)",
                    param_hint=option,
                )


def _require_attack(option: str, name: str | None, find: Callable[[str], object]) -> None:
    from opfl_chain.adversaries.clients import CheatUnknown

    try:
        if name is not None:
            find(name)
    except CheatUnknown as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def _require_dataset(name: str) -> None:
    """Load the data set before anything starts, so that not every client fetches it."""
    from opfl_chain.jobs.localnet.daemon import DataMissing
    from opfl_chain.learning.data.datasets import load_dataset
    from opfl_chain.learning.errors import DatasetMissing

    try:
        load_dataset(name)
    except DatasetMissing as error:
        raise DataMissing(
            f"{error}\n  - opfl demo --dataset synthetic, which needs no files"
        ) from None
