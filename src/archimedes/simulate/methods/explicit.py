"""Explicit Runge-Kutta methods: their tableaus, and one function that steps with any of them.

Rows of a tableau are sparse: ``{stage: weight}``. The last row of ``stages`` always gives the new
state, so that the last stage is its derivative: it is the first stage of the next step, and the
slope at the end for the interpolant. ``errors`` weigh the stages to the local error over h, and
``dense[k]`` weighs them to the coefficient of theta^(k+1) over h, theta the fraction of the step.

The numbers are in ``coefficients.txt``.

Symbols: k[i] the derivative at stage i.
HNW: Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I, 2nd edition, 1993.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.function import stop_gradient
from archimedes.function.linear_combinations import combine, combine_rows
from archimedes.records import record
from archimedes.simulate.methods import method_table
from archimedes.simulate.methods.method_table import Derivative, Method, Step

if TYPE_CHECKING:
    from archimedes.typing import Array, Scalar, Tree

Row = dict[int, float]
#: The tables of a method, by name.
Tables = dict[str, tuple[Row, ...]]


@record
class Tableau:
    """An explicit method as data; ``more`` are stages that only the interpolant needs.

    ``errors`` holds one row, or none for methods of fixed step (two for DOP853, whose norm
    combines them).
    """

    name: str
    #: Of the solution, of its error estimate and of the interpolant.
    orders: tuple[int, int | None, int]
    nodes: tuple[float, ...]
    stages: tuple[Row, ...]
    errors: tuple[Row, ...]
    dense: tuple[Row, ...]
    more: tuple[tuple[float, Row], ...] = ()
    #: Where |R(z)| = 1 on the negative real axis, for methods that look out for stiffness.
    stability: float | None = None


def _read_tableau(
    name: str,
    orders: tuple[int, int | None, int],
    dense: Callable[[Tables], tuple[Row, ...]] | None = None,
    stability: float | None = None,
) -> Tableau:
    """Return the tableau of a method; ``dense`` makes the interpolant of its tables, if given."""
    tables = method_table.read_tables(name)
    rows: Tables = {
        title: tuple({k: weight for k, weight in enumerate(row) if weight} for row in table)
        for title, table in tables.items()
    }
    return Tableau(
        name,
        orders,
        nodes=tables["nodes"][0],
        stages=({}, *rows["stages"]),
        errors=rows.get("errors", ()),
        dense=rows["dense"] if dense is None else dense(rows),
        more=tuple(zip(*tables.get("more_nodes", ((),)), rows.get("more_stages", ()))),
        stability=stability,
    )


def _hermite(tables: Tables) -> tuple[Row, ...]:
    """The cubic through both ends with their slopes, HNW eq. II.6.7."""
    step, last = tables["stages"][-1], len(tables["stages"])  # x1 - x0, and the slope at x1
    square = {k: 3.0 * w for k, w in step.items()}
    cube = {k: -2.0 * w for k, w in step.items()}
    square[0] = square.get(0, 0.0) - 2.0
    cube[0] = cube.get(0, 0.0) + 1.0
    return ({0: 1.0}, {**square, last: -1.0}, {**cube, last: 1.0})


def _dopri5_dense(tables: Tables) -> tuple[Row, ...]:
    """DOPRI5's interpolant is the cubic of Hermite plus theta^2 (1 - theta)^2 d."""
    linear, square, cube = _hermite(tables)
    bump = tables["bump"][0].items()
    return (
        linear,
        {**square, **{k: square.get(k, 0.0) + d for k, d in bump}},
        {**cube, **{k: cube.get(k, 0.0) - 2.0 * d for k, d in bump}},
        dict(bump),
    )


def _dop853_dense(tables: Tables) -> tuple[Row, ...]:
    """Terms F0 ... F6 of DOP853's interpolant, which is nested in theta and 1 - theta:

    theta (F0 + (1 - theta) (F1 + theta (F2 + (1 - theta) (F3 + theta (F4 + ...))))).
    """
    step = tables["stages"][-1]
    terms = [
        step,
        {**{k: -w for k, w in step.items()}, 0: 1.0 - step[0]},
        {**{k: 2.0 * w for k, w in step.items()}, 0: 2.0 * step[0] - 1.0, 12: -1.0},
        *tables["terms"],
    ]
    rows: list[Row] = [{} for _ in range(7)]
    basis = np.ones(1)
    for number, term in enumerate(terms):
        basis = np.convolve(basis, (0.0, 1.0) if number % 2 == 0 else (1.0, -1.0))
        for power, factor in enumerate(basis.tolist()):
            if factor:
                for stage, weight in term.items():
                    row = rows[power - 1]
                    row[stage] = row.get(stage, 0.0) + factor * weight
    return tuple(rows)


EULER = _read_tableau("euler", (1, None, 1))
HEUN = _read_tableau("heun", (2, 1, 2))
RK4 = _read_tableau("rk4", (4, None, 3), _hermite)
BS3 = _read_tableau("bs3", (3, 2, 3), _hermite, stability=2.51)
DOPRI5 = _read_tableau("dopri5", (5, 4, 4), _dopri5_dense, stability=3.31)
TSIT5 = _read_tableau("tsit5", (5, 4, 4), stability=3.51)
DOP853 = _read_tableau("dop853", (8, 7, 7), _dop853_dense, stability=6.39)
TABLEAUS = (EULER, HEUN, RK4, BS3, DOPRI5, TSIT5, DOP853)


def _weigh(row: Row, k: Sequence[Any], h: Scalar, x: Array | None = None) -> Any:
    """x + h times the sum of the stages with the weights of a row, in the order of the stages."""
    return combine([row[i] for i in sorted(row)], [k[i] for i in sorted(row)], None, h, x)


@method_table.piece()
def _two_norms(error: Array, scale: Array) -> Any:
    """DOP853 combines estimates of order 5 and 3 to one of order 7 (HNW eq. II.10.17)."""
    high, low = error[0] / scale, error[1] / scale
    high2, low2 = np.sum(high * high), np.sum(low * low)
    denominator = high2 + 0.01 * low2
    root = np.sqrt(np.where(denominator > 0.0, denominator, 1.0) * scale.size)
    return high2 / root


def method_of(tableau: Tableau) -> Method:
    """Make the method of a tableau."""

    def step(f: Derivative, t: Scalar, x: Array, h: Scalar, memory: Tree) -> Step:
        k = [memory]
        new = before = x
        for node, row in zip(tableau.nodes[1:], tableau.stages[1:]):
            new, before = _weigh(row, k, h, x), new
            k.append(f(t + node * h, new))
        errors = [_weigh(row, k, h) for row in tableau.errors]
        error = None if not errors else errors[0] if len(errors) == 1 else np.stack(errors)
        if tableau.stability is None:
            return Step(new, error, k[-1], k)
        last = stop_gradient((h, k[-1] - k[-2], new - before, new, k[-1]))
        return Step(new, error, k[-1], k, method_table.estimate(*last))

    def dense(f: Derivative, t: Scalar, x: Array, h: Scalar, step: Step) -> Any:
        k = list(step.stages)
        for node, row in tableau.more:
            k.append(f(t + node * h, _weigh(row, k, h, x)))
        # Neighbouring rows that weigh the same stages are made together.
        alike = itertools.groupby(tableau.dense, key=sorted)
        parts = [
            combine_rows([[row[i] for i in stages] for row in rows], [k[i] for i in stages], h)
            for stages, rows in alike
        ]
        return np.concatenate(parts)

    return Method(
        tableau.name,
        *tableau.orders,
        dense_degree=len(tableau.dense),
        start=lambda f, t, x: f(t, x),
        step=step,
        dense=dense,
        norm=_two_norms if len(tableau.errors) == 2 else method_table.rms_norm,
        stability=tableau.stability,
    )


for _tableau in TABLEAUS:
    method_table.register(method_of(_tableau))
