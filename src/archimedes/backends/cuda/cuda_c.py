"""CUDA C as a dialect: C whose functions run on a device, and what they stand on.

There is no C library and there are no headers: NVRTC has none. Helpers are those of C behind
``__device__``, except for the few that are one instruction of a GPU (``text/instructions.cu``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from archimedes.backends.c.c99 import C99, PART
from archimedes.backends.c.helpers import library, read_helpers, with_dependencies
from archimedes.backends.c.render import Argument, render
from archimedes.backends.exact_division import factors_of
from archimedes.backends.lowering.graph_lowering import Lowering
from archimedes.backends.lowering.scope import Scope
from archimedes.errors import CodegenError
from archimedes.graph.dtypes import F64
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph
from archimedes.graph.regions import Host

#: What keeps the interpreter's bits: nothing fused, correct rounding, subnormal numbers.
OPTIONS = ("--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true", "--std=c++17")
#: The folder of CUDA C that is written by hand. Infinities and nans in its prelude are bit
#: patterns: constant expressions without a header or a warning.
TEXT = Path(__file__).parent / "text"
#: A pointer among parameters.
POINTER = re.compile(r"\*(\w+)")
#: A function that calls share, with its body.
_CALL = re.compile(r"^__device__ static (void \w+_call\d+\(.*?^\}\n)", re.MULTILINE | re.DOTALL)
#: Lines from which on such a function stays one.
LONG_CALL = 300
#: A part of a loop or branch that is too long for one function.
_PART = re.compile(r"^__device__ static (void \w+_[a-z]+\d+_part\d+\()", re.MULTILINE)
_STATIC = re.compile(r"^(?:ARC_UNUSED )?static ", re.MULTILINE)
#: Branches that elementary functions hardly ever take (angles beyond 1e5): as functions that stay
#: functions they take a quarter of the time to compile.
_RARE = re.compile(r"^__device__ static (\w+ arc_(?:\w+_switch\d+|huge_angle)\()", re.MULTILINE)
_DIV = CODES["div"]


def put_on_device(text: str) -> str:
    """Put the functions and tables of C text on the device.

    >>> put_on_device("static const double t[1] = {1.0};")
    '__device__ static const double t[1] = {1.0};'
    """
    return _STATIC.sub("__device__ static ", text)


@cache
def device_helpers() -> dict[str, str]:
    """Return every helper by name, as functions of the device.

    >>> "__device__ static double arc_sin(double x)" in device_helpers()["arc_sin"]
    True
    """
    helpers = {
        name: _RARE.sub(r"__device__ static __noinline__ \1", put_on_device(text))
        for name, text in library().items()
    }
    return helpers | read_helpers(TEXT / "instructions.cu")


class CudaC(C99):
    """C for a device."""

    #: Arrays that only constant indices reach can be registers.
    boxes = False
    #: The compiler sees to that.
    unrolled_terms = 1

    def spell(self, g: Graph, i: int, operands: Sequence[str]) -> str:
        """Write a quotient by a constant as two multiplications; a division takes a GPU eight.

        Numerators too small for the proven factors are divided.
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
    # Long functions that are called from several places stay functions. The compiler would copy
    # them to each: the dynamics of an aircraft seven times into a step of a solve, which takes four
    # times as long to compile, needs more registers, and overflows the instruction cache.
    text = _CALL.sub(_forbid_inlining, put_on_device(text))
    # So do the parts of long loops: as one function they are reordered until thousands of values
    # are needed at the same time, and are spilled. A step of a quadruped on the ground so spills 2
    # kB instead of 24, and its code is a third shorter.
    text = _PART.sub(r"__device__ static __noinline__ \1", text)
    return DeviceFunction(name, text, with_dependencies(text, device_helpers()))


def _forbid_inlining(call: re.Match[str]) -> str:
    short = call[0].count("\n") < LONG_CALL
    return call[0] if short else f"__device__ static __noinline__ {call[1]}"
