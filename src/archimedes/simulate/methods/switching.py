"""``auto``: an explicit method while the system allows it, a stiff one while it does not.

Tsit5 and Rodas5P have error estimates of the same order, so one step control serves both. What
tells that a system has become stiff is ``stiffness.py``; that it no longer is, the size of the
Jacobian: where h |J| lies well within the stability region of the explicit method, that would make
the same step for less.

The pair and the idea are those of L. F. Shampine, "Stiffness and nonstiff differential equation
solvers, II", ACM TOMS 3 (1977) 44-53, and C. Rackauckas, Q. Nie, "DifferentialEquations.jl",
J. Open Research Software 5 (2017) 15.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.function import cond, stop_gradient
from archimedes.simulate.methods import method_table
from archimedes.simulate.methods.explicit import TSIT5, method_of
from archimedes.simulate.methods.method_table import Derivative, Method, Step
from archimedes.simulate.methods.rosenbrock import RODAS5P
from archimedes.tree import struct

if TYPE_CHECKING:
    from archimedes.typing import Array, Scalar

EXPLICIT = method_of(TSIT5)
#: Steps of the stiff method in a row that an explicit one could have made, after which it does;
#: and up to which part of its stability region that is believed.
EASY, MARGIN = 10, 0.7
DEGREE = max(EXPLICIT.dense_degree, RODAS5P.dense_degree)


@struct
class Memory:
    """The slope at the last state, which of the methods is next, and what speaks for the other."""

    slope: Any
    stiff: Any
    suspicion: Any
    easy: Any
    stiff_steps: Any


def _start(f: Derivative, t: Scalar, x: Array) -> Memory:
    slope = f(t, x)
    none = np.where(np.isfinite(np.sum(slope)), 0, 0)
    return Memory(slope, none > 0, method_table.Suspicion(none, none), none, none)


COUNT = max(len(TSIT5.stages), 8)


def _step(f: Derivative, t: Scalar, x: Array, h: Scalar, memory: Memory) -> Step:
    def take_step(method: Method) -> tuple[Any, ...]:
        step = method.step(f, t, x, h, memory.slope)
        more = [np.zeros_like(x)] * (COUNT - len(step.stages))
        return step.x, step.error, step.memory, np.stack([*step.stages, *more]), step.stiffness

    x_new, error, slope, stages, stiffness = cond(
        memory.stiff, lambda: take_step(RODAS5P), lambda: take_step(EXPLICIT)
    )
    assert EXPLICIT.stability is not None
    suspicion = method_table.count_hits(
        memory.suspicion, stop_gradient(stiffness), EXPLICIT.stability
    )
    easy = np.where(stiffness < MARGIN * EXPLICIT.stability, memory.easy + 1, 0)
    stiff = np.where(memory.stiff, easy < EASY, method_table.is_stiff(suspicion))
    fresh = stiff != memory.stiff
    new = Memory(
        slope=slope,
        stiff=stiff,
        suspicion=tree.map(lambda count: np.where(memory.stiff | fresh, 0, count), suspicion),
        easy=np.where(memory.stiff & ~fresh, easy, 0),
        stiff_steps=memory.stiff_steps + np.where(memory.stiff, 1, 0),
    )
    return Step(x_new, error, new, (memory.stiff, stages))


def _dense(f: Derivative, t: Scalar, x: Array, h: Scalar, step: Step) -> Any:
    stiff, stages = step.stages

    def of(method: Method, count: int) -> Any:
        own = step._replace(stages=[stages[k] for k in range(count)])
        rows = method.dense(f, t, x, h, own)
        missing = DEGREE - method.dense_degree
        return np.concatenate([rows, np.zeros((missing, x.size))]) if missing else rows

    return cond(stiff, lambda: of(RODAS5P, 8), lambda: of(EXPLICIT, len(TSIT5.stages)))


AUTO = method_table.register(
    Method(
        name="auto",
        order=5,
        error_order=4,
        dense_order=4,
        dense_degree=DEGREE,
        start=_start,
        step=_step,
        dense=_dense,
        # It needs no advice.
        stiff=True,
        counts=lambda memory: {"stiff_steps": memory.stiff_steps},
    )
)
