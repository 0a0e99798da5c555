"""Functions that bring their own derivative: ``custom_jvp``, ``custom_vjp``, ``stop_gradient``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.errors import TraceError
from archimedes.function.compiled import Compiled
from archimedes.function.recording import OutLeaf, Recording, leaf_ids
from archimedes.function.region_bodies import any_traced, static_out_graph
from archimedes.graph.dtypes import is_float
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph
from archimedes.graph.regions import Call, DerivativeRule
from archimedes.symbolic import SymbolicArray, Trace, current_trace, lift, wrap
from archimedes.symbolic.core.conversion import map_ids
from archimedes.symbolic.core.traced_value import as_traced

__all__ = ["CustomFunction", "custom_jvp", "custom_vjp", "stop_gradient"]


def _stopped(g: Graph, i: int) -> int:
    return g.emit(CODES["stop"], i)


def stop_gradient(x: Any) -> Any:
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
        ids = map_ids(trace.graph, trace.elements_of(leaf), leaf.code, _stopped)
        return wrap(ids, leaf.code, weak=leaf.weak)

    return tree.map(stop, x)


def _filled(g: Graph, given: Any, like: Any) -> list[int]:
    """Return one id per value of ``like``: what was given, or a zero of its dtype."""
    return [g.const(0, g.dtype[i]) if t is None else t for t, i in zip(given, like.tolist())]


class Rule:
    """Connects a user's rule, written on trees, with the graph's rule, written on ids."""

    pattern = None

    def __init__(self, name: str, recording: Recording, args_tree: Any, reverse: bool, apply: Any):
        self.name = name
        self.recording = recording
        self.args_tree = args_tree
        self.apply = apply
        self.forward = None if reverse else self._forward
        self.reverse = self._reverse if reverse else None

    def _arguments(self, ids: Any) -> Any:
        """Build the argument tree from ids of the inputs; static leaves are what they were."""
        leaves = []
        for spec, start in zip(self.recording.leaves, self.recording.offsets()):
            if not spec.traced:
                leaves.append(spec.value)
                continue
            block = np.asarray(ids[start : start + spec.size], dtype=np.int64)
            leaves.append(wrap(block.reshape(spec.shape), spec.code))
        return self.args_tree.unflatten(leaves)

    def _result(self, ids: Any) -> Any:
        def take(out: OutLeaf) -> Any:
            block = np.asarray(ids[out.start : out.stop], dtype=np.int64)
            return wrap(block.reshape(out.spec.shape), out.spec.code)

        return self.recording.rebuild(take)

    def _run(self, g: Graph, work: Callable[[Trace], list[Any]]) -> list[Any]:
        with Trace(g) as trace:
            rows = work(trace)
            if trace.captured:
                raise TraceError(
                    f"the derivative rule of {self.name} uses traced values from outside: pass "
                    "them as arguments of the function"
                )
        return rows

    def _forward(self, g: Graph, inputs: Any, outs: Any, tangents: Any) -> list[Any]:
        def work(trace: Trace) -> list[Any]:
            rows = []
            for given in tangents:
                full = _filled(g, given, inputs)
                result = self.apply(
                    self._arguments(inputs), self._result(outs), self._arguments(full)
                )
                rows.append(self._ids(trace, result, outs, self.recording.out_tree, "tangent"))
            return rows

        return self._run(g, work)

    def _reverse(self, g: Graph, inputs: Any, outs: Any, adjoints: Any) -> list[Any]:
        def work(trace: Trace) -> list[Any]:
            rows = []
            for given in adjoints:
                full = _filled(g, given, outs)
                result = self.apply(self._arguments(inputs), self._result(outs), self._result(full))
                rows.append(self._ids(trace, result, inputs, self.args_tree, "cotangent"))
            return rows

        return self._run(g, work)

    def _ids(self, trace: Trace, result: Any, like: Any, treedef: Any, what: str) -> list[Any]:
        """Check what the rule returned and return one id (or None) for each value in ``like``."""
        specs = (
            [out.spec for out in self.recording.outs]
            if what == "tangent"
            else list(self.recording.leaves)
        )
        leaves = tree.flatten_up_to(treedef, result, what)
        row: list[Any] = []
        for leaf, spec, path in zip(leaves, specs, treedef.paths(what)):
            if not spec.traced:
                continue
            if not is_float(spec.code) or leaf is None:
                row.extend([None] * spec.size)
                continue
            array = lift(leaf)
            if array.shape != spec.shape:
                raise TraceError(
                    f"the derivative rule of {self.name} returned {path} of shape {array.shape}, "
                    f"{spec.shape} is needed"
                )
            row.extend(leaf_ids(array, spec))
        return row + [None] * (len(like) - len(row))


class CustomFunction:
    """A function with a rule; the public kinds differ in what the rule is given."""

    reverse = False
    #: The method that sets the rule, and whether the function is copied to where it is called.
    setter = "defjvp"
    copied = False

    def __init__(self, function: Callable[..., Any]) -> None:
        self.compiled = function if isinstance(function, Compiled) else Compiled(function)
        functools.update_wrapper(self, self.compiled.function, updated=())
        self.rule: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute, or note a call with its rule in the recording."""
        if not any_traced(args, kwargs):
            return self.compiled.function(*args, **kwargs)
        leaves, recording, _ = self.compiled.lookup(args, kwargs)
        recording = static_out_graph(recording)
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
        inputs: list[int] = []
        for leaf, spec in zip(leaves, recording.leaves):
            if spec.traced:
                inputs.extend(leaf_ids(leaf, spec))
        ids = np.array([*inputs, *recording.captured], dtype=np.int64)
        closure = len(recording.captured)
        region = Call(ids, recording.graph, rule, closure=closure, copied=self.copied)
        outs = current_trace().graph.region(region)

        def take(out: OutLeaf) -> Any:
            return wrap(outs[out.start : out.stop].reshape(out.spec.shape), out.spec.code)

        return recording.rebuild(take)

    def _rule_for(self, recording: Recording, args_tree: Any) -> DerivativeRule:
        return Rule(self.compiled.name, recording, args_tree, self.reverse, self._apply)

    def _apply(self, args: Any, result: Any, given: Any) -> Any:
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

    def _apply(self, args: Any, result: Any, given: Any) -> Any:
        assert self.rule is not None
        answer = self.rule(args, given)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise TraceError(
                f"the jvp rule of {self.compiled.name} must return a pair (result, tangent)"
            )
        return answer[1]

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

    def _apply(self, args: Any, result: Any, given: Any) -> Any:
        assert self.rule is not None
        answer = self.fwd(*args)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise TraceError(
                f"the fwd rule of {self.compiled.name} must return a pair (result, residuals)"
            )
        cotangents = self.rule(answer[1], given)
        if not isinstance(cotangents, tuple) or len(cotangents) != len(args):
            raise TraceError(
                f"the bwd rule of {self.compiled.name} must return a tuple of {len(args)} "
                "cotangents, one per argument"
            )
        return cotangents

    def __content__(self) -> tuple[Any, ...]:
        return (self.compiled, self.rule, getattr(self, "fwd", None))
