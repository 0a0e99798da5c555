"""What a region is: a node that runs bodies, and everything that anybody asks of one.

A region is described by its class and nowhere else. ``Region`` has an answer for each question,
right for a region without bodies that must stay whole; a class overrides those that differ.
Adding a region is one such class, and its lowering (``backends/``). Its derivatives are methods
as well; those of the regions here are written in ``graph/derivatives/``, above this layer, and
registered with ``add_derivative``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from archimedes.errors import GraphError
from archimedes.graph.dtypes import length_of
from archimedes.graph.program import Graph
from archimedes.graph.regions.interval_sets import Sets, fill, union_of
from archimedes.records import record

#: (graph, ids of inputs, ids of outputs, rows of tangents or adjoints) -> rows
Pass = Callable[[Graph, np.ndarray, np.ndarray, list[list[int | None]]], Any]
#: Tangents or adjoints of one value: an id per direction; a direction that is missing is zero.
Directions = dict[int, int]
Tangents = list[Directions]
Adjoints = list[Directions]
#: Whether the adjoint of each value is asked for.
Wanted = Sequence[bool]
#: Runs a body on values.
Run = Callable[[Graph, Sequence[Any]], list[Any]]
#: Says what each output of a body depends on where its inputs stand for these sets.
Through = Callable[[Graph, Sequence[Sets]], list[Sets]]
#: Counts the operations of a body by name.
CountOperations = Callable[[Graph], Counter[str]]
#: Says what counts of operations cost.
Weight = Callable[[Counter[str]], int]
Numbers = tuple[int, ...]


class DerivativeRule(Protocol):
    """A derivative that a ``Call`` brings with it instead of differentiating its body.

    ``forward`` gets the graph to emit into, the ids of inputs and outputs, and for each direction
    one tangent id (or None for zero) per input; it returns one list of output tangents per
    direction. ``reverse`` is its transpose. A rule may have only one of them (``None`` there).
    ``pattern`` returns what each output depends on, from the sets of inputs that each input
    stands for; where it is None, every output depends on every input.
    A rule may say that some outputs are ``gauge_dependent`` (a set of positions): determined up to
    a choice. Only ``reverse`` knows their derivatives, of functions free of the choice.
    """

    name: str

    @property
    def forward(self) -> Pass | None: ...

    @property
    def reverse(self) -> Pass | None: ...

    @property
    def pattern(self) -> Callable[[list[int]], list[int]] | None: ...


class RegionDerivative(NamedTuple):
    """Derivatives of the regions of one class, as functions: see the methods of ``Region``."""

    push_forward: Callable[[Graph, Any, Tangents], tuple[Any, Tangents]]
    pull_back: Callable[[Graph, Any, Adjoints, Any, Wanted], Adjoints]
    record: Callable[[Graph, Any], tuple[np.ndarray, Any]] | None = None


_DERIVATIVES: dict[type[Region], RegionDerivative] = {}


def add_derivative(kind: type[Region], *functions: Callable[..., Any]) -> None:
    """Say how regions of a class are differentiated, where the class does not say so itself.

    ``functions`` are those of ``RegionDerivative``.
    """
    _DERIVATIVES[kind] = RegionDerivative(*functions)


def _ids(values: Sequence[int] | np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=np.int64).reshape(-1)


@record
class Region:
    """Base of all regions; ``inputs`` may be any sequence of ids, kept as an array.

    ``line`` is the user's line that made it, where that is known; it serves errors only.
    """

    inputs: Any = field(compare=False)
    line: str = field(default="", kw_only=True, compare=False)

    #: Whether it runs its body at the points of an index space.
    over_index_space = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", _ids(self.inputs))

    # ---- what it is --------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """Name of the region in text and tables."""
        return type(self).__name__.lower()

    @property
    def bodies(self) -> tuple[Graph, ...]:
        """The graphs it runs."""
        return ()

    @property
    def out_dtypes(self) -> list[int]:
        """Dtype codes of its outputs."""
        raise NotImplementedError

    @property
    def runs(self) -> int:
        """How often its bodies run, at most."""
        return 1

    @cached_property
    def has_effects(self) -> bool:
        """Whether running it may do more than compute its outputs."""
        return any(body.effects() for body in self.bodies)

    def settings(self, lasting: bool = False, data: bool = True) -> tuple[Any, ...]:
        """Return what makes two regions different besides inputs and bodies; see ``key``.

        These are the fields that are not marked ``compare=False``.
        """
        return tuple(getattr(self, f.name) for f in fields(self) if f.compare)

    @property
    def tables(self) -> Sequence[np.ndarray]:
        """Constant tables it reads, besides those of its bodies."""
        return ()

    def summary(self) -> str:
        """Return the settings as words, for printing."""
        return " ".join(str(s) for s in self.settings())

    def key(self, lasting: bool = False, data: bool = True) -> tuple[Any, ...]:
        """Return the content of the region, for sharing equal ones.

        ``lasting``: what it computes only; without ``data``: not what is in longer tables.
        """
        bodies = tuple(body.digest(lasting, data) for body in self.bodies)
        return (self.kind, self.inputs.tobytes(), bodies, self.settings(lasting, data))

    # ---- another one like it -----------------------------------------------------------

    def with_inputs(self, inputs: Sequence[int] | np.ndarray) -> Any:
        """Return the same region reading other ids."""
        return replace(self, inputs=_ids(inputs))

    def with_bodies(self, bodies: Sequence[Graph]) -> Region:
        """Return the same region with other bodies and without derivative rules."""
        if bodies:
            raise NotImplementedError
        return self

    def retype(self, body: Callable[[Graph], Graph], dtype: Callable[[int], int]) -> Region:
        """Return the same region with other dtypes: ``body`` and ``dtype`` give the new ones."""
        return self.with_bodies([body(b) for b in self.bodies])

    def within(self, g: Graph) -> Region:
        """Return the region without branches that cannot be taken on what it reads in a graph."""
        return self

    def prune(self, pruner: Pruner, used: list[int]) -> Pruning:
        """Return what some of its outputs need of the region (default: all of it)."""
        return Pruning(tuple(range(len(self.inputs))), self.with_inputs, same_number)

    def element(self, g: Graph, number: int, at: int) -> int | None:
        """Return the node of an element of an output that is a block, where there is one."""
        return None

    # ---- what it computes --------------------------------------------------------------

    def evaluate(self, values: list[Any], run: Run) -> list[Any]:
        """Return its outputs for NumPy scalars or arrays over a batch: what the region means."""
        raise NotImplementedError

    def count(self, operations: CountOperations, weight: Weight) -> Counter[str]:
        """Return by name the most operations it takes; ``operations`` counts those of a body.

        ``weight`` says what counts cost, for choosing the longest of several.
        """
        once = sum((operations(body) for body in self.bodies), Counter[str]())
        return multiply_counts(once, self.runs)

    def work(self, body: Callable[[Graph], int], rounds: int) -> int:
        """Return roughly what a run costs, in operations; ``body`` says so of a body.

        A loop with a bound is taken to run ``rounds`` times, or as often as it may if that is less.
        """
        return self.runs * sum(map(body, self.bodies))

    def dependence(self, sets: list[Sets], through: Through) -> list[Sets]:
        """Return the set that each output depends on, from those of the inputs."""
        every = 0
        for columns in sets:
            every |= union_of(columns)
        lengths = map(length_of, self.out_dtypes)
        return [fill(every, length) if length else every for length in lengths]

    # ---- its derivatives ---------------------------------------------------------------

    def push_forward(self, dst: Graph, tangents: Tangents) -> tuple[Any, Tangents]:
        """Emit the region with its tangents: ids of the outputs, and a tangent of each.

        Its inputs are ids in ``dst``, as are their ``tangents``.
        """
        return self._derivative().push_forward(dst, self, tangents)

    def record(self, dst: Graph) -> tuple[np.ndarray, Any]:
        """Emit the region; return the ids of its outputs, and whatever ``pull_back`` needs."""
        record = self._derivative().record
        if record is not None:
            return record(dst, self)
        outs = dst.region(self)
        return outs, outs

    def pull_back(self, dst: Graph, adjoints: Adjoints, saved: Any, wanted: Wanted) -> Adjoints:
        """Emit the way back: adjoints of the inputs (those ``wanted``) from those of the outputs.

        ``saved`` is what ``record`` kept.
        """
        return self._derivative().pull_back(dst, self, adjoints, saved, wanted)

    def _derivative(self) -> RegionDerivative:
        derivative = _DERIVATIVES.get(type(self))
        if derivative is None:
            raise GraphError(
                f"regions of kind {self.kind!r} have no derivative: give {type(self).__name__} "
                "the methods push_forward and pull_back"
            )
        return derivative


@record
class OneBody(Region):
    """A region that runs one body."""

    body: Graph = field(compare=False)

    @property
    def bodies(self) -> tuple[Graph, ...]:
        return (self.body,)

    def with_bodies(self, bodies: Sequence[Graph]) -> Region:
        (body,) = bodies
        return replace(self, body=body)


def multiply_counts(counts: Counter[str], factor: int) -> Counter[str]:
    """Return counts of what is done many times."""
    return Counter({name: factor * count for name, count in counts.items()})


def has_blocks(graph: Graph) -> bool:
    """Return whether a program has blocks, or loops over index spaces, in bodies too.

    Such programs run one instance at a time in NumPy.
    """
    if any(map(length_of, graph.dtype)):
        return True
    regions = graph.regions.values()
    return any(r.over_index_space or any(map(has_blocks, r.bodies)) for r in regions)


def longest_block(graph: Graph) -> int:
    """Return the number of elements of the longest block of a program, in bodies too.

    >>> longest_block(Graph())
    0
    """
    own = max(map(length_of, graph.dtype), default=0)
    bodies = (body for region in graph.regions.values() for body in region.bodies)
    return max([own, *map(longest_block, bodies)])


# ---- dead code: what ``Region.prune`` asks and answers -----------------------------------


class Pruner(Protocol):
    """What a region asks about its bodies (``graph/dead_code.py`` answers)."""

    def reads(self, g: Graph, outputs: Sequence[int]) -> set[int]:
        """Return the numbers of the inputs that some outputs of a body depend on."""
        ...

    def part(self, src: Graph, inputs: Numbers, outputs: Numbers) -> Graph:
        """Return the part of a body that computes some outputs, with some inputs only."""
        ...

    def is_called_once(self, body: Graph) -> bool:
        """Return whether the program has one call of a body only."""
        ...


class Pruning(NamedTuple):
    """What stays of a region: positions of the inputs it keeps, and how it is made of their ids.

    ``outputs`` gives the new number of an output. ``region`` is None for loops of no step, and for
    calls that only hand values on: ``outputs`` then gives the number of an input.
    """

    inputs: Numbers
    region: Callable[[np.ndarray], Region] | None
    outputs: Callable[[int], int]


def same_number(number: int) -> int:
    """Return the number of an output that keeps its position."""
    return number


def new_numbers(numbers: Sequence[int]) -> Callable[[int], int]:
    """Return a function from old to new numbers, for those that stay, in this order."""
    return {old: new for new, old in enumerate(numbers)}.__getitem__


def close_carry(
    pruner: Pruner, body: Graph, count: int, wanted: set[int], also: Sequence[int]
) -> tuple[Numbers, set[int]]:
    """Return which carried values matter over any number of steps, and the inputs they read.

    Of ``count`` values carried those ``wanted`` do, and all that ``also``, other outputs, read.
    """
    alive = set(wanted)
    while True:
        reads = pruner.reads(body, [*sorted(alive), *also])
        more = {k for k in reads if k < count} - alive
        if not more:
            return tuple(sorted(alive)), reads
        alive |= more
