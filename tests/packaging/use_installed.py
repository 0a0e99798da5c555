"""Use the package as installed, far from any checkout: a new user's commands, and its data files.

Run by ``.ci/package`` as a plain script, in an empty folder, by the Python of a fresh environment
in which there is nothing but the package and what it requires.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from importlib import metadata, resources
from pathlib import Path

DISTRIBUTION = "archimedes-dynamics"

MODEL = """
import numpy as np
import archimedes as arc


@arc.struct
class State:
    angle: float
    rate: float


def pendulum(x: State, torque: float) -> State:
    return State(angle=x.rate, rate=torque - 9.81 * np.sin(x.angle))


example_args = (State(angle=0.3, rate=0.0), 0.1)
swing = arc.solve_ode(lambda t, x: pendulum(x, 0.1), (0.0, 2.0), example_args[0])
assert swing.success, swing
"""


def run(*command: str | Path, folder: str = ".") -> str:
    """Run a command of the environment, and stop where it fails."""
    begun = time.perf_counter()
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder)
    print(f"  {time.perf_counter() - begun:5.1f} s  {' '.join(words[1:])}"[:100], flush=True)
    if done.returncode:
        sys.exit(f"{words} ended with {done.returncode}:\n{done.stdout}{done.stderr}"[-4000:])
    return done.stdout


def check_data_files() -> None:
    """Find every file that the wheel lists through ``importlib.resources``, and read it."""
    listed = [str(file) for file in metadata.files(DISTRIBUTION) or []]
    data = [n for n in listed if n.startswith("archimedes/") and not n.endswith((".py", ".pyc"))]
    assert {"archimedes/py.typed", "archimedes/cli/errors.md"} <= set(data), data
    package = resources.files("archimedes")
    for name in data:
        file = package.joinpath(*name.split("/")[1:])
        assert file.is_file(), f"{name} is listed and not found"
        assert name.endswith("py.typed") or file.read_bytes(), f"{name} is empty"
    print(f"  {len(data)} data files found through importlib.resources")


def main() -> None:
    """Use everything once; ``--short`` leaves the demonstration out."""
    python = Path(sys.executable)
    archimedes = python.with_name("archimedes")
    import archimedes as package

    inside = Path(package.__file__).resolve()
    assert Path(sys.prefix).resolve() in inside.parents, f"{inside} is not in {sys.prefix}"
    assert metadata.version(DISTRIBUTION) == package.__version__
    check_data_files()
    if "--short" not in sys.argv:
        run(python, "-m", "archimedes")
        assert list(Path("archimedes_demo").rglob("*.html")), "the demonstration left no page"
    run(archimedes, "doctor")
    kinds = json.loads(run(archimedes, "explain", "--json"))
    assert kinds["branch"] in run(archimedes, "explain", "branch")
    run(archimedes, "new", "pendulum_project")
    run(python, "make_c.py", folder="pendulum_project")
    flight = run(archimedes, "run", "--template", "f16")
    Path("flight.yaml").write_text(flight, "utf-8")
    run(archimedes, "view", "flight.yaml")
    (page,) = Path("archimedes_view").rglob("*.html")
    assert "<canvas" in page.read_text("utf-8"), f"{page} shows nothing"
    Path("model.py").write_text(MODEL, "utf-8")
    for target in ("c", "arduino", "cortex-m"):
        run(archimedes, "codegen", "model:pendulum", "--output", target, "--target", target)
        assert list(Path(target).rglob("*.h")), f"{target}: no header"
    if shutil.which("cc") and shutil.which("make"):
        run("make", folder="c")
        run(archimedes, "codegen", "model:pendulum", "--output", "checked", "--verify")
    else:
        print("  no C compiler here: the C project is written and not compiled")


if __name__ == "__main__":
    main()
