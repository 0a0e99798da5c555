"""A problem as users write it, for one structure of unknowns and arguments.

Constraints are a function or several by name. An `ElementFunction` is a function of few unknowns,
evaluated for many elements of a large problem. A `Program` makes blocks of them all.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.checks import check_callable
from archimedes.errors import refer_to
from archimedes.function import Compiled, vmap
from archimedes.function.derivatives.map_splitting import split_into_maps
from archimedes.function.implicit_functions import Fixed
from archimedes.function.recording_store import Current, compile_frozen
from archimedes.optimize.problems.blocks import Block, Structure, with_arguments
from archimedes.optimize.problems.unknowns import find_result_shapes, read_limits
from archimedes.records import record
from archimedes.typing import Array, ArrayLike, Tree

__all__ = ["ElementFunction"]


@record
class Constraints:
    """Functions of constraints by name; one that is given alone has the name None.

    ``listed`` are the names in the order of a list, if they were given as one.
    """

    names: tuple[str | None, ...] = ()
    functions: tuple[Callable[..., Any], ...] = ()
    listed: tuple[str, ...] = ()

    @classmethod
    def read(cls, constr: Any) -> Constraints:
        """Read a function, a dict of functions, or a list of them.

        Those of a list are named by their ``__name__``, or constr0, constr1, ...
        """
        if constr is None:
            return cls()
        if callable(constr):
            return cls((None,), (constr,))
        is_list = isinstance(constr, Sequence) and not isinstance(constr, str)
        if not is_list and not isinstance(constr, Mapping):
            raise TypeError(
                f"constr must be a function, a dict of functions or a list of them, got "
                f"{type(constr).__name__}: write constr=c, not constr=c(x)"
            )
        by_name = dict(zip(_name_functions(constr), constr)) if is_list else dict(constr)
        for name, function in by_name.items():
            check_callable(function, f"constr[{name!r}]")
        listed = list(by_name)
        # In the order of the leaves of a dict.
        names = [listed[k] for k in tree.leaves({name: k for k, name in enumerate(listed)})]
        functions = tuple(by_name[name] for name in names)
        return cls(tuple(names), functions, tuple(listed) if is_list else ())

    def join(self, values: Sequence[Any]) -> Any:
        """Return what belongs to the constraints in the structure that they were given in."""
        return values[0] if self.names == (None,) else dict(zip(self.names, values))

    def limits(self, bounds: Any, like: Tree) -> tuple[np.ndarray, np.ndarray]:
        """Return low and high (m,) of constraints whose values are like ``like``.

        Without limits a constraint is an equation.
        """
        if not self.names:
            if bounds is not None:
                raise ValueError("constr_bounds is given, but there is no constr: give constr too")
            return np.zeros(0), np.zeros(0)
        if self.listed and bounds is not None and not isinstance(bounds, Mapping):
            if len(bounds) != len(self.listed):
                counts = f"{len(bounds)} pairs (lower, upper) for {len(self.listed)} constraints"
                raise ValueError(f"constr_bounds lists {counts}")
            bounds = dict(zip(self.listed, bounds))
        return read_limits(bounds, like, "constr_bounds", (0.0, 0.0))


def _name_functions(functions: Sequence[Any]) -> list[str]:
    """Return names of functions in a list: their own where those tell them apart."""
    own = [getattr(function, "__name__", "<lambda>") for function in functions]
    count = Counter(own)
    unique = [name != "<lambda>" and count[name] == 1 for name in own]
    return [name if good else f"constr{k}" for k, (name, good) in enumerate(zip(own, unique))]


class ElementFunction:
    """A function of few unknowns that is evaluated for many elements: many terms or constraints.

    For all k it is ``func(z, *data[k], *args)`` with z = x[index[k]]. As the objective of
    :func:`minimize` it is the sum of the terms, as a constraint their array (elements, ...). Only
    `func` is recorded, differentiated and compiled, so that the time to set up does not depend on
    the number of elements. They are evaluated together on SIMD lanes. Called with unknowns, it
    evaluates all elements as a plain function.

    Parameters
    ----------
    func : callable
        Function ``func(z, *data[k], *args)`` of the unknowns z of one element.
    index : array of int (elements, nz)
        Numbers of the ravelled unknowns that each element takes.
    *data
        Arrays with a row for each element.

    Examples
    --------
    >>> pairs = np.stack([np.arange(4), np.arange(1, 5)], axis=1)
    >>> ElementFunction(lambda z: z[1] - z[0], pairs)(np.arange(5.0) ** 2)
    array([1., 3., 5., 7.])
    """

    def __init__(self, func: Callable[..., Any], index: ArrayLike, *data: ArrayLike) -> None:
        check_callable(func, "ElementFunction: func", "of z, the unknowns of one element")
        self.func = func
        self.index = np.array(index)
        if self.index.ndim != 2 or not np.issubdtype(self.index.dtype, np.integer):
            raise ValueError(
                "ElementFunction: index must be an array of integers (elements, unknowns of each), "
                f"it is {self.index.dtype} of shape {self.index.shape}"
            )
        self.data = tuple(np.asarray(rows) * 1.0 for rows in data)
        for k, rows in enumerate(self.data):
            if len(rows) != len(self.index):
                counts = f"{len(rows)} rows for {len(self.index)} elements"
                raise ValueError(f"ElementFunction: data {k} has {counts}")
        for rows in (self.index, *self.data):
            rows.flags.writeable = False  # so that their content need not be compared
        self.__name__ = getattr(func, "__name__", "elements")

    def __call__(self, x: Tree, *args: Any) -> Any:
        """Return the values of all elements, (elements, ...)."""
        flat = tree.ravel(x)[0]
        axes = (0,) * (1 + len(self.data)) + (None,) * len(args)
        return vmap(self.func, in_axes=axes)(flat[self.index], *self.data, *args)

    def check(self, size: int, what: str) -> None:
        """Raise if an element takes an unknown that is not there.

        Parameters
        ----------
        size : int
            Number of unknowns.
        what : str
            Name in the error message.
        """
        if self.index.size and not 0 <= self.index.min() <= self.index.max() < size:
            numbers = f"from {self.index.min()} to {self.index.max()}"
            raise ValueError(f"{what}: index goes {numbers}, but there are {size} unknowns")

    def __content__(self) -> tuple[Any, ...]:
        return (self.func, self.index, *self.data)


class Program:
    """Objective and constraints as blocks, for unknowns like ``unknowns``.

    ``current`` are the functions: ``terms`` of the objective, then the constraints. Those that are
    an :class:`ElementFunction` are blocks of their own, the rest is one block with one element.
    Each function is recorded once.
    """

    def __init__(
        self,
        current: Current,
        constraints: Constraints,
        unknowns: Tree,
        args: tuple[Any, ...],
        name: str,
    ) -> None:
        self.current, self.constraints, self.name = current, constraints, name
        self.args = args
        self.terms = len(current.functions) - len(constraints.names)
        flat, self.unravel = tree.ravel(unknowns)
        self.size = flat.size
        #: What solvers have recorded of the whole.
        self.kernels: dict[Hashable, Compiled] = {}
        labels = ["obj"] * self.terms
        labels += ["constr" if n is None else f"constr[{n!r}]" for n in constraints.names]
        self._recorded = [self._record(k, label) for k, label in enumerate(labels)]
        self._shapes = [self._find_shapes(k, label, unknowns) for k, label in enumerate(labels)]
        self._check_objective()
        #: What the constraints' values look like: the limits are read by it.
        self.values_like = constraints.join(self._shapes[self.terms :])
        self.rows = tree.ravel(self.values_like)[0].size if constraints.names else 0
        if constraints.names and not self.rows:
            raise ValueError("constr returns no numbers: does it end with a return statement?")

    def _record(self, k: int, label: str) -> Compiled | None:
        """Return one of the functions, recorded once; None if it is one of elements."""
        current = self.current
        if isinstance(current.functions[k], ElementFunction):
            return None

        def call(x: Tree, *args: Any) -> Any:
            return current.functions[k](x, *_unwrap(args))

        name = getattr(current.functions[k], "__name__", label)
        recorded = compile_frozen(call, (current,), name)
        # All are parts of one program, whose maps shall be seen.
        recorded.inline_limit = sys.maxsize
        return recorded

    def _element(self, k: int, flat: bool = False) -> Callable[..., Any]:
        """Return the function of one element, in recorded code; ``flat``: its values (m,)."""
        current = self.current

        def element(z: Array, *rest: Any) -> Any:
            value = current.functions[k].func(z, *_unwrap(rest))
            return tree.ravel(value)[0] * 1.0 if flat else value

        return element

    def _find_shapes(self, k: int, what: str, unknowns: Tree) -> Any:
        """Return zeros like the values of a function; of elements only one is looked at."""
        recorded, elements = self._recorded[k], self.current.functions[k]
        if recorded is not None:
            return find_result_shapes(recorded, unknowns, self.args, what)
        elements.check(self.size, what)
        data = tuple(rows[0] for rows in elements.data)
        z = np.zeros(elements.index.shape[1])
        function = compile_frozen(self._element(k), (self.current,), what)
        one = find_result_shapes(function, z, (*data, *self.args), what)
        return tree.map(lambda leaf: np.zeros((len(elements.index), *np.shape(leaf))), one)

    def _check_objective(self) -> None:
        for term, like in zip(self.current.functions[: self.terms], self._shapes):
            leaves = tree.leaves(like)
            wanted = len(term.index) if isinstance(term, ElementFunction) else 1
            if not leaves:
                raise ValueError(
                    "obj must return one number, it returned nothing: is a `return` missing?"
                    + refer_to("objective")
                )
            if len(leaves) != 1 or np.size(leaves[0]) != wanted:
                raise ValueError(
                    f"obj must return one number, it returns {len(leaves)} of shape "
                    f"{[np.shape(leaf) for leaf in leaves]}: add them up, for example with "
                    "np.sum" + refer_to("objective")
                )

    def func(self, x: Array, *args: Any) -> Array:
        """Return ``[f, *g]``, all flat; in recorded code."""
        return self._join(range(len(self._recorded)), x, args)

    def _join(self, numbers: Sequence[int], x: Array, args: tuple[Any, ...]) -> Array:
        """Return terms of the objective, added up, and constraints: some of the functions."""
        unknowns, terms, g = self.unravel(x), [], []
        for k in numbers:
            recorded = self._recorded[k]
            if recorded is not None:
                value = recorded(unknowns, *args)
            else:
                value = self.current.functions[k](unknowns, *_unwrap(args))
            if k < self.terms:
                terms.append(np.sum(tree.leaves(value)[0]))  # of elements a sum
            else:
                g.append(tree.ravel(value)[0] * 1.0)
        f = sum(terms[1:], terms[0]) * 1.0 if terms else 0.0 * x[0]
        return np.concatenate([np.reshape(f, (1,)), *g])

    @cached_property
    def blocks(self) -> list[Block]:
        """The blocks: those of elements, of maps, and one for the rest."""
        if any(function is None for function in self._recorded):
            return self._element_blocks()
        index, name = np.arange(self.size)[None], self.name
        whole = compile_frozen(with_arguments(self.func, 1 + len(self.args)), name=name)
        # Recorded once, for itself and for its derivatives.
        whole.inline_limit = sys.maxsize
        recording = whole.recording(np.zeros(self.size), *self.args)
        # An objective without unknowns has nothing to take apart.
        apart = split_into_maps(recording) if recording.graph.outputs else None
        if apart is None:
            rows = np.arange(-1, self.rows)[None]
            kernels = {Block.key("value", len(self.args)): whole}
            return [Block(self.func, index, rows, name=name, kernels=kernels, watch=())]
        maps, rest = apart
        blocks = [Block(m, m.index, m.rows, (m.data,), f"{name}_map", watch=()) for m in maps]
        if rest is not None:
            blocks.append(Block(rest, rest.index, rest.rows, name=name, watch=()))
        return blocks

    def _element_blocks(self) -> list[Block]:
        """Return a block for each function of elements, and one for the rest."""
        blocks, rest, rest_rows, first = [], [], [np.full(1, -1)], 0
        for k, like in enumerate(self._shapes):
            rows = first + np.arange(tree.ravel(like)[0].size)
            if k < self.terms:
                rows[:] = -1
            else:
                first += rows.size
            if self._recorded[k] is None:
                e, func = self.current.functions[k], self._element(k, flat=True)
                rows, watch = rows.reshape(len(e.index), -1), (self.current,)
                blocks.append(Block(func, e.index, rows, e.data, e.__name__, watch=watch))
            else:
                rest.append(k)
                rest_rows += [rows] if k >= self.terms else []
        if rest:
            index, every = np.arange(self.size)[None], np.concatenate(rest_rows)[None]
            join = lambda x, *args: self._join(rest, x, args)  # noqa: E731
            blocks.append(Block(join, index, every, name=self.name, watch=()))
        return blocks

    def measure_residuals(
        self, g: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> dict[str, float]:
        """Return by how much each leaf of the constraints is violated at most."""
        leaves, treedef = tree.flatten(self.values_like)
        off = np.maximum(np.maximum(low - g, g - high), 0.0)
        parts = np.split(off, np.cumsum([np.size(leaf) for leaf in leaves])[:-1])
        paths = treedef.paths("constr")
        return {path: float(part.max(initial=0.0)) for path, part in zip(paths, parts)}

    def compile_at_once(self) -> None:
        """Have the blocks compiled before they are evaluated again."""
        for block in self.blocks:
            block.compile_at_once()

    @cached_property
    def structure(self) -> Structure:
        """The sparsity of all derivatives."""
        patterns = [block.patterns(self.args) for block in self.blocks]
        structure = Structure(patterns, self.size, self.rows)
        if structure.unused_unknowns.size == self.size:
            raise ValueError(
                "neither the objective nor any constraint depends on the unknowns x0: do the "
                "functions use their first argument?"
            )
        return structure


def _unwrap(args: Sequence[Any]) -> tuple[Any, ...]:
    """Return arguments with the static ones taken out of their wrapping."""
    return tuple(a.value if isinstance(a, Fixed) else a for a in args)
