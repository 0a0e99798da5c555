"""Loops and branches: ``scan``, ``while_loop``, ``fori_loop``, ``switch``, ``cond``.

Outside a recording they run as plain Python on the values given; inside one they become regions,
whose size does not depend on the number of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.checks import check_whole, is_traced, transpose_hint
from archimedes.errors import ShapeDtypeError, TraceError, refer_to
from archimedes.function import region_bodies
from archimedes.function.compiled import Compiled
from archimedes.function.leaf_specs import LeafSpec
from archimedes.function.recording import Recording, array_ids, read_array
from archimedes.function.region_bodies import Flat
from archimedes.graph import B8, I64, Scan, Switch, While, item_type
from archimedes.graph.regions.loop_regions import UNBOUNDED
from archimedes.symbolic import SymbolicArray, as_traced, current_trace, lift, trace_error, wrap
from archimedes.symbolic.core.loop_nests import ALWAYS_FACTOR, loop_threshold
from archimedes.symbolic.core.user_frames import user_line

__all__ = ["cond", "fori_loop", "scan", "switch", "while_loop"]


def _length(xs: Any, length: int | None) -> int:
    sizes = {np.shape(leaf)[0] if np.ndim(leaf) else -1 for leaf in tree.leaves(xs)}
    if -1 in sizes:
        raise ValueError("scan: every leaf of xs needs a leading axis of steps, but one is 0-d")
    if len(sizes) > 1:
        leaves, treedef = tree.flatten(xs)
        steps = max(np.shape(leaf)[0] for leaf in leaves)
        named = list(zip(treedef.paths("xs"), map(np.shape, leaves)))
        shapes = ", ".join(f"{path} {shape}" for path, shape in named)
        hints = (transpose_hint(shape, steps, path, 0) for path, shape in named)
        raise ValueError(
            f"scan: leaves of xs have different lengths {sorted(sizes)} along their first axis: "
            + shapes
            + next(filter(None, hints), "")
        )
    if not sizes and length is None:
        raise ValueError("scan: give xs or length, to say how many steps to take")
    steps = sizes.pop() if sizes else int(length or 0)
    if length is not None and steps != int(length):
        raise ValueError(f"scan: length={length}, but xs has {steps} steps")
    return check_whole(steps, "scan: length", 0)


def scan(
    func: Callable[[Any, Any], tuple[Any, Any]],
    init_carry: Any,
    xs: Any = None,
    length: int | None = None,
) -> tuple[Any, Any]:
    """Step ``carry, y = func(carry, x)`` along the leading axis of an array or tree.

    Parameters
    ----------
    func : callable
        Function ``func(carry, x)`` that returns the next carry and an output ``y``, both any trees.
    init_carry : tree
        The first carry.
    xs : array or tree, optional
        Inputs, with the steps along the leading axis of every leaf.
    length : int, optional
        Number of steps. It is needed if `xs` is not given; ``func`` is then called with the number
        of the step, 0, 1, ...

    Returns
    -------
    carry : tree
        The last carry.
    ys : tree
        The outputs of all steps, stacked along a new leading axis.

    Examples
    --------
    >>> carry, ys = scan(lambda c, x: (c + x, c * x), 0.0, np.array([1.0, 2.0, 3.0]))
    >>> float(carry), ys.tolist()
    (6.0, [0.0, 2.0, 9.0])
    """
    steps = _length(xs, length)
    if xs is None and region_bodies.must_record(init_carry):
        (_, carry), ys = _scan(_count_steps(func), (0, init_carry), xs, steps)
        return carry, ys
    return _scan(func, init_carry, xs, steps)


def _count_steps(func: Callable[[Any, Any], tuple[Any, Any]]) -> Callable[[Any, Any], Any]:
    """Let the carry count the steps, for a function that gets their number."""

    def step(carry: tuple[Any, Any], _: None) -> Any:
        k, own = carry
        pair = func(own, wrap(k.ids, k.code, weak=True))
        if not isinstance(pair, tuple) or len(pair) != 2:
            return pair
        return (k + 1, pair[0]), pair[1]

    return step


def _scan(func: Any, init_carry: Any, xs: Any, steps: int) -> tuple[Any, Any]:
    if not region_bodies.must_record(init_carry, xs):
        return _scan_eagerly(func, init_carry, xs, steps)
    init = region_bodies.flatten_traced(init_carry, "init_carry")
    stacked = region_bodies.flatten_traced(xs, "xs")
    slices = ([LeafSpec(a.code, a.shape[1:]) for a in stacked.arrays], stacked.treedef)
    init, body = _record_step(
        lambda carry: region_bodies.record_body(func, [carry, slices]), init, "scan"
    )
    blocks = _blocks_of_carry(body, len(init.arrays))
    if steps and _in_blocks(body, len(init.arrays), stacked, steps):
        return _scan_of_blocks(init, stacked, body, blocks, steps)
    # What differs from step to step is in numbers.
    graph = body.in_forms(
        [*blocks, *[False] * len(body.leaves)], [*blocks, *[False] * len(body.outs)]
    )
    carried = init.ids(blocks)
    n, width = len(carried), sum(spec.size for spec in slices[0])
    trace = current_trace()
    rows = [trace.ids_of(a).reshape(steps, -1) for a in stacked.arrays if a.size or steps]
    block = np.concatenate(rows, axis=1) if rows else np.zeros((steps, 0), dtype=np.int64)
    region = Scan(
        np.array([*carried, *block.reshape(-1), *body.captured], dtype=np.int64),
        graph,
        steps,
        n,
        width,
    ).in_blocks()
    outs = trace.graph.region(region)
    rows_out = outs[n:].reshape(steps, len(graph.outputs) - n)
    carry = init.rebuild(outs[:n].tolist(), blocks)
    return carry, _stack_results(body, rows_out, sum(a.size for a in init.arrays))


#: From so many times the elements of any long array on, what steps give is in blocks too.
_MANY = 16


def _in_blocks(body: Recording, carry: int, stacked: Flat, steps: int) -> bool:
    """Return whether what differs from step to step is in blocks: rows are long, or there are many.

    Few numbers stay numbers, so that instances of a batch keep their lanes.
    """
    forms = [*body.forms()[carry : len(body.leaves)], *body.out_forms()[carry:]]
    if any(form.block for form in forms):
        return True
    inputs = sum(a.size for a in stacked.arrays)
    outputs = steps * sum(out.spec.size for out in _second(body))
    least = loop_threshold() * ALWAYS_FACTOR
    return inputs >= least or inputs + outputs >= least * _MANY


def _scan_of_blocks(
    init: Flat, stacked: Flat, body: Recording, blocks: list[bool], steps: int
) -> tuple[Any, Any]:
    """Record a scan whose slices and outs are blocks: a row of a leaf is a block, or a scalar."""
    trace, ys = current_trace(), _second(body)
    rows_in = [bool(a.shape[1:]) and a.size > 0 for a in stacked.arrays]
    rows_out = [bool(out.spec.shape) and out.spec.size > 0 for out in ys]
    graph = body.in_forms([*blocks, *rows_in], [*blocks, *rows_out])
    carried = init.ids(blocks)
    rows = [i for a in stacked.arrays if a.size for i in array_ids(a, True)]
    inputs = np.array([*carried, *rows, *body.captured], dtype=np.int64)
    region = Scan(inputs, graph, steps, len(carried), len(rows), stacked=True)
    outs = trace.graph.region(region).tolist()
    ids = iter(outs[len(carried) :])
    leaves = [
        read_array(ids, (steps, *out.spec.shape), out.spec.code, block=out.spec.size > 0)
        for out in ys
    ]
    last = init.rebuild(outs[: len(carried)], blocks)
    return last, body.out_tree.children[1].unflatten(leaves)


def _stack_results(body: Recording, rows: np.ndarray, carry: int) -> Any:
    """Build the tree of stacked results; the body returns a pair (carry, y)."""
    leaves = []
    for out in _second(body):
        columns = rows[:, out.start - carry : out.stop - carry]
        leaves.append(wrap(columns.reshape(len(rows), *out.spec.shape), out.spec.code))
    return body.out_tree.children[1].unflatten(leaves)


def _second(body: Recording) -> list[Any]:
    return body.outs[body.out_tree.children[0].num_leaves :]


def _record_step(
    record: Callable[[Flat], Recording], init: Flat, what: str, pair: bool = True
) -> tuple[Flat, Recording]:
    """Record a loop's body; carry dtypes are widened until the body returns what it takes.

    A Python number stays one if the body returns one.
    """
    for _ in range(8):
        body = region_bodies.trace_static_results(record(init))
        if pair:
            children = body.out_tree.children
            if body.out_tree.kind.name != "tuple" or len(children) != 2:
                raise _not_a_pair(what, body.out_tree)
            carry_tree = children[0]
        else:
            carry_tree = body.out_tree
        difference = init.treedef.difference(carry_tree, "carry", ordered=True)
        if difference is not None:
            raise ShapeDtypeError(
                f"{what}: the function must return a carry of the structure it was given; "
                f"{difference}" + refer_to("carry")
            )
        outs = body.outs[: carry_tree.num_leaves]
        for a, out, path in zip(init.arrays, outs, init.treedef.paths("carry")):
            if a.shape != out.spec.shape:
                raise ShapeDtypeError(
                    f"{what}: {path} has shape {a.shape} on entry and {out.spec.shape} after "
                    "a step; a carry keeps its shape" + refer_to("carry")
                )
        codes = [
            region_bodies.promote_codes(a.code, out.spec.code, a.weak)
            for a, out in zip(init.arrays, outs)
        ]
        weak = [a.weak and out.spec.weak for a, out in zip(init.arrays, outs)]
        if codes == [a.code for a in init.arrays] and weak == [a.weak for a in init.arrays]:
            forms = body.out_forms()
            flat = [code for code, form in zip(codes, forms) for _ in range(form.width)]
            rest = [item_type(kind) for kind in body.blocks.output_dtypes[len(flat) :]]
            body.blocks = region_bodies.with_output_codes(body.blocks, flat + rest)
            return init, body
        init = init.cast(codes, weak)
    raise AssertionError("dtypes only widen, and there are four, of numbers and of arrays")


def _blocks_of_carry(body: Recording, count: int) -> list[bool]:
    """Return which of the carried arrays are blocks: those that a step takes or gives as such."""
    pairs = zip(body.forms()[:count], body.out_forms()[:count])
    return [before.block or after.block for before, after in pairs]


def _not_a_pair(what: str, returned: Any) -> TraceError:
    return TraceError(
        f"{what}: the function must return a pair (carry, y), it returned {returned!r}; write "
        "`return carry, None` where there is no y"
    )


def _scan_eagerly(func: Any, carry: Any, xs: Any, steps: int) -> tuple[Any, Any]:
    if not steps:
        # The shapes of no results are known to a recording only.
        return Compiled(lambda c, x: scan(func, c, x, length=0))(carry, xs)
    ys = []
    for k in range(steps):
        x = k if xs is None else region_bodies.copy_arrays(tree.map(lambda leaf, k=k: leaf[k], xs))
        pair = func(region_bodies.copy_arrays(carry), x)
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise _not_a_pair("scan", tree.structure(pair))
        carry, y = pair
        ys.append(region_bodies.copy_arrays(y))
    return carry, tree.map(lambda *leaves: np.stack(leaves), *ys)


def while_loop(
    cond: Callable[[Any], Any],
    body: Callable[[Any], Any],
    init: Any,
    max_steps: int | None = None,
    *,
    adaptive: bool = False,
) -> Any:
    """Repeat ``x = body(x)`` while ``cond(x)`` is true.

    Parameters
    ----------
    cond : callable
        Function ``cond(x)`` that returns a bool.
    body : callable
        Function ``body(x)`` that returns the next x, with the same structure and shapes.
    init : tree
        The first x.
    max_steps : int, optional
        Largest number of steps. A loop that reaches it returns the x it has by then. Without it the
        loop runs until the condition is false. Reverse-mode derivatives (:func:`grad`), which keep
        the state of every step, and :func:`codegen` require it.
    adaptive : bool, optional
        Marks the loop of a solver that chooses its own steps, which :func:`codegen` refuses.

    Returns
    -------
    tree
        The last x.

    Examples
    --------
    >>> float(while_loop(lambda x: x < 100.0, lambda x: 2.0 * x, 3.0))
    192.0
    """
    limit = UNBOUNDED if max_steps is None else int(max_steps)
    check_whole(limit, "while_loop: max_steps", 0)
    if not region_bodies.must_record(init):
        for _ in range(limit):
            if not cond(region_bodies.copy_arrays(init)):
                break
            init = body(region_bodies.copy_arrays(init))
        return init
    start = region_bodies.flatten_traced(init, "init")
    start, step = _record_step(
        lambda x: region_bodies.record_body(body, [x]), start, "while_loop", pair=False
    )
    test = region_bodies.trace_static_results(region_bodies.record_body(cond, [start]))
    if [out.spec.shape for out in test.outs] != [()]:
        raise ShapeDtypeError("while_loop: the condition must return one bool")
    blocks = _blocks_of_carry(step, len(start.arrays))
    carried = start.ids(blocks)
    n = len(carried)
    bodies = (test.in_forms(blocks, [False]), test), (step.in_forms(blocks, blocks), step)
    (test_graph, step_graph), shared = region_bodies.align([(g, r.captured) for g, r in bodies], n)
    region = While(
        np.array([*carried, *shared], dtype=np.int64),
        region_bodies.with_output_codes(test_graph, [B8]),
        step_graph,
        n,
        limit,
        adaptive=adaptive,
        line=user_line(),
    )
    return start.rebuild(current_trace().graph.region(region).tolist(), blocks)


def fori_loop(lower: int, upper: int, body: Callable[[Any, Any], Any], init: Any) -> Any:
    """Repeat ``x = body(i, x)`` for i from `lower` to ``upper - 1``.

    Parameters
    ----------
    lower, upper : int
        Limits, which must be known numbers. Use :func:`while_loop` if a limit is traced.
    body : callable
        Function ``body(i, x)`` that returns the next x, with the same structure and shapes.
    init : tree
        The first x.

    Returns
    -------
    tree
        The last x.

    Examples
    --------
    >>> float(fori_loop(0, 4, lambda i, x: x + i, 0.0))
    6.0
    """
    if is_traced(lower, upper):
        raise trace_error(
            "fori_loop needs bounds that are known while recording, but one is a traced value",
            "Use a loop with a condition: arc.while_loop(lambda c: c[0] < upper, lambda c: "
            "(c[0] + 1, body(*c)), (lower, init))[1], or name the argument in "
            "static_argnames.",
        )
    count = max(int(upper) - int(lower), 0)
    if not region_bodies.must_record(init):
        for i in range(int(lower), int(lower) + count):
            init = body(i, region_bodies.copy_arrays(init))
        return init

    def step(carry: Any, _: Any) -> tuple[Any, None]:
        i, x = carry
        # Outside a recording i is a Python int, which does not widen the arrays it meets.
        return (i + 1, body(wrap(i.ids, i.code, weak=True), x)), None

    (_, last), _ = scan(step, (np.int64(lower), init), length=count)
    return last


# ---- branches: switch and cond -------------------------------------------------------------------


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
