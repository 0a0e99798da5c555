"""Explicit Runge-Kutta methods: their tableaus, and one function that steps with any of them.

Rows of a tableau are sparse: ``{stage: weight}``. The last row of ``stages`` always gives the new
state, so that the last stage is its derivative: it is the first stage of the next step, and the
slope at the end for the interpolant. ``errors`` weigh the stages to the local error over h, and
``dense[k]`` weighs them to the coefficient of theta^(k+1) over h, theta the fraction of the step.

Symbols: k[i] the derivative at stage i.
HNW: Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I, 2nd edition, 1993.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.function import stop_gradient
from archimedes.function.linear_combinations import combine, combine_rows
from archimedes.simulate.methods import dop853_table
from archimedes.simulate.methods.method_table import (
    Derivative,
    Method,
    Step,
    estimate,
    piece,
    register,
    rms_norm,
)

if TYPE_CHECKING:
    from archimedes.typing import Array, Scalar, Tree

Row = dict[int, float]


@dataclass(frozen=True)
class Tableau:
    """An explicit method as data; ``more`` are stages that only the interpolant needs.

    ``errors`` holds one row, or none for methods of fixed step (two for DOP853, whose norm
    combines them).
    """

    name: str
    order: int
    error_order: int | None
    dense_order: int
    nodes: tuple[float, ...]
    stages: tuple[Row, ...]
    errors: tuple[Row, ...]
    dense: tuple[Row, ...]
    more: tuple[tuple[float, Row], ...] = ()
    #: Where |R(z)| = 1 on the negative real axis, for methods that look out for stiffness.
    stability: float | None = None


EULER = Tableau(
    "euler", 1, None, 1, nodes=(0.0, 1.0), stages=({}, {0: 1.0}), errors=(), dense=({0: 1.0},)
)

#: Heun's method (the trapezoidal rule), HNW table II.1.1; compared with Euler's for its error.
HEUN = Tableau(
    "heun",
    2,
    1,
    2,
    nodes=(0.0, 1.0, 1.0),
    stages=({}, {0: 1.0}, {0: 0.5, 1: 0.5}),
    errors=({0: -0.5, 1: 0.5},),
    dense=({0: 1.0}, {0: -0.5, 1: 0.5}),
)


def _hermite(step: Row, last: int) -> tuple[Row, ...]:
    """The cubic through both ends with their slopes, HNW eq. II.6.7; ``step`` weighs x1 - x0."""
    square = {k: 3.0 * w for k, w in step.items()}
    cube = {k: -2.0 * w for k, w in step.items()}
    square[0] = square.get(0, 0.0) - 2.0
    cube[0] = cube.get(0, 0.0) + 1.0
    return ({0: 1.0}, {**square, last: -1.0}, {**cube, last: 1.0})


#: The classical method, HNW table II.1.2.
_RK4_STEP = {0: 1 / 6, 1: 1 / 3, 2: 1 / 3, 3: 1 / 6}
RK4 = Tableau(
    "rk4",
    4,
    None,
    3,
    nodes=(0.0, 0.5, 0.5, 1.0, 1.0),
    stages=({}, {0: 0.5}, {1: 0.5}, {2: 1.0}, _RK4_STEP),
    errors=(),
    dense=_hermite(_RK4_STEP, 4),
)

#: Bogacki and Shampine, A 3(2) pair of Runge-Kutta formulas, Appl. Math. Lett. 2 (1989) 321-325.
_BS3_STEP = {0: 2 / 9, 1: 1 / 3, 2: 4 / 9}
BS3 = Tableau(
    "bs3",
    3,
    2,
    3,
    nodes=(0.0, 0.5, 0.75, 1.0),
    stages=({}, {0: 0.5}, {1: 0.75}, _BS3_STEP),
    errors=({0: -5 / 72, 1: 1 / 12, 2: 1 / 9, 3: -1 / 8},),
    dense=_hermite(_BS3_STEP, 3),
    stability=2.51,
)

#: Dormand and Prince, HNW table II.5.2; the interpolant is the one of DOPRI5, HNW II.6.
_DOPRI5_STEP = {0: 35 / 384, 2: 500 / 1113, 3: 125 / 192, 4: -2187 / 6784, 5: 11 / 84}
_DOPRI5_D = {
    0: -12715105075 / 11282082432,
    2: 87487479700 / 32700410799,
    3: -10690763975 / 1880347072,
    4: 701980252875 / 199316789632,
    5: -1453857185 / 822651844,
    6: 69997945 / 29380423,
}


def _dopri5_dense() -> tuple[Row, ...]:
    """DOPRI5's interpolant is the cubic of Hermite plus theta^2 (1 - theta)^2 d."""
    linear, square, cube = _hermite(_DOPRI5_STEP, 6)
    bump = _DOPRI5_D.items()
    return (
        linear,
        {**square, **{k: square.get(k, 0.0) + d for k, d in bump}},
        {**cube, **{k: cube.get(k, 0.0) - 2.0 * d for k, d in bump}},
        dict(bump),
    )


DOPRI5 = Tableau(
    "dopri5",
    5,
    4,
    4,
    nodes=(0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0),
    stages=(
        {},
        {0: 1 / 5},
        {0: 3 / 40, 1: 9 / 40},
        {0: 44 / 45, 1: -56 / 15, 2: 32 / 9},
        {0: 19372 / 6561, 1: -25360 / 2187, 2: 64448 / 6561, 3: -212 / 729},
        {0: 9017 / 3168, 1: -355 / 33, 2: 46732 / 5247, 3: 49 / 176, 4: -5103 / 18656},
        _DOPRI5_STEP,
    ),
    errors=(
        {0: 71 / 57600, 2: -71 / 16695, 3: 71 / 1920, 4: -17253 / 339200, 5: 22 / 525, 6: -1 / 40},
    ),
    dense=_dopri5_dense(),
    stability=3.31,
)


def _times(scale: float, *factors: tuple[float, ...]) -> list[float]:
    """Coefficients of a product of polynomials, from the constant term up."""
    product = [scale]
    for factor in factors:
        new = [0.0] * (len(product) + len(factor) - 1)
        for i, a in enumerate(product):
            for j, b in enumerate(factor):
                new[i + j] += a * b
        product = new
    return product


def _tsit5_dense() -> tuple[Row, ...]:
    square = (0.0, 0.0, 1.0)
    weights = [
        _times(
            -1.0530884977290216,
            (0.0, 1.0),
            (-1.3299890189751412, 1.0),
            (0.7139816917074209, -1.4364028541716351, 1.0),
        ),
        _times(0.1017, square, (1.2949852507374631, -2.1966568338249754, 1.0)),
        _times(2.490627285651252793, square, (1.57803468208092486, -2.38535645472061657, 1.0)),
        _times(
            -16.54810288924490272, square, (-1.21712927295533244, 1.0), (-0.61620406037800089, 1.0)
        ),
        _times(
            47.37952196281928122, square, (-1.203071208372362603, 1.0), (-0.658047292653547382, 1.0)
        ),
        _times(-34.87065786149660974, square, (-1.2, 1.0), (-0.666666666666666667, 1.0)),
        _times(2.5, square, (-1.0, 1.0), (-0.6, 1.0)),
    ]
    return tuple({i: w[k] for i, w in enumerate(weights) if w[k] != 0.0} for k in range(1, 5))


#: Tsitouras, Runge-Kutta pairs of order 5(4) satisfying only the first column simplifying
#: assumption, Comput. Math. Appl. 62 (2011) 770-775.
TSIT5 = Tableau(
    "tsit5",
    5,
    4,
    4,
    nodes=(0.0, 0.161, 0.327, 0.9, 0.9800255409045097, 1.0, 1.0),
    stages=(
        {},
        {0: 0.161},
        {0: -0.008480655492356989, 1: 0.335480655492357},
        {0: 2.8971530571054935, 1: -6.359448489975075, 2: 4.3622954328695815},
        {
            0: 5.325864828439257,
            1: -11.748883564062828,
            2: 7.4955393428898365,
            3: -0.09249506636175525,
        },
        {
            0: 5.86145544294642,
            1: -12.92096931784711,
            2: 8.159367898576159,
            3: -0.071584973281401,
            4: -0.028269050394068383,
        },
        {
            0: 0.09646076681806523,
            1: 0.01,
            2: 0.4798896504144996,
            3: 1.379008574103742,
            4: -3.290069515436081,
            5: 2.324710524099774,
        },
    ),
    errors=(
        {
            0: 0.00178001105222577714,
            1: 0.0008164344596567469,
            2: -0.007880878010261995,
            3: 0.1447110071732629,
            4: -0.5823571654525552,
            5: 0.45808210592918697,
            6: -1 / 66,
        },
    ),
    dense=_tsit5_dense(),
    stability=3.51,
)


def _dop853_dense() -> tuple[Row, ...]:
    """Terms F0 ... F6 of DOP853's interpolant, which is nested in theta and 1 - theta:

    theta (F0 + (1 - theta) (F1 + theta (F2 + (1 - theta) (F3 + theta (F4 + ...))))).
    """
    step = dop853_table.STAGES[12]
    terms = [
        step,
        {**{k: -w for k, w in step.items()}, 0: 1.0 - step[0]},
        {**{k: 2.0 * w for k, w in step.items()}, 0: 2.0 * step[0] - 1.0, 12: -1.0},
        *dop853_table.DENSE,
    ]
    rows: list[Row] = [{} for _ in range(7)]
    basis = [1.0]
    for number, term in enumerate(terms):
        basis = _times(1.0, tuple(basis), (0.0, 1.0) if number % 2 == 0 else (1.0, -1.0))
        for power, factor in enumerate(basis):
            if factor:
                for stage, weight in term.items():
                    row = rows[power - 1]
                    row[stage] = row.get(stage, 0.0) + factor * weight
    return tuple(rows)


DOP853 = Tableau(
    "dop853",
    8,
    7,
    7,
    nodes=dop853_table.NODES[:13],
    stages=dop853_table.STAGES[:13],
    errors=(dop853_table.ERROR_5, dop853_table.ERROR_3),
    dense=_dop853_dense(),
    more=tuple(zip(dop853_table.NODES[13:], dop853_table.STAGES[13:])),
    stability=6.39,
)

TABLEAUS = (EULER, HEUN, RK4, BS3, DOPRI5, TSIT5, DOP853)


def _weigh(row: Row, k: Sequence[Any], h: Scalar, x: Array | None = None) -> Any:
    """x + h times the sum of the stages with the weights of a row, in the order of the stages."""
    return combine([row[i] for i in sorted(row)], [k[i] for i in sorted(row)], None, h, x)


@piece()
def _two_norms(error: Array, scale: Array) -> Any:
    """DOP853 combines estimates of order 5 and 3 to one of order 7 (HNW eq. II.10.17)."""
    high, low = error[0] / scale, error[1] / scale
    high2, low2 = np.sum(high * high), np.sum(low * low)
    denominator = high2 + 0.01 * low2
    root = np.sqrt(np.where(denominator > 0.0, denominator, 1.0) * scale.size)
    return high2 / root


def method_of(tableau: Tableau) -> Method:
    """Make the method of a tableau."""

    def start(f: Derivative, t: Scalar, x: Array) -> Any:
        return f(t, x)

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
        return Step(new, error, k[-1], k, estimate(*last))

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
        name=tableau.name,
        order=tableau.order,
        error_order=tableau.error_order,
        dense_order=tableau.dense_order,
        dense_degree=len(tableau.dense),
        start=start,
        step=step,
        dense=dense,
        norm=_two_norms if len(tableau.errors) == 2 else rms_norm,
        stability=tableau.stability,
    )


for _tableau in TABLEAUS:
    register(method_of(_tableau))
