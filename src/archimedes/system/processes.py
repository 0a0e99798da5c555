"""Processes: what a forked child does, who runs this one, and programs with pipes of their own.

Python starts processes in three ways. ``fork`` copies this process, without its other threads: what
holds locks or threads begins anew there (:func:`call_in_forked_children`). ``spawn``, the only way
on Windows and the default on macOS, and ``forkserver``, the default on Linux since Python 3.14,
start from nothing and import the main module again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

#: A program expects its pipes to be descriptors 3 and 4: moved away first, then there.
_LAUNCHER = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for number, end in enumerate(ends, 3):
    os.dup2(end, number)
os.execv(sys.argv[3], sys.argv[3:])
"""


def call_in_forked_children(function: Callable[[], object]) -> None:
    """Call a function first in every child that is forked from this process."""
    if sys.platform != "win32":  # Windows forks no process
        os.register_at_fork(after_in_child=function)


def is_root() -> bool:
    """Return whether this process runs as root; False on Windows, which has no such user."""
    return sys.platform != "win32" and os.geteuid() == 0


class PipedProcess:
    """A program that reads from one pipe and writes to another, beside its standard streams.

    On Linux and macOS the program finds the pipes as its file descriptors 3 and 4. Windows passes
    handles instead: the program is given the argument ``--handles=READ,WRITE`` (the name of the
    option is ``handles``) after the others.

    Parameters
    ----------
    command
        The program's path and its arguments.
    handles
        Name of the option that tells the program its handles on Windows.
    """

    def __init__(self, command: Sequence[str], handles: str) -> None:
        # Imported here, because this module is imported with the package.
        import subprocess
        import threading
        from queue import SimpleQueue

        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        null = subprocess.DEVNULL
        try:
            if sys.platform == "win32":
                import msvcrt

                pipes = [msvcrt.get_osfhandle(end) for end in (to_read, to_write)]
                for handle in pipes:
                    os.set_handle_inheritable(handle, True)
                startup = subprocess.STARTUPINFO(lpAttributeList={"handle_list": pipes})
                self._process = subprocess.Popen(
                    [*command, f"{handles}={pipes[0]},{pipes[1]}"],
                    startupinfo=startup, stdin=null, stdout=null, stderr=null,
                )  # fmt: skip
            else:
                ends = [str(to_read), str(to_write)]
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", _LAUNCHER, *ends, *command],
                    pass_fds=(to_read, to_write), stdin=null, stdout=null, stderr=null,
                )  # fmt: skip
        except BaseException:
            os.close(self._read)
            os.close(self._write)
            raise
        finally:
            os.close(to_read)
            os.close(to_write)
        self._arrived: SimpleQueue[bytes] = SimpleQueue()
        # Windows waits for several pipes in no other way than by threads.
        threading.Thread(target=self._collect, name="archimedes-pipe", daemon=True).start()

    def _collect(self) -> None:
        """Read until the program closes its end; an empty text in the queue marks the end."""
        data = b"..."
        while data:
            try:
                data = os.read(self._read, 1 << 20)
            except OSError:
                data = b""
            self._arrived.put(data)
        os.close(self._read)

    def send(self, data: bytes) -> None:
        """Write all of some bytes."""
        while data:
            data = data[os.write(self._write, data) :]

    def receive(self, timeout: float) -> bytes | None:
        """Return what has arrived; b"" after the program's end, None if nothing comes in time."""
        from queue import Empty

        try:
            return self._arrived.get(timeout=max(0.0, timeout))
        except Empty:
            return None

    def end(self, patience: float = 10.0) -> None:
        """Close the pipes, and kill the program if it does not end within a few seconds."""
        from subprocess import TimeoutExpired

        os.close(self._write)
        self._process.terminate()
        try:
            self._process.wait(patience)
        except TimeoutExpired:
            self._process.kill()
            self._process.wait()
