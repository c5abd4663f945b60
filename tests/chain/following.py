"""A cursor that follows the chain in a thread, as a daemon does."""

import threading

from opfl_chain.chain.errors import RpcUnavailable

_BACKOFF_SECONDS = 0.1


class Follower:
    """Steps until it is stopped, also while the node is unavailable."""

    def __init__(self, cursor, on_step=lambda step: None, *, poll_seconds=0.05):
        self._cursor = cursor
        self._on_step = on_step
        self._poll_seconds = poll_seconds
        self._wake = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run)

    @property
    def alive(self):
        return self._thread.is_alive()

    def start(self):
        self._thread.start()

    def wake(self):
        self._wake.set()

    def stop(self):
        self._stopped = True
        self._wake.set()
        self._thread.join()

    def _run(self):
        while not self._stopped:
            self._wake.clear()
            try:
                step = self._cursor.step()
            except RpcUnavailable:
                self._wake.wait(_BACKOFF_SECONDS)
                continue
            self._on_step(step)
            if step.caught_up or step.disturbed:
                self._wake.wait(self._poll_seconds if step.caught_up else _BACKOFF_SECONDS)
