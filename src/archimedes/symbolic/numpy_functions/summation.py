"""Einstein's summation convention: ``np.einsum``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from archimedes.graph.dtypes import B8
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph
from archimedes.symbolic.core.dispatch import lift_many, wrap
from archimedes.symbolic.core.registry import implements
from archimedes.symbolic.core.trace import current_trace
from archimedes.symbolic.core.ufunc_methods import finish
from archimedes.symbolic.core.wide import elementwise_along, in_loops, reduction, threshold
from archimedes.symbolic.numpy_functions.products import fewest_products

__all__ = ["einsum"]

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_MUL, _AND = CODES["mul"], CODES["and"]


def _parse(subscripts: str, shapes: list[tuple[int, ...]]) -> tuple[list[list[Any]], list[Any]]:
    """Split einsum subscripts into labels; axes under an ellipsis get numbered labels."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        raise ValueError(
            f"einsum: {subscripts!r} names {len(terms)} operands, {len(shapes)} were given"
        )
    labels: list[list[Any]] = []
    most = 0
    for term, shape in zip(terms, shapes):
        named = len(term.replace("...", ""))
        extra = len(shape) - named
        if extra < 0 or (extra > 0 and "..." not in term):
            raise ValueError(f"einsum: operand of shape {shape} does not fit {term!r}")
        most = max(most, extra)
        before, _, after = term.partition("...")
        hidden = list(range(-extra, 0)) if "..." in term else []
        labels.append([*before, *hidden, *after])
    if arrow:
        before, dots, after = right.partition("...")
        output: list[Any] = [*before, *(range(-most, 0) if dots else []), *after]
    else:
        flat = [x for row in labels for x in row]
        once = sorted(x for x in set(flat) if isinstance(x, str) and flat.count(x) == 1)
        output = [*range(-most, 0), *once]
    return labels, output


@implements(np.einsum)
def einsum(
    subscripts: Any,
    *operands: Any,
    out: Any = None,
    dtype: Any = None,
    casting: Any = "safe",
    optimize: Any = False,
    **kwargs: Any,
) -> Any:
    """Evaluate the Einstein summation convention, any number of operands, with ellipsis.

    Of booleans the products are "and" and the sums "or", as NumPy's are, unless ``dtype`` is that
    of numbers.
    """
    if not isinstance(subscripts, str):
        return einsum(*_from_lists(subscripts, *operands), out=out, dtype=dtype, casting=casting)
    arrays = lift_many(list(operands))
    if dtype is not None:
        arrays = [a.astype(dtype, casting=casting) for a in arrays]
    labels, output = _parse(subscripts, [a.shape for a in arrays])
    sizes: dict[Any, int] = {}
    for row, array in zip(labels, arrays):
        for label, size in zip(row, array.shape):
            if sizes.get(label, 1) not in (1, size) and size != 1:
                raise ValueError(f"einsum: axes labelled {label!r} have sizes that differ")
            sizes[label] = max(size, sizes.get(label, size)) if size != 1 else sizes.get(label, 1)
    summed = [x for x in dict.fromkeys(x for row in labels for x in row) if x not in output]
    order = output + summed
    if summed and (made := _contracted(arrays, labels, output, sizes)) is not None:
        return finish(out, made)
    product: Any = None
    for row, array in zip(labels, arrays):
        spread = _spread(array, row, order)
        product = spread if product is None else product * spread
    assert product is not None
    product = np.broadcast_to(product, [sizes[x] for x in order])
    if not summed and len(arrays) == 1 and out is None:
        # NumPy gives a view: of the diagonal, or with the axes in another order.
        return arrays[0]._like(np.einsum(subscripts, arrays[0].ids))
    if not summed:
        return finish(out, product.copy())
    add = np.any if product.code == B8 else np.sum
    return finish(out, add(product, axis=tuple(range(len(output), len(order)))))


def _contracted(
    arrays: list[Any], labels: list[list[Any]], output: list[Any], sizes: dict[Any, int]
) -> Any:
    """Evaluate a summation in loops, two operands after the other; None where it is too small."""
    trace = current_trace()
    ids = [trace.elements_of(a) for a in arrays]
    names = {x for row in labels for x in row}
    count = math.prod(sizes[x] for x in names)
    results = math.prod(sizes[x] for x in output)
    least = threshold() if results == 1 else fewest_products()
    most = max(max(a.size for a in arrays), count // 16)
    if count < least or not all(a.size for a in arrays):
        return None
    if not in_loops(trace.graph, most, *ids):
        return None
    arrays, labels = list(arrays), list(labels)
    while len(arrays) > 2:
        needed = {*output, *(x for row in labels[2:] for x in row)}
        both = list(dict.fromkeys([*labels[0], *labels[1]]))
        kept = [x for x in both if x in needed]
        first = _summed(arrays[:2], labels[:2], kept, sizes)
        arrays, labels = [first, *arrays[2:]], [kept, *labels[2:]]
    return _summed(arrays, labels, output, sizes)


def _summed(
    arrays: list[Any], labels: list[list[Any]], output: list[Any], sizes: dict[Any, int]
) -> Any:
    """Sum products over all labels that are not in the output, by one loop."""
    trace, code = current_trace(), arrays[0].code
    summed = [x for x in dict.fromkeys(x for row in labels for x in row) if x not in output]
    order = output + summed
    # Axes of length 1 are left out, as in products of matrices: the order of sums counts them.
    long = [x for x in order if sizes[x] > 1]
    operands = []
    for array, row in zip(arrays, labels):
        own = list(dict.fromkeys(row))
        ids = trace.elements_of(_spread(array, row, own))
        wide = [k for k, x in enumerate(own) if x in long]
        ids = ids.reshape([ids.shape[k] for k in wide])
        operands.append((ids, code, [long.index(own[k]) for k in wide]))
    add, mul = ("or", _AND) if code == B8 else ("add", _MUL)

    def product(body: Graph, *factors: int) -> int:
        total = factors[0]
        for factor in factors[1:]:
            total = body.emit(mul, total, factor)
        return total

    kept = [x for x in output if x in long]
    shape = tuple(sizes[x] for x in long)
    if len(kept) == len(long):  # nothing is left to sum
        (made,) = elementwise_along(trace.graph, operands, shape, product)
    else:
        made = reduction(trace.graph, operands, shape, len(kept), product, add)
    return wrap(made.reshape([sizes[x] for x in output]), code, trace)


def _from_lists(*given: Any) -> tuple[Any, ...]:
    """Turn NumPy's other form, einsum(a, [0, 1], b, [1], [0]), into subscripts and operands."""

    def text(labels: Any) -> str:
        return "".join("..." if k is Ellipsis else _LETTERS[k] for k in labels)

    pairs = len(given) // 2 * 2
    terms = ",".join(text(labels) for labels in given[1:pairs:2])
    output = f"->{text(given[-1])}" if len(given) > pairs else ""
    return terms + output, *given[:pairs:2]


def _spread(array: Any, labels: list[Any], order: list[Any]) -> Any:
    """Bring an operand's axes into the given order, taking diagonals of repeated labels."""
    ids = array.ids
    labels = list(labels)
    for label in list(dict.fromkeys(labels)):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            ids = np.diagonal(ids, axis1=first, axis2=second)
            del labels[second], labels[first]
            labels.append(label)
    present = [x for x in order if x in labels]
    moved = ids.transpose([labels.index(x) for x in present])
    shape = [moved.shape[present.index(x)] if x in present else 1 for x in order]
    return wrap(moved.reshape(shape), array.code, array.owner)
