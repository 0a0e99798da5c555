"""Functions of a module: parts of long ones, and bodies that are called from several places.

All take the same parameters, the frame and the arrays of the call; what they are given and return
lies in the frame, blocks by their address.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from archimedes.backends.llvm.lowering.assembler import PARAMETERS, Function, Module
from archimedes.backends.llvm.lowering.memory import Pointer
from archimedes.backends.llvm.lowering.scope import FrameReach
from archimedes.backends.lowering.copies import arrays, copy_all
from archimedes.backends.lowering.dialect import FEW, Dialect, Reach
from archimedes.backends.lowering.graph_lowering import Lowering
from archimedes.backends.lowering.values import Binding, Place
from archimedes.graph.dtypes import item_type, length_of
from archimedes.graph.program import Graph
from archimedes.graph.regions import Region

__all__ = ["FramedFunctions", "Routine"]


class Routine(NamedTuple):
    """A function of a body: where it finds the arguments it uses, by number, and puts results."""

    name: str
    arguments: dict[int, Place]
    results: list[Place]


class FramedFunctions(Dialect):
    """What the dialect says of functions."""

    def __init__(self, module: Module) -> None:
        self.module = module
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
            inside = [Binding(place=place) for place in arguments]
            low.lower(part, body, inside, stores=list(enumerate(results)))
        live = set(body.live())
        used = {k: arguments[k] for k, i in enumerate(body.inputs) if i in live}
        return Routine(part.name, used, results)

    def _parameters(
        self, f: Function, kinds: Sequence[int], given: Sequence[Binding]
    ) -> list[Place]:
        """Return where a function finds or puts values: scalars in the frame, blocks by address."""
        places = iter(arrays(self, f, [kind for kind in kinds if not length_of(kind)]))
        found = []
        for k, kind in enumerate(kinds):
            if not length_of(kind):
                found.append(next(places))
                continue
            uniform = bool(given) and self._is_uniform(given[k])
            slot = Pointer("slot", self.module.frame.bytes(8), uniform)
            found.append(Place(slot, 0, item_type(kind)))
        return found

    def form(self, body: Graph, given: Sequence[Binding]) -> Any:
        """Return which blocks are the same in all lanes."""
        kinds = body.input_dtypes
        return tuple(length_of(x) > 0 and self._is_uniform(b) for x, b in zip(kinds, given))

    def _point(self, f: Function, slot: Place, place: Place) -> None:
        """Let a function find a block."""
        at = f.value(f"getelementptr i8, ptr %frame, i64 {slot.array.value}")
        f.line(f"store ptr {f.address(place)}, ptr {at}, align 8")

    def _is_uniform(self, binding: Binding) -> bool:
        """Tell whether a block is the same in all lanes (of one lane, it does not matter)."""
        place = binding.place
        return place is not None and place.array.uniform and self.module.spelling.lanes > 1

    def call(
        self,
        low: Lowering,
        f: Function,
        routine: Routine,
        given: Sequence[Binding],
        wanted: Sequence[int],
        to: Mapping[int, Place],
    ) -> list[Binding]:
        """Call a function; the next call overwrites its results, so they are taken along."""
        name, arguments, results = routine
        blocks = {k: place for k, place in arguments.items() if place.array.kind == "slot"}
        copies = [(place, given[k]) for k, place in arguments.items() if k not in blocks]
        copy_all(self, f, copies)
        for k, slot in blocks.items():
            place = given[k].place
            assert place is not None
            self._point(f, slot, place)
        for k, slot in enumerate(results):
            if slot.array.kind == "slot":
                self._point(f, slot, to[k])
        f.line(f"call void {name}({PARAMETERS})")
        scalars = [k for k in wanted if k not in to]
        if len(scalars) <= FEW:
            found = {k: Binding(operand=f.load(results[k])) for k in scalars}
        else:
            own = arrays(self, f, [results[k].dtype for k in scalars])
            copy_all(self, f, [(p, Binding(place=results[k])) for p, k in zip(own, scalars)])
            found = {k: Binding(place=p) for p, k in zip(own, scalars)}
        found |= {k: Binding(place=place) for k, place in to.items()}
        return [found[k] for k in wanted]
