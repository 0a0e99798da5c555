"""Units through loops, branches, maps, long arrays, tables, systems and derivatives.

Each case is a function of x (m), v (m/s), t (s), m (kg) and w (m, long), with the unit of its
result, or the beginning of the one finding that it must have.
"""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.graph.dtypes import F64
from archimedes.graph.expand import program
from archimedes.graph.program import Graph
from archimedes.symbolic.linalg import matrix_functions

UNITS = {"x": "m", "v": "m/s", "t": "s", "m": "kg", "w": "m"}
ARGS = (1.0, 2.0, 0.5, 3.0, np.linspace(1.0, 2.0, 100))
TABLE = np.linspace(0.0, 5.0, 30) ** 2


def unit(function):
    report = arc.check_units(function, UNITS)(*ARGS)
    assert report.ok, str(report)
    return report.units


def finding(function):
    report = arc.check_units(function, UNITS)(*ARGS)
    assert len(report) == 1, str(report)
    assert report[0].file == __file__
    return report[0].message


FITS = {
    "scan": (lambda x, v, t, m, w: arc.scan(lambda c, _: (c + v * t, c), x, length=4)[0], "m"),
    "scan over a row": (lambda x, v, t, m, w: arc.scan(lambda c, s: (c + s, c), x, w)[0], "m"),
    "long scan": (
        lambda x, v, t, m, w: arc.scan(lambda c, _: (c + v * t, c * m), x, length=9000)[1],
        "kg m",
    ),
    "while": (
        lambda x, v, t, m, w: arc.while_loop(lambda c: c < 10.0 * x, lambda c: c + v * t, x),
        "m",
    ),
    "fori": (lambda x, v, t, m, w: arc.fori_loop(0, 5, lambda k, c: c + k * v * t, x), "m"),
    "branch": (
        lambda x, v, t, m, w: arc.cond(x > 0.0, lambda a, b: a * b, lambda a, b: -b * a, v, t),
        "m",
    ),
    "switch": (
        lambda x, v, t, m, w: arc.switch(
            np.argmax(w), [lambda a: a, lambda a: 0.0 * a, lambda a: -a], x
        ),
        "m",
    ),
    "map": (lambda x, v, t, m, w: arc.vmap(lambda s: s * m)(w), "kg m"),
    "sum of a long array": (lambda x, v, t, m, w: np.sum(w * m) + x * m, "kg m"),
    "norm of a long array": (lambda x, v, t, m, w: np.linalg.norm(w) + x, "m"),
    "long product": (lambda x, v, t, m, w: w @ (2.0 * w) / x + x, "m"),
    "long matrix": (lambda x, v, t, m, w: np.outer(w, w) @ w / x**2 + x, "m"),
    "long where": (lambda x, v, t, m, w: np.where(w > x, w, 0.0)[7] + x, "m"),
    "long slices": (lambda x, v, t, m, w: np.diff(w)[3] / t + v, "m/s"),
    "cumulative": (lambda x, v, t, m, w: np.cumsum(w)[5] + x, "m"),
    "sort": (lambda x, v, t, m, w: np.sort(w)[3] + x, "m"),
    "traced index": (lambda x, v, t, m, w: w[np.argmax(w)] + x, "m"),
    "trapezoid": (lambda x, v, t, m, w: np.trapezoid(w * v, w / v) + x * x, "m^2"),
    "table": (lambda x, v, t, m, w: np.interp(x / x, np.arange(30.0), TABLE) * v + v, "m/s"),
    "mixed vector": (lambda x, v, t, m, w: (np.array([x, v]) * np.array([1.0 / t, 1.0]))[1], "m/s"),
    "gradient": (lambda x, v, t, m, w: arc.grad(lambda s: 0.5 * m * s**2)(v), "N s"),
    "jacobian": (
        lambda x, v, t, m, w: arc.jac(lambda s: m * s * s)(np.stack([x, x]))[0, 0],
        "kg m",
    ),
    "hessian": (lambda x, v, t, m, w: arc.hess(lambda s: 0.5 * m * s**2 / t)(x) + m / t, "N s/m"),
    "jvp": (lambda x, v, t, m, w: arc.jvp(lambda s: m * s**2)(x, v) + m * x * v, "kg m^2/s"),
    "system": (
        lambda x, v, t, m, w: np.linalg.solve(
            np.array([[m / t, m], [m * x, m * v * t * t]]), np.array([x, x * x * t])
        )[1],
        "m/kg",
    ),
    "inverse": (
        lambda x, v, t, m, w: np.linalg.inv(np.diag([x, x]))[0, 0] * x**2 + x,
        "m",
    ),
    "determinant": (
        lambda x, v, t, m, w: np.linalg.det(np.array([[x, x], [v, v]])) + x * v,
        "m^2/s",
    ),
    "root": (lambda x, v, t, m, w: arc.root(lambda s: s**2 - x * v * t, x) + x, "m"),
    "remainder": (lambda x, v, t, m, w: np.remainder(x, v * t) + np.floor(x), "m"),
    "float32": (lambda x, v, t, m, w: w.astype(np.float32)[0] + np.float32(2.0), "m"),
    "random": (
        lambda x, v, t, m, w: x + x * arc.random.normal(arc.random.key(1), 3)[0],
        "m",
    ),
    "compiled": (lambda x, v, t, m, w: arc.compile(lambda a, b: a * b)(v, t) + x, "m"),
    "bits": (lambda x, v, t, m, w: x * np.sign(v) + np.copysign(x, v) + np.abs(x), "m"),
    "polynomial": (lambda x, v, t, m, w: np.polyval([1.0, 2.0, 3.0], x / (v * t)) * x + x, "m"),
    "expm": (lambda x, v, t, m, w: arc.expm(np.diag([1.0, 2.0]) * x / x)[0, 0], "1"),
}

WRONG = {
    "scan": (lambda x, v, t, m, w: arc.scan(lambda c, _: (c + v, c), x, length=4)[0], "adds m and"),
    "carry": (
        lambda x, v, t, m, w: arc.scan(lambda c, _: (c * v, c), x, length=4)[0],
        "the loop begins with m and goes on with m^2/s",
    ),
    "while": (
        lambda x, v, t, m, w: arc.while_loop(lambda c: c < t, lambda c: 2.0 * x + c, x),
        "compares m with s",
    ),
    "branch": (
        lambda x, v, t, m, w: arc.cond(x > 0.0, lambda a, b: a, lambda a, b: b, v, t),
        "the branches give",
    ),
    "map": (lambda x, v, t, m, w: arc.vmap(lambda s: s + m)(w), "adds m and kg"),
    "long sum": (lambda x, v, t, m, w: w + v, "adds m and m/s"),
    "long mixture": (
        lambda x, v, t, m, w: np.sum(np.concatenate([w, np.stack([v])])),
        "adds m and m/s",
    ),
    "long function": (lambda x, v, t, m, w: np.exp(w), "np.exp takes a plain number"),
    "gradient": (
        lambda x, v, t, m, w: arc.grad(lambda s: 0.5 * m * s**2)(v) + m,
        "adds N s and kg",
    ),
    "system": (
        lambda x, v, t, m, w: np.linalg.solve(np.array([[m, m * x], [m * t, m]]), np.array([x, x])),
        "the linear system has",
    ),
    "norm": (lambda x, v, t, m, w: np.linalg.norm(np.stack([x, v])), "adds m^2 and m^2/s^2"),
    "index": (
        lambda x, v, t, m, w: np.stack([x, v])[np.argmax(w) % 2],
        "chooses between m and m/s",
    ),
    "product": (lambda x, v, t, m, w: np.array([[x, v]]) @ np.array([x, x]), "adds m^2 and m^2/s"),
    "compiled": (lambda x, v, t, m, w: arc.compile(lambda a, b: a + b)(v, t), "adds m/s and s"),
}


@pytest.mark.parametrize("name", FITS)
def test_what_fits(name):
    function, expected = FITS[name]
    assert unit(function)["return"].split(", ")[0] == expected


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit(name):
    function, expected = WRONG[name]
    assert finding(function).startswith(expected)


def test_structs_in_closures_globals_and_partials():
    import functools

    @arc.struct
    class Part:
        mass: float = arc.field(units="kg")
        offset: np.ndarray = arc.field(units="m")

    part = Part(2.0, np.ones(3))

    def weight(p):
        return part.mass * 2.0 + p.offset[0]  # a gain of unknown unit

    def direct(p):
        return part.mass + p.offset[0]

    assert arc.check_units(weight)(part).ok
    (found,) = arc.check_units(direct)(part)
    assert found.message.startswith("adds kg and m")
    bound = functools.partial(lambda a, b: a.mass + b.offset[0], part)
    (found,) = arc.check_units(bound)(part)
    assert found.message.startswith("adds kg and m")
    if_known = arc.check_units(lambda p: p.offset * (1.0 if part.mass > 1.0 else 2.0))
    assert if_known(part).ok


def test_a_fault_inside_the_library_is_reported_at_the_calling_line():
    from archimedes.spatial import Quaternion, RigidBody

    def dynamics(t, x, thrust):
        u = RigidBody.Input(F_B=thrust * x.pos, M_B=np.zeros(3), m=2.0, J_B=np.eye(3))
        return RigidBody.dynamics(t, x, u)

    x = RigidBody.State(np.ones(3), Quaternion.identity(), np.ones(3), np.ones(3))
    (found,) = arc.check_units(dynamics, {"thrust": "N"})(0.0, x, 2.0)
    assert found.file == __file__
    assert found.expression == "thrust * x.pos"
    assert found.message.startswith("RigidBody.Input.F_B is given N m, it must be N")


def test_a_check_leaves_nothing_behind_for_other_recordings():
    """Bodies of matrix functions and programs of functions are shared by all recordings."""

    def solve(a, b):
        return np.sinh(np.linalg.solve(a, b))

    a, b = np.eye(3) + 0.1, np.ones((3, 5))
    for kept in (matrix_functions._record, program):
        kept.cache_clear()
    before = arc.compile(solve).recording(a, b).graph.digest(lasting=True)
    for kept in (matrix_functions._record, program):
        kept.cache_clear()
    assert arc.check_units(solve)(a, b).ok
    assert type(program("sinh", F64)) is Graph
    assert arc.compile(solve).recording(a, b).graph.digest(lasting=True) == before
