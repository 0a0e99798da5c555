"""Optimal control and quadratic programs in recorded code."""

from __future__ import annotations

import numpy as np

import archimedes as arc
from archimedes.errors import TraceError
from archimedes.optimize import OptimalControl
from tests.misuse.catalogue import entry

PUSHED = OptimalControl(
    lambda t, x, u, k: k * u, running_cost=lambda t, x, u, k: u**2, initial=0.0, final=1.0
)


@entry("optimal control", error=TraceError, says=["solve outside"], line=False)
def a_trajectory_in_recorded_code(run):
    def cost(k):
        return np.round(PUSHED.solve({"x": 0.0, "u": 0.0}, intervals=2, args=(k,)).fun, 6)

    return run(cost)(1.0)


@entry("optimal control")
def a_quadratic_program_of_our_own(run):
    return run(lambda k: arc.qpsol(lambda x: (x - k) ** 2, None, 0.0).x.round(6))(1.0)
