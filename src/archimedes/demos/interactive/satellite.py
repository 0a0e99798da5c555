"""Throw a satellite into a tumble, and detumble it with its wheels or its coils.

The law of the coils is B-dot: a dipole against the change of the field in body axes (F. L. Markley
and J. L. Crassidis, Fundamentals of Spacecraft Attitude Determination and Control, section 7.5.1).
"""

from __future__ import annotations

from typing import Any

import numpy as np

import archimedes as arc
from archimedes.demos import satellite_slew as slew
from archimedes.spatial.components import cross
from archimedes.typing import Scalar
from archimedes.vehicles import Satellite
from archimedes.viewer import Control, Pull, Simulator, View, view

DT = 0.05


@arc.struct
class Operator:
    """Throws, and what damps the tumble."""

    throw: Any = arc.field(units="N m", default_factory=lambda: np.zeros(3))
    wheels: Any = 0.0
    coils: Any = 0.0
    damping: Any = arc.field(units="N m s", default=0.08)
    dipole_gain: Any = arc.field(units="A m^2 s/T", default=2e5)
    pull: Any = arc.field(default_factory=lambda: Pull(("",), 0.1, 0.0, limit=0.04, relative=True))


@arc.struct
class Shown:
    """What is drawn besides."""

    rate: Any = arc.field(units="rad/s")
    wheel_momentum: Any = arc.field(units="N m s")
    dipole: Any = arc.field(units="A m^2")


satellite = slew.satellite


def applied(t: Scalar, x: Satellite.State, u: Operator) -> Any:
    """Return the torques of the wheels and the dipoles of the coils."""
    field_B = satellite.outputs(t, x).B_B
    change = -cross(x.w_B, field_B)
    limit = satellite.coils.max_dipole
    dipole = u.coils * np.clip(-u.dipole_gain * change, -limit, limit)
    torque = satellite.wheels.distribute(-u.wheels * u.damping * x.w_B)
    return satellite.idle().replace(torque=torque, dipole=dipole)


def tumbling(t: Scalar, x: Satellite.State, u: Operator) -> Any:
    """Return the rates with the moment of a throw or of the cursor."""
    rates = satellite.dynamics(t, x, applied(t, x, u))
    R_IB = x.att.as_matrix().T
    moment = u.throw + u.pull.wrench(np.zeros(3), np.zeros(3), R_IB, x.w_B)[3:]
    return arc.tree.replace(rates, w_B=rates.w_B + np.linalg.solve(satellite.inertia, moment))


def outputs(t: Scalar, x: Satellite.State, u: Operator) -> Shown:
    """Return what is drawn."""
    return Shown(np.sqrt(np.sum(x.w_B**2)), x.h, applied(t, x, u).dipole)


def page() -> View:
    """Return the page."""
    start = arc.tree.replace(slew.start(), w_B=np.array([0.02, -0.01, 0.015]))
    throw = [(2.0, 0.06), (0.5, 0.0)]
    controls = {
        "throw[0]": Control(kind="pulse", label="throw about x", keys="1", pulse=throw, button=0),
        "throw[1]": Control(kind="pulse", label="throw about y", keys="2", pulse=throw, button=1),
        "throw[2]": Control(kind="pulse", label="throw about z", keys="3", pulse=throw, button=2),
        "wheels": Control(kind="switch", label="detumble with the wheels", keys="w"),
        "coils": Control(kind="switch", label="detumble with the coils (B-dot)", keys="c"),
        "damping": Control(0.01, 0.3, label="gain of the wheels"),
        "dipole_gain": Control(1e4, 1e6, label="gain of the coils"),
    }
    simulator = Simulator(
        tumbling, start, inputs=Operator(), controls=controls, dt=DT, t_end=600.0,
        actor=satellite, outputs=outputs,
        charts=["rate", "angular velocity", "attitude", "wheel_momentum", "dipole"],
    )  # fmt: skip
    note = "Throw it (1, 2, 3) or drag a wing; W damps with wheels, C with coils (try speed 50 x)"
    shown = view(
        {"satellite": simulator}, title="Detumble the satellite", note=note, interactive=True
    )
    shown.scene.camera.distance *= 1.2
    return shown
