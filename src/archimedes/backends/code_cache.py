"""Compiled code on disk, for all backends: a second process starts without compiling.

One file per kernel, named by a hash of everything the code depends on. Files are written beside and
renamed, so that readers never see half a file; each begins with a checksum of its name and its
code, so that a damaged or exchanged one is seen and made anew. A folder that cannot be written to
is no error: the cache is only a help. One that others can write to is not used
(``cache_trust.py``). Beyond a limit of all files, those used longest ago are deleted.

``ARCHIMEDES_CACHE_DIR`` moves the folder, ``ARCHIMEDES_CACHE=0`` turns the cache off.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from archimedes.backends.cache_trust import distrust, distrust_file, make_private, say_once
from archimedes.hashing import blake2b
from archimedes.version import __version__

__all__ = ["cache_folder", "cache_key", "read", "sources_digest", "write"]

MAGIC = b"archimedes kernel 3\n"
CHECKSUM = 32
#: Bytes of all files together, checked by the first kernel that a process adds.
LIMIT = 512 * 2**20
#: Names of our files and of their folders: nothing else is ever deleted.
_FOLDER = re.compile(r"[0-9a-f]{2}")
_FILE = re.compile(r"[0-9a-f]{40}\.o|tmp\w+\.part")
# No symbolic link as the last part, and no waiting for a pipe that somebody put there.
_READING = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
#: A file of its own, for nobody else.
_WRITING = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_WRITING |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def cache_folder() -> Path | None:
    """Return the folder of the cache, or None where it is turned off."""
    if os.environ.get("ARCHIMEDES_CACHE", "").lower() in ("0", "off", "false", "no"):
        return None
    own = os.environ.get("ARCHIMEDES_CACHE_DIR")
    if own:
        return Path(own).expanduser()
    try:
        home = Path.home()
    except RuntimeError:  # a user without a home
        return None
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", home)) / "archimedes" / "cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "archimedes"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "archimedes"


def cache_key(*parts: object) -> str:
    """Return a name for what the parts describe (by their ``repr``)."""
    return blake2b(repr(parts).encode(), digest_size=20).hexdigest()


def sources_digest(own: Path) -> str:
    """Identify the sources that code depends on: a backend's ``own`` folder and what all share."""
    shared = Path(__file__).parent
    folders = (own, shared / "lowering", shared.parent / "graph")
    parts = [*(_folder_digest(folder, True) for folder in folders), _folder_digest(shared, False)]
    return blake2b(b"".join(parts), digest_size=16).hexdigest()


@lru_cache(maxsize=16)
def _folder_digest(folder: Path, inside: bool) -> bytes:
    """Return a hash of the sources in a folder, with those of folders ``inside`` it or without.

    By release, names, sizes and times of change, as Python tells whether compiled modules are
    still those of their sources: to read all of them would be a fiftieth of a first solve.
    """
    content = __version__, sorted(_sources(os.fspath(folder), inside))
    return blake2b(repr(content).encode(), digest_size=16).digest()


def _sources(folder: str, inside: bool) -> Iterator[tuple[str, int, int]]:
    """Yield name, size and time of change of the sources in a folder."""
    pending = [folder]
    while pending:
        with suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    found = entry.stat()
                    yield entry.path[len(folder) :], found.st_size, found.st_mtime_ns
                elif inside and entry.name != "__pycache__" and entry.is_dir():
                    pending.append(entry.path)


def _path(folder: Path, key: str) -> Path:
    return folder / key[:2] / f"{key}.o"


def read(key: str) -> bytes | None:
    """Return the object code stored under a key, or None if there is none that can be trusted."""
    folder = cache_folder()
    if folder is None:
        return None
    path = _path(folder, key)
    data = _trusted_bytes(path)
    if data is None:
        return None
    with suppress(OSError):  # a folder for reading only keeps its times
        os.utime(path)
    start = len(MAGIC) + CHECKSUM
    code = data[start:]
    sound = data.startswith(MAGIC) and _checksum(key, code) == data[len(MAGIC) : start]
    return code if sound else None


def _checksum(key: str, code: bytes) -> bytes:
    """Code under another name is not what was asked for: the name is part of it."""
    return blake2b(key.encode() + b"\n" + code, digest_size=CHECKSUM).digest()


def _trusted_bytes(path: Path) -> bytes | None:
    """Return what a file holds that only this user or root can have written."""
    try:
        handle = os.open(path, _READING | getattr(os, "O_BINARY", 0))
    except OSError:
        return None
    try:
        found = os.fstat(handle)
        reason = _distrust_once(path.parent) or distrust_file(path, found)
        if reason is not None:
            say_once(reason)
            return None
        if found.st_size > LIMIT:
            return None
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read()
    except OSError:
        return None
    finally:
        os.close(handle)


@lru_cache(maxsize=1024)
def _distrust_once(folder: Path) -> str | None:
    return distrust(folder)


def write(key: str, code: bytes) -> bool:
    """Store object code; return whether that worked."""
    folder = cache_folder()
    if folder is None:
        return False
    path = _path(folder, key)
    temporary = ""
    try:
        make_private(path.parent)
        if reason := _distrust_once(path.parent):
            say_once(reason)
            return False
        # As ``tempfile`` does, whose import takes as long as all of this ten times over.
        name = os.fspath(path.parent / f"tmp{os.urandom(8).hex()}.part")
        handle = os.open(name, _WRITING, 0o600)
        temporary = name
        with os.fdopen(handle, "wb") as file:
            file.write(MAGIC + _checksum(key, code) + code)
        os.replace(temporary, path)
        _trim_once(folder)
    except OSError:
        # Read-only or full: the next process compiles again.
        if temporary:
            with suppress(OSError):
                os.unlink(temporary)
        return False
    return True


@lru_cache(maxsize=8)
def _trim_once(folder: Path) -> None:
    """Delete the files used longest ago, until the others fit into the limit."""
    files = []
    for inner in [p for p in folder.iterdir() if _FOLDER.fullmatch(p.name) and not p.is_symlink()]:
        for path in [p for p in inner.glob("*") if _FILE.fullmatch(p.name)]:
            with suppress(OSError):  # other processes may be trimming too
                found = path.lstat()
                files.append((found.st_mtime, found.st_size, path))
    total = 0
    for _, size, path in sorted(files, reverse=True):
        total += size
        if total > LIMIT:
            path.unlink(missing_ok=True)
