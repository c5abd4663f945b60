"""A whole job on this machine: a local chain, all daemons as processes, and the outcome."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from opfl_chain.api import Progress, silent
from opfl_chain.jobs.demo.result import accuracies, last_words
from opfl_chain.jobs.localnet.localnet import Localnet
from opfl_chain.jobs.localnet.outcome import JobOutcome
from opfl_chain.jobs.localnet.plan import Plan
from opfl_chain.trail import Report, Trail


@dataclass(frozen=True)
class JobResult:
    """The outcome of a job. Participants are named `client-0`, `member-2`, `server`."""

    plan: Plan
    outcome: JobOutcome
    accuracies: Mapping[int, float]
    """Accuracy by number of updates; empty if the server did not measure it."""

    @property
    def trail(self) -> Trail:
        return self.outcome.trail

    @property
    def report(self) -> Report:
        """Report on the trail, recomputed from the chain."""
        return self.outcome.report

    def verdicts(self, name: str) -> list[str | None]:
        """A client's verdict in each round: PASSED, OUTSIDE, LEFT_OUT, None if undecided."""
        return [self.outcome.verdict(number, name) for number in range(self.outcome.rounds)]

    @property
    def lost_wei(self) -> dict[str, int]:
        """The parts of deposits and stakes that did not come back, by participant."""
        names = [name for name in self.outcome.names.values() if name != "server"]
        return {name: self.outcome.lost_wei(name) for name in names}

    @property
    def charges(self) -> dict[tuple[int, str], str]:
        """The outcomes of charged audits, by round and client."""
        return self.outcome.charged()

    @property
    def earned_wei(self) -> dict[str, int]:
        """The pay for accepted contributions and for members' work, by participant."""
        names = [name for name in self.outcome.names.values() if name != "server"]
        return {name: self.outcome.earned_wei(name) for name in names}


def run_job(
    plan: Plan | None = None, *, folder: Path | str | None = None, progress: Progress = silent
) -> JobResult:
    """Run a whole job: chain, server, three members and all clients, each in its own process.

    `folder` gets the daemons' settings, logs and state; by default it is temporary. Progress is in
    rounds.
    """
    plan = plan or Plan()
    with _folder(folder) as path:
        done = 0

        def tell(activity: str) -> None:
            progress(activity, done, plan.rounds)

        with Localnet(plan, path, tell) as net:

            def each() -> None:
                nonlocal done
                if (finished := len(net.view.finalised_rounds())) > done:
                    done = finished
                    tell("running rounds")

            net.start(each)
            net.run(each)
            outcome = JobOutcome.of(net)
            net.daemons["server"].stop()
            return JobResult(plan, outcome, accuracies(last_words(path, "server")))


@contextmanager
def _folder(folder: Path | str | None) -> Iterator[Path]:
    if folder is not None:
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        yield path
    else:
        with tempfile.TemporaryDirectory(prefix="opfl-job-") as temporary:
            yield Path(temporary)
