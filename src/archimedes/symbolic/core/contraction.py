"""Sums of products over common axes: what ``np.matmul`` and ``np.einsum`` are made of.

Small ones are scalarized, so that literal zeros drop out. Others are one loop, which sums along the
axes that are not in the result. Of a matrix most of whose entries are literal zeros, the others are
written out once, in the body of a loop over the columns (or rows) of the other matrix: the code is
as long as one of these takes, and no zero is multiplied. Terms are added in the same order in all
three, but for long sums (docs/decisions/041-wide-arrays.md).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence, Set
from functools import partial, reduce

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
from archimedes.graph.regions.block_regions import Affine
from archimedes.symbolic.core import loop_nests
from archimedes.symbolic.core.conversion import wrap
from archimedes.symbolic.core.trace import current_trace
from archimedes.symbolic.core.traced_value import Traced

#: Names of operands' axes: a letter, or any other key.
Labels = Sequence[Hashable]

_ADD, _MUL, _AND, _OR = (CODES[n] for n in ("add", "mul", "and", "or"))
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
#: Entries that are written out at most; a matrix with more is multiplied whole.
MOST_ENTRIES = 200


def _fewest_products(results: int) -> int:
    """Return the number of multiplications from which a product is a loop."""
    threshold = loop_nests.loop_threshold()
    if results == 1:
        return threshold  # a reduction like others
    return threshold * (PRODUCTS if threshold > SHORTEST else SHORT_PRODUCTS)


# ---- products of matrices ----------------------------------------------------------------------


def multiply_matrices(g: Graph, left: np.ndarray, right: np.ndarray, code: int) -> np.ndarray:
    """Return ids of the products of matrices (..., n, k) and (..., k, m) of ids."""
    *batch, n, k = left.shape
    m, count = right.shape[-1], math.prod(batch)
    dense = count * n * k * m
    fewest = _fewest_products(n * m)
    rules = loop_nests.loop_rules()
    short = rules.elements <= SHORTEST
    if rules.sparse and not short and _is_by_constants(g, left, right, dense, code):
        short, fewest = True, CONSTANT_PRODUCTS
    if dense < fewest:
        return _multiply_nodes(g, left, right, code)
    used = float(_count_nonzero(g, left, -2) @ _count_nonzero(g, right, -1)) * count
    # Where short code is wanted, nodes are put together to blocks: that takes a store for each.
    if not loop_nests.uses_loops(g, max(left.size, right.size, dense // 16), left, right) and not (
        short and used == dense
    ):
        return _multiply_nodes(g, left, right, code)
    if (rules.sparse or short) and left.ndim == right.ndim == 2:
        ids = _multiply_sparse(g, left, right, code)
        if ids is not None:
            return ids
    if not short and (used < fewest or (2 * used <= dense and used < MANY_PRODUCTS)):
        return _multiply_nodes(g, left, right, code)
    axes = range(len(batch))
    sizes: dict[Hashable, int] = {**dict(zip(axes, batch)), "n": n, "m": m, "k": k}
    operands = [(left, [*axes, "n", "k"]), (right, [*axes, "k", "m"])]
    return _contract_in_loop(g, code, operands, [*axes, "n", "m"], sizes, {"k"})


def _is_by_constants(g: Graph, left: np.ndarray, right: np.ndarray, dense: int, code: int) -> bool:
    """Return whether one operand is a matrix of known numbers, and the other much smaller.

    The other one is put into memory first, which takes a store for each of its elements.
    """
    return dense >= CONSTANT_PRODUCTS and any(
        4 * other.size <= dense and constant_values(g, known.reshape(-1), DTYPES[code]) is not None
        for known, other in ((left, right), (right, left))
    )


def _count_nonzero(g: Graph, ids: np.ndarray, axis: int) -> np.ndarray:
    """Count along an axis what is not a literal zero, in the first matrix of a stack."""
    return (1.0 - literal_zeros(g, ids.reshape(-1, *ids.shape[-2:])[0])).sum(axis=axis)


def _multiply_nodes(g: Graph, left: np.ndarray, right: np.ndarray, code: int) -> np.ndarray:
    """Multiply matrices element by element, without literal zeros."""
    left, right = scalar_ids(g, left), scalar_ids(g, right)
    *batch, n, k = left.shape
    m, count = right.shape[-1], math.prod(batch)  # not -1: empty arrays have nothing to infer from
    emit, value = g.emit, g.value
    add, mul = (_OR, _AND) if code == B8 else (_ADD, _MUL)
    zero = g.const(0, code)
    products: list[int] = []
    for a, b in zip(left.reshape(count, n, k), right.reshape(count, k, m)):
        columns = b.T.tolist()
        for row in a.tolist():
            # Literal zeros of the row drop out of all its products.
            terms = [(j, i) for j, i in enumerate(row) if value.get(i) != 0]
            for column in columns:
                total = zero
                for j, i in terms:
                    if value.get(column[j]) != 0:
                        total = emit(add, total, emit(mul, i, column[j]))
                products.append(total)
    return np.array(products, dtype=np.int64).reshape(*batch, n, m)


def _multiply_sparse(g: Graph, left: np.ndarray, right: np.ndarray, code: int) -> np.ndarray | None:
    """Multiply matrices of which one has mostly literal zeros; None where neither has."""
    zeros = literal_zeros(g, left), literal_zeros(g, right)
    entries = [round(x.size - float(x.sum())) for x in zeros]
    sides = [
        (count * steps, side)
        for side, (count, ids, steps) in enumerate(
            zip(entries, (left, right), (right.shape[1], left.shape[0]))
        )
        if 2 * count <= ids.size and count <= MOST_ENTRIES and steps > 1
    ]
    if not sides:
        return None
    if min(sides)[1] == 0:
        return _multiply_rows(g, left, zeros[0], right, code, first=True)
    return _multiply_rows(g, right.T, zeros[1].T, left.T, code, first=False).T


def _multiply_rows(
    g: Graph, sparse: np.ndarray, zeros: np.ndarray, dense: np.ndarray, code: int, first: bool
) -> np.ndarray:
    """Return ids of ``sparse @ dense``, rows by a loop over the columns of ``dense``.

    Columns lie one after the other in memory: two products in turn, of which the second is with
    the transpose (A P A'), are then the same loop.
    """
    count = dense.shape[1]
    loop = loop_nests.LoopBuilder(g, (count,))
    body = loop.body
    add, mul = (_OR, _AND) if code == B8 else (_ADD, _MUL)
    rows: dict[int, int] = {}
    results = []
    for line, skipped in zip(sparse, zeros):
        total = body.const(0, code)
        for k in np.flatnonzero(skipped == 0).tolist():
            if k not in rows:
                rows[k] = loop.operand(dense[k], code)
            entry = loop.scalar(g.node_of(int(line[k])))
            if body.value.get(rows[k]) != 0:
                factors = (entry, rows[k]) if first else (rows[k], entry)
                total = body.emit(add, total, body.emit(mul, *factors))
        results.append(total)
    # Where all results are rows of the other matrix, or constant, there is no loop.
    same = {i: dense[k] for k, i in rows.items()}
    same |= {i: np.full(count, g.const(body.value[i], code)) for i in results if i in body.value}
    if all(i in same for i in results):
        return np.stack([same[i] for i in results])
    body.outputs = results
    blocks = loops(g, loop.ids, loop.reads, body, (count,))
    moves = [
        Move(k, (count,), Affine(k, (len(blocks),)), Affine(0, (1,))) for k in range(len(blocks))
    ]
    block = pack(g, count * len(blocks), code, blocks, moves)
    return references(g, block).reshape(count, len(blocks)).T


# ---- any number of axes ------------------------------------------------------------------------


def contract(
    arrays: Sequence[Traced],
    labels: Sequence[Labels],
    output: Labels,
    sizes: Mapping[Hashable, int],
) -> Traced:
    """Return the sum of products of arrays over all axes whose labels are not in the output.

    Arrays have one dtype. Of booleans the products are "and" and the sums "or".
    """
    trace, code = current_trace(), arrays[0].code
    g, output = trace.graph, list(output)
    ids = [_merge_repeated(trace.elements_of(a), row) for a, row in zip(arrays, labels)]
    summed = [x for x in dict.fromkeys(x for row in labels for x in row) if x not in output]
    results = math.prod(sizes[x] for x in output)
    count = results * math.prod(sizes[x] for x in summed)
    in_loop = bool(summed) and count >= _fewest_products(results) and all(a.size for a in arrays)
    if in_loop and loop_nests.uses_loops(
        g, max(*(a.size for a in arrays), count // 16), *map(trace.elements_of, arrays)
    ):
        while len(ids) > 2:  # two operands after the other
            needed = {*output, *(x for _, row in ids[2:] for x in row)}
            remaining = [x for x in dict.fromkeys([*ids[0][1], *ids[1][1]]) if x in needed]
            first = _contract_in_loop(g, code, ids[:2], remaining, sizes)
            ids = [(first, remaining), *ids[2:]]
        return wrap(_contract_in_loop(g, code, ids, output, sizes), code, trace)
    order = output + summed
    product: Traced = None
    for part, row in ids:
        present = [x for x in order if x in row]
        moved = part.transpose([row.index(x) for x in present])
        shape = [moved.shape[present.index(x)] if x in present else 1 for x in order]
        factor = wrap(moved.reshape(shape), code, trace)
        product = factor if product is None else product * factor
    product = np.broadcast_to(product, [sizes[x] for x in order])
    if not summed:
        return product.copy()
    add = np.any if code == B8 else np.sum
    return add(product, axis=tuple(range(len(output), len(order))))


def _merge_repeated(ids: np.ndarray, labels: Labels) -> tuple[np.ndarray, list[Hashable]]:
    """Return an operand with the diagonals of axes that have the same label, and its labels."""
    row = list(labels)
    for label in dict.fromkeys(labels):
        while row.count(label) > 1:
            first = row.index(label)
            second = row.index(label, first + 1)
            ids = np.diagonal(ids, axis1=first, axis2=second)
            del row[second], row[first]
            row.append(label)
    own = list(dict.fromkeys(labels))
    return ids.transpose([row.index(x) for x in own]), own


def _contract_in_loop(
    g: Graph,
    code: int,
    operands: Sequence[tuple[np.ndarray, list[Hashable]]],
    output: list[Hashable],
    sizes: Mapping[Hashable, int],
    always: Set[Hashable] = frozenset(),
) -> np.ndarray:
    """Return ids of the sum of products of operands, by one loop.

    Axes of length 1 are left out, but for those in ``always``: the order of sums counts the axes
    of the result.
    """
    order = list(dict.fromkeys([*output, *(x for _, row in operands for x in row)]))
    axes = [x for x in order if sizes[x] > 1 or x in always]
    reads = []
    for ids, row in operands:
        long = [k for k, x in enumerate(row) if x in axes]
        part = ids.reshape([ids.shape[k] for k in long])
        reads.append((part, code, [axes.index(row[k]) for k in long]))
    add, mul = ("or", _AND) if code == B8 else ("add", _MUL)

    def multiply(body: Graph, *factors: int) -> int:
        return reduce(partial(body.emit, mul), factors)

    free = sum(x in axes for x in output)
    shape = tuple(sizes[x] for x in axes)
    combine = add if free < len(axes) else ""  # or nothing is left to sum
    ids = loop_nests.loop_reduce(g, reads, shape, free, multiply, combine)
    return ids.reshape([sizes[x] for x in output])


def slide_products(a: Traced, v: Traced, first: int, stop: int) -> Traced:
    """Return sums over j of a[k + j] v[j] without those outside a, for k from first to stop."""
    trace, n, m = current_trace(), a.size, v.size
    if loop_nests.uses_loops(trace.graph, stop - first, trace.elements_of(a), trace.elements_of(v)):
        positions = np.arange(first, stop)[:, None] + np.arange(m)
        inside = (positions >= 0) & (positions < n)
        terms = a[np.clip(positions, 0, n - 1)] * v
        return np.sum(np.where(inside, terms, np.zeros_like(a, shape=())), axis=1)
    ranges = [(k, max(k, 0), min(k + m, n)) for k in range(first, stop)]
    return np.stack([np.dot(a[low:high], v[low - k : high - k]) for k, low, high in ranges])
