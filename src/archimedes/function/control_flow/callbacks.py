"""``callback``: Python code that cannot be recorded, called back when the graph runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.checks import check_callable
from archimedes.errors import ShapeDtypeError
from archimedes.function.dependencies.states import callback_code, note_callbacks
from archimedes.function.derivatives.custom_rules import Rule
from archimedes.function.leaf_specs import LeafSpec
from archimedes.function.recording import Recording, lay_out
from archimedes.function.region_bodies import flatten_traced, must_record
from archimedes.graph import DTYPES, Graph, Host, code_of
from archimedes.symbolic import current_trace, wrap
from archimedes.symbolic.core.user_frames import user_line

__all__ = ["callback"]


def callback(
    func: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    jvp: Callable[..., Any] | None = None,
) -> Any:
    """Call an ordinary Python function from inside a compiled one.

    The function is called at every run. It cannot be exported to C.

    Parameters
    ----------
    func : callable
        Function of NumPy arrays, in the structure of `args`.
    result_shape_dtypes : tree
        Arrays or numbers with the shapes and dtypes of the result.
    *args
        Arguments of the function: any trees.
    jvp : callable, optional
        Derivative: ``jvp(primals, tangents)`` returns the tangent of the result. It is written in
        NumPy, and may use `callback` itself. Without it the call has no derivative.

    Examples
    --------
    >>> float(callback(lambda x: x + 1.0, 0.0, 2.0))
    3.0
    """
    check_callable(func, "callback: func")
    examples, out_tree = tree.flatten(result_shape_dtypes)
    specs = [_result_spec(x, path) for x, path in zip(examples, out_tree.paths("result"))]
    name = getattr(func, "__name__", type(func).__name__)
    if not must_record(args):
        return _check_result(func(*args), specs, out_tree, name)
    note_callbacks(callback_code(func))
    flat = flatten_traced(args, "args")
    arguments, outs = lay_out(flat.specs()), lay_out(specs)

    def run(values: list[Any]) -> list[Any]:
        parts = [(a, values[a.start : a.stop]) for a in arguments]
        leaves = [
            np.array(x, dtype=DTYPES[a.spec.code]).reshape(a.spec.shape)[()] for a, x in parts
        ]
        result = _check_result(func(*flat.treedef.unflatten(leaves)), specs, out_tree, name)
        return [x for leaf in tree.leaves(result) for x in np.ravel(leaf)]

    derivative: Any = None
    if jvp is not None:
        stand_in = Recording(Graph(), tuple(flat.specs()), out_tree, outs, [])
        derivative = Rule(name, stand_in, flat.treedef, False, lambda p, result, v: jvp(p, v))
    dtypes = tuple(spec.code for spec in specs for _ in range(spec.size))
    ids = np.array(flat.ids(), dtype=np.int64)
    region = Host(ids, run, dtypes, name, derivative, line=user_line())
    results = current_trace().graph.region(region)
    return out_tree.unflatten(
        [wrap(results[o.start : o.stop].reshape(o.spec.shape), o.spec.code) for o in outs]
    )


def _result_spec(example: Any, path: str) -> LeafSpec:
    """Read shape and dtype from an example array, number or object with .shape and .dtype."""
    if hasattr(example, "shape") and hasattr(example, "dtype"):
        shape, dtype = tuple(example.shape), np.dtype(example.dtype)
    else:
        array = np.asarray(example)
        shape, dtype = array.shape, array.dtype
    code = code_of(dtype)
    if code is None:
        raise ShapeDtypeError(f"callback: {path} has dtype {dtype}, which cannot be traced")
    return LeafSpec(code, shape)


def _check_result(result: Any, specs: list[LeafSpec], treedef: Any, name: str) -> Any:
    """Return the result in the declared dtypes, or say how it differs from what was declared."""
    leaves = tree.flatten_up_to(treedef, result, "result")
    arrays = []
    for leaf, spec, path in zip(leaves, specs, treedef.paths("result")):
        array, dtype = np.asarray(leaf), DTYPES[spec.code]
        if not np.can_cast(array.dtype, dtype, "same_kind"):
            raise TypeError(
                f"callback: {name}() returned {path} of dtype {array.dtype}, declared {dtype}: "
                "declare what it returns in result_shape_dtypes (0.0 for a float, 0 for an int)"
            )
        array = array.astype(dtype)
        if array.shape != spec.shape:
            raise ValueError(
                f"callback: {name}() returned {path} of shape {array.shape}, declared {spec.shape}"
            )
        arrays.append(array[()])
    return treedef.unflatten(arrays)
