"""Derivative cases: control flow regions, closures and nested regions.

The oracle binds ``arc`` to plain Python loops and ifs, so each case is written once.
"""

from __future__ import annotations

from .cases import Case
from .elementwise_cases import ANY, MATRIX, POSITIVE

__all__ = ["CASES"]


def scan_carry(np, arc, x):
    return arc.scan(lambda c, s: (np.tanh(c * s) + c, None), x, np.array([0.5, -0.3, 0.8]))[0]


def scan_outputs(np, arc, x):
    return arc.scan(lambda c, s: (c + np.sin(s) * c, c * s), x[0], x)[1]


def scan_length(np, arc, x):
    return arc.scan(lambda c, _: (c + 0.1 * np.sin(c), c[0]), x, length=5)[0]


def scan_closure(np, arc, x):
    gain = np.exp(-x[0])

    def body(c, s):
        return c * gain + s * x[1], np.cos(c) * gain

    c, ys = arc.scan(body, x[2], x**2)
    return c * np.sum(ys)


def scan_tuple_carry(np, arc, x):
    def body(c, s):
        position, velocity = c
        velocity = velocity - 0.1 * np.sin(position) * s
        return (position + 0.1 * velocity, velocity), position * velocity

    (position, velocity), ys = arc.scan(body, (x[0], x[1]), x)
    return position + velocity * ys[1] + ys[2]


def scan_matrix_carry(np, arc, x):
    return arc.scan(lambda c, row: (c @ c * 0.3 + np.outer(row, row), None), np.eye(3), x)[0]


def scan_of_scan(np, arc, x):
    def outer(c, s):
        inner, ys = arc.scan(lambda d, r: (d * r + s, d), c, x)
        return np.tanh(inner), np.sum(ys)

    c, ys = arc.scan(outer, x[0], x)
    return c + np.sum(ys**2)


def scan_rk4(np, arc, x):
    def rate(s):
        return np.array([s[1], -9.81 * np.sin(s[0]) - x[2] * s[1]])

    def step(s, _):
        k1 = rate(s)
        k2 = rate(s + 0.025 * k1)
        k3 = rate(s + 0.025 * k2)
        k4 = rate(s + 0.05 * k3)
        return s + 0.05 / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4), s[0]

    state, angles = arc.scan(step, x[:2], length=20)
    return np.concatenate([state, angles[::5]])


def fori_newton_sqrt(np, arc, x):
    return arc.fori_loop(0, 6, lambda i, c: 0.5 * (c + x / c), np.ones(3))


def fori_index_weight(np, arc, x):
    return arc.fori_loop(1, 4, lambda i, c: c + np.sin(i * x) / i, x)


def while_counter(np, arc, x):
    def body(state):
        count, value = state
        return count + 1, value * x[0] + np.sin(value)

    return arc.while_loop(lambda state: state[0] < 5, body, (0, x), max_steps=9)[1]


def while_value(np, arc, x):
    return arc.while_loop(lambda c: np.sum(c**2) < 50.0, lambda c: c * 1.3 + x**2, x, max_steps=99)


def while_never(np, arc, x):
    return arc.while_loop(lambda c: c[0] > 100.0, lambda c: c * 2.0, x**2, max_steps=99)


def while_bounded(np, arc, x):
    return arc.while_loop(lambda c: c[0] < 1e9, lambda c: c * 1.1 + x, x, max_steps=4)


def cond_taken(np, arc, x):
    return arc.cond(x[0] > 0, lambda v: v**2, lambda v: np.sin(v), x)


def cond_not_taken(np, arc, x):
    return arc.cond(x[0] > 1, lambda v: v**2, lambda v: np.sin(v), x)


def cond_closure(np, arc, x):
    y = np.exp(x)
    return arc.cond(x[0] < x[2], lambda: y * x[0], lambda: y)


def cond_guards_untaken(np, arc, x):
    return arc.cond(x[1] < 0, lambda v: v * v, lambda v: np.sqrt(v), x[1]) * x


def switch_branches(np, arc, x):
    branches = [lambda v: v**2, lambda v: np.exp(v), lambda v: np.sin(v) * v[0]]
    return arc.switch(1, branches, x) + arc.switch(2, branches, x)


def switch_traced_index(np, arc, x):
    index = np.where(x[0] > 0, 2, 0)
    return arc.switch(index, [lambda v: v, lambda v: v**2, lambda v: v**3], x)


def switch_clamped(np, arc, x):
    index = np.where(x[0] > 0, 7, -3)
    return arc.switch(index, [lambda v: v, lambda v: v**3 * x[0]], x)


def scan_with_cond(np, arc, x):
    def body(c, s):
        c = arc.cond(s > 0, lambda v: v * s, lambda v: v + np.sin(s), c)
        return c, c**2

    c, ys = arc.scan(body, x[0], x)
    return c + np.sum(ys)


def scan_with_while(np, arc, x):
    def body(c, s):
        grown = arc.while_loop(
            lambda v: v < 3.0, lambda v: v * 1.5 + 0.1, np.abs(c) + 0.2, max_steps=99
        )
        return np.sin(grown) * s, grown

    c, ys = arc.scan(body, x[0], x)
    return c * ys[0] + ys[2]


def vmap_rows(np, arc, x):
    return arc.vmap(lambda row: np.sum(np.sin(row)) * row)(x)


def vmap_columns(np, arc, x):
    return arc.vmap(lambda column: np.prod(column), in_axes=1)(x)


def vmap_closure(np, arc, x):
    return arc.vmap(lambda row: row * x[0] + np.sum(x), in_axes=0)(x)


def vmap_mixed_axes(np, arc, x):
    return arc.vmap(lambda row, w: row @ w, in_axes=(0, None))(x, x[0] ** 2)


def vmap_out_axes(np, arc, x):
    return arc.vmap(lambda row: row**2, out_axes=1)(x) @ x


def vmap_of_vmap(np, arc, x):
    return arc.vmap(arc.vmap(lambda s: np.sin(s) * s))(x)


def vmap_of_vmap_reducing(np, arc, x):
    table = np.stack([x, x**2])
    return arc.vmap(arc.vmap(lambda row: np.prod(row) + row[0]))(table)


def vmap_of_vmap_axes(np, arc, x):
    table = np.stack([x, x**2, np.sin(x)])
    inner = arc.vmap(lambda a, b: np.sum(a) * b, in_axes=(1, None))
    return arc.vmap(inner, in_axes=(0, 0), out_axes=1)(table, x.ravel()[:3])


def vmap_of_scan(np, arc, x):
    return arc.vmap(lambda row: arc.scan(lambda c, s: (c * s + np.sin(c), c), row[0], row)[0])(x)


def scan_of_vmap(np, arc, x):
    def body(c, s):
        return arc.vmap(lambda v: np.tanh(v * s) + v**2)(c), np.sum(c)

    c, ys = arc.scan(body, x[0], x[1])
    return np.concatenate([c, ys])


def vmap_of_cond(np, arc, x):
    return arc.vmap(lambda s: arc.cond(s > 0, lambda v: v**3, lambda v: np.cos(v), s))(x[0])


def vmap_of_solve(np, arc, x):
    def solve(row):
        return np.linalg.solve(np.array([[2.0, row[0]], [row[1], 3.0]]), row[1:])

    return arc.vmap(solve)(x)


def scan_of_switch(np, arc, x):
    table = [lambda v: v**2, lambda v: np.exp(-v), lambda v: v + x[1]]

    def body(c, k):
        return arc.switch(k, table, c), c

    c, ys = arc.scan(body, x[0], np.array([2, 0, 1, 2]))
    return c * ys[3]


def vmap_of_while(np, arc, x):
    grow = lambda s: arc.while_loop(lambda v: np.abs(v) < 2.0, lambda v: v * 1.7, s, max_steps=99)
    return arc.vmap(lambda s: grow(s) * s)(x[0])


SCAN_CASES = [scan_carry, scan_outputs, scan_length, scan_closure, scan_tuple_carry, scan_of_scan]
ON_ANY = [
    *SCAN_CASES,
    scan_rk4,
    fori_index_weight,
    while_counter,
    while_value,
    while_never,
    while_bounded,
    cond_taken,
    cond_not_taken,
    cond_closure,
    cond_guards_untaken,
    switch_branches,
    switch_traced_index,
    switch_clamped,
    scan_with_cond,
    scan_with_while,
    scan_of_switch,
]
ON_MATRIX = [
    scan_matrix_carry,
    vmap_rows,
    vmap_columns,
    vmap_closure,
    vmap_mixed_axes,
    vmap_out_axes,
    vmap_of_vmap,
    vmap_of_vmap_reducing,
    vmap_of_vmap_axes,
    vmap_of_scan,
    scan_of_vmap,
    vmap_of_cond,
    vmap_of_solve,
    vmap_of_while,
]

CASES = [
    *(Case(fn.__name__, fn, ANY) for fn in ON_ANY),
    *(Case(fn.__name__, fn, MATRIX) for fn in ON_MATRIX),
    Case("fori_newton_sqrt", fori_newton_sqrt, POSITIVE),
]
