"""What a first solve does not have to wait for."""

import json
import subprocess
import sys

import numpy as np

import archimedes as arc

SOLVE = """
import sys, json
import numpy as np
import archimedes as arc
before = {*sys.modules}
arc.solve_ode(lambda t, x: -x, (0.0, 1.0), np.ones(3))
print(json.dumps([*{*sys.modules} - before]))
"""


def test_a_plain_solve_imports_neither_events_nor_derivatives():
    found = subprocess.run(
        [sys.executable, "-c", SOLVE], capture_output=True, text=True, check=True
    )
    loaded = json.loads(found.stdout)
    unwanted = (
        "archimedes.graph.derivatives",
        "archimedes.simulate.events",
        "archimedes.simulate.sparse",
        "archimedes.simulate.solves.hybrid",
        "archimedes.random",
        "archimedes.backends.llvm.lowering.batch_loop",
        "archimedes.backends.llvm.lowering.lane_maps",
        "archimedes.backends.llvm.lowering.nests",
        *("decimal", "fractions", "hashlib", "sysconfig", "traceback"),
    )
    assert [name for name in loaded if name.startswith(unwanted)] == []


def test_drafts_and_finished_kernels_have_the_same_bits():
    def model(t, x):
        return np.roll(x, 1) * np.cos(t) - np.sin(x)

    x0 = np.linspace(0.0, 1.0, 13)
    solves = [arc.solve_ode(model, (0.0, 3.0), x0) for _ in range(12)]
    first, last = solves[0], solves[-1]
    assert first.x.tobytes() == last.x.tobytes()
    times = np.linspace(0.0, 3.0, 7)
    assert first(times).tobytes() == last(times).tobytes()
