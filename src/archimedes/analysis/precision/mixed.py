"""Programs with some lines in float32 and the others in double: what each line costs the results.

The effect of a line is the error of the results when it alone is computed in float32. Errors add up
nearly, so that lines with little effect can be left in float32 together; which ones is verified by
running the mixed program.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from archimedes.analysis.precision.rounding import round_some
from archimedes.analysis.precision.sources import Sources
from archimedes.backends.protocol import ArrayType, Program, estimate_work
from archimedes.backends.registry import default_backend, reference_backend
from archimedes.function.recording import Recording
from archimedes.graph.dtypes import DTYPES
from archimedes.graph.program import Graph

#: Operations from which on a program is compiled.
_MUCH_WORK = 200_000


class Programs:
    """Runs programs with the inputs and outputs of a recording on samples of its arguments.

    ``leaves`` are the traced arguments, with an axis of ``count`` samples in front.
    """

    def __init__(self, recording: Recording, leaves: Sequence[np.ndarray], count: int) -> None:
        specs = [spec for spec in recording.leaves if spec.traced]
        outs = [out.spec for out in recording.outs if out.spec.traced]
        self._inputs = tuple(ArrayType(s.code, s.shape) for s in specs)
        self._outputs = tuple(ArrayType(s.code, s.shape) for s in outs)
        self._leaves = [
            np.ascontiguousarray(x, dtype=DTYPES[s.code]) for x, s in zip(leaves, specs)
        ]
        self.count = count
        #: The program as it was recorded.
        self.graph = recording.blocks

    def __call__(self, graph: Graph, leaves: Sequence[np.ndarray] | None = None) -> list[Any]:
        """Return the results of all samples, or of other ``leaves``."""
        leaves = self._leaves if leaves is None else leaves
        many = estimate_work(graph) * self.count > _MUCH_WORK
        backend = default_backend() if many else reference_backend()
        kernel = backend.build(Program(graph, self._inputs, self._outputs, "precision"))
        outs = [np.empty((self.count, *t.shape), DTYPES[t.code]) for t in self._outputs]
        kernel.call_batch(leaves, [True] * len(leaves), outs, self.count)
        return outs

    def noise(self) -> list[np.ndarray]:
        """Return by how much the results change with the last bits of the arguments."""
        exact = self(self.graph)
        rng = np.random.default_rng(0)
        changes = [np.zeros(x.shape) for x in exact]
        for _ in range(2):
            moved = [
                np.multiply(x, 1.0 + np.finfo(float).eps * rng.choice([-1.0, 1.0], x.shape))
                if x.dtype == np.float64
                else x
                for x in self._leaves
            ]
            for change, a, b in zip(changes, self(self.graph, moved), exact):
                with np.errstate(all="ignore"):
                    distance = np.abs(a.astype(float) - b.astype(float))
                np.fmax(change, np.nan_to_num(distance, posinf=0.0), out=change)
        return changes


class MixedPrograms:
    """Errors of the results where some sources (by number) are in float32, the others in double.

    ``judge`` returns the largest relative error of each result from those of all samples.
    """

    def __init__(
        self, programs: Programs, sources: Sources, judge: Callable[[list[Any]], np.ndarray]
    ) -> None:
        self._programs, self._sources, self._judge = programs, sources, judge
        self._known: dict[frozenset[int], np.ndarray] = {}

    def error(self, single: Collection[int]) -> float:
        """Return the largest error with these sources in float32."""
        return float(self.errors(single).max(initial=0.0))

    def errors(self, single: Collection[int]) -> np.ndarray:
        """Return the error of each result with these sources in float32."""
        key = frozenset(single)
        if key not in self._known:
            of = self._sources.of
            graph = round_some(self._programs.graph, lambda g, node: of(g, node) in key)
            self._known[key] = self._judge(self._programs(graph))
        return self._known[key]


def find_double(
    groups: Sequence[frozenset[int]], effects: Sequence[float], mixed: MixedPrograms, rtol: float
) -> list[frozenset[int]]:
    """Return a small set of groups of sources that in double bring the error below ``rtol``.

    The groups with the least effect are left in float32, as many as the error allows; the others
    are then tried one by one.
    """
    order = [groups[k] for k in np.argsort(effects, kind="stable")]
    enough, too_many = 0, len(order) + 1
    while too_many - enough > 1:
        middle = (enough + too_many) // 2
        if mixed.error(frozenset().union(*order[:middle])) <= rtol:
            enough = middle
        else:
            too_many = middle
    single = frozenset().union(*order[:enough])
    double = []
    for group in order[enough:]:
        if mixed.error(single | group) <= rtol:
            single |= group
        else:
            double.append(group)
    return double[::-1]
