"""Object code on disk, so that a second process starts without compiling.

A file a kernel, named by a hash of everything the code depends on. Files are written beside and
renamed, so that readers never see half a file; each begins with a checksum, so that a damaged one
is seen and made anew. A folder that cannot be written to is no error: the cache is only a help.
Beyond a limit of all files, those used longest ago are deleted.

``ARCHIMEDES_CACHE_DIR`` moves the folder, ``ARCHIMEDES_CACHE=0`` turns the cache off.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import llvmlite  # type: ignore[import-untyped]

__all__ = ["cache_folder", "cache_key", "compiler_version", "read", "write"]

MAGIC = b"archimedes kernel 1\n"
CHECKSUM = 32
#: Bytes of all files together, checked by the first kernel that a process adds.
LIMIT = 512 * 2**20


def cache_folder() -> Path | None:
    """Return the folder of the cache, or None where it is turned off."""
    if os.environ.get("ARCHIMEDES_CACHE", "").lower() in ("0", "off", "false", "no"):
        return None
    own = os.environ.get("ARCHIMEDES_CACHE_DIR")
    if own:
        return Path(own)
    home = Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", home)) / "archimedes" / "cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "archimedes"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "archimedes"


def cache_key(*parts: object) -> str:
    """Return a name for what the parts describe (by their ``repr``)."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=20).hexdigest()


@lru_cache(maxsize=1)
def compiler_version() -> str:
    """Identify the code that turns graphs into kernels: LLVM's version and our sources."""
    own = Path(__file__).parent
    graph = own.parents[1] / "graph"
    sources = sorted([*own.glob("*.py"), *own.parent.glob("*.py"), *graph.rglob("*.py")])
    content = b"".join(path.read_bytes() for path in sources)
    return f"{llvmlite.__version__} {hashlib.blake2b(content, digest_size=16).hexdigest()}"


def _path(folder: Path, key: str) -> Path:
    return folder / key[:2] / f"{key}.o"


def read(key: str) -> bytes | None:
    """Return the object code stored under a key, or None if there is none or it is damaged."""
    folder = cache_folder()
    if folder is None:
        return None
    path = _path(folder, key)
    try:
        data = path.read_bytes()
    except OSError:
        return None
    with suppress(OSError):  # a folder for reading only keeps its times
        os.utime(path)
    start = len(MAGIC) + CHECKSUM
    code = data[start:]
    sound = data.startswith(MAGIC) and hashlib.sha256(code).digest() == data[len(MAGIC) : start]
    return code if sound else None


def write(key: str, code: bytes) -> bool:
    """Store object code; return whether that worked."""
    folder = cache_folder()
    if folder is None:
        return False
    path = _path(folder, key)
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
        with os.fdopen(handle, "wb") as file:
            file.write(MAGIC + hashlib.sha256(code).digest() + code)
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
    for path in folder.glob("*/*"):
        with suppress(FileNotFoundError):  # other processes may be trimming too
            found = path.stat()
            files.append((found.st_mtime, found.st_size, path))
    total = 0
    for _, size, path in sorted(files, reverse=True):
        total += size
        if total > LIMIT:
            path.unlink(missing_ok=True)
