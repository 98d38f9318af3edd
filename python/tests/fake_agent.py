"""An agent as far as a training process can tell: it listens on a Unix socket and speaks the protocol."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import tempfile
import threading
import time
from typing import Any, Callable

# Long enough for the slowest machine; a test that waits for it has failed.
PATIENCE_S = 120.0


class FakeAgent:
    """Keeps all that was said, by process, and says what a test wants."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="yard")
        self.path = os.path.join(self.folder, "socket")
        self.heard: list[tuple[int, dict[str, Any]]] = []
        self._changed = threading.Condition()
        self._connections: dict[int, socket.socket] = {}
        self._listener: socket.socket | None = None
        self.listen()

    def listen(self) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self.path)
        self._listener.listen(64)
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def hang_up(self) -> None:
        """As if the agent died."""
        assert self._listener is not None
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        os.unlink(self.path)
        with self._changed:
            connections, self._connections = self._connections, {}
        for connection in connections.values():
            connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def close(self) -> None:
        self.hang_up()
        shutil.rmtree(self.folder)

    def tell(self, message: dict[str, Any], rank: int | None = None) -> None:
        line = json.dumps(message).encode() + b"\n"
        self.wait(lambda: bool(self.said("hello", rank)))
        with self._changed:
            for one, connection in self._connections.items():
                if rank is None or one == rank:
                    with contextlib.suppress(OSError):  # it may just have ended
                        connection.sendall(line)

    def stop(self, at: int | None = None, why: str = "preempted", grace_s: float = 30.0) -> None:
        self.tell({"stop": {"at": at, "why": why, "grace_s": grace_s}})

    def said(self, word: str, rank: int | None = None) -> list[dict[str, Any]]:
        with self._changed:
            return [m[word] for r, m in self.heard if word in m and (rank is None or rank == r)]

    def wait(self, ready: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE_S
        while not ready():
            with self._changed:
                self._changed.wait(0.01)
            assert time.monotonic() < until, f"nothing came of it; heard {self.heard[-20:]}"

    def wait_for(self, word: str, count: int = 1) -> None:
        self.wait(lambda: len(self.said(word)) >= count)

    def connected(self) -> int:
        with self._changed:
            return len(self._connections)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._read, args=(connection,), daemon=True).start()

    def _read(self, connection: socket.socket) -> None:
        rank = -1
        try:
            for line in connection.makefile("rb"):
                message = json.loads(line)
                with self._changed:
                    if "hello" in message:
                        rank = message["hello"]["rank"]
                        self._connections[rank] = connection
                    self.heard.append((rank, message))
                    self._changed.notify_all()
        except OSError:
            pass
        with self._changed:
            if self._connections.get(rank) is connection:
                del self._connections[rank]
            self._changed.notify_all()
