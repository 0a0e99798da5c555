"""Programs that call back into Python, for the backends that can."""

from __future__ import annotations

import numpy as np

from archimedes.graph import B8, F32, F64, I64, Graph, Host, Scan, Switch
from archimedes.graph import While as Repeat

from .program import Program, emit, graph_of, program


def hosted(function) -> Graph:
    """A callback with arguments and results of every dtype."""
    g = Graph()
    x, k, b, s = g.input(F64), g.input(I64), g.input(B8), g.input(F32)
    region = Host([x, k, b, s], function, (F64, I64, B8, F32), "probe")
    y, m, c, t = g.region(region).tolist()
    g.outputs = [emit(g, "add", y, x), m, c, t]
    return g


def every_dtype() -> Program:
    def probe(values):
        x, k, b, s = values
        return [x * 2.0, k + 1, not b, s * s]

    columns = [np.arange(5.0), np.arange(5), np.arange(5) > 2, np.arange(5, dtype=np.float32)]

    def plain(x, k, b, s):
        return [x * 2.0 + x, k + 1, np.bool_(not b), s * s]

    return program("host_dtypes", hosted(probe), plain, columns)


def inside_regions() -> Program:
    """Callbacks in a branch, in the steps of a scan, in body and condition of a loop."""
    side = graph_of(
        [F64], lambda g, x: g.region(Host([x], lambda v: [v[0] + 1.0], (F64,), "up")).tolist()
    )
    below = graph_of(
        [F64], lambda g, x: g.region(Host([x], lambda v: [v[0] < 50.0], (B8,), "less")).tolist()
    )
    same = graph_of([F64], lambda g, x: x)
    g = Graph()
    k, x = g.input(I64), g.input(F64)
    (y,) = g.region(Switch([k, x], (same, side))).tolist()
    (z,) = g.region(Scan([y], side, 2, 1, 0)).tolist()
    (w,) = g.region(Repeat([z], below, side, 1, 30)).tolist()
    g.outputs = [z, w]

    def plain(k, x):
        z = x + (1.0 if k > 0 else 0.0) + 1.0 + 1.0
        w = z
        for _ in range(30):
            w = w + 1.0 if w < 50.0 else w
        return [z, w]

    return program("host_inside", g, plain, [np.array([0, 1, 0, 1]), np.array([1.0, 22.0, 48, 60])])


def callbacks() -> list[Program]:
    return [every_dtype(), inside_regions()]
