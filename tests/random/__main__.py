"""Run all statistical tests on many numbers: ``python -m tests.random [numbers] [seed]``."""

from __future__ import annotations

import sys
import time

import archimedes as arc
from tests.random.statistics import TESTS


def main(numbers: int = 100_000_000, seed: int = 2024) -> int:
    least = 1.0
    for k, (name, test) in enumerate(TESTS.items()):
        start = time.perf_counter()
        found = test(arc.random.fold_in(arc.random.key(seed), k), numbers)
        seconds = time.perf_counter() - start
        for what, p in found.items():
            print(f"{name.replace('_', ' '):28} {what:30} p = {p:.4f}", flush=True)
            least = min(least, p, 1 - p)
        print(f"{'':28} {seconds:.0f} s", flush=True)
    print(f"smallest of p and 1 - p: {least:.2e}")
    return 0 if least > 1e-5 else 1


if __name__ == "__main__":
    sys.exit(main(*(int(float(a)) for a in sys.argv[1:])))
