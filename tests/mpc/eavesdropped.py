"""Three members with a record of every received byte: on SPU's link, by proxies, and beside it."""

import select
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from opfl_chain.mpc.local import Committee, free_addresses
from opfl_chain.mpc.session.channels import MemoryChannels
from opfl_chain.mpc.session.party_config import PartyConfig
from opfl_chain.mpc.session.runtime import Runtime
from opfl_chain.mpc.session.statistics import SharedRunLog
from opfl_chain.mpc.session.tunnel import create_link
from opfl_chain.transport.addresses import split_address
from opfl_chain.transport.deadline import Deadline

SECONDS = 120


class Proxy:
    """Forwards connections to an address and records both directions."""

    def __init__(self, address):
        self.received, self.answered = bytearray(), bytearray()
        self._target = split_address(address)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                incoming, _ = self._listener.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._forward, args=(incoming,), daemon=True).start()

    def _connect(self):
        """Connect, retrying while the member does not listen yet."""
        deadline = Deadline(SECONDS)
        while True:
            try:
                return socket.create_connection(self._target)
            except ConnectionRefusedError:
                if not deadline.remaining:
                    raise
                time.sleep(0.02)

    def _forward(self, incoming):
        outgoing = self._connect()
        other = {incoming: (outgoing, self.received), outgoing: (incoming, self.answered)}
        with incoming, outgoing:
            while True:
                for source in select.select(list(other), [], [])[0]:
                    target, kept = other[source]
                    data = source.recv(1 << 16)
                    if not data:
                        return
                    kept += data
                    target.sendall(data)

    def close(self):
        self._listener.close()


class KeepingChannels:
    """Records all messages that a member receives."""

    def __init__(self, channels):
        self.received = []
        self._channels = channels
        self.send, self.flush = channels.send, channels.flush

    def receive(self, rank):
        data = self._channels.receive(rank)
        self.received.append(data)
        return data


class EavesdroppedCommittee(Committee):
    """A committee with a record of received data: `link_bytes(rank)` and `messages(rank)`."""

    def __init__(self):
        own = free_addresses()
        self._proxies = {(r, p): Proxy(own[p]) for r in range(3) for p in range(3) if p != r}
        self._channels = [
            KeepingChannels(channels) for channels in MemoryChannels.committee(SECONDS)
        ]
        log = SharedRunLog(3, SECONDS)

        def runtime(rank):
            seen = tuple(own[p] if p == rank else self._proxies[rank, p].address for p in range(3))
            link = create_link(PartyConfig(rank, own), "eavesdropped", seen, Deadline(SECONDS))
            return Runtime(
                link=link,
                channels=self._channels[rank],
                rank=rank,
                addresses=own,
                recv_seconds=SECONDS,
                log=log,
            )

        with ThreadPoolExecutor(3) as pool:
            super().__init__(list(pool.map(runtime, range(3))))

    def link_bytes(self, rank):
        """Return the peers' requests to this member and their answers."""
        received = (self._proxies[p, rank].received for p in range(3) if p != rank)
        answered = (self._proxies[rank, p].answered for p in range(3) if p != rank)
        return b"".join(map(bytes, (*received, *answered)))

    def messages(self, rank):
        return self._channels[rank].received

    def close(self):
        self.sessions = ()
        for proxy in self._proxies.values():
            proxy.close()
