"""A problem as users write it, for one structure of unknowns and arguments: blocks and layouts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.errors import explained
from archimedes.function import Compiled
from archimedes.function.derivatives.map_places import taken_apart
from archimedes.function.identity.store import Current
from archimedes.function.implicit_functions import Fixed
from archimedes.function.prepared_functions import prepared_function
from archimedes.optimize.nonlinear.places import AtPlaces
from archimedes.optimize.problems.blocks import Block, with_arguments
from archimedes.optimize.problems.evaluation import Structure
from archimedes.optimize.problems.unknowns import shapes_of
from archimedes.optimize.small.products import UNROLLED
from archimedes.optimize.small.sequential_quadratic import (
    first_state,
    last_state,
    next_state,
    solve_nlp,
)

__all__ = ["Program", "unfixed"]


class Program:
    """Objective and constraints as blocks, for unknowns like ``unknowns``.

    ``current`` are the functions: ``parts`` of the objective, then the constraints, by ``names``
    (None: one without a name). Those that are :class:`AtPlaces` are blocks of their own, the rest
    is one block with one place. Each function is recorded once.
    """

    def __init__(
        self,
        current: Current,
        parts: int,
        names: tuple[Any, ...],
        unknowns: Any,
        args: tuple[Any, ...],
        name: str,
    ) -> None:
        self.current, self.count, self.names, self.name = current, parts, names, name
        self.unknowns, self.args = unknowns, args
        flat, self._unravel = tree.ravel(unknowns)
        self.size = flat.size
        self._sqp: dict[tuple[float, int], Compiled] = {}
        labels = ["obj"] * parts + ["constr" if n is None else f"constr[{n!r}]" for n in names]
        self._functions = [self._recorded(k, label) for k, label in enumerate(labels)]
        shapes = [self._like(k, label) for k, label in enumerate(labels)]
        #: What the constraints' values look like: the limits are read by it.
        self.values_like = self._by_name(shapes[parts:])
        self.rows = tree.ravel(self.values_like)[0].size if names else 0
        if names and not self.rows:
            raise ValueError("constr returns no numbers: does it end with a return statement?")
        self._check_objective(shapes[:parts])

    def _by_name(self, values: Sequence[Any]) -> Any:
        """Return what belongs to the constraints as they were given."""
        return values[0] if self.names == (None,) else dict(zip(self.names, values))

    def _recorded(self, k: int, label: str) -> Compiled | None:
        """Return one of the functions, recorded once; None if it is used at places."""
        current = self.current
        if isinstance(current.functions[k], AtPlaces):
            return None

        def call(x: Any, *args: Any) -> Any:
            return current.functions[k](x, *unfixed(args))

        made = prepared_function(call, (current,), getattr(current.functions[k], "__name__", label))
        # All are parts of one program, whose maps shall be seen.
        made.inline_limit = sys.maxsize
        return made

    def _value(self, k: int, unknowns: Any, args: tuple[Any, ...]) -> Any:
        """Return the values of one of the functions, in recorded code."""
        recorded = self._functions[k]
        if recorded is not None:
            return recorded(unknowns, *args)
        return self.current.functions[k](unknowns, *unfixed(args))

    def unravel(self, x: np.ndarray) -> Any:
        """Return a vector of unknowns as the user's tree."""
        return self._unravel(x)

    def _like(self, k: int, what: str) -> Any:
        """Return zeros like the values of a function; of places only one is looked at."""
        recorded = self._functions[k]
        if recorded is not None:
            return shapes_of(recorded, self.unknowns, self.args, what)
        current, places = self.current, self.current.functions[k]
        places.check(self.size, what)

        def one_place(z: Any, *rest: Any) -> Any:
            return current.functions[k].func(z, *unfixed(rest))

        made = prepared_function(one_place, (current,), what)
        data = tuple(rows[0] for rows in places.data)
        one = shapes_of(made, np.zeros(places.index.shape[1]), (*data, *self.args), what)
        count = len(places.index)
        return tree.map(lambda leaf: np.zeros((count, *np.shape(leaf))), one)

    def _check_objective(self, shapes: Sequence[Any]) -> None:
        for part, like in zip(self.current.functions, shapes):
            leaves = tree.leaves(like)
            wanted = len(part.index) if isinstance(part, AtPlaces) else 1
            if len(leaves) != 1 or np.size(leaves[0]) != wanted:
                found = [np.shape(leaf) for leaf in leaves]
                raise ValueError(
                    explained(
                        "objective",
                        f"obj must return one number, it returns {len(leaves)} of shape "
                        f"{found}: add "
                        "them up, for example with np.sum",
                    )
                )

    def func(self, x: Any, *args: Any) -> Any:
        """Return ``[f, *g]``, all flat; in recorded code."""
        unknowns, count = self._unravel(x), self.count
        values = [self._value(k, unknowns, args) for k in range(len(self._functions))]
        parts = [sum_of(part) for part in values[:count]]
        f = np.reshape(sum(parts[1:], parts[0]) * 1.0, (1,))
        if not self.names:
            return f
        return np.concatenate([f, tree.ravel(self._by_name(values[count:]))[0] * 1.0])

    @cached_property
    def blocks(self) -> list[Block]:
        """The blocks: those of places, of maps, and one for the rest."""
        if any(function is None for function in self._functions):
            return self._placed_blocks()
        index, name = np.arange(self.size)[None], self.name
        whole = prepared_function(with_arguments(self.func, 1 + len(self.args)), name=name)
        # Recorded once, for itself and for its derivatives.
        whole.inline_limit = sys.maxsize
        recording = whole.recording(np.zeros(self.size), *self.args)
        # An objective without unknowns has nothing to take apart.
        apart = taken_apart(recording) if recording.graph.outputs else None
        if apart is None:
            rows = np.arange(-1, self.rows)[None]
            kernels = {Block.key("value", len(self.args)): whole}
            return [Block(self.func, index, rows, name=name, kernels=kernels, watch=())]
        maps, rest = apart
        blocks = [Block(m, m.index, m.rows, (m.data,), f"{name}_map", watch=()) for m in maps]
        if rest is not None:
            blocks.append(Block(rest, rest.index, rest.rows, name=name, watch=()))
        return blocks

    def _placed_blocks(self) -> list[Block]:
        functions, count = self.current.functions, self.count
        ranges = self._row_ranges()
        blocks, rest, rows = [], [], [np.zeros(0, dtype=np.int64)]
        for k in range(count):
            if self._functions[k] is None:
                places = len(functions[k].index)
                blocks.append(self._placed(k, np.full((places, 1), -1)))
            else:
                rest.append(k)
        summands = len(rest)
        for k, name in enumerate(self.names, count):
            if self._functions[k] is None:
                places = len(functions[k].index)
                blocks.append(self._placed(k, ranges[name].reshape(places, -1)))
            else:
                rest.append(k)
                rows.append(ranges[name])
        if rest:
            blocks.append(self._rest(rest[:summands], rest[summands:], np.concatenate(rows)))
        return blocks

    def _row_ranges(self) -> dict[Any, np.ndarray]:
        """Rows of each constraint by name (None for one without)."""
        if not self.names:
            return {}
        numbers = tree.ravel(self.values_like)[1](np.arange(float(self.rows)))
        if self.names == (None,):
            return {None: np.arange(self.rows)}
        return {n: tree.ravel(v)[0].astype(np.int64) for n, v in numbers.items()}

    def _placed(self, k: int, rows: np.ndarray) -> Block:
        current, part = self.current, self.current.functions[k]

        def flat(z: Any, *rest: Any) -> Any:
            return tree.ravel(current.functions[k].func(z, *unfixed(rest)))[0] * 1.0

        return Block(flat, part.index, rows, part.data, part.__name__, watch=(current,))

    def _rest(self, objective: Sequence[int], constr: Sequence[int], rows: np.ndarray) -> Block:
        """Return the block of what is not used at places: these functions, rows of constraints."""

        def together(x: Any, *args: Any) -> Any:
            unknowns = self._unravel(x)
            values = [sum_of(self._value(k, unknowns, args)) for k in objective]
            parts = [np.reshape(sum(values, 0.0 * x[0]), (1,))]
            parts += [tree.ravel(self._value(k, unknowns, args))[0] * 1.0 for k in constr]
            return np.concatenate(parts)

        every = np.concatenate([[-1], rows])[None]
        return Block(together, np.arange(self.size)[None], every, name=self.name, watch=())

    def compile_at_once(self) -> None:
        """Have the blocks compiled before they are evaluated again."""
        for block in self.blocks:
            block.compile_at_once()

    def sqp_kernel(self, tol: float, max_iter: int) -> Compiled:
        """Return ``(x0, limits, *args) -> SQPSolution``, recorded once."""
        key = (tol, max_iter)
        if key not in self._sqp:
            func = self.func

            def sqp(x0: Any, limits: Any, *args: Any) -> Any:
                call = lambda x: func(x, *args)  # noqa: E731
                return solve_nlp(call, x0, limits, tol=tol, max_iter=max_iter)

            self._sqp[key] = self._quick(sqp, "sqp")
        return self._sqp[key]

    def sqp_steps(self, tol: float) -> tuple[Any, Any, Any]:
        """Return the solver taken apart: how it begins, one iteration, how it ends.

        They are the parts that ``sqp_kernel`` has in one piece, with the same bits.
        """
        key = (tol, 0)
        if key not in self._sqp:
            func = self.func

            def sqp_step(state: Any, limits: Any, *args: Any) -> Any:
                return next_state(lambda x: func(x, *args), state, limits, tol)

            self._sqp[key] = self._quick(sqp_step, "sqp_step")
        return first_state, self._sqp[key], last_state

    def _quick(self, function: Callable[..., Any], kind: str) -> Compiled:
        """Record a solver; its first calls, which are short, run on code made in a hurry."""
        loops = UNROLLED if self.size > UNROLLED else None
        made = prepared_function(function, name=f"{kind}_{self.name}", loops_from=loops)
        made.drafts = True
        return made

    @cached_property
    def structure(self) -> Structure:
        """The sparsity of all derivatives."""
        patterns = [block.patterns(self.args) for block in self.blocks]
        made = Structure(patterns, self.size, self.rows)
        self._check_dependence(made)
        return made

    def _check_dependence(self, made: Structure) -> None:
        if made.unused_unknowns.size == self.size:
            raise ValueError(
                "neither the objective nor any constraint depends on the unknowns x0: do the "
                "functions use their first argument?"
            )


def sum_of(values: Any) -> Any:
    """Return a part of the objective as one number: that of places is a sum."""
    return np.sum(tree.leaves(values)[0])


def unfixed(args: Sequence[Any]) -> tuple[Any, ...]:
    """Return arguments with the static ones taken out of their wrapping."""
    return tuple(a.value if isinstance(a, Fixed) else a for a in args)
