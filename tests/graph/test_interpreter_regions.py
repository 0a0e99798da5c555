"""What regions mean, beyond the catalogue (``tests/backends``): solutions, callbacks, errors."""

from __future__ import annotations

import numpy as np
import pytest

from archimedes.graph import DTYPES, F32, F64, I64
from archimedes.graph.program import Graph
from archimedes.graph.regions import Host, Scan, Solve, Switch

from .building import graph_of, op, run, same

RNG = np.random.default_rng(3)


def test_a_loop_asks_once_what_its_body_needs(monkeypatch):
    asked = []
    live = Graph.live
    monkeypatch.setattr(Graph, "live", lambda g, *given: asked.append(g) or live(g, *given))
    body = graph_of([F64, F64], lambda g, x, y: op(g, "add", x, y))
    g = graph_of([F64, F64], lambda g, x, y: g.region(Scan([x, y], body, 40, 1, 0)).tolist())
    asked.clear()
    assert run(g, np.float64(1.0), np.float64(0.5)) == [21.0]
    assert len(asked) == 2


def test_switch_runs_only_the_branch_taken():
    seen = []

    def note(values):
        seen.append("noted")
        return values

    quiet = graph_of([F64], lambda g, x: x)
    loud = graph_of([F64], lambda g, x: g.region(Host([x], note, (F64,), "note")).tolist())
    g = graph_of([I64, F64], lambda g, i, x: g.region(Switch([i, x], (quiet, loud))).tolist())
    run(g, np.int64(0), np.float64(1.0))
    assert seen == []
    run(g, np.array([0, 1, 0, 1]), np.arange(4.0))
    assert seen == ["noted"] * 2


@pytest.mark.parametrize("dtype", [F64, F32])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 1), (4, 3), (7, 2)])
def test_solve(n, m, dtype):
    count = n * (n + m)
    g = graph_of([dtype] * count, lambda g, *ids: g.region(Solve(ids, n, m, dtype)).tolist())
    values = RNG.normal(size=(count, 5)).astype(DTYPES[dtype])
    for k in range(5):
        a, b = values[: n * n, k].reshape(n, n), values[n * n :, k].reshape(n, m)
        x = np.array(run(g, *values[:, k])).reshape(n, m)
        assert x.dtype == DTYPES[dtype]
        want = np.linalg.solve(a.astype(float), b.astype(float))
        scale = np.linalg.cond(a.astype(float)) * np.finfo(DTYPES[dtype]).eps * 10
        assert np.max(np.abs(x - want)) <= scale * np.max(np.abs(want))
    batch = np.array(run(g, *values))
    each = np.array([run(g, *values[:, k]) for k in range(5)]).T
    assert same(batch, each)


def test_solve_pivots_and_a_singular_matrix_gives_no_number():
    g = graph_of([F64] * 6, lambda g, *ids: g.region(Solve(ids, 2, 1, F64)).tolist())
    got = run(g, *map(np.float64, (0.0, 2.0, 3.0, 0.0, 4.0, 9.0)))
    assert got == [3.0, 2.0]
    assert not np.all(np.isfinite(run(g, *map(np.float64, (1.0, 2.0, 2.0, 4.0, 1.0, 1.0)))))


def test_host_sees_one_instance_at_a_time():
    seen = []

    def host(values):
        seen.append(values)
        x, n = values
        return [x + n, n * 2]

    g = graph_of([F64, I64], lambda g, x, n: g.region(Host([x, n], host, (F64, I64), "h")).tolist())
    x, n = RNG.normal(size=3), np.arange(3)
    total, double = run(g, x, n)
    assert same(total, x + n) and same(double, n * 2)
    assert all(np.ndim(v) == 0 for row in seen for v in row)


def test_floating_errors_are_silent_inside_and_the_setting_is_restored():
    g = graph_of([F64], lambda g, x: op(g, "div", g.const(1.0), x))
    with np.errstate(all="raise"):
        assert run(g, np.float64(0.0)) == [np.inf]
        with pytest.raises(FloatingPointError):
            np.float64(1.0) / np.float64(0.0)
