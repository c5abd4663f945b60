"""A process that dies by SIGKILL at a chosen point: `python chain_crashing.py sender|cursor ...`

It runs the real sender or cursor. Only the moment of death is arranged, by counting requests to
the node or handled events.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import websockets.legacy  # noqa: F401

from eth_account import Account

from opfl_chain.chain.contracts.contract import Log
from opfl_chain.chain.follow.cursor import EventCursor
from opfl_chain.chain.rpc import Request, Rpc
from opfl_chain.chain.send.sender import TransactionSender

TABLE = "CREATE TABLE IF NOT EXISTS moves (amount INTEGER NOT NULL, transaction_hash TEXT)"


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class MortalRpc(Rpc):
    def __init__(self, url: str, point: str) -> None:
        super().__init__(url)
        self.moment, _, self.method = point.partition(" ")

    def batch(self, calls: Sequence[Request]) -> list[Any]:
        fatal = any(method == self.method for method, _ in calls)
        if fatal and self.moment == "before":
            die()
        answers = super().batch(calls)
        if fatal and self.moment == "after":
            die()
        return answers


def run_sender(url: str, point: str, key: str, folder: str, address: str, amounts: str) -> None:
    import counter_bindings

    counter = counter_bindings.Counter(Rpc(url), address)
    calls = {
        f"move {amount}": counter.move(1, int(amount), b"", value=0)
        for amount in amounts.split(",")
    }
    with TransactionSender(MortalRpc(url, point), Account.from_key(key), Path(folder)) as sender:
        sender.send_many(calls)


def run_cursor(url: str, database: str, address: str, fatal_event: str) -> None:
    handled = 0

    def handle(db: sqlite3.Connection, log: Log) -> None:
        nonlocal handled
        record_move(db, log)
        handled += 1
        if handled == int(fatal_event):
            die()

    with EventCursor(
        Rpc(url), Path(database), "moves", [address], handle, schema=TABLE, tables=("moves",)
    ) as cursor:
        cursor.catch_up()


def record_move(db: sqlite3.Connection, log: Log) -> None:
    amount = int.from_bytes(log.data[:32], "big")
    db.execute("INSERT INTO moves VALUES (?, ?)", (amount, log.transaction_hash))


if __name__ == "__main__":
    {"sender": run_sender, "cursor": run_cursor}[sys.argv[1]](*sys.argv[2:])
