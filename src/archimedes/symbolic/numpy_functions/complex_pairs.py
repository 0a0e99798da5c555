"""Complex results of recorded functions, as two real arrays.

Graphs hold real numbers. What NumPy returns as a complex array (a Fourier transform, eigenvalues
of a general matrix) is here a pair with the attributes ``real`` and ``imag`` and the arithmetic
that spectra need; anything else is refused by name, as is returning one from a recorded function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archimedes.symbolic.core.trace import trace_error
from archimedes.symbolic.core.traced_value import Operand, Traced

_REMEDY = "Use its .real and .imag, which are ordinary arrays, or abs(z), z * w, z + w, z.conj()."


class ComplexPair:
    """A complex array of a recording: ``real`` and ``imag`` are traced arrays of one shape.

    >>> import archimedes as arc
    >>> power = arc.compile(lambda x: np.abs(np.fft.rfft(x)) ** 2)
    >>> power(np.array([1.0, 0.0, -1.0, 0.0]))
    array([0., 4., 0.])
    """

    __slots__ = ("imag", "real")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, real: Operand, imag: Operand) -> None:
        self.real = real
        self.imag = imag

    shape = property(lambda self: self.real.shape, doc="The shape of both parts.")
    ndim = property(lambda self: self.real.ndim, doc="The number of axes.")
    size = property(lambda self: self.real.size, doc="The number of elements.")

    def __len__(self) -> int:
        return len(self.real)

    def __getitem__(self, index: Operand) -> ComplexPair:
        return ComplexPair(self.real[index], self.imag[index])

    def __setitem__(self, index: Operand, value: Operand) -> None:
        real, imag = _parts(value)
        self.real, self.imag = self.real.copy(), self.imag.copy()
        self.real[index], self.imag[index] = real, imag

    def copy(self) -> ComplexPair:
        """Return a copy that can be written to by itself."""
        return ComplexPair(self.real.copy(), self.imag.copy())

    def conj(self) -> ComplexPair:
        """Return the conjugate."""
        return ComplexPair(self.real, -self.imag)

    conjugate = conj

    def __neg__(self) -> ComplexPair:
        return ComplexPair(-self.real, -self.imag)

    def __abs__(self) -> Traced:
        return np.hypot(self.real, self.imag)

    def __add__(self, other: Operand) -> ComplexPair:
        a, b = _parts(other)
        return ComplexPair(self.real + a, self.imag + b)

    __radd__ = __add__

    def __sub__(self, other: Operand) -> ComplexPair:
        a, b = _parts(other)
        return ComplexPair(self.real - a, self.imag - b)

    def __rsub__(self, other: Operand) -> ComplexPair:
        return -self + other

    def __mul__(self, other: Operand) -> ComplexPair:
        if not _is_complex(other):
            return ComplexPair(self.real * other, self.imag * other)
        a, b = _parts(other)
        return ComplexPair(self.real * a - self.imag * b, self.real * b + self.imag * a)

    __rmul__ = __mul__

    def __truediv__(self, other: Operand) -> ComplexPair:
        if not _is_complex(other):
            return ComplexPair(self.real / other, self.imag / other)
        a, b = _parts(other)
        square = a * a + b * b
        product = self * ComplexPair(a, -b)
        return ComplexPair(product.real / square, product.imag / square)

    def __rtruediv__(self, other: Operand) -> ComplexPair:
        return ComplexPair(*_parts(other)) / self

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Traced:
        handler = _UFUNCS.get(ufunc)
        if handler is None or method != "__call__" or kwargs:
            raise trace_error(f"np.{ufunc.__name__} of a complex result cannot be traced", _REMEDY)
        return handler(*inputs)

    def __array_function__(
        self, function: Callable[..., Any], types: Sequence[type], args: Operand, kwargs: Operand
    ) -> Traced:
        handler = PAIR_FUNCTIONS.get(function)
        if handler is None:
            name = f"{function.__module__}.{function.__name__}".replace("numpy", "np")
            raise trace_error(f"{name} of a complex result cannot be traced", _REMEDY)
        return handler(*args, **kwargs)

    def __array__(self, *args: Any, **kwargs: Any) -> Traced:
        raise trace_error("a complex result cannot be turned into an array of numbers", _REMEDY)

    def __getattr__(self, name: str) -> Traced:
        if name.startswith("__"):
            raise AttributeError(name)
        raise trace_error(f"a complex result has no attribute {name!r} while recording", _REMEDY)


def _refuse(what: str) -> Callable[..., Any]:
    def refuse(*args: Any) -> Traced:
        raise trace_error(f"{what} a complex result cannot be traced", _REMEDY)

    return refuse


# Without these a comparison would be False and a test True, without a word.
for _names, _what in (
    ("eq ne lt le gt ge", "comparing"),
    ("bool", "testing"),
    ("float int complex", "taking a number from"),
    ("pow rpow matmul rmatmul floordiv mod", "this operation with"),
):
    for _name in _names.split():
        setattr(ComplexPair, f"__{_name}__", _refuse(_what))


def _is_complex(x: Operand) -> bool:
    return isinstance(x, (ComplexPair, complex, np.complexfloating)) or (
        isinstance(x, np.ndarray) and x.dtype.kind == "c"
    )


def _parts(x: Operand) -> tuple[Any, Any]:
    return (x.real, x.imag) if _is_complex(x) else (x, 0.0)


def _with_pair_first(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Apply an operator with a pair on its left, whatever the other operand is."""

    def apply(a: Operand, b: Operand) -> Traced:
        left = a if isinstance(a, ComplexPair) else ComplexPair(*_parts(a))
        return operation(left, b)

    return apply


_UFUNCS: dict[np.ufunc, Callable[..., Any]] = {
    np.absolute: abs,
    np.conjugate: ComplexPair.conj,
    np.negative: ComplexPair.__neg__,
    np.square: lambda z: z * z,
    np.add: _with_pair_first(ComplexPair.__add__),
    np.subtract: _with_pair_first(ComplexPair.__sub__),
    np.multiply: _with_pair_first(ComplexPair.__mul__),
    np.true_divide: _with_pair_first(ComplexPair.__truediv__),
}

#: NumPy functions of pairs; ``fourier.py`` adds its own.
PAIR_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.real: lambda z: z.real,
    np.imag: lambda z: z.imag,
    np.angle: lambda z, deg=False: np.arctan2(z.imag, z.real) * (180 / np.pi if deg else 1.0),
    np.sum: lambda z, **kw: ComplexPair(np.sum(z.real, **kw), np.sum(z.imag, **kw)),
    np.shape: lambda z: z.shape,
    np.copy: lambda z: z.copy(),
    np.iscomplexobj: lambda z: True,
    np.isrealobj: lambda z: False,
}
