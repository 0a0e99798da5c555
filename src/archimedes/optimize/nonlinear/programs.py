"""A problem as users write it, for one structure of unknowns and arguments: blocks and layouts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.errors import explained
from archimedes.function import Compiled
from archimedes.function.derivatives.map_places import taken_apart
from archimedes.function.implicit_functions import Fixed
from archimedes.optimize.nonlinear.places import AtPlaces
from archimedes.optimize.problems.blocks import Block
from archimedes.optimize.problems.evaluation import Structure
from archimedes.optimize.problems.limits import name_of
from archimedes.optimize.problems.unknowns import shapes_of
from archimedes.optimize.small.products import UNROLLED
from archimedes.optimize.small.sequential_quadratic import (
    first_state,
    last_state,
    next_state,
    solve_nlp,
)

__all__ = ["Program", "unfixed"]


@dataclass(eq=False)
class Program:
    """Objective and constraints as blocks, for unknowns like ``unknowns``.

    ``parts`` are the objective's parts, and the constraints (by name, if they have names): those
    that are :class:`AtPlaces` are blocks of their own, the rest is one block with one place.
    """

    obj: Compiled
    constr: Compiled | None
    unknowns: Any
    args: tuple[Any, ...]
    parts: tuple[Sequence[Any], Any] = ((), None)

    def __post_init__(self) -> None:
        self.size = tree.ravel(self.unknowns)[0].size
        self._unravel = tree.ravel(self.unknowns)[1]
        self._structure: Structure | None = None
        self._sqp: dict[tuple[float, int], Compiled] = {}
        self._blocks: list[Block] | None = None
        self._recording: Any = None
        #: What the constraints' values look like: the limits are read by it.
        self.values_like = self._constraints_like()
        self.rows = tree.ravel(self.values_like)[0].size if self.constr is not None else 0
        if self.constr is not None and not self.rows:
            raise ValueError("constr returns no numbers: does it end with a return statement?")
        self._check_objective()

    def unravel(self, x: np.ndarray) -> Any:
        """Return a vector of unknowns as the user's tree."""
        return self._unravel(x)

    def _constraints_like(self) -> Any:
        if self.constr is None:
            return {}
        constr = self.parts[1]
        if isinstance(constr, Mapping):
            return {n: self._like(f, f"constr[{n!r}]") for n, f in constr.items()}
        return self._like(constr, "constr")

    def _like(self, function: Any, what: str) -> Any:
        """Return zeros like the values of a function; of places only one is looked at."""
        if not isinstance(function, AtPlaces):
            made = Compiled(lambda x, *args: function(x, *unfixed(args)), name=what)
            return shapes_of(made, self.unknowns, self.args, what)
        function.check(self.size, what)
        func = function.func
        made = Compiled(lambda z, *rest: func(z, *unfixed(rest)), name=what)
        data = tuple(rows[0] for rows in function.data)
        one = shapes_of(made, np.zeros(function.index.shape[1]), (*data, *self.args), what)
        count = len(function.index)
        return tree.map(lambda leaf: np.zeros((count, *np.shape(leaf))), one)

    def _check_objective(self) -> None:
        for part in self.parts[0]:
            leaves = tree.leaves(self._like(part, "obj"))
            wanted = len(part.index) if isinstance(part, AtPlaces) else 1
            if len(leaves) != 1 or np.size(leaves[0]) != wanted:
                shapes = [np.shape(leaf) for leaf in leaves]
                raise ValueError(
                    explained(
                        "objective",
                        f"obj must return one number, it returns {len(leaves)} of shape "
                        f"{shapes}: add "
                        "them up, for example with np.sum",
                    )
                )

    @cached_property
    def func(self) -> Callable[..., Any]:
        """``(x, *args) -> [f, *g]``, all flat."""
        unravel, obj, constr = self._unravel, self.obj, self.constr

        def together(x: Any, *args: Any) -> Any:
            unknowns = unravel(x)
            f = np.reshape(tree.leaves(obj(unknowns, *args))[0] * 1.0, (1,))
            if constr is None:
                return f
            return np.concatenate([f, tree.ravel(constr(unknowns, *args))[0] * 1.0])

        return together

    def blocks(self, args: tuple[Any, ...]) -> list[Block]:
        """Return the blocks: those of places, of maps, and one for the rest."""
        whole: Any = self._whole
        recording = whole.recording(np.zeros(self.size), *args) if self._plain else None
        if self._blocks is None or recording is not self._recording:
            self._recording = recording
            self._blocks = self._made_blocks(recording)
        return self._blocks

    @cached_property
    def _plain(self) -> bool:
        """Whether nothing is given as places."""
        objective, constr = self.parts
        given = [*objective, *(constr.values() if isinstance(constr, Mapping) else (constr,))]
        return not any(isinstance(part, AtPlaces) for part in given)

    @cached_property
    def _whole(self) -> Compiled:
        return Compiled(self.func, name=self.obj.name)

    def _made_blocks(self, recording: Any) -> list[Block]:
        if recording is None:
            return self._placed_blocks()
        index, name = np.arange(self.size)[None], self.obj.name
        # An objective without unknowns has nothing to take apart.
        apart = taken_apart(recording) if recording.graph.outputs else None
        if apart is None:
            return [Block(self.func, index, np.arange(-1, self.rows)[None], name=name)]
        maps, rest = apart
        blocks = [Block(m, m.index, m.rows, (m.data,), f"{name}_map") for m in maps]
        return blocks if rest is None else [*blocks, Block(rest, rest.index, rest.rows, name=name)]

    def _placed_blocks(self) -> list[Block]:
        objective, constr = self.parts
        placed = [p for p in objective if isinstance(p, AtPlaces)]
        ranges = self._row_ranges()
        named = constr if isinstance(constr, Mapping) else {None: constr}
        rows_of = {n: r for n, r in ranges.items() if isinstance(named.get(n), AtPlaces)}
        blocks = [self._placed(p, np.full((len(p.index), 1), -1), "obj") for p in placed]
        for name, rows in rows_of.items():
            part = named[name]
            what = "constr" if name is None else f"constr[{name!r}]"
            blocks.append(self._placed(part, rows.reshape(len(part.index), -1), what))
        rest = [p for p in objective if not isinstance(p, AtPlaces)]
        others = {n: r for n, r in ranges.items() if n not in rows_of}
        if rest or others:
            blocks.append(self._rest(rest, {n: named[n] for n in others}, others))
        return blocks

    def _row_ranges(self) -> dict[Any, np.ndarray]:
        """Rows of each constraint by name (None for one without)."""
        if self.constr is None:
            return {}
        numbers = tree.ravel(self.values_like)[1](np.arange(float(self.rows)))
        if not isinstance(self.parts[1], Mapping):
            return {None: np.arange(self.rows)}
        return {n: tree.ravel(v)[0].astype(np.int64) for n, v in numbers.items()}

    def _placed(self, part: AtPlaces, rows: np.ndarray, what: str) -> Block:
        part.check(self.size, what)
        func = part.func

        def flat(z: Any, *rest: Any) -> Any:
            return tree.ravel(func(z, *unfixed(rest)))[0] * 1.0

        return Block(flat, part.index, rows, part.data, part.__name__)

    def _rest(self, objective: Any, constr: Any, rows: Any) -> Block:
        unravel = self._unravel

        def together(x: Any, *args: Any) -> Any:
            unknowns, given = unravel(x), unfixed(args)
            parts = [np.reshape(sum((f(unknowns, *given) for f in objective), 0.0 * x[0]), (1,))]
            parts += [tree.ravel(f(unknowns, *given))[0] * 1.0 for f in constr.values()]
            return np.concatenate(parts)

        every = np.concatenate([[-1], *(rows[name] for name in constr)])[None]
        return Block(together, np.arange(self.size)[None], every, name=self.obj.name)

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
        made = Compiled(function, name=f"{kind}_{self.obj.name}", loops_from=loops)
        made.drafts = True
        return made

    def structure(self, args: tuple[Any, ...]) -> Structure:
        """Return the sparsity, made anew where what the functions read has changed it."""
        patterns = [block.patterns(args) for block in self.blocks(args)]
        known = self._structure
        if (
            known is None
            or len(known.patterns) != len(patterns)
            or any(a is not b for a, b in zip(patterns, known.patterns))
        ):
            known = Structure(patterns, self.size, self.rows)
            self._check_dependence(known)
            self._structure = known
        return known

    def _check_dependence(self, made: Structure) -> None:
        idle = np.setdiff1d(np.arange(self.rows), made.jac_rows)
        if idle.size:
            name = name_of(self.values_like, int(idle[0]), "constr")
            raise ValueError(
                f"{name} does not depend on any unknown, so that nothing can satisfy or violate "
                "it: leave it out of the constraints"
            )
        used = np.union1d(made.gradient_at, made.jac_columns)
        unused = np.setdiff1d(np.arange(self.size), used)
        if unused.size:
            name = name_of(self.unknowns, int(unused[0]), "x0")
            raise ValueError(
                f"{name} enters neither the objective nor any constraint, so that any value would "
                "do: take it out of the unknowns and pass it in args"
            )


def unfixed(args: Sequence[Any]) -> tuple[Any, ...]:
    """Return arguments with the static ones taken out of their wrapping."""
    return tuple(a.value if isinstance(a, Fixed) else a for a in args)
