"""Problems made of blocks: small functions of few unknowns, each used at many places.

Symbols: x all unknowns (n,); block b has a function y = func(z, *data, *args) of local unknowns
z = x[index[k]] (nz,), k = 0..N-1, with y (m,). Its number j at place k belongs to the row
rows[k, j] of the constraints, or is a summand of the objective where rows[k, j] is -1.

Only ``func`` is recorded and differentiated, so that setting up costs the same whatever N is;
all places are evaluated by one native kernel over SIMD lanes. An ordinary problem is one block
with one place.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from archimedes.function import SparsePattern, compile, hess, jac, vmap
from archimedes.function.prepared_functions import prepared_function

__all__ = ["Block", "BlockPatterns"]


def with_arguments(func: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Return the function with this many plain arguments: calls of such take the shortest path."""
    names = ", ".join(f"a{k}" for k in range(count))
    made: Callable[..., Any] = eval(f"lambda func: lambda {names}: func({names})")(func)
    made.__name__ = getattr(func, "__name__", "block")
    return made


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
    """A function and the places where it is used; see the module's text.

    ``data`` are arrays with one row for each place, given to ``func`` after z. ``often`` says that
    it is worth compiling before the first call. Where ``watch`` is given, the block belongs to
    something in the store of recordings, which knows when its function has changed: see
    ``prepared_function``.
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

    @property
    def places(self) -> int:
        """How often the function is used."""
        return len(self.index)

    @cached_property
    def whole(self) -> bool:
        """Whether z is the beginning of x, if not x itself: then nothing need be gathered."""
        return len(self.index) == 1 and np.array_equal(self.index[0], np.arange(self.index.size))

    @cached_property
    def returns_all(self) -> bool:
        """Whether it is used once, and returns one summand of the objective, then constraints."""
        return len(self.rows) == 1 and self.rows[0, 0] < 0 and self.summands.size == 1

    @cached_property
    def summands(self) -> Columns:
        """Numbers of y that are summands of the objective; the same at all places."""
        return Columns(np.flatnonzero(self.rows[0] < 0))

    @cached_property
    def constraints(self) -> Columns:
        """Numbers of y that are constraints."""
        return Columns(np.flatnonzero(self.rows[0] >= 0))

    def _kept(self, what: str, count: int, make: Callable[[], Any]) -> Any:
        """Return what is kept for this many arguments; blocks of one function share it."""
        key = self.key(what, count)
        if key not in self.kernels:
            self.kernels[key] = made = make()
            if self.often:
                made.compile_at_once()
        return self.kernels[key]

    def compile_at_once(self) -> None:
        """Have all compiled before the next call."""
        self.often = True
        for what, kernel in self.kernels.items():
            if not what.startswith("mapped"):
                kernel.compile_at_once()

    @staticmethod
    def key(what: str, count: int) -> str:
        """Return what a kernel for this many arguments is kept under."""
        return f"{what} {count}"

    def _compiled(self, func: Callable[..., Any], name: str) -> Any:
        if self.watch is None:
            return compile(func, name=name)
        return prepared_function(func, self.watch, name)

    def _value(self, count: int) -> Any:
        def make() -> Any:
            made = self._compiled(with_arguments(self.func, 1 + count), self.name)
            # Recorded once, for itself and for its derivatives.
            made.inline_limit = sys.maxsize
            return made

        return self._kept("value", count, make)

    def _slope(self, count: int) -> Any:
        def make() -> Any:
            return jac(self._value(count), name=f"jac_{self.name}", sparse=True)

        return self._kept("slope", count, make)

    def _curvature(self, count: int) -> Any:
        value = self._value(count)

        def weighted(z: Any, w: Any, *rest: Any) -> Any:
            return np.sum(w * value(z, *rest))

        def make() -> Any:
            fixed = with_arguments(weighted, 2 + count)
            return hess(fixed, name=f"hess_{self.name}", sparse=True).lower

        return self._kept("curvature", count, make)

    def _ready(self, what: str, count: int, mapped: int) -> Any:
        """Return what evaluates at all places, kept for this many arguments."""
        found = self._calls.get((what, count))
        if found is None:
            kernel = getattr(self, f"_{what}")(len(self.data) + count)
            found = getattr(kernel, "values", kernel)
            if self.places > 1:
                key = f"mapped {what} {count}"
                if key not in self.kernels:
                    axes = (0,) * (mapped + len(self.data)) + (None,) * count
                    self.kernels[key] = vmap(found, in_axes=axes)
                found = self.kernels[key]
            self._calls[what, count] = found
        return found

    def _call(self, what: str, x: np.ndarray, more: Any, args: Sequence[Any]) -> Any:
        """Evaluate at all places: returns (N, ...)."""
        run = self._ready(what, len(args), 1 + len(more))
        if self.places > 1:
            return run(x.take(self.index), *more, *self.data, *args)
        z = x if self.whole and x.size == self.index.size else x[self.index[0]]
        if more or self.data:
            args = (*(a[0] for a in (*more, *self.data)), *args)
        return np.asarray(run(z, *args))[None]

    def values(self, x: np.ndarray, args: Sequence[Any]) -> np.ndarray:
        """Return y at all places, (N, m)."""
        return self._call("value", x, (), args)

    def slopes(self, x: np.ndarray, args: Sequence[Any]) -> np.ndarray:
        """Return the entries of dy/dz at all places, (N, entries)."""
        return self._call("slope", x, (), args)

    def curvatures(self, x: np.ndarray, weights: np.ndarray, args: Sequence[Any]) -> np.ndarray:
        """Return the lower triangles of d2(weights . y)/dz2, weights (N, m): (N, entries)."""
        if self._patterns is not None and not self._patterns.second.nnz:
            return np.zeros((self.places, 0))
        return self._call("curvature", x, (weights,), args)

    def reuse(self, patterns: BlockPatterns) -> None:
        """Take the patterns of a block of the same function and elements."""
        self._patterns = patterns

    def patterns(self, args: Sequence[Any]) -> BlockPatterns:
        """Return where the entries of slopes and curvatures belong in the whole problem."""
        z = np.zeros(self.index.shape[1])
        data = tuple(a[0] for a in self.data)
        count = len(data) + len(args)
        recording = self._value(count).recording(z, *data, *args)
        known = self._patterns
        if known is None or known.recording is not recording:
            first = self._slope(count).pattern(z, *data, *args)
            second = self._curvature(count).pattern(z, np.zeros(self.rows.shape[1]), *data, *args)
            known = self._patterns = BlockPatterns(self, recording, first, second)
        return known


@dataclass(eq=False)
class BlockPatterns:
    """Rows and columns, in the whole problem, of the entries of a block's derivatives."""

    block: Block
    #: That of the block's function: another one may have other patterns.
    recording: Any
    first: SparsePattern
    second: SparsePattern

    def __post_init__(self) -> None:
        block, first = self.block, self.first
        #: Which entries of a row of ``slopes`` belong to the gradient of the objective.
        self.of_objective = np.flatnonzero(block.rows[0, first.rows] < 0)
        self.of_constraints = np.flatnonzero(block.rows[0, first.rows] >= 0)
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

    def transposed(self, slopes: np.ndarray, lam: np.ndarray, n: int, absolute: bool) -> np.ndarray:
        """Return this block's part of A^T lam (n,), from its slopes (N, entries).

        With ``absolute`` it is that of abs(A)^T abs(lam).
        """
        mine, block = self.of_constraints, self.block
        products = slopes.take(mine, axis=1) * lam[block.rows.take(self.first.rows[mine], axis=1)]
        places = block.index.take(self.first.columns[mine], axis=1).ravel()
        weights = (np.abs(products) if absolute else products).ravel()
        return np.bincount(places, weights, minlength=n) if places.size else np.zeros(n)

    def _unknowns(self, local: np.ndarray) -> np.ndarray:
        return self.block.index.take(local, axis=1).ravel()
