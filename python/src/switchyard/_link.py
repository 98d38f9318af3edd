"""The connection to the agent: one JSON object a line over a Unix socket, and a thread that reads.

Nothing here may disturb training: when the agent is away, messages are dropped and the reader tries again until
it is back (a restarted agent listens on the same path). Every message that matters can be said again.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from typing import Any, Callable

# A message that the agent does not take within this time is given up, with the connection.
_SEND_S = 5

_RETRY_FIRST_S = 0.1
_RETRY_MAX_S = 2.0

Message = dict[str, Any]


class Link:
    """A connection that is kept while the process lives.

    `greet` is called at each connection and returns what to say first; `hear` is called by the reader thread
    with each message, and with `None` when the connection was lost.
    """

    def __init__(self, path: str, greet: Callable[[], list[Message]], hear: Callable[[Message | None], None]) -> None:
        """Connect, if the agent is there, and start to read."""
        self._path = path
        self._greet = greet
        self._hear = hear
        self._sending = threading.Lock()
        self._socket: socket.socket | None = None
        self._closed = threading.Event()
        self._connect()
        self._reader = threading.Thread(target=self._read_all, name="switchyard", daemon=True)
        self._reader.start()

    def send(self, message: Message) -> bool:
        """Say something. False: the agent is away and did not hear it."""
        with self._sending:
            return self._socket is not None and self._write(self._socket, message)

    def close(self) -> None:
        """Hang up and wait for the reader to end."""
        self._closed.set()
        with self._sending:
            if self._socket is not None:
                _hang_up(self._socket)
        if self._reader is not threading.current_thread():
            self._reader.join(_SEND_S)
        self.abandon()

    def abandon(self) -> None:
        """In a forked child: let go of the connection, which stays the parent's. Takes no lock, since whoever
        held it does not exist here.
        """
        self._closed.set()
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _connect(self) -> bool:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _SEND_S, 0))
            connection.connect(self._path)
        except OSError:
            connection.close()
            return False
        greeting = self._greet()
        with self._sending:
            if self._closed.is_set():
                connection.close()
                return False
            self._socket = connection
            return all(self._write(connection, message) for message in greeting)

    def _write(self, connection: socket.socket, message: Message) -> bool:
        try:
            connection.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\n")
            return True
        except OSError:
            _hang_up(connection)  # half a line may have left, so nothing more may follow it
            return False

    def _read_all(self) -> None:
        wait_s = _RETRY_FIRST_S
        while not self._closed.is_set():
            if self._socket is not None or self._connect():
                self._read_one_connection()
                wait_s = _RETRY_FIRST_S
            self._closed.wait(wait_s)
            wait_s = min(2 * wait_s, _RETRY_MAX_S)

    def _read_one_connection(self) -> None:
        connection = self._socket
        if connection is None:
            return
        rest = b""
        while True:
            chunk = _receive(connection)
            if not chunk:
                break
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._hear_line(line)
        self._drop(connection)

    def _hear_line(self, line: bytes) -> None:
        """Words that this version does not know are passed over: a newer agent may say more."""
        try:
            message = json.loads(line)
        except ValueError:
            return
        if isinstance(message, dict):
            self._hear(message)

    def _drop(self, connection: socket.socket) -> None:
        with self._sending:
            connection.close()
            self._socket = None
        if not self._closed.is_set():
            self._hear(None)


def _receive(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65536)
    except OSError:
        return b""


def _hang_up(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # the other side was first
