"""Branches: ``switch`` and ``cond`` run one of several computations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archimedes.errors import ShapeDtypeError, refer_to
from archimedes.function import region_bodies
from archimedes.function.recording import Recording, read_array
from archimedes.graph import I64, Switch
from archimedes.symbolic import SymbolicArray, as_traced, current_trace, lift

__all__ = ["cond", "switch"]


def switch(
    index: Any, branches: Sequence[Callable[..., Any]], *args: Any, name: str | None = None
) -> Any:
    """Call the function that an index selects, ``branches[index](*args)``.

    Inside a compiled function only the selected branch runs.

    Parameters
    ----------
    index : int
        Number of the branch, which may be traced. An index out of range is clamped to it.
    branches : sequence of callable
        Functions of the same arguments, which return the same structure and shapes. Their dtypes
        are promoted.
    *args
        Arguments of the function: any trees.
    name : str, optional
        Name in messages and listings.

    Examples
    --------
    >>> float(switch(1, [lambda x: x, lambda x: -x], 2.0))
    -2.0
    """
    if not branches:
        raise ValueError("switch: give at least one branch")
    if np.ndim(index) != 0:
        raise ValueError(f"switch: index must be one integer, got shape {np.shape(index)}")
    index = as_traced(index)
    known = index.constant() if isinstance(index, SymbolicArray) else index
    if known is not None:
        if np.asarray(known).dtype.kind not in "biu":
            raise _not_an_index(np.asarray(known).dtype)
        at = int(known)
        return branches[min(max(at, 0), len(branches) - 1)](*region_bodies.copy_arrays(args))
    which = lift(index)
    if which.code != I64:
        if which.dtype.kind == "f":
            raise _not_an_index(which.dtype)
        which = which.astype(np.int64)
    flat = region_bodies.flatten_traced(args, "args")
    recordings = [
        region_bodies.trace_static_results(
            region_bodies.record_body(lambda a, f=branch: f(*a), [flat])
        )
        for branch in branches
    ]
    codes = _result_codes(recordings)
    first = recordings[0]
    # What is a block to one of the branches is one to all of them.
    ins = [any(forms) for forms in zip(*([f.block for f in r.forms()] for r in recordings))]
    outs = [any(forms) for forms in zip(*([f.block for f in r.out_forms()] for r in recordings))]
    inputs = flat.ids(ins)
    bodies = [(r.in_forms(ins, outs), r.captured) for r in recordings]
    graphs, shared = region_bodies.align(bodies, len(inputs))
    widths = [1 if block else out.stop - out.start for out, block in zip(first.outs, outs)]
    each = [code for code, width in zip(codes, widths) for _ in range(width)]
    trace = current_trace()
    region = Switch(
        np.array([int(trace.ids_of(which)[()]), *inputs, *shared], dtype=np.int64),
        tuple(region_bodies.with_output_codes(g, each) for g in graphs),
    )
    ids = iter(trace.graph.region(region).tolist())
    weak = [all(out.spec.weak for out in same) for same in zip(*(r.outs for r in recordings))]
    leaves = [
        read_array(ids, out.spec.shape, code, block, is_weak)
        for out, code, block, is_weak in zip(first.outs, codes, outs, weak)
    ]
    return first.out_tree.unflatten(leaves)


def _result_codes(recordings: Sequence[Recording]) -> list[int]:
    """Return a dtype for each leaf of the result that holds those of all branches."""
    first = recordings[0]
    codes = [out.spec.code for out in first.outs]
    for k, other in enumerate(recordings[1:], start=1):
        difference = first.out_tree.difference(other.out_tree, "result", ordered=True)
        if difference is not None:
            raise ShapeDtypeError(
                f"switch: branches 0 and {k} return different structures: {difference}"
                + refer_to("branches")
            )
        for a, b, path in zip(first.outs, other.outs, first.out_tree.paths("result")):
            if a.spec.shape != b.spec.shape:
                raise ShapeDtypeError(
                    f"switch: {path} has shape {a.spec.shape} in branch 0 and {b.spec.shape} "
                    f"in branch {k}; make them equal, for example with np.broadcast_to"
                    + refer_to("branches")
                )
        codes = [region_bodies.promote_codes(a, b.spec.code) for a, b in zip(codes, other.outs)]
    return codes


def _not_an_index(dtype: Any) -> TypeError:
    return TypeError(
        f"switch: index must be an integer or a bool, got a {dtype}: convert it with x.astype(int)"
    )


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *args: Any) -> Any:
    """Call one of two functions, depending on a condition.

    Parameters
    ----------
    pred : bool
        The condition, which may be traced.
    true_fn : callable
        Function that is called as ``true_fn(*args)`` if the condition is true.
    false_fn : callable
        Function that is called otherwise. It returns the same structure and shapes.
    *args
        Arguments of the function: any trees.

    Examples
    --------
    >>> float(cond(True, lambda x: x, lambda x: -x, 2.0))
    2.0
    """
    if np.ndim(pred) != 0:
        raise ValueError(
            f"cond: the predicate must be one bool, got shape {np.shape(pred)}; use np.where to "
            "choose elementwise"
        )
    pred = as_traced(pred)
    if isinstance(pred, SymbolicArray):
        return switch(pred.astype(bool), [false_fn, true_fn], *args)
    return (true_fn if pred else false_fn)(*region_bodies.copy_arrays(args))
