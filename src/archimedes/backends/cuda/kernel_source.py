"""Kernels: one thread per instance, arrays in C order.

The rows of a block of threads lie one after the other in an array of shape (N, ...), so that a
block reads and writes one piece of memory, whole lines at a time, and turns it in shared memory:
a thread finds its row there. Rows of an even number of words are kept one word apart, so that the
threads of a warp meet in no bank. What does not fit into shared memory is read and written where
it is, and so are single numbers, which lie well as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from archimedes.backends.c.c99 import PART
from archimedes.backends.c.source import Argument
from archimedes.backends.c.spelling import BYTES, CTYPES
from archimedes.backends.cuda.cuda_c import device_function
from archimedes.backends.cuda.device_text import PRELUDE
from archimedes.backends.cuda.staging_text import STAGING
from archimedes.backends.protocol import Program
from archimedes.graph.dtypes import B8, length_of
from archimedes.graph.ops import CONST, INPUT, TABLE
from archimedes.graph.program import Graph

__all__ = ["KERNEL", "KernelText", "Layout", "file_of", "kernel_text", "layout", "written_kernel"]

#: The name of a kernel that is alone in its file.
KERNEL = "archimedes_kernel"
#: Bytes of shared memory that a block has on every device without asking for more.
SHARED = 48 * 1024
#: Threads of a block: the most whose rows fit.
BLOCKS = (128, 64, 32)
#: Programs of more statements than this are cut into kernels of at most ``PART_OF_LONG``: longer
#: ones do not stay in the instruction cache of a multiprocessor (128 KiB), and each group of
#: threads waits for its instructions. A call of an elementary function counts as so many.
LONG, PART_OF_LONG, ELEMENTARY = 5000, 3500, 20
#: Bytes of a row that kernels of long programs read and write where it is.
LONG_ROW = 1200


class DeviceArray(NamedTuple):
    """An argument of a kernel: ``row`` numbers per instance, ``many`` if each has its own."""

    name: str
    code: int
    row: int
    many: bool
    output: bool

    @property
    def stride(self) -> int:
        """Numbers from one row to the next in shared memory."""
        return self.row | 1

    @property
    def bytes(self) -> int:
        """Bytes of a row in shared memory."""
        return self.stride * BYTES[self.code]

    @property
    def may_stage(self) -> bool:
        """Whether shared memory would help."""
        return self.many and self.row > 1 and self.code != B8


class Layout(NamedTuple):
    """How kernels reach their arrays: ``staged`` ones through shared memory.

    ``threads`` are those of a block, ``shared`` the most bytes of shared memory it takes. A kernel
    takes pointers to the ``arrays`` that are not empty, inputs first, and the number of instances.
    ``parts``: kernels that the program is cut into.
    """

    arrays: tuple[DeviceArray, ...]
    staged: tuple[DeviceArray, ...]
    threads: int
    shared: int
    parts: int = 1


def layout(program: Program, batched: Sequence[bool], room: int = SHARED) -> Layout:
    """Lay out a kernel; ``batched`` says which inputs have a row per instance.

    Other inputs are shared by all instances. Long programs are cut; a block of theirs may take
    ``room`` bytes of shared memory.
    """
    arrays = [
        DeviceArray(f"in{k}", code, math.prod(shape), many, False)
        for k, ((code, shape), many) in enumerate(zip(program.inputs, batched, strict=True))
    ]
    arrays += [
        DeviceArray(f"out{k}", code, math.prod(shape), True, True)
        for k, (code, shape) in enumerate(program.outputs)
    ]
    parts = parts_of(program.graph)
    if parts == 1:
        threads, staged = _staged(arrays, SHARED)
    else:
        # Each kernel stages what it uses; longer rows would leave room for few threads.
        threads, staged = _staged([a for a in arrays if a.bytes <= LONG_ROW], room)
    shared = threads * sum(a.bytes for a in staged)
    return Layout(tuple(arrays), staged, threads, shared, parts)


def parts_of(graph: Graph) -> int:
    """Return how many kernels a program becomes: one, or several without loops in them.

    >>> parts_of(Graph())
    1
    """
    live = graph.live()
    if graph.regions or any(length_of(graph.dtype[i]) for i in live):
        return 1
    size = sum(graph.op[i] not in (CONST, INPUT) for i in live)
    size += ELEMENTARY * sum(
        TABLE[graph.op[i]].elementary for i in live if graph.op[i] < len(TABLE)
    )
    return -(-size // PART_OF_LONG) if size > LONG else 1


def _staged(arrays: Sequence[DeviceArray], room: int) -> tuple[int, tuple[DeviceArray, ...]]:
    """Return the threads of a block and what goes through shared memory: all, or short rows.

    Arrays of long words come first, so that each lies where it may.
    """

    def ordered(found: Iterable[DeviceArray]) -> tuple[DeviceArray, ...]:
        return tuple(sorted(found, key=lambda a: -BYTES[a.code]))

    wanted = sorted((a for a in arrays if a.may_stage), key=lambda a: a.bytes)
    for threads in BLOCKS:
        if threads * sum(a.bytes for a in wanted) <= room:
            return threads, ordered(wanted)
    threads, left, kept = BLOCKS[-1], room // BLOCKS[-1], list[DeviceArray]()
    for array in wanted:
        if array.bytes <= left:
            left -= array.bytes
            kept.append(array)
    return threads, ordered(kept)


class KernelText(NamedTuple):
    """Kernels and the functions they call; ``helpers``: what a file has before them.

    ``kernels`` are their names, in the order they run, with the bytes of shared memory of a block.
    ``far`` are the bytes of device memory that a block of threads keeps between them.
    """

    text: str
    helpers: dict[str, str]
    kernels: tuple[tuple[str, int], ...] = ()
    far: int = 0


def file_of(kernels: Sequence[KernelText]) -> str:
    """Put kernels into one file, what they stand on once."""
    helpers = {name: text for kernel in kernels for name, text in kernel.helpers.items()}
    return "\n".join([PRELUDE, *helpers.values(), STAGING, *(kernel.text for kernel in kernels)])


def kernel_text(program: Program, plan: Layout, name: str = KERNEL, part: int = PART) -> KernelText:
    """Write a program that is not cut as a kernel of this name."""
    arguments = [Argument(a.name, a.code, (a.row,)) for a in plan.arrays]
    count = len(program.inputs)
    instance = f"{name}_instance"
    function = device_function(program.graph, instance, arguments[:count], arguments[count:], part)
    arrays = [a for a in plan.arrays if a.row]

    def call(places: dict[str, str]) -> list[str]:
        return [f"{instance}({', '.join(places[a.name] for a in arrays)});"]

    kernel = written_kernel(name, arrays, plan.threads, plan.staged, call)
    return KernelText(f"{function.text}\n{kernel}", function.helpers, ((name, plan.shared),))


def written_kernel(
    name: str,
    arrays: Sequence[DeviceArray],
    threads: int,
    staged: Sequence[DeviceArray],
    calls: Callable[[dict[str, str]], Sequence[str]],
    kept: Sequence[str] = (),
    far: Sequence[str] | None = None,
) -> str:
    """Write a kernel of this name.

    ``calls`` returns what each thread does, given where its rows of the arrays are. ``kept`` are
    names of staged outputs of which some numbers are there already, ``far`` lines that come first
    in kernels with a pointer to memory between them.
    """
    heads = [
        f"{'' if a.output else 'const '}{CTYPES[a.code]} *__restrict__ {a.name}" for a in arrays
    ]
    heads += ["unsigned char *__restrict__ far"] if far is not None else []
    head = (
        f'extern "C" __global__ void __launch_bounds__({threads}) '
        f"{name}({', '.join([*heads, 'uint64_t count'])})"
    )
    lines = ["extern __shared__ __align__(16) unsigned char arc_shared[];"] if staged else []
    lines += [
        f"const uint64_t first = (uint64_t)blockIdx.x * {threads};",
        f"const unsigned n = count - first < {threads} ? (unsigned)(count - first) : {threads};",
        *(far or ()),
    ]
    at, places = 0, dict[str, str]()
    for a in staged:
        kind = CTYPES[a.code]
        lines.append(f"{kind} *const tile_{a.name} = ({kind} *)(arc_shared + {at});")
        at += a.bytes * threads
        places[a.name] = f"tile_{a.name} + threadIdx.x * {a.stride}"
    for a in arrays:
        direct = f"{a.name} + (first + threadIdx.x) * {a.row}" if a.many else a.name
        places.setdefault(a.name, direct)
    fetched = [_fetch(a, threads) for a in staged if not a.output or a.name in kept]
    put = [_put(a, threads) for a in staged if a.output]
    lines += [*fetched, *(["arc_arrived();"] if fetched else [])]
    lines += ["if (threadIdx.x < n) {", *(f"    {line}" for line in calls(places)), "}"]
    lines += [*(["__syncthreads();"] if put else []), *put]
    return "\n".join([head, "{", *(f"    {line}" for line in lines), "}\n"])


def _sizes(a: DeviceArray, threads: int) -> str:
    return f"<{CTYPES[a.code]}, {a.row}, {a.stride}, {threads}>"


def _fetch(a: DeviceArray, threads: int) -> str:
    """Move the rows of a block into shared memory."""
    return f"arc_fetch{_sizes(a, threads)}(tile_{a.name}, {a.name} + first * {a.row}, n);"


def _put(a: DeviceArray, threads: int) -> str:
    """Move them out of it."""
    return f"arc_put{_sizes(a, threads)}({a.name} + first * {a.row}, tile_{a.name}, n);"
