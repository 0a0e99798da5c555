"""Robots against Pinocchio: one core, float64, call overhead removed.

Pinocchio is looped inside one call of its own (its parallel entry points with one thread) where it
has one; otherwise what a call on an empty model costs is taken off. For the mass matrix, which has
none, that is between two other ways to ask: a loop in C++ that calls the library of the wheel takes
1.6 us for seven hinges on the machine of this table (inverse and forward dynamics 1.1 and 3.0), one
with the headers compiled into it by gcc -O3 0.57 us (1.05 and 2.3), with -march=native 0.53 (1.06
and 2.4). Ours: a batch of 1,000 states (100 where the results of 1,000 would not stay in a cache)
in one call with results in arrays that are there, as Pinocchio's are; "alone" is one evaluation, a
call from Python less one of a function of the same arguments and results that does nothing else.
"pin / call" compares calls from Python. Times are processor times of one thread, theirs and ours
in turn, the least of several rounds; "first" is load, record and compile with an empty cache.
`python -m benchmarks --write multibody` measures this table and that of `multibody_peers.py`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.multibody_peers import peer_tables
from benchmarks.multibody_timing import PROCESSES, alone, conditions, least
from benchmarks.report import Table, in_processes, medians

__all__ = ["measure", "tables"]

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


def measure() -> dict[str, float]:
    """Times in s, of each robot and function."""
    alone()
    found: dict[str, float] = {}
    for robot in ROBOTS:
        for name in FUNCTIONS:
            found |= {f"{robot} {name} {k}": x for k, x in _one(robot, name).items()}
    return found


def _one(robot: str, name: str) -> dict[str, float]:
    from tests.multibody.robots import FLOATING, Peer, path_of

    import archimedes as arc
    from archimedes import multibody as mb

    begin = time.process_time()
    model = mb.load(path_of(robot), "floating" if robot in FLOATING else "fixed")
    loading = time.process_time() - begin
    peer = Peer(robot)
    function = getattr(mb, name)
    # A batch whose results stay in a cache.
    outputs = model.nv ** (1 if name in ("rnea", "aba") else 2) * (3 if "_" in name else 1)
    count = COUNT if outputs * COUNT < 1_000_000 else COUNT // 10
    states = peer.states(count)
    used = states[:1] if name == "crba" else states
    # Plain arguments and a model of the function's own: the quickest kind of call.
    three = lambda q, v, a: function(model, q, v, a)
    begin = time.process_time()
    compiled = arc.compile(
        (lambda q: function(model, q)) if name == "crba" else three, backend="llvm"
    )
    single = [x[0] for x in used]
    shapes = [np.zeros(np.shape(x)) for x in _parts(compiled(*single))]
    first = loading + time.process_time() - begin
    batch, idle = arc.vmap(compiled, threads=1), _idle(shapes, len(single))
    made = batch(*used)
    rows = list(zip(*used, strict=True))
    calls: dict[str, Callable[[], Any]] = {
        "batch": lambda: batch(*used, out=made),
        "call": lambda: [compiled(*row) for row in rows],
        "idle": lambda: [idle(*row) for row in rows],
    }
    calls |= _pinocchio(peer, name, states)
    times = {k: x / count for k, x in least(calls).items()}
    return {
        "batch": times["batch"],
        "call": times["call"],
        "alone": times["call"] - times["idle"],
        "first": first,
        "pin": times["pin inside"] if "pin inside" in times else times["pin"] - times["pin idle"],
        "pin python": times["pin"],
    }


def _parts(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def _idle(shapes: list[Any], arguments: int) -> Any:
    """Return a recorded function of as many arrays, with results of these shapes."""
    import archimedes as arc

    results = lambda q: tuple(x + q[0] for x in shapes)
    whole = lambda q: results(q) if len(shapes) > 1 else results(q)[0]
    made = whole if arguments == 1 else lambda q, v, a: whole(q)
    return arc.compile(made, backend="llvm")


def _pinocchio(peer: Any, name: str, states: Any) -> dict[str, Callable[[], Any]]:
    """Return calls of as many evaluations, from Python, and inside where there is such an entry."""
    pin, model, data = peer.pin, peer.peer, peer.data
    xs = [peer.q_of(q) for q in states[0]]
    count = 1 if name == "crba" else 3
    rows = list(zip(*[xs, *states[1:]][:count], strict=True))
    call = getattr(pin, THEIRS[name])
    calls = {"pin": lambda: [call(model, data, *row) for row in rows]}
    inside = getattr(pin, f"{name}InParallel", None)
    if inside is None:
        empty = pin.Model()
        nothing, none = empty.createData(), (np.zeros(0),) * count
        return calls | {"pin idle": lambda: [call(empty, nothing, *none) for _ in rows]}
    pool = pin.ModelPool(model, 1)
    columns = [np.asfortranarray(np.stack(x, axis=1)) for x in zip(*rows, strict=True)]
    out = np.asfortranarray(np.zeros((model.nv, len(rows))))
    return calls | {"pin inside": lambda: inside(1, pool, *columns, out)}


def tables() -> list[Table]:
    """Ratios to Pinocchio, and to others."""
    where = conditions()
    figures = medians(in_processes("benchmarks.multibody", "measure", PROCESSES))
    rows = []
    for robot in ROBOTS:
        for name in FUNCTIONS:
            kinds = ("batch", "alone", "call", "first", "pin", "pin python")
            x = {k: figures[f"{robot} {name} {k}"] for k in kinds}
            rows.append(
                (
                    robot,
                    name,
                    f"{x['pin'] * 1e6:.2f} us",
                    f"{x['batch'] * 1e9:.0f} ns",
                    f"{x['pin'] / x['batch']:.1f}",
                    f"{x['alone'] * 1e6:.2f} us",
                    f"{x['pin'] / x['alone']:.1f}",
                    f"{x['call'] * 1e6:.2f} us",
                    f"{x['pin python'] / x['call']:.1f}",
                    f"{x['first']:.2f} s",
                )
            )
    columns = (
        "robot", "function", "pin", "batch", "pin / batch", "alone", "pin / alone", "call",
        "pin / call", "first",
    )  # fmt: skip
    note = f"{(__doc__ or '').strip()}\n\n{where}"
    return [Table("Robots against Pinocchio", columns, rows, note), *peer_tables()]
