"""A member that breaks the protocol in another way in every round of one job."""

import re
from collections.abc import Sequence

from opfl_chain.localnet.localnet import Localnet
from opfl_chain.localnet.pace import Pace


class Recast(Pace):
    """Restarts the member with the next cheat when a round opens.

    The first cheat is that of the plan. A round waits with its commit deadline until the member is
    there.
    """

    def __init__(self, net: Localnet, name: str, cheats: Sequence[str | None]) -> None:
        super().__init__(net)
        self._name = name
        self._cheats = cheats
        self._cast = 0

    def __call__(self) -> None:
        round_ = self._net.view.latest_round()
        if round_ is not None and round_.number > self._cast and round_.over is None:
            self._cast = round_.number
            self._restart_as(self._cheats[round_.number])
        if round_ is None or round_.over is not None or self._is_ready():
            super().__call__()

    def _restart_as(self, cheat: str | None) -> None:
        net, member = self._net, self._net.daemons[self._name]
        member.stop()
        path = net.folder / f"{self._name}.toml"
        text = re.sub(r"^cheat = .*\n", "", path.read_text(), flags=re.MULTILINE)
        path.write_text((f'cheat = "{cheat}"\n' if cheat else "") + text)
        member.start()

    def _is_ready(self) -> bool:
        health = self._net.health(self._name)
        return health is not None and health["audit"] is None
