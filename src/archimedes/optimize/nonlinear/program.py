"""Constraints as users give them: a function, or several by name, with limits for each.

``AtPlaces``: a function of few unknowns, used at many places of a large problem.

A problem as users write it, for one structure of unknowns and arguments: blocks and layouts.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.errors import explained
from archimedes.function import Compiled, vmap
from archimedes.function.derivatives.map_places import taken_apart
from archimedes.function.identity.store import Current
from archimedes.function.implicit_functions import Fixed
from archimedes.function.prepared_functions import prepared_function
from archimedes.optimize.problems.blocks import Block, with_arguments
from archimedes.optimize.problems.evaluation import Structure
from archimedes.optimize.problems.unknowns import limits, shapes_of
from archimedes.optimize.small.linear_algebra import UNROLLED
from archimedes.optimize.small.sequential_quadratic import (
    first_state,
    last_state,
    next_state,
    solve_nlp,
)

__all__ = [
    "AtPlaces",
    "Program",
    "check_objective",
    "constraint_limits",
    "is_list",
    "list_names",
    "named_constraints",
    "residuals_by_name",
    "unfixed",
]

#: Without limits a constraint is an equation.
EQUATION = (0.0, 0.0)


def named_constraints(constr: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the names of constraints and their functions.

    ``constr`` is None, a function, whose name is None here, a dict of functions, or a list of
    them, which are named by their ``__name__`` (or constr0, constr1, ...).
    """
    if constr is None:
        return (), ()
    if callable(constr):
        return (None,), (constr,)
    if isinstance(constr, Mapping):
        named = dict(constr)
    elif is_list(constr):
        named = dict(zip(list_names(constr), constr))
    else:
        raise TypeError(
            f"constr must be a function, a dict of functions or a list of them, got "
            f"{type(constr).__name__}: write constr=c, not constr=c(x)"
        )
    for name, function in named.items():
        if not callable(function):
            raise TypeError(f"constr[{name!r}] must be a function, got {type(function).__name__}")
    return tuple(named), tuple(named.values())


def is_list(constr: Any) -> bool:
    """Whether constraints are given as a list."""
    return isinstance(constr, Sequence) and not isinstance(constr, str)


def list_names(constr: Sequence[Any]) -> list[str]:
    """Return names of functions in a list: their own where those tell them apart."""
    own = [getattr(function, "__name__", "<lambda>") for function in constr]
    count = Counter(own)
    unique = [name != "<lambda>" and count[name] == 1 for name in own]
    return [name if good else f"constr{k}" for k, (name, good) in enumerate(zip(own, unique))]


def constraint_limits(given: Any, like: Any, constr: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return low and high (m,) of constraints whose values are like ``like``."""
    if is_list(constr) and given is not None and not isinstance(given, Mapping):
        if len(given) != len(constr):
            raise ValueError(
                f"constr_bounds lists {len(given)} pairs (lower, upper) for {len(constr)} "
                "constraints"
            )
        given = dict(zip(list_names(constr), given))
    return limits(given, like, "constr_bounds", EQUATION)


def residuals_by_name(
    g: np.ndarray, low: np.ndarray, high: np.ndarray, like: Any
) -> dict[str, float]:
    """Return by how much each leaf of the constraints is violated at most."""
    off = np.maximum(np.maximum(low - g, g - high), 0.0)
    leaves, treedef = tree.flatten(like)
    found, at = {}, 0
    for leaf, path in zip(leaves, treedef.paths("constr")):
        size = int(np.size(leaf))
        found[path] = float(np.max(off[at : at + size], initial=0.0))
        at += size
    return found


class AtPlaces:
    """A function that is evaluated at many places: many terms or constraints.

    For all k it is ``func(z, *data[k], *args)`` with z = x[index[k]]. As the objective of
    :func:`minimize` it is the sum of the terms, as a constraint their array (places, ...). Only
    `func` is recorded, differentiated and compiled, so that the time to set up does not depend on
    the number of places. They are evaluated together on SIMD lanes. Called with unknowns, it
    evaluates all places as a plain function.

    Parameters
    ----------
    func : callable
        Function ``func(z, *data[k], *args)`` of the unknowns z at one place.
    index : array of int (places, nz)
        Numbers of the ravelled unknowns that each place takes.
    *data
        Arrays with a row for each place.

    Examples
    --------
    >>> pairs = np.stack([np.arange(4), np.arange(1, 5)], axis=1)
    >>> AtPlaces(lambda z: z[1] - z[0], pairs)(np.arange(5.0) ** 2)
    array([1., 3., 5., 7.])
    """

    def __init__(self, func: Callable[..., Any], index: Any, *data: Any) -> None:
        if not callable(func):
            raise TypeError("AtPlaces: func must be a function of z, the unknowns of one place")
        self.func = func
        self.index = np.array(index)
        if self.index.ndim != 2 or not np.issubdtype(self.index.dtype, np.integer):
            raise ValueError(
                f"AtPlaces: index must be an array of integers (places, unknowns of each), it is "
                f"{self.index.dtype} of shape {self.index.shape}"
            )
        self.data = tuple(np.asarray(rows) * 1.0 for rows in data)
        for k, rows in enumerate(self.data):
            if len(rows) != len(self.index):
                raise ValueError(
                    f"AtPlaces: data {k} has {len(rows)} rows for {len(self.index)} places"
                )
        for rows in (self.index, *self.data):
            rows.flags.writeable = False  # so that nobody need compare them
        self.__name__ = getattr(func, "__name__", "places")

    def __call__(self, x: Any, *args: Any) -> Any:
        """Return the values at all places, (places, ...)."""
        flat = tree.ravel(x)[0]
        axes = (0,) * (1 + len(self.data)) + (None,) * len(args)
        return vmap(self.func, in_axes=axes)(flat[self.index], *self.data, *args)

    def check(self, size: int, what: str) -> None:
        """Raise if a place takes an unknown that is not there.

        Parameters
        ----------
        size : int
            Number of unknowns.
        what : str
            Name in the error message.
        """
        if self.index.size and not 0 <= self.index.min() <= self.index.max() < size:
            raise ValueError(
                f"{what}: index goes from {self.index.min()} to {self.index.max()}, but there are "
                f"{size} unknowns"
            )

    def __content__(self) -> tuple[Any, ...]:
        return (self.func, self.index, *self.data)


def check_objective(parts: Sequence[Any]) -> Any:
    """Return the part that names an objective; raise if one is no function."""
    if not parts or not all(callable(part) for part in parts):
        bad = [type(part).__name__ for part in parts if not callable(part)]
        raise TypeError(
            f"obj must be a function (or a list of functions to add), got "
            f"{bad[0] if bad else 'an empty list'}: write minimize(f, x0), not minimize(f(x0), x0)"
        )
    return parts[0]


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
