"""Controllers that are optimal in a norm: H2, H-infinity, mixed sensitivity, loop shaping.

K. Zhou, J. Doyle, K. Glover, "Robust and optimal control", 1996: theorem 14.7 (H2), section 21.7
(H2 in discrete time), theorem 17.1 (H-infinity, general D11), section 18.3 (loop shaping, after
D. McFarlane, K. Glover). Generalized plants are from (disturbances w, controls u) to (errors z,
measurements y), and are closed with positive feedback u = K y. In discrete time H-infinity problems
are solved in continuous time by z = (1 + s) / (1 - s), which keeps the norm. A design is returned
only if its closed loop is stable and has the norm that it promises.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from archimedes.control.linear.analysis import hinf_norm, is_stable
from archimedes.control.linear.interconnection import append, feedback, lft
from archimedes.control.linear.matrix_equations import solve_care, solve_dare
from archimedes.control.linear.state_space import StateSpace, swap_signals
from archimedes.control.linear.transfer_function import minreal, ss

__all__ = ["Synthesis", "augw", "h2syn", "hinfsyn", "mixsyn", "ncfsyn"]


class Synthesis(NamedTuple):
    """A controller and what it reaches: ``K, closed_loop, gamma, info = hinfsyn(plant, 1, 1)``.

    Parameters
    ----------
    controller : StateSpace
        The controller K, from measurements to controls.
    closed_loop : StateSpace
        From disturbances to errors.
    norm : float
        The H-infinity norm gamma that the closed loop does not exceed.
    info : dict
        ``"lower_bound"``: no controller has a norm below this one.

    Examples
    --------
    >>> from archimedes.control import mixsyn, tf
    >>> K, closed_loop, gamma, info = mixsyn(tf([1.0], [1.0, 1.0]), W1=0.5, W2=0.1)
    >>> K.nstates, bool(info["lower_bound"] <= gamma)
    (1, True)
    """

    controller: StateSpace
    closed_loop: StateSpace
    norm: float
    info: dict[str, float]

    def __repr__(self) -> str:
        n = self.controller.nstates
        return (
            f"Synthesis: norm {self.norm:.6g}, at least {self.info['lower_bound']:.6g}; controller "
            f"with {n} state{'s' * (n != 1)} from {', '.join(self.controller.inputs)} to "
            f"{', '.join(self.controller.outputs)}"
        )


class _Plant:
    """The blocks of a generalized plant."""

    def __init__(self, plant: Any, measurements: int, controls: int) -> None:
        P = ss(plant)
        for count, name, most in (
            (measurements, "nmeas", P.noutputs),
            (controls, "ncon", P.ninputs),
        ):
            if not 1 <= count <= most:
                raise ValueError(f"{name} must be between 1 and {most}, got {count}")
        self.system, self.ny, self.nu = P, measurements, controls
        m1, p1 = P.ninputs - controls, P.noutputs - measurements
        A, B, C, D = (np.asarray(getattr(P, k), dtype=float) for k in "ABCD")
        self.A, self.B1, self.B2 = A, B[:, :m1], B[:, m1:]
        self.C1, self.C2 = C[:p1], C[p1:]
        self.D11, self.D12, self.D21, self.D22 = (
            D[:p1, :m1],
            D[:p1, m1:],
            D[p1:, :m1],
            D[p1:, m1:],
        )
        if np.linalg.matrix_rank(self.D12) < controls:
            raise ValueError(
                "some control does not appear in the errors (D12 must have full column rank): add "
                "a weight on the controls"
            )
        if np.linalg.matrix_rank(self.D21) < measurements:
            raise ValueError(
                "some measurement has no noise (D21 must have full row rank): add noise to it"
            )

    def finish(self, controller: StateSpace) -> StateSpace:
        """Return the controller for the plant with its D22, and the plant's names."""
        if np.any(self.D22):
            controller = feedback(controller, self.D22)
        m1, p1 = self.system.ninputs - self.nu, self.system.noutputs - self.ny
        return controller.rename(
            inputs=self.system.outputs[p1:],
            outputs=self.system.inputs[m1:],
            input_units=self.system.output_units[p1:],
            output_units=self.system.input_units[m1:],
        )


#: By how much the bound of a controller may be above the least that was found, tried in turn.
RETREATS = (5e-4, 1e-3, 2e-3, 5e-3, 1e-2)


def h2syn(plant: Any, nmeas: int, ncon: int) -> StateSpace:
    """Return the controller with the least H2 norm from disturbances to errors.

    The norm is ``h2_norm(lft(plant, controller))``.

    Parameters
    ----------
    plant : StateSpace or TransferFunction
        Generalized plant from (disturbances, controls) to (errors, measurements), of numbers.
    nmeas : int
        Number of measurements, the last outputs of the plant.
    ncon : int
        Number of controls, the last inputs of the plant.

    Examples
    --------
    >>> plant = StateSpace(
    ...     [[0.0]],
    ...     [[1.0, 0.0, 1.0]],
    ...     [[1.0], [0.0], [1.0]],
    ...     [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]],
    ... )
    >>> from archimedes.control import h2_norm, lft
    >>> controller = h2syn(plant, 1, 1)
    >>> round(float(h2_norm(lft(plant, controller))), 6)
    1.414214
    """
    p = _Plant(plant, nmeas, ncon)
    discrete = p.system.dt is not None
    if not discrete and np.any(p.D11):
        raise ValueError(
            "h2syn: disturbances reach the errors directly (D11 must be zero), so that the H2 norm "
            "is infinite: filter the errors or the disturbances"
        )
    solve = solve_dare if discrete else solve_care
    X = solve(p.A, p.B2, p.C1.T @ p.C1, p.D12.T @ p.D12, p.C1.T @ p.D12)
    Y = solve(p.A.T, p.C2.T, p.B1 @ p.B1.T, p.D21 @ p.D21.T, p.B1 @ p.D21.T)
    if discrete:
        R, V = p.D12.T @ p.D12 + p.B2.T @ X @ p.B2, p.D21 @ p.D21.T + p.C2 @ Y @ p.C2.T
        F = -np.linalg.solve(R, p.B2.T @ X @ p.A + p.D12.T @ p.C1)
        F0 = -np.linalg.solve(R, p.B2.T @ X @ p.B1 + p.D12.T @ p.D11)
        L = -np.linalg.solve(V, (p.A @ Y @ p.C2.T + p.B1 @ p.D21.T).T).T
        L0 = np.linalg.solve(V, (F @ Y @ p.C2.T + F0 @ p.D21.T).T).T
    else:
        F = -np.linalg.solve(p.D12.T @ p.D12, p.B2.T @ X + p.D12.T @ p.C1)
        L = -np.linalg.solve(p.D21 @ p.D21.T, (Y @ p.C2.T + p.B1 @ p.D21.T).T).T
        L0 = np.zeros((ncon, nmeas))
    central = StateSpace(
        p.A + p.B2 @ F + L @ p.C2 - p.B2 @ L0 @ p.C2,
        p.B2 @ L0 - L,
        F - L0 @ p.C2,
        L0,
        p.system.dt,
    )
    controller = p.finish(central)
    if not is_stable(lft(p.system, controller)):
        raise np.linalg.LinAlgError("h2syn: no controller was found that stabilizes the plant")
    return controller


def hinfsyn(plant: Any, nmeas: int, ncon: int, *, tol: float = 1e-4) -> Synthesis:
    """Return a controller whose H-infinity norm from disturbances to errors is nearly the least.

    Parameters
    ----------
    plant : StateSpace or TransferFunction
        Generalized plant from (disturbances, controls) to (errors, measurements), of numbers.
    nmeas : int
        Number of measurements, the last outputs of the plant.
    ncon : int
        Number of controls, the last inputs of the plant.
    tol : float, optional
        How far above the least norm the result may be, relative to it.

    Examples
    --------
    >>> plant = StateSpace(
    ...     [[0.0]],
    ...     [[1.0, 0.0, 1.0]],
    ...     [[1.0], [0.0], [1.0]],
    ...     [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]],
    ... )
    >>> design = hinfsyn(plant, 1, 1)
    >>> round(design.norm, 2), bool(max(design.closed_loop.poles().real) < 0.0)
    (1.41, True)
    """
    P = ss(plant)
    if P.dt is not None:
        continuous = hinfsyn(_cayley(P), nmeas, ncon, tol=tol)
        controller = replace(_cayley(continuous.controller), dt=P.dt)
        return Synthesis(controller, lft(P, controller), *continuous[2:])
    p = _Plant(P, nmeas, ncon)
    scaled, left, right = _normalize(p)
    low = _least_bound(scaled)
    high = max(1.0, 2.0 * low)
    #: Bounds that a controller was found for, the last is the least.
    designs: list[tuple[float, StateSpace]] = []
    while not designs:
        design = _central(scaled, high)
        if design is None:
            low, high = max(low, high), 4.0 * high
        else:
            designs.append((high, design))
        if high > 1e12:
            raise np.linalg.LinAlgError(
                "hinfsyn: no controller was found that stabilizes the plant: is it stabilizable by "
                "the controls and detectable by the measurements?"
            )
    while high > low * (1.0 + tol) + 1e-12:
        gamma = np.sqrt(low * high) if low > 0.0 and high > 4.0 * low else 0.5 * (low + high)
        design = _central(scaled, gamma)
        if design is None:
            low = gamma
        else:
            high = gamma
            designs.append((high, design))
    # Nearest to the least bound rounding weighs most, and gains are largest: a controller counts if
    # its closed loop has the norm it was designed for. A little above the bound one has.
    bounds = [gamma for gamma, _ in reversed(designs) if gamma <= high * (1.0 + RETREATS[0])]
    found = dict(designs)
    for gamma in (*bounds, *(high * (1.0 + r) for r in RETREATS)):
        K = found.get(gamma) or _central(scaled, gamma)
        if K is None:
            continue
        unscaled = StateSpace(K.A, K.B @ right, left @ K.C, left @ K.D @ right)
        controller = p.finish(unscaled)
        closed = lft(P, controller)
        norm = hinf_norm(closed)
        if norm <= gamma * (1.0 + 1e-3):
            break
    else:
        raise np.linalg.LinAlgError(
            f"hinfsyn: the closed loop has the norm {norm:.6g}, above the bound {gamma:.6g} it was "
            "designed for: rounding was too large; scale states, inputs and outputs to sizes near 1"
        )
    return Synthesis(controller, closed, gamma, {"lower_bound": low})


def _cayley(system: StateSpace) -> StateSpace:
    """Return the system with z = (1 + s) / (1 - s), from discrete to continuous time or back."""
    A, B, C, D = (np.asarray(getattr(system, k), dtype=float) for k in "ABCD")
    eye, root = np.eye(len(A)), np.sqrt(2.0)
    if system.dt is None:  # s = (z - 1) / (z + 1)
        inverse = np.linalg.inv(eye - A)
        new = (inverse @ (eye + A), root * inverse @ B, root * C @ inverse, D + C @ inverse @ B)
    else:
        inverse = np.linalg.inv(eye + A)
        new = (inverse @ (A - eye), root * inverse @ B, root * C @ inverse, D - C @ inverse @ B)
    A, B, C, D = new
    return replace(system, A=A, B=B, C=C, D=D, dt=None)


class _Normal(NamedTuple):
    """A plant with D12 = [0; I], D21 = [0, I] and D22 = 0."""

    A: np.ndarray
    B1: np.ndarray
    B2: np.ndarray
    C1: np.ndarray
    C2: np.ndarray
    D11: np.ndarray


def _normalize(p: _Plant) -> tuple[_Normal, np.ndarray, np.ndarray]:
    """Return the normal form, and what turns its controls and measurements into the plant's."""
    U, s, Vt = np.linalg.svd(p.D12)
    U = np.concatenate([U[:, p.nu :], U[:, : p.nu]], axis=1)  # errors: U.T z
    left = Vt.T / s  # u = left u'
    W, r, Zt = np.linalg.svd(p.D21)
    Z = np.concatenate([Zt[p.ny :], Zt[: p.ny]]).T  # disturbances: w = Z w'
    right = (W / r).T  # y' = right y
    return (
        _Normal(p.A, p.B1 @ Z, p.B2 @ left, U.T @ p.C1, right @ p.C2, U.T @ p.D11 @ Z),
        left,
        right,
    )


def _least_bound(n: _Normal) -> float:
    """Return what no controller can beat: the errors that controls or measurements do not see."""
    m2, p2 = n.B2.shape[1], n.C2.shape[0]
    rows, columns = len(n.D11) - m2, n.D11.shape[1] - p2
    sizes = [0.0]
    for part in (n.D11[:rows], n.D11[:, :columns]):
        if part.size:
            sizes.append(float(np.linalg.norm(part, 2)))
    return max(sizes)


def _stabilizing(H: np.ndarray) -> np.ndarray | None:
    """Return X of the Riccati equation of a Hamiltonian matrix, or None."""
    from scipy.linalg import schur

    n = len(H) // 2
    if not n:
        return np.zeros((0, 0))
    try:
        _, U, stable = schur(H, sort="lhp")
    except np.linalg.LinAlgError:  # eigenvalues so near the axis that they cannot be told apart
        return None
    values = np.linalg.eigvals(H)
    if stable != n or np.min(np.abs(values.real)) <= 1e-10 * np.max(np.abs(values)):
        return None
    try:
        X = np.linalg.solve(U[:n, :n].T, U[n:, :n].T).T
    except np.linalg.LinAlgError:
        return None
    return 0.5 * (X + X.T)


def _is_not_negative(X: np.ndarray) -> bool:
    values = np.linalg.eigvalsh(X) if X.size else np.zeros(1)
    return bool(values.min() >= -1e-9 * max(1.0, values.max()))


def _central(n: _Normal, gamma: float) -> StateSpace | None:
    """Return the central controller for a bound, or None where there is none."""
    A, B1, B2, C1, C2, D11 = n
    m1, m2, p1, p2 = B1.shape[1], B2.shape[1], C1.shape[0], C2.shape[0]
    rows, columns = p1 - m2, m1 - p2
    D12, D21 = np.eye(p1, m2, -rows), np.eye(p2, m1, columns)
    B, C = np.concatenate([B1, B2], axis=1), np.concatenate([C1, C2])
    D1, D_1 = np.concatenate([D11, D12], axis=1), np.concatenate([D11, D21])
    R, Rt = D1.T @ D1, D_1 @ D_1.T
    R[:m1, :m1] -= gamma**2 * np.eye(m1)
    Rt[:p1, :p1] -= gamma**2 * np.eye(p1)
    zero = np.zeros_like(A)
    try:
        RB = np.linalg.solve(R, np.concatenate([D1.T @ C1, B.T], axis=1))
        RC = np.linalg.solve(Rt, np.concatenate([D_1 @ B1.T, C], axis=1))
    except np.linalg.LinAlgError:
        return None
    X = _stabilizing(
        np.block([[A, zero], [-C1.T @ C1, -A.T]]) - np.concatenate([B, -C1.T @ D1]) @ RB
    )
    Y = _stabilizing(
        np.block([[A.T, zero], [-B1 @ B1.T, -A]]) - np.concatenate([C.T, -B1 @ D_1.T]) @ RC
    )
    if X is None or Y is None or not (_is_not_negative(X) and _is_not_negative(Y)):
        return None
    if X.size and np.max(np.abs(np.linalg.eigvals(X @ Y))) >= gamma**2:
        return None
    F = -np.linalg.solve(R, D1.T @ C1 + B.T @ X)
    L = -np.linalg.solve(Rt, (B1 @ D_1.T + Y @ C.T).T).T
    F12, F2 = F[columns:m1], F[m1:]
    L12, L2 = L[:, rows:p1], L[:, p1:]
    a, b, c, d = (
        D11[:rows, :columns],
        D11[:rows, columns:],
        D11[rows:, :columns],
        D11[rows:, columns:],
    )
    g = gamma**2
    inner = np.linalg.inv(g * np.eye(rows) - a @ a.T) if rows else np.zeros((0, 0))
    outer = np.linalg.inv(g * np.eye(columns) - a.T @ a) if columns else np.zeros((0, 0))
    D11h = -c @ a.T @ inner @ b - d
    try:
        D12h = np.linalg.cholesky(np.eye(m2) - c @ outer @ c.T)
        D21h = np.linalg.cholesky(np.eye(p2) - b.T @ inner @ b).T
        Z = np.linalg.inv(np.eye(len(A)) - Y @ X / g)
    except np.linalg.LinAlgError:
        return None
    B2h, C2h = Z @ (B2 + L12) @ D12h, -D21h @ (C2 + F12)
    B1h = -Z @ L2 + B2h @ np.linalg.solve(D12h, D11h)
    back = np.linalg.solve(D21h, C2h)
    C1h = F2 + D11h @ back
    return StateSpace(A + B @ F + B1h @ back, B1h, C1h, D11h)


def augw(G: Any, W1: Any = None, W2: Any = None, W3: Any = None) -> StateSpace:
    """Return the plant of a mixed-sensitivity problem.

    The errors are W1 S w, W2 K S w and W3 T w, with S = (I + G K)^-1 and T = G K S; those whose
    weight is None are left out.

    Parameters
    ----------
    G : StateSpace or TransferFunction
        Plant.
    W1 : system or float, optional
        Weight of the control error.
    W2 : system or float, optional
        Weight of the controls.
    W3 : system or float, optional
        Weight of the output.

    Examples
    --------
    >>> from archimedes.control import tf
    >>> augw(tf([1.0], [1.0, 1.0]), 1.0, 0.1).D
    array([[1. , 0. ],
           [0. , 0.1],
           [1. , 0. ]])
    """
    G = ss(G)
    p, m = G.noutputs, G.ninputs
    parts = []
    for W, size in ((W1, p), (W2, m), (W3, p)):
        if W is None:
            continue
        weight = ss(W)
        if weight.ninputs == weight.noutputs == 1 and size > 1:
            weight = append(*[weight] * size)
        parts.append(weight)
    if not parts:
        raise ValueError("augw: give at least one of W1, W2 and W3")
    # From (w, u): the signals w - G u, u, G u that weights act on, and the measurement w - G u.
    eye_w, eye_u = np.eye(p, p + m), np.eye(m, p + m, p)
    output = G * eye_u
    signals = [s for s, W in ((eye_w - output, W1), (ss(eye_u), W2), (output, W3)) if W is not None]
    every = _stack([w * s for w, s in zip(parts, signals)] + [eye_w - output])
    names = tuple(f"w[{k}]" for k in range(p)) + G.inputs
    errors = tuple(f"z[{k}]" for k in range(every.noutputs - p))
    measured = tuple(f"e[{k}]" for k in range(p))
    return minreal(every).rename(inputs=names, outputs=errors + measured)


def _stack(systems: list[StateSpace]) -> StateSpace:
    """Return systems with a common input and all their outputs."""
    both = append(*systems)
    return both * np.concatenate([np.eye(systems[0].ninputs)] * len(systems))


def mixsyn(G: Any, W1: Any = None, W2: Any = None, W3: Any = None, **options: Any) -> Synthesis:
    """Return the controller with the least H-infinity norm of weighted sensitivities.

    Parameters
    ----------
    G : StateSpace or TransferFunction
        Plant.
    W1 : system or float, optional
        Weight of the sensitivity S.
    W2 : system or float, optional
        Weight of the controls K S.
    W3 : system or float, optional
        Weight of the complementary sensitivity T.
    **options
        Options of `hinfsyn`.

    Examples
    --------
    >>> from archimedes.control import tf
    >>> s = tf("s")
    >>> plant = 200 / ((10 * s + 1) * (0.05 * s + 1) ** 2)
    >>> design = mixsyn(plant, (s / 1.5 + 10) / (s + 1e-3), 1.0)
    >>> round(design.norm, 2)
    1.37
    """
    G = ss(G)
    return hinfsyn(augw(G, W1, W2, W3), G.noutputs, G.ninputs, **options)


def ncfsyn(G: Any, factor: float = 1.0 + 1e-6) -> Synthesis:
    """Return the controller that keeps a shaped plant stable under the largest uncertainty.

    Shape the open loop with weights first, G = W2 P W1, then use the controller W1 K W2. The norm
    is that of [K; I](I - G K)^-1 [I, G]; 1 / norm is the stability margin, good above 0.25.

    Parameters
    ----------
    G : StateSpace or TransferFunction
        Shaped plant in continuous time, of numbers.
    factor : float, optional
        How far above the least norm the controller is.

    Returns
    -------
    Synthesis
        The controller is for positive feedback, ``feedback(G, K, sign=1)``.

    Examples
    --------
    >>> from archimedes.control import tf
    >>> design = ncfsyn(tf([4.0], [1.0, 0.0]))
    >>> round(1.0 / design.norm, 3)
    0.707
    """
    G = ss(G)
    if G.dt is not None:
        raise ValueError("ncfsyn: the plant must be in continuous time; use d2c(G)")
    A, B, C, D = (np.asarray(getattr(G, k), dtype=float) for k in "ABCD")
    S, R = np.eye(G.ninputs) + D.T @ D, np.eye(G.noutputs) + D @ D.T
    A0 = A - B @ np.linalg.solve(S, D.T @ C)
    X = solve_care(A0, B, C.T @ np.linalg.solve(R, C), S)
    Z = solve_care(A0.T, C.T, B @ np.linalg.solve(S, B.T), R)
    least = float(np.sqrt(1.0 + np.max(np.linalg.eigvals(X @ Z).real, initial=0.0)))
    g = (factor * least) ** 2
    F = -np.linalg.solve(S, D.T @ C + B.T @ X)
    W = (1.0 - g) * np.eye(len(A)) + X @ Z
    Bk = g * np.linalg.solve(W.T, Z @ C.T)
    controller = StateSpace(*(A + B @ F + Bk @ (C + D @ F), Bk, B.T @ X, -D.T), **swap_signals(G))
    p, m = G.noutputs, G.ninputs
    # w = (output disturbance, input disturbance); z = (u, y).
    plant = StateSpace(
        A,
        np.concatenate([np.zeros((len(A), p)), B, B], axis=1),
        np.concatenate([np.zeros((m, len(A))), C, C]),
        np.block(
            [
                [np.zeros((m, p)), np.zeros((m, m)), np.eye(m)],
                [np.eye(p), D, D],
                [np.eye(p), D, D],
            ]
        ),
    )
    closed = lft(plant, controller)
    norm = hinf_norm(closed)
    if not norm <= factor * least * 1.01:
        raise np.linalg.LinAlgError(
            f"ncfsyn: the closed loop has the norm {norm:.6g}, above {factor * least:.6g}: "
            "rounding was too large; use a larger factor, such as 1.1"
        )
    return Synthesis(controller, closed, factor * least, {"lower_bound": least})
