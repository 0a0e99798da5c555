"""Checks of arguments for all packages, in plain NumPy that knows nothing of recording.

Every check names the argument and says what to give instead. Values are checked where they are
known. A traced value has no number yet, so it passes without adding to the recorded program; its
shape is always known, and is always checked.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree

if TYPE_CHECKING:
    from archimedes.typing import Array, ArrayLike, Scalar

FLOAT = np.dtype(np.float64)
ndarray = np.ndarray
_NUMBERS = (float, int, np.float64, np.int64, bool)
#: Types whose values need no closer look: they are never traced.
_UNTRACED = frozenset(
    {float, int, bool, str, slice, type(None), type(...), np.float64, np.int64, np.bool_}
)


def is_traced(*values: object) -> bool:
    """Return whether any of the values, or anything inside them, is traced.

    A traced value stands for a number that is not known while a function is being recorded. Lists,
    tuples, dicts, structs and arrays of objects are searched.

    Examples
    --------
    >>> import archimedes as arc
    >>> arc.compile(lambda x: is_traced([x, 1.0]))(1.0), is_traced([1.0, 2.0])
    (True, False)
    """
    value: Any
    for value in values:
        kind = type(value)
        if kind in _UNTRACED:
            continue
        if kind is tuple or kind is list:
            parts = value
        elif kind is ndarray:
            parts = value.ravel().tolist() if value.dtype.hasobject else ()
        elif hasattr(kind, "holds_traced_values"):  # of its class: it may refuse to be asked
            if value.holds_traced_values:
                return True
            continue
        elif isinstance(value, (list, tuple)):
            parts = value
        else:
            parts = tree.leaves(value)
            if len(parts) == 1 and parts[0] is value:
                continue
        if parts and is_traced(*parts):
            return True
    return False


def concrete(x: object) -> Array | None:
    """Return `x` as an array where its values are known numbers, else None.

    >>> concrete(2.0)
    array(2.)
    >>> concrete(np.array([object()])) is None
    True
    """
    # By its own type: traced values are instances of what they stand for.
    if not issubclass(type(x), (np.ndarray, float, int, np.generic)):
        return None
    if getattr(x, "holds_traced_values", False):
        return None
    array = np.asarray(x)
    return None if array.dtype == object else array


def as_array(x: ArrayLike, name: str = "array") -> Array:
    """Return `x` as an array of floats; traced arrays pass, lists may hold traced scalars."""
    if type(x) is np.ndarray and x.dtype is FLOAT:
        return x
    if isinstance(x, (list, tuple)):
        if all(type(item) in _NUMBERS for item in x):
            return np.array(x, dtype=float)
        parts = [as_array(item, name) for item in x]
        if len({tuple(p.shape) for p in parts}) > 1:
            raise ValueError(f"{name} has rows of different lengths: {x!r}")
        return np.stack(parts)
    if isinstance(x, (int, float, np.ndarray, np.generic)):
        if hasattr(x, "filled"):
            raise TypeError(
                f"{name} is a masked array, whose gaps would count as numbers; fill them first: "
                "x.filled(np.nan), or pass x.data"
            )
        array = np.asarray(x)
        if array.dtype.kind == "f":
            return array
        if array.dtype.kind in "iub":
            return array.astype(float)
        if array.dtype == object:  # NumPy's way of storing traced scalars
            items = array.ravel().tolist()
            return np.reshape(np.stack([as_array(item, name) for item in items]), array.shape)
    elif hasattr(x, "__array_function__"):
        traced: Any = x
        return traced if np.dtype(traced.dtype).kind == "f" else traced.astype(float)
    raise TypeError(
        f"{name} must be an array of real numbers, got {type(x).__qualname__}"
        + ("; pass its .array" if hasattr(x, "array") else "")
    )


def as_finite(x: ArrayLike, name: str) -> Array:
    """Return `x` as an array of floats; raise where a known one is nan or infinite."""
    array = as_array(x, name)
    check_finite(array, name)
    return array


def as_scalar(x: ArrayLike, name: str) -> Scalar:
    """Return `x` as a Python float where it is a plain number, else as an array."""
    # By its own type: traced values are instances of what they stand for.
    number: Any = x
    return float(number) if issubclass(type(x), (int, float, np.floating)) else as_array(x, name)


def check_choice(
    value: object,
    name: str,
    allowed: Iterable[object],
    remedy: str = "",
    error: type[Exception] = ValueError,
) -> None:
    """Raise where a value is not one of those that are allowed.

    >>> check_choice("euler", "odeint: method", ("rk4", "bdf"))
    Traceback (most recent call last):
        ...
    ValueError: odeint: method='euler' is not one of 'rk4', 'bdf'
    """
    allowed = tuple(allowed)
    if value not in allowed:
        choices = ", ".join(map(repr, allowed))
        raise error(f"{name}={value!r} is not one of {choices}" + (remedy and f"; {remedy}"))


#: How inputs go on between two samples.
HOLDS = ("zoh", "foh")


def check_hold(hold: object, name: str = "hold") -> None:
    """Raise where a value is not the name of a hold.

    >>> check_hold("linear")
    Traceback (most recent call last):
        ...
    ValueError: hold='linear' is not one of 'zoh', 'foh'; "zoh" holds each sample until the next \
one, "foh" is linear in between
    """
    meaning = '"zoh" holds each sample until the next one, "foh" is linear in between'
    check_choice(hold, name, HOLDS, meaning)


def transpose_hint(shape: tuple[int, ...], count: int, name: str, axis: int) -> str:
    """Return the remedy where the times of an array are along its other end, else "".

    `axis` is where `count` times should be: 0 or -1.

    >>> transpose_hint((2, 100), 100, "u", 0)
    '; times are the first axis: transpose it, give u.T'
    >>> transpose_hint((99, 2), 100, "u", 0)
    ''
    """
    if len(shape) < 2 or shape[-1 - axis] != count or shape[axis] == count:
        return ""
    turned = f"{name}.T" if len(shape) == 2 else f"np.moveaxis({name}, {-1 - axis}, {axis})"
    return f"; times are the {'last' if axis else 'first'} axis: transpose it, give {turned}"


def check_type(value: object, name: str, kind: type, remedy: str = "") -> None:
    """Raise where a value is not of a class.

    >>> check_type(2.0, "x", dict, "build one by dict(...)")
    Traceback (most recent call last):
        ...
    TypeError: x must be a dict, got float; build one by dict(...)
    """
    if not isinstance(value, kind):
        own = type(value)
        # NumPy's bool is none of Python's, and has its name.
        module = f"{own.__module__}." if own.__qualname__ == kind.__name__ else ""
        got = f"got {module}{own.__qualname__}" + (remedy and f"; {remedy}")
        raise TypeError(f"{name} must be a {kind.__name__}, {got}")


def check_that(test: Callable[[Array], Any], x: ArrayLike, name: str, expectation: str) -> None:
    """Raise where known numbers fail a test; the message says what is expected of them.

    >>> check_that(np.isfinite, [1.0, np.inf], "gear", "must be finite")
    Traceback (most recent call last):
        ...
    ValueError: gear must be finite, got [1.0, inf]
    """
    values = concrete(as_array(x, name))
    if values is not None and not np.all(test(values)):
        raise ValueError(f"{name} {expectation}, got {values.tolist()}")


def check_callable(function: object, name: str, arguments: str = "", remedy: str = "") -> None:
    """Raise where an argument is not a function.

    >>> check_callable(2.0, "dynamics", "(t, x, u)")
    Traceback (most recent call last):
        ...
    TypeError: dynamics must be a function (t, x, u), got float
    """
    if not callable(function):
        form = arguments and f" {arguments}"
        got = f"got {type(function).__name__}" + (remedy and f": {remedy}")
        raise TypeError(f"{name} must be a function{form}, {got}")


def check_whole(value: object, name: str, least: int | None = None) -> int:
    """Return `value` as an int; raise where it is not a whole number or below `least`.

    >>> check_whole(np.int64(3), "max_steps", 1)
    3
    >>> check_whole(0, "max_steps", 1)
    Traceback (most recent call last):
        ...
    ValueError: max_steps must be a whole number of at least 1, got 0
    """
    number: Any = value
    is_whole = hasattr(value, "__index__") and not isinstance(value, bool)
    if not is_whole or (least is not None and number < least):
        bound = "" if least is None else f" of at least {least}"
        error = ValueError if is_whole else TypeError
        raise error(f"{name} must be a whole number{bound}, got {value!r}")
    return operator.index(number)


def check_finite(x: object, name: str) -> None:
    """Raise where a known value is nan or infinite; of a large array the first such is named.

    >>> check_finite(np.full((5, 4), np.inf), "J")
    Traceback (most recent call last):
        ...
    ValueError: J must be finite, got inf at [0, 0] of shape (5, 4)
    """
    values = concrete(x)
    if values is None or np.isfinite(values).all():
        return
    if values.size <= 16:
        raise ValueError(f"{name} must be finite, got {values}")
    place = np.argwhere(~np.isfinite(values))[0].tolist()
    got = f"{values[tuple(place)]} at {place} of shape {values.shape}"
    raise ValueError(f"{name} must be finite, got {got}")


def check_positive(value: ArrayLike, name: str, units: str = "") -> None:
    """Raise where a known number is not positive and finite.

    >>> check_positive(-1.0, "dt", "s")
    Traceback (most recent call last):
        ...
    ValueError: dt must be positive and finite, in s, got -1.0
    """
    values = concrete(as_array(value, name))
    if values is not None and not ((values > 0.0) & np.isfinite(values)).all():
        unit = f", in {units}" if units else ""
        raise ValueError(f"{name} must be positive and finite{unit}, got {values.tolist()}")


def check_not_negative(value: ArrayLike, name: str, units: str = "") -> None:
    """Raise where a known number is negative or nan; infinity passes.

    >>> check_not_negative(0.0, "friction")
    >>> check_not_negative(-1.0, "friction")
    Traceback (most recent call last):
        ...
    ValueError: friction must not be negative, got -1.0
    """
    values = concrete(as_array(value, name))
    if values is not None and not (values >= 0.0).all():
        fault = "must be a number" if np.isnan(values).any() else "must not be negative"
        unit = f", in {units}" if units else ""
        raise ValueError(f"{name} {fault}{unit}, got {values.tolist()}")


def check_limits(lower: ArrayLike, upper: ArrayLike, name: str) -> None:
    """Raise where a known lower limit is not below or equal to the upper limit.

    >>> check_limits([0.0, 2.0], 1.0, "bounds")
    Traceback (most recent call last):
        ...
    ValueError: bounds: lower limit above upper limit, got [0.0, 2.0] and 1.0
    """
    low, high = concrete(as_array(lower, name)), concrete(as_array(upper, name))
    if low is not None and high is not None and not (low <= high).all():
        is_nan = np.isnan(low).any() or np.isnan(high).any()
        fault = "a limit is nan" if is_nan else "lower limit above upper limit"
        raise ValueError(f"{name}: {fault}, got {low.tolist()} and {high.tolist()}")


def check_increasing(x: ArrayLike, name: str, least: int = 2, remedy: str = "") -> Array:
    """Return `x` as a vector of at least `least` finite numbers that increase strictly.

    >>> check_increasing([0.0, 2.0, 1.0], "times")
    Traceback (most recent call last):
        ...
    ValueError: times must increase strictly, but times[1] = 2 is followed by times[2] = 1
    """
    array = as_array(x, name)
    if len(array.shape) != 1 or array.shape[0] < least:
        raise ValueError(
            f"{name} must be a vector of at least {least} numbers, got shape {tuple(array.shape)}"
        )
    check_finite(array, name)
    values = concrete(array)
    if values is not None and not (rises := np.diff(values) > 0.0).all():
        k, bare = int(np.argmin(rises)), name.rpartition(": ")[2]  # without who asks for it
        pair = f"{bare}[{k}] = {values[k]:g} is followed by {bare}[{k + 1}] = {values[k + 1]:g}"
        raise ValueError(f"{name} must increase strictly, but {pair}" + (remedy and f": {remedy}"))
    return array


def check_shape(array: Array, name: str, *shapes: tuple[int, ...]) -> None:
    """Raise where an array has none of the shapes.

    >>> check_shape(np.zeros(2), "weights", (), (6,))
    Traceback (most recent call last):
        ...
    ValueError: weights must have shape () or (6,), got (2,)
    """
    if tuple(array.shape) not in shapes:
        wanted = " or ".join(map(str, shapes))
        raise ValueError(f"{name} must have shape {wanted}, got {tuple(array.shape)}")


def check_struct(struct: Any, positive: str = "", not_negative: str = "") -> None:
    """Raise where a known field of a struct has the wrong sign; names are separated by spaces.

    >>> from archimedes.environment import LogarithmicShear
    >>> LogarithmicShear(10.0, roughness=0.0)
    Traceback (most recent call last):
        ...
    ValueError: LogarithmicShear.roughness must be positive and finite, in m, got 0.0
    """
    for check, names in ((check_positive, positive), (check_not_negative, not_negative)):
        for name in names.split():
            units = struct.__dataclass_fields__[name].metadata.get("units", "")
            check(getattr(struct, name), f"{type(struct).__name__}.{name}", units)


def check_last(array: Array, n: int, name: str) -> None:
    """Raise where the last axis is not of length `n`."""
    if tuple(array.shape[-1:]) != (n,):
        raise ValueError(f"{name} must have shape ({n},) or (..., {n}), got {tuple(array.shape)}")


def check_vector(x: ArrayLike, n: int, name: str) -> Array:
    """Return `x` as a finite array (..., n)."""
    if type(x) is ndarray and x.dtype is FLOAT and x.shape == (n,) and isfinite(sum(x.tolist())):
        return x
    array = as_finite(x, name)
    check_last(array, n, name)
    return array


def check_matrix(x: ArrayLike, n: int, name: str) -> Array:
    """Return `x` as a finite array (..., n, n)."""
    array = as_array(x, name)
    if tuple(array.shape[-2:]) != (n, n):
        raise ValueError(
            f"{name} must have shape ({n}, {n}) or (..., {n}, {n}), got {tuple(array.shape)}"
        )
    check_finite(array, name)
    return array
