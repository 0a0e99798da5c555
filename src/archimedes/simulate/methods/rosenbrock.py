"""Rodas5P: a Rosenbrock method for stiff systems, order 5(4), with dense output of order 4.

Linearly implicit: eight solves per step with one matrix, no iteration that could fail. L-stable and
stiffly accurate, the embedded method too. The Jacobian and the time derivative are those of the
recorded right-hand side.

Sources: G. Steinebach, "Construction of Rosenbrock-Wanner method Rodas5P and numerical benchmarks
within the Julia Differential Equations package", BIT Numerical Mathematics 63:27 (2023), for the
coefficients; E. Hairer, G. Wanner, "Solving Ordinary Differential Equations II", section IV.7,
eq. (7.25), for the transformed form, in which no product with the Jacobian is left.

Symbols: J = df/dx and f_t = df/dt at (t, x), u_i increments, g = gamma:

    (M / (g h) - J) u_i = f(t + alpha_i h, x + sum_j a_ij u_j) + M sum_j c_ij u_j / h + g_i h f_t

M is the identity, or the matrix of M dx/dt = f(t, x), which may be singular: a DAE of index 1,
for which the method has the same orders.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.function import stop_gradient
from archimedes.function.linear_combinations import combine
from archimedes.simulate.methods.implicit import linearize, product
from archimedes.simulate.methods.method_table import Derivative, Method, Step, register

if TYPE_CHECKING:
    from archimedes.typing import Array, Scalar, Tree


def read_rows(text: str) -> tuple[tuple[float, ...], ...]:
    """Return the rows of a table, which end with semicolons.

    >>> read_rows("; 1.0 2.0")
    ((), (1.0, 2.0))
    """
    return tuple(tuple(map(float, row.split())) for row in text.split(";"))


GAMMA = 0.21193756319429014
#: Times of the stages: rows of the untransformed a_ij summed; and weights of f_t.
ALPHA, GAMMA_I = read_rows(
    """
    0.0  0.6358126895828704  0.4095798393397535  0.9769306725060716  0.4288403609558664  1.0  1.0
    1.0 ;
    0.21193756319429014  -0.42387512638858027  -0.3384627126235924  1.8046452872882734
    2.325825639765069  0.0  0.0  0.0
    """
)
#: Row 6 and those before it. Rows 7 and 8 and the solution itself add one more increment each to
#: row 6 (stiffly accurate).
_A = read_rows(
    """
    ;
    3.0 ;
    2.849394379747939  0.45842242204463923 ;
    -6.954028509809101  2.489845061869568  -10.358996098473584 ;
    2.8029986275628964  0.5072464736228206  -0.3988312541770524  -0.04721187230404641 ;
    -7.502846399306121  2.561846144803919  -11.627539656261098  -0.18268767659942256
    0.030198172008377946
    """
)
A = (*_A, (*_A[-1], 1.0), (*_A[-1], 1.0, 1.0))
WEIGHTS = (*_A[-1], 1.0, 1.0, 1.0)
C = read_rows(
    """
    ;
    -14.155112264123755 ;
    -17.97296035885952  -2.859693295451294 ;
    147.12150275711716  -1.41221402718213  71.68940251302358 ;
    165.43517024871676  -0.4592823456491126  42.90938336958603  -5.961986721573306 ;
    24.854864614690072  -3.0009227002832186  47.4931110020768  5.5814197821558125
    -0.6610691825249471 ;
    30.91273214028599  -3.1208243349937974  77.79954646070892  34.28646028294783
    -19.097331116725623  -28.087943162872662 ;
    37.80277123390563  -3.2571969029072276  112.26918849496327  66.9347231244047
    -40.06618937091002  -54.66780262877968  -9.48861652309627
    """
)
#: x(t + theta h) = (1 - theta) x + theta (x_new + (1 - theta) (d_1 + theta (d_2 + theta d_3)))
#: with d_k = sum over j of DENSE[k-1][j] u_j.
DENSE = read_rows(
    """
    25.948786856663858  -2.5579724845846235  10.433815404888879  -2.3679251022685204
    0.524948541321073  1.1241088310450404  0.4272876194431874  -0.17202221070155493 ;
    -9.91568850695171  -0.9689944594115154  3.0438037242978453  -24.495224566215796
    20.176138334709044  15.98066361424651  -6.789040303419874  -6.710236069923372 ;
    11.419903575922262  2.8879645146136994  72.92137995996029  80.12511834622643
    -52.072871366152654  -59.78993625266729  -0.15582684282751913  4.883087185713722
    """
)


class WithMass:
    """f of M dx/dt = f(t, x), to be called, with ``mass(t, x)`` (n, n), which is constant."""

    def __init__(self, f: Derivative, mass: Callable[[Any, Any], Any]) -> None:
        self.f = f
        self.mass = mass

    def __call__(self, t: Scalar, x: Array) -> Any:
        """Return f(t, x)."""
        return self.f(t, x)


def _start(f: Derivative, t: Scalar, x: Array) -> Any:
    return f(t, x)


def _step(f: Derivative, t: Scalar, x: Array, h: Scalar, memory: Tree) -> Step:
    f_t, jacobian = linearize(f, t, x)
    mass = f.mass(t, x) if isinstance(f, WithMass) else None
    shift = 1.0 / (GAMMA * h) if mass is None else mass / (GAMMA * h)
    solve = jacobian.solver(shift, -1.0)
    u: list[Any] = []
    for alpha, gamma, a, c in zip(ALPHA, GAMMA_I, A, C):
        slope = f(t + alpha * h, combine(a, u, x)) if u else memory
        before = combine(c, u) / h if u else None
        if before is not None and mass is not None:
            before = product(mass, before)
        right = slope if before is None else slope + before
        u.append(solve(right + (gamma * h) * f_t if gamma else right))
    x_new = combine(WEIGHTS, u, x)
    size = stop_gradient(np.abs(h) * jacobian.norm())
    return Step(x_new, u[-1], f(t + h, x_new), u, size)


def _dense(f: Derivative, t: Scalar, x: Array, h: Scalar, step: Step) -> Any:
    first, second, third = (combine(row, step.stages) for row in DENSE)
    return np.stack([step.x - x + first, second - first, third - second, -third])


RODAS5P = register(
    Method(
        name="rodas5p",
        order=5,
        error_order=4,
        dense_order=4,
        dense_degree=4,
        start=_start,
        step=_step,
        dense=_dense,
        stiff=True,
    )
)
