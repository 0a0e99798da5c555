"""Optimal controllers of published plants, and properties of those of random ones."""

from __future__ import annotations

import numpy as np
import pytest

from archimedes import control as ac
from tests.control import published_plants

s = ac.tf("s")
#: S. Skogestad, I. Postlethwaite, "Multivariable feedback control": the disturbance process.
PROCESS = 200 / ((10 * s + 1) * (0.05 * s + 1) ** 2)


def test_first_order_plant():
    # The example of SLICOT's SB10 routines that python-control tests with: K = -1 / (s + 3), which
    # cancels the disturbance altogether.
    plant = ac.StateSpace([[-1.0]], [[1.0, 1.0]], [[1.0], [1.0]], [[0.0, 1.0], [1.0, 0.0]])
    design = ac.hinfsyn(plant, 1, 1)
    for point in (0.0j, 1.0j, 2.0 + 3.0j):
        found = ac.tf(design.controller)(point)
        np.testing.assert_allclose(found, -1.0 / (point + 3.0), rtol=1e-6)
        two = ac.tf(ac.h2syn(plant, 1, 1))(point)
        np.testing.assert_allclose(two, -1.0 / (point + 3.0), rtol=1e-6)
    assert design.norm < 1e-6
    assert ac.h2_norm(ac.lft(plant, ac.h2syn(plant, 1, 1))) < 1e-6


def test_integrator():
    # X = Y = gamma / sqrt(gamma^2 - 1), and X Y < gamma^2 is gamma > sqrt(2); H2: 1 + 1 squared.
    plant = ac.StateSpace(
        [[0.0]],
        [[1.0, 0.0, 1.0]],
        [[1.0], [0.0], [1.0]],
        [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]],
    )
    assert ac.hinfsyn(plant, 1, 1, tol=1e-7).norm == pytest.approx(np.sqrt(2.0), rel=1e-6)
    two = ac.h2_norm(ac.lft(plant, ac.h2syn(plant, 1, 1)))
    assert two == pytest.approx(np.sqrt(2.0), rel=1e-9)
    K, closed, gamma, info = ac.hinfsyn(plant, 1, 1)
    assert info["lower_bound"] < gamma and K.D.shape == (1, 1) and closed.D.shape == (2, 2)


def test_mixed_sensitivity():
    # Skogestad, Postlethwaite, example 2.17: gamma = 1.37 and, with the other weight, 2.19.
    for weight, published in (
        ((s / 1.5 + 10) / (s + 10 * 1e-4), 1.37),
        ((s / 1.5**0.5 + 10) ** 2 / (s + 10 * 1e-4**0.5) ** 2, 2.19),
    ):
        design = ac.mixsyn(PROCESS, weight, 1.0)
        assert design.norm == pytest.approx(published, abs=6e-3)
        S = ac.sensitivity(ac.ss(PROCESS) * design.controller)
        assert ac.hinf_norm(weight * S) <= design.norm * (1.0 + 1e-6)


def test_loop_shaping():
    # Skogestad, Postlethwaite, example 9.3: gamma_min = 2.34 for the shaped plant.
    design = ac.ncfsyn(PROCESS * (s + 2) / s)
    assert design.norm == pytest.approx(2.34, abs=5e-3)


@pytest.mark.parametrize(("q", "sigma"), [(1000.0, 1000.0), (12.0, 60.0)])
def test_guaranteed_margins_there_are_none(q, sigma):
    # J. Doyle, "Guaranteed margins for LQG regulators", IEEE Trans. AC 23, 1978: gains in closed
    # form, f = 2 + sqrt(4 + q), d = 2 + sqrt(4 + sigma).
    A, B, C = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[0.0], [1.0]]), np.array([[1.0, 0.0]])
    ones = np.ones((2, 2))
    plant = ac.StateSpace(A, B, C, np.zeros((1, 1)))
    f, d = 2.0 + np.sqrt(4.0 + q), 2.0 + np.sqrt(4.0 + sigma)
    wanted = ac.StateSpace(
        A - f * B @ np.ones((1, 2)) - d * np.ones((2, 1)) @ C,
        d * np.ones((2, 1)),
        -f * np.ones((1, 2)),
        np.zeros((1, 1)),
    )
    by_gains = ac.lqg(plant, q * ones, np.eye(1), sigma * ones, np.eye(1))
    general = ac.StateSpace(
        A,
        np.concatenate([np.sqrt(sigma) * np.ones((2, 1)), np.zeros((2, 1)), B], axis=1),
        np.concatenate([np.sqrt(q) * np.ones((1, 2)), np.zeros((1, 2)), C]),
        np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]),
    )
    for controller in (by_gains, ac.h2syn(general, 1, 1)):
        for point in (0.3j, 2.0j, 0.5 + 1.0j):
            np.testing.assert_allclose(ac.tf(controller)(point), ac.tf(wanted)(point), rtol=1e-6)


def random_plant(seed, dt=None):
    rng = np.random.default_rng(seed)
    n, m1, m2, p1, p2 = int(rng.integers(2, 5)), 2, 1, 2, 1
    A = rng.normal(size=(n, n)) * (1.0 if dt is None else 0.5)
    D = np.zeros((p1 + p2, m1 + m2))
    D[p1 - m2 : p1, m1:], D[p1:, m1 - p2 : m1] = np.eye(m2), np.eye(p2)
    if seed % 2 and dt is None:
        D[:p1, :m1] = 0.1 * rng.normal(size=(p1, m1))  # only for H-infinity
    B, C = rng.normal(size=(n, m1 + m2)), rng.normal(size=(p1 + p2, n))
    return ac.StateSpace(A, B, C, D, dt)


@pytest.mark.parametrize("dt", [None, 0.1])
@pytest.mark.parametrize("seed", range(6))
def test_random_plants(seed, dt):
    plant = random_plant(seed, dt)
    best = ac.hinfsyn(plant, 1, 1)
    assert ac.hinf_norm(best.closed_loop) <= best.norm * (1.0 + 1e-3)
    if dt is None and seed % 2:
        return
    K = ac.h2syn(plant, 1, 1)
    closed = ac.lft(plant, K)
    least = ac.h2_norm(closed)
    # Neither is better than the other in its own norm, and both are better than their neighbours.
    assert least <= ac.h2_norm(best.closed_loop) * (1.0 + 1e-9)
    assert best.norm <= ac.hinf_norm(closed) * (1.0 + 1e-3)
    rng = np.random.default_rng(seed)
    for _ in range(5):
        off = K.replace(C=K.C * (1.0 + 0.01 * rng.normal(size=K.C.shape)))
        assert least <= ac.h2_norm(ac.lft(plant, off)) * (1.0 + 1e-9)


def test_published_plants():
    for name, published, found, _ in published_plants.results():
        assert found == pytest.approx(published, rel=4e-3, abs=1e-6), name


def test_messages():
    plant = ac.StateSpace([[0.0]], [[1.0, 1.0]], [[1.0], [1.0]], np.zeros((2, 2)))
    with pytest.raises(ValueError, match="add a weight on the controls"):
        ac.hinfsyn(plant, 1, 1)
    with pytest.raises(ValueError, match="nmeas must be between 1 and 2, got 3"):
        ac.h2syn(plant, 3, 1)


@pytest.mark.parametrize("kind", ["p", "i", "pi", "pd", "pid"])
def test_pid_tuning(kind):
    plants = {
        "p": 1 / (s * (s + 1) ** 2),
        "i": 1 / (s + 1) ** 3,
        "pi": 1 / (s + 1) ** 3,
        "pd": 1 / (s**2 * (0.1 * s + 1)),
        "pid": 1 / ((s + 1) * (0.2 * s + 1) * (0.05 * s + 1)),
    }
    tuned = ac.pidtune(plants[kind], kind)
    assert tuned.margins.stable
    loop = ac.ss(plants[kind]) * ac.ss(tuned.controller())
    reached = ac.margins(loop)
    if kind not in ("p", "i"):
        assert np.rad2deg(reached.phase) == pytest.approx(60.0, abs=0.5)
    else:
        assert np.rad2deg(reached.phase) > 30.0
    with pytest.raises(ValueError, match="is not one of 'p', 'i'"):
        ac.pidtune(plants[kind], "dip")


def test_lqi_follows_steps():
    plant = ac.StateSpace([[0.0, 1.0], [-1.0, -0.2]], [[0.0], [1.0]], [[1.0, 0.0]], [[0.0]])
    K, _ = ac.lqi(plant, np.diag([1.0, 1.0, 4.0]), np.eye(1))
    A = np.block([[plant.A, np.zeros((2, 1))], [-plant.C, np.zeros((1, 1))]])
    B = np.concatenate([plant.B, np.zeros((1, 1))])
    closed = ac.StateSpace(A - B @ K, [[0.0], [0.0], [1.0]], [[1.0, 0.0, 0.0]], [[0.0]])
    assert closed.dcgain()[0, 0] == pytest.approx(1.0)
    assert max(closed.poles().real) < 0.0


def test_recorded_and_differentiated():
    import archimedes as arc

    def norm(k):
        plant = ac.StateSpace([[0.0, 1.0], [-1.0, -0.4]], [[0.0], [1.0]], [[1.0, 0.0]], [[0.0]])
        gain = ac.StateSpace(
            np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((1, 0)), np.reshape(k, (1, 1))
        )
        return ac.h2_norm(ac.feedback(plant, gain))

    slope = arc.grad(norm)(2.0)
    h = 1e-5
    assert slope == pytest.approx((norm(2.0 + h) - norm(2.0 - h)) / (2 * h), rel=1e-6)
    assert arc.compile(norm)(2.0) == pytest.approx(norm(2.0), rel=1e-12)

    def end(k):
        return ac.step_response(ac.tf([1.0], np.stack([1.0, k])), np.linspace(0.0, 1.0, 11)).y[-1]

    assert arc.compile(end)(2.0)[0] == pytest.approx(0.5 * (1.0 - np.exp(-2.0)))
    assert arc.jac(end)(2.0)[0] == pytest.approx(np.exp(-2.0) / 2.0 - 0.25 * (1.0 - np.exp(-2.0)))
