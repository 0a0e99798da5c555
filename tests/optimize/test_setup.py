"""Setting up an optimal-control problem: flat in the number of intervals, quick from the disk."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from archimedes.optimize import OptimalControl

pytestmark = pytest.mark.long

CAR = """
import sys
import numpy as np
import pytest
from archimedes.optimize import OptimalControl

car = OptimalControl(
    lambda t, x, u: np.stack([x[1], u[0] - 0.1 * x[1] ** 2]),
    running_cost=lambda t, x, u: u[0] ** 2,
    initial=[0.0, 0.0],
    final=[1.0, 0.0],
    tf=1.0,
)
found = car.solve({"x": np.zeros(2), "u": np.zeros(1)}, intervals=100)
assert found.success
print(repr(found.fun))
unwanted = ("archimedes.backends.llvm.lowering.", "archimedes.graph.expand", "concurrent.futures")
print(*[name for name in sys.modules if name.startswith(unwanted)])
"""


def test_from_the_disk_nothing_is_imported_that_compiles(tmp_path, monkeypatch):
    monkeypatch.setenv("ARCHIMEDES_CACHE", "1")
    monkeypatch.setenv("ARCHIMEDES_CACHE_DIR", str(tmp_path / "kernels"))
    command = [sys.executable, "-c", CAR]
    outs = [
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        for _ in range(2)
    ]
    assert outs[0][0] == outs[1][0]
    assert "llvm_dialect" in outs[0][1] and outs[1][1] == ""


def calls_to_set_up(intervals: int) -> int:
    """Return how many functions are called, Python's and C's, for a first iteration."""
    made = OptimalControl(
        lambda t, x, u: np.stack([x[1], u[0] - np.sin(x[0])]),
        running_cost=lambda t, x, u: u[0] ** 2 + x[0] ** 2,
        terminal_cost=lambda t0, x0, tf, xf: tf,
        path=lambda t, x, u: x[1] + 0.1 * u[0],
        path_bounds=(None, 2.0),
        initial=[1.0, 0.0],
        final=[0.0, 0.0],
        tf=(0.5, 5.0),
    )
    count = 0

    def profile(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        made.solve(
            {"x": np.zeros(2), "u": np.zeros(1), "tf": 2.0},
            intervals=intervals,
            options={"maxiter": 1},
        )
    finally:
        sys.setprofile(before)
    return count


def test_the_work_in_python_is_the_same_for_all_meshes():
    calls_to_set_up(30)  # imports
    few, many = calls_to_set_up(40), calls_to_set_up(1000)
    assert many < 1.05 * few, (few, many)
