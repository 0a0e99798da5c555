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
from archimedes.simulate.methods import method_table
from archimedes.simulate.methods.implicit import linearize, product
from archimedes.simulate.methods.method_table import Derivative, Method, Step

if TYPE_CHECKING:
    from archimedes.typing import Array, Scalar, Tree


GAMMA = 0.21193756319429014
_TABLES = method_table.read_tables("rodas5p")
#: Times of the stages, and weights of f_t.
ALPHA, GAMMA_I = _TABLES["times"]
_A = ((), *_TABLES["a"])
A = (*_A, (*_A[-1], 1.0), (*_A[-1], 1.0, 1.0))
WEIGHTS = (*_A[-1], 1.0, 1.0, 1.0)
C = ((), *_TABLES["c"])
DENSE = _TABLES["dense"]


class WithMass:
    """f of M dx/dt = f(t, x), to be called, with ``mass(t, x)`` (n, n), which is constant."""

    def __init__(self, f: Derivative, mass: Callable[[Any, Any], Any]) -> None:
        self.f = f
        self.mass = mass

    def __call__(self, t: Scalar, x: Array) -> Any:
        """Return f(t, x)."""
        return self.f(t, x)


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


RODAS5P = method_table.register(
    Method(
        name="rodas5p",
        order=5,
        error_order=4,
        dense_order=4,
        dense_degree=4,
        start=lambda f, t, x: f(t, x),
        step=_step,
        dense=_dense,
        stiff=True,
    )
)
