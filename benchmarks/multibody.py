"""Robots against Pinocchio: one core, float64, call overhead removed.

Pinocchio is looped inside one call of its own (its parallel entry points with one thread) where it
has one; otherwise what a call on an empty model costs is taken off. Ours: a batch of 1,000 states,
whose results stay in cache, in one call. All are processor times of one thread. "pin / call"
compares calls from Python.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.report import Table, in_processes, medians

__all__ = ["measure", "tables"]

PROCESSES = int(os.environ.get("MULTIBODY_PROCESSES", "3"))
ROBOTS = os.environ.get("MULTIBODY_ROBOTS", "xarm7,go1,g1").split(",")
COUNT = 1000
FUNCTIONS = ("rnea", "crba", "aba", "rnea_derivatives", "aba_derivatives")
THEIRS = {
    "rnea": "rnea",
    "crba": "crba",
    "aba": "aba",
    "rnea_derivatives": "computeRNEADerivatives",
    "aba_derivatives": "computeABADerivatives",
}


def _best(call: Callable[[], Any], repeats: int = 7) -> float:
    """Return the least processor time, in which waiting for others is not counted."""
    call()
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        call()
        times.append(time.process_time() - begin)
    return min(times)


def measure() -> dict[str, float]:
    """Times in s, of each robot and function."""
    # Both on one core, and what is compiled is compiled here.
    os.environ["ARCHIMEDES_THREADS"] = "1"
    found: dict[str, float] = {}
    for robot in ROBOTS:
        for name in FUNCTIONS:
            found |= {f"{robot} {name} {k}": x for k, x in _one(robot, name).items()}
    return found


def _one(robot: str, name: str) -> dict[str, float]:
    from tests.multibody.robots import Peer

    import archimedes as arc
    from archimedes import multibody as mb

    peer = Peer(robot)
    states = peer.states(COUNT)
    used = states[:1] if name == "crba" else states
    # Plain arguments and a model of the function's own: the quickest kind of call.
    model, function = peer.model, getattr(mb, name)
    three = lambda q, v, a: function(model, q, v, a)
    begin = time.process_time()
    compiled = arc.compile(
        (lambda q: function(model, q)) if name == "crba" else three, backend="llvm"
    )
    single = [x[0] for x in used]
    compiled(*single)
    first = time.process_time() - begin
    batch = arc.vmap(compiled)
    together = _best(lambda: batch(*used)) / COUNT
    alone = _best(lambda: [compiled(*single) for _ in range(COUNT)]) / COUNT
    theirs, python = _pinocchio(peer, name, states)
    return {"batch": together, "call": alone, "first": first, "pin": theirs, "pin python": python}


def _pinocchio(peer: Any, name: str, states: Any) -> tuple[float, float]:
    """Return the time of one evaluation without and with the overhead of Python."""
    pin, model, data = peer.pin, peer.peer, peer.data
    xs = [peer.q_of(q) for q in states[0]]
    rows = [(x, v, a) for x, v, a in zip(xs, *states[1:], strict=True)]
    call = getattr(pin, THEIRS[name])
    count = 1 if name == "crba" else 3
    python = _best(lambda: [call(model, data, *row[:count]) for row in rows]) / COUNT
    inside = getattr(pin, f"{name}InParallel", None)
    if inside is None:
        # What a call costs that does nothing: placements of no joint.
        empty = pin.Model()
        nothing, none = empty.createData(), np.zeros(0)
        args = (none,) * count
        overhead = _best(lambda: [call(empty, nothing, *args) for _ in rows]) / COUNT
        return python - overhead, python
    pool = pin.ModelPool(model, 1)
    columns = [np.asfortranarray(np.stack(x, axis=1)) for x in zip(*rows, strict=True)]
    out = np.asfortranarray(np.zeros((model.nv, COUNT)))
    return _best(lambda: inside(1, pool, *columns, out)) / COUNT, python


def tables() -> list[Table]:
    """Ratios to Pinocchio."""
    figures = medians(in_processes("benchmarks.multibody", "measure", PROCESSES))
    rows = []
    for robot in ROBOTS:
        for name in FUNCTIONS:
            x = {k: figures[f"{robot} {name} {k}"] for k in ("batch", "call", "first", "pin")}
            python = figures[f"{robot} {name} pin python"]
            rows.append(
                (
                    robot,
                    name,
                    f"{x['batch'] * 1e9:.0f} ns",
                    f"{x['pin'] / x['batch']:.1f}",
                    f"{x['call'] * 1e6:.2f} us",
                    f"{python / x['call']:.1f}",
                    f"{x['pin'] * 1e6:.2f} us",
                    f"{x['first']:.2f} s",
                )
            )
    columns = ("robot", "function", "batch", "pin / batch", "call", "pin / call", "pin", "first")
    return [Table("Robots against Pinocchio", columns, rows, note=(__doc__ or "").strip())]
