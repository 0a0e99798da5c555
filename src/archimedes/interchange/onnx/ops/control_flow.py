"""Branches and loops: If, Loop and Scan with ``cond``, ``while_loop`` and ``scan``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.function import cond, scan, while_loop
from archimedes.interchange.onnx.ops.table import op
from archimedes.interchange.onnx.tensors import UnknownValueError
from archimedes.typing import Array

if TYPE_CHECKING:
    from archimedes.interchange.onnx.graphs import Node


#: Steps that a loop may have so that derivatives can go backwards through it.
_MOST_STEPS = 100_000
#: Steps of loops that are written out because shapes depend on the number of the step.
_MOST_UNROLLED = 1000


@op("If")
def branch(node: Node, values: Mapping[str, Array], condition: Array) -> Any:
    """Return what one of two graphs gives."""
    yes, no = node.graphs["then_branch"], node.graphs["else_branch"]
    if not is_traced(condition):
        chosen = yes if bool(np.asarray(condition).reshape(())) else no
        return tuple(chosen([], values))
    return cond(
        condition.reshape(()),
        lambda _: tuple(np.asarray(v) for v in yes([], values)),
        lambda _: tuple(np.asarray(v) for v in no([], values)),
        None,
    )


def _stays_true(body: Any) -> bool:
    """Return whether the condition that a loop's body returns is the one it was given, or true."""
    name = body.outputs[0]
    if name in body.constants:
        return bool(np.all(body.constants[name]))
    for node, _ in reversed(body.steps):
        if name in node.outputs:
            if node.op == "Constant":
                value = node.get("value", node.get("value_int"))
                return value is not None and bool(np.all(value))
            if node.op != "Identity":
                return False
            name = node.inputs[0]
    return name == body.inputs[1]


def _unroll(step: Any, carry: Any, steps: int) -> tuple[Any, list[Any]]:
    """Return what ``scan`` returns, by steps whose numbers are known."""
    rows = []
    for k in range(steps):
        carry, row = step(carry, np.asarray(k))
        rows.append(row)
    return carry, [np.stack(column) for column in zip(*rows)]


@op("Loop")
def loop(
    node: Node, values: Mapping[str, Array], count: Array, condition: Array, *carried: Array
) -> Any:
    """Return what a body gives that is repeated, a number of times or while a condition holds."""
    body, n = node.graphs["body"], len(carried)
    outputs = len(body.outputs) - 1 - n
    start = True if condition is None else condition
    always = not is_traced(start) and bool(np.all(start)) and _stays_true(body)
    true = np.ones((), np.bool_)
    if not is_traced(start) and not bool(np.all(start)):
        count, always = np.zeros((), np.int64), True
    if always and count is not None and not is_traced(count):
        steps = max(int(np.asarray(count).reshape(())), 0)
        if steps == 0 and outputs:
            raise node.error("no step is taken, so the shapes of its outputs are not known")

        def step(carry: Any, k: Array) -> Any:
            _, *new = body([k, true, *carry], values)
            return tuple(np.asarray(v) for v in new[:n]), tuple(new[n:])

        node.limit([steps])
        try:
            last, ys = scan(step, tuple(carried), np.arange(steps))
        except UnknownValueError:  # a shape depends on the number of the step
            if steps > _MOST_UNROLLED:
                raise
            last, ys = _unroll(step, tuple(carried), steps)
        return (*last, *ys)
    if outputs:
        raise node.error(
            "the number of steps depends on values of the network's inputs, and so would the "
            "length of its outputs: give a fixed number of steps, or keep what is needed in the "
            "values that the loop carries"
        )
    most = np.asarray(2**62) if count is None else count.reshape(())

    def go_on(carry: Any) -> Any:
        k, going, _ = carry
        return (k < most) & going

    def advance(carry: Any) -> Any:
        k, going, old = carry
        going, *new = body([k, going, *old], values)
        return k + 1, np.asarray(going).reshape(()), tuple(new)

    first = true if start is True else np.asarray(start).reshape(())
    known = not is_traced(most) and int(most) <= _MOST_STEPS
    start_values = (np.zeros((), np.int64), first, tuple(carried))
    _, _, last = while_loop(go_on, advance, start_values, max_steps=int(most) if known else None)
    return last


@op("Scan")
def scan_node(node: Node, values: Mapping[str, Array], *inputs: Array) -> Any:
    """Return what a body gives that is applied to slices of arrays, one after the other."""
    if node.version < 9:
        raise node.error("version 8 of Scan is not known: convert the network to opset 9 or later")
    body, count = node.graphs["body"], int(node.get("num_scan_inputs"))
    n = len(inputs) - count
    outputs = len(body.outputs) - n
    in_axes, in_ways = (
        node.get("scan_input_axes", [0] * count),
        node.get("scan_input_directions", [0] * count),
    )
    out_axes, out_ways = (
        node.get("scan_output_axes", [0] * outputs),
        node.get("scan_output_directions", [0] * outputs),
    )
    xs = []
    for x, axis, back in zip(inputs[n:], in_axes, in_ways, strict=True):
        x = np.moveaxis(x, node.axis(axis, np.ndim(x)), 0)
        xs.append(np.flip(x, 0) if back else x)

    def step(carry: Any, slices: Any) -> Any:
        new = body([*carry, *slices], values)
        return tuple(np.asarray(v) for v in new[:n]), tuple(new[n:])

    last, ys = scan(step, tuple(inputs[:n]), tuple(xs))
    moved = []
    for y, axis, back in zip(ys, out_axes, out_ways, strict=True):
        y = np.flip(y, 0) if back else y
        moved.append(np.moveaxis(y, 0, node.axis(axis, np.ndim(y))))
    return (*last, *moved)
