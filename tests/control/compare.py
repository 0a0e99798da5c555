"""Compare linear control with python-control on random systems, and synthesis with publications.

    python -m tests.control.compare            500 systems, some minutes
    python -m tests.control.compare 60         the first 60 of them

Systems have 1 to 6 states; half have one input and output, the others up to 3; a third is in
discrete time, a fifth in units that differ by up to ten powers of ten. A difference is relative to
the largest number of the result. Where a difference is above 1e-6, numbers of 50 digits decide who
is right. python-control raises errors where it needs slycot, which may not be installed. The rows
of `place` and `acker` compare the poles of a gain, in 50 digits, with what was asked for.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np

from archimedes import control as ac
from tests.control import published_plants
from tests.control.test_python_control import Case

#: A larger difference is looked at with more digits.
LARGE = 1e-6
Row = tuple[str, Callable[[], Any], Callable[[], Any], Callable[[], Any] | None]


def exact(system: Any) -> tuple[Any, ...]:
    return tuple(mpmath.matrix(np.asarray(M).tolist()) for M in system)


def exact_values(case: Case) -> np.ndarray:
    """C (s I - A)^-1 B + D at the points of a case."""
    A, B, C, D = exact(case.G)
    eye = mpmath.eye(A.rows)
    found = [C * (eye * mpmath.mpc(s) - A) ** -1 * B + D for s in case.points()]
    return np.array([np.array(v.tolist(), dtype=complex) for v in found])


def exact_poles(case: Case) -> np.ndarray:
    return np.array([complex(v) for v in mpmath.eig(exact(case.G)[0], right=False)])


def exact_h2(system: Any) -> float:
    """The norm from the Lyapunov equation as one linear system."""
    A, B, C, D = exact(system)
    n, eye = A.rows, mpmath.eye(A.rows)

    def kron(a: Any, b: Any) -> Any:
        out = mpmath.zeros(n * n)
        for i in range(n):
            for j in range(n):
                for k in range(n):
                    for m in range(n):
                        out[i * n + k, j * n + m] = a[i, j] * b[k, m]
        return out

    Q = B * B.T
    right = mpmath.matrix([-Q[i, j] for i in range(n) for j in range(n)])
    if system.dt is None:
        X = mpmath.lu_solve(kron(A, eye) + kron(eye, A), right)
    else:
        X = mpmath.lu_solve(kron(A, A) - kron(eye, eye), right)
    X = mpmath.matrix([[X[i * n + j] for j in range(n)] for i in range(n)])
    total = C * X * C.T + (0 * D * D.T if system.dt is None else D * D.T)
    return float(mpmath.sqrt(sum(total[i, i] for i in range(total.rows))))


def exact_closed_poles(case: Case, K: np.ndarray) -> np.ndarray:
    A, B, _, _ = exact(case.G)
    values = mpmath.eig(A - B * mpmath.matrix(np.asarray(K).tolist()), right=False)
    return np.array([complex(v) for v in values])


def numbers(values: Any) -> np.ndarray:
    """Complex numbers, which are compared in any order."""
    return np.asarray(values, dtype=complex)


def damping(frequencies: Any, ratios: Any, _: Any) -> np.ndarray:
    return np.asarray(frequencies) + 1j * np.asarray(ratios)


def rows(ct: Any, case: Case) -> Iterator[Row]:
    """What is compared: name, ours, theirs, and the exact result where it is known."""
    G, g = case.G, case.G.to_control()
    p, m, dt = G.noutputs, G.ninputs, case.dt
    H, K, P = case.system(2, p, 2), case.system(2, p, m), case.system(3, m, p)
    h, k, q = (s.to_control() for s in (H, K, P))
    values, theirs = case.ours, case.theirs

    def of(found: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: values(found())

    def their(found: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: theirs(found())

    known = lambda: exact_values(case)
    yield "frequency_response", of(lambda: G), their(lambda: g), known
    yield "series", of(lambda: ac.series(G, H)), their(lambda: ct.series(g, h)), None
    yield "parallel", of(lambda: ac.parallel(G, P)), their(lambda: ct.parallel(g, q)), None
    yield "feedback", of(lambda: ac.feedback(G, K)), their(lambda: ct.feedback(g, k)), None
    yield "append", of(lambda: ac.append(G, H)), their(lambda: ct.append(g, h)), None
    yield "ss2tf", of(lambda: ac.ss2tf(G)), their(lambda: ct.ss2tf(g)), known
    yield (
        "minreal",
        of(lambda: ac.minreal(G * 1.0)),
        their(lambda: ct.minreal(g, verbose=False)),
        known,
    )
    if dt is None:
        for method in ("zoh", "tustin"):
            yield (
                f"c2d {method}",
                lambda method=method: ac.c2d(G, 0.1, method).A,
                lambda method=method: ct.c2d(g, 0.1, method).A,
                None,
            )
    yield (
        "poles",
        lambda: numbers(ac.poles(G)),
        lambda: numbers(ct.poles(g)),
        lambda: numbers(exact_poles(case)),
    )
    if p == m:
        yield (
            "zeros",
            lambda: numbers(ac.zeros(G)),
            lambda: numbers(finite(ct.zeros(g), ct.poles(g))),
            lambda: exact_zeros(case),
        )
    yield "dcgain", lambda: G.dcgain(), lambda: np.atleast_2d(ct.dcgain(g)), None
    yield "damp", lambda: damping(*ac.damp(G)), lambda: damping(*ct.damp(g, doprint=False)), None
    plain = G if dt is not None else ac.StateSpace(G.A, G.B, G.C, 0.0 * G.D)
    yield (
        "h2_norm",
        lambda: ac.h2_norm(plain),
        lambda: ct.system_norm(plain.to_control(), 2),
        lambda: exact_h2(plain),
    )
    yield (
        "hinf_norm",
        lambda: ac.hinf_norm(G),
        lambda: ct.system_norm(g, "inf", tol=1e-10),
        lambda: exact_peak(G),
    )
    if case.siso:
        width = lambda: first_drop(G)
        yield "bandwidth", lambda: ac.bandwidth(G), lambda: float(ct.bandwidth(g)), width
        yield (
            "margins",
            lambda: nearest(ac.margins(G)),
            lambda: nearest_of(ct.stability_margins(g, returnall=True), G),
            lambda: margins_on_a_grid(G),
        )
    yield "ctrb", lambda: ac.ctrb(G.A, G.B), lambda: ct.ctrb(G.A, G.B), None
    yield "obsv", lambda: ac.obsv(G.A, G.C), lambda: ct.obsv(G.A, G.C), None
    t = np.linspace(0.0, 3.0, 31) if dt is None else dt * np.arange(31)
    for name in ("step_response", "impulse_response"):
        yield (
            name,
            lambda name=name: getattr(ac, name)(G, t).columns()[1:],
            lambda name=name: np.moveaxis(getattr(ct, name)(g, t, squeeze=False).outputs, 2, 0)[1:],
            None,
        )
    u = case.rng.normal(size=(31, m))
    yield (
        "forced_response",
        lambda: ac.forced_response(G, t, u).y,
        lambda: ct.forced_response(g, t, u.T, squeeze=False).outputs.T,
        None,
    )
    wanted = case.rng.uniform(0.5, 3.0, case.n)
    wanted = -wanted if dt is None else 0.2 * wanted
    # What is compared are the poles that gains give, in exact arithmetic, with what was asked for.
    placed = lambda K: exact_closed_poles(case, K)
    yield "place", lambda: placed(ac.place(G.A, G.B, wanted)), lambda: numbers(wanted), None
    yield (
        "place (theirs)",
        lambda: numbers(wanted),
        lambda: placed(ct.place(G.A, G.B, wanted)),
        lambda: numbers(wanted),
    )
    if case.siso:
        yield "acker", lambda: placed(ac.acker(G.A, G.B, wanted)), lambda: numbers(wanted), None
    Q, R = np.eye(case.n), np.eye(m)
    regulate, theirs_lqr = (ac.lqr, ct.lqr) if dt is None else (ac.dlqr, ct.dlqr)
    yield (
        "lqr, dlqr",
        lambda: regulate(G.A, G.B, Q, R)[0] @ G.B,
        lambda: np.asarray(theirs_lqr(G.A, G.B, Q, R)[0]) @ G.B,
        None,
    )
    estimate, theirs_lqe = (ac.lqe, ct.lqe) if dt is None else (ac.dlqe, ct.dlqe)
    yield (
        "lqe, dlqe",
        lambda: G.C @ predictor(G, estimate(G.A, G.C, Q, np.eye(p))[0]),
        lambda: G.C @ np.asarray(theirs_lqe(G.A, np.eye(case.n), G.C, Q, np.eye(p))[0]),
        None,
    )


def predictor(G: Any, L: np.ndarray) -> np.ndarray:
    """Their gain in discrete time is that of the prediction."""
    return L if G.dt is None else G.A @ L


def finite(zeros: np.ndarray, poles: np.ndarray) -> np.ndarray:
    """Return zeros without those that stand for infinity."""
    return zeros[np.abs(zeros) < 1e6 * max(1.0, np.abs(poles).max())]


def exact_zeros(case: Case) -> np.ndarray:
    """Zeros as eigenvalues, where D is invertible; otherwise by roots of the numerator."""
    A, B, C, D = exact(case.G)
    if np.any(case.G.D):
        M = A - B * (D**-1) * C
        return np.array([complex(v) for v in mpmath.eig(M, right=False)])
    # det of the system matrix at n + 1 points is a polynomial of degree n - 1 or less.
    n, p = A.rows, D.rows
    size = max(1.0, float(np.abs(np.linalg.eigvals(case.G.A)).max()))
    points = [size * mpmath.expjpi(mpmath.mpf(2 * j) / (n + 1)) for j in range(n + 1)]
    values = []
    for s in points:
        M = mpmath.zeros(n + p)
        M[:n, :n], M[:n, n:], M[n:, :n], M[n:, n:] = s * mpmath.eye(n) - A, -B, C, D
        values.append(mpmath.det(M))
    V = mpmath.matrix([[s**j for j in range(n + 1)] for s in points])
    coefficients = list(mpmath.lu_solve(V, mpmath.matrix(values)))[::-1]
    scale = max(abs(c) for c in coefficients)
    while coefficients and abs(coefficients[0]) < scale * mpmath.mpf(10) ** -30:
        coefficients.pop(0)
    if len(coefficients) < 2:
        return np.zeros(0, dtype=complex)
    return np.array(
        [complex(v) for v in mpmath.polyroots(coefficients, maxsteps=500, extraprec=400)]
    )


def exact_peak(system: Any) -> float:
    """The largest gain on a fine grid, refined about its best point."""
    top = np.pi / system.dt if system.dt is not None else 1e4
    grid = np.concatenate([[0.0], np.geomspace(1e-4, top, 4000)])
    for _ in range(12):
        values = np.moveaxis(ac.frequency_response(system, grid).values, -1, 0)
        gains = np.linalg.norm(values, 2, axis=(1, 2))
        k = int(np.argmax(gains))
        low, high = grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)]
        grid = np.linspace(low, high, 200)
    infinite = np.linalg.norm(system.D, 2) if system.dt is None else 0.0
    return float(max(gains.max(), infinite))


def on_a_grid(system: Any) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """Frequencies, fine and wide, and the response of a system there."""
    top = np.pi / system.dt if system.dt is not None else 1e6
    grid = np.concatenate([[0.0], np.geomspace(1e-6, top, 20000)])
    return grid, lambda w: ac.frequency_response(system, w).values[0, 0]


def crossings(function: Callable[[np.ndarray], np.ndarray], grid: np.ndarray) -> np.ndarray:
    """Where a function changes its sign, by bisection."""
    values = function(grid)
    at = np.flatnonzero(np.sign(values[:-1]) * np.sign(values[1:]) < 0.0)
    low, high, sign = grid[at], grid[at + 1], np.sign(values[at])
    for _ in range(80 if len(at) else 0):
        middle = 0.5 * (low + high)
        same = np.sign(function(middle)) == sign
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return low


def first_drop(system: Any) -> float:
    grid, value = on_a_grid(system)
    level = abs(value(np.zeros(1))[0]) * 10.0 ** (-3.0 / 20.0)
    found = crossings(lambda w: np.abs(value(w)) - level, grid)
    return float(found[0]) if len(found) else np.inf


def margins_on_a_grid(system: Any) -> np.ndarray:
    grid, value = on_a_grid(system)
    ends = [value(grid[:1])[0].real]
    ends.append(value(grid[-1:])[0].real if system.dt is not None else system.D[0, 0])
    real = crossings(lambda w: value(w).imag, grid[1:-1])
    axis = np.concatenate([ends, value(real).real if len(real) else []])
    gains = -1.0 / axis[axis < 0.0]
    unit = crossings(lambda w: np.abs(value(w)) - 1.0, grid)
    phases = np.abs(np.angle(-value(unit))) if len(unit) else np.array([np.inf])
    return np.array([np.min(np.abs(np.log(gains)), initial=np.inf), np.min(phases)])


def nearest(found: Any) -> np.ndarray:
    """The gain and phase margin nearest to instability, as python-control lists them."""
    return np.array([abs(np.log(found.gain)), found.phase])


def nearest_of(found: Any, system: Any) -> np.ndarray:
    """The same of python-control, which leaves the ends of the axis out: they are added."""
    at_zero = system.dcgain()[0, 0]
    at_end = system.D[0, 0]
    if system.dt is not None:
        at_end = ac.frequency_response(system, [np.pi / system.dt]).real[0, 0, 0]
    ends = [-1.0 / v for v in (at_zero, at_end) if v < 0.0]
    gains, phases = np.append(found[0], ends), np.asarray(found[1])
    gains = gains[(gains > 0.0) & np.isfinite(gains)]
    gain = np.min(np.abs(np.log(gains))) if len(gains) else np.inf
    phases = np.abs((phases + 180.0) % 360.0 - 180.0)
    return np.array([gain, np.deg2rad(np.min(phases)) if len(phases) else np.inf])


def difference(a: Any, b: Any) -> float:
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        return np.inf
    same = (a == b) | (np.isnan(a) & np.isnan(b))  # infinities too
    if np.all(same):
        return 0.0
    with np.errstate(invalid="ignore"):
        if a.dtype.kind == "c" and a.ndim == 1:  # a set of numbers
            from scipy.optimize import linear_sum_assignment

            distance = np.abs(a[:, None] - b)
            i, j = linear_sum_assignment(distance)
            off = distance[i, j].max(initial=0.0)
        else:
            off = np.max(np.abs(np.where(same, 0.0, a - b)), initial=0.0)
    size = max(np.max(np.abs(b[np.isfinite(b)]), initial=0.0), 1e-300)
    return float(off / size) if np.isfinite(off) else np.inf


class Tally:
    """What was found for one function."""

    def __init__(self) -> None:
        self.compared = self.raised = self.theirs_off = self.ours_off = self.unclear = 0
        self.worst = 0.0

    def add(self, ours: Any, theirs: Callable[[], Any], known: Callable[[], Any] | None) -> None:
        self.compared += 1
        try:
            other = theirs()
        except Exception:
            other = None
            self.raised += 1
        off = difference(ours(), other) if other is not None else np.inf
        if off <= LARGE:
            self.worst = max(self.worst, off)
            return
        if known is None:
            self.unclear += other is not None
            return
        right = known()
        mine = difference(ours(), right)
        self.worst = max(self.worst, mine)
        self.ours_off += mine > LARGE
        self.theirs_off += other is not None and difference(other, right) > LARGE


def compare(count: int = 500) -> dict[str, Tally]:
    """Return what was found for each function, over the first ``count`` systems."""
    import control as ct

    mpmath.mp.dps = 50
    table: dict[str, Tally] = {}
    for seed in range(count):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name, ours, theirs, known in rows(ct, Case(seed)):
                table.setdefault(name, Tally()).add(ours, theirs, known)
    return table


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    line = "{:20} {:>8} {:>12} {:>8} {:>14} {:>9} {:>8}"
    print(f"{count} random systems against python-control\n")
    print(line.format("", "systems", "difference", "raises", "theirs is off", "ours is", "unclear"))
    for name, t in compare(count).items():
        cells = (t.compared, f"{t.worst:.1e}", t.raised, t.theirs_off, t.ours_off, t.unclear)
        print(line.format(name, *cells))
    print("\nhinfsyn and h2syn on published plants\n")
    for found in published_plants.results():
        print("{:44} {:>10.6g} {:>12.6g}   {}".format(*found))


if __name__ == "__main__":
    main()
