"""The processors: how many threads to work with, and what the machine is called.

There is one answer for kernels, batches of solves and campaigns: what the process may use. That is
the number of CPUs it is bound to (``taskset`` or a batch system on Linux, ``start /affinity`` on
Windows; macOS binds no process) or, on Linux, what its control group is granted (a container),
whichever is less. ``ARCHIMEDES_THREADS=4`` decides otherwise.
"""

from __future__ import annotations

import ctypes
import functools
import operator
import os
import platform
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

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
    return _usable()


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


def _usable() -> int:
    """Return the number of CPUs that this process may use."""
    if sys.platform == "linux":
        bound = len(os.sched_getaffinity(0)) or 1
        quota = _cgroup_quota()
        return bound if quota is None else max(1, min(bound, quota))
    if sys.platform == "win32":
        own, there = ctypes.c_size_t(), ctypes.c_size_t()
        this_process = ctypes.c_void_p(-1)  # what GetCurrentProcess returns
        affinity = ctypes.WinDLL("kernel32").GetProcessAffinityMask
        affinity(this_process, ctypes.byref(own), ctypes.byref(there))
        # 0: the machine has more than 64 CPUs, and this process may use all of them.
        return own.value.bit_count() or os.cpu_count() or 1
    return os.cpu_count() or 1


def cpu_name() -> str:
    """Return the name of the processor, as its maker writes it, or that of its architecture."""
    return _maker_name() or platform.processor() or platform.machine()


def _maker_name() -> str:
    if sys.platform == "win32":
        import winreg

        path = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"
        with suppress(OSError), winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, path) as key:
            return str(winreg.QueryValueEx(key, "ProcessorNameString")[0]).strip()
        return ""
    if sys.platform == "darwin":
        text, size = ctypes.create_string_buffer(256), ctypes.c_size_t(256)
        read = ctypes.CDLL(None).sysctlbyname
        failed = read(b"machdep.cpu.brand_string", text, ctypes.byref(size), None, 0)
        return "" if failed else text.value.decode(errors="replace")
    lines = _text(Path("/proc/cpuinfo")).splitlines()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "")  # those of ARM have no name there


def architecture() -> str:
    """Return what the system calls the processor's architecture: "x86_64", "arm64", "AMD64"."""
    return platform.machine()


def operating_system() -> str:
    """Return name and version of the operating system in one line."""
    return platform.platform()


@functools.lru_cache(maxsize=1)
def _cgroup_quota() -> int | None:
    """Return the CPUs that the control groups of this process grant it, rounded up."""
    quotas = [quota for group in _own_groups() if (quota := _quota(group)) is not None]
    return min(quotas, default=None)


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
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
