"""Problems made of blocks, and their evaluation for a solver.

A block is a small function of few unknowns that is used for many elements. Symbols: x all unknowns
(n,), f objective, g constraints (m,). Block b has a function y = func(z, *data, *args) of local
unknowns z = x[index[k]] (nz,), k = 0..N-1. Number j of y for element k belongs to the row
rows[k, j] of the constraints, or is a summand of the objective where rows[k, j] is -1. sigma and
lam are the weights of the Lagrangian  sigma f + lam . g.

Only ``func`` is recorded and differentiated, so that setting up costs the same whatever N is; all
elements are evaluated by one native kernel over SIMD lanes. An ordinary problem is one block with
one element.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.function import Compiled, SparsePattern, compile, hess, jac, vmap
from archimedes.function.recording_store import compile_frozen
from archimedes.typing import Array

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def with_arguments(func: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Return the function with this many plain arguments: calls of such take the shortest path."""
    names = ", ".join(f"a{k}" for k in range(count))
    plain: Callable[..., Any] = eval(f"lambda func: lambda {names}: func({names})")(func)
    plain.__name__ = getattr(func, "__name__", "block")
    return plain


class Columns:
    """Some columns of matrices with the same number of them, taken row after row."""

    def __init__(self, numbers: np.ndarray) -> None:
        self.numbers, self.size = numbers, numbers.size
        first = int(numbers[0]) if numbers.size else 0
        together = np.array_equal(numbers, np.arange(first, first + numbers.size))
        self._slice = slice(first, first + numbers.size) if together else None

    def of(self, values: np.ndarray) -> np.ndarray:
        """Return the columns as one vector; all of them without a copy."""
        if self._slice is not None:
            return values[:, self._slice].ravel()
        return values.take(self.numbers, axis=1).ravel()


@dataclass(eq=False)
class Block:
    """A function and the elements that it is used for; see the module's text.

    ``data`` are arrays with one row for each element, given to ``func`` after z. ``often`` says
    that it is worth compiling before the first call. Where ``watch`` is given, the block belongs to
    something in the store of recordings, which knows when its function has changed: see
    ``compile_frozen``. Blocks of one function share their ``kernels``.
    """

    func: Callable[..., Any]
    index: np.ndarray
    rows: np.ndarray
    data: tuple[np.ndarray, ...] = ()
    name: str = "block"
    kernels: dict[str, Any] = field(default_factory=dict)
    often: bool = False
    watch: tuple[Any, ...] | None = None
    _patterns: BlockPatterns | None = None
    _calls: dict[tuple[str, int], Any] = field(default_factory=dict, init=False)

    @cached_property
    def takes_first(self) -> bool:
        """Whether z is the beginning of x, if not x itself: then nothing need be gathered."""
        return len(self.index) == 1 and np.array_equal(self.index[0], np.arange(self.index.size))

    @cached_property
    def returns_all(self) -> bool:
        """Whether it is used once, and returns one summand of the objective, then constraints."""
        return len(self.rows) == 1 and self.rows[0, 0] < 0 and self.summands.size == 1

    @cached_property
    def summands(self) -> Columns:
        """Numbers of y that are summands of the objective; the same for all elements."""
        return Columns(np.flatnonzero(self.rows[0] < 0))

    @cached_property
    def constraints(self) -> Columns:
        """Numbers of y that are constraints."""
        return Columns(np.flatnonzero(self.rows[0] >= 0))

    @staticmethod
    def key(what: str, count: int) -> str:
        """Return what a kernel for this many arguments is kept under."""
        return f"{what} {count}"

    def _kernel(self, what: str, count: int) -> Any:
        """Return the value, slope or curvature of one element, for this many arguments."""
        key = self.key(what, count)
        if key not in self.kernels:
            self.kernels[key] = kernel = getattr(self, f"_make_{what}")(count)
            if self.often:
                kernel.compile_at_once()
        return self.kernels[key]

    def _make_value(self, count: int) -> Compiled:
        func = with_arguments(self.func, 1 + count)
        if self.watch is None:
            value = compile(func, name=self.name)
        else:
            value = compile_frozen(func, self.watch, self.name)
        # Recorded once, for itself and for its derivatives.
        value.inline_limit = sys.maxsize
        return value

    def _make_slope(self, count: int) -> Any:
        return jac(self._kernel("value", count), name=f"jac_{self.name}", sparse=True)

    def _make_curvature(self, count: int) -> Any:
        value = self._kernel("value", count)

        def weigh(z: Array, w: Array, *rest: Any) -> Array:
            return np.sum(w * value(z, *rest))

        plain = with_arguments(weigh, 2 + count)
        return hess(plain, name=f"hess_{self.name}", sparse=True).lower

    def compile_at_once(self) -> None:
        """Have all compiled before the next call."""
        self.often = True
        for what, kernel in self.kernels.items():
            if not what.startswith("mapped"):
                kernel.compile_at_once()

    def _prepare(self, what: str, count: int, mapped: int) -> Any:
        """Return what evaluates all elements, kept for this many arguments."""
        call = self._calls.get((what, count))
        if call is None:
            kernel = self._kernel(what, len(self.data) + count)
            call = getattr(kernel, "values", kernel)
            if len(self.index) > 1:
                key = f"mapped {what} {count}"
                if key not in self.kernels:
                    axes = (0,) * (mapped + len(self.data)) + (None,) * count
                    self.kernels[key] = vmap(call, in_axes=axes)
                call = self.kernels[key]
            self._calls[what, count] = call
        return call

    def _call(self, what: str, x: np.ndarray, more: Any, args: Sequence[Any]) -> np.ndarray:
        """Evaluate all elements: returns (N, ...)."""
        call = self._prepare(what, len(args), 1 + len(more))
        if len(self.index) > 1:
            return call(x.take(self.index), *more, *self.data, *args)
        z = x if self.takes_first and x.size == self.index.size else x[self.index[0]]
        if more or self.data:
            args = (*(a[0] for a in (*more, *self.data)), *args)
        return np.asarray(call(z, *args))[None]

    def values(self, x: np.ndarray, args: Sequence[Any]) -> np.ndarray:
        """Return y of all elements, (N, m)."""
        return self._call("value", x, (), args)

    def slopes(self, x: np.ndarray, args: Sequence[Any]) -> np.ndarray:
        """Return the entries of dy/dz of all elements, (N, entries)."""
        return self._call("slope", x, (), args)

    def curvatures(self, x: np.ndarray, weights: np.ndarray, args: Sequence[Any]) -> np.ndarray:
        """Return the lower triangles of d2(weights . y)/dz2, weights (N, m): (N, entries)."""
        if self._patterns is not None and not self._patterns.second.nnz:
            return np.zeros((len(self.index), 0))
        return self._call("curvature", x, (weights,), args)

    def reuse(self, patterns: BlockPatterns) -> None:
        """Take the patterns of a block of the same function and elements."""
        self._patterns = patterns

    def patterns(self, args: Sequence[Any]) -> BlockPatterns:
        """Return where the entries of slopes and curvatures belong in the whole problem."""
        z, rest = np.zeros(self.index.shape[1]), (*(a[0] for a in self.data), *args)
        value, slope, curvature = (
            self._kernel(what, len(rest)) for what in ("value", "slope", "curvature")
        )
        recording, known = value.recording(z, *rest), self._patterns
        if known is None or known.recording is not recording:
            weights = np.zeros(self.rows.shape[1])
            first, second = slope.pattern(z, *rest), curvature.pattern(z, weights, *rest)
            known = self._patterns = BlockPatterns(self, recording, first, second)
        return known


@dataclass(eq=False)
class BlockPatterns:
    """Rows and columns, in the whole problem, of the entries of a block's derivatives."""

    block: Block
    #: That of the block's function: another one may have other patterns.
    recording: object
    first: SparsePattern
    second: SparsePattern

    def __post_init__(self) -> None:
        rows = self.block.rows[0, self.first.rows]
        #: Which entries of a row of ``slopes`` belong to the gradient of the objective.
        self.of_objective, self.of_constraints = np.flatnonzero(rows < 0), np.flatnonzero(rows >= 0)
        self.objective_columns = Columns(self.of_objective)
        self.constraint_columns = Columns(self.of_constraints)

    # Long lists, which not every solver needs.

    @cached_property
    def gradient_at(self) -> np.ndarray:
        """Unknowns that the entries of the gradient belong to."""
        return self._unknowns(self.first.columns[self.of_objective])

    @cached_property
    def rows(self) -> np.ndarray:
        """Rows of the entries of the Jacobian."""
        return self.block.rows.take(self.first.rows[self.of_constraints], axis=1).ravel()

    @cached_property
    def columns(self) -> np.ndarray:
        """Columns of the entries of the Jacobian."""
        return self._unknowns(self.first.columns[self.of_constraints])

    @cached_property
    def hess_rows(self) -> np.ndarray:
        """Rows of the entries of the Hessian's lower triangle."""
        # Local order need not be the global one.
        return np.maximum(*map(self._unknowns, (self.second.rows, self.second.columns)))

    @cached_property
    def hess_columns(self) -> np.ndarray:
        """Columns of the entries of the Hessian's lower triangle."""
        return np.minimum(*map(self._unknowns, (self.second.rows, self.second.columns)))

    def multiply_transpose(self, slopes: np.ndarray, lam: np.ndarray, n: int) -> np.ndarray:
        """Return this block's part of A^T lam (n,), from its slopes (N, entries)."""
        own, block = self.of_constraints, self.block
        products = slopes.take(own, axis=1) * lam[block.rows.take(self.first.rows[own], axis=1)]
        return sum_by_index(self._unknowns(self.first.columns[own]), products.ravel(), n)

    def _unknowns(self, local: np.ndarray) -> np.ndarray:
        return self.block.index.take(local, axis=1).ravel()


class Structure:
    """Where the derivatives of a problem have entries.

    An entry may be listed more than once: its value is then the sum.
    """

    def __init__(self, patterns: Sequence[BlockPatterns], n: int, m: int) -> None:
        self.patterns, self.n, self.m = patterns, n, m
        #: What solvers have prepared for it; whoever works with it takes it out meanwhile.
        self.prepared: dict[Hashable, Any] = {}

    def _join(self, name: str) -> np.ndarray:
        parts = [getattr(p, name) for p in self.patterns]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    # Long lists, which not every solver needs.
    jac_rows = cached_property(lambda self: self._join("rows"))
    jac_columns = cached_property(lambda self: self._join("columns"))
    hess_rows = cached_property(lambda self: self._join("hess_rows"))
    hess_columns = cached_property(lambda self: self._join("hess_columns"))
    gradient_at = cached_property(lambda self: self._join("gradient_at"))

    @cached_property
    def full_gradient(self) -> bool:
        """Whether the entries of the gradient are all its numbers, in order."""
        return np.array_equal(self.gradient_at, np.arange(self.n))

    @cached_property
    def unused_unknowns(self) -> np.ndarray:
        """Unknowns that neither the objective nor a constraint depends on."""
        used = np.zeros(self.n, dtype=bool)
        used[self.gradient_at] = used[self.jac_columns] = True
        return np.flatnonzero(~used)

    def jac_matrix(self, entries: np.ndarray) -> csr_array:
        """Return the Jacobian (m, n) as a ``scipy.sparse.csr_array``."""
        from scipy.sparse import coo_array

        at = (self.jac_rows, self.jac_columns)
        return coo_array((entries, at), shape=(self.m, self.n)).tocsr()

    def hess_matrix(self, entries: np.ndarray) -> csr_array:
        """Return the whole Hessian (n, n) as a ``scipy.sparse.csr_array``."""
        from scipy.sparse import coo_array

        rows, columns, shape = self.hess_rows, self.hess_columns, (self.n, self.n)
        off = rows != columns
        lower = coo_array((entries, (rows, columns)), shape=shape).tocsr()
        return lower + coo_array((entries[off], (columns[off], rows[off])), shape=shape).tocsr()


@dataclass
class _Count:
    calls: int = 0
    seconds: float = 0.0


class Evaluator:
    """One problem with its arguments; remembers the last point, which solvers ask for twice."""

    def __init__(self, blocks: Sequence[Block], structure: Structure, args: Sequence[Any]) -> None:
        self.blocks, self.structure, self.args = blocks, structure, tuple(args)
        self.counts = {"values": _Count(), "slopes": _Count(), "curvature": _Count()}
        self._x: np.ndarray | None = None
        self._bytes = b""
        self._values: tuple[float, np.ndarray] | None = None
        self._slopes: tuple[np.ndarray, list[np.ndarray]] | None = None
        self._entries: np.ndarray | None = None
        # Rows that only one number belongs to need no summing.
        rows = [block.constraints.of(block.rows) for block in blocks]
        self._rows = every = np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)
        self._single = len(every) == structure.m and np.array_equal(every, np.arange(len(every)))
        #: Whether one block with one element returns [f, *g].
        self._returns_all = self._single and len(blocks) == 1 and blocks[0].returns_all

    def _move(self, x: np.ndarray) -> np.ndarray:
        if x is self._x:
            return x
        now = x.tobytes()
        if self._x is None or now != self._bytes:
            # A read-only array need not be copied.
            self._x, self._bytes = x.copy() if x.flags.writeable else x, now
            self._values = self._slopes = None
        return self._x

    def values(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return f and g (m,)."""
        x = self._move(x)
        if self._values is None:
            start = time.perf_counter()
            if self._returns_all:
                y = self.blocks[0].values(x, self.args)[0]
                self._values = y.item(0), y[1:]
            else:
                self._values = self._sum_values(x)
            self._count("values", start)
        return self._values

    def _sum_values(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        total, parts = 0.0, []
        for block in self.blocks:
            y = block.values(x, self.args)
            total += float(block.summands.of(y).sum())
            parts.append(block.constraints.of(y))
        flat = _join(parts)
        return total, flat if self._single else sum_by_index(self._rows, flat, self.structure.m)

    def slopes(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradient of f (n,) and the entries of the Jacobian of g."""
        gradient, parts = self.slope_parts(x)
        if self._entries is None:
            start = time.perf_counter()
            every = zip(self.structure.patterns, parts)
            self._entries = _join([p.constraint_columns.of(part) for p, part in every])
            self.counts["slopes"].seconds += time.perf_counter() - start
        return gradient, self._entries

    def slope_parts(self, x: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return the gradient of f (n,) and the slopes of each block, (elements, entries)."""
        x = self._move(x)
        if self._slopes is None:
            start, structure = time.perf_counter(), self.structure
            parts = [block.slopes(x, self.args) for block in self.blocks]
            every = zip(structure.patterns, parts)
            gradient = _join([p.objective_columns.of(part) for p, part in every])
            if not structure.full_gradient:
                gradient = sum_by_index(structure.gradient_at, gradient, structure.n)
            # Without constraints their Jacobian has no entries.
            self._slopes, self._entries = (gradient, parts), None if structure.m else _NONE
            self._count("slopes", start)
        return self._slopes

    def multiply_transpose(
        self, x: np.ndarray, lam: np.ndarray, absolute: bool = False
    ) -> np.ndarray:
        """Return A^T lam (n,), A the Jacobian of g, or abs(A)^T abs(lam)."""
        n, total = self.structure.n, np.zeros(self.structure.n)
        for pattern, part in zip(self.structure.patterns, self.slope_parts(x)[1]):
            if absolute:
                part, lam = np.abs(part), np.abs(lam)
            total += pattern.multiply_transpose(part, lam, n)
        return total

    def curvature(self, x: np.ndarray, sigma: float, lam: np.ndarray) -> np.ndarray:
        """Return the entries of the lower triangle of the Lagrangian's Hessian."""
        return _join([part.ravel() for part in self.curvature_parts(x, sigma, lam)])

    def curvature_parts(self, x: np.ndarray, sigma: float, lam: np.ndarray) -> list[np.ndarray]:
        """Return the same entries of each block, (elements, entries)."""
        start = time.perf_counter()
        weights = np.concatenate([lam, [sigma]])  # row -1 is the objective
        parts = [block.curvatures(x, weights[block.rows], self.args) for block in self.blocks]
        self._count("curvature", start)
        return parts

    def _count(self, what: str, start: float) -> None:
        count = self.counts[what]
        count.calls += 1
        count.seconds += time.perf_counter() - start


_NONE = np.zeros(0)


def sum_by_index(index: np.ndarray, values: np.ndarray, size: int) -> np.ndarray:
    """Return (size,): for each index the sum of its values."""
    # Of no values NumPy would count integers.
    return np.bincount(index, values, minlength=size) if index.size else np.zeros(size)


def all_finite(values: np.ndarray) -> bool:
    """Return whether all numbers are finite."""
    # Only a sum that is not finite has to be looked at twice: numbers may be too large to add.
    return isfinite(values.sum()) or bool(np.isfinite(values).all())


def _join(parts: list[np.ndarray]) -> np.ndarray:
    """Return vectors as one; where only one has numbers, without a copy."""
    full = [part for part in parts if part.size]
    if len(full) == 1:
        return full[0]
    return np.concatenate(full) if full else np.zeros(0)
