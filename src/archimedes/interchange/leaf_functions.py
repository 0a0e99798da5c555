"""Functions of leaves: what PyTorch and JAX are given of a function of trees.

A function for other packages takes a flat sequence of arrays and returns a list of arrays. Its
products with tangents and cotangents, and the map of it over a leading axis, are functions of
leaves again. A package therefore needs one rule for each of the three, and has derivatives and
maps of any order.

====================== ========================================================================
``function(leaves)``   results, a list
``jvp(wrt)``           takes the leaves and a tangent for each leaf in ``wrt``; returns a tangent
                       for each floating-point result
``vjp(wrt)``           takes the leaves and a cotangent for each floating-point result; returns a
                       cotangent for each leaf in ``wrt``
``mapped(batched)``    takes leaves with a leading axis where ``batched``; all results have one
====================== ========================================================================
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.checks import check_callable
from archimedes.errors import ShapeDtypeError
from archimedes.function import compile, jvp, vjp, vmap
from archimedes.function.batching import batch_axes
from archimedes.function.batching.vmap import Batched
from archimedes.function.compiled import Compiled
from archimedes.function.signatures import Bound
from archimedes.graph.dtypes import DTYPES
from archimedes.tree.content import content_key
from archimedes.tree.treedef import TreeDef

__all__ = ["ArrayKind", "Call", "LeafFunction", "TreeFunction"]


class ArrayKind(NamedTuple):
    """Shape and dtype of a leaf; ``weak`` marks Python numbers, which do not widen arrays."""

    shape: tuple[int, ...]
    dtype: np.dtype
    weak: bool = False

    @property
    def differentiable(self) -> bool:
        """Whether there are derivatives with respect to it."""
        return self.dtype.kind == "f"

    def sample(self) -> Any:
        """Return a leaf of this kind, of any content."""
        if self.weak:
            return 1.0 if self.differentiable else 1
        return np.ones(self.shape, self.dtype)[()]


class Linear(NamedTuple):
    """The ``mode`` of a function that is linear in its last leaves, and of what it is a product."""

    mode: Literal["jvp", "vjp"]
    base: LeafFunction
    wrt: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of leaves in which the function is linear."""
        return len(self.wrt if self.mode == "jvp" else self.base.floats)

    def transpose(self, which: Sequence[int]) -> tuple[LeafFunction, Sequence[int]]:
        """Return the transposed function, and which of its results belong to the leaves ``which``.

        Its last leaves are the cotangents of this function's results.
        """
        if self.mode == "jvp":
            return self.base.vjp([self.wrt[k] for k in which]), range(len(which))
        return self.base.jvp(self.wrt), which


class LeafFunction(ABC):
    """A function of leaves; see the top of this file."""

    def __init__(self, weak: Sequence[bool]) -> None:
        #: Which leaves are Python numbers.
        self.weak = tuple(weak)
        #: Set where it is linear in its last leaves.
        self.linear: Linear | None = None
        self._made: dict[Any, LeafFunction] = {}

    @abstractmethod
    def __call__(self, leaves: Sequence[Any]) -> list[Any]:
        """Return the results."""

    @abstractmethod
    def into(self, leaves: Sequence[Any], results: Sequence[np.ndarray]) -> None:
        """Write the results into arrays of the caller, which have at least one axis."""

    @abstractmethod
    def results(self, shapes: Sequence[tuple[int, ...]]) -> list[ArrayKind]:
        """Return the kinds of the results for leaves of these shapes."""

    @property
    @abstractmethod
    def floats(self) -> tuple[int, ...]:
        """Positions of the floating-point results."""

    @abstractmethod
    def _product(self, mode: Literal["jvp", "vjp"], wrt: tuple[int, ...]) -> LeafFunction: ...

    def jvp(self, wrt: Sequence[int]) -> LeafFunction:
        """Return the function that multiplies the Jacobian by tangents of the leaves ``wrt``."""
        return self.product("jvp", tuple(wrt))

    def vjp(self, wrt: Sequence[int]) -> LeafFunction:
        """Return the function that multiplies cotangents by the Jacobian of the leaves ``wrt``."""
        return self.product("vjp", tuple(wrt))

    def mapped(self, batched: Sequence[bool]) -> LeafFunction:
        """Return the function that maps this one over the first axis of some leaves."""
        key = ("map", *batched)
        if key not in self._made:
            self._made[key] = Mapped(self, tuple(batched), (False,) * self.count)
        return self._made[key]

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of results."""

    def product(self, mode: Literal["jvp", "vjp"], wrt: tuple[int, ...]) -> LeafFunction:
        """Return the product of this mode."""
        key = (mode, wrt)
        if key not in self._made:
            product = self._product(mode, wrt)
            product.linear = Linear(mode, self, wrt)
            self._made[key] = product
        return self._made[key]


class Program(LeafFunction):
    """A compiled function of one tuple of leaves, for leaves of given kinds."""

    def __init__(self, program: Compiled, kinds: Sequence[ArrayKind]) -> None:
        super().__init__([kind.weak for kind in kinds])
        self.program, self.kinds = program, tuple(kinds)
        outs = program.recording(tuple(kind.sample() for kind in kinds)).outs
        dtypes = [DTYPES[out.spec.code] for out in outs]
        self._results = [ArrayKind(out.shape, dtype) for out, dtype in zip(outs, dtypes)]

    def __repr__(self) -> str:
        return self.program.name

    def __call__(self, leaves: Sequence[Any]) -> list[Any]:
        """Return the results."""
        return list(self.program(tuple(leaves)))

    def into(self, leaves: Sequence[Any], results: Sequence[np.ndarray]) -> None:
        """Write the results into arrays."""
        self.program(tuple(leaves), out=tuple(results))

    def results(self, shapes: Sequence[tuple[int, ...]]) -> list[ArrayKind]:
        """Return the kinds of the results."""
        return self._results

    @property
    def count(self) -> int:
        """Number of results."""
        return len(self._results)

    @property
    def floats(self) -> tuple[int, ...]:
        """Positions of the floating-point results."""
        return tuple(k for k, kind in enumerate(self._results) if kind.differentiable)

    def _product(self, mode: Literal["jvp", "vjp"], wrt: tuple[int, ...]) -> LeafFunction:
        program, floats, count = self.program, self.floats, len(self.kinds)
        others = tuple(k for k in range(count) if k not in wrt)

        def split(active: tuple[Any, ...], passive: tuple[Any, ...]) -> tuple[Any, ...]:
            by_position = dict(zip((*wrt, *others), (*active, *passive)))
            results = program(tuple(by_position[k] for k in range(count)))
            return tuple(results[k] for k in floats)

        derivative = (jvp if mode == "jvp" else vjp)(split, name=f"{mode}_{program.name}")

        def product(leaves: tuple[Any, ...]) -> tuple[Any, ...]:
            active, passive = (tuple(leaves[k] for k in part) for part in (wrt, others))
            return derivative(active, passive, tuple(leaves[count:]))

        directions = (
            [self.kinds[k] for k in wrt] if mode == "jvp" else [self._results[k] for k in floats]
        )
        own = compile(product, name=derivative.name, **options_of(program))
        return Program(own, (*self.kinds, *directions))


class Mapped(LeafFunction):
    """A function of leaves over the first axis of some of them; some results are summed over it.

    Sums are those of cotangents: what all instances share has the sum of their cotangents.
    """

    def __init__(
        self, inner: LeafFunction, batched: tuple[bool, ...], summed: tuple[bool, ...]
    ) -> None:
        super().__init__([one and not many for one, many in zip(inner.weak, batched)])
        self.inner, self.batched, self.summed = inner, batched, summed
        program = inner.program if isinstance(inner, Program) else compile(_on_tuples(inner))
        self._run = vmap(program, in_axes=(tuple(0 if many else None for many in batched),))

    def __repr__(self) -> str:
        return f"vmap_{self.inner!r}"

    def __call__(self, leaves: Sequence[Any]) -> list[Any]:
        """Return the results."""
        results = self._run(tuple(leaves))
        return [_sum_first_axis(x) if add else x for x, add in zip(results, self.summed)]

    def into(self, leaves: Sequence[Any], results: Sequence[np.ndarray]) -> None:
        """Write the results into arrays."""
        if not any(self.summed):
            self._run(tuple(leaves), out=tuple(results))
            return
        for result, target in zip(self(leaves), results):
            target[...] = result

    def results(self, shapes: Sequence[tuple[int, ...]]) -> list[ArrayKind]:
        """Return the kinds of the results."""
        size = next(shape[0] for shape, many in zip(shapes, self.batched) if many)
        inner = [shape[1:] if many else shape for shape, many in zip(shapes, self.batched)]
        return [
            kind if add else kind._replace(shape=(size, *kind.shape))
            for kind, add in zip(self.inner.results(inner), self.summed)
        ]

    @property
    def count(self) -> int:
        """Number of results."""
        return self.inner.count

    @property
    def floats(self) -> tuple[int, ...]:
        """Positions of the floating-point results."""
        return self.inner.floats

    def _product(self, mode: Literal["jvp", "vjp"], wrt: tuple[int, ...]) -> LeafFunction:
        of_inputs = tuple(self.batched[k] for k in wrt)
        of_results = tuple(not self.summed[k] for k in self.floats)
        inner = self.inner.product(mode, wrt)
        if mode == "jvp":
            return Mapped(inner, self.batched + of_inputs, tuple(not b for b in of_results))
        return Mapped(inner, self.batched + of_results, tuple(not b for b in of_inputs))


def _on_tuples(function: LeafFunction) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    return lambda leaves: tuple(function(leaves))


def _sum_first_axis(x: Any) -> Any:
    """Return the sum over the first axis, added in float64."""
    return np.sum(x, axis=0, dtype=np.float64).astype(x.dtype)


def options_of(function: Compiled) -> dict[str, Any]:
    """Return the options with which a function was compiled that hold for what is made of it."""
    return {
        "backend": function.backend,
        "numerics": function.numerics,
        "loops_from": function.loops_from,
    }


# ---- functions of trees --------------------------------------------------------------------------

#: Stands for the value of a result leaf that is computed.
_COMPUTED = object()


class Call(NamedTuple):
    """A call as a function of leaves.

    ``known`` are the values of result leaves that do not depend on the arguments; ``size`` is the
    number of instances, None for a single call.
    """

    function: LeafFunction
    operands: list[Any]
    out_tree: TreeDef
    known: tuple[Any, ...]
    size: int | None

    def rebuild(self, results: Sequence[Any], convert: Callable[[np.ndarray], Any]) -> Any:
        """Return the result of the user's function; ``convert`` is for arrays that are known."""
        rest = iter(results)
        leaves = [next(rest) if x is _COMPUTED else self._constant(x, convert) for x in self.known]
        return self.out_tree.unflatten(leaves)

    def _constant(self, value: Any, convert: Callable[[np.ndarray], Any]) -> Any:
        if isinstance(value, bool) or not isinstance(value, (np.ndarray, np.generic, float, int)):
            return value
        array = np.array(value)
        if self.size is not None:
            array = np.repeat(array[None], self.size, axis=0)
        return convert(array)


class TreeFunction:
    """A user's function, made a function of leaves for each kind of arguments.

    ``caller`` is the function of this package that users call, for messages.
    """

    def __init__(self, function: Any, caller: str) -> None:
        self.in_axes: Any = None
        self.batched = isinstance(function, Batched)
        if isinstance(function, Batched):
            if function.out_axes != 0:
                raise ValueError(
                    f"{caller}: out_axes of arc.vmap is {function.out_axes!r}, but results have "
                    "their batch axis first here: leave out_axes=0, and move the axis of the result"
                )
            function, self.in_axes = function.compiled, function.in_axes
        else:
            check_callable(function, f"{caller}: func", remedy=f"write arc.{caller}(f)(x)")
        self.compiled = function if isinstance(function, Compiled) else compile(function)
        self.name = self.compiled.name
        self._programs: dict[Any, tuple[Program, TreeDef, tuple[Any, ...]]] = {}

    def prepare(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        read: Callable[[Any, str], tuple[Any, ArrayKind | None]],
        move_axis: Callable[[Any, int, int], Any],
    ) -> Call:
        """Return a call as a function of leaves.

        ``read(leaf, name)`` returns a leaf as an operand, and its kind; None for what is part of
        the program, such as a string. ``move_axis`` is the package's.
        """
        signature = self.compiled.signature
        values = signature.bind(args, kwargs)
        # Static arguments, and defaults left alone, are part of the program.
        static = signature.fixed(values)
        names = [name for name in values if name not in static]
        leaves, treedef = tree.flatten(tuple(values[name] for name in names))
        paths = [path for n, child in zip(names, treedef.children) for path in child.paths(n)]
        axes = self._axes(args, kwargs, names)
        read_leaves = [read(x, f"{self.name}: {path}") for x, path in zip(leaves, paths)]
        fixed = {k: leaf for k, (leaf, kind) in enumerate(read_leaves) if kind is None}
        operands: list[Any] = []
        kinds: list[ArrayKind] = []
        along: list[bool] = []
        sizes: dict[int, str] = {}
        for (leaf, kind), axis, path in zip(read_leaves, axes, paths):
            if kind is None:
                continue
            if axis is not None:
                if not -len(kind.shape) <= axis < len(kind.shape):
                    raise ShapeDtypeError(
                        f"{self.name}: {path} has shape {kind.shape}, which has no axis {axis} to "
                        "map over; set its entry of in_axes to None to share it"
                    )
                leaf = move_axis(leaf, axis, 0) if axis else leaf
                sizes.setdefault(kind.shape[axis], path)
                shape = list(kind.shape)
                del shape[axis]
                kind = ArrayKind(tuple(shape), kind.dtype)
            operands.append(leaf)
            kinds.append(kind)
            along.append(axis is not None)
        if len(sizes) > 1:
            lengths = ", ".join(f"{path}: {size}" for size, path in sizes.items())
            raise ShapeDtypeError(f"{self.name}: the mapped axes have different lengths: {lengths}")
        if self.batched and not sizes:
            raise ShapeDtypeError(f"{self.name}: no argument has an axis to map over")
        key = (
            treedef,
            tuple(names),
            tuple(kinds),
            content_key((fixed, {name: values[name] for name in values if name in static})),
        )
        if key not in self._programs:
            self._programs[key] = self._program(values, names, treedef, fixed, kinds)
        function: LeafFunction
        function, out_tree, known = self._programs[key]
        if self.batched:
            function = function.mapped(along)
        return Call(function, operands, out_tree, known, next(iter(sizes), None))

    def _axes(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], names: list[str]
    ) -> list[int | None]:
        """Return the batch axis of each leaf of the arguments with these names."""
        counts = [len(tree.leaves(arg)) for arg in args]
        flat: Iterator[int | None] = itertools.repeat(None)
        if self.batched:
            flat = iter(batch_axes.leaf_axes(self.in_axes, args, self.name))
        positional = tuple(list(itertools.islice(flat, count)) for count in counts)
        others = {name: [None] * len(tree.leaves(value)) for name, value in kwargs.items()}
        by_name = self.compiled.signature.bind(positional, others)
        return [axis for name in names for axis in by_name[name]]

    def _program(
        self,
        values: dict[str, Any],
        names: list[str],
        treedef: TreeDef,
        fixed: dict[int, Any],
        kinds: Sequence[ArrayKind],
    ) -> tuple[Program, TreeDef, tuple[Any, ...]]:
        compiled, count = self.compiled, treedef.num_leaves
        # Not the arguments of the first call: the program would keep them.
        static = Bound(
            {name: None if name in names else value for name, value in values.items()},
            getattr(values, "defaulted", ()),
        )

        def arguments(operands: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
            rest = iter(operands)
            leaves = [fixed[k] if k in fixed else next(rest) for k in range(count)]
            new = dict(zip(names, treedef.unflatten(leaves)))
            return compiled.signature.rebind(static, new)

        args, kwargs = arguments([kind.sample() for kind in kinds])
        recording = compiled.recording(*args, **kwargs)
        known = tuple(_COMPUTED if o.spec.traced else o.spec.value for o in recording.outs)

        def flat(operands: tuple[Any, ...]) -> tuple[Any, ...]:
            args, kwargs = arguments(operands)
            results = tree.leaves(compiled(*args, **kwargs))
            return tuple(x for x, value in zip(results, known) if value is _COMPUTED)

        program = compile(flat, name=compiled.name, **options_of(compiled))
        return Program(program, kinds), recording.out_tree, known
