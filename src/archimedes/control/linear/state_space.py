"""Linear systems as structs, and how they combine.

Systems are in continuous time (``dt`` is None) or in steps of ``dt`` seconds, with any number of
inputs and outputs, which have names and units. Everything but zeros works in recorded code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from archimedes.checks import check_positive, is_traced
from archimedes.control.linear.discretization import discretize_linear
from archimedes.control.linear.invariant_zeros import invariant_zeros
from archimedes.control.matrix_checks import matrix, real_numbers, vector
from archimedes.tree import field, struct
from archimedes.typing import Array, ArrayLike, Scalar

__all__ = [
    "StateSpace",
    "append",
    "connect",
    "feedback",
    "lft",
    "parallel",
    "series",
    "summing_junction",
]

#: Some of the inputs or outputs, by name or number; all if None.
Choice = str | int | Sequence[str | int] | None


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
            names = read_texts(getattr(self, f"{kind}s"), f"{kind}s", size)
            put(self, f"{kind}s", names or tuple(f"{letter}[{k}]" for k in range(size)))
            units = read_texts(getattr(self, f"{kind}_units"), f"{kind}_units", size)
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

    def zeros(self) -> np.ndarray:
        """Return the invariant zeros, complex; of numbers, not of recorded values."""
        if is_traced(self.A, self.B, self.C, self.D):
            raise TypeError("zeros runs on numbers: call it outside recorded functions")
        return invariant_zeros(*(np.asarray(getattr(self, k), dtype=float) for k in "ABCD"))

    def dcgain(self) -> Array:
        """Return the gain (p, m) at the frequency zero; infinite or nan at a pole there."""
        A = self.A if self.dt is None else self.A - np.eye(self.nstates)
        if not self.nstates:
            return self.D
        with np.errstate(all="ignore"):
            try:
                return self.D - self.C @ np.linalg.solve(A, self.B)
            except np.linalg.LinAlgError:
                return np.full(self.D.shape, np.inf)

    @property
    def nstates(self) -> int:
        """Number of states."""
        return self.A.shape[0]

    @property
    def ninputs(self) -> int:
        """Number of inputs."""
        return self.B.shape[1]

    @property
    def noutputs(self) -> int:
        """Number of outputs."""
        return self.C.shape[0]

    # ---- combining -------------------------------------------------------------------------

    #: NumPy's numbers and arrays leave operators to this class.
    __array_ufunc__ = None

    def __neg__(self) -> StateSpace:
        return replace(self, C=-self.C, D=-self.D)

    def __add__(self, other: Gain) -> StateSpace:
        """Return the sum of the outputs for the same input; a number is added to every entry."""
        if isinstance(other, StateSpace):
            return parallel(self, other)
        return replace(self, D=self.D + other) if _is_gain(other) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Gain) -> StateSpace:
        return self + -other if isinstance(other, StateSpace) or _is_gain(other) else NotImplemented

    def __rsub__(self, other: Gain) -> StateSpace:
        return -self + other if _is_gain(other) else NotImplemented

    def __mul__(self, other: Gain) -> StateSpace:
        """Return ``self`` behind ``other``, a system, a matrix or a number."""
        if isinstance(other, StateSpace):
            return series(other, self)
        if not _is_gain(other):
            return NotImplemented
        if np.ndim(other) == 0:
            return replace(self, B=self.B * other, D=self.D * other)
        return series(as_gain(other, "gain"), self)

    def __rmul__(self, other: Gain) -> StateSpace:
        if not _is_gain(other):
            return NotImplemented
        if np.ndim(other) == 0:
            return replace(self, C=self.C * other, D=self.D * other)
        return series(self, as_gain(other, "gain"))

    def __truediv__(self, other: Gain) -> StateSpace:
        """Return ``self`` behind the inverse of ``other``."""
        if isinstance(other, StateSpace):
            return self * other.inverse()
        return self * (1.0 / np.asarray(other)) if _is_number(other) else NotImplemented

    def __rtruediv__(self, other: Gain) -> StateSpace:
        return other * self.inverse() if _is_gain(other) else NotImplemented

    def inverse(self) -> StateSpace:
        """Return the system from outputs to inputs. D must be square and invertible."""
        if self.ninputs != self.noutputs:
            raise ValueError(
                f"a system with {self.ninputs} inputs and {self.noutputs} outputs has no inverse"
            )
        try:
            D = np.linalg.inv(self.D)
        except np.linalg.LinAlgError:
            raise ValueError(
                "the inverse of this system is not proper, because its D is singular; divide "
                "transfer functions instead, with tf(system)"
            ) from None
        C = -D @ self.C
        inverse = replace(self, A=self.A + self.B @ C, B=self.B @ D, C=C, D=D)
        return inverse.rename(**swap_signals(self))

    def __getitem__(self, key: tuple[Any, Any]) -> StateSpace:
        """Return ``system[outputs, inputs]``, by name, number or slice."""
        if not isinstance(key, tuple) or len(key) != 2:
            raise IndexError(f"write system[outputs, inputs], got {key!r}")
        return self.part(*(None if k == slice(None) else k for k in key))

    def rename(self, **names: Sequence[str] | str) -> StateSpace:
        """Return the system with other names or units.

        Parameters
        ----------
        **names : sequence of str
            ``states``, ``inputs``, ``outputs``, ``state_units``, ``input_units`` or
            ``output_units``; for one of them its text alone will do.

        Examples
        --------
        >>> lag = StateSpace([[-1.0]], [[1.0]], [[1.0]], [[0.0]])
        >>> lag.rename(inputs="thrust", outputs=["speed"]).inputs
        ('thrust',)
        """
        return replace(self, **names)

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
        i = choose(outputs, self.outputs, "outputs")
        j = choose(inputs, self.inputs, "inputs")
        return replace(
            self, B=self.B[:, j], C=self.C[i], D=self.D[i][:, j], **choose_texts(self, i, j)
        )

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


def choose_texts(system: Any, i: list[int], j: list[int]) -> dict[str, tuple[str, ...]]:
    """Return the names and units of some outputs and inputs of a system."""
    chosen = {"inputs": j, "outputs": i, "input_units": j, "output_units": i}
    return {name: tuple(getattr(system, name)[k] for k in at) for name, at in chosen.items()}


def swap_signals(system: Any) -> dict[str, tuple[str, ...]]:
    """Return the names and units of a system whose inputs become outputs; given names alone."""

    def given(names: tuple[str, ...], letter: str) -> tuple[str, ...]:
        return () if names == tuple(f"{letter}[{k}]" for k in range(len(names))) else names

    return {
        "inputs": given(system.outputs, "y"),
        "outputs": given(system.inputs, "u"),
        "input_units": system.output_units,
        "output_units": system.input_units,
    }


def read_texts(value: str | Sequence[str], name: str, size: int) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else tuple(value)
    if texts and (len(texts) != size or not all(isinstance(v, str) for v in texts)):
        raise ValueError(f"{name} must be {size} texts, got {value!r}")
    return texts


def choose(wanted: Any, names: tuple[str, ...], what: str) -> list[int]:
    """Return the numbers of names, which may be given by number."""
    if wanted is None or isinstance(wanted, slice):
        return list(range(len(names)))[wanted or slice(None)]
    items = [wanted] if isinstance(wanted, (str, int)) else list(wanted)
    for item in items:
        if item not in (names if isinstance(item, str) else range(len(names))):
            raise ValueError(f"{what} has no {item!r}; there are {', '.join(names)}")
    return [names.index(item) if isinstance(item, str) else int(item) for item in items]


#: What combines with a system: another, a number, or a matrix (p, m).
Gain = StateSpace | ArrayLike


def _is_gain(value: object) -> bool:
    """Return whether something is a number or an array, traced or not."""
    return isinstance(value, (int, float, np.number, np.ndarray)) or (
        is_traced(value) and hasattr(value, "dtype")
    )


def _is_number(value: object) -> bool:
    return _is_gain(value) and np.ndim(value) == 0


def as_gain(value: Gain, name: str, outputs: int = 1, inputs: int = 1) -> StateSpace:
    """Return a matrix as a system without states; a number is its multiple of the identity."""
    if isinstance(value, StateSpace):
        return value
    numbers = real_numbers(value, name)
    D = matrix(numbers * np.eye(outputs, inputs) if np.ndim(numbers) == 0 else numbers, name)
    p, m = D.shape
    return StateSpace(np.zeros((0, 0)), np.zeros((0, m)), np.zeros((p, 0)), D)


def _shared_step(systems: Sequence[StateSpace]) -> Scalar | None:
    """Return the dt that systems share; a gain takes that of the others."""
    steps = [s.dt for s in systems if s.nstates or s.dt is not None]
    known = next((s for s in steps if s is not None), None)
    if known is not None and any(s is None for s in steps):
        raise ValueError(
            f"a continuous system and one with dt = {known} s cannot be combined: discretize the "
            "continuous one first, system.discretize(dt)"
        )
    first = steps[0] if steps else None
    for dt in steps:
        if not is_traced(dt, first) and dt != first:
            raise ValueError(
                f"systems with dt = {first} s and dt = {dt} s cannot be combined: discretize them "
                "with one dt"
            )
    return first


def _unique(names: Sequence[str]) -> tuple[str, ...]:
    """Return names, or none where two would be the same."""
    return tuple(names) if len(set(names)) == len(names) else ()


def _signals(systems: Sequence[StateSpace], kind: str) -> dict[str, tuple[str, ...]]:
    """Return the names and units of the states, inputs or outputs of several systems."""
    names = [name for s in systems for name in getattr(s, f"{kind}s")]
    units = [unit for s in systems for unit in getattr(s, f"{kind}_units")]
    return {f"{kind}s": _unique(names), f"{kind}_units": tuple(units)}


def _diagonal(blocks: Sequence[Array]) -> Array:
    """Return matrices as the blocks of a block-diagonal one."""
    rows = [
        [b if i == j else np.zeros((b.shape[0], other.shape[1])) for j, other in enumerate(blocks)]
        for i, b in enumerate(blocks)
    ]
    return np.concatenate([np.concatenate(row, axis=1) for row in rows])


def append(*systems: Gain) -> StateSpace:
    """Return systems side by side: all inputs, all outputs, nothing connected.

    Parameters
    ----------
    *systems : StateSpace, array (p, m) or float
        The systems, in order. A matrix or number is a gain.

    Examples
    --------
    >>> lag = StateSpace([[-1.0]], [[1.0]], [[1.0]], [[0.0]])
    >>> append(lag, 2.0).D
    array([[0., 0.],
           [0., 2.]])
    """
    every = [as_gain(s, "systems") for s in systems]
    A, B, C, D = (_diagonal([getattr(s, k) for s in every]) for k in "ABCD")
    names = {
        k: v for kind in ("state", "input", "output") for k, v in _signals(every, kind).items()
    }
    return StateSpace(A, B, C, D, _shared_step(every), **names)


def _check_channels(first: int, second: int, what: str) -> None:
    if first != second:
        raise ValueError(f"{what}: {first} and {second} do not match")


def series(*systems: Gain) -> StateSpace:
    """Return systems one behind the other: the first gets the input, the last gives the output.

    ``series(a, b)`` is ``b * a``.

    Parameters
    ----------
    *systems : StateSpace, array (p, m) or float
        The systems, in the order in which a signal passes them.

    Examples
    --------
    >>> lag = StateSpace([[-1.0]], [[1.0]], [[1.0]], [[0.0]])
    >>> series(lag, lag).poles()
    array([-1., -1.])
    """
    first, *others = (as_gain(s, "systems") for s in systems)
    for second in others:
        _check_channels(first.noutputs, second.ninputs, "series: outputs and inputs")
        A = np.concatenate(
            [
                np.concatenate([first.A, np.zeros((first.nstates, second.nstates))], axis=1),
                np.concatenate([second.B @ first.C, second.A], axis=1),
            ]
        )
        first = StateSpace(
            A,
            np.concatenate([first.B, second.B @ first.D]),
            np.concatenate([second.D @ first.C, second.C], axis=1),
            second.D @ first.D,
            _shared_step([first, second]),
            inputs=first.inputs,
            outputs=second.outputs,
            input_units=first.input_units,
            output_units=second.output_units,
            **_signals([first, second], "state"),
        )
    return first


def parallel(*systems: Gain) -> StateSpace:
    """Return systems with a common input whose outputs are added.

    Parameters
    ----------
    *systems : StateSpace, array (p, m) or float
        The systems. Inputs and outputs have the names of the first.

    Examples
    --------
    >>> lag = StateSpace([[-1.0]], [[1.0]], [[1.0]], [[0.0]])
    >>> parallel(lag, 1.0).dcgain()
    array([[2.]])
    """
    first = as_gain(systems[0], "systems")
    every = [first, *(as_gain(s, "systems", *first.D.shape) for s in systems[1:])]
    for other in every:
        _check_channels(first.ninputs, other.ninputs, "parallel: inputs")
        _check_channels(first.noutputs, other.noutputs, "parallel: outputs")
    return StateSpace(
        _diagonal([s.A for s in every]),
        np.concatenate([s.B for s in every]),
        np.concatenate([s.C for s in every], axis=1),
        sum((s.D for s in every[1:]), first.D),
        _shared_step(every),
        **_signals(every, "state"),
        **_signals([first], "input"),
        **_signals([first], "output"),
    )


def feedback(system: Gain, controller: Gain = 1.0, sign: float = -1.0) -> StateSpace:
    """Return the closed loop of a system with another in its feedback path.

    The input of `system` is the reference plus `sign` times the output of `controller`.

    Parameters
    ----------
    system : StateSpace, array (p, m) or float
        System in the forward path.
    controller : StateSpace, array (m, p) or float, optional
        System in the feedback path; the identity by default.
    sign : float, optional
        -1, the default, for negative feedback, 1 for positive.

    Examples
    --------
    >>> integrator = StateSpace([[0.0]], [[1.0]], [[1.0]], [[0.0]])
    >>> feedback(integrator, 2.0).poles()
    array([-2.])
    """
    G = as_gain(system, "system")
    K = as_gain(controller, "controller", G.ninputs, G.noutputs)
    _check_channels(G.noutputs, K.ninputs, "feedback: outputs of system and inputs of controller")
    _check_channels(K.noutputs, G.ninputs, "feedback: outputs of controller and inputs of system")
    both = append(G, K)
    n, p = G.ninputs, G.noutputs
    # Inputs (u, y) of both are (r, 0) + loop @ (y, v).
    loop = np.zeros((n + p, p + n))
    loop[:n, p:], loop[n:, :p] = sign * np.eye(n), np.eye(p)
    closed = _close(both, loop)[list(range(p)), list(range(n))]
    return closed.rename(
        inputs=G.inputs, outputs=G.outputs, input_units=G.input_units, output_units=G.output_units
    )


def _close(system: StateSpace, loop: Array) -> StateSpace:
    """Return a system whose inputs are new ones plus ``loop`` times its outputs."""
    E = np.eye(system.ninputs) - loop @ system.D
    right = np.concatenate([loop @ system.C, np.eye(system.ninputs)], axis=1)
    try:
        u = np.linalg.solve(E, right)
    except np.linalg.LinAlgError:
        raise ValueError(
            "the loop is algebraic and has no solution: its gain at infinite frequency is one; "
            "add a lag or a delay"
        ) from None
    n = system.nstates
    return replace(
        system,
        A=system.A + system.B @ u[:, :n],
        B=system.B @ u[:, n:],
        C=system.C + system.D @ u[:, :n],
        D=system.D @ u[:, n:],
    )


def lft(plant: StateSpace, controller: Gain) -> StateSpace:
    """Return the lower linear fractional transformation of a plant and a controller.

    The last inputs of the plant are the controls, and its last outputs the measurements: as many
    as the controller has outputs and inputs. It is closed with positive feedback.

    Parameters
    ----------
    plant : StateSpace
        Generalized plant, from (disturbances, controls) to (errors, measurements).
    controller : StateSpace, array or float
        Controller, from measurements to controls.

    Examples
    --------
    >>> plant = StateSpace([[0.0]], [[1.0, 1.0]], [[1.0], [1.0]], np.zeros((2, 2)))
    >>> lft(plant, -3.0).A
    array([[-3.]])
    """
    K = as_gain(controller, "controller")
    w, z = plant.ninputs - K.noutputs, plant.noutputs - K.ninputs
    if w < 0 or z < 0:
        raise ValueError(
            f"lft: the controller has {K.ninputs} inputs and {K.noutputs} outputs, more than the "
            f"plant's {plant.noutputs} outputs and {plant.ninputs} inputs"
        )
    both = append(plant, K)
    loop = np.zeros((both.ninputs, both.noutputs))
    loop[w : plant.ninputs, plant.noutputs :] = np.eye(K.noutputs)
    loop[plant.ninputs :, z : plant.noutputs] = np.eye(K.ninputs)
    closed = _close(both, loop)[list(range(z)), list(range(w))]
    return closed.rename(inputs=plant.inputs[:w], outputs=plant.outputs[:z])


def summing_junction(inputs: Sequence[str], output: str) -> StateSpace:
    """Return a gain that adds signals, for `connect`.

    Parameters
    ----------
    inputs : sequence of str
        Names of the signals; one that begins with ``"-"`` is subtracted.
    output : str
        Name of the sum.

    Examples
    --------
    >>> summing_junction(["r", "-y"], "e").D
    array([[ 1., -1.]])
    """
    signs = [[-1.0 if name.startswith("-") else 1.0 for name in inputs]]
    names = tuple(name.lstrip("+-") for name in inputs)
    return as_gain(np.array(signs), "inputs").rename(inputs=names, outputs=(output,))


def connect(*systems: StateSpace, inputs: Sequence[str], outputs: Sequence[str]) -> StateSpace:
    """Return systems connected by the names of their signals.

    An input is driven by the output of the same name. An input named in `inputs` is also driven
    from outside, and inputs of the same name share their signal.

    Parameters
    ----------
    *systems : StateSpace
        The systems, whose inputs and outputs have names.
    inputs : sequence of str
        Names of the inputs of the whole.
    outputs : sequence of str
        Names of the outputs of the whole.

    Examples
    --------
    >>> plant = StateSpace([[0.0]], [[1.0]], [[1.0]], [[0.0]], inputs=("u",), outputs=("y",))
    >>> gain = as_gain(3.0, "gain").rename(inputs="e", outputs="u")
    >>> loop = connect(plant, gain, summing_junction(["r", "-y"], "e"), inputs=["r"], outputs=["y"])
    >>> loop.poles()
    array([-3.])
    """
    inputs = [inputs] if isinstance(inputs, str) else list(inputs)
    outputs = [outputs] if isinstance(outputs, str) else list(outputs)
    ins = [name for s in systems for name in s.inputs]
    outs = [name for s in systems for name in s.outputs]
    repeated = sorted({name for name in outs if outs.count(name) > 1})
    if repeated:
        raise ValueError(f"connect: two outputs are called {repeated[0]!r}: rename one of them")
    for name in inputs:
        if name not in ins:
            raise ValueError(f"connect: no system has an input {name!r}; known inputs: {ins}")
    for name in outputs:
        if name not in outs:
            raise ValueError(f"connect: no system has an output {name!r}; known outputs: {outs}")
    loose = [name for name in ins if name not in outs and name not in inputs]
    if loose:
        raise ValueError(
            f"connect: nothing drives the input {loose[0]!r}: name it in inputs, or give an output "
            "this name"
        )
    both = append(*systems)
    loop = np.array([[float(i == o) for o in outs] for i in ins]).reshape(len(ins), len(outs))
    closed = _close(both, loop)
    spread = np.array([[float(i == name) for name in inputs] for i in ins])
    rows = [outs.index(name) for name in outputs]
    units = [unit for s in systems for unit in s.input_units]
    return replace(
        closed,
        B=closed.B @ spread,
        C=closed.C[rows],
        D=closed.D[rows] @ spread,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        input_units=tuple(units[ins.index(name)] for name in inputs),
        output_units=tuple(both.output_units[k] for k in rows),
    )
