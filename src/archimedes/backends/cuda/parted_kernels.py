"""Long programs without loops as several kernels, one after the other.

A multiprocessor keeps about 8,000 instructions. A longer program is fetched anew by every group of
threads, and all that does not fit into its registers is spilled, more than caches hold. Cut into
kernels that fit, each runs for many instances at a time; values that cross a cut lie in device
memory, those of a block of threads next to each other, and are stored once and loaded once by each
kernel that reads them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from archimedes.backends.c.memory import Array, Frame
from archimedes.backends.c.rendering import render
from archimedes.backends.c.source import Argument
from archimedes.backends.c.spelling import BYTES, CTYPES
from archimedes.backends.c.support import with_dependencies
from archimedes.backends.c.writer import Function
from archimedes.backends.cuda.cuda_c import POINTER, CudaC
from archimedes.backends.cuda.device_text import all_helpers, on_device
from archimedes.backends.cuda.kernel_source import (
    KERNEL,
    KernelText,
    Layout,
    kernel_text,
    written_kernel,
)
from archimedes.backends.lowering.scope import Location
from archimedes.backends.protocol import Program
from archimedes.graph.dead_code import remove_dead_code
from archimedes.graph.ops import CONST, INPUT
from archimedes.graph.program import Graph

__all__ = ["program_text"]

#: Loads of values between kernels begin so many statements before they are needed.
AHEAD = 24

_FAR = """\
/* Numbers of a thread between kernels: those of the threads of a block lie next to each other. */
template <typename T, unsigned B> struct arc_far {
    T *at;
    __device__ __forceinline__ T &operator[](unsigned k) const { return at[k * B]; }
};
"""
_HEAD = re.compile(r"^__device__ static void (\w+_whole(?:_part\d+)?)\((.*)\)$", re.MULTILINE)


def program_text(program: Program, plan: Layout, name: str = KERNEL) -> KernelText:
    """Write a program as a kernel, or as those that a long one is cut into."""
    return kernel_text(program, plan, name) if plan.parts == 1 else _parted(program, plan, name)


class _PartedC(CudaC):
    """CUDA C of a program in parts, which keep between them what ``far`` counts, by dtype."""

    def __init__(self, name: str, threads: int, **options: Any) -> None:
        super().__init__(name, **options)
        self.threads = threads
        self.far: dict[int, int] = {}
        #: The names of the arguments of each part, and what is left to do behind all of them.
        self.parts: list[tuple[str, list[str]]] = []
        self._loaded: dict[tuple[str, Location], str] = {}

    def frame(self, name: str, large: bool, pointer: str = "work", gap: str = "") -> Frame:
        """Return an empty frame: there are no loops that would need arrays."""
        return Frame(name, False, pointer, gap)

    def array(self, f: Function, dtype: int, count: int) -> Location:
        """Reserve numbers between kernels."""
        self.far[dtype] = count
        f.parameters[f"far{dtype}"] = f"arc_far{dtype} far{dtype}"
        return Location(Array(f"far{dtype}"), 0, dtype)

    def load(self, f: Function, place: Location) -> str:
        """Load a number from between kernels once, in time; others are read where they are."""
        text = super().load(f, place)
        if not place.array.base.startswith("far"):
            return text
        name = self._loaded.get((f.name, place))
        if name is None:
            name = self._loaded[f.name, place] = f.fresh("x")
            line = f"    {self.declaration(place.dtype, name, text, True)}"
            f.lines.insert(max(0, len(f.lines) - AHEAD), line)
        return name

    @contextmanager
    def part(self, f: Function, number: int) -> Iterator[Function]:
        """Write a part, and take its call out of the function: it is a kernel's."""
        with super().part(f, number) as part:
            yield part
        call = f.lines.pop().strip()
        called, _, arguments = call.rstrip(");").partition("(")
        self.parts.append((called, [x for x in arguments.split(", ") if x]))


def _parted(program: Program, plan: Layout, name: str) -> KernelText:
    arguments = [Argument(a.name, a.code, (a.row,)) for a in plan.arrays]
    count, made = len(program.inputs), list[_PartedC]()

    def dialect(prefix: str, **options: Any) -> _PartedC:
        made.append(_PartedC(prefix, plan.threads, **options))
        return made[0]

    whole = f"{name}_whole"
    source = render(
        program.graph,
        whole,
        inputs=arguments[:count],
        outputs=arguments[count:],
        part=-(-_statements(remove_dead_code(program.graph).graph) // plan.parts),
        dialect=dialect,
    )
    (c,) = made
    rest = c.pieces[whole]
    kernels = [[part] for part in c.parts]
    text = source.text.replace(rest, "")
    if any("=" in line for line in rest.splitlines()):
        # Inputs and constants among the results are no operations: the last kernel copies them.
        parameters = source.prototype.partition("(")[2].rstrip(")").split(", ")
        kernels[-1].append((whole, [re.split(r"[ *]", x)[-1] for x in parameters]))
        text += f"\nstatic {rest}"
    return _kernels(plan, name, _HEAD.sub(_inlined, on_device(text)), c, kernels)


def _statements(graph: Graph) -> int:
    """Count what is written of a graph without regions."""
    return sum(graph.op[i] not in (CONST, INPUT) for i in graph.live())


def _inlined(head: re.Match[str]) -> str:
    parameters = POINTER.sub(r"*__restrict__ \1", head[2])
    return f"__device__ static __forceinline__ void {head[1]}({parameters})"


def _kernels(
    plan: Layout,
    name: str,
    text: str,
    c: _PartedC,
    kernels: Sequence[Sequence[tuple[str, list[str]]]],
) -> KernelText:
    """Write a kernel for each part, which stages the arrays that it uses."""
    arrays = [a for a in plan.arrays if a.row]
    uses = [{x for _, given in calls for x in given} for calls in kernels]
    # Most bytes per number first, so that all of them lie where they may.
    order = sorted(c.far, key=lambda d: -BYTES[d])
    sizes = [-(-c.far[d] * BYTES[d] * plan.threads // 16) * 16 for d in order]
    starts = [0, *itertools.accumulate(sizes)]
    block = f"far + (uint64_t)blockIdx.x * {starts[-1]}"
    lines = [
        f"const arc_far{d} far{d} = {{({CTYPES[d]} *)({block} + {start}) + threadIdx.x}};"
        for d, start in zip(order, starts)
    ]
    kinds = [f"typedef arc_far<{CTYPES[d]}, {plan.threads}> arc_far{d};\n" for d in order]
    texts, names = [_FAR, *kinds, text], []
    for k, (calls, used) in enumerate(zip(kernels, uses)):
        staged = [a for a in plan.staged if a.name in used]
        elsewhere = set().union(*(found for j, found in enumerate(uses) if j != k))
        kept = [a.name for a in staged if a.output and a.name in elsewhere]

        def work(places: dict[str, str], calls: Any = calls) -> list[str]:
            return [f"{f}({', '.join(places.get(x, x) for x in given)});" for f, given in calls]

        number = f"{name}_{k + 1}"
        texts.append(written_kernel(number, arrays, plan.threads, staged, work, kept, lines))
        names.append((number, plan.threads * sum(a.bytes for a in staged)))
    helpers = with_dependencies("\n".join(texts), all_helpers())
    return KernelText("\n".join(texts), helpers, tuple(names), max(starts[-1], 16))
