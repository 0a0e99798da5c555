"""Files: locks, new files, renaming, and names that reach the disk.

Symbolic links are refused by the system itself on Linux and macOS. On Windows, where only
privileged users make them, a link is looked for before the file is opened.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import time
from pathlib import Path
from typing import BinaryIO

#: Bytes as they are, nothing for child processes, no symbolic link: as far as the system has each.
_FLAGS = 0
for _name in ("O_BINARY", "O_CLOEXEC", "O_NOINHERIT", "O_NOFOLLOW"):
    _FLAGS |= getattr(os, _name, 0)
#: The error of Windows for what another handle has locked.
_LOCK_VIOLATION = 33
#: Seconds for which Windows is asked again to rename a file that somebody holds.
_PATIENCE = 1.0


def open_for_reading(path: Path) -> int:
    """Open a file and return its descriptor; a symbolic link is an error, a pipe is not waited for.

    Raises
    ------
    OSError
        There is no such file, it is a link, or it may not be read.
    """
    return _open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0), 0)


def open_new(path: Path, mode: int = 0o600) -> BinaryIO:
    """Make a file that was not there and open it for writing.

    ``mode`` are the permissions on Linux and macOS. On Windows a file has those of its folder.

    Raises
    ------
    OSError
        There is something of this name already (FileExistsError), or no file can be made.
    """
    return os.fdopen(_open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb")


def lock_file(path: Path) -> BinaryIO:
    """Open a file, made where it is missing, that no other process gets until it is closed.

    The system releases the lock when the process ends, however it ends.

    Raises
    ------
    BlockingIOError
        Another process has it.
    OSError
        It is a symbolic link, or it may not be written.
    """
    file = os.fdopen(_open(path, os.O_RDWR | os.O_CREAT, 0o644), "r+b")
    try:
        _lock(file)
    except BaseException:
        file.close()
        raise
    return file


def _lock(file: BinaryIO) -> None:
    if sys.platform == "win32":
        import msvcrt

        library = ctypes.WinDLL("kernel32", use_last_error=True)
        handle = ctypes.c_void_p(msvcrt.get_osfhandle(file.fileno()))
        if not library.LockFile(handle, 0, 0, 1, 0):  # the first byte stands for the file
            error = ctypes.get_last_error()
            if error == _LOCK_VIOLATION:
                raise BlockingIOError(errno.EAGAIN, "locked by another process")
            raise ctypes.WinError(error)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _open(path: Path, flags: int, mode: int) -> int:
    if sys.platform == "win32" and path.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return os.open(path, flags | _FLAGS, mode)


def rename(source: Path, target: Path) -> None:
    """Give a file another name, in place of a file that may have it, at one moment for all readers.

    Windows refuses that while anybody has one of the two open, as scanners for viruses do with new
    files: there it is tried for a second.
    """
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            os.replace(source, target)
            return
        except PermissionError:
            if sys.platform != "win32" or time.monotonic() > end:
                raise
        time.sleep(0.01)


def write_name_to_disk(folder: Path) -> None:
    """Wait until the names of new files in a folder are on disk; Windows does that by itself."""
    if sys.platform != "win32":
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
