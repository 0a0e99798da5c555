"""How many threads to work with: one answer for kernels, batches of solves and campaigns.

What the process may use: the CPUs it is bound to (``taskset``, a batch system) or what its control
group is granted (a container), whichever is less. ``ARCHIMEDES_THREADS=4`` decides otherwise.
"""

from __future__ import annotations

import functools
import operator
import os
from pathlib import Path
from typing import Any

__all__ = ["check_threads", "cpu_count"]

VARIABLE = "ARCHIMEDES_THREADS"
_GROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")


def cpu_count() -> int:
    """Return how many threads to use, at least 1.

    >>> cpu_count() >= 1
    True
    """
    wanted = os.environ.get(VARIABLE)
    if wanted:
        return _number(wanted)
    if hasattr(os, "sched_getaffinity"):
        bound = len(os.sched_getaffinity(0)) or 1
    else:
        bound = os.cpu_count() or 1
    granted = _granted()
    return bound if granted is None else max(1, min(bound, granted))


def check_threads(caller: str, threads: Any) -> int | None:
    """Return a number of threads that a user gave (None: as many as there are CPUs), checked.

    >>> check_threads("vmap", 2)
    2
    """
    if threads is None:
        return None
    try:
        number = operator.index(threads)
    except TypeError:
        raise TypeError(f"{caller}: threads={threads!r} must be a whole number or None") from None
    if number < 1 or isinstance(threads, bool):
        raise ValueError(f"{caller}: threads={threads} must be at least 1")
    return number


def _number(text: str) -> int:
    if text.strip().isdecimal() and int(text) >= 1:
        return int(text)
    raise ValueError(f"{VARIABLE}={text!r} must be a whole number of threads, at least 1")


@functools.lru_cache(maxsize=1)
def _granted() -> int | None:
    """Return the CPUs that the control groups of this process grant it, rounded up."""
    found = [quota for group in _own_groups() if (quota := _quota(group)) is not None]
    return min(found, default=None)


def _own_groups() -> list[Path]:
    """Return the folders of this process's group and of those above it."""
    groups = {_GROUPS, _GROUPS / "cpu"}
    for line in _text(_OWN).splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if not controllers or "cpu" in controllers.split(","):
            base = _GROUPS / "cpu" if controllers else _GROUPS
            own = base / path.strip("/")
            groups.update(p for p in (own, *own.parents) if p.is_relative_to(base))
    return sorted(groups)


def _quota(group: Path) -> int | None:
    """Return the quota of one group: ``cpu.max`` of version 2, or the two files of version 1."""
    words = _text(group / "cpu.max").split()
    if len(words) != 2:
        words = [*_text(group / "cpu.cfs_quota_us").split()]
        words += _text(group / "cpu.cfs_period_us").split()
    if len(words) != 2 or not all(word.isdecimal() for word in words) or int(words[1]) == 0:
        return None  # "max", -1, or no such files
    return max(1, -(-int(words[0]) // int(words[1])))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return ""
