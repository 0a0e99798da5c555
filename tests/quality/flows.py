"""How much of the package seven flows pass through: Python calls, functions and files.

    python -m tests.quality.flows                         # a row for each flow, this checkout
    python -m tests.quality.flows --source OLD/src        # another checkout

Each flow runs for the first time in a process of its own, with an empty cache of kernels. Calls of
functions of the package are counted, those while modules are imported left out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

__all__ = ["FLOWS", "count"]

SOURCE = Path(__file__).parents[2] / "src"

SETUP = """
import numpy as np
import archimedes as arc
from archimedes import control, multibody as mb
def pendulum(t, x, length=1.0):
    return np.array([x[1], -9.81 / length * np.sin(x[0])])
x0 = np.array([0.5, 0.0])
def cost(x):
    return 100.0 * (x[1] - x[0] ** 2) ** 2 + (1.0 - x[0]) ** 2
def climb(t, x, u):
    return np.array([u[0] - 0.02 * x[0] ** 2 - 9.81 * np.sin(x[1]), 0.1 * u[1] * x[0] - x[1]])
def build_arm():
    b = mb.Builder("arm")
    for name, parent in (("upper", "world"), ("lower", "upper")):
        b.add_body(name, mass=2.0, com=[0, 0, 0.2], inertia=[0.03, 0.03, 0.002])
        b.attach(name, parent, joint=name + "_joint", axis=[0, 1, 0], position=[0, 0, 0.4])
    return b.build()
"""

#: What is counted, after what has been prepared.
FLOWS = {
    "compile": ("", "arc.compile(pendulum)(0.0, x0)"),
    "solve_ode": ("", "arc.solve_ode(pendulum, (0.0, 1.0), x0)"),
    "jac": ("", "arc.jac(pendulum, argnums=1)(0.0, x0)"),
    "codegen": ("", "arc.codegen(pendulum, (0.0, x0), output_dir=folder)"),
    "aba": ("arm = build_arm(); z = np.zeros(2)", "arc.compile(mb.aba)(arm, z, z, z)"),
    "minimize": ("", "arc.minimize(cost, np.zeros(2))"),
    "trim": ("", "control.trim(climb, np.array([20.0, 0.0]), np.array([8.0, 0.2]))"),
}

COUNTING = """
import json, sys, tempfile
calls, functions, importing = 0, set(), 0
def count(frame, event, argument):
    global calls, importing
    if frame.f_code.co_name == "<module>":
        importing += (event == "call") - (event == "return")
    elif event == "call" and not importing and "archimedes/" in frame.f_code.co_filename:
        calls += 1
        functions.add(frame.f_code)
with tempfile.TemporaryDirectory() as folder:
    sys.setprofile(count)
    {flow}
    sys.setprofile(None)
files = {{code.co_filename for code in functions}}
print(json.dumps([calls, len(functions), len(files)]))
"""


def count(flow: str, source: Path = SOURCE) -> tuple[int, int, int]:
    """Return how many calls, functions and files of the package a flow takes."""
    setup, run = FLOWS[flow]
    text = SETUP + setup + COUNTING.format(flow=run)
    settings = {**os.environ, "PYTHONPATH": str(source), "ARCHIMEDES_CACHE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", text], env=settings, capture_output=True, text=True, check=True
    )
    return tuple(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, default=SOURCE, help="the folder with archimedes")
    options = parser.parse_args()
    print("| flow | calls | functions | files |\n|---|---|---|---|")
    for flow in FLOWS:
        print(f"| {flow} | {' | '.join(map(str, count(flow, options.source)))} |")


if __name__ == "__main__":
    main()
