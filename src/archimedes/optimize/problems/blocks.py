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
from typing import Any

import numpy as np

from archimedes.function import Compiled, SparsePattern, compile, hess, jac, vmap
from archimedes.function.recording_store import compile_frozen
from archimedes.typing import Array


def with_arguments(func: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Return the function with this many plain arguments: calls of such take the shortest path."""
    names = ", ".join(f"a{k}" for k in range(count))
    plain: Callable[..., Any] = eval(f"lambda func: lambda {names}: func({names})")(func)
    plain.__name__ = getattr(func, "__name__", "block")
    return plain


def select_columns(values: np.ndarray, columns: slice | np.ndarray) -> np.ndarray:
    """Return some columns of a matrix as one vector, row after row; all without a copy."""
    if isinstance(columns, slice):
        return values[:, columns].ravel()
    return values.take(columns, axis=1).ravel()


def _find_columns(chosen: np.ndarray) -> slice | np.ndarray:
    """Return the numbers of the chosen columns, as a slice where they lie side by side."""
    numbers = np.flatnonzero(chosen)
    first, end = (int(numbers[0]), int(numbers[-1]) + 1) if numbers.size else (0, 0)
    return slice(first, end) if end - first == numbers.size else numbers


@dataclass(eq=False, repr=False)
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
    #: Those of an earlier block of the same function and elements, if there was one.
    known_patterns: BlockPatterns | None = None
    _calls: dict[tuple[str, int], Any] = field(default_factory=dict, init=False)

    @cached_property
    def takes_first(self) -> bool:
        """Whether z is the beginning of x, if not x itself: then nothing need be gathered."""
        return len(self.index) == 1 and np.array_equal(self.index[0], np.arange(self.index.size))

    @cached_property
    def summands(self) -> slice | np.ndarray:
        """Numbers of y that are summands of the objective; the same for all elements."""
        return _find_columns(self.rows[0] < 0)

    @cached_property
    def constraints(self) -> slice | np.ndarray:
        """Numbers of y that are constraints."""
        return _find_columns(self.rows[0] >= 0)

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
        if self.known_patterns is not None and not self.known_patterns.second.nnz:
            return np.zeros((len(self.index), 0))
        return self._call("curvature", x, (weights,), args)

    def patterns(self, args: Sequence[Any]) -> BlockPatterns:
        """Return where the entries of slopes and curvatures belong in the whole problem."""
        z, rest = np.zeros(self.index.shape[1]), (*(a[0] for a in self.data), *args)
        kinds = ("value", "slope", "curvature")
        value, slope, curvature = (self._kernel(what, len(rest)) for what in kinds)
        recording, known = value.recording(z, *rest), self.known_patterns
        if known is None or known.recording is not recording:
            weights = np.zeros(self.rows.shape[1])
            first, second = slope.pattern(z, *rest), curvature.pattern(z, weights, *rest)
            known = self.known_patterns = BlockPatterns(self, recording, first, second)
        return known


@dataclass(eq=False, repr=False)
class BlockPatterns:
    """Rows and columns, in the whole problem, of the entries of a block's derivatives."""

    block: Block
    #: That of the block's function: another one may have other patterns.
    recording: object
    first: SparsePattern
    second: SparsePattern

    def __post_init__(self) -> None:
        self.is_constraint = self.block.rows[0, self.first.rows] >= 0
        #: Which entries of a row of ``slopes`` belong to the gradient of the objective.
        self.of_objective = _find_columns(~self.is_constraint)
        self.of_constraints = _find_columns(self.is_constraint)

    def unknowns(self, local: np.ndarray) -> np.ndarray:
        """Return the numbers of local unknowns in the whole problem, element after element."""
        return self.block.index.take(local, axis=1).ravel()

    def hess_pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return rows and columns of the entries of the Hessian's lower triangle."""
        # Local order need not be the global one.
        pair = self.unknowns(self.second.rows), self.unknowns(self.second.columns)
        return np.maximum(*pair), np.minimum(*pair)


class Structure:
    """Where the derivatives of a problem have entries.

    An entry may be listed more than once: its value is then the sum.
    """

    def __init__(self, patterns: Sequence[BlockPatterns], n: int, m: int) -> None:
        self.patterns, self.n, self.m = patterns, n, m
        #: What solvers have prepared for it; whoever works with it takes it out meanwhile.
        self.prepared: dict[Hashable, Any] = {}

    # Long lists, which not every solver needs.

    @cached_property
    def gradient_at(self) -> np.ndarray:
        """Unknowns that the entries of the gradient belong to."""
        return _join([p.unknowns(p.first.columns[p.of_objective]) for p in self.patterns])

    @cached_property
    def jac_rows(self) -> np.ndarray:
        """Rows of the entries of the Jacobian."""
        local = ((p.block.rows, p.first.rows[p.of_constraints]) for p in self.patterns)
        return _join([rows.take(own, axis=1).ravel() for rows, own in local])

    @cached_property
    def jac_columns(self) -> np.ndarray:
        """Columns of the entries of the Jacobian."""
        return _join([p.unknowns(p.first.columns[p.of_constraints]) for p in self.patterns])

    @cached_property
    def hess_pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the entries of the Hessian's lower triangle."""
        rows, columns = zip(*(pattern.hess_pairs() for pattern in self.patterns))
        return _join(list(rows)), _join(list(columns))

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

    def jacobian(self, entries: np.ndarray) -> np.ndarray:
        """Return the Jacobian (m, n)."""
        A = np.zeros((self.m, self.n))
        np.add.at(A, (self.jac_rows, self.jac_columns), entries)
        return A

    def hessian(self, entries: np.ndarray) -> np.ndarray:
        """Return the whole Hessian (n, n)."""
        lower = np.zeros((self.n, self.n))
        np.add.at(lower, self.hess_pairs, entries)
        return lower + np.tril(lower, -1).T


@dataclass(eq=False, repr=False)
class _Count:
    calls: int = 0
    seconds: float = 0.0

    def add(self, start: float) -> None:
        """Count a call that began at ``start``."""
        self.calls += 1
        self.seconds += time.perf_counter() - start


class Evaluator:
    """One problem with its arguments; remembers the last point, which solvers ask for twice."""

    def __init__(self, blocks: Sequence[Block], structure: Structure, args: Sequence[Any]) -> None:
        self.blocks, self.structure, self.args = blocks, structure, tuple(args)
        self.counts = {"values": _Count(), "slopes": _Count(), "curvature": _Count()}
        self._x: np.ndarray | None = None
        self._bytes = b""
        self._values: tuple[float, np.ndarray] | None = None
        self._slopes: tuple[np.ndarray, np.ndarray] | None = None
        # Rows that only one number belongs to need no summing.
        self._rows = every = _join([select_columns(b.rows, b.constraints) for b in blocks])
        self._single = len(every) == structure.m and np.array_equal(every, np.arange(len(every)))

    def summarize(self, seconds: float) -> tuple[dict[str, int], dict[str, float]]:
        """Return how often each was evaluated, and how long that and the whole solve took."""
        times = {name: count.seconds for name, count in self.counts.items()}
        return {n: c.calls for n, c in self.counts.items()}, {**times, "solve": seconds}

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
            start, total, parts = time.perf_counter(), 0.0, []
            for block in self.blocks:
                y = block.values(x, self.args)
                summands = select_columns(y, block.summands)
                total += summands.item() if summands.size == 1 else float(summands.sum())
                parts.append(select_columns(y, block.constraints))
            g = _join(parts)
            g = g if self._single else sum_by_index(self._rows, g, self.structure.m)
            self._values = total, g
            self.counts["values"].add(start)
        return self._values

    def slopes(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradient of f (n,) and the entries of the Jacobian of g."""
        x, structure = self._move(x), self.structure
        if self._slopes is None:
            start = time.perf_counter()
            parts = [block.slopes(x, self.args) for block in self.blocks]
            every = list(zip(structure.patterns, parts))
            gradient = _join([select_columns(part, p.of_objective) for p, part in every])
            if not structure.full_gradient:
                gradient = sum_by_index(structure.gradient_at, gradient, structure.n)
            entries = _join([select_columns(part, p.of_constraints) for p, part in every])
            self._slopes = gradient, entries
            self.counts["slopes"].add(start)
        return self._slopes

    def multiply_transpose(
        self, x: np.ndarray, lam: np.ndarray, absolute: bool = False
    ) -> np.ndarray:
        """Return A^T lam (n,), A the Jacobian of g, or abs(A)^T abs(lam)."""
        products = self.slopes(x)[1] * lam[self.structure.jac_rows]
        products = np.abs(products) if absolute else products
        return sum_by_index(self.structure.jac_columns, products, self.structure.n)

    def curvature(self, x: np.ndarray, sigma: float, lam: np.ndarray) -> np.ndarray:
        """Return the entries of the lower triangle of the Lagrangian's Hessian."""
        start = time.perf_counter()
        weights = np.concatenate([lam, [sigma]])  # row -1 is the objective
        parts = [block.curvatures(x, weights[block.rows], self.args) for block in self.blocks]
        entries = _join([part.ravel() for part in parts])
        self.counts["curvature"].add(start)
        return entries


def sum_by_index(index: np.ndarray, values: np.ndarray, size: int) -> np.ndarray:
    """Return (size,): for each index the sum of its values."""
    # Of no values NumPy would count integers.
    return np.bincount(index, values, minlength=size) if index.size else np.zeros(size)


def _join(parts: list[np.ndarray]) -> np.ndarray:
    """Return vectors as one; where only one has numbers, without a copy."""
    full = [part for part in parts if part.size] or parts[:1]
    return full[0] if len(full) == 1 else np.concatenate(full)
