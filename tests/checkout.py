"""What git sees in the checkout: a run of the tests leaves nothing behind."""

from __future__ import annotations

import subprocess
from pathlib import Path

__all__ = ["ROOT", "tracked_files", "untracked_files"]

ROOT = Path(__file__).resolve().parents[1]


def untracked_files(root: Path = ROOT) -> frozenset[str]:
    """Return the files that are neither tracked nor ignored; none where there is no checkout."""
    try:
        return frozenset(_list(root, "--others", "--exclude-standard"))
    except (OSError, subprocess.CalledProcessError):
        return frozenset()


def tracked_files(root: Path = ROOT) -> list[str]:
    """Return the files that git keeps, as paths from the root."""
    return _list(root, "--cached")


def _list(root: Path, *options: str) -> list[str]:
    command = ["git", "ls-files", *options]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return listed.stdout.splitlines()
