"""Attack `idle-connections` on MPC ports, on a member and on the server, for a whole job."""

import resource
import tomllib
from contextlib import ExitStack
from urllib.parse import urlsplit

from expectations import EveryJob
from scenario import Meanwhile, Scenario

from opfl_chain.adversaries.strangers import STRANGERS
from opfl_chain.jobs.localnet.outcome import PASSED

CLIENTS = ("client-0", "client-1", "client-2")
MEMBERS = ("member-0", "member-1", "member-2")
AT_HTTP = 300
"""More than a server holds of strangers."""
AT_MPC = 40
ADDRESSES = 200


class Strangers(Meanwhile):
    def __init__(self, net):
        super().__init__(net)
        self._soft, self._hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (self._hard, self._hard))
        attack = STRANGERS["idle-connections"]
        settings = tomllib.loads((net.folder / "member-0.toml").read_text())
        with ExitStack() as attacks:
            for address in settings["mpc_addresses"]:
                attacks.enter_context(attack(address, AT_MPC, ADDRESSES))
            self.at_http = [
                attacks.enter_context(
                    attack(urlsplit(net.daemons[name].url).netloc, AT_HTTP, ADDRESSES)
                )
                for name in ("member-1", "server")
            ]
            self._attacks = attacks.pop_all()

    def close(self):
        self._attacks.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (self._soft, self._hard))


class TestIdleConnections(EveryJob):
    scenario = Scenario.of(
        Strangers, clients=(None, None, None), rounds=1, audit_rate=1.0, seed=1, score=False
    )

    def test_the_attack_took_place(self, played):
        """At MPC ports it depends on the moment: they are open only while members meet."""
        assert all(attack.opened >= AT_HTTP for attack in played.meanwhile.at_http)

    def test_everybody_is_audited_and_passes(self, outcome):
        verdicts = {outcome.verdict(t, name) for t in range(outcome.rounds) for name in CLIENTS}
        assert verdicts == {PASSED}

    def test_all_members_attest_in_every_round(self, outcome):
        assert [outcome.attested(t) for t in range(outcome.rounds)] == [set(MEMBERS)]

    def test_nothing_is_held(self, outcome):
        assert outcome.held() == set()
