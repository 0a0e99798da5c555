"""Functions of a module: pieces of long ones, and bodies that are called from several regions.

All take the same parameters, the frame and the arrays of the call. Arguments and results lie in the
frame; blocks are passed by address.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from archimedes.backends.llvm.lowering.assembler import PARAMETERS, Function, Module
from archimedes.backends.llvm.lowering.memory import Pointer
from archimedes.backends.llvm.lowering.memory_dialect import MemoryDialect
from archimedes.backends.lowering.copies import arrays, copy_all
from archimedes.backends.lowering.dialect import FEW, Reach
from archimedes.backends.lowering.graph_lowering import Lowering
from archimedes.backends.lowering.scope import Binding, Location
from archimedes.graph.dtypes import item_type, length_of
from archimedes.graph.program import Graph
from archimedes.graph.regions import Region

__all__ = ["FrameReach", "FunctionDialect", "Routine"]


class FrameReach(Reach):
    """Makes what only the current function can name known to others, through the frame."""

    def __init__(self, f: Function) -> None:
        self.f = f
        self.slots: dict[Pointer, Pointer] = {}

    def location(self, location: Location) -> Location:
        """Return the place by a pointer that any function can get."""
        pointer, f = location.array, self.f
        if pointer.kind != "local":
            return location
        if pointer not in self.slots:
            offset = f.module.frame.bytes(8)
            self.slots[pointer] = pointer._replace(kind="slot", value=offset)
            at = f.value(f"getelementptr i8, ptr %frame, i64 {offset}")
            f.line(f"store ptr {pointer.value}, ptr {at}, align 8")
        return location._replace(array=self.slots[pointer])

    def binding(self, binding: Binding, dtype: int) -> Binding:
        """Return the binding of a value that any function can get."""
        if binding.constant is not None:
            return binding
        location = binding.location
        if location is None:
            location = self.f.module.frame.array(dtype)
            self.f.store(location, self.f.operand(binding))
        return Binding(location=self.location(location))


class Routine(NamedTuple):
    """A function of a body: where it finds the arguments it uses, by number, and puts results."""

    name: str
    arguments: dict[int, Location]
    results: list[Location]


class FunctionDialect(MemoryDialect):
    """What the dialect says of functions."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        #: The function whose parts are called from outside, one after the other, and their names.
        self.outermost: Function | None = None
        self.steps: list[str] = []

    @contextmanager
    def _function(self, stem: str) -> Iterator[Function]:
        """Write a function of the frame and the arrays of the call."""
        name = self.module.fresh(stem)
        f = Function(self.module, f"define internal void {name}({PARAMETERS})")
        f.name = name
        yield f
        f.finish()

    @contextmanager
    def part(self, f: Function, number: int) -> Iterator[Function]:
        """Write a function with the same parameters."""
        with self._function("part") as part:
            yield part
        # Parts of a body inside it come behind lines, at least those of its loop.
        if f is self.outermost and not f.lines:
            self.steps.append(part.name)
        else:
            f.line(f"call void {part.name}({PARAMETERS})")

    def reach(self, f: Function) -> Reach:
        """Return what puts values and addresses into the frame."""
        return FrameReach(f)

    def function(
        self, low: Lowering, f: Function, region: Region, body: Graph, given: Sequence[Binding]
    ) -> Routine:
        """Write a function whose arguments and results are in the frame."""
        arguments = self._parameters(f, body.input_dtypes, given)
        results = self._parameters(f, body.output_dtypes, ())
        with self._function("shared") as part, self.module.frame.separate():
            inside = [Binding(location=location) for location in arguments]
            low.lower(part, body, inside, stores=list(enumerate(results)))
        live = set(body.live())
        used = {k: arguments[k] for k, i in enumerate(body.inputs) if i in live}
        return Routine(part.name, used, results)

    def _parameters(
        self, f: Function, kinds: Sequence[int], given: Sequence[Binding]
    ) -> list[Location]:
        """Return where a function finds or puts values: scalars in the frame, blocks by address."""
        locations = iter(arrays(self, f, [kind for kind in kinds if not length_of(kind)]))
        found = []
        for k, kind in enumerate(kinds):
            if not length_of(kind):
                found.append(next(locations))
                continue
            uniform = bool(given) and self._is_uniform(given[k])
            slot = Pointer("slot", self.module.frame.bytes(8), uniform)
            found.append(Location(slot, 0, item_type(kind)))
        return found

    def form(self, body: Graph, given: Sequence[Binding]) -> Any:
        """Return which blocks are the same in all lanes."""
        kinds = body.input_dtypes
        return tuple(length_of(x) > 0 and self._is_uniform(b) for x, b in zip(kinds, given))

    def _point(self, f: Function, slot: Location, location: Location) -> None:
        """Let a function find a block."""
        at = f.value(f"getelementptr i8, ptr %frame, i64 {slot.array.value}")
        f.line(f"store ptr {f.address(location)}, ptr {at}, align 8")

    def _is_uniform(self, binding: Binding) -> bool:
        """Tell whether a block is the same in all lanes (of one lane, it does not matter)."""
        location = binding.location
        return location is not None and location.array.uniform and self.module.spelling.lanes > 1

    def call(
        self,
        low: Lowering,
        f: Function,
        routine: Routine,
        given: Sequence[Binding],
        wanted: Sequence[int],
        to: Mapping[int, Location],
    ) -> list[Binding]:
        """Call a function; the next call overwrites its results, so they are taken along."""
        name, arguments, results = routine
        blocks = {k: location for k, location in arguments.items() if location.array.kind == "slot"}
        copies = [(location, given[k]) for k, location in arguments.items() if k not in blocks]
        copy_all(self, f, copies)
        for k, slot in blocks.items():
            location = given[k].location
            assert location is not None
            self._point(f, slot, location)
        for k, slot in enumerate(results):
            if slot.array.kind == "slot":
                self._point(f, slot, to[k])
        f.line(f"call void {name}({PARAMETERS})")
        scalars = [k for k in wanted if k not in to]
        if len(scalars) <= FEW:
            found = {k: Binding(operand=f.load(results[k])) for k in scalars}
        else:
            own = arrays(self, f, [results[k].dtype for k in scalars])
            copy_all(self, f, [(p, Binding(location=results[k])) for p, k in zip(own, scalars)])
            found = {k: Binding(location=p) for p, k in zip(own, scalars)}
        found |= {k: Binding(location=location) for k, location in to.items()}
        return [found[k] for k in wanted]
