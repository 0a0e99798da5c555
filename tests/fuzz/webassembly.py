"""Random programs as WebAssembly in Node, many in one process: the bits of the interpreter.

Single calls and batches, those of every second bundle in SIMD lanes; every third bundle is cut into
small functions.
"""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.wasm.checking import Case, differences, run_jobs_in_node

from .bundles import interpreted
from .programs import generate
from .runner import compare, report

__all__ = ["INSTANCES", "PROGRAMS", "check_in_wasm"]

#: Instances of a batch, and programs looked at together.
INSTANCES, PROGRAMS = 5, 125


def check_in_wasm(
    seeds: Sequence[int], run: Callable[[Path], None] = run_jobs_in_node
) -> tuple[int, list[str]]:
    """Run the programs of these seeds; return how many ran, and reports of what went wrong.

    ``run`` runs the jobs of a folder: in Node, or in a browser.
    """
    reports, found = [], []
    turn = seeds[0] // PROGRAMS
    for seed in seeds:
        program = generate(seed)
        try:
            recorded = interpreted(program, INSTANCES)
        except Exception:
            reports.append(report(program, "interpreter", traceback.format_exc(limit=-6)))
            continue
        why = compare(program, recorded.results())
        if why:
            reports.append(report(program, "interpreter", why))
        case = recorded.case
        found.append((program, Case(str(seed), case.graph, case.columns, INSTANCES, case.expected)))
    with tempfile.TemporaryDirectory() as folder:
        try:
            wrong = differences(
                [case for _, case in found],
                Path(folder),
                part=40 if turn % 3 == 2 else None,
                simd=turn % 2 == 1,
                run=run,
            )
        except Exception:
            if len(found) == 1:
                text = report(found[0][0], "wasm", traceback.format_exc(limit=-6))
                return 1, [*reports, text]
            # Find out whose fault it is.
            alone = [check_in_wasm([program.seed], run)[1] for program, _ in found]
            return len(found), reports + [text for texts in alone for text in texts]
    by_name = {case.name: program for program, case in found}
    reports += [report(by_name[name], "wasm", text) for name, text in wrong.items()]
    return len(found), reports
