"""CUDA C on the CPU: a C++ compiler, a few definitions, a thread for each thread of a block.

What a kernel does with its arrays, blocks and shared memory is as on a GPU, so that bits and
addresses can be tested where there is none. That it is CUDA C is NVRTC's to say.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..c.checking import needs

__all__ = ["Emulated"]

_BEFORE = """\
#include <math.h>
#include <pthread.h>
#include <string.h>
#undef INT64_C
#undef UINT64_C
#undef UINT32_C
#undef INT64_MAX
#undef INT64_MIN
#define atomicAdd(place, n) __atomic_fetch_add(place, n, __ATOMIC_RELAXED)
#define __device__
#define __global__
#define __shared__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __align__(n)
#define __launch_bounds__(...)
namespace gpu {
struct Dim { unsigned x; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
static thread_local Dim threadIdx, blockIdx;
static pthread_barrier_t meeting;
alignas(16) unsigned char arc_shared[49152];
static void __syncthreads() { pthread_barrier_wait(&meeting); }
template <typename To, typename From> static To moved(From x)
{
    To y;
    memcpy(&y, &x, sizeof y);
    return y;
}
static float __double2float_rn(double x) { return (float)x; }
static float __ll2float_rn(long long x) { return (float)x; }
static long long __double_as_longlong(double x) { return moved<long long>(x); }
static double __longlong_as_double(long long x) { return moved<double>(x); }
static unsigned __float_as_uint(float x) { return moved<unsigned>(x); }
static float __uint_as_float(unsigned x) { return moved<float>(x); }
static double __dsqrt_rn(double x) { return sqrt(x); }
static float __fsqrt_rn(float x) { return sqrtf(x); }
static double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
static float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
"""

#: What all threads of a launch are told, and their own numbers.
_BEFORE += """\
struct Given { void **p; unsigned long long count; unsigned thread, block; };
static void run(void *(*work)(void *), bool meets, void **p, unsigned long long count,
                unsigned threads, unsigned blocks)
{
    pthread_t all[1024];
    Given given[1024];
    for (unsigned block = 0; block < blocks; ++block) {
        if (!meets) {
            for (unsigned k = 0; k < threads; ++k) {
                given[k] = Given{p, count, k, block};
                work(&given[k]);
            }
            continue;
        }
        pthread_barrier_init(&meeting, 0, threads);
        for (unsigned k = 0; k < threads; ++k) {
            given[k] = Given{p, count, k, block};
            pthread_create(&all[k], 0, work, &given[k]);
        }
        for (unsigned k = 0; k < threads; ++k) {
            pthread_join(all[k], 0);
        }
        pthread_barrier_destroy(&meeting);
    }
}
"""

_LAUNCH = """\
static void *work_{name}(void *told)
{{
    const Given *given = (const Given *)told;
    void **p = given->p;
    threadIdx.x = given->thread;
    blockIdx.x = given->block;
    {name}({arguments});
    return 0;
}}

extern "C" void launch_{name}(void **p, unsigned long long count, unsigned threads, unsigned blocks)
{{
    run(work_{name}, {meets}, p, count, threads, blocks);
}}
"""
_HEAD = re.compile(r'extern "C" __global__ void __launch_bounds__\([\d, ]+\) (\w+)\((.*)\)$', re.M)


_ONE_AT_A_TIME = threading.Lock()


class Emulated:
    """A file of CUDA C as a library of the CPU."""

    def __init__(self, text: str) -> None:
        launches = []
        for found in _HEAD.finditer(text):
            name, head = found.groups()
            kinds = [x.rpartition("__restrict__")[0] for x in head.split(", ")[:-1]]
            given = ", ".join(
                [*(f"({kind})p[{k}]" for k, kind in enumerate(kinds)), "given->count"]
            )
            # Threads that never meet can run one after the other.
            body = text[found.end() : text.index("\n}\n", found.end())]
            meets = "__syncthreads" in body or "arc_arrived" in body
            launches.append(_LAUNCH.format(name=name, arguments=given, meets=str(meets).lower()))
        whole = "\n".join([_BEFORE, text, *launches, "}"])
        with tempfile.TemporaryDirectory() as folder:
            source, library = Path(folder) / "unit.cpp", Path(folder) / "unit.so"
            source.write_text(whole)
            flags = ["-std=c++17", "-O0", "-w", "-ffp-contract=off", "-shared", "-fPIC", "-pthread"]
            command = [needs("g++"), *flags, str(source), "-o", str(library)]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr[:4000]
            self._library = ctypes.CDLL(str(library))

    def launch(
        self, name: str, blocks: int, threads: int, arrays: Sequence[np.ndarray], count: int
    ) -> None:
        """Run a kernel on NumPy's arrays."""
        pointers = (ctypes.c_void_p * len(arrays))(*(x.ctypes.data for x in arrays))
        run = getattr(self._library, f"launch_{name}")
        with _ONE_AT_A_TIME:  # where the threads of a block meet is one place
            run(pointers, ctypes.c_ulonglong(count), ctypes.c_uint(threads), ctypes.c_uint(blocks))
