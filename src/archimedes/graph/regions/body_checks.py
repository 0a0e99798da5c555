"""Checks that regions share: whether bodies take what they are given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from archimedes.graph.program import Graph

__all__ = ["carry_faults", "input_faults", "slice_faults"]


def input_faults(g: Graph, ids: Sequence[int], body: Graph, what: str) -> Iterator[str]:
    """A body gets inputs in number and dtypes as it takes them."""
    if [g.dtype[j] for j in ids] != body.input_dtypes:
        yield f"gives its {what} other inputs than it takes"


def carry_faults(body: Graph, carry: int) -> Iterator[str]:
    """The body of a loop returns a carry of the dtypes it takes."""
    if len(body.outputs) < carry or body.output_dtypes[:carry] != body.input_dtypes[:carry]:
        yield "has a body that changes the dtypes of the carry"


def slice_faults(inputs: int, first: int, length: int, slices: int) -> Iterator[str]:
    """There are inputs for all steps, after the ``first`` ones."""
    if length < 0 or slices < 0 or first < 0:
        yield "has a negative count"
    if inputs < first + length * slices:
        yield f"has too few operands for {length} x {slices} slices"
