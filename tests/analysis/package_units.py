"""What of this package is checked for units: every function that its docstrings call, and more.

The examples of the docstrings are run, and every function of the package's physics that they reach,
directly or not, is noted with its arguments and checked. Public names that are left out must stand
in `LEFT_OUT`, with the reason.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import os
import pkgutil
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import archimedes
from archimedes import tree
from archimedes.analysis.observed_calls import Call, watch_calls
from archimedes.analysis.units.checking import check_units
from archimedes.vehicles import FlatEarth, FlightState

__all__ = ["LEFT_OUT", "PACKAGES", "calls_of", "check", "public_names"]

ROOT = Path(archimedes.__file__).parent
PACKAGES = ("spatial", "environment", "multibody", "vehicles", "control.blocks", "observers")
#: Modules whose examples search or fly for seconds; `call_vehicles` calls what they are about.
SEARCHES = ("flight_case", "steady_flight", "autopilot", "dave_ml")

_DATA = "holds values, has no physics of its own"
_FILES = "reads or builds: text and files, no recorded numbers"
_SHAPES = "makes a shape of known numbers"
_SOLVER = "searches with concrete numbers; what it solves is checked"
#: Public names none of whose functions can be checked, and why.
LEFT_OUT = {
    "spatial": {
        "Attitude": "a protocol",
        "Alignment": _DATA,
        "KinematicTree": "its transformations are checked, it keeps them by name",
    },
    "environment": {
        **dict.fromkeys(("DrydenTurbulence", "VonKarmanTurbulence"), "steps are of Turbulence"),
        **dict.fromkeys(("Gust", "WGS84", "SPHERICAL_EARTH"), _DATA),
    },
    "multibody": {
        **dict.fromkeys(("BaseParameters", "DrivenState", "KinematicsResult", "State"), _DATA),
        **dict.fromkeys(("Shape", "Surface", "Mimic", "Closure", "Coupling", "Report"), _DATA),
        **dict.fromkeys(("Softness", "Pulley", "Wrap", "Keyframe", "Distance"), _DATA),
        "ContactResult": _DATA,
        **dict.fromkeys(("Builder", "load", "read", "save", "user_joint"), _FILES),
        **dict.fromkeys(("ellipsoid", "hull", "height_field", "convex_parts"), _SHAPES),
        **dict.fromkeys(("base_parameters", "inertia_of_shapes", "whole_body_control"), _SOLVER),
    },
    "vehicles": {
        **dict.fromkeys(("FlightCase", "FlightRecord", "FlightState", "Trim"), _DATA),
        **dict.fromkeys(("load", "parameter_file", "dave_ml"), _FILES),
        **dict.fromkeys(("fly", "trim", "linearize"), _SOLVER),
        "ground_event": "makes an event of the altitude, which is checked",
    },
}


def modules_of(package: str) -> list[ModuleType]:
    """Return the modules of a package."""
    top = importlib.import_module(f"archimedes.{package}")
    below = pkgutil.walk_packages(top.__path__, top.__name__ + ".")
    return [top, *(importlib.import_module(m.name) for m in below)]


def public_names(package: str) -> dict[str, Any]:
    """Return what a package offers."""
    text = (ROOT / package / "__init__.pyi").read_text("utf-8")
    module = importlib.import_module(f"archimedes.{package}")
    return {name: getattr(module, name) for name in re.findall(r"import (\w+) as \1", text)}


def calls_of(package: str, folder: Path) -> list[Call]:
    """Run the examples of a package in a folder; return its functions, with their arguments."""
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner(verbose=False)
    modules = [m for m in modules_of(package) if not {*SEARCHES} & {*m.__name__.split(".")}]
    home = str(ROOT.joinpath(*package.split("."))) + os.sep
    with contextlib.chdir(folder), watch_calls(home, traced=False) as calls:
        for module in modules:
            for test in finder.find(module, module.__name__):
                if test.examples:
                    runner.run(test, out=lambda _: None, clear_globs=False)
        FURTHER.get(package, lambda: None)()
    return calls


def has_numbers(call: Call) -> bool:
    """Return whether anything could be traced."""
    return any(
        isinstance(leaf, (float, np.ndarray, np.floating)) for leaf in tree.leaves(call.positional)
    )


def check(calls: list[Call]) -> tuple[dict[tuple[str, str], Any], dict[tuple[str, str], str]]:
    """Return the report of each function by file and name, and why others have none."""
    reports: dict[tuple[str, str], Any] = {}
    unchecked: dict[tuple[str, str], str] = {}
    for call in calls:
        key = (inspect.getsourcefile(call.function) or "", call.name)
        if not has_numbers(call):
            unchecked[key] = "no numbers among its arguments"
            continue
        code = call.function.__code__
        plain = code.co_argcount
        args, named = call.positional[:plain], dict([*call.arguments.items()][plain:])
        try:
            reports[key] = check_units(call.function)(*args, **named)
        except Exception as error:  # it cannot be recorded: the reason is listed
            unchecked[key] = f"{type(error).__name__}: {str(error).splitlines()[:1]}"
    return reports, unchecked


def flight() -> FlightState:
    """Return a motion for vehicles."""
    v, rpy, w = np.array([170.0, 1.0, 2.0]), np.array([0.1, 0.2, 0.3]), np.array([0.1, 0.2, 0.3])
    return FlightState(0.1, 0.2, 3000.0, v, rpy, w)


def call_vehicles() -> None:
    """Call what no docstring of the vehicles does."""
    from archimedes import vehicles as v

    inputs = {
        "car": v.Car.Input(0.02, 300.0),
        "f16": v.F16.Input(0.2, 0.01, 0.0, 0.0),
        "multirotor": v.Multirotor.Input(np.full(4, 500.0)),
        "rocket": v.Rocket.Input(1.0, np.array([0.01, 0.02])),
    }
    for name, u in inputs.items():
        vehicle = v.load(name, world=FlatEarth())
        x = vehicle.state(flight())
        vehicle.dynamics(0.0, x, u)
        vehicle.outputs(0.0, x, u)
    satellite, rocket, plane = v.load("satellite"), v.load("rocket"), v.load("f16")
    from archimedes.spatial import Quaternion

    pos, vel = np.array([7e6, 0.0, 0.0]), np.array([0.0, 7.5e3, 0.0])
    still = np.zeros(len(satellite.wheels.axes))
    x = v.Satellite.State(pos, vel, Quaternion.identity(), np.ones(3), still)
    satellite.dynamics(0.0, x, satellite.idle())
    satellite.outputs(0.0, x)
    v.OrbitGuidance().command(rocket, 1.0, rocket.state(flight()))
    x = plane.state(flight(), 20.0)
    pilot = v.F16Autopilot(
        np.ones((2, 8)), np.ones((2, 6)), v.F16.Input(0.2, 0.0, 0.0, 0.0), 0.05, 0.05, 20.0, 0.1
    )
    target = v.F16Autopilot.Target(3000.0, 0.1, 170.0)
    pilot.step(pilot.initial(), plane, 0.0, x, target, 0.05)
    circle = v.CircleGuidance(np.array([6e6, 1e6, 1e6]), 5000.0)
    circle.target(plane, 0.0, x, 3000.0, 170.0)


FURTHER = {"vehicles": call_vehicles}


def call_demos() -> list[tuple[str, Any, tuple[Any, ...]]]:
    """Return the physics of the demonstrations that stands in functions of its own."""
    from archimedes.demos import (
        f16_flight,
        quadrotor,
        robot_arm,
        rocket_landing,
        satellite_slew,
        tumbling,
        two_stages,
    )

    drone = quadrotor.drone.state(flight(), np.full(4, 500.0))
    wind = {"mass": 1.2, "wind": np.ones(3), "gust": 3.0}
    return [
        ("f16_flight.target", f16_flight.target, (1.0,)),
        ("quadrotor.path", quadrotor.path, (1.0,)),
        ("quadrotor.closed_loop", quadrotor.closed_loop, (1.0, drone, wind)),
        ("robot_arm.circle", robot_arm.circle, (1.0,)),
        ("rocket_landing.command", rocket_landing.command, (1.0, rocket_landing.start())),
        ("rocket_landing.falling", rocket_landing.falling, (1.0, rocket_landing.start())),
        ("satellite_slew.slewing", satellite_slew.slewing, (1.0, satellite_slew.start())),
        ("tumbling.dynamics", tumbling.dynamics, (0.0, *tumbling.body())),
        ("two_stages.ascent", two_stages.ascent, (1.0, two_stages.rocket.state(flight()))),
    ]
