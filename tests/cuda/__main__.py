"""``python -m tests.cuda``: bits and speed on the GPU of this machine, as a short report.

``--emulate`` runs the same on the CPU with small sizes, to try the command where there is no GPU.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack


def say(text: str) -> None:
    print(f"  {text}", flush=True)


def section(name: str, run: Callable[[], object]) -> object:
    """Run a part of the report; an error is printed in a few lines and the rest goes on."""
    begin = time.perf_counter()
    print(f"{name}:", flush=True)
    try:
        return run()
    except Exception as error:
        say(f"FAILED {type(error).__name__}: {str(error)[:1200]}")
        for frame in traceback.extract_tb(error.__traceback__)[-6:]:
            say(f"  {os.path.relpath(frame.filename)}:{frame.lineno} {frame.name}: {frame.line}")
        return None
    finally:
        say(f"({time.perf_counter() - begin:.1f} s)")


def device_facts() -> None:
    import cupy

    from archimedes.backends.cuda.device import architecture, compiler_major, toolkit

    runtime = cupy.cuda.runtime
    properties = runtime.getDeviceProperties(0)
    say(
        f"{properties['name'].decode()}, {architecture()}, driver {runtime.driverGetVersion()}, "
        f"CUDA {toolkit()}, NVRTC {compiler_major()}, CuPy {cupy.__version__}, Python "
        f"{sys.version.split()[0]}, {os.cpu_count()} CPUs"
    )


def speed() -> None:
    from benchmarks import gpu

    copy = gpu.copies()
    say(f"copy: {copy / 1e12:.3f} TB/s")
    for make in gpu.CASES:
        row = gpu.row_of(make, copy)
        if row is not None:
            say(" | ".join(row))
    for row in gpu.first_calls():
        say(" | ".join(row))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.cuda", description=__doc__)
    parser.add_argument("--programs", type=int, default=1500, help="random programs")
    parser.add_argument("--seconds", type=float, default=90.0, help="for random programs")
    parser.add_argument("--workers", type=int, default=min(16, os.cpu_count() or 1))
    parser.add_argument("--emulate", action="store_true")
    parser.add_argument("--bits-only", action="store_true", help="no speed: see benchmarks.gpu")
    given = parser.parse_args()
    small = given.emulate
    # JAX would take most of the memory.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    with ExitStack() as stack:
        if small:
            from .fake_cupy import installed

            stack.enter_context(installed())
        from . import device_arrays, device_bits, device_learning, device_solves

        begin = time.perf_counter()
        if not small:
            section("device", device_facts)
        from archimedes.backends.cuda.device import architecture

        if not small and not given.bits_only:
            section("speed", speed)
        section(
            "bits",
            lambda: device_bits.check_all(
                given.programs,
                architecture(),
                emulated=small,
                workers=given.workers,
                seconds=given.seconds,
                say=say,
            ),
        )
        section("mixing", lambda: device_arrays.mixing(say))
        section("moving", lambda: device_arrays.moving(300 if small else 50_000_000, say))
        if not small:
            section("streams", lambda: device_arrays.streams(say))
            section("launches", lambda: device_arrays.launches(10_000, say))
            section("errors", lambda: device_arrays.errors(say))
            section("packages", lambda: device_arrays.packages(say))
            section("learning", lambda: device_learning.check_all(say))
        section("solves", lambda: device_arrays.solves(8 if small else 100_000, say))
        section("tests of solves", lambda: device_solves.check_all(say))
        print(f"all: {time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
