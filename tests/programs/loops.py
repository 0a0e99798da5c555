"""Loops: scans, maps and bounded loops, with operands and results from and to everywhere."""

from __future__ import annotations

import numpy as np

from archimedes.graph import B8, F32, F64, I64, Call, Graph, Map, Scan, Switch
from archimedes.graph import While as Repeat

from .program import Program, emit, graph_of, program
from .values import normal


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


def scan(length: int, reverse: bool) -> Graph:
    g = Graph()
    x, v, shared = (g.input(F64) for _ in range(3))
    slices = [g.input(d) for _ in range(length) for d in (F64, I64)]
    ids = g.region(Scan([x, v, *slices, shared], step_body(), length, 2, 2, reverse))
    g.outputs = ids.tolist()
    return g


def plain_scan(length: int, reverse: bool) -> Program:
    """Carry c, slice s, shared h -> carry c*s + h, out c - s."""
    body = graph_of(
        [F64, F64, F64],
        lambda g, c, s, h: [emit(g, "add", emit(g, "mul", c, s), h), emit(g, "sub", c, s)],
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

    return program(f"plain_scan_{length}_{int(reverse)}", g, plain)


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
    outs = g.region(Scan([ids[8], ids[9], *slices, ids[10], ids[11]], body, 4, 2, 2))
    g.outputs = [int(outs[0]), int(outs[2 + 2])]
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


def read_backwards() -> Program:
    """Slices that lie in memory from last to first, and results that are wanted so."""
    body = graph_of([F64, F64], lambda g, c, s: [emit(g, "sub", s, c), emit(g, "mul", c, s)])
    g = Graph()
    start, *run = g.add_inputs(F64, 13).tolist()
    first, *outs = g.region(Scan([start, *run[::-1]], body, 12, 1, 1)).tolist()
    g.outputs = [first, *outs[::-1], *outs]

    def plain(c, *slices):
        made = []
        for s in slices[::-1]:
            c, out = s - c, c * s
            made.append(out)
        return [c, *made[::-1], *made]

    return program("read_backwards", g, plain)


def results_in_place() -> Program:
    """Columns that are wanted as they are, every other one, and read again afterwards."""
    body = graph_of([F64, F64], lambda g, c, s: [emit(g, "add", c, s), c, emit(g, "neg", s)])
    g = Graph()
    start, *run = g.add_inputs(F64, 11).tolist()
    _, *outs = g.region(Scan([start, *run], body, 10, 1, 1)).tolist()
    sums, slopes = outs[::2], outs[1::2]
    total = sums[0]
    for x in sums[1:]:
        total = emit(g, "max", total, x)
    g.outputs = [*outs, total, *slopes]

    def plain(c, *slices):
        made = []
        for s in slices:
            made += [c, -s]
            c = c + s
        best = made[0]
        for x in made[2::2]:
            best = best if best > x else x
        return [*made, best, *made[1::2]]

    return program("results_in_place", g, plain)


def nested() -> Graph:
    """A scan in a scan, over the slices of the outer one."""
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
    """Few carried values are operands, many in memory; rotated, so that order matters."""
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


def mixed_carry() -> Program:
    body = graph_of(
        [F32, I64, B8],
        lambda g, x, n, b: [
            emit(g, "select", b, emit(g, "add", x, x), x),
            emit(g, "add", n, g.const(1, I64)),
            emit(g, "not", b),
        ],
    )
    g = graph_of([F32, I64, B8], lambda g, *ids: g.region(Scan(ids, body, 3, 3, 0)).tolist())

    def plain(x, n, b):
        for _ in range(3):
            x, n, b = (x + x if b else x), n + 1, ~b
        return x, n, b

    return program("mixed_carry", g, plain)


def whiles() -> Program:
    """Instances that leave at different times, some not at all."""
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
    rng = np.random.default_rng(0)
    return program("whiles", g, None, [normal(rng, 41), 1e9 * rng.random(41)])


def plain_while(limit: int) -> Program:
    body = graph_of(
        [F64, I64, F64],
        lambda g, x, n, f: [emit(g, "mul", x, f), emit(g, "add", n, g.const(1, I64))],
    )
    test = graph_of([F64, I64, F64], lambda g, x, n, f: emit(g, "lt", x, g.const(100.0)))
    g = graph_of(
        [F64, F64],
        lambda g, x, f: g.region(Repeat([x, g.const(0, I64), f], test, body, 2, limit)).tolist(),
    )

    def plain(x, f):
        n = np.int64(0)
        while x < 100.0 and n < limit:
            x, n = x * f, n + 1
        return x, np.int64(n)

    columns = np.array([[1.0, 200.0, 3.0, np.nan, 99.0], [2.0, 3.0, 1.5, 2.0, 7.0]])
    return program(f"plain_while_{limit}", g, plain, columns)


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


def maps(length: int, twice: bool = False) -> Graph:
    """A map, and another over its results."""
    g = Graph()
    slices = [g.input(d) for _ in range(length) for d in (F64, I64, F64)]
    single = g.input(F32)
    g.outputs = first = g.region(Map([*slices, single], map_body(), length, 3)).tolist()
    if twice:
        doubled = emit(g, "add", single, single)
        again = [i for k in range(length) for i in first[4 * k : 4 * k + 3]]
        second = g.region(Map([*again, doubled], map_body(), length, 3)).tolist()
        g.outputs = [*first, *second]
    return g


def map_of_slices() -> Graph:
    """A map over the slices of a scan."""
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
    return g


def maps_of_maps() -> Program:
    inner = graph_of([F64, F64], lambda g, s, h: emit(g, "mul", s, h))
    outer = graph_of(
        [F64, F64, F64, F64],
        lambda g, a, b, w, h: g.region(Map([a, b, emit(g, "add", w, h)], inner, 2, 1)).tolist(),
    )
    g = graph_of([F64] * 7, lambda g, *ids: g.region(Map(list(ids), outer, 2, 3)).tolist())

    def plain(a, b, w, c, d, v, h):
        return [a * (w + h), b * (w + h), c * (v + h), d * (v + h)]

    return program("maps_of_maps", g, plain)


def everything_nested() -> Program:
    """A map of scans of switches of calls, with shared values at every level."""
    body = graph_of(
        [F64, F64],
        lambda g, x, y: [emit(g, "add", emit(g, "mul", x, y), g.const(1.0)), emit(g, "sub", x, y)],
    )
    call = graph_of([F64, F64], lambda g, a, h: g.region(Call([a, h], body)).tolist()[:1])
    keep = graph_of([F64, F64], lambda g, a, h: emit(g, "neg", a))

    def step(g, c, s, h):
        index = emit(g, "i64", emit(g, "lt", c, h))
        (out,) = g.region(Switch([index, c, s], (keep, call))).tolist()
        return [out, emit(g, "add", out, h)]

    one = graph_of([F64, F64, F64], step)
    row = graph_of(
        [F64, F64, F64], lambda g, a, b, h: g.region(Scan([h, a, b, h], one, 2, 1, 1)).tolist()
    )
    g = graph_of([F64] * 7, lambda g, *ids: g.region(Map(list(ids), row, 3, 2)).tolist())

    def plain(*values):
        *cells, h = values
        outs = []
        for k in range(3):
            c, ys = h, []
            for s in cells[2 * k : 2 * k + 2]:
                c = c * s + 1.0 if c < h else -c
                ys.append(c + h)
            outs += [c, *ys]
        return outs

    return program("everything_nested", g, plain)


def loops() -> list[Program]:
    graphs = {f"scan_{n}_{int(r)}": scan(n, r) for n in (0, 1, 5) for r in (False, True)}
    graphs |= {f"carry_{n}": many_carried(n) for n in (3, 70)}
    graphs |= {"map_1": maps(1), "map_7": maps(7, True), "map_19": maps(19)}
    graphs |= {"map_8": maps(8), "swapped": swapped_carry(), "unused": unused_parts()}
    graphs |= {"mixed": mixed_operands(), "nested": nested(), "map_of_slices": map_of_slices()}
    return [
        *(program(name, g) for name, g in graphs.items()),
        *(plain_scan(n, r) for n in (0, 1, 4) for r in (False, True)),
        *(plain_while(limit) for limit in (0, 1, 3, 50)),
        *(whiles(), mixed_carry(), maps_of_maps(), everything_nested()),
        *(read_backwards(), results_in_place()),
    ]
