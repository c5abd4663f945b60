"""All decoders of external bytes, by name."""

from __future__ import annotations

from chain_targets import CHAIN_TARGETS
from daemon_targets import DAEMON_TARGETS
from exchange_targets import EXCHANGE_TARGETS
from file_targets import FILE_TARGETS
from message_targets import MESSAGE_TARGETS
from node_targets import NODE_TARGETS
from protocol_targets import PROTOCOL_TARGETS
from value_targets import VALUE_TARGETS

TARGETS = (
    PROTOCOL_TARGETS
    | EXCHANGE_TARGETS
    | MESSAGE_TARGETS
    | VALUE_TARGETS
    | CHAIN_TARGETS
    | NODE_TARGETS
    | FILE_TARGETS
    | DAEMON_TARGETS
)
