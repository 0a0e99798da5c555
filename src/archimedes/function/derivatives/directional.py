"""``jvp`` and ``vjp``: Jacobians times a tangent, cotangents times Jacobians."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.errors import ShapeDtypeError, StructError
from archimedes.function.derivatives.differentiation import (
    Derivative,
    Point,
    derivative_function,
    float_outs,
    leaf_values,
    named_after,
)
from archimedes.function.leaf_specs import LeafSpec
from archimedes.function.signatures import Bound, Signature
from archimedes.graph.blocks.references import as_block, references
from archimedes.graph.derivatives.jacobian_graphs import forward_graph, reverse_graph
from archimedes.graph.dtypes import DTYPES, is_float
from archimedes.graph.passes import inline
from archimedes.symbolic import SymbolicArray, current_trace, lift, wrap
from archimedes.tree.treedef import TreeDef

__all__ = ["jvp", "vjp"]


def _tangent_ids(point: Point, given: Any, what: str, like: TreeDef) -> list[int]:
    """Return ids of a tangent: a block where the recording takes one."""
    leaves = _parts_like(like, given, what, "argument")
    ids: list[int] = []
    forms = point.recording.forms()
    paths = like.paths(what)
    numbers = [
        (x, path)
        for x, old, path in zip(leaves, point.leaves, paths)
        if isinstance(old, SymbolicArray) and is_float(old.code)
    ]
    trace = current_trace()
    for (leaf, path), k in zip(numbers, point.wanted):
        array = _matching(leaf, point.recording.leaves[k], path)
        if forms[k].block:
            ids.append(as_block(trace.graph, trace.elements_of(array), array.code))
        else:
            ids.extend(trace.ids_of(array).ravel().tolist())
    return ids


def _parts_like(like: TreeDef, given: Any, what: str, whose: str) -> list[Any]:
    """Return the parts of a (co)tangent in the places of the leaves of what it belongs to."""
    try:
        return tree.flatten_up_to(like, given, what)
    except StructError:
        raise ShapeDtypeError(
            f"the {what} must have the structure of the {whose} it belongs to, {like!r}, but it "
            f"has {tree.structure(given)!r}"
        ) from None


def _matching(leaf: Any, spec: LeafSpec, what: str) -> SymbolicArray:
    if not isinstance(leaf, (int, float, list, tuple, np.ndarray, np.generic, SymbolicArray)):
        raise ShapeDtypeError(f"the {what} is {leaf!r}, but numbers are needed")
    array = lift(leaf).astype(DTYPES[spec.code])
    if array.shape != spec.shape:
        raise ShapeDtypeError(
            f"the {what} has shape {array.shape}, but {spec.shape} is needed: the shape of what it "
            "belongs to"
        )
    return array


class FollowedSignature(Signature):
    """The signature of jvp and vjp: the function's own arguments, then one more."""

    def __init__(self, base: Signature, what: str, item: str) -> None:
        self.base = base
        self.name = base.name
        self.static = base.static
        self.positional = [*base.positional, item]
        self.plain = False
        self.parameters = base.parameters
        self.usage = f"{what}(f)(*args, {item}): give the arguments of f, then the {item}"
        self.last = item + "_" * (item in base.parameters.parameters)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return all arguments by name, the last one as ``self.last``."""
        if len(args) < 2:
            raise TypeError(self.usage)
        values = self.base.bind(args[:-1], kwargs)
        return Bound({**values, self.last: args[-1]}, getattr(values, "defaulted", ()))

    def unbind(self, values: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return positional and keyword arguments from values by name."""
        own = {name: value for name, value in values.items() if name != self.last}
        args, kwargs = self.base.unbind(own)
        return (*args, values[self.last]), kwargs


def jvp(
    func: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    name: str | None = None,
    static_argnums: Any = None,
    static_argnames: Any = None,
) -> Any:
    """Return the function that multiplies the Jacobian by a tangent (forward mode).

    Parameters
    ----------
    func : callable
        The function to differentiate, plain NumPy.
    argnums : int or sequence of int, optional
        Position of the argument to differentiate with respect to, or of several. The first by
        default.
    name : str, optional
        Name in messages and listings. By default it is made from that of `func`.
    static_argnums : int or sequence of int, optional
        Positions of arguments that are part of the compiled program.
    static_argnames : str or sequence of str, optional
        Names of such arguments.

    Returns
    -------
    callable
        ``g(*args, v)``. The tangent ``v`` has the structure of the argument, or is a tuple if
        `argnums` is one. The result has the structure of the output.

    Examples
    --------
    >>> import numpy as np
    >>> jvp(lambda x: x**2)(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    array([2., 4.])
    """
    derivative = Derivative(func, argnums, "jvp", static_argnums, static_argnames)

    def run(*given: Any, **kwargs: Any) -> Any:
        *args, tangent = given
        point = derivative.point(tuple(args), kwargs)
        float_outs(point, "jvp")
        recording = point.recording
        graph = forward_graph(recording.blocks, point.block_wrt)
        inputs = recording.inputs(point.all_leaves)
        inputs += _tangent_ids(point, tangent, "tangent", point.where)
        outs = inline(current_trace().graph, graph, inputs)
        return _rebuild(point, outs[len(recording.blocks.outputs) :])

    signature = FollowedSignature(derivative.signature, "jvp", "tangent")
    return derivative_function(run, derivative, named_after(func, "jvp", name), signature)


def _rebuild(point: Point, ids: Sequence[int]) -> Any:
    """Build the result's tree of the tangents of the outputs of ``blocks``."""
    leaves, at = [], 0
    for out, form in zip(point.recording.outs, point.recording.out_forms()):
        if not out.spec.traced:
            leaves.append(np.zeros(np.shape(out.spec.value))[()])
            continue
        if form.block:
            part = references(current_trace().graph, ids[at])
        else:
            part = np.array(ids[at : at + form.width], dtype=np.int64)
        at += form.width
        leaves.append(wrap(part.reshape(out.spec.shape), out.spec.code))
    return point.recording.out_tree.unflatten(leaves)


def vjp(
    func: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    name: str | None = None,
    static_argnums: Any = None,
    static_argnames: Any = None,
) -> Any:
    """Return the function that multiplies a cotangent by the Jacobian (reverse mode).

    Parameters
    ----------
    func : callable
        The function to differentiate, plain NumPy.
    argnums : int or sequence of int, optional
        Position of the argument to differentiate with respect to, or of several. The first by
        default.
    name : str, optional
        Name in messages and listings. By default it is made from that of `func`.
    static_argnums : int or sequence of int, optional
        Positions of arguments that are part of the compiled program.
    static_argnames : str or sequence of str, optional
        Names of such arguments.

    Returns
    -------
    callable
        ``g(*args, w)``. The cotangent ``w`` has the structure of the output, the result that of the
        argument.

    Examples
    --------
    >>> import numpy as np
    >>> vjp(lambda x: x**2)(np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    array([2., 0.])
    """
    derivative = Derivative(func, argnums, "vjp", static_argnums, static_argnames)

    def run(*given: Any, **kwargs: Any) -> Any:
        *args, cotangent = given
        point = derivative.point(tuple(args), kwargs)
        outs = float_outs(point, "vjp")
        out_tree = point.recording.out_tree
        weights = _parts_like(out_tree, cotangent, "cotangent", "result")
        recording, trace = point.recording, current_trace()
        seeds: list[int] = []
        paths = out_tree.paths("cotangent")
        for leaf, out, form, path in zip(weights, outs, recording.out_forms(), paths):
            if not out.spec.traced:
                continue
            array = _matching(leaf, out.spec, path)
            if form.block:
                seeds.append(as_block(trace.graph, trace.elements_of(array), array.code))
            else:
                seeds.extend(trace.ids_of(array).ravel().tolist())
        graph = reverse_graph(recording.blocks, point.block_wrt)
        inputs = recording.inputs(point.all_leaves)
        ids = inline(trace.graph, graph, inputs + seeds)
        return leaf_values(point, ids[len(recording.blocks.outputs) :])

    signature = FollowedSignature(derivative.signature, "vjp", "cotangent")
    return derivative_function(run, derivative, named_after(func, "vjp", name), signature)
