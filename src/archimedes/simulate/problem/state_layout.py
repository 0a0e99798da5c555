"""States as flat vectors: any tree of numbers becomes x of shape (n,) and back.

A struct in the state whose class has a ``normalize()`` method (quaternions, rotation matrices,
Rodrigues parameters, a user's own) is replaced by its normalized self after each accepted step
and at each output (``projection``). Between these points a step is an ordinary one in coordinates.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import linecache
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from archimedes import tree
from archimedes.errors import ShapeDtypeError, refer_to
from archimedes.tree import TreeDef
from archimedes.tree.treedef import LEAF

if TYPE_CHECKING:
    from archimedes.typing import Array, Tree


#: The arguments of a user's function, after time and state.
Args: TypeAlias = tuple[Any, ...]


def rounding(*times: Any) -> Any:
    """Return a bound of the error of a time that is computed from these by a few operations.

    >>> round(float(rounding(1.0, 1.7e9)), 8)  # seconds of Unix time
    1.51e-06
    """
    largest = np.abs(times[0])
    for t in times[1:]:
        largest = np.maximum(largest, np.abs(t))
    return 4.0 * float(np.finfo(np.float64).eps) * largest


def as_state(x: Tree) -> Tree:
    """Return a state tree; a list or tuple of numbers, as in SciPy, is an array."""
    is_list = isinstance(x, (list, tuple)) and not hasattr(x, "_fields") and len(x) > 0
    if is_list and all(tree.is_leaf(part) and np.ndim(part) == 0 for part in x):
        return np.stack(x)
    return x


class DerivativeError(ShapeDtypeError):
    """A function returned something that is not a derivative of the state; names the function."""

    def __init__(self, message: str, func: object = None) -> None:
        super().__init__(message if func is None else f"{message}\n  in {place_of(func)}")


#: Attributes in which functions keep the one that they wrap.
_INNER = ("__wrapped__", "func", "__func__", "written_as")


def place_of(func: object) -> str:
    """Return where a function is written: file, line and name.

    A function made here from the user's says so by its attribute ``written_as``.

    >>> place_of(np.sin)
    'sin'
    """
    plain = func
    for _ in range(10):
        inner = [getattr(plain, name, None) for name in _INNER]
        plain = next((f for f in inner if callable(f)), plain)
    code = getattr(plain, "__code__", None) or getattr(type(plain).__call__, "__code__", None)
    name = getattr(plain, "__qualname__", type(plain).__qualname__)
    if code is None:
        return str(getattr(plain, "__name__", name))
    text = linecache.getline(code.co_filename, code.co_firstlineno).strip()
    location = f"{code.co_filename}:{code.co_firstlineno}, {name.rpartition('<locals>.')[2]}"
    return f"{location}\n    {text}" if text else location


def check_time_first(func: object, call: str = "func(t, x, ...)") -> None:
    """Refuse a function whose second argument is named t: solvers give it the time first.

    SciPy's ``odeint`` calls func(y, t): with the arguments swapped, nothing else would reveal the
    mistake.
    """
    plain: Any = inspect.unwrap(func) if callable(func) else func
    bound = inspect.ismethod(func) or inspect.ismethod(plain)
    code = getattr(getattr(plain, "__func__", plain), "__code__", None)
    if code is None:
        return
    names = code.co_varnames[: code.co_argcount][bound:]
    if len(names) > 1 and names[1] == "t" and names[0] != "t":
        raise ValueError(
            f"the function has arguments ({', '.join(names)}), but it is called as {call}: time "
            f"comes first\n  in {place_of(func)}"
        )


@dataclass(frozen=True)
class Layout:
    """Where each leaf of a state tree lies in the flat vector."""

    treedef: TreeDef
    shapes: tuple[tuple[int, ...], ...]

    @functools.cached_property
    def size(self) -> int:
        """Length n of the flat vector."""
        return sum(math.prod(shape) for shape in self.shapes)

    @functools.cached_property
    def spans(self) -> list[slice]:
        """Where the leaves are in the flat vector."""
        ends = itertools.accumulate(map(math.prod, self.shapes), initial=0)
        return list(itertools.starmap(slice, itertools.pairwise(ends)))

    @property
    def is_array(self) -> bool:
        """Whether the state is one array rather than a tree."""
        return self.treedef is LEAF

    def pack(self, state: Tree) -> Any:
        """Join the leaves of a state of this structure into one float vector."""
        leaves = [state] if type(state) is np.ndarray else tree.leaves(state)
        if len(leaves) == 1:
            return np.reshape(leaves[0], (-1,)) * 1.0
        return np.concatenate([np.reshape(leaf, (-1,)) * 1.0 for leaf in leaves])

    def unpack(self, vector: Array, axes: tuple[int, ...] = ()) -> Any:
        """Return the tree of a vector (..., n) whose leading axes are ``axes``."""
        if self.is_array:
            return np.reshape(vector, (*axes, *self.shapes[0]))
        pairs = zip(self.spans, self.shapes)
        return self.treedef.unflatten(
            [vector[..., span].reshape((*axes, *shape)) for span, shape in pairs]
        )

    def check_derivative(self, result: Tree, func: object = None) -> Tree:
        """Return a derivative, which must be like the state; ``func`` is what returned it."""
        if self.is_array and isinstance(result, (list, tuple)):
            shapes = {np.shape(part) for part in result if tree.is_leaf(part)}
            if len(shapes) != 1 or not all(map(tree.is_leaf, result)):
                message = (
                    f"the derivative is a {type(result).__name__} of {len(result)} parts that do "
                    f"not make one array: return an array like x, of shape {self.shapes[0]}"
                )
                raise DerivativeError(message + refer_to("derivative shape"), func)
            result = np.stack(result)
        if result is None:
            message = "the function returned None instead of dx/dt: is a `return` missing?"
            raise DerivativeError(message + refer_to("return"), func)
        leaves, treedef = tree.flatten(result)
        if not self.treedef.matches(treedef):
            difference = self.treedef.difference(treedef, "x", [0.0] * len(self.shapes), leaves)
            message = (
                f"the derivative must have the structure of the state, it differs {difference} "
                "(state against derivative): return the state's own type, such as "
                "State(pos=..., vel=...)"
            )
            raise DerivativeError(message + refer_to("derivative structure"), func)
        for leaf, shape, path in zip(leaves, self.shapes, treedef.paths("x")):
            if np.shape(leaf) != shape:
                message = (
                    f"the derivative of {path} has shape {np.shape(leaf)}, but {path} has shape "
                    f"{shape}: they must be equal"
                )
                raise DerivativeError(message + refer_to("derivative shape"), func)
        return result

    def spread(self, value: Tree, name: str) -> np.ndarray:
        """Return a tolerance (a number, a vector or a tree like the state) as a vector (n,)."""
        if tree.is_leaf(value) and np.shape(value) in ((), (self.size,)):
            return np.full(self.size, value, dtype=np.float64)
        leaves, treedef = tree.flatten(as_state(value) if self.is_array else value)
        if not self.treedef.matches(treedef):
            raise ValueError(
                f"{name} must be a number, a vector of the state's {self.size} numbers or a tree "
                f"like the state, got {value!r}"
            )
        vectors = []
        for k, (leaf, shape) in enumerate(zip(leaves, self.shapes)):
            try:
                vectors.append(np.broadcast_to(np.asarray(leaf, dtype=np.float64), shape).ravel())
            except ValueError:
                raise ValueError(
                    f"{self.treedef.paths(name)[k]} has shape {np.shape(leaf)}, the state has "
                    f"{shape} there"
                ) from None
        return np.concatenate(vectors)


def layout_of(state: Tree) -> Layout:
    """Return the layout of a state; leaves that are not numbers are named in the error."""
    leaves, treedef = tree.flatten(state)
    if not any(map(np.size, leaves)):
        raise ValueError("x0 has no numbers in it: a state needs at least one")
    for k, leaf in enumerate(leaves):
        kind = np.dtype(leaf.dtype if hasattr(leaf, "dtype") else np.asarray(leaf).dtype).kind
        if kind not in "biuf" and not (kind == "O" and hasattr(leaf, "shape")):
            raise TypeError(
                f"{treedef.paths('x0')[k]} is a {type(leaf).__name__}, not a real number or an "
                "array of them: mark fields that are settings static"
            )
    return _layout(treedef, tuple([np.shape(leaf) for leaf in leaves]))


@functools.lru_cache(maxsize=256)
def _layout(treedef: TreeDef, shapes: tuple[tuple[int, ...], ...]) -> Layout:
    """One object for equal layouts, so that they are compared by identity."""
    return Layout(treedef, shapes)


Projection = Callable[[Any], Any]


def _places(node: TreeDef, first: int) -> list[tuple[TreeDef, int]]:
    """Outermost nodes below ``node`` that can normalise themselves, with their first leaf."""
    if callable(getattr(node.kind.cls, "normalize", None)):
        return [(node, first)]
    nodes = []
    for child in node.children:
        nodes += _places(child, first)
        first += child.num_leaves
    return nodes


def projection(layout: Layout) -> Projection | None:
    """Return the function x (n,) -> x (n,) that normalises, or None if nothing in x can.

    >>> import numpy as np
    >>> from archimedes.simulate.problem.state_layout import layout_of
    >>> projection(layout_of(np.zeros(3))) is None
    True
    """
    nodes = _places(layout.treedef, 0)
    if not nodes:
        return None

    def project(x: Array) -> Any:
        parts, at = [], 0
        for node, first in nodes:
            last = first + node.num_leaves
            start, stop = layout.spans[first].start, layout.spans[last - 1].stop
            own = Layout(node, layout.shapes[first:last])
            parts += [x[at:start], own.pack(own.unpack(x[start:stop]).normalize())]
            at = stop
        return np.concatenate([*parts, x[at:]])

    return project
