"""The server: moves rounds on and serves models. Nobody has to trust it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from opfl_chain.roles import model_store as models
from opfl_chain.roles.content import content_routes
from opfl_chain.roles.model_store import Models
from opfl_chain.roles.node import Moment, Node
from opfl_chain.roles.round_driver import RoundDriver, unearned
from opfl_chain.roles.settings import ServerSettings
from opfl_chain.transport.routes import Route

if TYPE_CHECKING:
    from opfl_chain.roles.server.scorer import Scorer


class Server(Node):
    ROLE = "server"
    ROUND_DRIVER: ClassVar[type[RoundDriver]] = RoundDriver
    SCHEMA: ClassVar[str] = (
        models.SCHEMA
        + """
    CREATE TABLE IF NOT EXISTS accuracies (model BLOB PRIMARY KEY, accuracy REAL);
    """
    )

    def __init__(self, settings: ServerSettings) -> None:
        super().__init__(settings)
        self._settings = settings
        self.models = Models(self.view, self.state)
        self._round_driver = self.ROUND_DRIVER(self)
        self._over = False

    @property
    def done(self) -> bool:
        return self._over

    def routes(self) -> list[Route]:
        return content_routes(self.models)

    def health(self) -> dict[str, Any]:
        return {"accuracies": self._accuracies()}

    # --- duties

    def act(self, now: Moment) -> None:
        with self.duty("moving on"):
            self._round_driver.act(now, 0)
        with self.duty("models"):
            self.models.follow(self.peers.fetch_aggregate)
        self._score()
        with self.duty("ending"):
            ended = self.view.is_closed or self.is_stillborn(now)
            refunded = ended and (self.view.is_refunded or not unearned(self.job))
            self._over = refunded and (not self.view.is_closed or self._all_scored())

    # --- accuracy

    @cached_property
    def _scorer(self) -> Scorer:
        from opfl_chain.roles.server.scorer import Scorer  # loads torch

        return Scorer(self.job.policy, str(self._settings.test_dataset), self._settings.data_dir)

    def _score(self) -> None:
        if self._settings.test_dataset is None:
            return
        for number, model_hash in self._models_to_score().items():
            if self.state.one("SELECT 1 FROM accuracies WHERE model = ?", model_hash):
                continue
            weights = self.models.weights(model_hash)
            if weights is None:
                continue
            accuracy = self._scorer.accuracy(self.models.layout.unflatten(weights))
            self.state.write("INSERT OR IGNORE INTO accuracies VALUES (?, ?)", model_hash, accuracy)
            self.log.info("scored", extra={"updates": number, "accuracy": accuracy})

    def _models_to_score(self) -> dict[int, bytes]:
        """Models of the chain as it is now, by the number of rounds before them."""
        final = self.view.finalised_rounds()
        after = {each.number + 1: each.next_model_hash for each in final if each.next_model_hash}
        return {0: self.job.terms.model_hash, **after}

    def _accuracies(self) -> dict[int, float]:
        known = dict(self.state.all("SELECT model, accuracy FROM accuracies"))
        models = self._models_to_score().items()
        return {number: known[model] for number, model in models if model in known}

    def _all_scored(self) -> bool:
        unscored = self._settings.test_dataset is None
        return unscored or len(self._accuracies()) == len(self._models_to_score())
