"""Linear systems as structs, and their operators.

Systems are in continuous time (``dt`` is None) or in steps of ``dt`` seconds, with any number of
inputs and outputs, which have names and units. Everything but zeros works in recorded code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from archimedes.checks import check_positive, is_traced
from archimedes.control.linear.discretization import discretize_linear
from archimedes.control.linear.invariant_zeros import invariant_zeros
from archimedes.control.matrix_checks import matrix, vector
from archimedes.display import COLUMNS, LINES, axis_label, text_table
from archimedes.tree import field, struct
from archimedes.typing import Array, ArrayLike, Scalar

__all__ = ["StateSpace"]

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

    def __iter__(self) -> Iterator[Array]:
        """Give A, B, C and D: ``A, B, C, D = system``."""
        return iter((self.A, self.B, self.C, self.D))

    def __call__(self, s: complex) -> Any:
        """Return C (s I - A)^-1 B + D at a complex number s (or z): a number, or (p, m)."""
        A, B, C, D = (np.asarray(M) for M in self)
        value = C @ np.linalg.solve(s * np.eye(len(A)) - A, B) + D
        return value[0, 0] if value.shape == (1, 1) else value

    # ---- combining -------------------------------------------------------------------------

    #: NumPy's numbers and arrays leave operators to this class.
    __array_ufunc__ = None

    def __neg__(self) -> StateSpace:
        return replace(self, C=-self.C, D=-self.D)

    def __add__(self, other: Gain) -> StateSpace:
        """Return the sum of the outputs for the same input; a number is added to every entry."""
        if isinstance(other, StateSpace):
            return _add(self, other)
        return replace(self, D=self.D + other) if is_gain(other) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Gain) -> StateSpace:
        return self + -other if isinstance(other, StateSpace) or is_gain(other) else NotImplemented

    def __rsub__(self, other: Gain) -> StateSpace:
        return -self + other if is_gain(other) else NotImplemented

    def __mul__(self, other: Gain) -> StateSpace:
        """Return ``other`` (system, matrix or number) and ``self`` in series, in this order."""
        if isinstance(other, StateSpace):
            return _cascade(other, self)
        if not is_gain(other):
            return NotImplemented
        if np.ndim(other) == 0:
            return replace(self, B=self.B * other, D=self.D * other)
        return _cascade(gain_system(matrix(other, "gain")), self)

    def __rmul__(self, other: Gain) -> StateSpace:
        if not is_gain(other):
            return NotImplemented
        if np.ndim(other) == 0:
            return replace(self, C=self.C * other, D=self.D * other)
        return _cascade(self, gain_system(matrix(other, "gain")))

    def __truediv__(self, other: Gain) -> StateSpace:
        """Return the series connection of the inverse of ``other`` and ``self``."""
        if isinstance(other, StateSpace):
            return self * other.inverse()
        return self * (1.0 / np.asarray(other)) if is_number(other) else NotImplemented

    def __rtruediv__(self, other: Gain) -> StateSpace:
        return other * self.inverse() if is_gain(other) else NotImplemented

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

    def to_mat(self, target: Any) -> None:
        """Write A, B, C, D, Ts, names and units to a MATLAB file (version 5).

        In MATLAB ``load system.mat; sys = ss(A, B, C, D, Ts)`` is the same system.

        Parameters
        ----------
        target : path or file
            Where to write.
        """
        from archimedes.control.linear.mat_files import write_system

        write_system(self, {name: getattr(self, name) for name in "ABCD"}, target, "to_mat")

    @classmethod
    def from_mat(cls, source: Any) -> StateSpace:
        """Read a system from a MATLAB file (version 5 to 7).

        Parameters
        ----------
        source : path or file
            File with the variables A, B, C, D and perhaps Ts (0 in continuous time), and cell
            arrays StateName, InputName, OutputName, StateUnit, ... as `to_mat` writes them.
        """
        from archimedes.control.linear.mat_files import read_matrix, read_system
        from archimedes.simulate.trajectory.exports import name_source

        where = name_source("from_mat", source)
        found = read_system(source, "ABCD", "from_mat")
        matrices = {name: read_matrix(found[name], name, where) for name in "ABCD"}
        try:
            return cls(**{**found, **matrices})
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error

    def __getitem__(self, key: tuple[Any, Any]) -> StateSpace:
        """Return ``system[outputs, inputs]``, by name, number or slice."""
        return self.part(*read_key(key))

    def rename(self, **names: Any) -> StateSpace:
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
        if is_traced(self.A, self.B, self.C, self.D) or np.ndim(self.A) != 2:
            shapes = ", ".join(f"{k} {np.shape(getattr(self, k))}" for k in "ABCD")
            return f"{self._title()}\n{shapes}"
        text = self.report()
        lines = text.splitlines()
        if len(lines) <= LINES and max(map(len, lines)) <= COLUMNS:
            return text
        names = [f"{k}: {_list_names(self, k)}" for k in ("state", "input", "output")]
        return "\n".join([lines[0], *names, "print(system.report()) shows the matrices"])

    __repr__ = __str__

    def _title(self) -> str:
        p, m = np.shape(self.D)[-2:]
        counts = {"state": np.shape(self.A)[-1], "input": m, "output": p}
        words = [f"{n} {kind}{'s' * (n != 1)}" for kind, n in counts.items()]
        time = "continuous time" if self.dt is None else f"steps of {self.dt} s"
        return f"StateSpace: {', '.join(words)}, {time}"

    def report(self) -> str:
        """Return the system with all its matrices, as one table.

        A row is the rate of a state (in discrete time its next value) or an output; a column is a
        state or an input. Entries that are nothing but rounding are shown as 0.
        """
        n, m = self.nstates, self.ninputs
        both = np.block([[_without_noise(self.A), _without_noise(self.B)]])
        below = np.block([[_without_noise(self.C), _without_noise(self.D)]])
        ahead = "d {}/dt" if self.dt is None else "next {}"
        rows = [(ahead.format(name), row) for name, row in zip(self.states, both)]
        rows += [
            (axis_label(name, unit), row)
            for name, unit, row in zip(self.outputs, self.output_units, below)
        ]
        heads = [axis_label(*pair) for pair in zip(self.states, self.state_units)]
        heads += [axis_label(*pair) for pair in zip(self.inputs, self.input_units)]
        table = [("", *heads[:n], "|", *heads[n:])]
        for name, row in rows:
            cells = [f"{value:.5g}" for value in row]
            table.append((name, *cells[:n], "|", *cells[n:]))
        return f"{self._title()}\n{text_table(table)}" if n + m else self._title()

    def _at(self, state: ArrayLike, input: ArrayLike) -> tuple[Array, Array]:
        return vector(state, "state", len(self.B)), vector(input, "input", self.B.shape[1])


def _without_noise(M: Array) -> np.ndarray:
    """Return a matrix with zeros where there is nothing but rounding."""
    size = np.abs(np.asarray(M, dtype=float))
    if not size.size:
        return size
    line = np.minimum(size.max(axis=0, keepdims=True), size.max(axis=1, keepdims=True))
    noise = (size < 1e-13 * line) | (size < 1e-20 * size.max())
    return np.where(noise, 0.0, M) + 0.0


def _list_names(system: StateSpace, kind: str) -> str:
    names = [
        axis_label(*p) for p in zip(getattr(system, f"{kind}s"), getattr(system, f"{kind}_units"))
    ]
    text = ", ".join(names)
    return text if len(text) < COLUMNS - 10 else f"{names[0]} to {names[-1]}"


def read_key(key: Any) -> tuple[Any, Any]:
    """Return outputs and inputs of ``system[outputs, inputs]``."""
    if not isinstance(key, tuple) or len(key) != 2:
        raise IndexError(
            f"write system[outputs, inputs], for example system['y', 'u']; got {key!r}"
        )
    return key


def choose_texts(system: Any, i: list[int], j: list[int]) -> dict[str, Any]:
    """Return the names and units of some outputs and inputs of a system."""
    chosen = {"inputs": j, "outputs": i, "input_units": j, "output_units": i}
    return {name: tuple(getattr(system, name)[k] for k in at) for name, at in chosen.items()}


def swap_signals(system: Any) -> dict[str, Any]:
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
Gain = Any


def is_gain(value: object) -> bool:
    """Return whether something is a number or an array, traced or not."""
    return isinstance(value, (int, float, np.number, np.ndarray)) or (
        is_traced(value) and hasattr(value, "dtype")
    )


def is_number(value: Any) -> bool:
    return is_gain(value) and np.ndim(value) == 0


def shared_step(systems: Sequence[StateSpace]) -> Scalar | None:
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


def join_signals(systems: Sequence[Any], kind: str) -> dict[str, tuple[str, ...]]:
    """Return the names and units of the states, inputs or outputs of several systems.

    Names that repeat get a number; those that were never given are counted anew.
    """
    letter = {"state": "x", "input": "u", "output": "y"}[kind]
    names: list[str] = []
    for system in systems:
        own = getattr(system, f"{kind}s")
        for k, name in enumerate(own):
            if name == f"{letter}[{k}]":
                name = f"{letter}[{len(names)}]"
            number, base = 2, name
            while name in names:
                name, number = f"{base}_{number}", number + 1
            names.append(name)
    units = [unit for s in systems for unit in getattr(s, f"{kind}_units")]
    return {f"{kind}s": tuple(names), f"{kind}_units": tuple(units)}


def block_diagonal(blocks: Sequence[Array]) -> Array:
    """Return matrices as the blocks of a block-diagonal one."""
    rows = [
        [b if i == j else np.zeros((b.shape[0], other.shape[1])) for j, other in enumerate(blocks)]
        for i, b in enumerate(blocks)
    ]
    return np.concatenate([np.concatenate(row, axis=1) for row in rows])


def check_channels(first: int, second: int, what: str) -> None:
    """Raise where the numbers of signals do not match."""
    if first != second:
        raise ValueError(f"{what}: {first} and {second} do not match")


def gain_system(D: Array) -> StateSpace:
    """Return a matrix (p, m) as a system without states."""
    p, m = D.shape
    return StateSpace(np.zeros((0, 0)), np.zeros((0, m)), np.zeros((p, 0)), D)


def ends(first: Any, last: Any) -> dict[str, Any]:
    """Return names and units of the inputs of one system and the outputs of another."""
    return {
        "inputs": first.inputs,
        "outputs": last.outputs,
        "input_units": first.input_units,
        "output_units": last.output_units,
    }


def _cascade(first: StateSpace, second: StateSpace) -> StateSpace:
    """Return ``second`` behind ``first``."""
    check_channels(first.noutputs, second.ninputs, "series: outputs and inputs")
    A = np.concatenate(
        [
            np.concatenate([first.A, np.zeros((first.nstates, second.nstates))], axis=1),
            np.concatenate([second.B @ first.C, second.A], axis=1),
        ]
    )
    return StateSpace(
        A,
        np.concatenate([first.B, second.B @ first.D]),
        np.concatenate([second.D @ first.C, second.C], axis=1),
        second.D @ first.D,
        shared_step([first, second]),
        **ends(first, second),
        **join_signals([first, second], "state"),
    )


def _add(first: StateSpace, second: StateSpace) -> StateSpace:
    """Return the sum of the outputs of two systems with a common input."""
    check_channels(first.ninputs, second.ninputs, "parallel: inputs")
    check_channels(first.noutputs, second.noutputs, "parallel: outputs")
    return StateSpace(
        block_diagonal([first.A, second.A]),
        np.concatenate([first.B, second.B]),
        np.concatenate([first.C, second.C], axis=1),
        first.D + second.D,
        shared_step([first, second]),
        **join_signals([first, second], "state"),
        **ends(first, first),
    )
