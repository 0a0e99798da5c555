"""Every region, nested and alone, with operands from everywhere."""

from __future__ import annotations

import numpy as np
import pytest

from archimedes.backends.llvm.runtime.kernel import build
from archimedes.graph import B8, CODES, F32, F64, I64, Call, Graph, Host, Map, Scan, Solve, Switch
from archimedes.graph import While as Repeat

from .checking import assert_bits, check, reference, samples

LANES = [2, 4, 8]


def emit(g: Graph, name: str, *ids: int) -> int:
    return g.emit(CODES[name], *(int(i) for i in ids))


def columns_of(g: Graph, n: int = 37, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [
        rng.normal(size=n)
        if d == F64
        else rng.integers(-2, 5, n)
        if d == I64
        else samples(d, n, rng)
        for d in g.input_dtypes
    ]


def step_body() -> Graph:
    """(x, v, slice, slice as int, shared) -> (x', v', out, out as bool, out as float32)."""
    b = Graph()
    x, v, s = (b.input(F64) for _ in range(3))
    k, shared = b.input(I64), b.input(F64)
    force = emit(b, "sub", emit(b, "mul", shared, s), emit(b, "sin", x))
    new_v = emit(b, "add", v, emit(b, "mul", force, b.const(0.1)))
    new_x = emit(b, "add", x, emit(b, "mul", new_v, b.const(0.1)))
    energy = emit(b, "add", emit(b, "mul", new_v, new_v), emit(b, "f64", k))
    small = emit(b, "lt", energy, b.const(1.0))
    b.outputs = [new_x, new_v, energy, small, emit(b, "f32", new_x)]
    return b


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, 5])
def test_scan(length, reverse):
    g = Graph()
    x, v, shared = (g.input(F64) for _ in range(3))
    slices = [g.input(d) for _ in range(length) for d in (F64, I64)]
    ids = g.region(Scan([x, v, *slices, shared], step_body(), length, 2, 2, reverse))
    g.outputs = ids.tolist()
    check(g, columns_of(g), lanes=LANES)


def test_scan_over_mixed_operands():
    """Slices from a run, from constants, from one value, and computed ones."""
    g = Graph()
    body = Graph()
    c = body.input(F64)
    parts = [body.input(F64) for _ in range(4)]
    total = c
    for p in parts:
        total = emit(body, "add", emit(body, "mul", total, body.const(0.5)), p)
    body.outputs = [total, emit(body, "mul", total, parts[0])]
    run = g.add_inputs(F64, 40).tolist()
    same = g.input(F64)
    made = [emit(g, "mul", run[k], run[k + 1]) for k in range(20)]
    grid = [g.const(0.1 * k) for k in range(20)]
    rows = [i for k in range(20) for i in (run[2 * k], grid[k], same, made[k])]
    ids = g.region(Scan([same, *rows], body, 20, 1, 4))
    g.outputs = [*ids.tolist(), *run[:3], g.const(2.5)]
    check(g, columns_of(g), lanes=LANES)
    check(g, columns_of(g), lanes=[4], part=6)


def test_constant_slices_that_differ_in_the_sign_of_zero():
    body = Graph()
    sign, size = body.input(F64), body.input(F64)
    body.outputs = [emit(body, "copysign", size, sign)]
    g = Graph()
    size = g.input(F64)
    signs = [g.const(0.0 if k % 3 else -0.0) for k in range(6)]
    g.outputs = g.region(Scan([*signs, size], body, 6, 0, 1)).tolist()
    check(g, columns_of(g), lanes=LANES)


def test_nested_scans_walk_the_outer_slices():
    inner = Graph()
    a, s = inner.input(F64), inner.input(F64)
    inner.outputs = [emit(inner, "add", emit(inner, "mul", a, s), s), emit(inner, "sub", a, s)]
    outer = Graph()
    c = outer.input(F64)
    slices = outer.add_inputs(F64, 6).tolist()
    outs = outer.region(Scan([c, *slices], inner, 6, 1, 1))
    outer.outputs = outs.tolist()
    g = Graph()
    start = g.input(F64)
    rows = g.add_inputs(F64, 30).tolist()
    g.outputs = g.region(Scan([start, *rows], outer, 5, 1, 6)).tolist()
    check(g, columns_of(g), lanes=LANES)
    check(g, columns_of(g), lanes=[8], part=1)


@pytest.mark.parametrize("count", [3, 70])
def test_carries_in_registers_and_in_memory(count):
    """More carried values than registers go through memory, rotated so that order matters."""
    body = Graph()
    xs = body.add_inputs(F64, count).tolist()
    body.outputs = [*xs[1:], emit(body, "add", xs[0], xs[-1])]
    condition = Graph()
    ys = condition.add_inputs(F64, count).tolist()
    condition.outputs = [emit(condition, "lt", ys[-1], condition.const(2.0))]
    g = Graph()
    ids = g.add_inputs(F64, count).tolist()
    scanned = g.region(Scan(ids, body, 9, count, 0))
    repeated = g.region(Repeat(ids, condition, body, count, 25))
    g.outputs = [*scanned.tolist(), *repeated.tolist()]
    check(g, columns_of(g), lanes=LANES)


def test_while_stops_each_lane_in_its_own_time():
    body, condition = Graph(), Graph()
    x, n, limit = body.input(F64), body.input(I64), body.input(F64)
    body.outputs = [emit(body, "mul", x, body.const(1.5)), emit(body, "add", n, body.const(1, I64))]
    y, _, top = condition.input(F64), condition.input(I64), condition.input(F64)
    condition.outputs = [emit(condition, "lt", y, top)]
    assert limit is not None
    g = Graph()
    a, top = g.input(F64), g.input(F64)
    for steps in (0, 3, 200):
        g.outputs += g.region(Repeat([a, g.const(0, I64), top], condition, body, 2, steps)).tolist()
    rng = np.random.default_rng(0)
    check(g, [np.abs(rng.normal(size=41)) + 1e-3, rng.uniform(0, 1e9, 41)], lanes=LANES)


def branch(kind: int) -> Graph:
    b = Graph()
    x, y = b.input(F64), b.input(F64)
    if kind == 0:
        b.outputs = [x, y]
    elif kind == 1:
        b.outputs = [emit(b, "add", x, y), emit(b, "mul", x, y)]
    else:
        s = x
        for _ in range(kind):
            s = emit(b, "add", emit(b, "mul", s, y), emit(b, "cos", s))
        b.outputs = [s, emit(b, "div", s, y)]
    return b


@pytest.mark.parametrize("kinds", [(0,), (9,), (0, 9), (9, 0), (0, 1), (8, 9), (1, 9, 0, 8)])
def test_switch(kinds):
    g = Graph()
    k, x, y = g.input(I64), g.input(F64), g.input(F64)
    branches = tuple(branch(kind) for kind in kinds)
    first = g.region(Switch([k, x, y], branches))
    # The same branches again, on other values: they become functions.
    second = g.region(Switch([k, int(first[0]), y], branches))
    g.outputs = [*first.tolist(), int(second[1])]
    columns = columns_of(g)
    columns[0][:5] = [-(2**63), 2**63 - 1, 0, 1, -1]
    check(g, columns, lanes=LANES)


def test_switch_with_many_results():
    branches = []
    for factor in (2.0, 3.0, 5.0):
        b = Graph()
        xs = b.add_inputs(F64, 80).tolist()
        b.outputs = [emit(b, "mul", x, b.const(factor)) for x in xs]
        branches.append(b)
    g = Graph()
    k = g.input(I64)
    xs = g.add_inputs(F64, 80).tolist()
    g.outputs = g.region(Switch([k, *xs], tuple(branches))).tolist()
    check(g, columns_of(g), lanes=LANES)


def test_calls_share_a_function():
    body = branch(6)
    g = Graph()
    x, y = g.input(F64), g.input(F64)
    for _ in range(10):
        x, y = g.region(Call([x, y], body)).tolist()
    g.outputs = [x, y]
    kernel = check(g, columns_of(g), lanes=LANES)
    assert kernel.llvm_ir.count("define internal void @shared") == 1 + 1  # body, and huge angles


def map_body() -> Graph:
    body = Graph()
    x, k, y, shared = body.input(F64), body.input(I64), body.input(F64), body.input(F32)
    wide = emit(body, "f64", shared)
    body.outputs = [
        emit(body, "mul", emit(body, "sin", x), wide),
        emit(body, "add", k, k),
        emit(body, "sub", y, x),
        body.const(True, B8),
    ]
    return body


@pytest.mark.parametrize("length", [1, 7, 8, 19])
@pytest.mark.parametrize("part", [1500, 5])
def test_map(length, part):
    g = Graph()
    slices = [g.input(d) for _ in range(length) for d in (F64, I64, F64)]
    single = g.input(F32)
    first = g.region(Map([*slices, single], map_body(), length, 3)).tolist()
    doubled = emit(g, "add", single, single)
    again = [i for k in range(length) for i in (first[4 * k], first[4 * k + 1], first[4 * k + 2])]
    second = g.region(Map([*again, doubled], map_body(), length, 3)).tolist()
    g.outputs = [*first, *second]
    check(g, columns_of(g), lanes=[2, 8], part=part)


def test_map_over_the_slices_of_a_scan():
    inner = Graph()
    x, y = inner.input(F64), inner.input(F64)
    inner.outputs = [emit(inner, "add", emit(inner, "mul", x, y), x)]
    outer = Graph()
    c = outer.input(F64)
    slices = outer.add_inputs(F64, 17).tolist()
    mapped = outer.region(Map([*slices, c], inner, 17, 1)).tolist()
    outer.outputs = [emit(outer, "add", mapped[3], mapped[16]), *mapped]
    g = Graph()
    start = g.input(F64)
    rows = g.add_inputs(F64, 5 * 17).tolist()
    g.outputs = g.region(Scan([start, *rows], outer, 5, 1, 17)).tolist()
    for part in (1500, 3):
        check(g, columns_of(g), lanes=[4], part=part)


def test_maps_of_scalar_kernels_run_in_lanes():
    inner = Graph()
    inner.outputs = [emit(inner, "mul", inner.input(F64), inner.const(3.0))]
    g = Graph()
    g.outputs = g.region(Map(g.add_inputs(F64, 4000).tolist(), inner, 4000, 1)).tolist()
    kernel = build(g, [(4000, F64)], [(4000, F64)])
    assert f"fmul <{kernel.lanes} x double>" in kernel.llvm_ir
    out = np.empty(4000)
    kernel.call([np.arange(4000.0)], [out])
    assert_bits(out, 3.0 * np.arange(4000.0))


@pytest.mark.parametrize("dtype", [F64, F32])
@pytest.mark.parametrize("n, m", [(1, 1), (2, 1), (3, 2), (9, 4)])
def test_solve(n, m, dtype):
    g = Graph()
    g.outputs = g.region(Solve(g.add_inputs(dtype, n * n + n * m), n, m, dtype)).tolist()
    rng = np.random.default_rng(n)
    columns = [rng.normal(size=45).astype(np.float64 if dtype == F64 else np.float32)
               for _ in g.inputs]  # fmt: skip
    # Ties, zeros, nans and infinities among the pivots, different from lane to lane.
    for k, value in enumerate((0.0, 1.0, -1.0, np.nan, np.inf)):
        for column in columns:
            column[rng.integers(0, 45, 6)] = value
        columns[k % len(columns)][:20] = value
    check(g, columns, lanes=LANES, scalars=45)


def test_solve_agrees_with_lapack():
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(12, 12)), rng.normal(size=(12, 3))
    g = Graph()
    g.outputs = g.region(Solve(g.add_inputs(F64, 180), 12, 3, F64)).tolist()
    kernel = build(g, [(144, F64), (36, F64)], [(36, F64)])
    x = np.empty((12, 3))
    kernel.call([a, b], [x])
    np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=1e-10)


def test_lookups_clamp():
    g = Graph()
    k = g.input(I64)
    tables = [np.arange(5.0), np.arange(5, dtype=np.float32), np.arange(3), np.array([True, False])]
    g.outputs = [g.lookup(table, k) for table in tables]
    check(g, [np.array([-(2**63), -1, 0, 1, 2, 3, 4, 5, 2**63 - 1] * 3)], lanes=LANES)


# ---- callbacks ---------------------------------------------------------------------------------


def hosted(function) -> Graph:
    g = Graph()
    x, k, b, s = g.input(F64), g.input(I64), g.input(B8), g.input(F32)
    region = Host([x, k, b, s], function, (F64, I64, B8, F32), "probe")
    y, m, c, t = g.region(region).tolist()
    g.outputs = [emit(g, "add", y, x), m, c, t]
    return g


def test_host_gets_and_gives_every_dtype():
    seen = []

    def probe(values):
        seen.append([type(v) for v in values])
        x, k, b, s = values
        return [x * 2.0, k + 1, not b, s * s]

    g = hosted(probe)
    columns = [np.arange(5.0), np.arange(5), np.arange(5) > 2, np.arange(5, dtype=np.float32)]
    check(g, columns)
    assert seen[-1] == [np.float64, np.int64, np.bool_, np.float32]


def test_host_in_loops_and_branches_is_called_where_it_should():
    calls = []

    def probe(values):
        calls.append(float(values[0]))
        return [values[0] + 1.0]

    side = Graph()
    x = side.input(F64)
    side.outputs = side.region(Host([x], probe, (F64,), "probe")).tolist()
    plain = Graph()
    plain.outputs = [plain.input(F64)]
    g = Graph()
    k, x = g.input(I64), g.input(F64)
    (y,) = g.region(Switch([k, x], (plain, side)))
    (z,) = g.region(Scan([int(y)], side, 2, 1, 0))
    g.outputs = [int(z)]
    kernel = build(g, [(1, I64), (1, F64)], [(1, F64)])
    out = np.empty((4, 1))
    numbers, values = np.array([0, 1, 0, 1]), np.array([10.0, 20.0, 30.0, 40.0])
    kernel.call_batch([numbers, values], [True, True], [out], 4)
    assert out[:, 0].tolist() == [12.0, 23.0, 32.0, 43.0]
    assert calls == [10.0, 11.0, 20.0, 21.0, 22.0, 30.0, 31.0, 40.0, 41.0, 42.0]


def test_exceptions_of_callbacks_come_through():
    def fail(values):
        raise KeyError(f"no entry for {values[0]}")

    g = hosted(fail)
    kernel = build(
        g, [(1, F64), (1, I64), (1, B8), (1, F32)], [(1, d) for d in (F64, I64, B8, F32)]
    )
    n = 50
    ins = [np.zeros(n), np.zeros(n, int), np.zeros(n, bool), np.zeros(n, np.float32)]
    outs = [np.zeros_like(x) for x in ins]
    for threads in (1, 2):
        with pytest.raises(KeyError, match=r"no entry for 0\.0"):
            kernel.call_batch(ins, [True] * 4, outs, n, threads=threads)
    with pytest.raises(KeyError, match=r"no entry for 0\.0"):
        kernel.call([x[:1] for x in ins], [x[:1] for x in outs])


def test_reference_is_the_interpreter():
    g = Graph()
    x = g.input(F64)
    g.outputs = [emit(g, "add", x, x)]
    assert_bits(reference(g, [np.array([1.0, 2.0])], 2)[0], np.array([2.0, 4.0]))
