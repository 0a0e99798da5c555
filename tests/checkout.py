"""What git sees in the checkout: a run of the tests leaves nothing behind."""

from __future__ import annotations

import subprocess
from pathlib import Path

__all__ = ["ROOT", "untracked_files"]

ROOT = Path(__file__).resolve().parents[1]


def untracked_files(root: Path = ROOT) -> frozenset[str]:
    """Return the files that are neither tracked nor ignored; none where there is no checkout."""
    command = ["git", "ls-files", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return frozenset()
    return frozenset(listed.stdout.splitlines())
