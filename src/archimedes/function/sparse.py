"""Sparse Jacobians and Hessians, their patterns and colourings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archimedes.errors import TraceError
from archimedes.function.blocks import (
    float_outs,
    gradient_graph,
    result_dtype,
    scalar_out,
    typed,
)
from archimedes.function.compiled import Compiled
from archimedes.function.points import Derivative, Point
from archimedes.function.reads import PARTS
from archimedes.graph.derivatives.coloring import bits, column_colors, star_colors, transpose
from archimedes.graph.derivatives.jacobians import jacobian_graph, pattern
from archimedes.graph.passes import inline
from archimedes.symbolic import Trace, current_trace, is_tracing

__all__ = ["SparseDerivative", "coloring", "sparsity"]


class SparseDerivative:
    """A Jacobian or Hessian returned as a ``scipy.sparse`` matrix over the ravelled trees.

    Every structurally non-zero entry is stored, also where its value happens to be zero, so
    that the pattern never changes between calls.
    """

    def __init__(self, derivative: Derivative, name: str, symmetric: bool) -> None:
        self.derivative = derivative
        self.symmetric = symmetric
        self.name = name
        self._compiled = Compiled(
            self._entries,
            name=name,
            numerics=derivative.numerics,
            freeze=derivative.freeze,
            watch=derivative.watch,
        )
        self._compiled.signature = derivative.signature

    def __repr__(self) -> str:
        return f"<sparse {self.name}>"

    def _entries(self, *args: Any, **kwargs: Any) -> Any:
        point = self.derivative.point(args, kwargs)
        graph, outs = point.recording.graph, []
        rows = np.arange(len(point.wrt))
        if self.symmetric:
            scalar_out(point, "hess")
            graph = gradient_graph(point)
        else:
            outs = float_outs(point, "jac")
            rows = _places(point)
        entries = jacobian_graph(graph, point.wrt, symmetric=self.symmetric)
        ids = inline(current_trace().graph, entries.graph, point.inputs)
        values = typed(np.array(ids, dtype=np.int64), result_dtype(point, outs))
        shape = np.array([_height(point) if outs else len(rows), len(point.wrt)])
        return values, rows[entries.rows], entries.columns, shape, entries.colors

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate to a ``scipy.sparse.csc_array``."""
        from scipy.sparse import csc_array

        if is_tracing():
            raise TraceError(
                f"{self.name} with sparse=True makes a scipy.sparse matrix, which cannot be part "
                "of a recorded function: call it outside, or use sparse=False inside"
            )
        values, rows, columns, shape, _ = self._compiled(*args, **kwargs)
        return csc_array((values, (rows, columns)), shape=tuple(shape.tolist()))

    def colors(self, *args: Any, **kwargs: Any) -> int:
        """Return the number of directions a sweep needs for these arguments."""
        return int(self._compiled(*args, **kwargs)[4])


PARTS[SparseDerivative] = lambda made: (made._compiled, made.symmetric)


def _places(point: Point) -> np.ndarray:
    """Row of each output of the graph among the ravelled results: constants have rows too."""
    rows: list[int] = []
    at = 0
    for out in point.recording.outs:
        size = out.spec.size if out.spec.code >= 0 else int(np.size(out.spec.value))
        if out.spec.code >= 0:
            rows.extend(range(at, at + size))
        at += size
    return np.array(rows, dtype=np.int64)


def _height(point: Point) -> int:
    outs = point.recording.outs
    return sum(o.spec.size if o.spec.code >= 0 else int(np.size(o.spec.value)) for o in outs)


def sparsity(func: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Return the function that gives the structural pattern of the Jacobian of ``func``.

    The result is a boolean ``scipy.sparse.csc_array`` over the ravelled trees.

    >>> import numpy as np
    >>> sparsity(lambda x: x**2)(np.ones(2)).toarray()
    array([[ True, False],
           [False,  True]])
    """
    derivative = Derivative(func, argnums, "sparsity")

    def run(*args: Any, **kwargs: Any) -> Any:
        from scipy.sparse import csc_array

        with Trace():
            point = derivative.point(args, kwargs)
            rows = pattern(point.recording.graph, point.wrt)
        entries = [(i, j) for i, row in enumerate(rows) for j in bits(row)]
        at = np.array(entries, dtype=np.int64).reshape(-1, 2)
        values = np.ones(len(at), dtype=bool)
        places = (_places(point)[at[:, 0]], at[:, 1])
        return csc_array((values, places), shape=(_height(point), len(point.wrt)))

    return run


def coloring(matrix: Any, mode: str = "column") -> np.ndarray:
    """Colour a sparsity pattern so that few sweeps give all its entries.

    ``mode`` is "column" (forward mode: columns of one colour share no row), "row" (reverse mode)
    or "star" (symmetric matrices). Returns one colour per column (row); -1 marks empty ones.

    >>> import numpy as np
    >>> coloring(np.eye(3)).tolist()
    [0, 0, 0]
    """
    dense = matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)
    if dense.ndim != 2:
        raise ValueError(f"coloring: a matrix is needed, got shape {dense.shape}")
    rows = [sum(1 << int(j) for j in np.flatnonzero(row)) for row in dense]
    if mode == "column":
        return column_colors(rows, dense.shape[1])
    if mode == "row":
        return column_colors(transpose(rows, dense.shape[1]), dense.shape[0])
    if mode == "star":
        if dense.shape[0] != dense.shape[1] or not np.array_equal(dense != 0, (dense != 0).T):
            raise ValueError("coloring: mode='star' needs a symmetric pattern")
        return star_colors(rows, dense.shape[1])
    raise ValueError(f"coloring: mode={mode!r} is not one of 'column', 'row', 'star'")
