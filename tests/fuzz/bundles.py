"""Random programs compiled many at a time: native code gives the interpreter's bits.

Programs run on a batch: the inputs they were generated with, and instances of random and special
values. The interpreter's results for the first are compared with NumPy's; in "fast" numerics
they are others, but the bits must agree between backends in the same way.

Long programs are a third of all and cost LLVM most of the time: one bundle in a few has them, the
others compile the short ones only.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import archimedes
from archimedes.function.recording import OutLeaf, Recording
from archimedes.graph import DTYPES, Graph
from archimedes.graph.fast import fast
from tests.llvm.bundling import Case, case_of, instances, run_bundle

from .programs import Program, generate
from .runner import batch_of, compare, copies, load, report

__all__ = ["BUNDLE", "check_bundle"]

#: Programs looked at together.
BUNDLE = 250
#: Programs of more operations than this are long; one bundle in ``SOMETIMES`` compiles them too.
LONG, SOMETIMES = 180, 16


@dataclass
class Recorded:
    """A recorded program, and what the interpreter makes of a batch of inputs."""

    program: Program
    recording: Recording
    case: Case

    @property
    def is_long(self) -> bool:
        """Whether it takes much time to compile."""
        return _operations(self.case.graph) > LONG

    def results(self) -> tuple[Any, ...]:
        """The interpreter's results for the inputs the program was generated with."""

        def take(out: OutLeaf) -> np.ndarray:
            values = [column[0] for column in self.case.expected[out.start : out.stop]]
            return np.array(values, DTYPES[out.spec.code]).reshape(out.spec.shape)[()]

        return self.recording.rebuild(take)


def _operations(graph: Graph) -> int:
    bodies = (body for region in graph.regions.values() for body in region.bodies)
    return len(graph) + sum(map(_operations, bodies))


def check_bundle(seeds: Sequence[int], numerics: str = "strict") -> tuple[int, list[str]]:
    """Run the programs of these seeds together.

    Returns how many were compiled, and reports of those that went wrong.
    """
    reports, found = [], []
    turn = seeds[0] // BUNDLE
    every = turn % SOMETIMES == 0
    for seed in seeds:
        program = generate(seed)
        try:
            recorded = interpreted(program, instances(turn), numerics)
        except Exception:
            reports.append(report(program, "interpreter", traceback.format_exc(limit=-6)))
            continue
        why = compare(program, recorded.results()) if numerics == "strict" else None
        if why:
            reports.append(report(program, "interpreter", why))
        if every or not recorded.is_long:
            found.append(recorded)
    try:
        differences = run_bundle([x.case for x in found], turn)
    except Exception:
        if len(found) == 1:
            text = report(found[0].program, "native", traceback.format_exc(limit=-6))
            return 1, [*reports, text]
        # Find out whose fault it is.
        alone = [check_bundle([x.program.seed], numerics)[1] for x in found]
        return len(found), reports + [text for texts in alone for text in texts]
    for position, text in differences.items():
        reports.append(report(found[position].program, "native", text))
    return len(found), reports


def interpreted(program: Program, count: int, numerics: str = "strict") -> Recorded:
    """Record a program and run the interpreter over a batch of ``count`` instances."""
    compiled = archimedes.compile(load(program.source, archimedes), backend="interpreter")
    recording = compiled.recording(*copies(program.inputs))
    graph = recording.graph if numerics == "strict" else fast(recording.graph, calls=True)
    batch = batch_of(program.inputs, count)
    columns = [column for x in batch for column in x.reshape(count, x[0].size).T]
    return Recorded(program, recording, case_of(graph, columns, count))
