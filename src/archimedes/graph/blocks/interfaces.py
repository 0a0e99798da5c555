"""The same program with arrays as blocks or as scalars at its inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from archimedes.graph.blocks.references import as_block
from archimedes.graph.dtypes import I64, block_type, length_of
from archimedes.graph.passes import inline, prune
from archimedes.graph.program import Graph


class Form(NamedTuple):
    """How an array of ``size`` elements of a dtype is passed: as one block, or as scalars."""

    size: int
    dtype: int
    block: bool

    @property
    def width(self) -> int:
        """Number of inputs or outputs it takes."""
        return 1 if self.block else self.size


def forms_of(kinds: Sequence[int], arrays: Sequence[tuple[int, int]]) -> list[Form]:
    """Return the forms of arrays of (size, dtype) among inputs or outputs of these types."""
    forms: list[Form] = []
    at = 0
    for size, dtype in arrays:
        block = bool(size) and bool(length_of(kinds[at]))
        forms.append(Form(size, dtype, block))
        at += forms[-1].width
    return forms


def with_forms(
    src: Graph, inputs: Sequence[tuple[Form, bool]], outputs: Sequence[tuple[Form, bool]]
) -> Graph:
    """Return the program with arrays in other forms.

    For each array its form in ``src`` comes with whether it is to be a block. Further inputs and
    outputs stay as they are.
    """
    if all(form.block == block for form, block in (*inputs, *outputs)):
        return src
    dst = Graph()
    ids: list[int] = []
    for form, block in inputs:
        kinds = [block_type(form.dtype, form.size)] if block else [form.dtype] * form.size
        ids += _convert(dst, form, [dst.input(kind) for kind in kinds], block)
    ids += [dst.input(kind) for kind in src.input_dtypes[len(ids) :]]
    outs = inline(dst, src, ids)
    at = 0
    for form, block in outputs:
        mine = outs[at : at + form.width]
        at += form.width
        dst.outputs += _convert(dst, form._replace(block=block), mine, form.block)
    dst.outputs += outs[at:]
    return prune(dst)


def _convert(g: Graph, form: Form, ids: list[int], block: bool) -> list[int]:
    """Convert an array that is a block, or scalars, to a form."""
    if form.block == block or not form.size:
        return ids
    if not form.block:
        return [g.element(ids[0], g.const(k, I64)) for k in range(form.size)]
    return [as_block(g, np.array(ids, dtype=np.int64), form.dtype)]
