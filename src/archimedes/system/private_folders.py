"""Folders for one user: where the cache is by default, and who else could write to a folder.

As ``ssh`` does with its keys: a file, its folder and all folders above must belong to this user or
to the administrator, and be writable for no one else. Linux and macOS say so by owner and mode; a
folder with the sticky bit is good enough above, because others cannot rename what is not theirs
there. Windows says so by lists of access rights (``access_rights.py``).
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = [
    "explain_distrust",
    "explain_distrust_of_file",
    "make_private_folder",
    "user_cache_folder",
]

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def user_cache_folder(
    platform: str = sys.platform, environment: Mapping[str, str] = os.environ
) -> Path | None:
    """Return the folder where this user's programs keep what they can make again.

    ``%LOCALAPPDATA%`` on Windows, ``~/Library/Caches`` on macOS, elsewhere ``$XDG_CACHE_HOME`` or
    ``~/.cache``; None for a user without a home.
    """
    named = {"win32": "LOCALAPPDATA", "darwin": ""}.get(platform, "XDG_CACHE_HOME")
    if named and environment.get(named):
        return Path(environment[named])
    usual = {"win32": "AppData/Local", "darwin": "Library/Caches"}.get(platform, ".cache")
    try:
        return Path.home() / usual
    except RuntimeError:
        return None


def explain_distrust(folder: Path) -> str | None:
    """Return why files in a folder are not to be trusted, or None if they are."""
    try:
        real = folder.resolve(strict=True)
        problems = (_problem(p, p.stat(), p is not real) for p in [real, *real.parents])
        return next((x for x in problems if x is not None), None)
    except (OSError, RuntimeError) as error:  # RuntimeError: links that go in circles
        return f"{folder} cannot be looked at: {error}"


def explain_distrust_of_file(path: Path, status: os.stat_result) -> str | None:
    """Return why an open file, in a trusted folder, is not to be trusted."""
    if not stat.S_ISREG(status.st_mode):
        return f"{path} is no plain file"
    return _problem(path, status)


def _problem(path: Path, status: os.stat_result, above: bool = False) -> str | None:
    if sys.platform == "win32":
        from archimedes.system.access_rights import find_other_writer, read_grants, this_user

        other = find_other_writer(read_grants(path), this_user(), above)
        return other and f"{other} may write to {path}"
    if status.st_uid not in (0, os.geteuid()):
        return f"{path} belongs to another user (uid {status.st_uid})"
    if status.st_mode & _OTHERS and not (above and status.st_mode & stat.S_ISVTX):
        return f"others may write to {path} (mode {stat.S_IMODE(status.st_mode):o})"
    return None


def make_private_folder(folder: Path) -> None:
    """Make a folder and those above it that are missing, for this user only."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)
