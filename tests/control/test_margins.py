"""Stability margins of random loops against roots of polynomials, and python-control."""

from __future__ import annotations

import numpy as np
import pytest

from archimedes.control import StateSpace, margins, tf2ss
from tests.control.polynomial_margins import polynomial_margins
from tests.optional_packages import import_or_skip

#: mpmath is about to turn the order of coefficients around.
pytestmark = pytest.mark.filterwarnings("ignore:Descending:DeprecationWarning")

#: A few loops at each run of the tests, 400 in the long one.
SOME = [range(40), pytest.param(range(40, 400), marks=pytest.mark.long)]


def random_roots(rng, count, discrete, unstable):
    """Roots of a real polynomial, mostly on the stable side."""
    roots = []
    while len(roots) < count:
        pair, flip = count - len(roots) > 1 and rng.random() < 0.5, rng.random() < unstable
        if discrete and pair:
            root = rng.uniform(0.2, 0.98) * np.exp(1j * rng.uniform(0.05, 3.0))
        elif discrete:
            root = rng.uniform(-0.98, 0.98)
        else:
            root = -rng.uniform(0.02, 1.0) * 10.0 ** rng.uniform(-1, 1)
            root = root + 1j * 10.0 ** rng.uniform(-1, 1) if pair else root
        if flip:
            root = 1.0 / np.conj(root) if discrete else -np.conj(root)
        roots += [root, np.conj(root)] if pair else [root]
    return roots


def random_loop(seed):
    """Continuous and in steps in turn, some with a direct feedthrough, an integrator, a sign."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    dt = None if seed % 2 else float(10.0 ** rng.uniform(-3, 0))
    discrete = dt is not None
    poles = random_roots(rng, n, discrete, 0.15)
    if seed % 7 == 3:
        poles = [1.0 if discrete else 0.0, *random_roots(rng, n - 1, discrete, 0.1)]
    zeros = random_roots(rng, n if seed % 3 == 0 else int(rng.integers(0, n + 1)), discrete, 0.3)
    gain = 10.0 ** rng.uniform(-1, 1) * rng.choice([1.0, 1.0, -1.0])
    return gain * np.atleast_1d(np.poly(zeros)).real, np.atleast_1d(np.poly(poles)).real, dt


def check(found, exact):
    for name in exact._fields:
        value, wanted = getattr(found, name), getattr(exact, name)
        if np.isfinite(wanted):
            assert value == pytest.approx(wanted, rel=1e-7, abs=1e-9), name
        else:
            np.testing.assert_equal(value, wanted, name)


@pytest.mark.parametrize("seeds", SOME)
def test_random_loops(seeds):
    for seed in seeds:
        num, den, dt = random_loop(seed)
        check(margins(tf2ss(num, den, dt)), polynomial_margins(num, den, dt))


@pytest.mark.parametrize("seeds", SOME)
def test_random_loops_in_other_units(seeds):
    """The same loops with their states in units from 1e-5 to 1e5."""
    for seed in seeds:
        num, den, dt = random_loop(seed)
        loop = tf2ss(num, den, dt)
        units = 10.0 ** np.random.default_rng(seed).uniform(-5, 5, len(loop.A))[:, None]
        A, B, C = loop.A * units / units.T, loop.B * units, loop.C / units.T
        check(margins(StateSpace(A, B, C, loop.D, dt)), polynomial_margins(num, den, dt))


def test_the_margins_of_some_loops_are_at_the_highest_frequency():
    """The random loops above hold the cases that need it, in continuous time and in steps."""
    highest = {True: 0, False: 0}
    for seed in range(40):
        num, den, dt = random_loop(seed)
        w = margins(tf2ss(num, den, dt)).gain_frequency
        highest[dt is None] += w == (np.inf if dt is None else np.pi / dt)
    assert min(highest.values()) >= 2


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_a_loop_at_its_gain_margin_is_on_the_limit(seed):
    """With that gain the closed loop has a pole on the limit of stability, by NumPy's roots.

    A gain at infinity takes the highest power out of den + gain num, a pole to infinity.
    """
    num, den, dt = random_loop(seed)
    found = margins(tf2ss(num, den, dt))
    if not np.isfinite(found.gain):
        return
    closed = np.polyadd(den, found.gain * num)
    if np.isinf(found.gain_frequency):
        assert abs(closed[0]) < 1e-12 * np.abs(closed).max()
        return
    poles = np.roots(closed)
    away = np.abs(poles.real) if dt is None else np.abs(np.abs(poles) - 1.0)
    assert away.min() < 1e-7 * (1.0 + np.abs(poles[np.argmin(away)]))


def test_infinite_frequency():
    """L = -(s + 2) / (2 s + 8): from -1/4 to -1/2, so that a gain of 2 ends at -1."""
    found = margins(tf2ss([-1.0, -2.0], [2.0, 8.0]))
    assert found.gain == pytest.approx(2.0, rel=1e-14)
    assert found.gain_frequency == np.inf
    assert (found.phase, found.delay) == (np.inf, np.inf)
    # |L| = 1 at infinity only: L = (s - 1) / (s + 2) is +1 there.
    found = margins(tf2ss([1.0, -1.0], [1.0, 2.0]))
    assert found.phase == pytest.approx(np.pi)
    assert found.phase_frequency == np.inf
    assert found.delay == 0.0  # any delay turns +1 into -1 at some frequency
    assert margins(tf2ss([3.0, 1.0], [1.0, 2.0])).delay == 0.0


def test_highest_frequency_in_steps():
    """L = 0.5 / z: -0.5 at z = -1."""
    found = margins(tf2ss([0.5], [1.0, 0.0], 0.1))
    assert found.gain == pytest.approx(2.0, rel=1e-14)
    assert found.gain_frequency == pytest.approx(10.0 * np.pi, rel=1e-14)


def test_loops_that_are_real_everywhere():
    """1 / s^2 is -1 at w = 1: on the limit of stability, with no margin at all."""
    found = margins(tf2ss([1.0], [1.0, 0.0, 0.0]))
    assert (found.gain, found.gain_frequency) == pytest.approx((1.0, 1.0), abs=1e-8)
    assert found.phase == pytest.approx(0.0, abs=1e-8)


def test_python_control_where_it_looks():
    """It does not look at infinite frequency; elsewhere both agree."""
    control = import_or_skip("control")
    compared = 0
    for seed in range(1, 60, 2):
        num, den, dt = random_loop(seed)
        found = margins(tf2ss(num, den, dt))
        gm, pm, _, wcg, wcp, _ = control.stability_margins(control.TransferFunction(num, den))
        if found.gain_frequency in (0.0, np.inf) or not np.isfinite([gm, pm]).all():
            continue
        compared += 1
        np.testing.assert_allclose(found.gain, gm, rtol=1e-6)
        np.testing.assert_allclose(np.rad2deg(found.phase), abs(pm), rtol=1e-6)
        np.testing.assert_allclose(found.gain_frequency, wcg, rtol=1e-5)
        np.testing.assert_allclose(found.phase_frequency, wcp, rtol=1e-5)
    assert compared >= 5
