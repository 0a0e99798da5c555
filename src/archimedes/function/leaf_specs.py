"""What a recording needs to know of an argument leaf: dtype, shape, memory order, or its value."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from archimedes.backends.registry import backend_of
from archimedes.checks import is_traced
from archimedes.errors import IntegerRangeError, ShapeDtypeError, TraceError, refer_to
from archimedes.graph.dtypes import DTYPES, F64, I64, STATIC, code_of
from archimedes.symbolic import SymbolicArray, is_tracing, lift, trace_error
from archimedes.symbolic.core.conversion import axis_order, refuse_subclass
from archimedes.symbolic.recorded.recorded_array import as_plain
from archimedes.tree.content import content_key
from archimedes.tree.treedef import TreeDef


@dataclass(frozen=True)
class LeafSpec:
    """What a recording needs to know of one argument leaf.

    ``code`` is the dtype code of a traced leaf, or ``STATIC``; a static leaf's content is ``key``
    (and ``value``, not compared). ``weak`` marks Python numbers, which do not widen arrays;
    ``array`` an array without axes, which unlike a scalar can be written to. ``order`` lists the
    axes as they lie in memory where that is not C order: ``x.ravel("K")`` depends on it.
    """

    code: int
    shape: tuple[int, ...] = ()
    weak: bool = False
    key: Any = None
    value: Any = field(default=None, compare=False)
    array: bool = False
    order: tuple[int, ...] | None = None

    @property
    def traced(self) -> bool:
        """Whether its numbers are inputs or outputs of the graph."""
        return self.code != STATIC

    @property
    def size(self) -> int:
        """Number of scalars in the leaf."""
        return math.prod(self.shape)

    def __str__(self) -> str:
        if not self.traced:
            return f"static {self.value!r}"
        if self.weak:
            return "Python int" if self.code == I64 else "Python float"
        order = "" if self.order is None else f" with axes {list(self.order)} in memory"
        return f"{DTYPES[self.code]}{list(self.shape)}{order}"


_FLOAT = LeafSpec(F64, weak=True)
_INT = LeafSpec(I64, weak=True)


def _array_spec(x: np.ndarray | np.generic, path: Callable[[], str]) -> LeafSpec:
    if code_of(x.dtype) is None and is_traced(x):
        traced = lift(x)
        return LeafSpec(traced.code, traced.shape)
    code = _traced_code(x.dtype, path)
    if not x.shape:
        return LeafSpec(code, array=isinstance(x, np.ndarray))
    return LeafSpec(code, x.shape, order=axis_order(as_plain(x)))


def _traced_code(dtype: np.dtype, path: Callable[[], str]) -> int:
    """Return the code of a dtype, or say that it has none."""
    code = code_of(dtype)
    if code is None:
        raise ShapeDtypeError(
            f"argument {path()} has dtype {dtype}, which cannot be traced: convert it to "
            "float64, float32, int64 or bool, or declare the argument static (static_argnames)."
        )
    return code


def leaf_spec(x: Any, path: Callable[[], str]) -> LeafSpec:
    """Describe one argument leaf; ``path`` names it in errors."""
    kind = type(x)
    if kind is float:
        return _FLOAT
    if kind is int:
        if not -(2**63) <= x < 2**63:
            raise IntegerRangeError(
                f"argument {path()} is an int outside the range of int64: pass it as a float, or "
                "declare the argument static (static_argnames)."
            )
        return _INT
    if kind is np.ndarray:
        return _array_spec(x, path)
    if isinstance(x, SymbolicArray):
        if not is_tracing():
            raise trace_error(
                f"argument {path()} is a value of a trace that has ended",
                "Return it from the compiled function, or pass it as an argument, instead of "
                "storing it in a global, an attribute or a mutable default.",
            )
        array = not x.ids.ndim and x.form() is x.array
        return LeafSpec(x.code, x.ids.shape, x.weak, array=array, order=axis_order(x.ids))
    if isinstance(x, (np.ndarray, np.generic)):
        refuse_subclass(x, lambda: f"argument {path()}")
        return _array_spec(x, path)
    if kind is complex:
        raise ShapeDtypeError(
            f"argument {path()} is complex, which cannot be traced: pass real and imaginary "
            "parts as two arguments." + refer_to("complex")
        )
    home = backend_of(x)
    if home is not None:
        shape, dtype = home.arrays.describe(x)
        return LeafSpec(_traced_code(dtype, path), shape)  # in C order when it is computed with
    try:
        return LeafSpec(STATIC, key=(kind, content_key(x)), value=x)
    except TypeError as error:
        raise TraceError(
            f"argument {path()} is a {kind.__name__}, neither a number, an array nor a struct, "
            "and cannot be compared by content: make its class a struct (@arc.struct), or give "
            "it __eq__ and __hash__."
        ) from error


def argument_paths(treedef: TreeDef, names: Iterable[str]) -> list[str]:
    """Return the path of each leaf of a tuple of arguments with these names, such as ``x.att``."""
    return [path for name, child in zip(names, treedef.children) for path in child.paths(name)]


def describe_leaves(leaves: Sequence[Any], treedef: TreeDef, names: Sequence[str]) -> tuple:
    """Describe all leaves of a tuple of arguments."""

    def path(k: int) -> str:
        return argument_paths(treedef, names)[k]

    return tuple([leaf_spec(x, functools.partial(path, k)) for k, x in enumerate(leaves)])
