"""A member that lies about proved steps is named, with one component of each contribution."""

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from expectations import EveryJob
from scenario import Meanwhile, Scenario
from typer.testing import CliRunner

from opfl_chain.chain.devnet import StartedDevnet
from opfl_chain.cli import app
from opfl_chain.learning.registry import model_of
from opfl_chain.learning.seeded import initial_parameters

LIAR = 2
CLIENTS = range(3)
DISPUTED = {0: "member-0", 2: "member-1"}
"""The components that the liar holds, and who else holds them."""

BY_CLIENTS = {"client-0": 1, "client-1": 2}
"""Components that clients hand over themselves; the liar does not hold the first."""


@dataclass
class Run:
    code: int
    text: str
    evidence: dict | None = None


@dataclass
class Commands:
    """Commands of a user, on the files of a job."""

    folder: Path
    devnet: StartedDevnet
    job: int
    runs: dict = field(default_factory=dict)

    def opfl(self, *arguments):
        finished = CliRunner().invoke(app, [str(each) for each in arguments])
        error = "" if isinstance(finished.exception, SystemExit) else str(finished.exception or "")
        return Run(finished.exit_code, finished.output + error)

    def hand_over(self, name, client, component):
        out = self.component(name, client, component)
        return self.opfl(
            *("hand-over", "--config", self.folder / f"{name}.toml", "--round", 0),
            *("--client", client, "--component", component, "--out", out),
        )

    def component(self, name, client, component):
        return self.folder / f"{name} {client} {component}.json"

    def blame(self, client, *files, **changes):
        out = self.folder / "evidence.json"
        out.unlink(missing_ok=True)
        options = {
            "rpc-url": self.devnet.rpc_url,
            "job": self.job,
            "deployment": self.folder / "deployment.json",
            "answers": self.folder / "state" / "member-0" / "answers.jsonl",
            "round": 0,
            "client": client,
            "weights": self.folder / "weights",
            "json": out,
            **changes,
        }
        options = [part for name, value in options.items() for part in (f"--{name}", value)]
        options += [part for path in files for part in ("--component", path)]
        run = self.opfl("blame", *options)
        run.evidence = json.loads(out.read_text()) if out.exists() else None
        return run


class Blames(Meanwhile):
    """Settles all disputes of the first round when it is decided."""

    def __init__(self, net):
        super().__init__(net)
        self.commands: Commands | None = None
        self.runs: dict = {}

    def __call__(self):
        round_ = self._net.view.round(0)
        if self.commands is not None or round_ is None or round_.verdict_hash is None:
            return
        net = self._net
        self.commands = Commands(net.folder, net.devnet, net.job.id)
        layout = model_of(net.job.policy).layout
        weights = layout.flatten(initial_parameters(layout, net.job.policy.seeds.model))
        (net.folder / "weights").write_bytes(weights.astype("<f4").tobytes())
        self.act(weights)
        self.runs["trail"] = self.commands.opfl(
            *("trail", "verify", "--rpc-url", net.devnet.rpc_url, "--job", net.job.id),
            *("--deployment", net.folder / "deployment.json"),
            *("--answers", net.folder / "state" / "member-1" / "answers.jsonl"),
        )

    def act(self, weights):
        self.runs["not disputed"] = self.commands.hand_over("member-1", 0, 1)
        for client in CLIENTS:
            for component, holder in DISPUTED.items():
                self.settle(holder, client, component)
        for name, component in BY_CLIENTS.items():
            self.runs[name] = self.settle(name, self.index(name), component)
        self.refuse(self.commands, weights)

    def settle(self, holder, client, component, **options):
        run = self.commands.hand_over(holder, client, component)
        assert run.code == 0, run.text
        path = self.commands.component(holder, client, component)
        found = self.commands.blame(client, path, **options)
        self.runs[holder, client, component] = found
        return found

    def index(self, name):
        """The place of a client in the job: clients enrol in any order."""
        address = self._net.addresses[name]
        return self._net.view.clients()[address].index

    def refuse(self, commands, weights):
        """Ask for what must not be, and show what says nothing."""
        runs, folder = self.runs, commands.folder
        good = commands.component("member-0", 0, 0)
        runs["second component"] = commands.hand_over("member-0", 0, 1)
        runs["not held"] = commands.hand_over("member-0", 0, 2)
        runs["no such client"] = commands.hand_over("member-0", 9, 0)
        runs["another's"] = commands.hand_over("client-0", self.index("client-1"), 0)
        runs["two components"] = commands.blame(0, good, commands.component("member-1", 0, 2))
        runs["other client"] = commands.blame(1, good)
        (folder / "other").write_bytes((weights + 1).astype("<f4").tobytes())
        runs["other weights"] = commands.blame(0, good, weights=folder / "other")
        runs["no round"] = commands.blame(0, good, round=5)
        runs["not JSON"] = commands.blame(0, folder / "weights")
        content = json.loads(good.read_text())
        for name, (part, key) in CHANGED.items():
            changed = json.loads(json.dumps(content))
            value = changed[part][key]
            old = value[-1] if isinstance(value, list) else value
            new = old[:-1] + ("0" if old[-1] != "0" else "1")
            changed[part][key] = [*value[:-1], new] if isinstance(value, list) else new
            (folder / "changed.json").write_text(json.dumps(changed))
            runs[name] = commands.blame(0, folder / "changed.json")
        lines = (folder / "state" / "member-0" / "answers.jsonl").read_text()
        content = json.loads(lines.splitlines()[0])
        for message in content["messages"]:
            message["signature"] = content["messages"][0]["signature"]
        (folder / "forged.jsonl").write_text(json.dumps(content) + "\n")
        runs["forged answers"] = commands.blame(0, good, answers=folder / "forged.jsonl")


CHANGED = {
    "gradient leaf": ("gradient", "leaf_hashes"),
    "gradient words": ("gradient", "sent"),
    "input words": ("input", "sent"),
    "input commitment": ("input", "commitment"),
    "input path": ("input", "leaf_hashes"),
    "proof leaf": ("proof", "leaf_hashes"),
    "proof words": ("proof", "sent"),
}
UNUSABLE = {
    "two components": "two must never come together",
    "other client": "the component is of client 0 in round 0, not of client 1",
    "other weights": "the weights have the hash",
    "no round": "has no answers of round 5",
    "not JSON": "cannot be read",
    "gradient leaf": "do not make the commitment on chain",
    "gradient words": "gradient does not match its leaf hash",
    "input words": "input does not match its leaf hash",
    "input commitment": "leaf hashes of the input do not make its commitment",
    "input path": "leaf hashes of the input do not make its commitment",
    "proof leaf": "did not report a delivery with the leaf hashes",
    "proof words": "of the proof does not match its leaf",
    "forged answers": "is signed by",
}
REFUSED = {
    "not disputed": "members 0 and 1 do not differ on component 1 of client 0 in round 0",
    "second component": "component 0 of client 0 in round 0 was handed over before",
    "not held": "member 0 holds components 0 and 1, not 2",
    "no such client": "has 3 clients, and no 9",
    "another's": ", we are 0x",
}


class TestBlame(EveryJob):
    scenario = Scenario.of(
        Blames,
        clients=(None, None, "amplify:10"),
        members=(None, None, "flip"),
        rounds=1,
        audit_rate=1.0,
        audit="proved",
        score=False,
    )

    @pytest.fixture
    def runs(self, played):
        return played.meanwhile.runs

    @pytest.mark.parametrize("client", CLIENTS)
    @pytest.mark.parametrize("component", DISPUTED)
    def test_liar_is_named_and_nobody_else(self, played, runs, client, component):
        run = runs[DISPUTED[component], client, component]
        assert run.code == 0, run.text
        liar = played.outcome.address(f"member-{LIAR}")
        assert run.evidence["named"] == run.evidence["liars"] == [liar]
        assert f"member {LIAR} ({liar}) lies" in run.text

    def test_evidence_has_the_words_and_the_signed_messages(self, runs):
        evidence = runs["member-0", 0, 0].evidence
        honest, liar = evidence["holders"]
        assert honest["answer"] == evidence["recomputed"] != liar["answer"]
        assert [message["stage"] for message in liar["messages"]] == ["report", "answers"]

    def test_client_may_hand_a_component_over(self, played, runs):
        named = runs["client-1"].evidence["named"]
        assert named == [played.outcome.address(f"member-{LIAR}")]

    def test_nobody_is_named_where_both_are_right(self, runs):
        run = runs["client-0"]
        assert (run.code, run.evidence["named"]) == (1, [])
        assert "both answers are right" in run.text

    @pytest.mark.parametrize("name", UNUSABLE)
    def test_unusable_evidence_is_refused(self, runs, name):
        assert runs[name].code == 2, runs[name].text
        assert UNUSABLE[name] in runs[name].text
        assert runs[name].evidence is None

    @pytest.mark.parametrize("name", REFUSED)
    def test_hand_over_is_refused(self, runs, name):
        assert runs[name].code == 1
        assert REFUSED[name] in runs[name].text

    def test_trail_names_the_pairs_that_differ(self, runs):
        assert runs["trail"].code == 1
        assert "does not hold: signed answers: members 0 and 2 give one answer" in (
            runs["trail"].text.replace("\n", " ")
        )


class BlamesRelayed(Blames):
    """Settles disputes of a round whose clients are in a batch, with the list of the batch."""

    def act(self, weights):
        folder = self.commands.folder
        with closing(sqlite3.connect(folder / "state" / "member-0" / "state.sqlite")) as state:
            ((listed,),) = state.execute("SELECT body FROM batches").fetchall()
        (folder / "batch").write_bytes(listed)
        self.settle("member-0", 0, 0, batch=folder / "batch")
        path = self.commands.component("member-0", 0, 0)
        self.runs["no list"] = self.commands.blame(0, path)
        (folder / "other").write_bytes(b"[]")
        self.runs["other list"] = self.commands.blame(0, path, batch=folder / "other")


class TestBlameInABatch(EveryJob):
    scenario = replace(
        TestBlame.scenario,
        plan=replace(TestBlame.scenario.plan, commit="relayed"),
        meanwhile=BlamesRelayed,
    )

    def test_liar_is_named(self, played):
        run = played.meanwhile.runs["member-0", 0, 0]
        assert run.code == 0, run.text
        assert run.evidence["named"] == [played.outcome.address(f"member-{LIAR}")]

    @pytest.mark.parametrize(
        ("name", "message"),
        [("no list", "has a relayed batch"), ("other list", "the list is not that of the batch")],
    )
    def test_list_of_the_batch_is_needed(self, played, name, message):
        run = played.meanwhile.runs[name]
        assert (run.code, run.evidence) == (2, None)
        assert message in run.text

    def test_trail_says_what_a_batch_hides(self, played):
        text = played.meanwhile.runs["trail"].text.replace("\n", " ")
        assert "round 0 has a relayed batch" in text
        assert "signed answers: members 0 and 2 give one answer" in text

    def test_honest_clients_are_in_every_round(self, played):
        """The chain names nobody here: all are in the batch, and all are left out."""
        assert played.outcome.participants(0) == set()
