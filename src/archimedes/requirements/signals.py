"""Signals: numbers over time by name or by a function, and arithmetic with them.

A signal knows no values. It is read from a run when a requirement is evaluated: at the times that
the requirement asks for, all at once.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from archimedes.checks import as_array, check_callable
from archimedes.display import number
from archimedes.function import vmap
from archimedes.requirements.formulas import Comparison, Requirement, join_units

if TYPE_CHECKING:
    from archimedes.simulate.trajectory.trajectory import Trajectory

__all__ = ["Signal", "near", "signal"]

#: Comparisons, and their signs in print.
COMPARISONS: dict[np.ufunc, str] = {
    np.less: "<",
    np.less_equal: "<=",
    np.greater: ">",
    np.greater_equal: ">=",
}
SIGNS: dict[np.ufunc, str] = {
    np.add: "+",
    np.subtract: "-",
    np.multiply: "*",
    np.divide: "/",
    np.power: "**",
    np.remainder: "%",
}
LOGIC: dict[np.ufunc, str] = {
    np.bitwise_and: "&",
    np.bitwise_or: "|",
    np.bitwise_xor: "^",
    np.invert: "~",
    np.left_shift: "<<",
    np.right_shift: ">>",
}
#: Operations whose result has the unit of their operands, which must agree.
SAME_UNITS = (np.add, np.subtract, np.minimum, np.maximum, np.remainder)
#: Operations on one signal that keep its unit.
KEEPS_UNITS = (np.absolute, np.negative, np.positive)


class Signal(NDArrayOperatorsMixin):
    """A number over time; made by :func:`signal` and by arithmetic.

    ``+ - * / ** abs`` and NumPy's functions of numbers (``np.sin``, ``np.hypot``) make signals.
    Comparisons with ``<``, ``<=``, ``>`` and ``>=`` make requirements.

    Examples
    --------
    >>> from archimedes.requirements import signal
    >>> alt, speed = signal("alt"), signal("speed")
    >>> speed**2 / 2 + 9.81 * alt < 5000
    ((speed ** 2) / 2) + (9.81 * alt) < 5000
    """

    #: Unit, "" where none is known.
    units: str = ""

    def read(self, frame: Trajectory) -> Any:
        """Return the values at the times of a frame.

        Parameters
        ----------
        frame : Trajectory
            The run at the times that are asked for.
        """
        raise NotImplementedError

    def leaves(self) -> Iterator[Signal]:
        """Yield the signals by name and by function that this one is made of."""
        yield self

    def units_in(self, frame: Trajectory) -> str:
        """Return the unit, looked up in a run where the signal does not say it.

        Parameters
        ----------
        frame : Trajectory
            The run.
        """
        return self.units

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options or ufunc.nout != 1:
            raise TypeError(_function_advice(f"np.{ufunc.__name__}.{method}"))
        if ufunc in LOGIC:
            raise TypeError(_precedence_advice(LOGIC[ufunc], inputs))
        if ufunc in (np.equal, np.not_equal):
            raise TypeError(
                f"a real number is hardly ever equal to another, so {_text(inputs[0])} == "
                f"{_text(inputs[1])} has no margin: write req.near({_text(inputs[0])}, "
                f"{_text(inputs[1])}) for whole numbers such as a gear, and within=... for others"
            )
        parts = tuple(map(as_signal, inputs))
        if ufunc in COMPARISONS:
            left, right = parts
            join_units(left.units, right.units, f"{left} {COMPARISONS[ufunc]} {right}")
            return Comparison(left, right, COMPARISONS[ufunc])
        return Operation(ufunc, parts)

    def __array_function__(self, function: Any, *_: Any) -> Any:
        raise TypeError(_function_advice(f"np.{function.__name__}"))

    def __bool__(self) -> bool:
        raise TypeError(
            f"the signal {self} is a number over time and neither true nor false: compare it, as "
            f"in {self} > 0; for the smaller of two signals write np.minimum(a, b)"
        )

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return str(self)


def _function_advice(name: str) -> str:
    return (
        f"{name} is not defined for signals: write it as a function of the state at one instant, "
        'req.signal(lambda t, x: ..., name="...")'
    )


def _precedence_advice(sign: str, inputs: tuple[Any, ...]) -> str:
    if sign == "~":
        return f"~{_text(inputs[0])}: a signal is not a condition; compare it first, ~(... > 0)"
    left, right = map(_text, inputs)
    return (
        f"{left} {sign} {right}: Python binds {sign} more tightly than < and >, so it was applied "
        f"to a signal: put each comparison in parentheses, (a > 1) {sign} (b < 2)"
    )


class Named(Signal):
    """A column of a run, by its name."""

    def __init__(self, name: str, units: str = "") -> None:
        self.name, self.units = name, units

    def read(self, frame: Trajectory) -> Any:
        if self.name == "t" and "t" not in frame.names:
            return frame.t
        try:
            values = frame[self.name]
        except KeyError:
            near = difflib.get_close_matches(self.name, frame.names, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"there is no signal {self.name!r} in this run, it has {_some(frame.names)} (and "
                f"inputs u, outputs y where there are any){hint}"
            ) from None
        return check_scalar(values, frame, self.name)

    def units_in(self, frame: Trajectory) -> str:
        if self.name == "t":
            return self.units or "s"
        known = _column_units(frame).get(self.name, "")
        if known and self.units and known != self.units:
            raise ValueError(
                f"the signal {self.name} is in {known} in this run, and in {self.units} in the "
                f"requirement: leave the unit out, and give limits in {known}"
            )
        return self.units or known

    def __str__(self) -> str:
        return self.name


class Computed(Signal):
    """A function of one instant: of time and state, and of inputs and outputs if it takes them."""

    def __init__(self, function: Callable[..., Any], name: str, units: str = "") -> None:
        self.function, self.name, self.units = function, name, units

    def read(self, frame: Trajectory) -> Any:
        count = len(inspect.signature(self.function).parameters)
        parts = {"t": frame.t, "x": frame.x, "u": frame.u, "y": frame.y}
        names = list(parts)[:count]
        if missing := [name for name in names if parts[name] is None]:
            raise ValueError(
                f"the signal {self.name} is a function of ({', '.join(names)}), and this run has "
                f"no {missing[0]}"
            )
        function = self.function
        for _ in frame.t.shape:
            function = vmap(function)
        return check_scalar(function(*(parts[name] for name in names)), frame, self.name)

    def __str__(self) -> str:
        return self.name


class Constant(Signal):
    """A number, or an array of one number for each run."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def read(self, frame: Trajectory) -> Any:
        return self.value if np.ndim(self.value) == 0 else np.asarray(self.value)[..., None]

    def leaves(self) -> Iterator[Signal]:
        yield from ()

    def __str__(self) -> str:
        return (
            number(self.value) if np.ndim(self.value) == 0 else f"[{np.size(self.value)} numbers]"
        )


class Operation(Signal):
    """A NumPy function of signals."""

    def __init__(self, ufunc: np.ufunc, parts: tuple[Signal, ...]) -> None:
        self.ufunc, self.parts = ufunc, parts
        self.units = self._combine([part.units for part in parts])

    def read(self, frame: Trajectory) -> Any:
        return self.ufunc(*(part.read(frame) for part in self.parts))

    def leaves(self) -> Iterator[Signal]:
        for part in self.parts:
            yield from part.leaves()

    def units_in(self, frame: Trajectory) -> str:
        return self._combine([part.units_in(frame) for part in self.parts])

    def _combine(self, units: list[str]) -> str:
        """Return the unit of the result, "" where it is not plain."""
        if self.ufunc in KEEPS_UNITS:
            return units[0]
        if self.ufunc in SAME_UNITS:
            return join_units(units[0], units[1], str(self))
        plain = [isinstance(part, Constant) for part in self.parts]
        if self.ufunc is np.multiply and any(plain):
            return units[plain.index(True) - 1]
        return units[0] if self.ufunc is np.divide and plain[1] else ""

    def __str__(self) -> str:
        texts = [
            f"({p})" if isinstance(p, Operation) and p.is_infix else str(p) for p in self.parts
        ]
        if self.is_infix:
            return f" {SIGNS[self.ufunc]} ".join(texts)
        if self.ufunc is np.negative:
            return f"-{texts[0]}"
        name = "abs" if self.ufunc is np.absolute else f"np.{self.ufunc.__name__}"
        return f"{name}({', '.join(map(str, self.parts))})"

    @property
    def is_infix(self) -> bool:
        """Whether it is written with a sign between its parts."""
        return self.ufunc in SIGNS


def signal(source: str | Callable[..., Any], *, name: str | None = None, units: str = "") -> Signal:
    """Return a signal: a number over time that requirements are about.

    Parameters
    ----------
    source : str or callable
        Name of a column of the run, such as ``"alt"``, ``"pos[2]"`` or ``"u[0]"`` (``"t"`` is the
        time). Or a function of one instant, ``f(t, x)``, ``f(t, x, u)`` or ``f(t, x, u, y)``: plain
        NumPy that returns a number.
    name : str, optional
        Name of a function's signal in print. By default the name of the function.
    units : str, optional
        Unit of the signal. By default that of the run's column, where it has one.

    Examples
    --------
    >>> import numpy as np
    >>> import archimedes as arc
    >>> from archimedes import requirements as req
    >>> t = np.linspace(0.0, 2.0, 21)
    >>> run = arc.Trajectory(t, {"alt": 10.0 - t**2, "speed": 2.0 * t})
    >>> energy = req.signal(lambda t, x: 9.81 * x["alt"] + x["speed"] ** 2 / 2, name="energy")
    >>> round(float(req.always(energy > 50).robustness(run)), 6)
    16.86
    """
    if isinstance(source, str):
        return Named(source, units)
    check_callable(source, "signal: source", "(t, x)", "give the name of a column, or a function")
    plain = getattr(source, "__name__", "function")
    return Computed(source, name or ("function" if plain == "<lambda>" else plain), units)


def near(part: Signal, value: Any, within: float = 0.5) -> Requirement:
    """Return the requirement that a signal is near a value: ``abs(part - value) < within``.

    Parameters
    ----------
    part : Signal
        The signal, for example a number of a gear.
    value : float or Signal
        The value.
    within : float, optional
        Largest distance, 0.5 by default: what rounds to a whole number.

    Examples
    --------
    >>> from archimedes import requirements as req
    >>> near(req.signal("gear"), 2)
    abs(gear - 2) < 0.5
    """
    return np.abs(as_signal(part) - as_signal(value)) < within


def as_signal(value: Any) -> Signal:
    """Return a signal as it is, and a number as a constant one."""
    if isinstance(value, Signal):
        return value
    if isinstance(value, str):
        raise TypeError(f"{value!r} is text: write req.signal({value!r})")
    array = as_array(value, "a limit")
    return Constant(array if array.ndim else array[()])


def check_scalar(values: Any, frame: Trajectory, name: str) -> Any:
    """Return the values of a signal if it is one number at each time."""
    if tuple(values.shape) != tuple(frame.t.shape):
        shape = tuple(values.shape[frame.t.ndim :])
        raise ValueError(
            f"the signal {name} has shape {shape} at each time, and a requirement is about one "
            f'number: name a component, as in "{name}[0]", or write a function of (t, x)'
        )
    return values


def _column_units(frame: Trajectory) -> dict[str, str]:
    from archimedes.simulate.trajectory.columns import PARTS

    units = dict(frame.units)
    for part in PARTS:
        units |= {c.name: c.units for c in frame.part_columns(part, prefix=True)}
    return units


def _some(names: list[str], most: int = 8) -> str:
    shown = ", ".join(names[:most])
    return shown + (f", ... ({len(names)} in all)" if len(names) > most else "")


def _text(value: Any) -> str:
    return str(value) if isinstance(value, Signal) else repr(value)
