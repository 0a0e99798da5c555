"""Transfer functions: fractions of polynomials, and conversions to and from state space.

Polynomials have their highest power first. A system with several inputs and outputs has a fraction
for each pair. Operations keep the polynomials as they are: `minreal` cancels common factors.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from archimedes.checks import check_finite, check_positive, is_traced
from archimedes.control.linear.discretization import continue_linear
from archimedes.control.linear.interconnection import as_state_space, feedback
from archimedes.control.linear.invariant_zeros import balance_system
from archimedes.control.linear.state_space import (
    StateSpace,
    choose,
    choose_texts,
    read_key,
    read_texts,
    swap_signals,
)
from archimedes.control.matrix_checks import real_numbers, vector
from archimedes.tree import field, struct
from archimedes.typing import Array, ArrayLike, Scalar

__all__ = [
    "TransferFunction",
    "c2d",
    "d2c",
    "minreal",
    "ss",
    "ss2tf",
    "ss2zpk",
    "tf",
    "tf2ss",
    "zpk",
]

#: Rows of polynomials: entry [i][j] is from input j to output i.
Polynomials = tuple[tuple[Array, ...], ...]
#: What a transfer function combines with.
Operand = Any


def _trim(p: Array) -> Array:
    """Return a polynomial without zeros in front, as far as they are known."""
    if is_traced(p):
        return p
    nonzero = np.flatnonzero(p)
    return p[nonzero[0] :] if len(nonzero) else np.zeros(1)


def _add(p: Array, q: Array) -> Array:
    n = max(p.shape[0], q.shape[0])
    p, q = (np.concatenate([np.zeros(n - r.shape[0]), r]) for r in (p, q))
    return _trim(p + q)


def _multiply(p: Array, q: Array) -> Array:
    return np.convolve(p, q)


def _are_equal(p: Array, q: Array) -> bool:
    return p.shape == q.shape and not is_traced(p, q) and bool(np.all(p == q))


def _horner(p: Array, s: complex) -> complex:
    value = 0.0j
    for c in p:
        value = value * s + c
    return value


@struct
class TransferFunction:
    """A linear system as fractions of polynomials in s, or in z in discrete time.

    Make one with `tf` or `zpk`. Transfer functions are added, multiplied and divided like numbers,
    also with numbers and with `StateSpace` systems (which gives a `StateSpace`).

    Parameters
    ----------
    num : rows of arrays
        Numerators, highest power first: entry [i][j] is from input j to output i.
    den : rows of arrays
        Denominators.
    dt : float, optional
        Length of a step in s. None, the default, for continuous time.
    inputs, outputs : tuple of str, optional
        Names, ``"u[0]"``, ``"y[0]"``, ... by default.
    input_units, output_units : tuple of str, optional
        Units.

    Examples
    --------
    >>> s = tf("s")
    >>> lag = 3 / (2 * s + 1)
    >>> print(lag)
        3
    ---------
     2 s + 1
    >>> lag.poles(), float(lag.dcgain())
    (array([-0.5+0.j]), 3.0)
    """

    num: Polynomials
    den: Polynomials
    dt: Scalar | None = field(default=None, units="s")
    inputs: tuple[str, ...] = field(static=True, default=(), kw_only=True)
    outputs: tuple[str, ...] = field(static=True, default=(), kw_only=True)
    input_units: tuple[str, ...] = field(static=True, default=(), kw_only=True)
    output_units: tuple[str, ...] = field(static=True, default=(), kw_only=True)

    __array_ufunc__ = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        for kind, size, letter in (("input", self.ninputs, "u"), ("output", self.noutputs, "y")):
            names = read_texts(getattr(self, f"{kind}s"), f"{kind}s", size)
            put(self, f"{kind}s", names or tuple(f"{letter}[{k}]" for k in range(size)))
            units = read_texts(getattr(self, f"{kind}_units"), f"{kind}_units", size)
            put(self, f"{kind}_units", units or ("",) * size)

    def to_mat(self, target: Any) -> None:
        """Write num, den, Ts, names and units to a MATLAB file (version 5).

        In MATLAB ``load system.mat; sys = tf(num, den, Ts)`` is the same system.

        Parameters
        ----------
        target : path or file
            Where to write.
        """
        from archimedes.control.linear.mat_files import polynomial_cells, write_system

        cells = {name: polynomial_cells(getattr(self, name)) for name in ("num", "den")}
        write_system(self, cells, target, "to_mat")

    @classmethod
    def from_mat(cls, source: Any) -> TransferFunction:
        """Read a transfer function from a MATLAB file (version 5 to 7).

        Parameters
        ----------
        source : path or file
            File with the variables num and den (vectors, or cell arrays of vectors) and perhaps Ts
            (0 in continuous time), as `to_mat` writes them.
        """
        from archimedes.control.linear.mat_files import read_polynomials, read_system
        from archimedes.simulate.trajectory.exports import name_source

        where = name_source("from_mat", source)
        found = read_system(source, ("num", "den"), "from_mat")
        num, den = (read_polynomials(found.pop(name), name, where) for name in ("num", "den"))
        known = {name: each for name, each in found.items() if not name.startswith("state")}
        try:
            return tf(num, den, **known)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{where}: {error}") from error

    @property
    def ninputs(self) -> int:
        """Number of inputs."""
        return len(self.num[0])

    @property
    def noutputs(self) -> int:
        """Number of outputs."""
        return len(self.num)

    @property
    def is_siso(self) -> bool:
        """Whether it has one input and one output."""
        return self.ninputs == self.noutputs == 1

    def __call__(self, s: complex) -> Any:
        """Return the value at a complex number s (or z): a number, or an array (p, m)."""
        values = np.array(
            [
                [_horner(n, s) / _horner(d, s) for n, d in zip(*rows)]
                for rows in zip(self.num, self.den)
            ]
        )
        return values[0, 0] if self.is_siso else values

    def poles(self) -> np.ndarray:
        """Return the poles, complex: the roots of the denominator, or those of a minimal system."""
        if self.is_siso:
            return np.roots(self.den[0][0]).astype(complex)
        return minreal(ss(self)).poles().astype(complex)

    def zeros(self) -> np.ndarray:
        """Return the zeros, complex: roots of the numerator, or those of a minimal system."""
        if self.is_siso:
            return np.roots(self.num[0][0]).astype(complex)
        return minreal(ss(self)).zeros()

    def dcgain(self) -> Any:
        """Return the gain at the frequency zero: a number, or an array (p, m)."""
        at = 0.0 if self.dt is None else 1.0
        with np.errstate(all="ignore"):
            return np.real(self(np.complex128(at)))

    def part(self, outputs: Any = None, inputs: Any = None) -> TransferFunction:
        """Return the fractions from some inputs to some outputs, by name or number.

        Parameters
        ----------
        outputs : str, int or sequence, optional
            Outputs to keep. All by default.
        inputs : str, int or sequence, optional
            Inputs to keep. All by default.
        """

        i, j = choose(outputs, self.outputs, "outputs"), choose(inputs, self.inputs, "inputs")
        num, den = (tuple(tuple(rows[a][b] for b in j) for a in i) for rows in (self.num, self.den))
        return replace(self, num=num, den=den, **choose_texts(self, i, j))

    def __getitem__(self, key: tuple[Any, Any]) -> TransferFunction:
        """Return ``system[outputs, inputs]``, by name, number or slice."""
        return self.part(*read_key(key))

    def rename(self, **names: Any) -> TransferFunction:
        """Return the system with other names or units.

        Parameters
        ----------
        **names : sequence of str
            ``inputs``, ``outputs``, ``input_units`` or ``output_units``.
        """
        return replace(self, **names)

    # ---- arithmetic ------------------------------------------------------------------------

    def _with(self, num: Any, den: Any, other: TransferFunction | None = None) -> TransferFunction:
        dt = self.dt if other is None else _shared_step(self, other)
        new = replace(self, num=_rows(num), den=_rows(den), dt=dt)
        return new

    def to_ss(self) -> StateSpace:
        """Return the system in state-space form, as `ss` does."""
        return _realize(self)

    def as_fraction(self, other: Operand, like: bool = False) -> TransferFunction | None:
        """Return a number or a matrix as a transfer function; None for other systems.

        Parameters
        ----------
        other : TransferFunction, array (p, m) or float
            What to convert.
        like : bool, optional
            Whether a number stands for a matrix of it with the shape of this system.
        """
        if isinstance(other, TransferFunction):
            return other
        if not (isinstance(other, (int, float, np.number, np.ndarray)) or is_traced(other)):
            return None
        numbers = real_numbers(other, "gain")
        if np.ndim(numbers) == 0:
            p, m = (self.noutputs, self.ninputs) if like else (1, 1)
            numbers = numbers * np.ones((p, m))
        rows = tuple(tuple(np.reshape(x, (1,)) for x in row) for row in numbers)
        return TransferFunction(rows, tuple(tuple(np.ones(1) for _ in row) for row in rows))

    def _scale(self, factor: Scalar) -> TransferFunction:
        return replace(self, num=tuple(tuple(_trim(factor * n) for n in row) for row in self.num))

    def __neg__(self) -> TransferFunction:
        return self._scale(-1.0)

    def __add__(self, other: Operand) -> Any:
        if isinstance(other, StateSpace):
            return ss(self) + other
        right = self.as_fraction(other, like=True)
        if right is None:
            return NotImplemented
        if (right.noutputs, right.ninputs) != (self.noutputs, self.ninputs):
            raise ValueError(
                f"systems of {self.noutputs} x {self.ninputs} and {right.noutputs} x "
                f"{right.ninputs} entries cannot be added"
            )
        entries = [
            [_sum((a, c), (b, d)) for a, c, b, d in zip(*rows)]
            for rows in zip(self.num, self.den, right.num, right.den)
        ]
        return self._with(*_split(entries), right)

    __radd__ = __add__

    def __sub__(self, other: Operand) -> Any:
        known = isinstance(other, StateSpace) or self.as_fraction(other) is not None
        return self + -other if known else NotImplemented

    def __rsub__(self, other: Operand) -> Any:
        return -self + other

    def __mul__(self, other: Operand) -> Any:
        if isinstance(other, StateSpace):
            return ss(self) * other
        right = self.as_fraction(other)
        if right is None:
            return NotImplemented
        return (
            self._scale(other)
            if np.ndim(other) == 0 and right is not other
            else _product(self, right)
        )

    def __rmul__(self, other: Operand) -> Any:
        if isinstance(other, StateSpace):
            return other * ss(self)
        left = self.as_fraction(other)
        if left is None:
            return NotImplemented
        return self._scale(other) if np.ndim(other) == 0 else _product(left, self)

    def inverse(self) -> TransferFunction:
        """Return 1 / system, for one input and one output."""
        if not self.is_siso:
            raise ValueError(
                "only a transfer function with one input and one output has an inverse here; use "
                "ss(system).inverse()"
            )
        if not is_traced(self.num) and not np.any(self.num[0][0]):
            raise ZeroDivisionError("this transfer function is zero: it has no inverse")
        return replace(self, num=self.den, den=self.num, **swap_signals(self))

    def __truediv__(self, other: Operand) -> Any:
        if isinstance(other, StateSpace):
            return ss(self) / other
        right = self.as_fraction(other)
        if right is None:
            return NotImplemented
        if isinstance(other, TransferFunction) or np.ndim(other):
            return _product(self, right.inverse())
        return self._scale(1.0 / other)

    def __rtruediv__(self, other: Operand) -> Any:
        left = self.as_fraction(other)
        return NotImplemented if left is None else other * self.inverse()

    def __pow__(self, power: int) -> TransferFunction:
        if not isinstance(power, int):
            return NotImplemented
        base = self if power >= 0 else self.inverse()
        result = self._with([[np.ones(1)]], [[np.ones(1)]])
        for _ in range(abs(power)):
            result = _product(result, base)
        return result

    def feedback(self, other: Operand = 1.0, sign: float = -1.0) -> Any:
        """Return the closed loop: see `feedback`.

        Parameters
        ----------
        other : system, array or float, optional
            System in the feedback path; 1 by default.
        sign : float, optional
            -1, the default, for negative feedback.
        """
        right = self.as_fraction(other)
        if self.is_siso and right is not None and right.is_siso:
            n, d, n2, d2 = self.num[0][0], self.den[0][0], right.num[0][0], right.den[0][0]
            below = _add(_multiply(d, d2), -sign * _multiply(n, n2))
            if not is_traced(below) and not np.any(below):
                raise ValueError(
                    "the loop is algebraic and has no solution: its gain is one at all frequencies"
                )
            return self._with([[_multiply(n, d2)]], [[below]], right)
        return tf(
            feedback(ss(self), ss(other) if isinstance(other, TransferFunction) else other, sign)
        )

    def discretize(self, dt: Scalar, method: str = "zoh") -> TransferFunction:
        """Return the transfer function in discrete time.

        Parameters
        ----------
        dt : float
            Length of a step in s.
        method : str, optional
            Method of `discretize_linear`, ``"zoh"`` by default.
        """
        return tf(ss(self).discretize(dt, method))

    # ---- text ------------------------------------------------------------------------------

    def __str__(self) -> str:
        letter = "s" if self.dt is None else "z"
        blocks = []
        for i, y in enumerate(self.outputs):
            for j, u in enumerate(self.inputs):
                above, below = (_show(p[i][j], letter) for p in (self.num, self.den))
                if below == "1":
                    lines = [above]
                else:
                    width = max(len(above), len(below)) + 2
                    lines = [
                        f"{above:^{width}}".rstrip(),
                        "-" * width,
                        f"{below:^{width}}".rstrip(),
                    ]
                plain = self.is_siso and (u, y) == ("u[0]", "y[0]")
                blocks.append("\n".join(lines if plain else [f"{u} to {y}:", *lines]))
        if self.dt is not None:
            blocks.append(f"dt = {self.dt} s")
        return "\n\n".join(blocks)

    __repr__ = __str__


def _show(p: Array, letter: str) -> str:
    """Return a polynomial as text."""
    if is_traced(p):
        return f"(traced, degree {len(p) - 1})"
    words: list[str] = []
    for k, c in zip(range(len(p) - 1, -1, -1), p):
        if c == 0.0 and len(p) > 1:
            continue
        power = "" if k == 0 else letter if k == 1 else f"{letter}^{k}"
        number = f"{abs(c):.5g}"
        text = power if power and number == "1" else f"{number} {power}".strip()
        sign = "-" if c < 0.0 else "+"
        words.append(f"{sign} {text}" if words else ("-" if c < 0.0 else "") + text)
    return " ".join(words) or "0"


def _rows(entries: Any) -> Polynomials:
    return tuple(tuple(row) for row in entries)


def _split(entries: Any) -> tuple[Any, Any]:
    """Return the numerators and the denominators of rows of fractions."""
    return [[n for n, _ in row] for row in entries], [[d for _, d in row] for row in entries]


def _sum(p: tuple[Array, Array], q: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the sum of two fractions."""
    (a, c), (b, d) = p, q
    if _are_equal(c, d):
        return _add(a, b), c
    if _are_equal(a, np.zeros(1)):
        return b, d
    if _are_equal(b, np.zeros(1)):
        return a, c
    return _add(_multiply(a, d), _multiply(b, c)), _multiply(c, d)


def _product(left: TransferFunction, right: TransferFunction) -> TransferFunction:
    """Return the system ``left`` behind ``right``; a single fraction scales every entry."""
    if left.is_siso != right.is_siso and 1 in (
        left.ninputs * left.noutputs,
        right.ninputs * right.noutputs,
    ):
        one, many = (left, right) if left.is_siso else (right, left)
        entries = [
            [(_multiply(one.num[0][0], n), _multiply(one.den[0][0], d)) for n, d in zip(*rows)]
            for rows in zip(many.num, many.den)
        ]
        return many._with(*_split(entries), one)
    if left.ninputs != right.noutputs:
        raise ValueError(
            f"the left system has {left.ninputs} inputs, the right one {right.noutputs} outputs: "
            "they cannot be multiplied"
        )
    entries = []
    for i in range(left.noutputs):
        row = []
        for j in range(right.ninputs):
            total = (np.zeros(1), np.ones(1))
            for k in range(left.ninputs):
                n = _multiply(left.num[i][k], right.num[k][j])
                total = _sum(total, (_trim(n), _multiply(left.den[i][k], right.den[k][j])))
            row.append(total)
        entries.append(row)
    num, den = _split(entries)
    return TransferFunction(
        _rows(num),
        _rows(den),
        _shared_step(left, right),
        inputs=right.inputs,
        outputs=left.outputs,
        input_units=right.input_units,
        output_units=left.output_units,
    )


def _shared_step(a: TransferFunction, b: TransferFunction) -> Scalar | None:
    """Return the dt that two systems share; a plain gain goes with any dt."""

    def is_gain(system: TransferFunction) -> bool:
        return all(p.shape == (1,) for rows in (system.num, system.den) for r in rows for p in r)

    if a.dt is None and is_gain(a):
        return b.dt
    if b.dt is None and is_gain(b):
        return a.dt
    if (a.dt is None) != (b.dt is None) or (not is_traced(a.dt, b.dt) and a.dt != b.dt):
        raise ValueError(
            f"systems with dt = {a.dt} and dt = {b.dt} cannot be combined: discretize them with "
            "one dt"
        )
    return a.dt


def tf(num: Any, den: Any = None, dt: Scalar | None = None, **names: Any) -> TransferFunction:
    """Return a transfer function from coefficients, or the variable s or z itself.

    Parameters
    ----------
    num : array, rows of arrays, StateSpace, "s" or "z"
        Coefficients of the numerator, highest power first; rows of such for several inputs and
        outputs. ``"s"`` and ``"z"`` are the variables, and a `StateSpace` is converted.
    den : array or rows of arrays, optional
        Coefficients of the denominator.
    dt : float, optional
        Length of a step in s: the powers are those of z. None, the default, for powers of s.
    **names : sequence of str
        ``inputs``, ``outputs``, ``input_units``, ``output_units``.

    Examples
    --------
    >>> print(tf([1.0, 2.0], [1.0, 0.5, 4.0]))
          s + 2
    -----------------
     s^2 + 0.5 s + 4
    >>> z = tf("z", dt=0.1)
    >>> print(1 / (z - 0.9))
        1
    ---------
     z - 0.9
    <BLANKLINE>
    dt = 0.1 s
    """
    if isinstance(num, str):
        if num not in ("s", "z") or (num == "z") != (dt is not None):
            raise ValueError(
                f"tf({num!r}, dt={dt}): write tf('s') in continuous time, tf('z', dt=0.01) in "
                "discrete time"
            )
        num, den = [1.0, 0.0], [1.0]
    elif isinstance(num, StateSpace):
        return ss2tf(num)
    elif isinstance(num, TransferFunction):
        return num
    if den is None:
        raise TypeError("tf needs num and den: tf([1.0], [1.0, 2.0]); or tf('s')")
    if dt is not None:
        check_positive(dt, "dt", "s")
    rows = [_as_rows(x, name) for x, name in ((num, "num"), (den, "den"))]
    n, d = rows
    if [len(r) for r in n] != [len(r) for r in d]:
        raise ValueError(
            f"num has rows of {[len(r) for r in n]} entries and den of {[len(r) for r in d]}: "
            "give both for each pair of output and input"
        )
    for p in (p for row in n for p in row):
        check_finite(p, "num")
    for p in (p for row in d for p in row):
        if not is_traced(p) and not (np.all(np.isfinite(p)) and np.any(p)):
            raise ValueError(f"den must hold finite numbers that are not all zero, got {p}")
    return TransferFunction(
        tuple(tuple(map(_trim, r)) for r in n), tuple(tuple(map(_trim, r)) for r in d), dt, **names
    )


def _as_rows(value: Any, name: str) -> Polynomials:
    """Return coefficients as rows of polynomials: one for a flat list."""
    if not isinstance(value, (list, tuple)) and np.ndim(value) == 0:
        value = [value]
    depth, item = 0, value
    while isinstance(item, (list, tuple)) or np.ndim(item):
        if not len(item):
            raise ValueError(f"{name} is empty: give at least one coefficient, got {value}")
        depth, item = depth + 1, item[0]
    if depth == 1:
        return ((vector(value, name),),)
    if depth != 3:
        raise ValueError(f"{name} must be a list of coefficients, or rows of such lists")
    return tuple(tuple(vector(p, name) for p in row) for row in value)


def zpk(
    zeros: ArrayLike, poles: ArrayLike, gain: Scalar, dt: Scalar | None = None
) -> TransferFunction:
    """Return a transfer function from its zeros, poles and gain.

    Parameters
    ----------
    zeros : array
        Zeros, real or in conjugate pairs.
    poles : array
        Poles, real or in conjugate pairs.
    gain : float
        Factor in front of (s - z1)(s - z2).../(s - p1)...
    dt : float, optional
        Length of a step in s. None, the default, for continuous time.

    Examples
    --------
    >>> print(zpk([], [-1.0, -2.0], 5.0))
           5
    ---------------
     s^2 + 3 s + 2
    """
    num, den = (
        polynomial_of_roots(roots, name) for roots, name in ((zeros, "zeros"), (poles, "poles"))
    )
    return tf(gain * num, den, dt)


def polynomial_of_roots(roots: ArrayLike, name: str) -> np.ndarray:
    """Return the polynomial with given roots, which must be real or in conjugate pairs."""
    values = np.atleast_1d(np.asarray(roots, dtype=complex))
    coefficients = np.atleast_1d(np.poly(values)) if values.size else np.ones(1)
    if np.any(np.abs(coefficients.imag) > 1e-9 * np.abs(coefficients).max()):
        raise ValueError(f"{name} must be real or in conjugate pairs, got {values}")
    return coefficients.real


def ss(*system: Any, **names: Any) -> StateSpace:
    """Return a system in state-space form.

    Parameters
    ----------
    *system
        A `TransferFunction`, a `StateSpace`, a gain, or the matrices A, B, C, D and, for discrete
        time, the length of a step dt in s.
    **names
        ``states``, ``inputs``, ``outputs`` and their units.

    Examples
    --------
    >>> ss(tf([1.0], [1.0, 2.0])).A
    array([[-2.]])
    """

    if len(system) > 1:
        return StateSpace(*system, **names)
    (one,) = system
    result = as_state_space(one, "system")
    return result.rename(**names) if names else result


def tf2ss(num: Any, den: Any = None, dt: Scalar | None = None) -> StateSpace:
    """Return a system with the transfer function num/den, in controllable canonical form.

    Parameters
    ----------
    num : array, rows of arrays, float or TransferFunction
        Coefficients of the numerator, highest power first. It must not be longer than `den`.
    den : array, rows of arrays or float, optional
        Coefficients of the denominator, highest power first. 1 by default: a constant gain.
    dt : float, optional
        Length of a step in s: the powers are those of z. None, the default, for powers of s.

    Examples
    --------
    >>> A, B, C, D = tf2ss([1.0], [1.0, 2.0, 3.0])
    >>> A
    array([[-2., -3.],
           [ 1.,  0.]])
    >>> tf2ss(2.5).D
    array([[2.5]])
    """
    if isinstance(num, TransferFunction):
        return _realize(num)
    return _realize(tf(num, 1.0 if den is None else den, dt))


def _realize(system: TransferFunction) -> StateSpace:
    """Return a realization that shares the states of entries with the same denominator."""
    p, m = system.noutputs, system.ninputs
    parts: list[tuple[int, Array, dict[int, Array]]] = []
    D = np.zeros((p, m))
    for j in range(m):
        groups: list[tuple[Array, dict[int, Array]]] = []
        for i in range(p):
            num, den = system.num[i][j], system.den[i][j]
            n = den.shape[0] - 1
            if num.shape[0] > n + 1:
                raise ValueError(
                    f"the transfer function from {system.inputs[j]} to {system.outputs[i]} is not "
                    f"proper: its numerator has degree {num.shape[0] - 1}, its denominator {n}; "
                    "add poles, for example divide by (T s + 1)"
                )
            b = np.concatenate([np.zeros(n + 1 - num.shape[0]), num]) / den[0]
            a = den / den[0]
            D[i, j] = b[0]
            if n == 0:
                continue
            c = b[1:] - b[0] * a[1:]
            same = next((rows for known, rows in groups if _are_equal(known, a)), None)
            if same is None:
                groups.append((a, {i: c}))
            else:
                same[i] = c
        parts += [(j, a, rows) for a, rows in groups]
    sizes = [a.shape[0] - 1 for _, a, _ in parts]
    n, start = sum(sizes), 0
    A, B, C = np.zeros((n, n)), np.zeros((n, m)), np.zeros((p, n))
    for (j, a, rows), size in zip(parts, sizes):
        own = slice(start, start + size)
        A[own, own] = np.concatenate([-a[None, 1:], np.eye(size - 1, size)])
        B[start, j] = 1.0
        for i, c in rows.items():
            C[i, own] = c
        start += size
    return StateSpace(
        A,
        B,
        C,
        D,
        system.dt,
        inputs=system.inputs,
        outputs=system.outputs,
        input_units=system.input_units,
        output_units=system.output_units,
    )


def ss2zpk(system: StateSpace) -> list[list[tuple[np.ndarray, np.ndarray, float]]]:
    """Return zeros, poles and gain of each entry of a system, in rows of outputs.

    Parameters
    ----------
    system : StateSpace
        The system, of numbers.

    Examples
    --------
    >>> zeros, poles, gain = ss2zpk(tf2ss([2.0, 6.0], [1.0, 3.0, 2.0]))[0][0]
    >>> zeros.round(9), np.sort(poles).round(9), round(gain, 9)
    (array([-3.+0.j]), array([-2.+0.j, -1.+0.j]), 2.0)
    """
    return [
        [_zeros_poles_gain(system[i, j]) for j in range(system.ninputs)]
        for i in range(system.noutputs)
    ]


def _zeros_poles_gain(channel: StateSpace) -> tuple[np.ndarray, np.ndarray, float]:
    small = minreal(channel)
    A, B, C, D = (np.asarray(getattr(small, k)) for k in "ABCD")
    poles, zeros = np.linalg.eigvals(A).astype(complex), small.zeros()
    if not len(A):
        return zeros, poles, float(D[0, 0])
    # At a point as far from all poles and zeros as they are from each other.
    size = max([1e-300, *np.abs(poles), *np.abs(zeros)])
    at = 2.0 * size if size > 1e-300 else 1.0
    value = complex((C @ np.linalg.solve(at * np.eye(len(A)) - A, B) + D)[0, 0])
    gain = value * np.prod((at - poles) / size) / np.prod((at - zeros) / size)
    return zeros, poles, float(gain.real * size ** (len(poles) - len(zeros)))


def ss2tf(*system: Any) -> TransferFunction:
    """Return the transfer function of a system, entry by entry without common factors.

    Parameters
    ----------
    *system
        A `StateSpace`, of numbers; or the matrices A, B, C, D and, for discrete time, dt.

    Examples
    --------
    >>> print(ss2tf(StateSpace([[0.0, 1.0], [-4.0, -0.4]], [[0.0], [1.0]], [[1.0, 0.0]], [[0.0]])))
            1
    -----------------
     s^2 + 0.4 s + 4
    """
    G = ss(*system)
    if is_traced(G.A, G.B, G.C, G.D):
        raise TypeError("ss2tf runs on numbers: call it outside recorded functions")
    rows = ss2zpk(G)
    num = [[_clean(gain * np.atleast_1d(np.poly(z))) for z, _, gain in row] for row in rows]
    den = [[_clean(np.atleast_1d(np.poly(p))) for _, p, _ in row] for row in rows]
    names = ("inputs", "outputs", "input_units", "output_units")
    return tf(num, den, G.dt).rename(**{k: getattr(G, k) for k in names})


def _clean(p: np.ndarray) -> np.ndarray:
    """Return coefficients without the rounding of their roots."""
    p = p.real
    return np.where(np.abs(p) < 1e-15 * np.abs(p).max(), 0.0, p)


def minreal(system: Any, tol: float = 1e-9) -> Any:
    """Return a system without what its inputs do not reach or its outputs do not show.

    Parameters
    ----------
    system : StateSpace or TransferFunction
        The system, of numbers. Common factors of fractions are cancelled.
    tol : float, optional
        Size, relative to the largest, from which a part counts as nothing.

    Examples
    --------
    >>> s = tf("s")
    >>> print(minreal((s + 1) / ((s + 1) * (s + 2))))
       1
    -------
     s + 2
    """
    if isinstance(system, TransferFunction):
        entries = [
            [_cancel(n, d, tol) for n, d in zip(*rows)] for rows in zip(system.num, system.den)
        ]
        return system._with(*_split(entries))
    A, B, C = (np.asarray(getattr(system, k), dtype=float) for k in "ABC")
    A, B, C = balance_system(A, B, C)
    for _ in range(2):  # what inputs reach, then, of the dual system, what outputs show
        A, B, C = _keep_reached(A, B, C, tol)
        A, B, C = A.T, C.T, B.T
    if len(A) == system.nstates:
        return system
    return replace(system, A=A, B=B, C=C, states=(), state_units=())


def _keep_reached(
    A: np.ndarray, B: np.ndarray, C: np.ndarray, tol: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the part that the inputs reach, by a staircase of orthogonal transformations."""
    limit = tol * max(float(np.linalg.norm(A)), float(np.linalg.norm(B)), 1e-300)
    n, done, block = len(A), 0, B
    while done < n and block.size:
        U, sizes, _ = np.linalg.svd(block[done:] if done else block)
        rank = int(np.sum(sizes > limit))
        if not rank:
            break
        T = np.eye(n)
        T[done:, done:] = U
        A, B, C = T.T @ A @ T, T.T @ B, C @ T
        block, done = A[:, done : done + rank], done + rank
    return A[:done, :done], B[:done], C[:, :done]


def _cancel(num: Array, den: Array, tol: float) -> tuple[np.ndarray, np.ndarray]:
    """Return a fraction without the roots that both polynomials have."""
    zeros: list[Any] = list(np.roots(num))
    poles: list[Any] = list(np.roots(den))
    for z in list(zeros):
        near: Any = min(poles, key=lambda p: abs(p - z), default=None)
        # Double roots are off by the root of the precision.
        if near is not None and abs(near - z) <= max(np.sqrt(tol) * 1e-2, tol) * max(abs(z), 1e-3):
            zeros.remove(z)
            poles.remove(near)
    n, d = (np.atleast_1d(np.real(np.poly(r))) if len(r) else np.ones(1) for r in (zeros, poles))
    return num[0] / den[0] * n, d


def c2d(system: Any, dt: Scalar, method: str = "zoh") -> Any:
    """Return a continuous system in discrete time.

    Parameters
    ----------
    system : StateSpace or TransferFunction
        System in continuous time.
    dt : float
        Length of a step in s.
    method : {"zoh", "foh", "tustin", "euler", "backward"}, optional
        See `discretize_linear`.

    Examples
    --------
    >>> c2d(tf([1.0], [1.0, 1.0]), 0.1).poles().round(6)
    array([0.904837+0.j])
    """
    return system.discretize(dt, method)


def d2c(system: Any, method: str = "zoh") -> Any:
    """Return a discrete system in continuous time: the inverse of `c2d`.

    Parameters
    ----------
    system : StateSpace or TransferFunction
        System in discrete time, of numbers.
    method : {"zoh", "foh", "tustin", "euler", "backward"}, optional
        Method whose result the system is.

    Examples
    --------
    >>> d2c(c2d(tf([1.0], [1.0, 1.0]), 0.1)).poles().round(9)
    array([-1.+0.j])
    """
    if system.dt is None:
        raise ValueError("d2c: this system is in continuous time already")
    if isinstance(system, TransferFunction):
        return tf(d2c(ss(system), method))
    A, B, C, D = continue_linear(system.A, system.B, system.C, system.D, system.dt, method)
    return replace(system, A=A, B=B, C=C, D=D, dt=None)
