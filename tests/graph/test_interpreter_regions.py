"""Every region, alone, nested and over a batch, against loops written in plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from archimedes.graph import B8, DTYPES, F32, F64, I64
from archimedes.graph.regions import Call, Host, Map, Scan, Solve, Switch, While

from .building import graph_of, op, run, same

RNG = np.random.default_rng(3)


def check(g, scalar, columns):
    """One at a time against the plain function; the whole batch at once against those."""
    each = [run(g, *row) for row in zip(*columns)]
    want = [scalar(*row) for row in zip(*columns)]
    for got, w in zip(each, want):
        for a, b in zip(got, w):
            assert same(a, b), (got, w)
    batch = run(g, *columns)
    for k, whole in enumerate(batch):
        expected = np.array([w[k] for w in want])
        assert same(np.broadcast_to(whole, expected.shape), expected)
    # values that all instances share stay scalars
    shared = run(g, *(c if k == 0 else c[0] for k, c in enumerate(columns)))
    want = [scalar(row, *(c[0] for c in columns[1:])) for row in columns[0]]
    for k, whole in enumerate(shared):
        expected = np.array([w[k] for w in want])
        assert same(np.broadcast_to(whole, expected.shape), expected)


def _affine(g, x, y):
    return [op(g, "add", op(g, "mul", x, y), g.const(1.0)), op(g, "sub", x, y)]


BODY = graph_of([F64, F64], _affine)


def _body(x, y):
    return x * y + 1.0, x - y


def test_call():
    g = graph_of([F64, F64], lambda g, x, y: g.region(Call([x, y], BODY)).tolist())
    check(g, _body, RNG.normal(size=(2, 5)))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, 4])
def test_scan(length, reverse):
    # carry c, slice s, shared h -> carry c*s + h, out c - s
    body = graph_of(
        [F64, F64, F64],
        lambda g, c, s, h: [op(g, "add", op(g, "mul", c, s), h), op(g, "sub", c, s)],
    )
    g = graph_of(
        [F64] * (length + 2),
        lambda g, *ids: g.region(Scan([*ids[:-1], ids[-1]], body, length, 1, 1, reverse)).tolist(),
    )

    def plain(c, *rest):
        *slices, h = rest
        outs = [None] * length
        for k in reversed(range(length)) if reverse else range(length):
            outs[k] = c - slices[k]
            c = c * slices[k] + h
        return [c, *outs]

    check(g, plain, RNG.normal(size=(length + 2, 4)))


@pytest.mark.parametrize("limit", [0, 1, 3, 50])
def test_while(limit):
    body = graph_of(
        [F64, I64, F64],
        lambda g, x, n, f: [op(g, "mul", x, f), op(g, "add", n, g.const(1, I64))],
    )
    test = graph_of([F64, I64, F64], lambda g, x, n, f: op(g, "lt", x, g.const(100.0)))
    g = graph_of(
        [F64, F64],
        lambda g, x, f: g.region(While([x, g.const(0, I64), f], test, body, 2, limit)).tolist(),
    )

    def plain(x, f):
        n = np.int64(0)
        while x < 100.0 and n < limit:
            x, n = x * f, n + 1
        return x, np.int64(n)

    check(g, plain, np.array([[1.0, 200.0, 3.0, np.nan, 99.0], [2.0, 3.0, 1.5, 2.0, 7.0]]))


def test_switch_clamps_its_index():
    branches = tuple(
        graph_of([F64], lambda g, x, k=k: op(g, "add", x, g.const(10.0 * (k + 1))))
        for k in range(3)
    )
    g = graph_of([I64, F64], lambda g, i, x: g.region(Switch([i, x], branches)).tolist())

    def plain(i, x):
        return (x + 10.0 * (min(max(i, 0), 2) + 1),)

    check(g, plain, [np.array([-9, 0, 1, 2, 3, 2**62]), RNG.normal(size=6)])


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


@pytest.mark.parametrize("length", [1, 3])
def test_map(length):
    g = graph_of(
        [F64] * (length + 1), lambda g, *ids: g.region(Map(list(ids), BODY, length, 1)).tolist()
    )

    def plain(*values):
        *slices, h = values
        return [out for s in slices for out in _body(s, h)]

    check(g, plain, RNG.normal(size=(length + 1, 4)))


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
    check(g, lambda x, n: (x + n, n * 2), [RNG.normal(size=3), np.arange(3)])
    assert all(np.ndim(v) == 0 for row in seen for v in row)


def test_mixed_dtypes_pass_through_loops():
    body = graph_of(
        [F32, I64, B8],
        lambda g, x, n, b: [
            op(g, "select", b, op(g, "add", x, x), x),
            op(g, "add", n, g.const(1, I64)),
            op(g, "not", b),
        ],
    )
    g = graph_of([F32, I64, B8], lambda g, *ids: g.region(Scan(ids, body, 3, 3, 0)).tolist())

    def plain(x, n, b):
        for _ in range(3):
            x, n, b = (x + x if b else x), n + 1, ~b
        return x, n, b

    check(
        g,
        plain,
        [np.float32([0.1, 0.2, 3.0]), np.array([1, 2, 3]), np.array([True, False, True])],
    )


def test_nested_regions_over_a_batch():
    """A map of scans of switches of calls, with shared values at every level."""
    call = graph_of([F64, F64], lambda g, a, h: g.region(Call([a, h], BODY)).tolist()[:1])
    keep = graph_of([F64, F64], lambda g, a, h: op(g, "neg", a))

    def step(g, c, s, h):
        index = op(g, "i64", op(g, "lt", c, h))
        (out,) = g.region(Switch([index, c, s], (keep, call))).tolist()
        return [out, op(g, "add", out, h)]

    scan = graph_of([F64, F64, F64], step)
    row = graph_of(
        [F64, F64, F64],
        lambda g, a, b, h: g.region(Scan([h, a, b, h], scan, 2, 1, 1)).tolist(),
    )
    g = graph_of([F64] * 7, lambda g, *ids: g.region(Map(list(ids), row, 3, 2)).tolist())

    def plain(*values):
        *cells, h = values
        outs = []
        for k in range(3):
            c, ys = h, []
            for s in cells[2 * k : 2 * k + 2]:
                c = _body(c, s)[0] if c < h else -c
                ys.append(c + h)
            outs += [c, *ys]
        return outs

    check(g, plain, RNG.normal(size=(7, 6)))


def test_maps_inside_maps():
    inner = graph_of([F64, F64], lambda g, s, h: op(g, "mul", s, h))
    outer = graph_of(
        [F64, F64, F64, F64],
        lambda g, a, b, w, h: g.region(Map([a, b, op(g, "add", w, h)], inner, 2, 1)).tolist(),
    )
    g = graph_of([F64] * 7, lambda g, *ids: g.region(Map(list(ids), outer, 2, 3)).tolist())

    def plain(a, b, w, c, d, v, h):
        return [a * (w + h), b * (w + h), c * (v + h), d * (v + h)]

    check(g, plain, RNG.normal(size=(7, 4)))


def test_floating_errors_are_silent_inside_and_the_setting_is_restored():
    g = graph_of([F64], lambda g, x: op(g, "div", g.const(1.0), x))
    with np.errstate(all="raise"):
        assert run(g, np.float64(0.0)) == [np.inf]
        with pytest.raises(FloatingPointError):
            np.float64(1.0) / np.float64(0.0)
