"""Programs of the catalogue as kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archimedes.backends.cuda.kernel_source import KernelText, Layout, kernel_text, layout
from archimedes.backends.protocol import ArrayType
from archimedes.backends.protocol import Program as KernelProgram
from archimedes.graph import DTYPES
from archimedes.graph.retyping import retype

from ..programs.program import Program
from ..programs.values import leaves_of, reference

__all__ = ["Case", "cases"]


class Case:
    """A program, its arrays and its expected results; ``single``: in float throughout."""

    def __init__(self, made: Program, single: bool = False, shared: bool = False) -> None:
        graph = retype(made.graph) if single else made.graph
        self.name, self.count = f"{made.name}{'_float' * single}", made.count
        ins, outs = leaves_of(graph.input_dtypes), leaves_of(graph.output_dtypes)
        with np.errstate(all="ignore"):
            columns = [x.astype(DTYPES[d]) for x, d in zip(made.columns, graph.input_dtypes)]
        self.batched = [not (shared and k % 2 == 1) for k in range(len(ins))]
        at = 0
        for (n, _), many in zip(ins, self.batched):
            for k in range(at, at + n):
                if not many:
                    columns[k] = np.full_like(columns[k], columns[k][0])
            at += n
        self.program = KernelProgram(
            graph,
            tuple(ArrayType(d, (n,)) for n, d in ins),
            tuple(ArrayType(d, (n,)) for n, d in outs),
        )
        packed = _packed(columns, ins, self.count)
        self.inputs = [x if many else x[0].copy() for x, many in zip(packed, self.batched)]
        self.expected = _packed(reference(graph, columns, self.count), outs, self.count)

    @property
    def plan(self) -> Layout:
        return layout(self.program, self.batched)

    def kernel(self, part: int = 2000) -> KernelText:
        return kernel_text(self.program, self.plan, self.name, part)

    def empty(self) -> list[np.ndarray]:
        return [np.zeros_like(x) for x in self.expected]


def _packed(columns: Sequence[np.ndarray], leaves: Sequence[tuple[int, int]], count: int) -> list:
    arrays, at = [], 0
    for n, dtype in leaves:
        block = np.stack(columns[at : at + n], -1).astype(DTYPES[dtype])
        arrays.append(np.ascontiguousarray(np.broadcast_to(block, (count, n))))
        at += n
    return arrays


def cases(programs: Sequence[Program], **options: bool) -> list[Case]:
    return [Case(made, **options) for made in programs]
