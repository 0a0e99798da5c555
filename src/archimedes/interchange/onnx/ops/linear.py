"""Products of matrices, and what is written with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.interchange.onnx.ops.table import op
from archimedes.typing import Array

if TYPE_CHECKING:
    from archimedes.interchange.onnx.graphs import Node


def matrix_product(node: Node, a: Array, b: Array) -> Any:
    """Return the product of two arrays of matrices."""
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        raise node.error("a product of matrices needs arrays of one dimension or more")
    rows, columns = np.shape(a)[-2:-1], np.shape(b)[-1:] if np.ndim(b) > 1 else ()
    try:
        batch = np.broadcast_shapes(np.shape(a)[:-2], np.shape(b)[:-2])
    except ValueError:
        batch = None
    if batch is None or np.shape(a)[-1] != np.shape(b)[-min(np.ndim(b), 2)]:
        raise node.error(f"matrices of shapes {np.shape(a)} and {np.shape(b)} do not fit")
    node.limit((*batch, *rows, *columns))
    return np.matmul(a, b)


@op("MatMul")
def matmul(node: Node, a: Array, b: Array) -> Any:
    """Return the product of two arrays of matrices."""
    return node.wrap(matrix_product(node, a, b))


@op("Gemm")
def gemm(node: Node, a: Array, b: Array, c: Array | None = None) -> Any:
    """Return ``alpha A B + beta C``, the matrices transposed where asked."""
    a = a.T if node.get("transA", 0) else a
    b = b.T if node.get("transB", 0) else b
    alpha, beta = node.get("alpha", 1.0), node.get("beta", 1.0)
    y = matrix_product(node, a, b)
    if alpha != 1.0:
        y = (alpha * y).astype(y.dtype)
    if c is not None and beta != 0.0:
        y = y + (c if beta == 1.0 else (beta * c).astype(c.dtype))
    return node.wrap(y)


@op("Einsum")
def einsum(node: Node, *values: Array) -> Any:
    """Return a sum of products by its equation."""
    equation = node.get("equation").replace(" ", "")
    lengths: dict[str, int] = {}
    for letters, value in zip(equation.split("->")[0].split(","), values):
        if "." not in letters:
            lengths.update(zip(letters, np.shape(value)))
    if "->" in equation and "." not in equation:
        node.limit([lengths.get(letter, 1) for letter in equation.split("->")[1]])
    return np.einsum(equation, *values)


@op("Det")
def determinant(node: Node, x: Array) -> Any:
    """Return determinants of matrices."""
    return np.linalg.det(x)
