"""What a language must say of itself so that graphs can be written in it.

A dialect spells; it decides nothing about graphs. ``f`` is a function being written, of whatever
class the dialect makes; operands are text. Methods that raise ``NotImplementedError`` have to be
spelled, the others are choices that most languages take as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes.backends.lowering.analysis import Safepoint
from archimedes.backends.lowering.schedule import Schedule
from archimedes.backends.lowering.scope import Binding, Instances, Location, Scope
from archimedes.graph.program import Graph
from archimedes.graph.regions import Call, Host, Map, Nest, Region, Solve, Switch

if TYPE_CHECKING:
    from archimedes.backends.lowering.graph_lowering import Lowering


#: What a loop carries: dtypes and operands.
Carried = Sequence[tuple[int, str]]
#: More values than this that a loop carries or a region returns stay in memory.
FEW = 64


@dataclass(eq=False, repr=False)
class Loop:
    """A loop being written: its counter, the operands it carries, and those of the next step.

    ``carried`` are the values of this step inside the loop and the last ones behind it; whoever
    writes the step sets ``next``. ``mask`` is the dialect's own.
    """

    counter: str
    carried: list[str]
    next: list[str] = field(default_factory=list)
    mask: str = ""


class Request(NamedTuple):
    """The nodes of a graph to compute: some are ``stored`` as they come, others are ``wanted``.

    Nodes in ``known`` have been computed elsewhere. ``whole``: the graph is not cut into pieces.
    """

    stored: Sequence[int]
    wanted: Sequence[int]
    known: Mapping[int, Binding]
    whole: bool


class Results(NamedTuple):
    """The outputs of a function that a call wants, by number, and the locations of its blocks."""

    wanted: Sequence[int]
    blocks: Mapping[int, Location]


class Branching(NamedTuple):
    """Branches to be written: the index that selects one (clamped to them), and their costs.

    Their values have these dtypes, and go to ``locations`` where there are any.
    """

    selector: str
    costs: Sequence[int]
    dtypes: Sequence[int]
    locations: Sequence[Location]


class Join:
    """Branches being written, of which one is taken.

    ``order`` is that in which they are written; ``branch(k)`` surrounds each, and ``give`` in it
    takes its values. Then ``results`` returns one operand for each value, or none where values go
    to locations.
    """

    order: Sequence[int]
    #: Which instances take the branch being written, where those of several run ("": all).
    mask = ""

    def branch(self, k: int) -> AbstractContextManager[None]:
        """Surround what is written of branch ``k``."""
        raise NotImplementedError

    def give(self, values: Sequence[Binding]) -> None:
        """Take the values of the branch being written."""
        raise NotImplementedError

    def results(self) -> list[str]:
        """Return the values of the branch that was taken."""
        raise NotImplementedError


class Reach:
    """Makes what one function knows known to the pieces it is cut into."""

    def binding(self, binding: Binding, dtype: int) -> Binding:
        """Return the binding of a value as the pieces get at it."""
        return binding

    def location(self, location: Location) -> Location:
        """Return a location as the pieces get at it."""
        return location


class Dialect:
    """A language, and the file being written in it."""

    #: Bodies of at least this many operations that occur more than once become functions.
    shared: Mapping[type[Region], int] = {Call: 24, Switch: 24}
    #: Whether a body too long for its function becomes a function, rather than parts of one.
    large_bodies_are_functions = True
    #: Shorter runs of copies are unrolled.
    run = 8
    #: Sums of so few terms are unrolled, where they are the innermost loop.
    unrolled_terms = 1
    #: Whether copies that are rows of equal length are written as two loops.
    boxes = False
    #: Unrolled copies are interrupted after so many (0: never).
    longest_block = 0
    #: Whether loops write results straight into larger blocks also with others between them, and
    #: numbers that are put together to a block are written there as they are computed.
    apart = False
    #: Whether arrays can be walked from their end.
    walks_back = True
    #: Whether a map whose results go to several arrays is a loop for each of these.
    splits_maps = False
    #: Whether ``scratch`` is used again, so that results have to be taken out of it at once.
    reuses_scratch = False
    #: What scopes are made of.
    scope: type[Scope] = Scope

    # ---- nodes ---------------------------------------------------------------------------

    def order(self, g: Graph, request: Request) -> Schedule:
        """Return the order in which nodes are computed."""
        raise NotImplementedError

    def nodes(
        self, low: Lowering, scope: Scope, order: Sequence[int], last: Sequence[int]
    ) -> Callable[[int], str | None]:
        """Return what writes a node (no region, no output of one) and returns its operand.

        ``order`` are the nodes to come, ``last`` those with readers elsewhere. None stands for a
        node that the writer has stored at its one location in ``scope.waiting`` itself.
        """
        raise NotImplementedError

    def note(self, f: Any, g: Graph, i: int) -> None:
        """Note the source of the code that follows."""

    def literal(self, value: Any, dtype: int) -> str:
        """Write a constant."""
        raise NotImplementedError

    # ---- memory --------------------------------------------------------------------------

    def array(self, f: Any, dtype: int, count: int) -> Location:
        """Reserve an array and return its first element."""
        return f.frame.array(dtype, count)

    def block(self, f: Any, dtype: int, count: int) -> Location:
        """Reserve the array of a block, until ``release``."""
        return f.frame.block(dtype, count)

    def release(self, f: Any, location: Location) -> None:
        """Release the array of a block that nobody reads any more."""
        f.frame.release(location)

    def constant_block(self, f: Any, table: np.ndarray, dtype: int) -> Location:
        """Return the first element of a table that is a block."""
        return self.table(f, table, dtype)

    def scratch(self, f: Any, owner: str, dtype: int, count: int) -> Location:
        """Reserve an array, the same at each call with the same owner if there is reuse."""
        return self.array(f, dtype, count)

    def table(self, f: Any, values: Sequence[Any] | np.ndarray, dtype: int) -> Location:
        """Return the first element of a constant array."""
        raise NotImplementedError

    def load(self, f: Any, location: Location) -> str:
        """Return an operand with the value at a location."""
        raise NotImplementedError

    def store(self, f: Any, location: Location, operand: str) -> None:
        """Store a value at a location."""
        raise NotImplementedError

    def advance(self, f: Any, location: Location, counter: str, stride: int) -> Location:
        """Return the location ``counter * stride`` elements further."""
        raise NotImplementedError

    def index(self, f: Any, operand: str, length: int) -> str:
        """Return an int64 as a counter, clamped to a length (0: it is known to fit)."""
        raise NotImplementedError

    def gather(self, f: Any, block: Location, table: Location) -> Binding:
        """Return the element of a block that a table of positions names."""
        return Binding(location=self.advance(f, block, self.index(f, self.load(f, table), 0), 1))

    def number(self, f: Any, counter: str) -> str:
        """Return a counter as an int64."""
        raise NotImplementedError

    def modulo(self, f: Any, terms: Sequence[tuple[str, int]], divisor: int) -> str:
        """Return the counter ``sum(counter * stride) % divisor``."""
        raise NotImplementedError

    def element(self, f: Any, location: Location, length: int, index: str) -> str:
        """Return an operand with an element of a block, at an index clamped to it."""
        return self.load(f, self.advance(f, location, self.index(f, index, length), 1))

    def put(self, f: Any, location: Location, length: int, index: str, operand: str) -> None:
        """Put a value into an element of a block, at an index clamped to it."""
        self.store(f, self.advance(f, location, self.index(f, index, length), 1), operand)

    def takes_columns(self, locations: Sequence[Location]) -> bool:
        """Return whether steps of a loop may write straight to locations that wait for values."""
        return True

    def operand(self, f: Any, binding: Binding) -> str:
        """Return an operand with the value of a binding."""
        if binding.operand is not None:
            return binding.operand
        if binding.constant is not None:
            return self.literal(*binding.constant)
        assert binding.location is not None
        return self.load(f, binding.location)

    def preserve(self, f: Any, binding: Binding, dtype: int) -> Binding:
        """Load a value from memory that will be overwritten."""
        if binding.location is None:
            return binding
        return Binding(operand=self.load(f, binding.location))

    def copy_run(self, f: Any, to: Location, start: Location, count: int) -> None:
        """Copy a run of values from array to array."""
        raise NotImplementedError

    def fill_run(self, f: Any, to: Location, operand: str, count: int) -> None:
        """Store one value into a run of locations."""
        raise NotImplementedError

    def interrupt(self, f: Any) -> None:
        """Begin a new basic block between copies (``longest_block``)."""

    # ---- control flow --------------------------------------------------------------------

    def for_loop(
        self, f: Any, length: int, carried: Carried = (), safepoint: Safepoint | None = None
    ) -> AbstractContextManager[Loop]:
        """Write a loop of ``length`` steps that carries (dtype, operand) pairs.

        ``safepoint``: how often it should let Python run, where it may take long.
        """
        raise NotImplementedError

    def while_loop(
        self, f: Any, limit: int, carried: Carried, hosted: bool, safepoint: Safepoint | None
    ) -> AbstractContextManager[Loop]:
        """Write a loop of at most ``limit`` steps; ``hosted``: with calls of Python in it."""
        raise NotImplementedError

    def exit_unless(self, f: Any, loop: Loop, test: str) -> None:
        """Leave a loop of ``while_loop`` unless a test holds."""
        raise NotImplementedError

    def copy_masked(
        self, f: Any, mask: str, copies: Sequence[tuple[Location, Location, int]]
    ) -> bool:
        """Copy values where a mask holds and return True, if plain copies are not enough.

        Each has a target, a source and the length of a block (0: a scalar).
        """
        return False

    def swap_by_parity(
        self, f: Any, counter: str, first: Location, second: Location
    ) -> tuple[Location, Location] | None:
        """Return both locations, swapped where a counter is odd; None if the language cannot."""
        return None

    def from_end(self, f: Any, counter: str, length: int) -> str:
        """Return the operand ``length - 1 - counter``."""
        raise NotImplementedError

    def join(self, f: Any, branching: Branching) -> Join:
        """Begin branches."""
        raise NotImplementedError

    # ---- functions -----------------------------------------------------------------------

    def part(self, f: Any, number: int) -> AbstractContextManager[Any]:
        """Write a function that is a piece of ``f``, and its call in ``f``."""
        raise NotImplementedError

    def reach(self, f: Any) -> Reach:
        """Return what makes values of a function known to its pieces."""
        return Reach()

    def function(
        self, low: Lowering, f: Any, region: Region, body: Graph, arguments: Sequence[Binding]
    ) -> Any:
        """Write the function of a body, with the ``arguments`` of its first call in ``f``."""
        raise NotImplementedError

    def form(self, body: Graph, arguments: Sequence[Binding]) -> Any:
        """Return what a function is specialized for, besides the types of its arguments."""
        return None

    def call(
        self, f: Any, routine: Any, arguments: Sequence[Binding], results: Results
    ) -> list[Binding]:
        """Call what ``function`` returned and return the outputs that are wanted."""
        raise NotImplementedError

    # ---- regions -------------------------------------------------------------------------

    def solve(self, f: Any, region: Solve, work: Location) -> None:
        """Solve linear equations: rows of matrix and right-hand sides, which solutions replace."""
        raise NotImplementedError

    def map(self, low: Lowering, scope: Scope, region: Map, outs: Sequence[int]) -> bool:
        """Lower a map in the dialect's own way and return True; otherwise it becomes a loop."""
        return False

    def rows(self, low: Lowering, scope: Scope, instances: Instances, outs: Sequence[int]) -> bool:
        """Lower instances that are rows of blocks in the dialect's own way and return True."""
        return False

    def nest(self, low: Lowering, scope: Scope, region: Nest, outs: Sequence[int]) -> bool:
        """Lower a nest in the dialect's own way and return True; otherwise it becomes loops."""
        return False

    def host(self, low: Lowering, scope: Scope, region: Host, outs: Sequence[int]) -> None:
        """Call back into Python and bind the used outputs."""
        raise NotImplementedError
