"""Linear systems in continuous time as linear systems in steps.

Franklin, Powell, Workman, "Digital control of dynamic systems", 3rd ed., ch. 4.3 and 6.

Linear systems as structs, and transfer functions as such systems.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from archimedes.checks import check_choice, check_positive, is_traced
from archimedes.control.matrix_checks import matrix, vector
from archimedes.function import expm
from archimedes.tree import field, struct
from archimedes.typing import Array, ArrayLike, Scalar

__all__ = ["StateSpace", "discretize_linear", "tf2ss"]

Matrices = tuple[Array, Array, Array, Array]
#: Some of the inputs or outputs, by name or number; all if None.
Choice = str | int | Sequence[str | int] | None


def discretize_linear(
    A: ArrayLike, B: ArrayLike, C: ArrayLike, D: ArrayLike, dt: Scalar, method: str = "zoh"
) -> Matrices:
    """Return the matrices of a linear system in discrete time.

    The result is differentiable, also with respect to `dt`.

    Parameters
    ----------
    A : array (n, n)
        State matrix.
    B : array (n, m)
        Input matrix.
    C : array (p, n)
        Output matrix.
    D : array (p, m)
        Feedthrough matrix.
    dt : float
        Length of a step in s.
    method : {"zoh", "foh", "tustin", "euler", "backward"}, optional
        Inputs held over a step (exact), inputs linear between samples (exact), trapezoidal rule,
        explicit Euler, implicit Euler.

    Returns
    -------
    Matrices
        A, B, C, D of x+ = A x + B u, y = C x + D u.

    Examples
    --------
    >>> A, B, C, D = discretize_linear([[-1.0]], [[1.0]], [[1.0]], [[0.0]], dt=0.1)
    >>> A.round(6), B.round(6)
    (array([[0.904837]]), array([[0.095163]]))
    """
    check_choice(method, "method", METHODS)
    n = matrix(A, "A").shape[0]
    A, B = matrix(A, "A", n, n, finite=True), matrix(B, "B", n, finite=True)
    C = matrix(C, "C", None, n, finite=True)
    D = matrix(D, "D", C.shape[0], B.shape[1], finite=True)
    check_positive(dt, "dt", "s")
    try:
        with np.errstate(all="ignore"):
            discrete = METHODS[method](A, B, C, D, dt)
    except np.linalg.LinAlgError:
        pole = "2 / dt" if method == "tustin" else "1 / dt"
        raise np.linalg.LinAlgError(
            f"method={method!r} cannot use steps of dt={dt} s, because A has an eigenvalue at "
            f"{pole}: "
            "use shorter steps, or method='zoh'"
        ) from None
    if not is_traced(discrete) and not all(np.all(np.isfinite(part)) for part in discrete):
        raise ValueError(
            f"dt={dt} s is so long that states of this unstable system overflow in "
            "one step: use shorter steps"
        )
    return discrete


def _zero_order_hold(A: Array, B: Array, C: Array, D: Array, dt: Scalar) -> Matrices:
    n, m = B.shape
    top = np.concatenate([A, B], axis=1) * dt
    flow = expm(np.concatenate([top, np.zeros((m, n + m))]))
    return flow[:n, :n], flow[:n, n:], C, D


def _first_order_hold(A: Array, B: Array, C: Array, D: Array, dt: Scalar) -> Matrices:
    n, m = B.shape
    top = np.concatenate([A * dt, B * dt, np.zeros((n, m))], axis=1)
    below = np.concatenate([np.zeros((m, n + m)), np.eye(m)], axis=1)
    flow = expm(np.concatenate([top, below, np.zeros((m, n + 2 * m))]))
    F, held, ramp = flow[:n, :n], flow[:n, n : n + m], flow[:n, n + m :]
    return F, held - ramp + F @ ramp, C, D + C @ ramp


def _theta_rule(theta: float) -> Callable[..., Matrices]:
    """Return the rule x+ = x + dt ((1 - theta) dx/dt + theta dx+/dt)."""

    def rule(A: Array, B: Array, C: Array, D: Array, dt: Scalar) -> Matrices:
        eye = np.eye(A.shape[0])
        ahead = eye - theta * dt * A
        F = np.linalg.solve(ahead, eye + (1.0 - theta) * dt * A)
        G = np.linalg.solve(ahead, dt * B)
        return F, G, np.linalg.solve(ahead.T, C.T).T, D + theta * (C @ G)

    return rule


METHODS: dict[str, Callable[..., Matrices]] = {
    "zoh": _zero_order_hold,
    "foh": _first_order_hold,
    "tustin": _theta_rule(0.5),
    "euler": _theta_rule(0.0),
    "backward": _theta_rule(1.0),
}


@struct
class StateSpace:
    """A linear system in state-space form.

    A x + B u is dx/dt or, in discrete time, the next state; C x + D u is the output.

    Parameters
    ----------
    A : array (n, n)
        State matrix.
    B : array (n, m)
        Input matrix.
    C : array (p, n)
        Output matrix.
    D : array (p, m)
        Feedthrough matrix.
    dt : float, optional
        Length of a step in s. None, the default, for continuous time.
    states : tuple of str, optional
        Names of the states, ``"x[0]"``, ... by default.
    inputs : tuple of str, optional
        Names of the inputs, ``"u[0]"``, ... by default.
    outputs : tuple of str, optional
        Names of the outputs, ``"y[0]"``, ... by default.
    state_units : tuple of str, optional
        Units of the states, ``""`` where unknown.
    input_units : tuple of str, optional
        Units of the inputs.
    output_units : tuple of str, optional
        Units of the outputs.

    Examples
    --------
    >>> lag = StateSpace(A=[[-1.0]], B=[[1.0]], C=[[1.0]], D=[[0.0]]).discretize(0.1)
    >>> x, y = lag.step(np.zeros(1), np.ones(1))
    >>> x.round(6), y
    (array([0.095163]), array([0.]))
    """

    A: Array
    B: Array
    C: Array
    D: Array
    dt: Scalar | None = field(default=None, units="s")
    states: tuple[str, ...] = field(static=True, default=(), kw_only=True)
    inputs: tuple[str, ...] = field(static=True, default=(), kw_only=True)
    outputs: tuple[str, ...] = field(static=True, default=(), kw_only=True)
    state_units: tuple[str, ...] = field(static=True, default=(), kw_only=True)
    input_units: tuple[str, ...] = field(static=True, default=(), kw_only=True)
    output_units: tuple[str, ...] = field(static=True, default=(), kw_only=True)

    def __post_init__(self) -> None:
        n = matrix(self.A, "A").shape[0]
        put = object.__setattr__
        put(self, "A", matrix(self.A, "A", n, n))
        put(self, "B", matrix(self.B, "B", n))
        put(self, "C", matrix(self.C, "C", None, n))
        put(self, "D", matrix(self.D, "D", self.C.shape[0], self.B.shape[1]))
        if self.dt is not None:
            check_positive(self.dt, "dt", "s")
        sizes = {"state": n, "input": self.B.shape[1], "output": self.C.shape[0]}
        for (kind, size), letter in zip(sizes.items(), "xuy"):
            names = _read_texts(getattr(self, f"{kind}s"), f"{kind}s", size)
            put(self, f"{kind}s", names or tuple(f"{letter}[{k}]" for k in range(size)))
            units = _read_texts(getattr(self, f"{kind}_units"), f"{kind}_units", size)
            put(self, f"{kind}_units", units or ("",) * size)

    def step(self, state: ArrayLike, input: ArrayLike) -> tuple[Array, Array]:
        """Return the next state and the output, in discrete time.

        Parameters
        ----------
        state : array (n,)
            State.
        input : array (m,)
            Input.
        """
        return self.rates(state, input), self.output(state, input)

    def rates(self, state: ArrayLike, input: ArrayLike) -> Array:
        """Return dx/dt (n,), in continuous time.

        Parameters
        ----------
        state : array (n,)
            State.
        input : array (m,)
            Input.
        """
        x, u = self._at(state, input)
        return self.A @ x + self.B @ u

    def output(self, state: ArrayLike, input: ArrayLike) -> Array:
        """Return the output y (p,).

        Parameters
        ----------
        state : array (n,)
            State.
        input : array (m,)
            Input.
        """
        x, u = self._at(state, input)
        return self.C @ x + self.D @ u

    def discretize(self, dt: Scalar, method: str = "zoh") -> StateSpace:
        """Return the system in discrete time.

        Parameters
        ----------
        dt : float
            Length of a step in s.
        method : str, optional
            Method of `discretize_linear`, ``"zoh"`` by default.
        """
        if self.dt is not None:
            raise ValueError(f"this system is in steps of dt = {self.dt} s already")
        A, B, C, D = discretize_linear(self.A, self.B, self.C, self.D, dt, method)
        return replace(self, A=A, B=B, C=C, D=D, dt=dt)

    def poles(self) -> Any:
        """Return the eigenvalues of A (n,), complex; in recorded code a pair of real and imag."""
        return np.linalg.eigvals(self.A)

    def part(self, outputs: Choice = None, inputs: Choice = None) -> StateSpace:
        """Return the system from some of its inputs to some of its outputs.

        Parameters
        ----------
        outputs : str, int or sequence, optional
            Outputs to keep, by name or number. All by default.
        inputs : str, int or sequence, optional
            Inputs to keep, by name or number. All by default.

        Examples
        --------
        >>> system = StateSpace(-np.eye(2), np.eye(2), np.eye(2), np.zeros((2, 2)))
        >>> system.part("y[1]", ["u[0]"]).B.shape
        (2, 1)
        """
        i = _choose(outputs, self.outputs, "outputs")
        j = _choose(inputs, self.inputs, "inputs")
        chosen = {"inputs": j, "outputs": i, "input_units": j, "output_units": i}
        texts: dict[str, Any] = {
            name: tuple(getattr(self, name)[k] for k in at) for name, at in chosen.items()
        }
        return replace(self, B=self.B[:, j], C=self.C[i], D=self.D[i][:, j], **texts)

    def to_control(self) -> Any:
        """Return the system as a `StateSpace` of python-control, with its names."""
        from control import StateSpace as Theirs

        # Its names are keys of signals and cannot hold dots.
        kinds = ("states", "inputs", "outputs")
        names = {k: [name.replace(".", "_") for name in getattr(self, k)] for k in kinds}
        return Theirs(self.A, self.B, self.C, self.D, 0 if self.dt is None else self.dt, **names)

    @classmethod
    def from_control(cls, system: Any) -> StateSpace:
        """Return the system of a `StateSpace` of python-control, with its names.

        Parameters
        ----------
        system : control.StateSpace
            System of python-control.
        """
        if not all(hasattr(system, k) for k in ("A", "B", "C", "D", "state_labels")):
            raise TypeError(
                f"system must be a StateSpace of python-control, got {type(system).__name__}; use "
                "control.ss(system) first"
            )
        if system.dt is True:
            raise ValueError("system.dt is True, an unknown step: give it one in seconds")
        kinds = ("state", "input", "output")
        names = {f"{k}s": tuple(getattr(system, f"{k}_labels")) for k in kinds}
        A, B, C, D = (np.array(getattr(system, k), dtype=float) for k in "ABCD")
        return cls(A, B, C, D, float(system.dt) if system.dt else None, **names)

    def __str__(self) -> str:
        kind = "continuous time" if self.dt is None else f"steps of {self.dt} s"
        lines = [f"StateSpace in {kind}"]
        for what in ("state", "input", "output"):
            names, units = getattr(self, f"{what}s"), getattr(self, f"{what}_units")
            listed = [f"{n} [{u}]" if u else n for n, u in zip(names, units)]
            lines.append(f"  {what}s: {', '.join(listed) or 'none'}")
        if not is_traced(self.A, self.B, self.C, self.D):
            lines += [f"{k} =\n{getattr(self, k)}" for k in "ABCD"]
        return "\n".join(lines)

    def _at(self, state: ArrayLike, input: ArrayLike) -> tuple[Array, Array]:
        return vector(state, "state", len(self.B)), vector(input, "input", self.B.shape[1])


def check_system(system: object, name: str) -> None:
    """Raise where a system is not a `StateSpace`."""
    if not isinstance(system, StateSpace):
        raise TypeError(f"{name} must be a control.StateSpace, got {type(system).__name__}")


def _read_texts(value: str | Sequence[str], name: str, size: int) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else tuple(value)
    if texts and (len(texts) != size or not all(isinstance(v, str) for v in texts)):
        raise ValueError(f"{name} must be {size} texts, got {value!r}")
    return texts


def _choose(wanted: Choice, names: tuple[str, ...], what: str) -> list[int]:
    """Return the numbers of names, which may be given by number."""
    if wanted is None:
        return list(range(len(names)))
    items = [wanted] if isinstance(wanted, (str, int)) else list(wanted)
    for item in items:
        if item not in (names if isinstance(item, str) else range(len(names))):
            raise ValueError(f"{what} has no {item!r}; there are {', '.join(names)}")
    return [names.index(item) if isinstance(item, str) else int(item) for item in items]


def tf2ss(num: ArrayLike, den: ArrayLike, dt: Scalar | None = None) -> StateSpace:
    """Return a system with the transfer function num/den.

    It has one input and one output, and is in controllable canonical form.

    Parameters
    ----------
    num : array
        Coefficients of the numerator, highest power first. It must not be longer than `den`.
    den : array
        Coefficients of the denominator, highest power first.
    dt : float, optional
        Length of a step in s: the powers are those of z. None, the default, for powers of s.

    Examples
    --------
    >>> tf2ss([1.0], [1.0, 2.0, 3.0]).A
    array([[-2., -3.],
           [ 1.,  0.]])
    """
    a, b = vector(den, "den"), vector(num, "num")
    n = a.shape[0] - 1
    if n < 1:
        raise ValueError("den must have a power of s or z: two coefficients or more")
    if b.shape[0] > n + 1:
        raise ValueError(f"num must have at most the {n + 1} coefficients of den (proper)")
    if not is_traced(a) and not (np.all(np.isfinite(a)) and a[0] != 0.0):
        raise ValueError(
            f"den must hold finite numbers, the first of them not zero (highest power), got {a}"
        )
    b = np.concatenate([np.zeros(n + 1 - b.shape[0]), b]) / a[0]
    a = a / a[0]
    A = np.concatenate([-a[None, 1:], np.eye(n - 1, n)])
    return StateSpace(A, np.eye(n, 1), (b[1:] - b[0] * a[1:])[None, :], b[:1][:, None], dt)
