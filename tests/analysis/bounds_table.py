"""Certified ranges against sampled results, model by model.

``python -m tests.analysis.bounds_table --samples 1000000`` prints the table of docs/bounds.md.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

import archimedes as arc
from archimedes.analysis.ranges.arguments import read_arguments
from archimedes.graph import DTYPES, Graph
from tests.analysis.bounds_models import MODELS
from tests.analysis.sampling import outside, points_in, points_of_types, results_at

CHUNK = 50_000
#: A result that varies less, compared with the numbers of its array, has no range to speak of.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Row:
    """What one model showed: samples outside, and widths of bounds over sampled widths."""

    name: str
    operations: int
    seconds: float
    boxes: int
    samples: int
    outside: int
    ratios: np.ndarray
    findings: int

    def __str__(self) -> str:
        middle, most = (f(self.ratios) if len(self.ratios) else np.nan for f in (np.median, np.max))
        return (
            f"| {self.name.replace('_', ' ')} | {self.operations} | {len(self.ratios)} | "
            f"{self.boxes} | {self.seconds:.1f} | {self.outside} | {middle:.2f} | {most:.2f} |"
        )


HEAD = """\
| model | operations | results | boxes | seconds | outside | median ratio | largest |
|---|---|---|---|---|---|---|---|"""


def sampled(compiled: Any, args: tuple[Any, ...], ends: np.ndarray, count: int, seed: int = 0):
    """Yield results (outputs, n) of compiled code at points in a box, `count` in all."""
    _, recording, tiers = compiled.lookup(args, {})
    kernel, rng = tiers.kernel(), np.random.default_rng(seed)
    specs = [spec for spec in recording.leaves if spec.traced]
    for start in range(0, count, CHUNK):
        n = min(CHUNK, count - start)
        points = points_in(ends, n, rng)
        inputs, at = [], 0
        for spec in specs:
            dtype = DTYPES[spec.code]
            mine = points[at : at + spec.size]
            low, high = ends[:, at : at + spec.size, None]
            mine = np.clip(mine.astype(dtype) if dtype.kind == "f" else np.rint(mine), low, high)
            inputs.append(np.ascontiguousarray(mine.T.reshape(n, *spec.shape).astype(dtype)))
            at += spec.size
        outs = [out for out in recording.outs if out.spec.traced]
        results = [np.empty((n, *out.spec.shape), DTYPES[out.spec.code]) for out in outs]
        kernel.call_batch(inputs, [True] * len(inputs), results, n, 1)
        yield np.concatenate([r.reshape(n, -1).astype(float).T for r in results])


def interpreted(graph: Graph, ends: np.ndarray, count: int, seed: int = 0):
    """Yield the same by the interpreter, which need not compile."""
    points = points_in(ends, count, np.random.default_rng(seed))
    yield results_at(graph, points_of_types(graph, ends, points))


def examine(name: str, samples: int, boxes: int = 256, compile: bool = True) -> Row:
    """Bound a model, and sample it: by compiled code, or by the interpreter."""
    function, args, ranges = MODELS[name]()
    compiled = arc.compile(function)
    arguments = read_arguments(compiled, ranges, args)
    start = time.perf_counter()
    bounds = compiled.bounds(ranges, *args, boxes=boxes)
    seconds = time.perf_counter() - start
    traced = [out for out in arguments.recording.outs if out.spec.traced]
    parts = [arc.tree.leaves(part) for part in (bounds.lower, bounds.upper, bounds.nan)]
    known = [out.spec.traced for out in arguments.recording.outs]
    low, high, nan = (
        np.concatenate([np.ravel(x) for x, is_known in zip(part, known) if is_known])
        for part in parts
    )
    ends, nan = np.stack([low, high]).astype(float), nan.astype(bool)
    least, most, wrong = np.full(len(low), np.inf), np.full(len(low), -np.inf), 0
    if compile:
        runs = sampled(compiled, args, arguments.ends, samples)
    else:
        runs = interpreted(arguments.recording.graph, arguments.ends, samples)
    for results in runs:
        wrong += int(outside(results, ends, nan).sum())
        finite = np.where(np.isfinite(results), results, np.nan)
        least = np.fmin(least, np.fmin.reduce(finite, axis=1))
        most = np.fmax(most, np.fmax.reduce(finite, axis=1))
    scale = np.concatenate(
        [
            np.full(out.spec.size, np.abs([least, most])[:, out.start : out.stop].max())
            for out in traced
        ]
    )
    spread = most - least
    varies = spread > ROUNDING * scale
    ratios = (ends[1] - ends[0])[varies] / spread[varies]
    count = arc.compile(function).statistics(*args).total
    return Row(name, count, seconds, bounds.boxes, samples, wrong, ratios, len(bounds.findings))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--boxes", type=int, default=256)
    parser.add_argument("models", nargs="*")
    options = parser.parse_args()
    print(HEAD)
    rows = []
    for name in options.models or MODELS:
        rows.append(examine(name, options.samples, options.boxes))
        print(rows[-1], flush=True)
    ratios = np.concatenate([row.ratios for row in rows])
    medians = [np.median(row.ratios) for row in rows if len(row.ratios)]
    print(
        f"\n{len(rows)} models, {options.samples:,} samples each: {sum(r.outside for r in rows)} "
        f"outside; median ratio {np.median(ratios):.3f} over all {len(ratios)} results, "
        f"{np.median(medians):.3f} over models"
    )


if __name__ == "__main__":
    main()
