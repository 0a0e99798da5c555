"""Programs of the catalogue as kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archimedes.backends.cuda.kernel_text import KernelText, Layout, kernel_text, layout
from archimedes.backends.leaves import leaf_values
from archimedes.backends.protocol import ArrayType
from archimedes.backends.protocol import Program as KernelProgram
from archimedes.graph import DTYPES
from archimedes.graph.dtypes import item_type
from archimedes.graph.retype import retype

from ..programs.program import Program
from ..programs.values import leaves_of, packed, reference

__all__ = ["Case", "cases"]


class Case:
    """A program, its arrays and its expected results; ``single``: in float throughout."""

    def __init__(self, made: Program, single: bool = False, shared: bool = False) -> None:
        graph = retype(made.graph) if single else made.graph
        self.name, self.count = f"{made.name}{'_float' * single}", made.count
        ins, outs = leaves_of(graph.input_dtypes), leaves_of(graph.output_dtypes)
        with np.errstate(all="ignore"):
            columns = [
                x.astype(DTYPES[item_type(d)]) for x, d in zip(made.columns, graph.input_dtypes)
            ]
        self.batched = [not (shared and k % 2 == 1) for k in range(len(ins))]
        counts = leaf_values(graph.input_dtypes, [n for n, _ in ins])
        every = [many for n, many in zip(counts, self.batched) for _ in range(n)]
        columns = [
            x if many else np.repeat(x[:1], len(x), axis=0) for x, many in zip(columns, every)
        ]
        self.program = KernelProgram(
            graph,
            tuple(ArrayType(d, (n,)) for n, d in ins),
            tuple(ArrayType(d, (n,)) for n, d in outs),
        )
        rows = packed(columns, ins)
        self.inputs = [x if many else x[0].copy() for x, many in zip(rows, self.batched)]
        self.expected = packed(reference(graph, columns, self.count), outs)

    @property
    def plan(self) -> Layout:
        return layout(self.program, self.batched)

    def kernel(self, part: int = 2000) -> KernelText:
        return kernel_text(self.program, self.plan, self.name, part)

    def empty(self) -> list[np.ndarray]:
        return [np.zeros_like(x) for x in self.expected]


def cases(programs: Sequence[Program], **options: bool) -> list[Case]:
    return [Case(made, **options) for made in programs]
