"""Whether code on disk may be run: only what nobody else could have put there.

As ``ssh`` does with its keys: a file, its folder and all folders above must belong to this user or
to root, and be writable for no one else. A folder with the sticky bit (``/tmp``) is good enough
above, because others cannot rename what is not theirs.
"""

from __future__ import annotations

import os
import stat
import warnings
from pathlib import Path

__all__ = ["DistrustWarning", "distrust", "distrust_file", "make_private", "say_once"]

_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_said: set[str] = set()


class DistrustWarning(UserWarning):
    """The cache of kernels is not used, because others could have written to it."""


def _problem(path: Path, found: os.stat_result, above: bool = False) -> str | None:
    if os.name != "posix":
        return None  # owner and mode say nothing there
    if found.st_uid not in (0, os.geteuid()):
        return f"{path} belongs to another user (uid {found.st_uid})"
    if found.st_mode & _OTHERS and not (above and found.st_mode & stat.S_ISVTX):
        return f"others may write to {path} (mode {stat.S_IMODE(found.st_mode):o})"
    return None


def distrust(folder: Path) -> str | None:
    """Return why files in a folder are not to be trusted, or None if they are."""
    try:
        real = folder.resolve(strict=True)
        places = [real, *real.parents]
        problems = (_problem(p, p.stat(), p is not real) for p in places)
        return next((x for x in problems if x is not None), None)
    except (OSError, RuntimeError) as error:  # RuntimeError: links that go in circles
        return f"{folder} cannot be looked at: {error}"


def distrust_file(path: Path, found: os.stat_result) -> str | None:
    """Return why an open file, in a trusted folder, is not to be trusted."""
    if not stat.S_ISREG(found.st_mode):
        return f"{path} is no plain file"
    return _problem(path, found)


def make_private(folder: Path) -> None:
    """Make a folder and those above it that are missing, for this user only."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)


def say_once(reason: str) -> None:
    """Warn that the cache is not used, once for each reason."""
    if reason not in _said:
        _said.add(reason)
        warnings.warn(
            f"the cache of kernels is not used: {reason}, so that its code may not be yours. Make "
            "it your own (chown, chmod go-w), name another folder in ARCHIMEDES_CACHE_DIR, or turn "
            "the cache off with ARCHIMEDES_CACHE=0",
            DistrustWarning,
            stacklevel=2,
        )
