"""Linear systems against python-control: 500 random systems, and what each function promises."""

from __future__ import annotations

import numpy as np
import pytest

from archimedes import control as ac
from tests.optional_packages import import_or_skip

pytestmark = pytest.mark.filterwarnings("ignore")

#: A few systems at each run of the tests, 500 in the long one.
SEEDS = [range(12), pytest.param(range(12, 500), marks=pytest.mark.long)]


def random_matrices(rng, n, m, p, dt, badly_scaled):
    A = rng.normal(size=(n, n))
    poles = np.linalg.eigvals(A)
    if dt is None:
        A = A - (poles.real.max() + rng.uniform(0.1, 1.0)) * np.eye(n)
    else:
        A = A / np.abs(poles).max() * rng.uniform(0.5, 0.98)
    B, C = rng.normal(size=(n, m)), rng.normal(size=(p, n))
    D = rng.normal(size=(p, m)) * (rng.random() < 0.5)
    if badly_scaled:
        units = 10.0 ** rng.uniform(-5.0, 5.0, size=n)
        A, B, C = A * units[:, None] / units, B * units[:, None], C / units
    return ac.StateSpace(A, B, C, D, dt)


class Case:
    """A random system, others that fit to it, and frequencies to look at."""

    def __init__(self, seed):
        self.rng = rng = np.random.default_rng(seed)
        self.n, self.siso = int(rng.integers(1, 7)), seed % 2 == 0
        m, p = (1, 1) if self.siso else map(int, rng.integers(1, 4, 2))
        self.dt, self.badly_scaled = None if seed % 3 else 0.1, seed % 5 == 4
        self.G = self.system(self.n, m, p)
        self.w = 10.0 ** rng.uniform(-2.0, 1.0, 4)

    def system(self, n, m, p):
        return random_matrices(self.rng, n, m, p, self.dt, self.badly_scaled)

    def points(self):
        return 1j * self.w if self.dt is None else np.exp(1j * self.w * self.dt)

    def ours(self, system):
        if isinstance(system, ac.TransferFunction):
            return np.array([np.atleast_2d(system(s)) for s in self.points()])
        A, B, C, D = system.A, system.B, system.C, system.D
        eye = np.eye(len(A))
        return np.array([C @ np.linalg.solve(s * eye - A, B) + D for s in self.points()])

    def theirs(self, system):
        return np.array([np.atleast_2d(system(s)) for s in self.points()])


def assert_near(found, wanted, tol):
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape
    size = max(np.max(np.abs(wanted), initial=0.0), 1e-300)
    assert np.max(np.abs(found - wanted), initial=0.0) <= tol * size


def assert_same_set(found, wanted, tol):
    """Complex numbers in any order."""
    from scipy.optimize import linear_sum_assignment

    assert len(found) == len(wanted)
    distance = np.abs(np.asarray(found)[:, None] - np.asarray(wanted))
    rows, columns = linear_sum_assignment(distance)
    size = max(np.max(np.abs(wanted), initial=0.0), 1e-300)
    assert np.max(distance[rows, columns], initial=0.0) <= tol * size


@pytest.mark.parametrize("seeds", SEEDS)
def test_combinations(seeds):
    ct = import_or_skip("control")
    for seed in seeds:
        case = Case(seed)
        G, p, m = case.G, case.G.noutputs, case.G.ninputs
        H, K, P = case.system(2, p, 2), case.system(2, p, m), case.system(3, m, p)
        g, h, k, other = (s.to_control() for s in (G, H, K, P))
        assert_near(case.ours(H * G), case.theirs(h * g), 1e-9)
        assert_near(case.ours(ac.series(G, H)), case.theirs(ct.series(g, h)), 1e-9)
        assert_near(case.ours(G - P), case.theirs(g - other), 1e-9)
        assert_near(case.ours(2.0 * G / 4.0), case.theirs(g) / 2.0, 1e-9)
        assert_near(case.ours(ac.append(G, H)), case.theirs(ct.append(g, h)), 1e-9)
        assert_near(case.ours(ac.feedback(G, K)), case.theirs(ct.feedback(g, k)), 1e-7)
        closed = ac.connect(
            G.rename(inputs=[f"u{i}" for i in range(m)], outputs=[f"y{i}" for i in range(p)]),
            K.rename(inputs=[f"y{i}" for i in range(p)], outputs=[f"v{i}" for i in range(m)]),
            *[ac.summing_junction([f"r{i}", f"-v{i}"], f"u{i}") for i in range(m)],
            inputs=[f"r{i}" for i in range(m)],
            outputs=[f"y{i}" for i in range(p)],
        )
        assert_near(case.ours(closed), case.theirs(ct.feedback(g, k)), 1e-7)


@pytest.mark.parametrize("seeds", SEEDS)
def test_conversions(seeds):
    ct = import_or_skip("control")
    for seed in seeds:
        case = Case(seed)
        G = case.G
        fractions = ac.ss2tf(G)
        assert_near(case.ours(fractions), case.ours(G), 1e-7)
        realized = ac.ss(fractions)
        assert_near(case.ours(realized), case.ours(G), 1e-7)
        small = ac.minreal(realized)
        assert small.nstates == case.n
        assert_near(case.ours(small), case.ours(G), 1e-6)
        if case.dt is None:
            for method in ("zoh", "tustin"):
                theirs = ct.c2d(G.to_control(), 0.1, method)
                assert_near(ac.c2d(G, 0.1, method).A, theirs.A, 1e-9)
            for method in ("zoh", "foh", "tustin"):
                assert_near(case.ours(ac.d2c(ac.c2d(G, 0.1, method), method)), case.ours(G), 1e-6)


@pytest.mark.parametrize("seeds", SEEDS)
def test_answers(seeds):
    ct = import_or_skip("control")
    for seed in seeds:
        case = Case(seed)
        G, g = case.G, case.G.to_control()
        assert_same_set(ac.poles(G), ct.poles(g), 1e-7)
        assert_near(G.dcgain(), np.atleast_2d(ct.dcgain(g)), 1e-9)
        wn, zeta, _ = ac.damp(G)
        assert_same_set(
            wn + 1j * zeta, ct.damp(g, doprint=False)[0] + 1j * ct.damp(g, doprint=False)[1], 1e-6
        )
        if G.noutputs == G.ninputs:
            assert_same_set(ac.zeros(G), find_zeros(ct, case), 1e-5)
        plain = G if case.dt is not None else ac.StateSpace(G.A, G.B, G.C, 0.0 * G.D)
        if not case.badly_scaled:  # there python-control loses digits
            assert ac.h2_norm(plain) == pytest.approx(
                ct.system_norm(plain.to_control(), 2), rel=1e-6
            )
        check_peak(case, G)
        if not case.badly_scaled:
            np.testing.assert_allclose(ac.ctrb(G.A, G.B), ct.ctrb(G.A, G.B), rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(ac.obsv(G.A, G.C), ct.obsv(G.A, G.C), rtol=1e-9, atol=1e-12)


def find_zeros(ct, case):
    """Zeros by python-control; in bad units, where it loses digits, by numbers of 50 digits."""
    regular = np.any(case.G.D) or case.n >= case.G.ninputs  # its determinant is not always zero
    if case.badly_scaled and regular:
        mpmath = import_or_skip("mpmath")
        from tests.control.compare import exact_zeros

        with mpmath.workdps(50):
            return exact_zeros(case)
    zeros, poles = ct.zeros(case.G.to_control()), np.linalg.eigvals(case.G.A)
    return zeros[np.abs(zeros) < 1e6 * max(1.0, np.abs(poles).max())]


def check_peak(case, G):
    """The norm is the gain at its frequency, and no frequency of a grid has more.

    python-control's own norm fails for systems with several channels, and misses some peaks.
    """
    gain, w = ac.peak_gain(G)
    assert ac.hinf_norm(G) == gain
    grid = np.concatenate([[w], np.logspace(-3.0, 3.0, 400)])
    if case.dt is not None:
        grid = np.concatenate([[w], np.linspace(0.0, np.pi / case.dt, 400)])
    grid = grid[np.isfinite(grid)]
    values = ac.frequency_response(G, grid).values
    gains = np.linalg.norm(np.moveaxis(values, -1, 0), 2, axis=(1, 2))
    assert gains.max() <= gain * (1.0 + 1e-7)
    if np.isfinite(w):
        assert gains[0] == pytest.approx(gain, rel=1e-6)


def test_peaks_beside_the_highest_frequency():
    # The gain at infinity is nearly the largest: only one crossing is finite.
    for seed in (180, 241, 328, 456):
        case = Case(seed)
        check_peak(case, case.G)


@pytest.mark.parametrize("seeds", SEEDS)
def test_responses(seeds):
    ct = import_or_skip("control")
    for seed in seeds:
        case = Case(seed)
        G, g = case.G, case.G.to_control()
        t = np.linspace(0.0, 3.0, 31) if case.dt is None else case.dt * np.arange(31)
        theirs = np.moveaxis(ct.step_response(g, t, squeeze=False).outputs, 2, 0)
        assert_near(ac.step_response(G, t).columns(), theirs, 1e-8)
        theirs = np.moveaxis(ct.impulse_response(g, t, squeeze=False).outputs, 2, 0)
        assert_near(ac.impulse_response(G, t).columns()[1:], theirs[1:], 1e-8)
        u = case.rng.normal(size=(31, G.ninputs))
        x0 = np.zeros(case.n) if case.badly_scaled else case.rng.normal(size=case.n)
        theirs = ct.forced_response(g, t, u.T, x0, squeeze=False).outputs.T
        assert_near(ac.forced_response(G, t, u, x0).y, theirs, 1e-8)


@pytest.mark.parametrize("seeds", SEEDS)
def test_designs(seeds):
    import_or_skip("control")
    for seed in seeds:
        case = Case(seed)
        A, B = case.G.A, case.G.B
        wanted = case.rng.uniform(0.5, 3.0, case.n)
        wanted = -wanted if case.dt is None else 0.2 * wanted
        K = ac.place(A, B, wanted)
        assert_same_set(np.linalg.eigvals(A - B @ K), wanted, 1e-4)
        if case.siso and case.n < 5:
            K = ac.acker(A, B, wanted)
            assert_same_set(np.linalg.eigvals(A - B @ K), wanted, 1e-4)


def test_step_info():
    ct = import_or_skip("control")
    s, z = ac.tf("s"), ct.tf("s")
    for ours, theirs in (
        ((1 / (s**2 + 0.5 * s + 1)), 1 / (z**2 + 0.5 * z + 1)),
        ((1 - s) / (s + 1) ** 2, (1 - z) / (z + 1) ** 2),
        (5 / (s + 2), 5 / (z + 2)),
    ):
        t = np.linspace(0.0, 30.0, 20001)
        found, wanted = ac.step_info(ours, t), ct.step_info(theirs, t)
        for name, value in found.items():
            assert value == pytest.approx(wanted[name], rel=2e-2, abs=2e-3), name


def test_disk_margins():
    # Seiler, Packard, Gahinet 2020, example: L = 25 / (s^3 + 10 s^2 + 10 s + 10).
    found = ac.disk_margins(ac.tf([25.0], [1.0, 10.0, 10.0, 10.0]))
    assert found.disk == pytest.approx(0.46, abs=5e-3)
    assert found.gain == pytest.approx((0.63, 1.59), abs=5e-3)
    assert np.rad2deg(found.phase) == pytest.approx(25.8, abs=0.1)
    w = np.linspace(1.8, 2.1, 30001)
    S = 1.0 / (1.0 + 25.0 / np.polyval([1.0, 10.0, 10.0, 10.0], 1j * w))
    assert found.frequency == pytest.approx(w[np.argmax(np.abs(S - 0.5))], abs=1e-3)


def test_bandwidth_and_margins_of_transfer_functions():
    s = ac.tf("s")
    assert ac.bandwidth(1 / (s + 1)) == pytest.approx(np.sqrt(10**0.3 - 1))
    assert np.isnan(ac.bandwidth(1 / s))
    assert ac.bandwidth(ac.tf([2.0], [1.0])) == np.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ac.tf("s") + ac.tf("z", dt=0.1), "cannot be combined: discretize"),
        (lambda: ac.ss(ac.tf("s")), "not proper: its numerator has degree 1"),
        (lambda: ac.tf([1.0]), "tf needs num and den"),
        (lambda: ac.tf("z"), r"tf\('z', dt=None\): write tf\('s'\)"),
        (lambda: ac.feedback(-1.0), "the loop is algebraic and has no solution"),
        (lambda: ac.series(np.eye(2), np.eye(3)), "outputs and inputs: 2 and 3 do not match"),
        (lambda: ac.step_response(ac.tf([1.0], [1.0, 1.0]), [0.0, 1.0, 3.0]), "in equal steps"),
        (
            lambda: ac.forced_response(ac.ss(np.eye(2)), [0.0, 1.0, 2.0], np.ones((2, 3))),
            r"shape \(3, 2\), got \(2, 3\); times are the first axis: transpose it, give u.T",
        ),
        (
            lambda: ac.connect(ac.ss(2.0), inputs=[], outputs=["y[0]"]),
            r"nothing drives the input 'u\[0\]'",
        ),
        (lambda: ac.place(np.eye(2), np.eye(2)[:, :1], [-1.0, -2.0]), "not controllable"),
    ],
)
def test_messages(call, message):
    with pytest.raises((ValueError, TypeError, np.linalg.LinAlgError), match=message):
        call()
