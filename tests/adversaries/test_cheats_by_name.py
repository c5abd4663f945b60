"""Cheats are found by name: attacks in their folder or in plug-ins, and cheats of each role."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from attack_support import attacked

from opfl_chain.adversaries import gradients
from opfl_chain.adversaries.clients import (
    DELIVERIES,
    AttackingConduct,
    CheatUnknown,
    cheats_in,
    client_cheats,
    conduct_named,
)
from opfl_chain.adversaries.gradients import registry
from opfl_chain.adversaries.gradients.attack import Attack, AttackState, UnknownAttack
from opfl_chain.adversaries.members import MEMBERS, member_named
from opfl_chain.adversaries.servers import SERVERS
from opfl_chain.adversaries.strangers import STRANGERS, Stranger
from opfl_chain.protocol.bundle_form import BundleKind
from opfl_chain.roles.client.conduct import Conduct
from opfl_chain.roles.member.member import Member
from opfl_chain.roles.server.server import Server
from opfl_chain.system.plugins import PluginBroken, Registry

SOURCE = '''
from dataclasses import dataclass

from opfl_chain.adversaries.gradients.attack import Attack, parameter


@dataclass(frozen=True)
class Shift(Attack):
    """Adds a constant."""

    NAME = "shift"
    amount: float = parameter("A", 2, most=9)

    def submit(self, step, state):
        return step.gradient + self.amount
'''


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with an attack, and one whose entry point is no attack."""
    (tmp_path / "shifting.py").write_text(SOURCE)
    info = tmp_path / "shifting-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shifting\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[opfl_chain.attacks]\nshift = shifting:Shift\nbroken = shifting:dataclass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    known = registry.ATTACKS
    fresh: Registry[type[Attack]] = Registry(
        known.kind, known.group, known._builtin, known._unknown, known._check
    )
    monkeypatch.setattr(registry, "ATTACKS", fresh)
    monkeypatch.delitem(sys.modules, "shifting", raising=False)


@pytest.mark.usefixtures("plugin")
def test_an_attack_of_a_plug_in_is_one_file() -> None:
    attack, step = registry.attack_named("shift:3"), attacked(1)
    assert attack.name == "shift:3"
    assert registry.attack_named("shift").name == "shift:2"
    np.testing.assert_array_equal(attack.submit(step, AttackState()), step.gradient + 3)
    assert "shift" in registry.forms()


@pytest.mark.usefixtures("plugin")
def test_a_plug_in_that_is_no_attack_is_named_when_it_is_used() -> None:
    with pytest.raises(PluginBroken, match=r"package shifting 1.0: entry point 'broken'.*attack"):
        registry.attack_named("broken")


def test_a_new_file_in_the_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shift_here.py").write_text(SOURCE)
    monkeypatch.setattr(gradients, "__path__", [*gradients.__path__, str(tmp_path)])
    found = registry._builtin()
    assert set(found) == {*registry.ATTACKS.names(), "shift"}
    del sys.modules["opfl_chain.adversaries.gradients.shift_here"]


def test_unknown_cheats_of_clients_list_attacks_and_deliveries() -> None:
    with pytest.raises(UnknownAttack, match=r"reuse\[:K=5\].*withhold-shares"):
        conduct_named("steal")
    assert {"poison", "other-input", "evade"} < set(client_cheats())
    with pytest.raises(CheatUnknown, match=r"Known cheats: .*withhold-answer"):
        conduct_named("amplify:10+vanish")


def test_an_attack_may_be_joined_with_a_false_delivery() -> None:
    conduct = conduct_named("amplify:10+withhold-answer")
    step = attacked(0)
    np.testing.assert_allclose(conduct.gradient(step, b"")[0], step.gradient * 10)
    assert conduct.parcels(None, BundleKind.ANSWER) == {}  # type: ignore[arg-type]
    assert cheats_in("amplify:10+evade", 0, 0) and cheats_in("evade", 3, 0)


def test_cheats_of_each_role_are_of_its_class() -> None:
    assert all(issubclass(DELIVERIES[name], Conduct) for name in DELIVERIES.names())
    assert all(issubclass(MEMBERS[name], Member) for name in MEMBERS.names())
    assert all(issubclass(SERVERS[name], Server) for name in SERVERS.names())
    assert all(issubclass(STRANGERS[name], Stranger) for name in STRANGERS.names())


def test_cheats_of_a_member_may_be_joined_if_they_are_about_different_duties() -> None:
    joined = member_named("equivocate+flip+lie")
    assert issubclass(joined, (MEMBERS["equivocate"], MEMBERS["flip"], MEMBERS["lie"]))
    assert joined.MESSAGES is MEMBERS["equivocate"].MESSAGES
    assert joined.PROVED_AUDITS is MEMBERS["flip"].PROVED_AUDITS
    assert joined.attest is MEMBERS["lie"].attest
    with pytest.raises(CheatUnknown, match="flip\\+frame"):
        member_named("flip+frame")


def test_an_attacking_client_remembers_from_round_to_round() -> None:
    conduct = AttackingConduct(registry.attack_named("reuse:5"))
    first, memory = conduct.gradient(attacked(0), b"")
    again, memory = conduct.gradient(attacked(1), memory)
    np.testing.assert_array_equal(again, first)
    assert not np.array_equal(attacked(1).gradient, first)
    repeated, _ = conduct.gradient(attacked(1), memory)
    np.testing.assert_array_equal(repeated, again)


def test_an_honest_client_changes_nothing() -> None:
    step, labels = attacked(1), np.array([0, 4, 9])
    gradient, memory = Conduct().gradient(step, b"")
    np.testing.assert_array_equal(gradient, step.gradient)
    np.testing.assert_array_equal(Conduct().training_labels(labels, 10), labels)
    assert memory == b""
