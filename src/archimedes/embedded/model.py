"""Everything that the text of a project is made from, in one immutable object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes.backends.c import CSource
from archimedes.embedded.c_types.c_values import Scalars
from archimedes.embedded.c_types.struct_layout import LeafShape, Root, Struct
from archimedes.graph.dtypes import DTYPES, F64
from archimedes.graph.program import Graph

__all__ = ["Carry", "Model"]


@dataclass(frozen=True)
class Carry:
    """A statement of ``<name>_carry``: C lvalues, and whether they are arrays."""

    to: str
    source: str
    is_array: bool


@dataclass(frozen=True)
class Model:
    """A recorded function with its C structs, values and rendered kernel.

    ``leaves`` and ``values`` are shape and example value of each traced argument leaf, in the order
    of the graph's inputs, ``out_leaves`` those of the results; ``call`` are the C expressions that
    the step passes to the kernel. ``graph`` is what C computes: in float mode a graph of float32.
    """

    name: str
    version: str
    generator: str
    notice: str
    description: tuple[str, ...]
    types: Scalars
    structs: tuple[Struct, ...]
    inputs: Root
    parameters: Root
    outputs: Root
    leaves: tuple[LeafShape, ...]
    values: tuple[Any, ...]
    out_leaves: tuple[LeafShape, ...]
    constants: tuple[tuple[str, str], ...]
    carries: tuple[Carry, ...]
    state: tuple[tuple[str, str], ...]
    renamed: dict[str, str]
    call: tuple[str, ...]
    source: CSource
    graph: Graph
    digest: str

    def roots(self) -> list[tuple[str, Struct]]:
        """Return the structs of arguments and results with their roles, empty ones left out."""
        found = (self.inputs, self.parameters, self.outputs)
        return [(root.role, root.struct) for root in found if not root.is_empty]

    def graph_dtype(self, code: int) -> np.dtype:
        """Return the dtype that the graph computes with; F64 is float32 in float mode."""
        return self.types.float_type if code == F64 else DTYPES[code]
