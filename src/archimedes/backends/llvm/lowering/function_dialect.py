"""The dialect's part about functions: pieces of long ones, and bodies called from several regions.

All take the same parameters, the frame and the arrays of the call. Arguments and results lie in the
frame; blocks are passed by address.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from archimedes.backends.llvm.lowering.assembler import PARAMETERS, Function, Module
from archimedes.backends.llvm.lowering.memory import Pointer
from archimedes.backends.llvm.lowering.memory_dialect import MemoryDialect
from archimedes.backends.lowering.copies import arrays, copy_all
from archimedes.backends.lowering.dialect import FEW, Reach, Results
from archimedes.backends.lowering.graph_lowering import Lowering
from archimedes.backends.lowering.scope import Binding, Location
from archimedes.graph.dtypes import item_type, length_of
from archimedes.graph.program import Graph
from archimedes.graph.regions import Region


class FrameReach(Reach):
    """Makes what only the current function can name known to others, through the frame."""

    def __init__(self, f: Function) -> None:
        self.f = f
        self.slots: dict[Pointer, Pointer] = {}

    def location(self, location: Location) -> Location:
        """Return the location by a pointer that any function can get."""
        pointer, f = location.array, self.f
        if pointer.kind != "local":
            return location
        if pointer not in self.slots:
            offset = f.module.frame.bytes(8)
            self.slots[pointer] = pointer._replace(kind="slot", value=offset)
            f.line(f"store ptr {pointer.value}, ptr {f.offset('%frame', offset)}, align 8")
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

    def shared(self, binding: Binding, dtype: int) -> Binding:
        """Return the binding of a scalar kernel's value as one that all SIMD lanes share."""
        binding = self.binding(binding, dtype)
        return binding if binding.location is None else Binding(location=_share(binding.memory))

    def shared_location(self, location: Location) -> Location:
        """Return a location in the memory of a scalar kernel as one that all SIMD lanes share."""
        return _share(self.location(location))


def _share(location: Location) -> Location:
    return location._replace(array=location.array._replace(uniform=True))


class Routine(NamedTuple):
    """A function of a body: where it finds the arguments it uses, by number, and puts results."""

    name: str
    arguments: dict[int, Location]
    results: list[Location]


class FunctionDialect(MemoryDialect):
    """What the dialect says of functions."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        #: The function whose pieces are called from outside, one after the other, and their names.
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
        # Pieces of a body inside it come behind lines, at least those of its loop.
        if f is self.outermost and not f.lines:
            self.steps.append(part.name)
        else:
            f.line(f"call void {part.name}({PARAMETERS})")

    def reach(self, f: Function) -> Reach:
        """Return what puts values and addresses into the frame."""
        return FrameReach(f)

    def function(
        self, low: Lowering, f: Function, region: Region, body: Graph, arguments: Sequence[Binding]
    ) -> Routine:
        """Write a function whose arguments and results are in the frame."""
        uniform = self.form(body, arguments)
        parameters = self._parameters(f, body.input_dtypes, uniform)
        results = self._parameters(f, body.output_dtypes, [False] * len(body.outputs))
        with self._function("shared") as part, self.module.frame.separate():
            inside = [Binding(location=location) for location in parameters]
            low.lower(part, body, inside, stores=list(enumerate(results)))
        live = set(body.live())
        used = {k: parameters[k] for k, i in enumerate(body.inputs) if i in live}
        return Routine(part.name, used, results)

    def _parameters(
        self, f: Function, kinds: Sequence[int], uniform: Sequence[bool]
    ) -> list[Location]:
        """Return where a function finds or puts values: scalars in the frame, blocks by address."""
        scalars = iter(arrays(self, f, [kind for kind in kinds if not length_of(kind)]))
        return [
            Location(Pointer("slot", self.module.frame.bytes(8), same), 0, item_type(kind))
            if length_of(kind)
            else next(scalars)
            for kind, same in zip(kinds, uniform)
        ]

    def form(self, body: Graph, arguments: Sequence[Binding]) -> tuple[bool, ...]:
        """Return which blocks are the same in all lanes (of one lane, it does not matter)."""
        lanes = self.module.spelling.lanes
        return tuple(
            lanes > 1 and length_of(kind) > 0 and b.memory.array.uniform
            for kind, b in zip(body.input_dtypes, arguments)
        )

    def call(
        self, f: Function, routine: Routine, arguments: Sequence[Binding], results: Results
    ) -> list[Binding]:
        """Call a function; the next call overwrites its results, so they are loaded or copied."""
        wanted, blocks = results
        slots = {k: to for k, to in routine.arguments.items() if to.array.kind == "slot"}
        copies = [(to, arguments[k]) for k, to in routine.arguments.items() if k not in slots]
        copy_all(self, f, copies)
        addresses = [(slot, arguments[k].memory) for k, slot in slots.items()]
        outputs = enumerate(routine.results)
        addresses += [(slot, blocks[k]) for k, slot in outputs if slot.array.kind == "slot"]
        for slot, location in addresses:
            at = f.offset("%frame", slot.array.value)
            f.line(f"store ptr {f.address(location)}, ptr {at}, align 8")
        f.line(f"call void {routine.name}({PARAMETERS})")
        values = {k: Binding(location=location) for k, location in blocks.items()}
        scalars = {k: routine.results[k] for k in wanted if k not in blocks}
        if len(scalars) <= FEW:
            values |= {k: Binding(operand=f.load(location)) for k, location in scalars.items()}
        else:
            own = arrays(self, f, [location.dtype for location in scalars.values()])
            sources = [Binding(location=location) for location in scalars.values()]
            copy_all(self, f, list(zip(own, sources)))
            values |= {k: Binding(location=location) for k, location in zip(scalars, own)}
        return [values[k] for k in wanted]
