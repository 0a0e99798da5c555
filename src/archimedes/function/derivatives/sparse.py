"""Sparse Jacobians and Hessians, their patterns and colourings.

The programs of their entries are kept on disk, beside the compiled code
(``backends/code_cache.py``), by the program they were made of: another process need not
differentiate again. Programs with regions, and short ones, are made anew each time.
"""

from __future__ import annotations

import marshal
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from archimedes.backends import code_cache as cache
from archimedes.checks import check_choice
from archimedes.errors import TraceError
from archimedes.function.compiled import Compiled
from archimedes.function.derivatives import differentiation
from archimedes.function.derivatives.differentiation import Derivative, Point
from archimedes.function.recording import OutLeaf, Recording
from archimedes.graph.derivatives.coloring import Pattern, column_colors, star_colors
from archimedes.graph.derivatives.jacobian_graphs import Entries, jacobian_graph
from archimedes.graph.derivatives.sparsity import pattern
from archimedes.graph.program import Graph
from archimedes.symbolic import Trace, current_trace, is_tracing

__all__ = ["SparsePattern", "coloring", "sparsity"]

#: Shorter programs are differentiated sooner than read.
SHORT = 200
_LISTS = ("op", "a", "b", "c", "dtype", "inputs", "outputs")


def _find_entries(graph: Graph, wrt: Sequence[int], symmetric: bool, triangle: bool) -> Entries:
    """Return the entries of the Jacobian in the inputs ``wrt``, from disk if they are there.

    ``symmetric``: of the Hessian of the single output, ``triangle``: of that the lower triangle.
    """
    if len(graph) < SHORT or graph.regions or graph.tables or graph.lines is not None:
        return _differentiate(graph, wrt, symmetric, triangle)
    parts = (graph.digest(lasting=True), tuple(wrt), symmetric, triangle)
    version = (marshal.version, sys.version_info[:2], cache.sources_digest(Path(__file__).parent))
    key = cache.cache_key("entries", *parts, *version)
    data = cache.read(key)
    if data is not None:
        return _unpack(data)
    entries = _differentiate(graph, wrt, symmetric, triangle)
    if not entries.graph.regions and not entries.graph.tables:
        cache.write(key, _pack(entries))
    return entries


def _differentiate(graph: Graph, wrt: Sequence[int], symmetric: bool, triangle: bool) -> Entries:
    source = differentiation.gradient_graph(graph, wrt) if symmetric else graph
    return jacobian_graph(source, wrt, symmetric=symmetric, triangle=triangle)


def _pack(entries: Entries) -> bytes:
    lists = [getattr(entries.graph, name) for name in _LISTS]
    rows, columns = entries.rows.tolist(), entries.columns.tolist()
    pattern = (rows, columns, entries.shape, entries.mode, entries.colors)
    return marshal.dumps((lists, entries.graph.value, pattern))


def _unpack(data: bytes) -> Entries:
    lists, value, (rows, columns, *rest) = marshal.loads(data)
    graph = Graph()
    for name, values in zip(_LISTS, lists):
        setattr(graph, name, values)
    graph.value = value
    where = np.array([rows, columns], dtype=np.int64)
    return Entries(graph, where[0], where[1], *rest)


@dataclass(frozen=True, repr=False)
class SparsePattern:
    """Positions of the entries of a sparse matrix.

    Entries are ordered column by column, as in SciPy's CSC format.

    Parameters
    ----------
    rows, columns : array of int (k,)
        Row and column of each entry.
    shape : (int, int)
        Shape of the matrix.

    Examples
    --------
    >>> import numpy as np
    >>> import archimedes as arc
    >>> slope = arc.jac(lambda x: np.stack([x[0] * x[1], x[1] ** 2]), sparse=True)
    >>> pattern = slope.pattern(np.ones(2))
    >>> pattern.shape, pattern.rows, pattern.columns
    ((2, 2), array([0, 0, 1]), array([0, 1, 1]))
    """

    rows: np.ndarray
    columns: np.ndarray
    shape: tuple[int, int]

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"SparsePattern({rows} x {columns}, {self.nnz} entries)"

    @property
    def nnz(self) -> int:
        """Number of entries."""
        return len(self.rows)

    @cached_property
    def starts(self) -> np.ndarray:
        """Where each column begins among the entries, and where the last one ends."""
        return np.searchsorted(self.columns, np.arange(self.shape[1] + 1))

    def matrix(self, values: Any) -> Any:
        """Return the `scipy.sparse.csc_array` with given entries.

        Parameters
        ----------
        values : array_like (k,)
            The entries, in order.
        """
        from scipy.sparse import csc_array

        return csc_array((np.asarray(values), self.rows, self.starts), shape=self.shape)


class SparseDerivative:
    """A Jacobian or Hessian over the ravelled trees, of which only the entries are computed.

    Every structurally non-zero entry is stored, also where its value happens to be zero, so
    that the pattern never changes between calls. Called, it returns a ``scipy.sparse`` matrix;
    its parts are functions of the same arguments: ``values`` (a recorded function, which can be
    compiled, mapped, differentiated and turned into C) and ``pattern``. Of a Hessian, ``lower``
    is the lower triangle alone.

    >>> from archimedes.function import hess
    >>> curvature = hess(lambda x: x[0] * x[1] ** 2, sparse=True).lower
    >>> curvature.values(np.array([2.0, 3.0]))
    array([6., 4.])
    >>> curvature.pattern(np.ones(2)).rows, curvature.pattern(np.ones(2)).columns
    (array([1, 1]), array([0, 1]))
    """

    def __init__(self, derivative: Derivative, symmetric: bool, triangle: bool = False) -> None:
        self.derivative, self.name = derivative, derivative.name
        self.symmetric, self.triangle = symmetric, triangle
        self._pattern: SparsePattern | None = None
        self._compiled = self._function(self._entries)
        self._compiled.inline_limit = sys.maxsize
        #: The entries as one array, in the order of ``pattern``.
        self.values = self._function(self._values)
        self.values.recorded_by = self._recorded_values

    def _function(self, run: Callable[..., Any]) -> Compiled:
        derivative = self.derivative
        shared = {k: v for k, v in derivative.options.items() if k in ("numerics", "freeze")}
        compiled = Compiled(run, name=self.name, watch=derivative.watch, **shared)
        compiled.signature = derivative.signature
        compiled.__signature__ = derivative.signature.parameters
        return compiled

    def __repr__(self) -> str:
        return f"<sparse {self.name}>"

    @property
    def lower(self) -> SparseDerivative:
        """The lower triangle, diagonal included: all that solvers want of a Hessian."""
        if not self.symmetric:
            raise ValueError(f"{self.name}: only a Hessian is given by its lower triangle")
        return SparseDerivative(self.derivative, True, triangle=True)

    def compile_at_once(self) -> None:
        """Have ``values`` compiled at its next call."""
        self.values.compile_at_once()

    def _values(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled(*args, **kwargs)[0]

    def _recorded_values(self, values: dict[str, Any]) -> Recording:
        """Return the recording of ``_values``: the same program, the rest being constants."""
        whole = self._compiled.recording_of(values)
        return replace(whole, out_tree=whole.out_tree.children[0], outs=whole.outs[:1], memo={})

    def _entries(self, *args: Any, **kwargs: Any) -> Any:
        point = self.derivative.point(args, kwargs)
        outs: list[OutLeaf] = []
        rows = np.arange(len(point.wrt))
        if self.symmetric:
            point.check_scalar()
        else:
            outs = point.float_outs()
            rows = _rows_of_outputs(point)
        blocks, wrt = point.recording.blocks, point.block_wrt
        entries = _find_entries(blocks, wrt, self.symmetric, self.triangle)
        ids = differentiation.entry_ids(current_trace().graph, entries, point.inputs)
        values = differentiation.as_dtype(ids, point.result_dtype(outs))
        shape = np.array([_height(point) if outs else len(rows), len(point.wrt)])
        return values, rows[entries.rows], entries.columns, shape, entries.colors

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate to a ``scipy.sparse.csc_array``."""
        if is_tracing():
            raise TraceError(
                f"{self.name} with sparse=True makes a scipy.sparse matrix, which cannot be part "
                "of a recorded function: take its entries with .values(...), whose places "
                ".pattern(...) gives outside, or use sparse=False"
            )
        values, rows, columns, shape, _ = self._compiled(*args, **kwargs)
        return SparsePattern(rows, columns, tuple(shape.tolist())).matrix(values)

    def pattern(self, *args: Any, **kwargs: Any) -> SparsePattern:
        """Return where the entries are for arguments of this structure; values do not matter."""
        outs = self._compiled.recording(*args, **kwargs).outs
        rows, columns, shape = (np.asarray(out.spec.value) for out in outs[1:4])
        if self._pattern is None or self._pattern.rows is not rows:
            # The same object as long as the recording is the same.
            self._pattern = SparsePattern(rows, columns, tuple(shape.tolist()))
        return self._pattern

    def colors(self, *args: Any, **kwargs: Any) -> int:
        """Return the number of directions a sweep needs for these arguments."""
        return int(self._compiled.recording(*args, **kwargs).outs[4].spec.value)

    def __content__(self) -> tuple[Any, ...]:
        return (self.values, self.symmetric, self.triangle)


def _rows_of_outputs(point: Point) -> np.ndarray:
    """Return the row of each output among the ravelled results: constants have rows too."""
    sizes = [math.prod(out.shape) for out in point.recording.outs]
    traced = [out.spec.traced for out in point.recording.outs]
    return np.flatnonzero(np.repeat(np.array(traced, dtype=bool), sizes))


def _height(point: Point) -> int:
    return sum(math.prod(out.shape) for out in point.recording.outs)


def sparsity(func: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Return the function that computes the structural sparsity pattern of a Jacobian.

    Parameters
    ----------
    func : callable
        The function to differentiate, plain NumPy.
    argnums : int or sequence of int, optional
        Position of the argument to differentiate with respect to, or of several. The first by
        default.

    Returns
    -------
    callable
        Function of the same arguments, which returns a boolean `scipy.sparse.csc_array` over the
        ravelled trees.

    Examples
    --------
    >>> import numpy as np
    >>> sparsity(lambda x: x**2)(np.ones(2)).toarray()
    array([[ True, False],
           [False,  True]])
    """
    derivative = Derivative(func, argnums, "sparsity")

    def run(*args: Any, **kwargs: Any) -> Any:
        from scipy.sparse import csc_array

        rows, columns, shape = _structure(derivative, args, kwargs)
        return csc_array((np.ones(len(rows), dtype=bool), (rows, columns)), shape=shape)

    return run


def structure(func: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """As :func:`sparsity`, but the function gives rows, columns and the shape, by rows."""
    derivative = Derivative(func, argnums, "sparsity")
    return lambda *args: _structure(derivative, args, {})


def _structure(
    derivative: Derivative, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
    with Trace():
        point = derivative.point(args, kwargs)
        nonzero = pattern(point.recording.blocks, point.block_wrt)
    rows = _rows_of_outputs(point)[nonzero.rows]
    return rows, nonzero.columns, (_height(point), len(point.wrt))


def coloring(matrix: Any, mode: str = "column") -> np.ndarray:
    """Colour a sparsity pattern, so that few derivative sweeps give all entries.

    Parameters
    ----------
    matrix : array_like or sparse (m, n)
        The pattern, from :func:`sparsity` or `scipy.sparse`.
    mode : {"column", "row", "star"}, optional
        ``"column"``: for forward mode, columns of one colour share no row. ``"row"``: for reverse
        mode. ``"star"``: for symmetric matrices.

    Returns
    -------
    array of int
        A colour for each column or row. Empty ones have -1.

    Examples
    --------
    >>> import numpy as np
    >>> coloring(np.eye(3)).tolist()
    [0, 0, 0]
    """
    check_choice(mode, "coloring: mode", ("column", "row", "star"))
    nonzero = _pattern_of(matrix)
    if mode != "star":
        return column_colors(nonzero if mode == "column" else nonzero.transpose)
    m, n = nonzero.shape
    if m != n or nonzero.symmetric.rows.size != nonzero.rows.size:
        raise ValueError("coloring: mode='star' needs a symmetric pattern")
    return star_colors(nonzero)


def _pattern_of(matrix: Any) -> Pattern:
    """Return where a matrix, of NumPy or SciPy, is not zero."""
    if np.ndim(matrix) != 2 and len(getattr(matrix, "shape", ())) != 2:
        raise ValueError(f"coloring: a matrix is needed, got shape {np.shape(matrix)}")
    sparse = hasattr(matrix, "tocsr")
    indices = (matrix if sparse else np.asarray(matrix)).nonzero()
    rows, columns = (x.astype(np.int64) for x in indices)
    order = np.lexsort((columns, rows))
    return Pattern(rows[order], columns[order], tuple(matrix.shape if sparse else np.shape(matrix)))
