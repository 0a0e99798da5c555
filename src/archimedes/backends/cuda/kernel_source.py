"""Kernels: one thread per instance, arrays in C order.

The rows of a block of threads lie one after the other in an array of shape (N, ...), so that a
block reads and writes one piece of memory, whole lines at a time, and turns it in shared memory:
a thread finds its row there. Rows of an even number of words are kept one word apart, so that the
threads of a warp meet in no bank. What does not fit into shared memory is read and written where
it is, and so are single numbers, which lie well as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from archimedes.backends.c.c99 import PART
from archimedes.backends.c.source import Argument
from archimedes.backends.c.spelling import BYTES, CTYPES
from archimedes.backends.cuda.cuda_c import device_function
from archimedes.backends.cuda.device_text import PRELUDE
from archimedes.backends.protocol import Program
from archimedes.graph.dtypes import B8

__all__ = ["KERNEL", "KernelText", "Layout", "file_of", "kernel_text", "layout"]

#: The name of a kernel that is alone in its file.
KERNEL = "archimedes_kernel"
#: Bytes of shared memory that a block has on every device without asking for more.
SHARED = 48 * 1024
#: Threads of a block: the most whose rows fit.
BLOCKS = (128, 64, 32)

_STAGING = """\
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define ARC_COPIES 1
#else
#define ARC_COPIES 0
#endif

/* Begin to copy a number, or 16 bytes, to shared memory; arc_arrived waits for all of them. */
template <typename T>
__device__ static __forceinline__ void arc_begin(T *to, const T *from)
{
#if ARC_COPIES
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    if (sizeof(T) == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
    } else if (sizeof(T) == 8) {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(at), "l"(from) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(from) : "memory");
    }
#else
    *to = *from;
#endif
}

__device__ static __forceinline__ void arc_arrived(void)
{
#if ARC_COPIES
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    __syncthreads();
}

/* Whether a whole block's rows are copied 16 bytes at a time: as they lie, from there on. */
template <typename T, unsigned N, unsigned S, unsigned B>
__device__ static __forceinline__ bool arc_wide(const T *far, unsigned n)
{
    return S == N && B * N * sizeof(T) % 16 == 0 && n == B && (uint64_t)far % 16 == 0;
}

/* A block's n rows of N numbers, from memory to rows of S numbers in shared memory. */
template <typename T, unsigned N, unsigned S, unsigned B>
__device__ static __forceinline__ void arc_fetch(T *rows, const T *__restrict__ from, unsigned n)
{
    if (arc_wide<T, N, S, B>(from, n)) {
#pragma unroll 16
        for (unsigned k = threadIdx.x; k < B * N * sizeof(T) / 16; k += B) {
            arc_begin((uint4 *)rows + k, (const uint4 *)from + k);
        }
    } else {
#pragma unroll 4
        for (unsigned k = threadIdx.x; k < n * N; k += B) {
            arc_begin(rows + (S == N ? k : k / N * S + k % N), from + k);
        }
    }
}

/* The way back. */
template <typename T, unsigned N, unsigned S, unsigned B>
__device__ static __forceinline__ void arc_put(T *__restrict__ to, const T *rows, unsigned n)
{
    if (arc_wide<T, N, S, B>(to, n)) {
#pragma unroll 16
        for (unsigned k = threadIdx.x; k < B * N * sizeof(T) / 16; k += B) {
            ((uint4 *)to)[k] = ((const uint4 *)rows)[k];
        }
    } else {
#pragma unroll 4
        for (unsigned k = threadIdx.x; k < n * N; k += B) {
            to[k] = rows[S == N ? k : k / N * S + k % N];
        }
    }
}
"""


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
    """How a kernel reaches its arrays: ``staged`` ones through shared memory.

    ``threads`` are those of a block, ``shared`` its bytes of shared memory. A kernel takes
    pointers to the ``arrays`` that are not empty, inputs first, and the number of instances.
    """

    arrays: tuple[DeviceArray, ...]
    staged: tuple[DeviceArray, ...]
    threads: int
    shared: int


def layout(program: Program, batched: Sequence[bool]) -> Layout:
    """Lay out a kernel; ``batched`` says which inputs have a row per instance.

    Other inputs are shared by all instances.
    """
    arrays = [
        DeviceArray(f"in{k}", code, math.prod(shape), many, False)
        for k, ((code, shape), many) in enumerate(zip(program.inputs, batched, strict=True))
    ]
    arrays += [
        DeviceArray(f"out{k}", code, math.prod(shape), True, True)
        for k, (code, shape) in enumerate(program.outputs)
    ]
    threads, staged = _staged(arrays)
    shared = threads * sum(a.bytes for a in staged)
    return Layout(tuple(arrays), staged, threads, shared)


def _staged(arrays: Sequence[DeviceArray]) -> tuple[int, tuple[DeviceArray, ...]]:
    """Return the threads of a block and what goes through shared memory: all, or short rows.

    Arrays of long words come first, so that each lies where it may.
    """

    def ordered(found: Iterable[DeviceArray]) -> tuple[DeviceArray, ...]:
        return tuple(sorted(found, key=lambda a: -BYTES[a.code]))

    wanted = sorted((a for a in arrays if a.may_stage), key=lambda a: a.bytes)
    for threads in BLOCKS:
        if threads * sum(a.bytes for a in wanted) <= SHARED:
            return threads, ordered(wanted)
    threads, left, kept = BLOCKS[-1], SHARED // BLOCKS[-1], list[DeviceArray]()
    for array in wanted:
        if array.bytes <= left:
            left -= array.bytes
            kept.append(array)
    return threads, ordered(kept)


class KernelText(NamedTuple):
    """A kernel and the function of one instance; ``helpers``: what a file has before them."""

    text: str
    helpers: dict[str, str]


def file_of(kernels: Sequence[KernelText]) -> str:
    """Put kernels into one file, what they stand on once."""
    helpers = {name: text for kernel in kernels for name, text in kernel.helpers.items()}
    return "\n".join([PRELUDE, *helpers.values(), _STAGING, *(kernel.text for kernel in kernels)])


def kernel_text(program: Program, plan: Layout, name: str = KERNEL, part: int = PART) -> KernelText:
    """Write a program as a kernel of this name."""
    arguments = [Argument(a.name, a.code, (a.row,)) for a in plan.arrays]
    count = len(program.inputs)
    instance = f"{name}_instance"
    function = device_function(program.graph, instance, arguments[:count], arguments[count:], part)
    arrays = [a for a in plan.arrays if a.row]
    heads = [
        f"{'' if a.output else 'const '}{CTYPES[a.code]} *__restrict__ {a.name}" for a in arrays
    ]
    head = (
        f'extern "C" __global__ void __launch_bounds__({plan.threads}) '
        f"{name}({', '.join([*heads, 'uint64_t count'])})"
    )
    body = [f"    {line}" for line in _body(instance, arrays, plan)]
    return KernelText("\n".join([function.text, head, "{", *body, "}\n"]), function.helpers)


def _body(instance: str, arrays: Sequence[DeviceArray], plan: Layout) -> list[str]:
    """Write the statements of a kernel."""
    threads, lines = plan.threads, list[str]()
    if plan.staged:
        lines.append("extern __shared__ __align__(16) unsigned char arc_shared[];")
    lines += [
        f"const uint64_t first = (uint64_t)blockIdx.x * {threads};",
        f"const unsigned n = count - first < {threads} ? (unsigned)(count - first) : {threads};",
    ]
    at, places = 0, dict[str, str]()
    for a in plan.staged:
        kind = CTYPES[a.code]
        lines.append(f"{kind} *const tile_{a.name} = ({kind} *)(arc_shared + {at});")
        at += a.bytes * threads
        places[a.name] = f"tile_{a.name} + threadIdx.x * {a.stride}"
    for a in arrays:
        direct = f"{a.name} + (first + threadIdx.x) * {a.row}" if a.many else a.name
        places.setdefault(a.name, direct)
    fetched = [_move(a, threads) for a in plan.staged if not a.output]
    put = [_move(a, threads) for a in plan.staged if a.output]
    given = ", ".join(places[a.name] for a in arrays)
    lines += [*fetched, *(["arc_arrived();"] if fetched else [])]
    lines += ["if (threadIdx.x < n) {", f"    {instance}({given});", "}"]
    return [*lines, *(["__syncthreads();"] if put else []), *put]


def _move(a: DeviceArray, threads: int) -> str:
    """Move the rows of a block into shared memory, or out of it."""
    sizes = f"<{CTYPES[a.code]}, {a.row}, {a.stride}, {threads}>"
    far, near = f"{a.name} + first * {a.row}", f"tile_{a.name}"
    return (
        f"arc_put{sizes}({far}, {near}, n);" if a.output else f"arc_fetch{sizes}({near}, {far}, n);"
    )
