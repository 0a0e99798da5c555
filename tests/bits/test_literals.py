"""Constants of the package, against mpmath in 50 digits or recorded formulas."""

from __future__ import annotations

import itertools

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import archimedes as arc
from archimedes.environment import StandardAtmosphere1976
from archimedes.environment import atmosphere as standard
from archimedes.graph.derivatives import rules
from archimedes.optimize.collocation import radau
from archimedes.simulate.methods import implicit
from archimedes.simulate.stepping import trial_step
from archimedes.symbolic.core import ufuncs


@pytest.fixture(autouse=True)
def digits():
    with mpmath.workdps(50):
        yield


def test_logarithms():
    assert float(mpmath.log(mpf(0.9))) == trial_step.LOG_SAFETY
    assert float(mpmath.log(mpf(1e-4))) == trial_step.SMALLEST_LOG
    assert (float(mpmath.log(2)), float(mpmath.log(10))) == (rules._LN2, rules._LN10)
    assert float(1 / mpmath.log(2)) == ufuncs._LOG2_E


def test_bases_of_the_standard_atmosphere():
    """Equations 33a and 33b of the standard, in its own decimal numbers."""
    fall = mpf("9.80665") * mpf("28.9644") / mpf("8314.32")
    T, p = mpf("288.15"), mpf(101325)
    temperatures, pressures = [T], [p]
    layers = [(mpf(repr(base)), mpf(repr(slope))) for base, slope in standard.LAYERS]
    for (low, slope), (high, _) in itertools.pairwise(layers):
        warm = T + slope * (high - low)
        p *= (T / warm) ** (fall / slope) if slope else mpmath.exp(-fall * (high - low) / T)
        T = warm
        temperatures.append(T)
        pressures.append(p)
    assert standard.BASE_TEMPERATURE.tolist() == [float(x) for x in temperatures]
    assert standard.BASE_PRESSURE.tolist() == [float(x) for x in pressures]


def test_the_upper_atmosphere_begins_where_the_layers_end():
    layered = arc.compile(standard.layer_state, backend="interpreter")
    assert layered(standard.TOP_OF_LAYERS)[1] == standard.TOP_PRESSURE


def test_the_smooth_atmosphere_goes_through_the_standard():
    @arc.compile(backend="interpreter")
    def air(z):
        found = StandardAtmosphere1976()(z)
        return found.temperature, np.log(found.pressure), np.log(found.density)

    height, *tables = standard.read_columns("smooth_atmosphere.txt")
    assert height.tolist() == [1000.0 * k for k in range(-5, 101)]
    for table, numbers in zip(tables, air(height), strict=True):
        np.testing.assert_array_equal(table, numbers)


@pytest.mark.parametrize("k", range(1, 10))
def test_radau_points(k):
    """The nearest floats to the zeros of P_k - P_(k-1); weights that integrate powers."""

    def left(c):
        return mpmath.legendre(k, 2 * mpf(c) - 1) - mpmath.legendre(k - 1, 2 * mpf(c) - 1)

    points, weights = (rule.tolist() for rule in radau(k, (0.0, 1.0)))
    assert len(points) == len(weights) == k and points[-1] == 1.0
    for c in points[:-1]:
        below, above = ((mpf(c) + mpf(float(np.nextafter(c, end)))) / 2 for end in (0.0, 1.0))
        assert left(below) * left(above) <= 0
    for power in range(2 * k - 1):
        total = sum(mpf(w) * mpf(c) ** power for c, w in zip(points, weights))
        assert abs(total - mpf(1) / (power + 1)) < 1e-15


def test_coefficients_of_radau():
    root = mpmath.sqrt(6)
    nodes = [(4 - root) / 10, (4 + root) / 10, mpf(1)]
    inverse = mpmath.matrix([[c**j for j in (1, 2, 3)] for c in nodes]) ** -1
    assert implicit._TO_COEFFICIENTS.tolist() == [
        [float(inverse[i, j]) for j in range(3)] for i in range(3)
    ]
