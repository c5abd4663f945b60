"""A proxy to a node that can be cut: connections end, and new ones are refused."""

import contextlib
import socket
import threading

_CHUNK = 1 << 16


class CuttableProxy:
    """Listens at a port of its own, and forwards connections to `port` on loopback."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self._target = port
        self._host = host
        self._lock = threading.Lock()
        self._streams: set[socket.socket] = set()
        self._listener: socket.socket | None = None
        self.port = 0
        self.connect()

    def connect(self) -> None:
        self._listener = socket.create_server((self._host, self.port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def cut(self) -> None:
        if self._listener is not None:
            # A thread that waits in `accept` would keep a closed socket listening.
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        with self._lock:
            streams, self._streams = self._streams, set()
        for stream in streams:
            with contextlib.suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                with self._lock:
                    self._streams |= {near, far}
                threading.Thread(target=self._carry, args=(near, far), daemon=True).start()

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        with near, far:
            back = threading.Thread(target=self._pump, args=(far, near), daemon=True)
            back.start()
            self._pump(near, far)
            back.join()
            with self._lock:
                self._streams -= {near, far}

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_CHUNK):
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)
