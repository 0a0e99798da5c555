"""Where a derivative is taken: a function recorded at given arguments, and the leaves chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.errors import TraceError
from archimedes.function.compiled import Compiled
from archimedes.function.identity.states import Identity, to_record
from archimedes.function.leaf_specs import describe_leaves
from archimedes.function.recording import Recording, leaf_ids, record
from archimedes.function.signatures import Bound, Signature
from archimedes.graph.dtypes import B8, is_float
from archimedes.symbolic import SymbolicArray, current_trace, lift, wrap
from archimedes.tree.treedef import TreeDef

__all__ = ["Derivative", "Point", "derivative_function", "differentiable", "named_after"]


@dataclass
class Point:
    """A function recorded at given arguments, with the leaves it is differentiated in.

    ``wrt`` are the inputs of the graph that belong to those leaves; ``wanted`` the leaves'
    numbers; ``where`` the tree of the chosen argument (or tuple of arguments), ``leaves`` its
    leaves, ``all_leaves`` those of all arguments.
    """

    recording: Recording
    wanted: list[int]
    wrt: list[int]
    where: TreeDef
    leaves: list[Any]
    all_leaves: list[Any]

    @cached_property
    def inputs(self) -> list[int]:
        """Ids in the current trace for the inputs of the recording's scalar graph."""
        ids: list[int] = []
        for leaf, spec in zip(self.all_leaves, self.recording.leaves):
            if spec.traced:
                ids.extend(leaf_ids(leaf, spec))
        return ids + self.recording.captured

    @property
    def block_wrt(self) -> list[int]:
        """The inputs of the recording's ``blocks`` that belong to the leaves."""
        starts, forms = self.recording.block_offsets(), self.recording.forms()
        return [starts[k] + j for k in self.wanted for j in range(forms[k].width)]

    def block(self, position: int) -> tuple[int, tuple[int, ...]]:
        """Start in ``wrt`` and shape of the leaf that is ``position``-th among the wanted."""
        start = 0
        for k in self.wanted[:position]:
            start += self.recording.leaves[k].size
        return start, self.recording.leaves[self.wanted[position]].shape


class Derivative:
    """What the derivative functions share: finding the function's recording and its inputs."""

    def __init__(
        self,
        function: Callable[..., Any],
        argnums: int | Sequence[int],
        what: str,
        static_argnums: Any = None,
        static_argnames: Any = None,
    ) -> None:
        if not callable(function):
            raise TypeError(
                f"{what} needs a function, got {type(function).__name__}: write arc.{what}(f)(x), "
                f"not arc.{what}(f(x))"
            )
        base = function.function if isinstance(function, Compiled) else function
        self.function = base
        #: Where recordings of the function are kept, if it is compiled: it is not called again.
        self.compiled = function if isinstance(function, Compiled) else None
        self.what = what
        #: What counts as part of the function, see ``Compiled``; its derivatives share it.
        self.watch = (
            function.identity
            if isinstance(function, Compiled)
            else Identity((base,), reads_in_place=True)
        )
        self.freeze = isinstance(function, Compiled) and function.identity.frozen
        self.backend = function.backend if isinstance(function, Compiled) else None
        self.loops_from = function.loops_from if isinstance(function, Compiled) else None
        self.numerics = function.numerics if isinstance(function, Compiled) else "strict"
        if isinstance(function, Compiled):
            self.signature = function.signature
        else:
            self.signature = Signature(base, static_argnums, static_argnames)
        numbers = argnums if isinstance(argnums, (list, tuple)) else (argnums,)
        if not all(isinstance(n, (int, np.integer)) for n in numbers):
            raise TypeError(
                f"{what}: argnums must be an int or a sequence of ints, got {argnums!r}: it counts "
                "the positional arguments from 0"
            )
        self.single = isinstance(argnums, (int, np.integer))
        self.argnums = (int(argnums),) if self.single else tuple(argnums)  # type: ignore[arg-type]
        if not self.argnums:
            raise ValueError(f"{what}: argnums is empty, so there is nothing to differentiate in")

    def point(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Point:
        """Record the function at these (traced) arguments."""
        values = self.signature.bind(args, kwargs)
        static = self.signature.static
        chosen = self._chosen(values)
        for name in chosen:
            if name in static:
                raise ValueError(
                    f"{self.what}: argument {name!r} is static, so it has no derivative: "
                    "choose another with argnums, or do not declare it static"
                )
            values[name] = tree.map(differentiable, values[name])
        # A default that is differentiated in is an argument like the others.
        defaulted: set[str] = getattr(values, "defaulted", set())
        values = Bound(values, defaulted - set(chosen))
        fixed = self.signature.fixed(values)
        dynamic = {k: v for k, v in values.items() if k not in fixed}
        leaves, treedef = tree.flatten(tuple(dynamic.values()))
        recording = self._recording(values, dynamic, leaves, treedef)
        return self._locate(recording, leaves, dynamic, chosen, treedef)

    def _recording(
        self, values: dict[str, Any], dynamic: dict[str, Any], leaves: list[Any], treedef: TreeDef
    ) -> Recording:
        """Return the recording of a compiled function, or record a plain one."""
        if self.compiled is not None:
            return self.compiled.recording_of(values)
        specs = describe_leaves(leaves, treedef, list(dynamic))

        def build(symbols: list[Any]) -> Any:
            return self.signature.rebind(values, dict(zip(dynamic, treedef.unflatten(symbols))))

        return record(to_record(self.watch, self.function), specs, build)

    def _chosen(self, values: dict[str, Any]) -> list[str]:
        """Return the names of the arguments to differentiate in; ``argnums`` counts positions."""
        names = [name for name in values if self.signature.is_positional(name)]
        for number in self.argnums:
            if not -len(names) <= number < len(names):
                raise ValueError(
                    f"{self.what}: argnums={number} is out of range, {self.signature.name}() was "
                    f"given {len(names)} positional arguments {names}"
                )
        chosen = [names[number] for number in self.argnums]
        if len(set(chosen)) < len(chosen):
            raise ValueError(f"{self.what}: argnums={self.argnums} names {chosen[0]!r} twice")
        return chosen

    def _locate(
        self,
        recording: Recording,
        leaves: list[Any],
        dynamic: dict[str, Any],
        chosen: list[str],
        treedef: TreeDef,
    ) -> Point:
        spans, at = {}, 0
        for name, child in zip(dynamic, treedef.children):
            spans[name] = range(at, at + child.num_leaves)
            at += child.num_leaves
        offsets = recording.offsets()
        wanted: list[int] = []
        wrt: list[int] = []
        for name in chosen:
            for k in spans[name]:
                spec = recording.leaves[k]
                if spec.traced and is_float(spec.code):
                    wanted.append(k)
                    wrt.extend(range(offsets[k], offsets[k] + spec.size))
        if not wanted:
            raise TraceError(
                f"{self.what}: argument {chosen[0]!r} holds no numbers to differentiate in"
            )
        trees = [tree.structure(dynamic[name]) for name in chosen]
        where = trees[0] if self.single else tree.structure(tuple(dynamic[name] for name in chosen))
        chosen_leaves = leaves_of(dynamic, chosen)
        return Point(recording, wanted, wrt, where, chosen_leaves, leaves)


def named_after(function: Callable[..., Any], what: str, name: str | None) -> str:
    """Return a name for the derivative ``what`` of a function, unless one was given."""
    return name or f"{what}_{getattr(function, '__name__', 'function')}"


def derivative_function(
    run: Callable[..., Any], derivative: Derivative, name: str, signature: Signature | None = None
) -> Compiled:
    """Return the function that users get for what computes a derivative."""
    compiled = Compiled(
        run,
        name=name,
        backend=derivative.backend,
        numerics=derivative.numerics,
        freeze=derivative.freeze,
        loops_from=derivative.loops_from,
        watch=derivative.watch,
    )
    compiled.__doc__ = f"{derivative.what} of {derivative.signature.name}."
    if signature is None:
        compiled.__signature__ = derivative.signature.parameters
    compiled.signature = signature or derivative.signature
    return compiled


def leaves_of(dynamic: dict[str, Any], chosen: list[str]) -> list[Any]:
    """Return the leaves of the chosen arguments."""
    return [leaf for name in chosen for leaf in tree.leaves(dynamic[name])]


def differentiable(x: Any) -> Any:
    """Return a leaf as floating point where it is a number; other leaves unchanged."""
    if isinstance(x, bool) or (isinstance(x, SymbolicArray) and is_float(x.code)):
        return x
    if isinstance(x, (int, float, np.ndarray, np.generic, SymbolicArray)):
        weak = type(x) in (int, float) or getattr(x, "weak", False)
        x = lift(x)
        if x.code == B8:
            return x
        if not is_float(x.code):
            x = x.astype(np.float64)
        return wrap(current_trace().elements_of(x), x.code, weak=weak)
    return x
