"""A member that breaks the protocol in another way in every round of one job."""

import re
from collections.abc import Sequence

from scenario import Meanwhile

from opfl_chain.jobs.localnet.localnet import Localnet


class ChangingCheats(Meanwhile):
    """Restarts the member with the next cheat when a round opens. The first is that of the plan."""

    def __init__(self, net: Localnet, name: str, cheats: Sequence[str | None]) -> None:
        super().__init__(net)
        self._name = name
        self._cheats = cheats
        self._current = 0

    def __call__(self) -> None:
        round_ = self._net.view.latest_round()
        if round_ is not None and round_.number > self._current and round_.over is None:
            self._current = round_.number
            self._restart_as(self._cheats[round_.number])

    def _restart_as(self, cheat: str | None) -> None:
        net, member = self._net, self._net.daemons[self._name]
        member.stop()
        path = net.folder / f"{self._name}.toml"
        text = re.sub(r"^cheat = .*\n", "", path.read_text(), flags=re.MULTILINE)
        path.write_text((f'cheat = "{cheat}"\n' if cheat else "") + text)
        member.start()
