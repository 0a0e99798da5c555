"""Orbits against published examples, SPICE, our own integration, and conservation laws."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import archimedes as arc
from archimedes.environment import (
    KeplerElements,
    eccentric_to_mean,
    eccentric_to_true,
    kepler_propagate,
    mean_to_eccentric,
    mean_to_true,
    true_to_eccentric,
    true_to_mean,
)
from tests.environment.backends import check_batched, check_everywhere
from tests.optional_packages import import_or_skip

#: As printed in Vallado's and Curtis's books, in m^3/s^2.
VALLADO, CURTIS = 3.986004418e14, 3.986e14
KM = 1e3
ECCENTRICITIES = [0.0, 1e-12, 0.1, 0.7, 0.99, 1 - 1e-9, 1.0, 1 + 1e-9, 1.01, 1.5, 20.0]


def elements(e: float, mu: float = 1.0, nu: float = 0.9) -> KeplerElements:
    return KeplerElements(1.7, e, 0.7, 4.0, 2.0, nu, mu)


def state_of(orbit: KeplerElements) -> np.ndarray:
    return np.concatenate(orbit.as_cartesian(), axis=-1)


# ---- published examples --------------------------------------------------------------------------


def test_vallado_example_2_5():
    """Fundamentals of Astrodynamics and Applications, 4th ed., 2013, p. 114."""
    p_I = KM * np.array([6524.834, 6862.875, 6448.296])
    v_I = KM * np.array([4.901327, 5.533756, -1.976341])
    orbit = KeplerElements.from_cartesian(p_I, v_I, VALLADO)
    np.testing.assert_allclose([orbit.p / KM, orbit.a / KM], [11067.79, 36127.343], rtol=2e-6)
    assert orbit.e == pytest.approx(0.832853, abs=1e-6)
    angles = np.rad2deg([orbit.i, orbit.raan, orbit.argp, orbit.nu])
    np.testing.assert_allclose(angles, [87.870, 227.898, 53.38, 92.335], atol=6e-3)


def test_vallado_example_2_6():
    orbit = KeplerElements(
        11067790.0, 0.83285, *np.deg2rad([87.87, 227.89, 53.38, 92.335]), VALLADO
    )
    p_I, v_I = orbit.as_cartesian()
    np.testing.assert_allclose(p_I / KM, [6525.344, 6861.535, 6449.125], rtol=2e-5)
    np.testing.assert_allclose(v_I / KM, [4.902276, 5.533124, -1.975709], rtol=2e-5)


def test_vallado_example_2_4():
    """Kepler's problem by universal variables, 4th ed., p. 95."""
    p_I = KM * np.array([1131.340, -2282.343, 6672.423])
    v_I = KM * np.array([-5.64305, 4.30333, 2.42879])
    p, v = kepler_propagate(p_I, v_I, 2400.0, VALLADO)
    np.testing.assert_allclose(p / KM, [-4219.7527, 4363.0292, -3958.7666], rtol=1e-6)
    np.testing.assert_allclose(v / KM, [3.689866, -1.916735, -6.112511], rtol=1e-6)


@pytest.mark.parametrize(
    ("M", "e", "E"),
    [(np.deg2rad(235.4), 0.4, np.deg2rad(220.512074)), (np.deg2rad(235.4), 2.4, 1.601376144)],
)
def test_vallado_examples_2_1_and_2_3(M, e, E):
    assert mean_to_eccentric(M, e) == pytest.approx(E, rel=1e-8)


def test_curtis_example_4_3():
    """Orbital Mechanics for Engineering Students, 3rd ed., 2014: elements of a state."""
    p_I, v_I = KM * np.array([-6045, -3490, 2500.0]), KM * np.array([-3.457, 6.618, 2.533])
    orbit = KeplerElements.from_cartesian(p_I, v_I, CURTIS)
    assert orbit.angular_momentum / 1e6 == pytest.approx(58310, abs=5)
    assert orbit.e == pytest.approx(0.1712, abs=5e-5)
    angles = np.rad2deg([orbit.i, orbit.raan, orbit.argp, orbit.nu])
    np.testing.assert_allclose(angles, [153.2, 255.3, 20.07, 28.45], atol=0.05)
    assert orbit.period / 3600 == pytest.approx(2.278, abs=2e-3)


def test_curtis_example_4_7():
    """A hyperbola: h = 80000 km^2/s, e = 1.4."""
    h = 80000e6
    angles = np.deg2rad([30.0, 40.0, 60.0, 30.0])
    orbit = KeplerElements(h**2 / CURTIS, 1.4, *angles, CURTIS)
    p_I, v_I = orbit.as_cartesian()
    np.testing.assert_allclose(p_I / KM, [-4040, 4815, 3629], atol=1.0)
    np.testing.assert_allclose(v_I / KM, [-10.39, -4.772, 1.744], atol=6e-3)


def test_curtis_examples_of_time():
    """Examples 3.1, 3.4 and 3.5: an ellipse, a parabola and a hyperbola; the book rounds."""
    ellipse = KeplerElements.from_classical(15300e3, 0.37255, nu=np.deg2rad(120.0), mu=3.986e14)
    assert ellipse.time_since_periapsis == pytest.approx(4077, abs=2)
    # Example 3.4: a parabola with 10 km/s at periapsis; 6 h later it is 86,899 km away.
    q = 2 * 398600e9 / 10000.0**2
    parabola = KeplerElements(2 * q, 1.0, mu=398600e9).propagate(6 * 3600.0)
    assert np.linalg.norm(parabola.as_cartesian()[0]) / KM == pytest.approx(86899, rel=1.5e-3)
    assert np.rad2deg(parabola.nu) == pytest.approx(144.75, abs=0.02)
    # Barker's equation has a closed form: tan(nu/2) = 2 sinh(arcsinh(3 M / 2) / 3).
    M = 6 * 3600.0 * np.sqrt(398600e9 / (2 * q**3))
    tangent = 2 * np.sinh(np.arcsinh(1.5 * M) / 3)
    np.testing.assert_allclose(parabola.nu, 2 * np.arctan(tangent), rtol=1e-14)
    # Example 3.5: perigee at 300 km with 15 km/s, at 100 deg after 4141 s, 3 h later at 163,180 km.
    h = 6678e3 * 15000.0
    hyperbola = KeplerElements(h**2 / 398600e9, 2.7696, nu=np.deg2rad(100.0), mu=398600e9)
    assert hyperbola.time_since_periapsis == pytest.approx(4141.4, rel=2e-3)
    later = hyperbola.propagate(3 * 3600.0)
    assert np.linalg.norm(later.as_cartesian()[0]) / KM == pytest.approx(163180, rel=2e-3)


# ---- other programs ------------------------------------------------------------------------------


@pytest.mark.parametrize("e", ECCENTRICITIES)
def test_against_spice(e):
    spice = import_or_skip("spiceypy")
    rng = np.random.default_rng(3)
    q, mu = 0.8, 1.3
    reach = np.pi if e < 1 else 0.9 * np.arccos(-1 / e)
    for _ in range(20):
        i, raan, argp = rng.uniform([0.1, 0, 0], [3.0, 6.2, 6.2])
        orbit = KeplerElements(q * (1 + e), e, i, raan, argp, rng.uniform(-reach, reach), mu)
        state = state_of(orbit)
        rp, ecc, inc, lnode, peri, M0, _, _ = spice.oscelt(state, 0.0, mu)
        found = KeplerElements.from_cartesian(state[:3], state[3:], mu)
        np.testing.assert_allclose([found.periapsis, found.e], [rp, ecc], rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose([found.i, found.raan], [inc, lnode], rtol=1e-13)
        if 1e-6 < e < 0.999 or e > 1.001:
            assert found.argp == pytest.approx(peri, rel=1e-12)
            assert np.cos(found.mean_anomaly - M0) == pytest.approx(1.0, abs=1e-12)
        for dt in (-7.0, 0.3, 4.0, 50.0):
            expected = spice.prop2b(mu, state, dt)
            scale = np.abs(expected).max()
            ours = np.concatenate(kepler_propagate(state[:3], state[3:], dt, mu))
            np.testing.assert_allclose(ours, expected, rtol=0, atol=2e-12 * scale)
            by_elements = state_of(orbit.propagate(dt))
            np.testing.assert_allclose(by_elements, expected, rtol=0, atol=2e-11 * scale)


@pytest.mark.parametrize("e", [0.0, 0.6, 1.0, 1.4])
def test_against_integration(e):
    """The solver of order eight along the same orbit; radial speeds of either sign."""
    start = state_of(elements(e, nu=-1.2))

    def attraction(t, x):
        return np.concatenate([x[3:], -x[:3] / np.sum(x[:3] ** 2) ** 1.5])

    times = np.linspace(0.0, 6.0, 7)
    flown = arc.odeint(
        attraction, (0.0, 6.0), start, method="dop853", t_eval=times, rtol=1e-13, atol=1e-13
    )
    p, v = kepler_propagate(start[:3], start[3:], times, 1.0)
    np.testing.assert_allclose(np.concatenate([p, v], axis=-1).T, flown, atol=1e-11)


# ---- laws ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("e", ECCENTRICITIES)
def test_there_and_back(e):
    reach = np.pi if e < 1 else 0.95 * np.arccos(-1 / e)
    nu = np.random.default_rng(1).uniform(-reach, reach, 50)
    orbit = KeplerElements(1.7, e, 0.7, 4.0, 2.0, nu, 2.0)
    found = KeplerElements.from_cartesian(*orbit.as_cartesian(), 2.0)
    np.testing.assert_allclose(state_of(found), state_of(orbit), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(found.p, 1.7, rtol=1e-14)
    np.testing.assert_allclose(found.e, e, rtol=1e-14, atol=2e-15)
    if e > 1e-6:
        np.testing.assert_allclose(found.nu, nu, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(found.argp, 2.0, rtol=1e-11)
    p_I, v_I = orbit.as_cartesian()
    r = np.linalg.norm(p_I, axis=-1)
    np.testing.assert_allclose(
        np.sum(v_I**2, -1) / 2 - 2.0 / r, np.broadcast_to(orbit.energy, 50), rtol=1e-12, atol=4e-14
    )
    momentum = np.linalg.norm(np.cross(p_I, v_I), axis=-1)
    np.testing.assert_allclose(momentum, np.broadcast_to(orbit.angular_momentum, 50), rtol=1e-14)


@pytest.mark.parametrize("e", ECCENTRICITIES)
def test_propagation_is_a_group_and_conserves(e):
    start = state_of(elements(e))
    rng = np.random.default_rng(5)
    for one, two in rng.uniform(-20, 20, (10, 2)):
        p, v = kepler_propagate(start[:3], start[3:], one + two, 1.0)
        middle = kepler_propagate(start[:3], start[3:], one, 1.0)
        again = np.concatenate(kepler_propagate(*middle, two, 1.0))
        scale = max(1.0, np.abs(p).max())
        np.testing.assert_allclose(again, [*p, *v], atol=3e-12 * scale)
        np.testing.assert_allclose(np.cross(p, v), np.cross(start[:3], start[3:]), rtol=1e-12)
        energy = v @ v / 2 - 1 / np.linalg.norm(p)
        assert energy == pytest.approx(float(elements(e).energy), abs=1e-13 * max(1.0, e * e))


def test_one_orbit_prints_as_numbers():
    orbit = KeplerElements.from_cartesian([7e6, 0, 0], [0.0, 8e3, 0.0])
    for shown in (repr(orbit), repr(KeplerElements.from_classical(7e6, 0.01))):
        assert "array" not in shown and "KeplerElements" in shown


def test_special_planes():
    """Equatorial, retrograde and round orbits have a state for their elements, and one way back."""
    for i in (0.0, np.pi, 1e-17, np.pi / 2):
        for e in (0.0, 0.3, 1.0, 1.3):
            for nu in (-2.0, 0.0, 1.0):
                orbit = KeplerElements(1.0, e, i, 1.2, 0.4, nu, 1.0)
                found = KeplerElements.from_cartesian(*orbit.as_cartesian(), 1.0)
                np.testing.assert_allclose(state_of(found), state_of(orbit), atol=3e-15)
                assert found.i == pytest.approx(i, abs=2e-16)
    flat = KeplerElements.from_cartesian([1.0, 0, 0], [0.0, 1.0, 0], 1.0)
    assert [float(x) for x in (flat.e, flat.i, flat.raan, flat.argp, flat.nu)] == [0.0] * 5
    back = KeplerElements.from_cartesian([0.0, 1.0, 0], [1.0, 0, 0], 1.0)
    assert [float(x) for x in (back.i, back.raan, back.argp)] == [np.pi, 0.0, 0.0]
    np.testing.assert_allclose(back.nu, -np.pi / 2)


def test_sizes_of_conics():
    ellipse = KeplerElements.from_classical(10.0, 0.2, mu=1.0)
    assert [float(x.round(12)) for x in (ellipse.a, ellipse.periapsis, ellipse.apoapsis)] == [
        10.0, 8.0, 12.0,
    ]  # fmt: skip
    np.testing.assert_allclose(ellipse.period, 2 * np.pi * 10**1.5, rtol=1e-14)
    np.testing.assert_allclose(ellipse.energy, -0.05, rtol=1e-14)
    parabola = KeplerElements(2.0, 1.0, mu=1.0)
    assert [float(x) for x in (parabola.a, parabola.apoapsis, parabola.period)] == [np.inf] * 3
    assert [float(x) for x in (parabola.energy, parabola.mean_motion)] == [0.0, 0.0]
    hyperbola = KeplerElements.from_classical(-4.0, 1.5, mu=1.0)
    np.testing.assert_allclose([hyperbola.a, hyperbola.energy], [-4.0, 0.125], rtol=1e-14)
    assert hyperbola.period == np.inf and hyperbola.mean_motion == pytest.approx(1 / 8)
    M = KeplerElements.from_classical(10.0, 0.2, M=2.0 + 4 * np.pi)
    np.testing.assert_allclose(M.mean_anomaly, 2.0 + 4 * np.pi, rtol=1e-14)


@pytest.mark.parametrize("e", [0.0, 1e-9, 0.3, 0.9, 1 - 1e-10, 1 + 1e-10, 1.2, 30.0])
def test_kepler_equation_in_forty_digits(e):
    """The solution is right to two units in its last place, down to the smallest anomalies."""
    mpmath.mp.dps = 40
    M = np.logspace(-16, np.log10(np.pi) if e < 1 else 12.0, 60)
    for m, E in zip(M.tolist(), mean_to_eccentric(M, e).tolist()):
        x, ee = mpmath.mpf(E), mpmath.mpf(e)
        if e < 1:
            error, slope = x - ee * mpmath.sin(x) - m, 1 - ee * mpmath.cos(x)
        else:
            error, slope = ee * mpmath.sinh(x) - x - m, ee * mpmath.cosh(x) - 1
        assert abs(error / slope) <= 2.5 * 2.3e-16 * x
    np.testing.assert_allclose(eccentric_to_mean(mean_to_eccentric(M, e), e), M, rtol=3e-14)
    np.testing.assert_array_equal(mean_to_eccentric(-M, e), -mean_to_eccentric(M, e))


@pytest.mark.parametrize("e", [0.0, 0.4, 0.95, 1.1, 6.0])
def test_anomalies(e):
    """Against the textbook's formulas, with revolutions kept on an ellipse."""
    E = np.linspace(-3.0, 3.0, 25) if e > 1 else np.linspace(-20.0, 20.0, 61)
    nu = eccentric_to_true(E, e)
    if e < 1:
        tangent = np.sqrt((1 + e) / (1 - e)) * np.tan(E / 2)
        M = E - e * np.sin(E)
        np.testing.assert_array_less(np.abs(nu - E), np.pi)
    else:
        tangent = np.sqrt((e + 1) / (e - 1)) * np.tanh(E / 2)
        M = e * np.sinh(E) - E
    np.testing.assert_allclose(np.tan(nu / 2), tangent, rtol=1e-11)
    np.testing.assert_allclose(true_to_eccentric(nu, e), E, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(eccentric_to_mean(E, e), M, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(mean_to_true(true_to_mean(nu, e), e), nu, rtol=1e-12, atol=1e-14)


def test_radial_orbits():
    """Straight up and down: p = 0, which has no elements, but a motion."""
    p, v = kepler_propagate([1.0, 0, 0], [0.0, 0, 0], 0.5, 1.0)
    # From rest at distance 1: t = sqrt(1/2) (arccos(sqrt x) + sqrt(x (1 - x))).
    x = p[0]
    assert np.sqrt(0.5) * (np.arccos(np.sqrt(x)) + np.sqrt(x * (1 - x))) == pytest.approx(0.5)
    assert v[0] == pytest.approx(-np.sqrt(2 * (1 / x - 1)))
    up, _ = kepler_propagate([1.0, 0, 0], [np.sqrt(2.0), 0, 0], 10.0, 1.0)  # escapes: (t + c)^(2/3)
    assert up[0] == pytest.approx((1 + 1.5 * np.sqrt(2.0) * 10.0) ** (2 / 3))
    with pytest.raises(ValueError, match="must not be zero: a radial orbit has no plane"):
        KeplerElements.from_cartesian([1.0, 0, 0], [2.0, 0, 0])


# ---- recorded, batched, differentiated -----------------------------------------------------------


@pytest.mark.parametrize("e", [0.0, 0.7, 1.0, 1.5])
def test_backends_and_batches(e):
    state = state_of(elements(e))
    forth = lambda x, dt: kepler_propagate(x[:3], x[3:], dt, 1.0)
    by_elements = lambda x, dt: (
        KeplerElements.from_cartesian(x[:3], x[3:], 1.0).propagate(dt).as_cartesian()
    )
    for f in (forth, by_elements):
        check_everywhere(f, state, 3.0, rtol=1e-12)
        check_batched(f, np.tile(state, (3, 1)), np.array([-1.0, 0.0, 9.0]))
    check_everywhere(lambda o: (o.period, o.a, o.mean_anomaly), elements(e), rtol=1e-12)


def test_many_orbits_at_once():
    """Conics of all kinds in one batch give what each gives alone."""
    e = np.array([0.0, 0.5, 1.0, 1.5])
    orbits = KeplerElements(1.7, e, 0.3, 0.2, 0.1, 0.4, 1.0)
    later = state_of(orbits.propagate(2.0))
    times = np.array([[0.5], [2.0]])
    assert state_of(orbits.propagate(times)).shape == (2, 4, 6)
    np.testing.assert_array_equal(state_of(orbits.propagate(times))[1], later)
    for k in range(4):
        alone = KeplerElements(1.7, e[k], 0.3, 0.2, 0.1, 0.4, 1.0).propagate(2.0)
        np.testing.assert_allclose(state_of(alone), later[k], rtol=1e-15, atol=1e-15)
    empty = KeplerElements(np.zeros(0) + 1.0, np.zeros(0))
    assert state_of(empty.propagate(1.0)).shape == (0, 6)


def differences(f, x, h=1e-3):
    """The derivative by central differences of sixth order."""
    columns = []
    for k in range(len(x)):
        d = np.zeros(len(x))
        d[k] = h
        columns.append(
            (
                45 * (f(x + d) - f(x - d)) - 9 * (f(x + 2 * d) - f(x - 2 * d))
                + f(x + 3 * d) - f(x - 3 * d)
            ) / (60 * h)
        )  # fmt: skip
    return np.stack(columns, axis=-1)


class Derivatives:
    """A function with its first and second derivative, recorded once for all tests."""

    def __init__(self, f):
        self.f, self.jac = f, arc.jac(f)
        self.hess = arc.jac(self.jac)

    def check(self, x, rtol, h=1e-3):
        J, H = self.jac(x), self.hess(x)
        np.testing.assert_allclose(J, differences(self.f, x, h), atol=rtol * np.abs(J).max())
        np.testing.assert_allclose(H, differences(self.jac, x, h), atol=10 * rtol * np.abs(H).max())


NAMES = ("p", "e", "i", "raan", "argp", "nu", "energy")
FLOW = Derivatives(lambda x: np.concatenate(kepler_propagate(x[:3], x[3:6], x[6], 1.0)))
BY_ELEMENTS = Derivatives(
    lambda x: np.concatenate(KeplerElements(*x[:6], 1.0).propagate(x[6]).as_cartesian())
)
TO_ELEMENTS = Derivatives(
    lambda x: np.stack(
        [getattr(KeplerElements.from_cartesian(x[:3], x[3:], 1.0), n) for n in NAMES]
    )
)


@pytest.mark.parametrize("e", [0.0, 1e-9, 0.5, 1.0, 1 + 1e-9, 1.5])
def test_transition_matrix_and_second_derivatives(e):
    """Regular on every conic: round and equatorial ones and parabolas are ordinary points."""
    x = np.append(state_of(KeplerElements(1.3, e, 0.0, 0.0, 0.5, 0.9, 1.0)), 2.5)
    FLOW.check(x, 2e-9)
    Phi = FLOW.jac(x)[:, :6]  # the transition matrix of a Hamiltonian system is symplectic
    S = np.block([[np.zeros((3, 3)), np.eye(3)], [-np.eye(3), np.zeros((3, 3))]])
    np.testing.assert_allclose(Phi.T @ S @ Phi, S, atol=1e-12 * np.abs(Phi).max() ** 2)


@pytest.mark.parametrize("e", [0.0, 0.5, 1.0, 1.5])
@pytest.mark.parametrize("i", [0.0, 0.7])
def test_derivatives_of_elements_to_states(e, i):
    """Elements to states has no singular point at all, propagation included."""
    x = np.array([1.3, e, i, 0.3, 0.5, 0.9, 4.0])
    assert np.isfinite(BY_ELEMENTS.hess(x)).all()
    x[1] = max(e, 0.01)  # e is not negative, so differences need room
    BY_ELEMENTS.check(x, 1e-8, 5e-4)


@pytest.mark.parametrize("e", [0.5, 1.0, 1.5])
def test_derivatives_of_states_to_elements(e):
    TO_ELEMENTS.check(state_of(elements(e)), 1e-9)


def test_undefined_elements_have_finite_derivatives():
    """On round and equatorial orbits, and on a parabola: what the documentation states."""
    f = lambda x: KeplerElements.from_cartesian(x[:3], x[3:], 1.0)
    for x in (
        [1.0, 0, 0, 0, 1, 0],
        [1.0, 0, 0, 0, 0.6, 0.8],
        [1.0, 0, 0, 0.1, 1.2, 0],
        [0.0, 1, 0, 1, 0, 0],
        [1.0, 0, 0, 0, np.sqrt(2), 0],
    ):
        x = np.array(x)
        for leaf in arc.tree.leaves(arc.jac(f)(x)):
            assert np.isfinite(leaf).all()
        for leaf in arc.tree.leaves(arc.jac(arc.jac(f))(x)):
            assert np.isfinite(leaf).all()
    J = arc.jac(f)(np.array([1.0, 0, 0, 0, 0.6, 0.8]))
    np.testing.assert_array_equal(J.argp, 0.0)
    np.testing.assert_array_equal(J.e, 0.0)
    names = ("a", "period", "mean_anomaly", "eccentric_anomaly", "apoapsis", "mean_motion")
    for name in names:
        assert np.isfinite(arc.grad(lambda e, name=name: getattr(elements(e), name))(1.0))


def test_c_code(tmp_path):
    """A flight computer propagates an orbit: the generated C has the same bits."""
    step = lambda p_I, v_I, dt: kepler_propagate(p_I, v_I, dt)
    state = (np.array([7e6, 0.0, 0.0]), np.array([0.0, 7.6e3, 1.0]), 60.0)
    arc.codegen(step, state, name="orbit", output_dir=tmp_path, verify=True)


# ---- huge, bad and empty -------------------------------------------------------------------------


def test_long_times():
    orbit = elements(0.3)
    many = orbit.propagate(1000.0 * orbit.period)
    np.testing.assert_allclose(many.nu, orbit.nu, atol=1e-11)
    p, v = kepler_propagate([1.0, 0, 0], [0.0, 3.0, 0], 1e15, 1.0)
    np.testing.assert_allclose(np.linalg.norm(v), np.sqrt(7.0), rtol=1e-13)
    np.testing.assert_allclose(np.linalg.norm(p), np.sqrt(7.0) * 1e15, rtol=1e-13)
    far, _ = kepler_propagate([1.0, 0, 0], [0.0, np.sqrt(2.0), 0], -1e15, 1.0)
    assert np.linalg.norm(far) == pytest.approx((1.5 * np.sqrt(2.0) * 1e15) ** (2 / 3))
    tiny = kepler_propagate([1e-3, 0, 0], [0.0, 1e-9, 0], 1e-30, 1e-22)[0]
    np.testing.assert_allclose(tiny, [1e-3, 1e-39, 0])
    nothing = kepler_propagate([3.0, 0, 0], [0.0, 1e-9, 0], 0.0, 1.0)
    np.testing.assert_array_equal(nothing, [[3.0, 0, 0], [0.0, 1e-9, 0]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: KeplerElements(-1.0, 0.1), r"KeplerElements.p must be positive and finite, in m"),
        (lambda: KeplerElements(1.0, -0.1), "KeplerElements.e must not be negative, got -0.1"),
        (lambda: KeplerElements(1.0, np.nan), "KeplerElements.e must be a number"),
        (lambda: KeplerElements(1.0, 0.1, np.inf), "KeplerElements.i must be finite"),
        (lambda: KeplerElements(1.0, 2.0, nu=2.2), r"nu must lie within the asymptotes.*2\.09"),
        (lambda: KeplerElements.from_classical(7e6, 1.5), "a must be positive for e < 1 and neg"),
        (lambda: KeplerElements.from_classical(7e6, 1.0), "a parabola has no a: give p"),
        (lambda: KeplerElements.from_classical(7e6, 0.1, nu=0.0, M=0.0), "give nu or M, not both"),
        (lambda: mean_to_eccentric(1.0, 1.0), "e must not be negative, nor 1: a parabola has no"),
        (lambda: true_to_mean(3.0, 1.2), "nu must lie within the asymptotes"),
        (lambda: kepler_propagate([0.0] * 3, [1.0, 0, 0], 1.0), "p_I is the centre"),
        (lambda: kepler_propagate([1.0, 0, 0], [1.0, 0, 0], np.nan), "dt must be finite"),
        (lambda: kepler_propagate([1.0, 0, 0], [1.0, 0, 0], 1.0, 0.0), "mu must be positive"),
        (
            lambda: kepler_propagate(np.ones((2, 3)), np.ones((4, 3)), 1.0),
            r"p_I and v_I must be one state or batches of the same shape, got shapes \(2, 3\) and",
        ),
        (
            lambda: KeplerElements.from_cartesian([1e-3, 0, 0], [0.0, 1e-3, 0]),
            "the orbit is radial to rounding",
        ),
        (lambda: kepler_propagate([1.0, 0], [1.0, 0, 0], 1.0), r"p_I must have shape \(3,\)"),
    ],
)
def test_bad_orbits(make, message):
    with pytest.raises(ValueError, match=message):
        make()
