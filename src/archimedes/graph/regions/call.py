"""``Call``: a body run once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from archimedes.graph.ops import INPUT
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import DerivativeRule, OneBody, Region, Run, Through
from archimedes.graph.regions.body_checks import input_faults
from archimedes.graph.regions.cutting import Cut, Cutter, new_numbers, same_number
from archimedes.lazy_dataclasses import lazy_dataclass

__all__ = ["Call"]


@lazy_dataclass(frozen=True, eq=False)
class Call(OneBody):
    """Run a body once: reuse without inlining, optionally with a derivative of its own.

    The last ``closure`` inputs are values the body closes over, of which that derivative knows
    nothing. One that is ``copied`` is a call for its derivative's sake alone: in programs that are
    run its body stands where it was called.
    """

    derivative: DerivativeRule | None = None
    closure: int = 0
    copied: bool = False

    @property
    def out_dtypes(self) -> list[int]:
        return self.body.output_dtypes

    def settings(self) -> tuple[Any, ...]:
        return (None if self.derivative is None else id(self.derivative), self.copied)

    def computed(self) -> tuple[Any, ...]:
        return ()

    def summary(self) -> str:
        return "" if self.derivative is None else f"with the derivative of {self.derivative.name}"

    def faults(self, g: Graph) -> Iterator[str]:
        yield from input_faults(g, self.inputs.tolist(), self.body, "body")

    def with_bodies(self, bodies: Sequence[Graph]) -> Region:
        (body,) = bodies
        return replace(self, body=body, derivative=None)

    def cut(self, cutter: Cutter, used: list[int]) -> Cut:
        """Keep all outputs, so that calls of one function stay calls of one function.

        Of a body that is called once, those that nobody reads are left out.
        """
        body = self.body
        if all(body.op[i] == INPUT for i in body.outputs) and not body.effects():
            passed = [body.a[i] for i in body.outputs]
            return Cut(tuple(sorted({passed[k] for k in used})), None, passed.__getitem__)
        once = cutter.once(body)
        outs = tuple(used) if once else tuple(range(len(body.outputs)))
        keep = tuple(sorted(cutter.reads(body, outs)))
        part = cutter.part(body, keep, outs)
        numbers = new_numbers(outs) if once else same_number
        return Cut(keep, lambda ids: Call(ids, part, copied=self.copied, line=self.line), numbers)

    def evaluate(self, values: list[Any], run: Run) -> list[Any]:
        return run(self.body, values)

    def dependence(self, given: list[int], through: Through) -> list[int]:
        if self.derivative is None:
            return through(self.body, given)
        own = self.derivative.pattern
        return super().dependence(given, through) if own is None else own(given)
