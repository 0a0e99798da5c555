"""Checks of what the functions of this package are given: keys, shapes, dtypes, parameters."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from archimedes.checks import is_traced
from archimedes.errors import refer_to
from archimedes.function import array

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from archimedes.typing import Array, ArrayLike


#: What users give for a shape.
Shape: TypeAlias = int | Sequence[int]


def as_dtype(x: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """Return numbers, traced or not, as an array (or a scalar) of a dtype."""
    if not is_traced(x):
        return np.asarray(x, dtype=dtype)[()]
    traced: Any = array(x) if isinstance(x, list | tuple | np.ndarray) else x
    return traced if dtype is None else traced.astype(dtype)


def as_integers(x: ArrayLike, name: str, what: str) -> Array:
    """Return whole numbers as int64."""
    numbers = as_dtype(x)
    kind = getattr(numbers, "dtype", np.dtype(object)).kind
    if kind not in "iu":
        raise TypeError(f"{what}: {name} must be a whole number (int64), got {x!r}")
    if kind == "u" and np.any(numbers > np.iinfo(np.int64).max):
        raise ValueError(f"{what}: {name} must be below 2^63, got {x!r}")
    return numbers if numbers.dtype == np.int64 else numbers.astype(np.int64)


def is_all_true(test: ArrayLike) -> bool:
    """Return whether a test holds everywhere; a traced one, not known yet, is taken to hold."""
    return is_traced(test) or bool(np.all(test))


def check_parameter(value: Array, good: ArrayLike, words: str) -> Array:
    """Return a parameter; where it is not good, plain numbers raise, and traced ones are nan."""
    if is_traced(good):
        return np.where(good, value, np.nan)
    if not np.all(good):
        raise ValueError(f"{words}, got {value!r}")
    return value


def check_key(key: Any, what: str) -> Array:
    """Return a key as an array, after checking that it is one."""
    shape, dtype = np.shape(key), getattr(key, "dtype", None)
    if shape == (2,) and dtype == np.int64:
        return key
    if shape[1:] == (2,) and dtype == np.int64:
        remedy = f"take one of them, or map over all: arc.vmap(lambda key: {what}(key))(keys)"
    elif shape == (2,) and getattr(dtype, "kind", "") == "f":
        remedy = (
            "something has converted it to floating point, which loses bits. A key has no "
            "derivative and is no state: pass it as an int64 argument of its own"
        )
    elif isinstance(key, np.random.Generator | np.random.RandomState | np.random.BitGenerator):
        remedy = "NumPy's generators keep a state; write key = arc.random.key(seed)"
    else:
        remedy = "write key = arc.random.key(seed)"
    described = f"{dtype} of shape {shape}" if dtype is not None else type(key).__name__
    raise TypeError(
        f"{what}: key must be a key, an int64 array (2,), got {described}: {remedy}"
        + refer_to("key")
    )


def check_shape(shape: Shape, what: str, name: str = "shape") -> tuple[int, ...]:
    """Return a shape as a tuple of ints."""
    lengths = shape if isinstance(shape, Sequence | np.ndarray) else (shape,)
    error = TypeError(
        f"{what}: {name} must be an int or a tuple of ints, known when the function is recorded, "
        f"got {shape!r}"
    )
    if is_traced(*lengths):
        raise error
    try:
        checked = tuple(operator.index(n) for n in lengths)
    except TypeError:
        raise error from None
    if any(n < 0 for n in checked):
        raise ValueError(f"{what}: {name} must not be negative, got {shape!r}")
    return checked


def check_dtype(dtype: DTypeLike, what: str) -> np.dtype:
    """Return a dtype, which must be float64 or float32."""
    checked = np.dtype(dtype)
    if checked not in (np.float64, np.float32):
        raise TypeError(f"{what}: dtype must be float64 or float32, got {checked}")
    return checked


def result_shape(shape: Shape | None, what: str, **parameters: ArrayLike) -> tuple[int, ...]:
    """Return the shape of a result: the user's, or else that of the parameters together."""
    shapes = {name: np.shape(value) for name, value in parameters.items()}
    wanted = () if shape is None else check_shape(shape, what)
    if not any(shapes.values()):
        return wanted
    try:
        common = np.broadcast_shapes(*shapes.values())
    except ValueError:
        raise ValueError(f"{what}: the shapes {shapes} do not fit together") from None
    if shape is None:
        return common
    try:
        fits = np.broadcast_shapes(common, wanted) == wanted
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"{what}: shape={wanted} does not hold the parameters, {shapes}")
    return wanted
