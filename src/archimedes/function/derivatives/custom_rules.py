"""Functions that bring their own derivative: ``custom_jvp``, ``custom_vjp``, ``stop_gradient``."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.errors import TraceError
from archimedes.function.compiled import Compiled
from archimedes.function.recording import Recording, array_ids, leaf_ids, read_array
from archimedes.function.region_bodies import must_record, trace_static_results
from archimedes.graph import CODES, Graph, is_float
from archimedes.graph.blocks.interfaces import Form
from archimedes.graph.regions import Call, DerivativeRule
from archimedes.symbolic import SymbolicArray, Trace, as_traced, current_trace, lift, wrap
from archimedes.symbolic.core.conversion import map_ids
from archimedes.tree.treedef import TreeDef

if TYPE_CHECKING:
    from archimedes.typing import Tree

__all__ = ["custom_jvp", "custom_vjp", "stop_gradient"]


def stop_gradient(x: Tree) -> Tree:
    """Return a value that every derivative treats as a constant.

    Parameters
    ----------
    x : tree
        The value.

    Examples
    --------
    >>> float(stop_gradient(3.0))
    3.0
    """

    def stop(leaf: Any) -> Any:
        leaf = as_traced(leaf)
        if not isinstance(leaf, SymbolicArray) or not is_float(leaf.code):
            return leaf
        trace = current_trace()
        ids = map_ids(
            trace.graph, trace.elements_of(leaf), leaf.code, lambda g, i: g.emit(CODES["stop"], i)
        )
        return wrap(ids, leaf.code, weak=leaf.weak)

    return tree.map(stop, x)


def _fill_zeros(g: Graph, row: Sequence[int | None], like: np.ndarray) -> list[int]:
    """Return one id per value of ``like``: that of the row, or a zero of its dtype."""
    return [g.const(0, g.dtype[i]) if x is None else x for x, i in zip(row, like.tolist())]


class Rule:
    """Connects a user's rule, written on trees, with the graph's rule, written on ids.

    With `in_blocks` a long array is one id, that of its block, as in the recording's ``blocks``.
    """

    pattern = None

    def __init__(
        self,
        name: str,
        recording: Recording,
        args_tree: TreeDef,
        reverse: bool,
        apply: Callable[[Tree, Tree, Tree], Tree],
        in_blocks: bool = False,
    ) -> None:
        self.name, self.recording, self.args_tree = name, recording, args_tree
        self.in_blocks = in_blocks
        self.apply, self.is_reverse = apply, reverse
        self.forward = None if reverse else self._apply_rows
        self.reverse = self._apply_rows if reverse else None

    def _arguments(self, ids: Iterable[int]) -> Tree:
        """Build the argument tree from ids of the inputs; static leaves are what they were."""
        rest = iter(ids)
        leaves = [
            read_array(rest, spec.shape, spec.code, block) if spec.traced else spec.value
            for spec, block in zip(self.recording.leaves, self._blocks(self.recording.forms))
        ]
        return self.args_tree.unflatten(leaves)

    def _apply_rows(self, g: Graph, inputs: np.ndarray, outs: np.ndarray, rows: Any) -> list[Any]:
        """Return the tangents of the outputs, or the adjoints of the inputs, by direction."""
        source, target, build = inputs, outs, self._arguments
        if self.is_reverse:
            source, target, build = outs, inputs, self._result
        with Trace(g) as trace:
            result = []
            for row in rows:
                vector = build(_fill_zeros(g, row, source))
                answer = self.apply(self._arguments(inputs.tolist()), self._result(outs), vector)
                result.append(self._ids(answer, len(target)))
            if trace.captured:
                raise TraceError(
                    f"the derivative rule of {self.name} uses traced values from outside: pass "
                    "them as arguments of the function"
                )
        return result

    def _result(self, ids: Any) -> Tree:
        if self.in_blocks:
            return self.recording.result(ids)
        rest = iter(ids)
        return self.recording.rebuild(
            lambda out: read_array(rest, out.spec.shape, out.spec.code, False)
        )

    def _blocks(self, forms: Callable[[], list[Form]]) -> Iterable[bool]:
        """Return which leaves, of arguments or results, are blocks."""
        return [form.block for form in forms()] if self.in_blocks else itertools.repeat(False)

    def _ids(self, answer: Tree, count: int) -> list[int | None]:
        """Check what the rule returned and return an id (or None) for each of ``count`` values."""
        what, specs, treedef = "cotangent", list(self.recording.leaves), self.args_tree
        blocks = self._blocks(self.recording.forms)
        if not self.is_reverse:
            what, treedef = "tangent", self.recording.out_tree
            specs = [out.spec for out in self.recording.outs]
            blocks = self._blocks(self.recording.out_forms)
        leaves = tree.flatten_up_to(treedef, answer, what)
        row: list[int | None] = []
        for leaf, spec, block, path in zip(leaves, specs, blocks, treedef.paths(what)):
            if not spec.traced:
                continue
            if not is_float(spec.code) or leaf is None:
                row += [None] * (1 if block else spec.size)
                continue
            array = lift(leaf)
            if array.shape != spec.shape:
                raise TraceError(
                    f"the derivative rule of {self.name} returned {path} of shape {array.shape}, "
                    f"{spec.shape} is needed"
                )
            row += array_ids(array, True) if block else leaf_ids(array, spec)
        return row + [None] * (count - len(row))


def check_tuple(answer: Any, count: int, rule: str, wanted: str) -> tuple[Any, ...]:
    """Return what a rule returned, or say what it must return."""
    if not isinstance(answer, tuple) or len(answer) != count:
        raise TraceError(f"{rule} must return {wanted}")
    return answer


class CustomFunction:
    """A function with a rule; the public kinds differ in what the rule is given."""

    reverse = False
    #: The method that sets the rule, and whether the function is copied to where it is called.
    setter = "defjvp"
    copied = False
    #: Whether the rule takes long arrays as blocks.
    in_blocks = True

    def __init__(self, function: Callable[..., Any]) -> None:
        self.compiled = function if isinstance(function, Compiled) else Compiled(function)
        functools.update_wrapper(self, self.compiled.function, updated=())
        self.rule: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute, or note a call with its rule in the recording."""
        if not must_record(args, kwargs):
            return self.compiled.function(*args, **kwargs)
        leaves, recording, _ = self.compiled.lookup(args, kwargs)
        recording = trace_static_results(recording)
        if self.rule is None:
            raise TraceError(
                f"{self.compiled.name} has no derivative rule yet: give it one with "
                f"{self.compiled.name}.{self.setter}"
            )
        values = self.compiled.signature.bind(args, kwargs)
        static = self.compiled.signature.fixed(values)
        dynamic = {k: v for k, v in values.items() if k not in static}
        args_tree = tree.structure(tuple(dynamic.values()))
        rule = self._rule_for(recording, args_tree)
        scalar = not self.in_blocks
        ids = np.array(recording.inputs(leaves, scalar), dtype=np.int64)
        closure, body = len(recording.captured), recording.graph if scalar else recording.blocks
        region = Call(ids, body, rule, closure=closure, copied=self.copied)
        return recording.result(current_trace().graph.region(region).tolist(), scalar)

    def _rule_for(self, recording: Recording, args_tree: TreeDef) -> DerivativeRule:
        name, blocks = self.compiled.name, self.in_blocks
        return Rule(name, recording, args_tree, self.reverse, self._apply, blocks)

    def _apply(self, args: Tree, result: Tree, vector: Tree) -> Tree:
        raise NotImplementedError


class custom_jvp(CustomFunction):
    """A function with a forward-mode derivative of its own; usable as a decorator.

    Reverse mode transposes the rule.

    Parameters
    ----------
    function : callable
        The function.

    Examples
    --------
    >>> @custom_jvp
    ... def f(x):
    ...     return x**2
    >>> @f.defjvp
    ... def rule(primals, tangents):
    ...     return f(*primals), 2.0 * primals[0] * tangents[0]
    >>> float(f(3.0))
    9.0
    """

    def defjvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the derivative; usable as a decorator.

        Parameters
        ----------
        rule : callable
            ``rule(primals, tangents)`` returns the result and its tangent. ``primals`` and
            ``tangents`` are tuples of the arguments and their tangents.
        """
        self.rule = rule
        return rule

    def _apply(self, args: Tree, result: Tree, vector: Tree) -> Tree:
        assert self.rule is not None
        rule = f"the jvp rule of {self.compiled.name}"
        return check_tuple(self.rule(args, vector), 2, rule, "a pair (result, tangent)")[1]

    def __content__(self) -> tuple[Any, ...]:
        return (self.compiled, self.rule)


class custom_vjp(CustomFunction):
    """A function with a reverse-mode derivative of its own; usable as a decorator.

    Forward mode transposes the rule.

    Parameters
    ----------
    function : callable
        The function.

    Examples
    --------
    >>> @custom_vjp
    ... def f(x):
    ...     return x**2
    >>> f.defvjp(lambda x: (f(x), x), lambda x, w: (2.0 * x * w,))
    >>> float(f(3.0))
    9.0
    """

    reverse = True
    setter = "defvjp"

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Set the derivative.

        Parameters
        ----------
        fwd : callable
            ``fwd(*args)`` returns the result and residuals, any tree.
        bwd : callable
            ``bwd(residuals, cotangent)`` returns a tuple with the cotangent of each argument.
        """
        self.rule = bwd
        self.fwd = fwd

    def _apply(self, args: Tree, result: Tree, vector: Tree) -> Tree:
        assert self.rule is not None
        name, count = self.compiled.name, len(args)
        fwd = f"the fwd rule of {name}"
        pair = check_tuple(self.fwd(*args), 2, fwd, "a pair (result, residuals)")
        wanted = f"a tuple of {count} cotangents, one per argument"
        answer = self.rule(pair[1], vector)
        return check_tuple(answer, count, f"the bwd rule of {name}", wanted)

    def __content__(self) -> tuple[Any, ...]:
        return (self.compiled, self.rule, getattr(self, "fwd", None))
