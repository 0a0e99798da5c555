"""What the measurements of robots share: calls timed in turn, and the conditions they were in."""

from __future__ import annotations

import os
import platform
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.report import processor

__all__ = ["PROCESSES", "alone", "conditions", "least"]

PROCESSES = int(os.environ.get("MULTIBODY_PROCESSES", "3"))


def alone() -> None:
    """Let what follows run in one thread, and compile all it needs."""
    os.environ["ARCHIMEDES_THREADS"] = "1"
    os.environ["ARCHIMEDES_CACHE_DIR"] = tempfile.mkdtemp()
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")


def least(calls: dict[str, Callable[[], Any]], rounds: int = 12) -> dict[str, float]:
    """Return the least processor time of each call, made in turn, three times each."""
    found = dict.fromkeys(calls, np.inf)
    for k in range(rounds):
        for name, call in calls.items():
            for _ in range(3):
                begin = time.process_time()
                call()
                spent = time.process_time() - begin
                if k:
                    found[name] = min(found[name], spent)
    return found


def conditions() -> str:
    """Return the machine and how busy it is, as a sentence."""
    load = f"{os.getloadavg()[0]:.0f}" if hasattr(os, "getloadavg") else "unknown"
    return (
        f"{processor()}, {os.cpu_count()} cores, Python {platform.python_version()}; load {load} "
        f"when it began; medians of {PROCESSES} processes."
    )
