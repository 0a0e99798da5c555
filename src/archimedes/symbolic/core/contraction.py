"""Products summed over common axes, scalarized or in loops: matmul and einsum on ids."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.graph.blocks.building import loops, pack
from archimedes.graph.blocks.references import (
    constant_values,
    literal_zeros,
    references,
    scalar_ids,
)
from archimedes.graph.dtypes import B8, DTYPES
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph
from archimedes.graph.regions import Move
from archimedes.graph.regions.nest import Affine
from archimedes.symbolic.core.conversion import wrap
from archimedes.symbolic.core.loop_nests import (
    Reads,
    elementwise_along,
    loop_reduce,
    loop_rules,
    loop_threshold,
    uses_loops,
)
from archimedes.symbolic.core.trace import current_trace

__all__ = ["SHORTEST", "contract", "multiply_matrices", "spread_axes"]

_ADD, _MUL, _AND, _OR = (CODES[n] for n in ("add", "mul", "and", "or"))
#: Entries that are written out at most; a matrix with more is multiplied whole.
MOST_ENTRIES = 200


def sparse_product(g: Graph, left: np.ndarray, right: np.ndarray, code: int) -> np.ndarray | None:
    """Multiply matrices of ids of which one has mostly literal zeros; None where neither has.

    Terms are added in the same order as one by one, so that bits are the same.
    """
    zeros = literal_zeros(g, left), literal_zeros(g, right)
    entries = [round(x.size - float(x.sum())) for x in zeros]
    sides = [
        (count * loop, side)
        for side, (count, ids, loop) in enumerate(
            zip(entries, (left, right), (right.shape[1], left.shape[0]))
        )
        if 2 * count <= ids.size and count <= MOST_ENTRIES and loop > 1
    ]
    if not sides:
        return None
    _, side = min(sides)
    if side == 0:
        return _rows(g, left, zeros[0], right, code, first=True)
    return _rows(g, right.T, zeros[1].T, left.T, code, first=False).T


def _rows(
    g: Graph, sparse: np.ndarray, zeros: np.ndarray, dense: np.ndarray, code: int, first: bool
) -> np.ndarray:
    """Return ids of ``sparse @ dense``, rows by a loop over the columns of ``dense``."""
    count = dense.shape[1]
    reads = Reads(g, (count,))
    body = reads.body
    add, mul = (_OR, _AND) if code == B8 else (_ADD, _MUL)
    rows: dict[int, int] = {}
    results = []
    for line, skipped in zip(sparse, zeros):
        total = body.const(0, code)
        for k in np.flatnonzero(skipped == 0).tolist():
            if k not in rows:
                rows[k] = reads.operand(dense[k], code)
            entry = reads.scalar(g.node_of(int(line[k])))
            if body.value.get(rows[k]) == 0:
                continue
            factors = (entry, rows[k]) if first else (rows[k], entry)
            total = body.emit(add, total, body.emit(mul, *factors))
        results.append(total)
    return _gathered(g, reads, results, {i: dense[k] for k, i in rows.items()}, count, code)


def _gathered(
    g: Graph,
    reads: Reads,
    results: Sequence[int],
    same: dict[int, np.ndarray],
    count: int,
    code: int,
) -> np.ndarray:
    """Return ids of rows; where all are rows of the other matrix, or constant, there is no loop.

    Columns lie one after the other in memory: two products in turn, of which the second is with
    the transpose (A P A'), are then the same loop.
    """
    body = reads.body
    if all(i in same or i in body.value for i in results):
        constant = {
            i: np.full(count, g.const(body.value[i], code)) for i in results if i in body.value
        }
        return np.stack([constant[i] if i in constant else same[i] for i in results])
    body.outputs = list(results)
    blocks = loops(g, reads.ids, reads.reads, body, (count,))
    rows = len(blocks)
    moves = [Move(k, (count,), Affine(k, (rows,)), Affine(0, (1,))) for k in range(rows)]
    return references(g, pack(g, count * rows, code, blocks, moves)).reshape(count, rows).T


# ---- products of matrices -----------------------------------------------------------------------


def _inner_products(g: Graph, code: int, rows: list[list[int]], columns: list[list[int]]):
    """Emit every row-by-column product, skipping literal zeros."""
    emit, value = g.emit, g.value
    add, mul = (_OR, _AND) if code == B8 else (_ADD, _MUL)
    zero = g.const(0, code)
    out = []
    for row in rows:
        # Literal zeros of the row drop out of all its products.
        terms = [(k, i) for k, i in enumerate(row) if value.get(i) != 0]
        for column in columns:
            total = zero
            for k, i in terms:
                j = column[k]
                if value.get(j) != 0:
                    total = emit(add, total, emit(mul, i, j))
            out.append(total)
    return out


#: Products of matrices with so many multiplications (times the elements from which arrays are
#: loops) are loops, unless most are by literal zeros.
PRODUCTS = 16
#: Who wants loops for so few elements wants short code: sparse products are loops too, and
#: products from this many multiplications (times that number of elements) on.
SHORTEST = 16
SHORT_PRODUCTS = 2
#: In C code, so many multiplications by a matrix of constants are a loop: a line each is long.
CONSTANT_PRODUCTS = 96
#: From here on, also then: the code would be too long.
MANY_PRODUCTS = 20_000


def fewest_products() -> int:
    """Return the number of multiplications from which a product with several results is a loop."""
    return loop_threshold() * (PRODUCTS if loop_threshold() > SHORTEST else SHORT_PRODUCTS)


def multiply_matrices(g: Graph, left: np.ndarray, right: np.ndarray, code: int) -> np.ndarray:
    """Return ids of the product of (stacks of) matrices of ids."""
    ids = _product_in_loops(g, left, right, code)
    return _product_in_nodes(g, left, right, code) if ids is None else ids


def _product_in_loops(
    g: Graph, left: np.ndarray, right: np.ndarray, code: int
) -> np.ndarray | None:
    """Multiply matrices in loops; None where the product is too small for that, or too sparse."""
    *batch, n, k = left.shape
    m, count = right.shape[-1], math.prod(batch)
    dense = count * n * k * m
    # One sum of products is a reduction like others.
    least = loop_threshold() if n * m == 1 else fewest_products()
    short = loop_threshold() <= SHORTEST
    if loop_rules().sparse and not short and _by_constants(g, left, right, dense, code):
        short, least = True, CONSTANT_PRODUCTS
    if dense < least:
        return None
    used = float(_nonzero(g, left, -2) @ _nonzero(g, right, -1)) * count
    # Where short code is wanted, nodes are put together to blocks: that takes a store for each.
    wide = uses_loops(g, max(left.size, right.size, dense // 16), left, right)
    if not wide and not (short and used == dense):
        return None
    if loop_rules().sparse or short:
        made = sparse_product(g, left, right, code) if left.ndim == right.ndim == 2 else None
        if made is not None:
            return made
    if short:
        used = dense
    if used < least or (2 * used <= dense and used < MANY_PRODUCTS):
        return None
    axes = len(batch)
    rows, columns, inner = axes, axes + 1, axes + 2
    shape = (*batch, n, m, k)
    # Axes of length 1 are left out: a matrix times a vector has one.
    kept = [axis for axis in range(axes + 2) if shape[axis] > 1]
    place = {axis: at for at, axis in enumerate([*kept, inner])}
    operands = []
    for ids, last in ((left, (rows, inner)), (right, (inner, columns))):
        named = [(axis, size) for axis, size in zip((*range(axes), *last), ids.shape)]
        stays = [(axis, size) for axis, size in named if axis in place]
        part = ids.reshape([size for _, size in stays])
        operands.append((part, code, [place[axis] for axis, _ in stays]))
    space = tuple(shape[axis] for axis in (*kept, inner))
    add, mul = ("or", _AND) if code == B8 else ("add", _MUL)
    made = loop_reduce(g, operands, space, len(kept), lambda body, x, y: body.emit(mul, x, y), add)
    return made.reshape((*batch, n, m))


def _by_constants(g: Graph, left: np.ndarray, right: np.ndarray, dense: int, code: int) -> bool:
    """Return whether one operand is a matrix of known numbers, and the other much smaller.

    The other one is put into memory first, which takes a store for each of its elements.
    """
    for known, other in ((left, right), (right, left)):
        if dense >= CONSTANT_PRODUCTS and 4 * other.size <= dense:
            ids = known.reshape(-1)
            if constant_values(g, ids, DTYPES[code]) is not None:
                return True
    return False


def _nonzero(g: Graph, ids: np.ndarray, axis: int) -> np.ndarray:
    """Count along an axis what is not a literal zero, in the first matrix of a stack."""
    return (1.0 - literal_zeros(g, ids.reshape(-1, *ids.shape[-2:])[0])).sum(axis=axis)


def _product_in_nodes(g: Graph, left: np.ndarray, right: np.ndarray, code: int) -> np.ndarray:
    """Multiply matrices element by element, without literal zeros."""
    left, right = scalar_ids(g, left), scalar_ids(g, right)
    *batch, n, k = left.shape
    m = right.shape[-1]
    count = math.prod(batch)  # not -1: empty arrays have no size to infer it from
    flat: list[int] = []
    for x, y in zip(left.reshape(count, n, k), right.reshape(count, k, m)):
        flat += _inner_products(g, code, x.tolist(), y.T.tolist())
    return np.array(flat, dtype=np.int64).reshape(*batch, n, m)


# ---- summation ----------------------------------------------------------------------------------


def contract(
    arrays: list[Any], labels: list[list[Any]], output: list[Any], sizes: dict[Any, int]
) -> Any:
    """Evaluate a summation in loops, two operands after the other; None where it is too small."""
    trace = current_trace()
    ids = [trace.elements_of(a) for a in arrays]
    names = {x for row in labels for x in row}
    count = math.prod(sizes[x] for x in names)
    results = math.prod(sizes[x] for x in output)
    least = loop_threshold() if results == 1 else fewest_products()
    most = max(max(a.size for a in arrays), count // 16)
    if count < least or not all(a.size for a in arrays):
        return None
    if not uses_loops(trace.graph, most, *ids):
        return None
    arrays, labels = list(arrays), list(labels)
    while len(arrays) > 2:
        needed = {*output, *(x for row in labels[2:] for x in row)}
        both = list(dict.fromkeys([*labels[0], *labels[1]]))
        kept = [x for x in both if x in needed]
        first = _sum_products(arrays[:2], labels[:2], kept, sizes)
        arrays, labels = [first, *arrays[2:]], [kept, *labels[2:]]
    return _sum_products(arrays, labels, output, sizes)


def _sum_products(
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
        ids = trace.elements_of(spread_axes(array, row, own))
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
        made = loop_reduce(trace.graph, operands, shape, len(kept), product, add)
    return wrap(made.reshape([sizes[x] for x in output]), code, trace)


def spread_axes(array: Any, labels: list[Any], order: list[Any]) -> Any:
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
