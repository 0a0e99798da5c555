"""Adding an op and a vehicle, literally as CONTRIBUTING.md says, to a copy of the package.

A joint is added in ``tests/multibody``, a solver in ``tests/optimize``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkout import ROOT

pytestmark = pytest.mark.long


@pytest.fixture
def package(tmp_path) -> Path:
    """Return a copy of the package that may be changed."""
    copy = tmp_path / "src" / "archimedes"
    shutil.copytree(ROOT / "src" / "archimedes", copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def insert_after(path: Path, beginning: str, row: str) -> None:
    """Add a row to a table, after the row with this beginning."""
    lines = path.read_text("utf-8").splitlines()
    (k,) = [k for k, line in enumerate(lines) if line.startswith(beginning)]
    lines.insert(k + 1, row)
    path.write_text("\n".join(lines) + "\n", "utf-8")


def run(package: Path, *command: str) -> str:
    """Run Python with the changed package."""
    path = os.pathsep.join([str(package.parent), str(ROOT)])
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "ARCHIMEDES_CACHE": "0"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_an_op(package):
    insert_after(
        package / "graph" / "ops.py",
        '    ("max", ',
        '    ("absdiff", 2, "same", FLOATS, lambda a, b: np.abs(a - b), True),',
    )
    insert_after(
        package / "graph" / "derivatives" / "rules.py",
        '    "neg": ',
        '    "absdiff": (\n'
        "        lambda e, o, a, b: _sign(e, e.sub(a, b)),\n"
        "        lambda e, o, a, b: _sign(e, e.sub(b, a)),\n"
        "    ),",
    )
    insert_after(
        package / "backends" / "llvm" / "lowering" / "instructions.py",
        '    "max": ',
        '    "absdiff": lambda f, dtype, a, b: LOWERING["abs"](\n'
        '        f, dtype, LOWERING["sub"](f, dtype, a, b)\n'
        "    ),",
    )
    insert_after(
        package / "backends" / "c" / "spelling.py",
        '    "max": ',
        '    "absdiff": _floats("arc_fabs@({0} - {1})"),',
    )
    # Listed means tested.
    options = ("-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-o", "addopts=")
    said = run(package, *options, "tests/llvm/test_ops.py", "-k", "absdiff or every_op_is")
    assert "3 passed" in said
    said = run(
        package, *options, "tests/c/test_ops.py", "-k", "is_spelled or (every_op and double-gcc)"
    )
    assert " passed" in said and "failed" not in said


SLED = '''"""A sled: a block that slides with drag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.tree import field, struct
from archimedes.vehicles.vehicle_folders import VehicleConfig
from archimedes.vehicles.worlds import FlightState
from archimedes.vehicles.worlds import FlatEarth

if TYPE_CHECKING:
    from archimedes.viewer import Flight, Scene


@struct
class Sled:
    """A block that slides on ice, pushed along its x axis."""

    mass: float = field(units="kg", default=40.0)
    drag: float = field(units="N s/m", default=2.0)
    world: Any = field(default_factory=FlatEarth)

    @struct
    class Input:
        """The push."""

        push: float = field(units="N", default=0.0)

    def state(self, flight: FlightState) -> Any:
        """Return the state for a position, a velocity and an attitude."""
        return self.world.state(flight)

    def dynamics(self, t: Any, x: Any, u: Any) -> Any:
        """Return the derivative of the state."""
        weight = x.att.rotate(np.array([0.0, 0.0, 9.80665 * self.mass]))
        force = np.stack([u.push + 0.0 * t, 0.0 * t, 0.0 * t]) - self.drag * x.v_B - weight
        return self.world.rates(t, x, force, np.zeros(3), self.mass, self.mass * np.eye(3))

    def outputs(self, t: Any, x: Any, u: Any) -> Any:
        """Return the position, velocity and attitude."""
        return self.world.flight(t, x)

    def add_to_scene(self, scene: Scene, flight: Flight) -> None:
        """Add the sled to a scene."""
        from archimedes.viewer.meshes import box

        flight.place(self.world, scene)
        scene.bodies.append(flight.body([box([1.2, 0.5, 0.3])]))


class SledConfig(VehicleConfig, type="sled"):
    """A parameter file of type sled."""

    makes = Sled
'''

FLIGHT = """title: A sled is pushed
vehicle: sled
start:
  alt: 0.0
  v_NED: [1.0, 0.0, 0.0]
controls: {push: 20.0}
trim: false
ground: null
duration: 5.0
"""

SLIDE = """
import numpy as np
import archimedes as arc
from archimedes.vehicles import FlightState, Sled, load

sled = load("sled")
assert isinstance(sled, Sled) and sled.drag == 3.0
start = sled.state(FlightState(0.0, 0.0, 0.0, np.array([1.0, 0.0, 0.0]), np.zeros(3), np.zeros(3)))
traj = arc.solve_ode(lambda t, x: sled.dynamics(t, x, Sled.Input(20.0)), (0.0, 60.0), start)
# m dv/dt = push - drag v
speed = 20.0 / 3.0 + (1.0 - 20.0 / 3.0) * np.exp(-60.0 * 3.0 / 40.0)
assert abs(traj.x.v_B[-1, 0] - speed) < 1e-6, traj.x.v_B[-1]
assert "sled" in str(arc.view(sled, traj)).lower()
"""


def test_a_vehicle(package, tmp_path):
    folder = package / "vehicles" / "sled"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        '"""A sled: its model, its parameters, its scene."""\n', "utf-8"
    )
    (folder / "sled.py").write_text(SLED, "utf-8")
    (folder / "sled.yaml").write_text("type: sled\nmass: 40.0 # kg\ndrag: 3.0 # N s/m\n", "utf-8")
    (folder / "sled_flight.yaml").write_text(FLIGHT, "utf-8")
    insert_after(
        package / "vehicles" / "__init__.pyi",
        "from archimedes.vehicles.satellite.satellite import",
        "from archimedes.vehicles.sled.sled import Sled as Sled",
    )
    run(package, "-c", SLIDE)
    template = run(package, "-m", "archimedes", "run", "--template", "sled")
    assert template == FLIGHT
    file = tmp_path / "flight.yaml"
    file.write_text(template, "utf-8")
    run(package, "-m", "archimedes", "run", str(file), "--output", str(tmp_path / "out"))
    assert list((tmp_path / "out").glob("*.html"))
