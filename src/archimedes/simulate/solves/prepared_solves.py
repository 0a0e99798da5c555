"""Solves that are made again and again: from the arguments to the kernel, with little between.

A first solve checks, flattens and looks up what it is given; that is a thousand Python calls,
several times as long as many a solve takes. From the third solve on with the same function and
options, and a state and arguments of the same structure, all that does not depend on their numbers
is kept: the kernels, and arrays that their inputs lie in. Whatever is not quite usual (events,
inputs, batches, values that are refused, functions that read something else than before) goes the
ordinary way, with the same bits.

Symbols: n numbers in a state, m output times.
"""

from __future__ import annotations

import functools
import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from operator import is_not
from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.backends.registry import default_backend
from archimedes.function.dependencies.states import State, changing_statics, state_of
from archimedes.simulate.methods.method_table import HITS
from archimedes.simulate.solves.bound_solves import (
    AtTimes,
    BoundSolver,
    InRows,
    LastState,
    Outputs,
    Solution,
    Start,
    outputs_at,
)
from archimedes.simulate.solves.collectors import FEW
from archimedes.simulate.solves.initial_value_problem import Problem
from archimedes.simulate.statuses import MANY_STEPS, message_of
from archimedes.simulate.trajectory.trajectory import Trajectory, assemble_trajectory
from archimedes.symbolic import is_tracing
from archimedes.tree import is_struct
from archimedes.tree.treedef import LEAF

if TYPE_CHECKING:
    from archimedes.typing import Tree

#: How many prepared solves are kept (the oldest is forgotten), and after how many ordinary solves
#: a request is prepared. NEVER stands for one that cannot be.
KEPT, ORDINARY, NEVER = 64, 2, -1

_is_struct: Callable[[type], bool] = functools.lru_cache(maxsize=256)(is_struct)
_NUMBERS, _SERIES = (float, int, np.float64), (np.ndarray, list, tuple)
#: Arrays that kernels take as they are: of float64, int64 and bool.
_KINDS = "".join(np.dtype(kind).char for kind in (np.float64, np.int64, np.bool_))

#: Functions by their code, of each the last one that read other objects than those before it.
_functions: OrderedDict[CodeType, FunctionType] = OrderedDict()
_solves: OrderedDict[Hashable, Prepared | int] = OrderedDict()


class Request(Start):
    """What a user asks for, if it is of the kind that can be kept ready.

    ``prepared`` is what solves it, None where it is solved the ordinary way.
    """

    __slots__ = ("func", "key", "kind", "prepared", "reads")

    def __init__(
        self, func: Any, kind: type[BoundSolver], key: Hashable, stored: Prepared | int | None
    ) -> None:
        self.func, self.kind, self.key = func, kind, key
        self.prepared: Prepared | None = None
        #: What the function reads, where that is to be compared after an ordinary solve's.
        self.reads: State | None = None
        if isinstance(stored, Prepared):
            if stored.reads.is_unchanged():
                self.prepared = stored
            else:
                _solves.pop(key, None)
        elif stored == ORDINARY - 1:
            self.reads = state_of(func)

    def remember(self, problem: Problem) -> None:
        """Count an ordinary solve of this request; after some, prepare the problem."""
        count = _solves.get(self.key, 0)
        if isinstance(count, Prepared) or count == NEVER:
            return
        count += 1
        _solves[self.key] = count if count < ORDINARY else self._prepare(problem)
        while len(_solves) > KEPT:
            _solves.popitem(last=False)

    def _prepare(self, problem: Problem) -> Prepared | int:
        """Return the prepared problem, NEVER if there is none, or the count to go on with."""
        kernels = problem.kernels
        native, method = kernels.backend is default_backend(), kernels.plan.method
        usual = native and kernels.single is kernels and kernels.plain and method.drive is None
        structure = tree.structure(problem.instances.args)
        # Another thread may have changed what the function reads while the problem was made.
        if self.reads is None or state_of(self.func) is not self.reads:
            return ORDINARY - 1
        if not usual or changing_statics({}, set(), (), structure):
            return NEVER
        return Prepared(problem, self.reads, self.kind)


def request_of(
    func: Any,
    t_span: Any,
    x0: Tree,
    args: Any,
    t_eval: Any,
    final: bool,
    settings: tuple[Any, ...],
) -> Request | None:
    """Return the request for a solve with these settings, None for those that are not kept.

    ``final``: without ``t_eval`` the last state is wanted, not those after all steps.
    """
    if is_tracing() or type(t_span) is not tuple or len(t_span) != 2:
        return None
    outputs: type[BoundSolver] = LastState if final else InRows
    if t_eval is not None:
        if type(t_eval) not in _SERIES or (type(t_eval) is np.ndarray and t_eval.ndim != 1):
            return None
        outputs = AtTimes if len(t_eval) < FEW else InRows
    own_args = () if args is None else tuple(args) if isinstance(args, (tuple, list)) else (args,)
    kind = type(func)
    if kind is MethodType and _is_struct(type(func.__self__)):
        # The struct of a bound method is an argument like others.
        func, own_args = func.__func__, (func.__self__, *own_args)
    elif kind is FunctionType:
        func = _first_of_its_kind(func)
    elif kind is not MethodType:
        return None
    if type(x0) is np.ndarray:
        leaves, structure = [x0], LEAF
    elif type(x0) in _SERIES:
        # Numbers make an array; lists of other things are rarely states.
        if set(map(type, x0)) != {float}:
            return None
        leaves, structure = [np.array(x0)], LEAF
    else:
        leaves, structure = tree.flatten(x0)
    numbers, of_numbers = tree.flatten(own_args) if own_args else ((), None)
    forms = _forms_of([*leaves, *numbers])
    begin, end = t_span
    if forms is None or type(begin) not in _NUMBERS or type(end) not in _NUMBERS:
        return None
    if not (math.isfinite(begin) and math.isfinite(end)) or begin == end:
        return None
    # Functions and methods are found by identity.
    key = (func, kind, settings, outputs, structure, of_numbers, forms)
    try:
        stored = _solves.get(key)
    except TypeError:
        return None  # a setting that is no number or name, such as an array of tolerances
    request = Request(func, outputs, key, stored)
    request.t_start, request.t_end = float(begin), float(end)
    request.state, request.numbers = leaves, numbers
    return request


def _first_of_its_kind(func: FunctionType) -> FunctionType:
    """Return a function met before that reads the same objects, or this one.

    A lambda is a new function each time its line is run.
    """
    known = _functions.get(func.__code__)
    if known is func:
        return func
    if known is not None and _reads_the_same(known, func):
        return known
    _functions[func.__code__] = func
    while len(_functions) > KEPT:
        _functions.popitem(last=False)
    return func


def _reads_the_same(one: FunctionType, other: FunctionType) -> bool:
    """Return whether functions of the same code have the same globals, variables and defaults."""
    if one.__globals__ is not other.__globals__ or one.__dict__ or other.__dict__:
        return False
    if one.__kwdefaults__ is not other.__kwdefaults__:
        return False
    mine, theirs = one.__defaults__ or (), other.__defaults__ or ()
    if len(mine) != len(theirs) or any(map(is_not, mine, theirs)):
        return False
    try:
        for a, b in zip(one.__closure__ or (), other.__closure__ or ()):
            if a is not b and a.cell_contents is not b.cell_contents:
                return False
    except ValueError:
        return False  # a variable that has no value yet
    return True


def _forms_of(leaves: Sequence[Any]) -> tuple[Any, ...] | None:
    """Return what kernels know of numbers; None where something else is among them."""
    forms: list[Any] = []
    for leaf in leaves:
        if type(leaf) is np.ndarray:
            dtype = leaf.dtype
            if dtype.char not in _KINDS or not dtype.isnative:
                return None
            forms.append((dtype.char, leaf.shape))
        elif type(leaf) in _NUMBERS:
            forms.append(type(leaf))
        else:
            return None
    return tuple(forms)


class Prepared:
    """A problem with all but its numbers made ready.

    It holds for as long as what its function ``reads`` does not change.
    """

    def __init__(self, problem: Problem, reads: State, kind: type[BoundSolver]) -> None:
        self.reads, self.most = reads, problem.max_steps
        self.method, self.layout = problem.kernels.plan.method, problem.kernels.plan.layout
        self.solver = kind(problem)
        #: What is known of the output times of the last solve.
        self.outputs: Outputs | None = None

    def solve(self, request: Request, t_eval: Any) -> Solution | None:
        """Solve for the states at ``t_eval``; without it, the last one or those after all steps.

        None where something is to be refused, for the ordinary way to say what.
        """
        request.outputs = None
        if t_eval is not None:
            known = self.outputs
            if known is None or not known.are_at(t_eval, request.t_start, request.t_end):
                known = outputs_at(t_eval, request.t_start, request.t_end)
                if known is None:
                    return None
                self.outputs = known
            request.outputs, request.times = known, np.ascontiguousarray(t_eval, np.float64)
        return self.solver.solve(request)

    def unpack(self, x: np.ndarray) -> Any:
        """Return the tree of states (m, n)."""
        shapes = self.layout.shapes
        if self.layout.is_array:
            return x if len(shapes[0]) == 1 else x.reshape(len(x), *shapes[0])
        pairs = zip(self.solver.spans, shapes)
        leaves = [x[:, span].reshape(len(x), *shape) for span, shape in pairs]
        return self.layout.treedef.unflatten(leaves)

    def trajectory(self, solution: Solution) -> Trajectory:
        """Return the trajectory of a solve."""
        end, method = solution.end, self.method
        looks = end.hits >= HITS and end.accepted >= MANY_STEPS
        stats = {"method": method.name, "steps": end.accepted, "rejected": end.rejected}
        return assemble_trajectory(
            t=solution.t,
            x=self.unpack(solution.x),
            status=end.status,
            message=message_of(end.status, end.reached, self.most, method.stiff, looks),
            stats=stats | end.counts,
            dense=solution.dense,
            events=None,
        )
