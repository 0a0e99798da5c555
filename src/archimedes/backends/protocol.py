"""What a backend is: the interface through which functions and solvers run their graphs.

A backend turns a :class:`Program` into a :class:`Kernel` and says which arrays it computes with.
It is made known by ``registry.register`` and then chosen by name (``arc.compile(f,
backend="name")``) or by the arrays that a function is called with. Only ``Backend.build``,
``Kernel.call`` and ``Kernel.call_batch`` have to be written; ``docs/backends.md`` shows one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from archimedes.backends.array_kinds import HOST, Arrays
from archimedes.graph.dtypes import STATIC
from archimedes.graph.program import Graph
from archimedes.records import record

#: More instances, or rounds of a loop, than there ever are.
EVERYTHING = 2**62
#: How often a bounded loop is assumed to run.
ROUNDS = 100


#: The arrays of a call, one per leaf, of the backend's kind; which of them have a row per instance;
#: and how many threads the user asked for (None: the backend chooses).
Leaves = Sequence[Any]
Flags = Sequence[bool]
Threads = int | None


class ArrayType(NamedTuple):
    """Dtype code and shape of one array (of one instance, in batches)."""

    code: int
    shape: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Number of scalars."""
        return math.prod(self.shape)


class Program(NamedTuple):
    """A graph, and the arrays that hold its inputs and outputs, one after the other."""

    graph: Graph
    inputs: tuple[ArrayType, ...]
    outputs: tuple[ArrayType, ...]
    #: Of the function it was recorded from.
    name: str = ""


class Figures(NamedTuple):
    """What a kernel costs, as ``f.report()`` shows it; what a backend does not know stays 0.

    ``operations``: in the form that runs, ``flops`` of them floating-point work; ``code_bytes``
    and ``compile_seconds`` of all code made so far; ``lanes``: instances computed at once in a
    batch; ``from_disk``: whether code came from the backend's cache; ``notes``: further lines.
    """

    operations: int = 0
    flops: int = 0
    code_bytes: int = 0
    compile_seconds: float = 0.0
    lanes: int = 1
    from_disk: bool = False
    notes: tuple[str, ...] = ()


class GroupSizes(NamedTuple):
    """How many solves of a batch a backend wants to have together in its kernels.

    ``group``: instances that go together; ``keeping``: where their steps are kept, which take
    memory, but enough that the Python between kernel calls, which holds up other threads, is
    little. At least ``shares`` groups for each thread, so that none waits long for the last, and
    no fewer instances than ``least``, however many threads there are. ``chunk``: runs of a
    campaign that are computed together.
    """

    group: int = 2048
    keeping: int = 1024
    shares: int = 2
    least: int = 16
    chunk: int = 256


# ---- direct entries: builtins that Python calls with the leaves of one kind of arguments, and that
# return the finished result, without a detour through arrays and trees. Not every backend has them.


class Argument(NamedTuple):
    """An argument leaf: dtype code, shape, Python number or not.

    The code is ``STATIC`` for one that must be this very object (``value``). A batched one has an
    axis of instances in front of its shape.
    """

    code: int
    shape: tuple[int, ...] = ()
    weak: bool = False
    value: Any = None
    batched: bool = False

    @property
    def traced(self) -> bool:
        """Whether its numbers are inputs of the graph."""
        return self.code != STATIC


class Leaf(NamedTuple):
    """The form of a result that is a leaf: its place among the leaves."""

    place: int


class Known(NamedTuple):
    """The form of a part that is always this object."""

    value: Any


class Tuple(NamedTuple):
    """The form of a tuple: those of its items."""

    parts: tuple[Form, ...]


class Struct(NamedTuple):
    """The form of an object with attributes, made without calling its ``__init__``."""

    cls: type
    fields: tuple[str, ...]
    parts: tuple[Form, ...]


Form = Leaf | Known | Tuple | Struct


@record
class EntryRequest:
    """A kind of call that a direct entry is wanted for.

    ``batch``: the arguments marked so have an axis of instances, computed in ``threads`` threads
    (None: as the backend finds best). ``into``: arrays for the results are further arguments, and
    None is returned.
    """

    arguments: tuple[Argument, ...]
    results: tuple[ArrayType, ...]
    form: Form
    batch: bool = False
    threads: int | None = None
    into: bool = False


# ---- what a backend has to write -----------------------------------------------------------------


class Kernel(ABC):
    """A program made ready to run. Calls keep no state and may come from several threads."""

    #: What ``source`` knows.
    sources: tuple[str, ...] = ()

    @abstractmethod
    def call(self, inputs: Leaves, outputs: Leaves) -> None:
        """Compute one instance into ``outputs``; all are arrays of the backend's, as its
        ``arrays.take`` and ``arrays.empty`` make them.
        """

    def bind(self, inputs: Leaves, outputs: Leaves) -> Callable[[], None]:
        """Return ``f()``, which calls the kernel with arrays that stay the same."""
        return lambda: self.call(inputs, outputs)

    @abstractmethod
    def call_batch(
        self, inputs: Leaves, batched: Flags, outputs: Leaves, count: int, threads: Threads = None
    ) -> None:
        """Compute ``count`` instances.

        Inputs marked in ``batched`` and all outputs have a leading axis of that length, other
        inputs are shared. ``threads`` is what the user asked for (None: the backend chooses);
        results may not depend on it.
        """

    def call_batch_from_host(
        self, inputs: Leaves, batched: Flags, outputs: Leaves, count: int, threads: Threads = None
    ) -> bool:
        """Compute a batch whose inputs and outputs are NumPy arrays; return whether that was done.

        This is for devices that overlap copying and computing by moving a large batch in pieces. If
        it returns False, as by default, whole arrays are moved to the device and back.
        """
        return False

    def direct_entry(self, request: EntryRequest) -> Callable[..., Any] | None:
        """Return a builtin for one kind of call, or None where there is none.

        It returns NotImplemented for arguments of any other kind.
        """
        return None

    def sorted_runs(self) -> Any:
        """Return what ``function.batching.sorted_items.over_runs`` does of this kernel, or None."""
        return None

    def repeating(
        self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], carry: int
    ) -> Callable[[np.ndarray], tuple[int, int]]:
        """Return ``f(rows)``: calls of the kernel, each with the state that the last one put out.

        The first ``carry`` inputs are the state; the program puts out the next one, a row, and two
        truth values: whether the row counts, and whether to go on. ``outputs`` are arrays for all
        but the row, those for the state like the inputs', which are written to as well. ``f``
        returns how many calls there were and how many of ``rows`` they filled; the last state is
        in ``outputs`` after an odd number of calls, else in ``inputs``. For NumPy's arrays.
        """
        flags = outputs[carry:]

        def run(rows: np.ndarray) -> tuple[int, int]:
            here, there = list(inputs), list(outputs[:carry])
            calls = filled = 0
            while filled < len(rows):
                self.call(here, [*there, rows[filled], *flags])
                here[:carry], there = there, here[:carry]
                calls, filled = calls + 1, filled + int(flags[0][0])
                if not flags[1][0]:
                    break
            return calls, filled

        return run

    def repeating_batch(
        self, at: Kernel, carry: int, batched: Flags, key: int
    ) -> Callable[..., None] | None:
        """Return a function that repeats the kernel for many instances, or None.

        The kernel's program is that of ``repeating`` with one more input, the next item; ``at`` is
        one of this backend's for ``(row, item) -> numbers``; ``batched`` says what has a row per
        instance of the inputs between state and item. It is called with arrays of the backend's,
        ``(state, given, items, sign, places, done, results)``, and repeats each instance until it
        need not go on, or has all items behind it (see ``function.batching.repeated_batches``).
        """
        return None

    def optimize(self) -> None:
        """Replace unoptimized code (``Backend.build_unoptimized``); calls may be running.

        What was taken from the kernel before, such as direct entries, stays unoptimized.
        """
        return

    def source(self, kind: str) -> str:
        """Return the code as text; ``kind`` is one of ``sources``."""
        raise NotImplementedError(kind)

    def batch_notes(self, inputs: Sequence[Any]) -> tuple[str, ...]:
        """Time a batch of instances with these inputs and describe it; nothing by default."""
        return ()

    def figures(self) -> Figures:
        """Return what the kernel costs."""
        return Figures()


class Backend(ABC):
    """A way to run graphs: see the module's docstring."""

    #: What ``backend=`` says.
    name: str
    #: The arrays it computes with.
    arrays: Arrays = HOST
    #: How many solves it wants to have together.
    sizes: GroupSizes = GroupSizes()
    #: Whether its kernels read the tables of a program where they lie, at each call anew. If not,
    #: programs have no live tables (``graph.digests.live_table``).
    reads_tables_in_place: bool = False

    @abstractmethod
    def build(self, program: Program) -> Kernel:
        """Make a program ready to run, or take it from the cache."""

    def build_unoptimized(self, program: Program) -> Kernel:
        """Return a kernel with the same bits, sooner where that can be had for less speed.

        ``Kernel.optimize`` is called for those that turn out to be run for long.
        """
        return self.build(program)

    def block_factors(self) -> Any:
        """Return what factorises and solves systems of ``simulate.sparse``, or None.

        An object with ``factorise(system, blocks)`` and ``solve(system, blocks, x)``; without one,
        that of the default backend is used.
        """
        return None

    def array_functions(
        self, functions: Mapping[str, tuple[str, Callable[..., None]]], sources: Path
    ) -> Mapping[str, Callable[..., int]] | None:
        """Return functions of arrays of any length that are described by loops, or None.

        ``functions`` has, by name, the kinds of the parameters (F and I for arrays of float64 and
        int64, f and i for numbers) and a description, which is called with something that writes
        loops down (``llvm/runtime/array_functions.py``) and with the parameters. The functions take
        contiguous arrays and numbers, and return a code; ``bind(*first)`` gives the function of the
        other parameters, for arrays that are the same in many calls.
        ``sources`` is the folder of the descriptions, by which code on disk is known.
        """
        return None

    def thread_dispatch(self, base: type, needed: bool) -> Any:
        """Return what makes stand-ins for functions (``symbolic/recorded/stands.py``), or None.

        They are of a class derived from ``base``. Unless it is ``needed``, nothing is loaded.
        """
        return None

    def cache_folder(self) -> Path | None:
        """Return the folder in which built kernels are kept for other processes, or None."""
        return None

    def __repr__(self) -> str:
        return f"<backend {self.name}>"


def estimate_work(graph: Graph, rounds: int = ROUNDS) -> int:
    """Count the nodes of a graph and of the bodies in it: roughly what one run costs.

    A loop with a bound is taken to run ``rounds`` times, or as often as it may if that is less.
    """

    def body(inner: Graph) -> int:
        return estimate_work(inner, rounds)

    return len(graph) + sum(region.work(body, rounds) for region in graph.regions.values())
