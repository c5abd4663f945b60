"""Three members whose every received byte is kept: SPU's link through proxies, and their wires."""

import select
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from opfl_chain.mpc.committee import Committee
from opfl_chain.mpc.link import create_link
from opfl_chain.mpc.local_committee import free_addresses
from opfl_chain.mpc.run_log import SharedRunLog
from opfl_chain.mpc.runtime import Runtime
from opfl_chain.mpc.seat import Seat
from opfl_chain.mpc.wires import MemoryWires
from opfl_chain.transport.addresses import split_address
from opfl_chain.transport.deadline import Deadline

SECONDS = 120


class Proxy:
    """Forwards connections to an address and keeps what goes there, and what comes back."""

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
        """The member may not listen yet."""
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


class KeepingWires:
    """Keeps all messages that a member received."""

    def __init__(self, wires):
        self.received = []
        self._wires = wires
        self.send, self.flush = wires.send, wires.flush

    def receive(self, rank):
        data = self._wires.receive(rank)
        self.received.append(data)
        return data


class EavesdroppedCommittee(Committee):
    """`link_bytes(rank)` and `messages(rank)` are what a member received."""

    def __init__(self):
        own = free_addresses()
        self._proxies = {(r, p): Proxy(own[p]) for r in range(3) for p in range(3) if p != r}
        self._wires = [KeepingWires(wires) for wires in MemoryWires.committee(SECONDS)]
        log = SharedRunLog(3, SECONDS)

        def runtime(rank):
            seen = tuple(own[p] if p == rank else self._proxies[rank, p].address for p in range(3))
            link = create_link(Seat(rank, own), "eavesdropped", seen, Deadline(SECONDS))
            return Runtime(
                link=link,
                wires=self._wires[rank],
                rank=rank,
                addresses=own,
                recv_seconds=SECONDS,
                log=log,
            )

        with ThreadPoolExecutor(3) as pool:
            super().__init__(list(pool.map(runtime, range(3))))

    def link_bytes(self, rank):
        """What peers sent to this member, and what they answered to it."""
        received = (self._proxies[p, rank].received for p in range(3) if p != rank)
        answered = (self._proxies[rank, p].answered for p in range(3) if p != rank)
        return b"".join(map(bytes, (*received, *answered)))

    def messages(self, rank):
        return self._wires[rank].received

    def close(self):
        self.sessions = ()
        for proxy in self._proxies.values():
            proxy.close()
