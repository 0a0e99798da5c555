"""Every function of the table has derivatives, which are those of the function in 60 digits.

A function that is listed in ``PROGRAMS`` is tested here: its rows in ``PARTIALS`` are evaluated
where the function is used, and compared with differences of mpmath's function.
"""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from benchmarks.ulp import ACCURACY, interesting

from archimedes.backends.interpreter import run
from archimedes.graph import CODES, F64, Graph
from archimedes.graph.derivatives.jacobian_graphs import forward_graph
from archimedes.graph.derivatives.rules import PARTIALS
from archimedes.graph.elementary import PROGRAMS


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_operand_has_a_derivative(name):
    assert len(PARTIALS.get(name, ())) == PROGRAMS[name].arity, "a row of PARTIALS is missing"


@pytest.mark.parametrize("name", PROGRAMS)
def test_against_differences_in_many_digits(name):
    arity = PROGRAMS[name].arity
    points = np.array(interesting(name, 25, np.random.default_rng(3)))
    for k in range(name == "polygamma", arity):  # an order has no derivative
        g = Graph.with_inputs([F64] * arity)
        g.outputs = [g.emit(CODES[name], *g.inputs)]
        slope = forward_graph(g, [k])
        for x in points.T:
            exact = _difference(ACCURACY[name].mpmath, x, k)
            if not 1e-280 < abs(exact) < 1e280:
                continue
            _, got = run(slope, [*x, np.float64(1.0)])
            assert abs(mpmath.mpf(float(got)) / exact - 1) < 2e-12, (name, x, float(exact), got)


def _difference(function, x, k):
    """The derivative by operand k, from a difference whose step is far below the last digit."""
    with mpmath.workdps(500):
        step = mpmath.mpf(10) ** -60 * max(abs(mpmath.mpf(float(x[k]))), mpmath.mpf(10) ** -20)
        ends = []
        for sign in (1, -1):
            there = [mpmath.mpf(float(v)) for v in x]
            there[k] += sign * step
            ends.append(mpmath.re(function(*there)))
        return (ends[0] - ends[1]) / (2 * step)
