"""Every region, nested and alone, with operands from everywhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from archimedes.backends.c import Argument, render
from archimedes.errors import CodegenError
from archimedes.graph import B8, CODES, F32, F64, I64, Call, Graph, Host, Map, Scan, Solve, Switch
from archimedes.graph import While as Repeat

from .checking import COMPILERS, FLOATS, LEVELS, Bundle, Case, needs, samples


def emit(g: Graph, name: str, *ids: int) -> int:
    return g.emit(CODES[name], *(int(i) for i in ids))


def case(name: str, g: Graph, n: int = 9) -> Case:
    rng = np.random.default_rng(0)
    kinds = {F64: lambda: rng.normal(size=n), I64: lambda: rng.integers(-2, 5, n)}
    return Case(name, g, [kinds.get(d, lambda d=d: samples(d, n, rng))() for d in g.input_dtypes])


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


def scans() -> list[Case]:
    cases = []
    for length in (0, 1, 5):
        for reverse in (False, True):
            g = Graph()
            x, v, shared = (g.input(F64) for _ in range(3))
            slices = [g.input(d) for _ in range(length) for d in (F64, I64)]
            ids = g.region(Scan([x, v, *slices, shared], step_body(), length, 2, 2, reverse))
            g.outputs = ids.tolist()
            cases.append(case(f"scan_{length}_{int(reverse)}", g))
    return cases


def swapped_carry() -> Graph:
    """Carried values that change places: all are updated at once."""
    body = Graph()
    x, y, flag = body.input(F64), body.input(F64), body.input(B8)
    body.outputs = [y, x, emit(body, "not", flag), emit(body, "i64", flag)]
    g = Graph()
    ids = [g.input(F64), g.input(F64), g.input(B8)]
    g.outputs = g.region(Scan(ids, body, 3, 3, 0)).tolist()
    return g


def unused_parts() -> Graph:
    """Carried values, slices, shared values and outputs that nothing needs."""
    body = Graph()
    a, b, s, t, p, q = (body.input(F64) for _ in range(6))
    body.outputs = [emit(body, "add", a, s), emit(body, "mul", b, t), emit(body, "sub", a, p), q]
    g = Graph()
    ids = g.add_inputs(F64, 12).tolist()
    slices = [emit(g, "exp", i) for i in ids[:8]]
    scan = g.region(Scan([ids[8], ids[9], *slices, ids[10], ids[11]], body, 4, 2, 2))
    g.outputs = [int(scan[0]), int(scan[2 + 2])]
    return g


def mixed_operands() -> Graph:
    """Slices from a run, from constants, from one value, computed ones; zeros of both signs."""
    body = Graph()
    c = body.input(F64)
    parts = [body.input(F64) for _ in range(5)]
    total = c
    for p in parts:
        total = emit(body, "add", emit(body, "mul", total, body.const(0.5)), p)
    body.outputs = [total, emit(body, "copysign", total, parts[4])]
    g = Graph()
    run = g.add_inputs(F64, 40).tolist()
    same = g.input(F64)
    made = [emit(g, "mul", run[k], run[k + 1]) for k in range(20)]
    grid = [g.const(0.1 * k) for k in range(20)]
    signs = [g.const(0.0 if k % 3 else -0.0) for k in range(20)]
    rows = [i for k in range(20) for i in (run[2 * k], grid[k], same, made[k], signs[k])]
    ids = g.region(Scan([same, *rows], body, 20, 1, 5))
    g.outputs = [*ids.tolist(), *run[:3], g.const(2.5)]
    return g


def nested() -> Graph:
    inner = Graph()
    a, s = inner.input(F64), inner.input(F64)
    inner.outputs = [emit(inner, "add", emit(inner, "mul", a, s), s), emit(inner, "sub", a, s)]
    outer = Graph()
    c = outer.input(F64)
    slices = outer.add_inputs(F64, 6).tolist()
    outer.outputs = outer.region(Scan([c, *slices], inner, 6, 1, 1)).tolist()
    g = Graph()
    start = g.input(F64)
    rows = g.add_inputs(F64, 30).tolist()
    g.outputs = g.region(Scan([start, *rows], outer, 5, 1, 6)).tolist()
    return g


def many_carried(count: int) -> Graph:
    """Few carried values are variables, many an array; rotated, so that order matters."""
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
    return g


def whiles() -> Graph:
    body, condition = Graph(), Graph()
    x, n = body.input(F64), body.input(I64)
    body.input(F64)
    body.outputs = [emit(body, "mul", x, body.const(1.5)), emit(body, "add", n, body.const(1, I64))]
    y, _, top = condition.input(F64), condition.input(I64), condition.input(F64)
    condition.outputs = [emit(condition, "lt", y, top)]
    g = Graph()
    a, top = g.input(F64), g.input(F64)
    start = emit(g, "abs", a)
    for steps in (0, 3, 200):
        region = Repeat([start, g.const(0, I64), top], condition, body, 2, steps)
        g.outputs += g.region(region).tolist()
    return g


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


def switches() -> list[Case]:
    cases = []
    for kinds in [(0,), (9,), (0, 9), (9, 0), (1, 9, 0, 8)]:
        g = Graph()
        k, x, y = g.input(I64), g.input(F64), g.input(F64)
        branches = tuple(branch(kind) for kind in kinds)
        first = g.region(Switch([k, x, y], branches))
        # The same branches again, on other values: they become functions.
        second = g.region(Switch([k, int(first[0]), y], branches))
        test = emit(g, "i64", emit(g, "lt", x, y))
        third = g.region(Switch([test, x, y], branches))
        g.outputs = [*first.tolist(), int(second[1]), *third.tolist()]
        made = case("switch_" + "_".join(map(str, kinds)), g)
        made.columns[0][:5] = [-(2**63), 2**63 - 1, 0, 1, -1]
        cases.append(made)
    return cases


def many_results() -> Graph:
    branches = []
    for factor in (2.0, 3.0, 5.0):
        b = Graph()
        xs = b.add_inputs(F64, 80).tolist()
        b.outputs = [emit(b, "mul", x, b.const(factor)) for x in xs]
        branches.append(b)
    g = Graph()
    k = g.input(I64)
    xs = g.add_inputs(F64, 80).tolist()
    switched = g.region(Switch([k, *xs], tuple(branches)))
    called = g.region(Call(switched, branches[0]))
    again = g.region(Call(xs[::-1], branches[0]))
    g.outputs = [*called.tolist(), int(again[3])]
    return g


def calls() -> Graph:
    body = branch(6)
    g = Graph()
    x, y = g.input(F64), g.input(F64)
    for _ in range(10):
        x, y = g.region(Call([x, y], body)).tolist()
    g.outputs = [x, y]
    return g


def maps(length: int) -> Graph:
    body = Graph()
    x, k, y, shared = body.input(F64), body.input(I64), body.input(F64), body.input(F32)
    wide = emit(body, "f64", shared)
    body.outputs = [
        emit(body, "mul", emit(body, "sin", x), wide),
        emit(body, "add", k, k),
        emit(body, "sub", y, x),
        body.const(True, B8),
    ]
    g = Graph()
    slices = [g.input(d) for _ in range(length) for d in (F64, I64, F64)]
    single = g.input(F32)
    g.outputs = g.region(Map([*slices, single], body, length, 3)).tolist()
    return g


def solves() -> list[Case]:
    cases = []
    for n, m, dtype in [(1, 1, F64), (3, 1, F64), (4, 2, F32), (6, 6, F64), (9, 9, F64)]:
        g = Graph()
        ids = g.add_inputs(dtype, n * (n + m)).tolist()
        g.outputs = g.region(Solve(ids, n, m, dtype)).tolist()
        if m == 1:
            singular = [*ids[:n], *ids[: n * n - n], *ids[n * n :]] if n > 1 else ids
            g.outputs += g.region(Solve(singular, n, m, dtype)).tolist()
        cases.append(case(f"solve_{n}_{m}", g))
    return cases


def lookups() -> Graph:
    g = Graph()
    k = g.input(I64)
    tables = [
        np.array([0.1, -0.0, np.inf, np.nan, 5e-324, 1e308]),
        np.array([0.1, -2.5, 1e-45], np.float32),
        np.array([-(2**63), 2**63 - 1, 0, -1]),
        np.array([True, False, True]),
        np.linspace(0.0, 1.0, 100),
    ]
    g.outputs = [g.lookup(table, k) for table in tables]
    return g


def every_case() -> list[Case]:
    graphs = {
        "swapped": swapped_carry(),
        "unused": unused_parts(),
        "mixed": mixed_operands(),
        "nested": nested(),
        "carry_3": many_carried(3),
        "carry_70": many_carried(70),
        "whiles": whiles(),
        "results": many_results(),
        "calls": calls(),
        "map_1": maps(1),
        "map_19": maps(19),
        "lookups": lookups(),
    }
    return [*scans(), *switches(), *solves(), *(case(name, g) for name, g in graphs.items())]


OPTIONS = [{}, {"scratch": "workspace"}, {"part": 5}, {"part": 5, "scratch": "workspace"}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("float_type", FLOATS)
def test_regions(float_type: str, options: dict, tmp_path: Path):
    made = Bundle(every_case(), float_type, **options)
    if options:
        made.check(tmp_path, "gcc", "-O1")
        return
    for compiler in COMPILERS:
        needs(compiler)
        for level in LEVELS:
            made.check(tmp_path, compiler, level)


def text_of(g: Graph, **options) -> str:
    inputs = [Argument(f"x{k}", d) for k, d in enumerate(g.input_dtypes)]
    outputs = [Argument(f"y{k}", d) for k, d in enumerate(g.output_dtypes)]
    return render(g, "f", inputs=inputs, outputs=outputs, **options).text


def test_calls_share_a_function():
    text = text_of(calls())
    assert text.count("static void f_call1(") == 1
    assert text.count("    f_call1(") == 10
    assert "f_call2" not in text


def called(times: int, loops: int) -> Graph:
    """Loops, each with the same body, that call one function some times a step."""
    inner = Graph()
    x = inner.input(F64)
    inner.outputs = [inner.emit(CODES["sin"], x)]
    body = Graph()
    x = body.input(F64)
    for _ in range(times):
        x = int(body.region(Call([x], inner))[0])
    body.outputs = [x]
    g = Graph()
    given = [g.input(F64) for _ in range(loops)]
    g.outputs = [int(g.region(Scan([x], body, 5, 1, 0))[0]) for x in given]
    return g


@pytest.mark.parametrize(("times", "loops"), [(1, 1), (2, 1), (1, 2)])
def test_a_function_called_in_one_place_is_written_there(times: int, loops: int):
    text = text_of(called(times, loops))
    assert text.count("arc_sin(") == 1
    assert ("f_call1(" in text) == (times * loops > 1)


def test_loops_are_loops():
    long, short = text_of(maps(300)), text_of(maps(3))
    assert long.count("arc_sin(") == short.count("arc_sin(") == 1


def test_what_nothing_needs_is_not_computed():
    text = text_of(unused_parts())
    assert text.count("arc_exp(") == 4  # one of two slices a step
    assert "x9" in text and "(void)x9;" in text


def test_a_host_callback_is_refused_with_the_line():
    g = Graph()
    x = g.input(F64)
    host = Host([x], lambda values: values, (F64,), "read_sensor", line="model.py:12")
    g.outputs = g.region(host).tolist()
    with pytest.raises(CodegenError, match=r"read_sensor \(model.py:12\).*write the callback"):
        text_of(g)
