"""What a recording that one thread holds open costs the other threads: nothing, if all is well.

Ordinary NumPy is timed in one thread, in turns: while another holds a recording open, and while it
does not. The other thread waits meanwhile, so that it takes no time of its own.
"""

from __future__ import annotations

import threading
import timeit
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks.report import Table, in_processes, medians

__all__ = ["measure", "tables"]

PROCESSES = 3
ROUNDS, CALLS = 150, 300
STATEMENTS = {
    "indexing `a[1]`": "a[1]",
    "`np.zeros(3)`": "np.zeros(3)",
    "`np.array([1.0, 2.0])`": "np.array([1.0, 2.0])",
    "`np.sin(a)`": "np.sin(a)",
    "`np.dot(a, a)`": "np.dot(a, a)",
    "`np.sum(a)`": "np.sum(a)",
    "`np.max([1.0, 2.0])`": "np.max([1.0, 2.0])",
    "`np.r_[a, 1.0]`": "np.r_[a, 1.0]",
    "`rng.normal()`": "rng.normal()",
    "`random.random()`": "random.random()",
}


@contextmanager
def _open_recording() -> Iterator[None]:
    """Have another thread hold a recording open."""
    import archimedes as arc

    begun, end = threading.Event(), threading.Event()

    def model(x):
        begun.set()
        end.wait()
        return x + np.zeros(1)

    thread = threading.Thread(target=lambda: arc.compile(model, freeze=True)(1.0))
    thread.start()
    begun.wait()
    try:
        yield
    finally:
        end.set()
        thread.join()


def measure() -> dict[str, float]:
    """Return the quickest of many rounds: seconds a call, alone and beside a recording."""
    names = "import numpy as np, random; a = np.ones(3); rng = np.random.default_rng(1)"
    timers = {what: timeit.Timer(text, names) for what, text in STATEMENTS.items()}
    best = {f"{what} {state}": np.inf for what in STATEMENTS for state in ("alone", "beside")}

    def take(state: str) -> None:
        for what, timer in timers.items():
            key = f"{what} {state}"
            best[key] = min(best[key], timer.timeit(CALLS) / CALLS)

    for _ in range(ROUNDS):
        take("alone")
        with _open_recording():
            take("beside")
    return best


def tables() -> list[Table]:
    """Return the table of both times and their ratio."""
    figures = medians(in_processes("benchmarks.two_threads", "measure", PROCESSES))
    rows = []
    for what in STATEMENTS:
        alone, beside = figures[f"{what} alone"], figures[f"{what} beside"]
        rows.append([what, f"{alone * 1e9:.0f}", f"{beside * 1e9:.0f}", f"{beside / alone:.2f}"])
    note = (
        f"Nanoseconds a call in one thread, alone and while another holds a recording open; in "
        f"turns, the best of {ROUNDS} rounds of {CALLS} calls, medians of {PROCESSES} processes."
    )
    columns = ["call", "alone, ns", "beside a recording, ns", "ratio"]
    return [Table("A recording in another thread", columns, rows, note)]
