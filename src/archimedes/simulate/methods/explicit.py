"""Explicit Runge-Kutta methods: one stepper around the tableaus.

Symbols: k[i] the derivative at stage i; a row of a tableau weighs them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.function import stop_gradient
from archimedes.function.linear_combinations import weighted, weighted_rows
from archimedes.simulate.methods.method_table import Derivative, Method, Step, register, rms_norm
from archimedes.simulate.methods.pieces import piece
from archimedes.simulate.methods.stiffness import estimate
from archimedes.simulate.methods.tableaus import TABLEAUS, Row, Tableau

__all__ = ["method_of"]


def _weigh(row: Row, k: Sequence[Any], h: Any, x: Any = None) -> Any:
    """x + h times the sum of the stages with the weights of a row, in the order of the stages."""
    return weighted([row[i] for i in sorted(row)], [k[i] for i in sorted(row)], None, h, x)


@piece()
def _two_norms(error: Any, scale: Any) -> Any:
    """DOP853 combines estimates of order 5 and 3 to one of order 7 (HNW eq. II.10.17)."""
    high, low = error[0] / scale, error[1] / scale
    high2, low2 = np.sum(high * high), np.sum(low * low)
    denominator = high2 + 0.01 * low2
    root = np.sqrt(np.where(denominator > 0.0, denominator, 1.0) * scale.size)
    return high2 / root


def method_of(tableau: Tableau) -> Method:
    """Make the method of a tableau."""

    def start(f: Derivative, t: Any, x: Any) -> Any:
        return f(t, x)

    def step(f: Derivative, t: Any, x: Any, h: Any, memory: Any) -> Step:
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

    def dense(f: Derivative, t: Any, x: Any, h: Any, step: Step) -> Any:
        k = list(step.stages)
        for node, row in tableau.more:
            k.append(f(t + node * h, _weigh(row, k, h, x)))
        # Neighbouring rows that weigh the same stages are made together.
        alike = itertools.groupby(tableau.dense, key=sorted)
        parts = [
            weighted_rows([[row[i] for i in stages] for row in rows], [k[i] for i in stages], h)
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
