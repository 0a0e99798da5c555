"""Compiled code on disk, for all backends: a second process starts without compiling.

There is one file per kernel, named by a hash of everything the code depends on. A file is written
under another name and renamed, so that readers never see half of it. Each begins with a checksum of
its name and its code, so that a damaged or exchanged one is noticed and replaced. The cache is
optional: a folder that cannot be written to is not an error, and one that other users can write to
is not used (``system/private_folders.py``). When all files together exceed a limit, those that were
used longest ago are deleted.

``ARCHIMEDES_CACHE_DIR`` moves the folder, ``ARCHIMEDES_CACHE=0`` turns the cache off.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from archimedes.hashing import blake2b
from archimedes.system import private_folders
from archimedes.system.files import open_for_reading, open_new, rename
from archimedes.version import __version__

MAGIC = b"archimedes kernel 3\n"
CHECKSUM = 32
#: Endings of the files that code depends on.
SOURCES = (".py", ".c", ".h", ".cu", ".cuh")
#: Bytes of all files together, checked by the first kernel that a process adds.
LIMIT = 512 * 2**20
#: Names of our files and of their folders: nothing else is ever deleted.
_FOLDER = re.compile(r"[0-9a-f]{2}")
_FILE = re.compile(r"[0-9a-f]{40}\.o|tmp\w+\.part")
_said: set[str] = set()


class DistrustWarning(UserWarning):
    """The cache of kernels is not used, because others could have written to it."""


def cache_folder() -> Path | None:
    """Return the folder of the cache, or None where it is turned off."""
    if os.environ.get("ARCHIMEDES_CACHE", "").lower() in ("0", "off", "false", "no"):
        return None
    own = os.environ.get("ARCHIMEDES_CACHE_DIR")
    if own:
        return Path(own).expanduser()
    folder = private_folders.user_cache_folder()
    return folder and folder / "archimedes"


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
                if entry.name.endswith(SOURCES):
                    status = entry.stat()
                    yield entry.path[len(folder) :], status.st_size, status.st_mtime_ns
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
    if (data := _read_trusted(path)) is None:
        return None
    with suppress(OSError):  # a folder for reading only keeps its times
        os.utime(path)
    start = len(MAGIC) + CHECKSUM
    head, code = data[:start], data[start:]
    return code if head == MAGIC + _checksum(key, code) else None


def _checksum(key: str, code: bytes) -> bytes:
    """Return a checksum of code and its key: code stored under another key is not valid."""
    return blake2b(key.encode() + b"\n" + code, digest_size=CHECKSUM).digest()


def _read_trusted(path: Path) -> bytes | None:
    """Return the content of a file if only this user or root can have written it."""
    try:
        handle = open_for_reading(path)
    except OSError:
        return None
    try:
        status = os.fstat(handle)
        reason = _distrust_once(path.parent)
        if reason or (reason := private_folders.explain_distrust_of_file(path, status)):
            _warn_once(reason)
            return None
        if status.st_size > LIMIT:
            return None
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read()
    except OSError:
        return None
    finally:
        os.close(handle)


@lru_cache(maxsize=1024)
def _distrust_once(folder: Path) -> str | None:
    return private_folders.explain_distrust(folder)


def _warn_once(reason: str) -> None:
    """Warn that the cache is not used, once for each reason."""
    if reason not in _said:
        _said.add(reason)
        warnings.warn(
            f"the cache of kernels is not used: {reason}, so its code may be someone else's. Make "
            "it your own (chown, chmod go-w; on Windows the Security tab of its properties), name "
            "another folder in ARCHIMEDES_CACHE_DIR, or turn the cache off with ARCHIMEDES_CACHE=0",
            DistrustWarning,
            stacklevel=2,
        )


def write(key: str, code: bytes) -> bool:
    """Store object code; return whether that worked."""
    folder = cache_folder()
    if folder is None:
        return False
    path = _path(folder, key)
    # As ``tempfile`` does, whose import takes as long as all of this ten times over.
    temporary = path.parent / f"tmp{os.urandom(8).hex()}.part"
    try:
        private_folders.make_private_folder(path.parent)
        if reason := _distrust_once(path.parent):
            _warn_once(reason)
            return False
        with open_new(temporary) as file:
            file.write(MAGIC + _checksum(key, code) + code)
        rename(temporary, path)
        _trim_once(folder)
    except OSError:
        # Read-only or full: the next process compiles again.
        with suppress(OSError):
            temporary.unlink()
        return False
    return True


@lru_cache(maxsize=8)
def _trim_once(folder: Path) -> None:
    """Delete the files used longest ago, until the others fit into the limit."""
    files = []
    for inner in [p for p in folder.iterdir() if _FOLDER.fullmatch(p.name) and not p.is_symlink()]:
        for path in [p for p in inner.glob("*") if _FILE.fullmatch(p.name)]:
            with suppress(OSError):  # other processes may be trimming too
                status = path.lstat()
                files.append((status.st_mtime, status.st_size, path))
    total = 0
    for _, size, path in sorted(files, reverse=True):
        total += size
        if total > LIMIT:
            with suppress(OSError):  # gone already, or being read on Windows
                path.unlink()
