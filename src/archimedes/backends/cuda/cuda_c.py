"""CUDA C as a dialect: C whose functions run on a device."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from archimedes.backends.c.c99 import C99, PART
from archimedes.backends.c.rendering import render
from archimedes.backends.c.source import Argument
from archimedes.backends.c.support import with_dependencies
from archimedes.backends.cuda.device_text import all_helpers, on_device
from archimedes.backends.exact_division import factors_of
from archimedes.backends.lowering.graph_lowering import Lowering
from archimedes.backends.lowering.scope import Scope
from archimedes.errors import CodegenError
from archimedes.graph.dtypes import F64
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph
from archimedes.graph.regions import Host

__all__ = ["POINTER", "CudaC", "DeviceFunction", "device_function"]

_DIV = CODES["div"]
#: A pointer among parameters.
POINTER = re.compile(r"\*(\w+)")
#: A function that calls share, with its body.
_CALL = re.compile(r"^__device__ static (void \w+_call\d+\(.*?^\}\n)", re.MULTILINE | re.DOTALL)
#: Lines from which on such a function stays one.
LONG_CALL = 300


class CudaC(C99):
    """C for a device."""

    #: Arrays that only constant indices reach can be registers.
    boxes = False
    #: The compiler sees to that.
    written_out = 1

    def spell(self, g: Graph, i: int, operands: Sequence[str]) -> str:
        """Write quotients by constants as two multiplications: a GPU divides in eight of them.

        Numerators so small that the proven factors do not hold are divided.
        """
        divisor = g.b[i]
        if g.op[i] != _DIV or g.dtype[i] != F64 or divisor not in g.value:
            return ""
        factors = factors_of(g.value[divisor])
        if factors is None:
            return ""
        high, low = (self.literal(x, F64) for x in (factors.high, factors.low))
        if factors.low == 0.0:
            return f"{operands[0]} * {high}"
        limit = ((factors.least + 1023) << 53) - 1
        return f"arc_divided({', '.join([*operands, high, low])}, UINT64_C({limit}))"

    def host(self, low: Lowering, scope: Scope, region: Host, outs: Sequence[int]) -> None:
        """Refuse: a GPU has no Python."""
        where = f" ({region.line})" if region.line else ""
        raise CodegenError(
            f"the function calls back into Python: {region.label}{where}. A GPU has no Python: "
            "write the callback in NumPy, or call the function with NumPy arrays and without "
            'backend="cuda", so that it runs on the CPU.'
        )


class DeviceFunction(NamedTuple):
    """A graph as a function of the device; ``helpers`` are what it needs, callee before caller."""

    name: str
    text: str
    helpers: dict[str, str]


def device_function(
    graph: Graph,
    name: str,
    inputs: Sequence[Argument],
    outputs: Sequence[Argument],
    part: int = PART,
) -> DeviceFunction:
    """Write a graph as a ``__device__`` function of pointers to its arrays (none to empty ones)."""
    source = render(graph, name, inputs=inputs, outputs=outputs, part=part, dialect=CudaC)
    head = POINTER.sub(r"*__restrict__ \1", source.prototype)
    text = source.text.replace(
        f"{source.prototype}\n{{", f"__device__ static __forceinline__ {head}\n{{"
    )
    return DeviceFunction(
        name, _kept_apart(on_device(text)), with_dependencies(text, all_helpers())
    )


def _kept_apart(text: str) -> str:
    """Keep long functions that are called from several places functions.

    The compiler would copy them to each: the dynamics of an aircraft seven times into a step of a
    solve, which takes four times as long to compile, needs more registers, and overflows what a
    device keeps of a program's instructions.
    """

    def marked(found: re.Match[str]) -> str:
        short = found.group(0).count("\n") < LONG_CALL
        return found.group(0) if short else f"__device__ static __noinline__ {found.group(1)}"

    return _CALL.sub(marked, text)
