"""A quadrotor follows a figure-eight in a steady wind and a gust; copies with other masses too."""

from __future__ import annotations

from typing import Any

import numpy as np

import archimedes as arc
from archimedes.demos.reporting import Report
from archimedes.environment import ConstantWind, OneCosineGust, Winds
from archimedes.typing import Scalar, Tree
from archimedes.vehicles import FlatEarth, FlightState, GeometricController, Multirotor, load
from archimedes.viewer import Path, view

SECONDS, COPIES = 25.0, 200
controller = GeometricController()
drone = load("multirotor")


def path(t: Scalar, w: float = 0.6) -> tuple[Any, Any, Any]:
    """Return position, velocity and acceleration in NED axes, 10 m up."""
    p = np.stack([8 * np.sin(w * t), 4 * np.sin(2 * w * t), -10.0 + 0.0 * t])
    v = np.stack([8 * w * np.cos(w * t), 8 * w * np.cos(2 * w * t), 0.0 * t])
    a = np.stack([-8 * w**2 * np.sin(w * t), -16 * w**2 * np.sin(2 * w * t), 0.0 * t])
    return p, v, a


def in_wind(p: Tree) -> Any:
    """Return the quadrotor with its mass, in its wind; a gust from the side at 12 s."""
    gust = OneCosineGust(p["gust"] * np.array([0.0, 1.0, 0.0]), start=12.0, rise=0.6, hold=False)
    world = FlatEarth(wind=Winds((ConstantWind(p["wind"]), gust)))
    return drone.replace(mass=p["mass"], world=world)


def closed_loop(t: Scalar, x: Multirotor.State, p: Tree) -> Any:
    """Return the rates of quadrotor and controller, which knows the nominal mass only."""
    u = controller.command(drone, x, *path(t), 0.0 * t)
    return in_wind(p).dynamics(t, x, u)


def run(report: Report) -> None:
    """Fly once, fly dispersed, check how well the path is kept."""
    flight = FlightState(0.0, 0.0, 10.0, np.zeros(3), np.zeros(3), np.zeros(3))
    start, times = drone.state(flight), np.linspace(0.0, SECONDS, 501)
    nominal = {"wind": np.array([3.0, 2.0, 0.0]), "gust": np.array(6.0), "mass": drone.mass}
    title = f"A figure-eight of {SECONDS:g} s in wind, every rotor simulated"
    options: dict[str, Any] = {"args": (nominal,), "rtol": 1e-6, "t_eval": times}
    once = report.time_motion(title, SECONDS, closed_loop, start, **options)
    off = np.linalg.norm(once.x.motion.pos - path(times)[0].T, axis=1)
    report.line("off the path, once settled", 100 * off[100:].max(), ".0f", "cm", "gust included")
    report.check("the path is kept within 60 cm", off[100:].max() < 0.6)
    many = disperse(report, start, nominal)
    write(report, once, many, nominal)


def disperse(report: Report, start: Multirotor.State, p: Tree) -> arc.Trajectory:
    """Fly copies with other winds, gusts and masses as one batch."""
    count, rng = report.copies(COPIES), np.random.default_rng(1)
    draws = {
        "wind": p["wind"] + 1.5 * rng.normal(size=(count, 3)) * [1.0, 1.0, 0.2],
        "gust": p["gust"] * rng.uniform(-1.0, 1.0, count),
        "mass": p["mass"] * (1.0 + 0.08 * rng.normal(size=count)),
    }
    times = np.linspace(0.0, SECONDS, 76)
    options: dict[str, Any] = {"args": (draws,), "rtol": 1e-6, "t_eval": times}
    options["in_axes"] = (None, dict.fromkeys(draws, 0))
    title = f"{count:,} copies: wind, gust and mass vary"
    many = report.time_batch(title, closed_loop, start, **options)
    off = np.linalg.norm(many.x.motion.pos - path(many.t[0])[0].T, axis=2)[:, 15:].max(axis=1)
    low, high = np.quantile(off, [0.05, 0.95])
    report.line("largest distance, 5 % below", 100 * low, ".0f", "cm")
    report.line("largest distance, 95 % below", 100 * high, ".0f", "cm")
    report.check("all copies fly to the end", np.all(many.success))
    return many


def write(report: Report, once: arc.Trajectory, many: arc.Trajectory, p: Tree) -> None:
    """Write plots and the page."""
    names = ["motion.pos", "motion.att", "speeds"]
    report.figure("flight", once, names, title="A quadrotor on a figure-eight in wind")
    title = f"{len(many.t):,} copies: all, 90 %, 50 %"
    report.figure("dispersion", many, "motion.pos", spread="fan", relative=True, title=title)
    page = view({"quadrotor": (in_wind(p), once)}, batch=many, title="A quadrotor in wind")
    page.scene.note = "A gust from the side at 12 s; ghosts have other winds and masses"
    north, east, down = path(np.linspace(0.0, 2.0 * np.pi / 0.6, 200))[0]
    page.scene.paths.append(Path("wanted", np.stack([east, north, -down], axis=1), dashed=True))
    report.page(page, "quadrotor")
