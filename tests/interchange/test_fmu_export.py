"""Exported FMUs: what FMPy says of them, and what they compute."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import archimedes as arc
from archimedes.system.programs import find_program
from tests.optional_packages import import_or_skip

fmpy = import_or_skip("fmpy")
if not any(find_program(name) for name in ("cc", "gcc", "clang")):
    pytest.skip("needs a C compiler", allow_module_level=True)

#: A step that is a power of two, so that all times are exact.
STEP = 1.0 / 128.0


@arc.struct
class Rod:
    """A pendulum's rod.

    Parameters
    ----------
    length : float
        Distance from the hinge to the mass.
    """

    length: float = arc.field(units="m", limits=(0.1, 10.0), default=1.2)
    damping: float = arc.field(units="1/s", default=0.1)
    count: np.int64 = np.int64(3)
    stuck: np.bool_ = np.bool_(False)


def pendulum(t, x, torque, rod):
    """Swing about a hinge."""
    rate = np.where(rod.stuck, 0.0, x[1])
    return np.array([rate, torque - 9.81 / rod.length * np.sin(x[0]) - rod.damping * x[1]])


def angle_and_energy(t, x, torque, rod):
    energy = 0.5 * (rod.length * x[1]) ** 2 - 9.81 * rod.length * np.cos(x[0])
    return {"angle": x[0], "energy": energy, "right": x[0] > 0.0, "twice": 2 * rod.count}


X0 = np.array([1.0, 0.0])


@pytest.fixture(scope="module", params=["2.0", "3.0"])
def pendulum_fmu(request, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("fmu") / "pendulum.fmu"
    arc.export_fmu(
        pendulum, path, X0, inputs=0.0, parameters=Rod(), outputs=angle_and_energy,
        kind=("cs", "me"), version=request.param, dt=STEP,
    )  # fmt: skip
    return path


def test_fmpy_finds_nothing_to_remark(pendulum_fmu):
    from fmpy.validation import validate_fmu

    assert validate_fmu(str(pendulum_fmu)) == []


def test_a_co_simulation_has_the_bits_of_solve_ode_and_of_discretize(pendulum_fmu):
    result = fmpy.simulate_fmu(
        str(pendulum_fmu), fmi_type="CoSimulation", stop_time=0.5, output_interval=2 * STEP,
        start_values={"u": 0.25, "p.length": 1.5},
    )  # fmt: skip
    rod = Rod(length=1.5)
    solve = arc.solve_ode(
        pendulum, (0.0, 0.5), X0, args=(0.25, rod), method="rk4", dt=STEP
    ).x[::2]  # fmt: skip
    step, x = arc.discretize(pendulum, STEP), X0
    for k in range(64):
        x = step(k * STEP, x, 0.25, rod)
    assert result["y.angle"].tolist() == solve[:, 0].tolist()
    assert x.tolist() == solve[-1].tolist()
    assert result["y.right"].all() and (result["y.twice"] == 6).all()
