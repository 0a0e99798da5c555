"""Functions that bring their Jacobians: ``custom_jac``.

A rule for tangents is written for one direction, and recorded again for each. Where all entries of
a Jacobian are found together at less cost, the rule returns the matrix: it is recorded once, and
tangents and adjoints are products with it. Directions that are few are cheaper without it, and
arguments without a matrix have none: both go through the function's own operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from archimedes.errors import TraceError
from archimedes.function.derivatives.custom_rules import CustomFunction, check_tuple
from archimedes.function.leaf_specs import LeafSpec
from archimedes.function.recording import Recording, leaf_ids
from archimedes.graph import CODES, CONST, Graph, is_float
from archimedes.graph.derivatives.forward import forward_sweep
from archimedes.graph.derivatives.reverse import reverse_sweep
from archimedes.graph.derivatives.sparsity import through
from archimedes.graph.regions import DerivativeRule
from archimedes.graph.regions.base import Directions
from archimedes.symbolic import Trace, lift, wrap

__all__ = ["custom_jac"]

#: Ids by direction of what is differentiated, None where it is zero.
Rows = Sequence[Sequence[int | None]]
#: Where an argument's values are among the inputs, and by output and value the Jacobian's ids.
Block = tuple[int, list[list[int]]]


class JacobianRule:
    """The rule of one call, on ids: products with blocks, and what has no block by its body."""

    def __init__(
        self, name: str, recording: Recording, jacobians: Callable[..., Any], least: int
    ) -> None:
        self.name, self.recording, self.jacobians = name, recording, jacobians
        self.least = least
        self.body = recording.graph

    def pattern(self, inputs: Sequence[Any]) -> list[Any]:
        """Return what outputs depend on: the function says it, not its Jacobian."""
        return through(self.body, list(inputs))

    def forward(self, g: Graph, inputs: Any, outs: Any, rows: Rows) -> list[list[int | None]]:
        """Return the tangents of the outputs."""
        blocks = self._blocks(g, inputs, len(outs), len(rows))
        rows_out: list[list[int | None]] = [[None] * len(outs) for _ in rows]
        for d, row in enumerate(rows):
            for start, matrix in blocks:
                _products(g, rows_out[d], matrix, row[start : start + len(matrix[0])])
        plain = (not _inside(blocks, k) for k in range(len(inputs)))
        seeds = [_column(rows, k) if mine else {} for k, mine in enumerate(plain)]
        if any(seeds):
            _, tangents = forward_sweep(g, self.body, inputs.tolist(), seeds)
            _add_all(g, rows_out, tangents)
        return rows_out

    def reverse(self, g: Graph, inputs: Any, outs: Any, rows: Rows) -> list[list[int | None]]:
        """Return the adjoints of the inputs."""
        blocks = self._blocks(g, inputs, len(outs), len(rows))
        rows_out: list[list[int | None]] = [[None] * len(inputs) for _ in rows]
        for d, row in enumerate(rows):
            for start, matrix in blocks:
                mine: list[int | None] = [None] * len(matrix[0])
                _products(g, mine, [*zip(*matrix, strict=True)], row)
                rows_out[d][start : start + len(mine)] = mine
        wanted = [
            not _inside(blocks, k) and is_float(g.dtype[i]) for k, i in enumerate(inputs.tolist())
        ]
        if any(wanted):
            seeds = [_column(rows, k) for k in range(len(outs))]
            _, adjoints = reverse_sweep(g, self.body, inputs.tolist(), seeds, wanted)
            _add_all(g, rows_out, adjoints)
        return rows_out

    def _blocks(self, g: Graph, inputs: Any, count: int, directions: int) -> list[Block]:
        """Record the rule, and return the blocks of the arguments that have one."""
        if directions < self.least:
            return []
        leaves = list(zip(self.recording.leaves, self.recording.offsets(), strict=True))
        with Trace(g) as trace:
            args = [
                wrap(inputs[at : at + spec.size].reshape(spec.shape), spec.code)
                if spec.traced
                else spec.value
                for spec, at in leaves
            ]
            wanted = f"a tuple of {len(args)}, one array (or None) per argument"
            rule = f"the Jacobian rule of {self.name}"
            answer = check_tuple(self.jacobians(*args), len(args), rule, wanted)
            blocks = [
                (at, self._matrix(x, spec, k, count))
                for k, (x, (spec, at)) in enumerate(zip(answer, leaves, strict=True))
                if x is not None and spec.traced
            ]
            if trace.captured:
                raise TraceError(
                    f"the Jacobian rule of {self.name} uses traced values from outside: pass them "
                    "as arguments of the function"
                )
        return blocks

    def _matrix(self, x: Any, spec: LeafSpec, k: int, count: int) -> list[list[int]]:
        array, shape = lift(x), (*self.recording.outs[0].spec.shape, *spec.shape)
        if array.shape != shape:
            raise TraceError(
                f"the Jacobian rule of {self.name} returned shape {array.shape} for argument {k}, "
                f"{shape} is needed: the shapes of result and argument"
            )
        ids = leaf_ids(array, LeafSpec(spec.code, shape))
        return [ids[i * spec.size : (i + 1) * spec.size] for i in range(count)]


def _inside(blocks: Sequence[Block], k: int) -> bool:
    return any(start <= k < start + len(matrix[0]) for start, matrix in blocks)


def _column(rows: Rows, k: int) -> Directions:
    """Return what is not zero in a column, by direction."""
    return {d: x for d, row in enumerate(rows) if (x := row[k]) is not None}


def _products(
    g: Graph, to: list[int | None], matrix: Sequence[Sequence[int]], row: Sequence[int | None]
) -> None:
    """Add a matrix times a vector, of which None is zero."""
    used = [(k, x) for k, x in enumerate(row) if x is not None]
    for i, entries in enumerate(matrix):
        for k, x in used:
            if g.op[entries[k]] == CONST and g.value[entries[k]] == 0.0:
                continue
            _add(g, to, i, g.emit(CODES["mul"], entries[k], x))


def _add_all(g: Graph, to: list[list[int | None]], values: Sequence[Directions]) -> None:
    for k, directions in enumerate(values):
        for d, i in directions.items():
            _add(g, to[d], k, i)


def _add(g: Graph, to: list[int | None], k: int, i: int) -> None:
    before = to[k]
    to[k] = i if before is None else g.emit(CODES["add"], before, i)


class custom_jac(CustomFunction):
    """A function of arrays with a Jacobian of its own; usable as a decorator.

    Parameters
    ----------
    function : callable
        The function.

    Examples
    --------
    >>> import numpy as np
    >>> import archimedes as arc
    >>> @custom_jac
    ... def f(x):
    ...     return x**2
    >>> @f.defjac
    ... def rule(x):
    ...     return (np.diag(2.0 * x),)
    >>> arc.jac(f)(np.array([1.0, 3.0]))
    array([[2., 0.],
           [0., 6.]])
    """

    setter = "defjac"
    copied = True
    in_blocks = False  # a Jacobian is taken entry by entry

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.directions = 1

    def defjac(self, rule: Callable[..., Any], directions: int = 1) -> Callable[..., Any]:
        """Set the Jacobian; usable as a decorator.

        Parameters
        ----------
        rule : callable
            ``rule(*args)`` returns a tuple with one array for each argument, whose shape is that of
            the result followed by that of the argument, or None for an argument that is
            differentiated through the function itself. It is recorded once for all directions, so
            that :func:`jac` takes its entries as they are.
        directions : int, optional
            Smallest number of directions for which the rule is used. Fewer are differentiated
            through the function. 1 by default.
        """
        self.rule, self.directions = rule, directions
        return rule

    def _rule_for(self, recording: Recording, args_tree: Any) -> DerivativeRule:
        plain = all(not child.children and child.num_leaves == 1 for child in args_tree.children)
        if not plain or len(recording.outs) != 1:
            raise TraceError(
                f"{self.compiled.name}: a function with its own Jacobian takes arrays and returns "
                "one array; use custom_jvp for structs and lists"
            )
        assert self.rule is not None
        return JacobianRule(self.compiled.name, recording, self.rule, self.directions)

    def __content__(self) -> tuple[Any, ...]:
        return (self.compiled, self.rule)
