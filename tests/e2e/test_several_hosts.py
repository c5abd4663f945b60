"""The same daemons on hosts of their own: chain and server, each member, and the clients.

`make test-hosts` runs it, where network namespaces may be made.
"""

import re
from functools import partial
from urllib.parse import urlsplit

import pytest
from cuttable_proxy import CuttableProxy
from expectations import EveryJob
from scenario import Scenario, play

from opfl_chain.bench.attacks.disturbances import Disturbance
from opfl_chain.bench.network import NamespacesUnavailable, Network
from opfl_chain.jobs.localnet.outcome import OUTSIDE, PASSED

pytestmark = pytest.mark.several_hosts

HOSTS = tuple(f"10.79.0.{number}" for number in range(1, 7))
HOST_OF = {"server": 0, "member-0": 1, "member-1": 2, "member-2": 3, "standby-0": 4}
OF_CLIENTS = 5


class Spread(Disturbance):
    """Moves every daemon to its host before it starts."""

    def __init__(self, net, network):
        super().__init__(net)
        rpc = urlsplit(net.devnet.rpc_url)
        self._proxy = CuttableProxy(rpc.port, HOSTS[0])
        moved = {rpc.netloc: f"{HOSTS[0]}:{self._proxy.port}"}
        for name, host in HOST_OF.items():
            daemon = net.daemons[name]
            own = urlsplit(daemon.url)
            moved[own.netloc] = f"{HOSTS[host]}:{own.port}"
            daemon.url = f"https://{moved[own.netloc]}"
        link = re.search(r"mpc_addresses = \[(.*)\]", (net.folder / "member-0.toml").read_text())
        for rank, address in enumerate(re.findall(r'"(.*?)"', link[1])):
            moved[address] = address.replace("127.0.0.1", HOSTS[1 + rank])
        for settings in net.folder.glob("*.toml"):
            text = settings.read_text()
            for before, after in moved.items():
                text = text.replace(f"{before}", after)
            settings.write_text(text)
        for name, daemon in net.daemons.items():
            host = network.hosts[HOST_OF.get(name, OF_CLIENTS)]
            if host is not network.hosts[0]:
                daemon.template = None  # it is on the first host
                daemon.start = partial(host.run, daemon.start)

    def close(self):
        self._proxy.cut()


class TestSeveralHosts(EveryJob):
    scenario = Scenario.of(clients=(None, None, None, "amplify:10"), rounds=1, audit_rate=1.0)

    @pytest.fixture(scope="class")
    def played(self, request, tmp_path_factory, one_at_a_time):
        folder = tmp_path_factory.mktemp("job")
        with one_at_a_time(), pytest.MonkeyPatch.context() as patched:
            patched.setenv("NO_PROXY", "*")  # these addresses are of this machine
            try:
                network = Network(HOSTS)
            except NamespacesUnavailable as error:
                pytest.skip(str(error))
            with network:
                scenario = Scenario(request.cls.scenario.plan, lambda net: Spread(net, network))
                return network.hosts[0].run(lambda: play(scenario, folder))

    def test_cheat_is_charged_by_members_on_three_hosts(self, outcome):
        assert outcome.charged() == {(0, "client-3"): OUTSIDE}

    def test_honest_work_passes(self, outcome):
        assert [outcome.verdict(0, f"client-{i}") for i in range(3)] == [PASSED] * 3
