"""``python -m tests.fuzz --programs 1000000 --seed 0 --jobs 2``: long fuzzing runs.

``--executor native`` compares kernels of many programs with the interpreter, bit for bit, in the
numerics that ``--numerics`` says. It goes on until as many programs have been compiled (most of
the long ones are only interpreted). ``--executor wide`` does the same for arrays of up to thousands
of elements; with ``--native-every 4`` a quarter of those is compiled. ``--executor wasm`` runs the
programs as WebAssembly in Node, ``chromium`` in Node and Chromium, ``firefox`` in Firefox.
``--loops-from 2`` records arrays of so many elements as loops.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from archimedes.function.execution.tiers import NUMERICS
from archimedes.symbolic.core.loop_nests import ALWAYS_FACTOR, LOOP_SIZE, loops_from
from tests.wasm.browsers import run_in_firefox, run_in_node_and_chromium
from tests.wasm.checking import run_jobs_in_node

from .bundles import BUNDLE, check_bundle
from .runner import EXECUTORS, check
from .webassembly import PROGRAMS, check_in_wasm
from .wide import check_wide_in_bundles

CHUNK = 2 * BUNDLE
#: What runs programs as WebAssembly.
WASM_RUNNERS = {
    "wasm": run_jobs_in_node,
    "chromium": run_in_node_and_chromium,
    "firefox": run_in_firefox,
}


def run_chunk(
    first: int, count: int, executor: str, numerics: str, elements: int, every: int = 1
) -> tuple[int, list[str]]:
    warnings.simplefilter("error")
    with loops_from(elements, 1 if elements < LOOP_SIZE else ALWAYS_FACTOR):
        return _run_chunk(first, count, executor, numerics, every)


def _run_chunk(
    first: int, count: int, executor: str, numerics: str, every: int
) -> tuple[int, list[str]]:
    if executor == "native":
        seeds = range(first, first + count)
        bundles = (seeds[k : k + BUNDLE] for k in range(0, count, BUNDLE))
        results = [check_bundle(bundle, numerics) for bundle in bundles]
        return sum(n for n, _ in results), [text for _, texts in results for text in texts]
    if executor in WASM_RUNNERS:
        seeds = range(first, first + count)
        groups = (seeds[k : k + PROGRAMS] for k in range(0, count, PROGRAMS))
        results = [check_in_wasm(group, WASM_RUNNERS[executor]) for group in groups]
        return sum(n for n, _ in results), [text for _, texts in results for text in texts]
    if executor == "wide":
        return count, check_wide_in_bundles(range(first, first + count), every)
    reports = (check(seed, executor) for seed in range(first, first + count))
    return count, [text for text in reports if text]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first program")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--executor",
        choices=sorted([*EXECUTORS, *WASM_RUNNERS, "native", "wide"]),
        default="compiled",
    )
    parser.add_argument("--numerics", choices=NUMERICS, default="strict", help="of native only")
    parser.add_argument("--loops-from", type=int, default=LOOP_SIZE, help="elements")
    parser.add_argument("--native-every", type=int, default=1, help="bundle of wide programs")
    parser.add_argument("--stop-after", type=int, default=10, help="mismatches to show")
    options = parser.parse_args()
    native = options.executor == "native"
    # Enough seeds: about three in four of them are compiled.
    end = options.seed + options.programs * (2 if native else 1)
    starts = range(options.seed, end, CHUNK)
    sizes = [min(CHUNK, end - start) for start in starts]
    work = partial(
        run_chunk,
        executor=options.executor,
        numerics=options.numerics,
        elements=options.loops_from,
        every=options.native_every,
    )
    done, found = 0, 0
    with ProcessPoolExecutor(options.jobs) as pool:
        for count, reports in pool.map(work, starts, sizes):
            done, found = done + count, found + len(reports)
            print("\n".join(reports), end="\n" if reports else "")
            print(f"\r{done} programs, {found} mismatches", end="", file=sys.stderr, flush=True)
            if found >= options.stop_after or done >= options.programs:
                pool.shutdown(cancel_futures=True)
                break
    print(f"\n{done} programs, {found} mismatches, executor {options.executor}")
    return found > 0


if __name__ == "__main__":
    sys.exit(main())
