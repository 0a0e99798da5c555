"""Datagrams and a connection to one autopilot: the first that talks, nobody else."""

from __future__ import annotations

import errno
import socket
import time
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from archimedes.errors import ArchimedesError

__all__ = ["AutopilotLost", "Command", "DatagramLink", "StreamLink"]

#: No message of the protocols is longer.
LARGEST = 65535
#: A new sender may take over after this many seconds of silence: an autopilot that was restarted.
SILENCE = 1.0
#: How many messages of strangers are read in a row, so that they cannot stop the loop.
MOST = 1000


class Command(NamedTuple):
    """What the autopilot asks for: its channels, whether it is armed, how long they hold."""

    channels: np.ndarray
    armed: bool | None = None
    dt: float | None = None
    restarted: bool = False


class AutopilotLost(ArchimedesError):
    """The autopilot closed the connection, or says nothing any more."""


def open_socket(kind: int, host: str, port: int) -> socket.socket:
    """Return a socket that is bound to an address, or raise an error that says why not."""
    sock = socket.socket(socket.AF_INET, kind)
    try:
        if kind == socket.SOCK_STREAM:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise OSError(
                error.errno,
                f"port {port} on {host} is in use: end the other simulator, or give port= here "
                "and to the autopilot",
            ) from error
        why = error.strerror or error
        raise OSError(error.errno, f"cannot listen on {host}, port {port}: {why}") from error
    except (OverflowError, UnicodeError) as error:
        sock.close()
        raise ValueError(f"port={port} must be between 0 and 65535") from error
    return sock


class DatagramLink:
    """UDP: messages are whole, may be lost, repeated or out of order, and anyone can send one.

    Parameters
    ----------
    host : str
        Address of this machine to listen at.
    port : int
        Port to listen at; 0 for any that is free.
    peer : (str, int), optional
        Address of the autopilot. Without it the first to send a valid message is the autopilot.
    """

    datagrams = True

    def __init__(self, host: str, port: int, counts: Counter[str], peer: Any = None) -> None:
        self.socket = open_socket(socket.SOCK_DGRAM, host, port)
        self.counts = counts
        self.peer = peer and (socket.gethostbyname(peer[0]), peer[1])
        self.sender: Any = None
        self.heard = time.monotonic()

    @property
    def port(self) -> int:
        """Port that is listened at."""
        return int(self.socket.getsockname()[1])

    def send(self, data: bytes) -> None:
        """Send to the autopilot; nothing happens where there is none yet, or nobody listens."""
        if self.peer is not None:
            try:
                self.socket.sendto(data, self.peer)
            except (ConnectionError, BlockingIOError):
                self.counts["unsent"] += 1

    def receive(self, seconds: float) -> bytes | None:
        """Return the next message of the autopilot, or of anybody while there is none, or None."""
        end = time.monotonic() + seconds
        for _ in range(MOST):
            try:
                self.socket.settimeout(max(end - time.monotonic(), 0.0))
                data, self.sender = self.socket.recvfrom(LARGEST)
            except (TimeoutError, BlockingIOError):
                return None
            except ConnectionError:  # nobody listens there, some systems say
                continue
            if self.peer in (None, self.sender) or self.silent > SILENCE:
                return data
            self.counts["strangers"] += 1
        return None

    @property
    def silent(self) -> float:
        """Seconds since the last valid message."""
        return time.monotonic() - self.heard

    @property
    def changed(self) -> bool:
        """Whether the last message came from somebody else than the autopilot."""
        return self.peer is not None and self.sender != self.peer

    def accept(self) -> None:
        """Take the sender of the last message for the autopilot."""
        self.peer = self.sender
        self.heard = time.monotonic()

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()


class StreamLink:
    """TCP: the simulator listens, the autopilot connects; nothing is lost.

    Parameters
    ----------
    host : str
        Address of this machine to listen at.
    port : int
        Port to listen at; 0 for any that is free.
    """

    datagrams = False
    changed = False

    def __init__(self, host: str, port: int, counts: Counter[str]) -> None:
        self.listener = open_socket(socket.SOCK_STREAM, host, port)
        self.listener.listen(1)
        self.port = int(self.listener.getsockname()[1])
        self.counts = counts
        self.connection: socket.socket | None = None
        self.heard = time.monotonic()

    def connect(self, seconds: float) -> bool:
        """Wait for the autopilot to connect; nobody else can afterwards."""
        self.listener.settimeout(max(seconds, 1e-3))
        try:
            self.connection, _ = self.listener.accept()
        except TimeoutError:
            return False
        self.listener.close()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return True

    def send(self, data: bytes) -> None:
        """Send to the autopilot."""
        assert self.connection is not None
        try:
            self.connection.settimeout(10.0)
            self.connection.sendall(data)
        except (OSError, TimeoutError) as error:
            raise AutopilotLost(f"the autopilot takes no more data: {error}") from error

    def receive(self, seconds: float) -> bytes | None:
        """Return what has come, or None where nothing comes in time."""
        assert self.connection is not None
        try:
            self.connection.settimeout(seconds)
            data = self.connection.recv(LARGEST)
        except (TimeoutError, BlockingIOError):
            return None
        except OSError as error:
            raise AutopilotLost(f"the connection to the autopilot broke: {error}") from error
        if not data:
            raise AutopilotLost("the autopilot closed the connection")
        return data

    def accept(self) -> None:
        """Note that a valid message came."""
        self.heard = time.monotonic()

    @property
    def silent(self) -> float:
        """Seconds since the last valid message."""
        return time.monotonic() - self.heard

    def close(self) -> None:
        """Close connection and listener."""
        self.listener.close()
        if self.connection is not None:
            self.connection.close()
