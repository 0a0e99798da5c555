"""Pictures of the examples: each is drawn from what its script leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

__all__ = ["PICTURES"]

#: By the name of the example: a function of its variables that returns a figure.
PICTURES: dict[str, Callable[[SimpleNamespace], Any]] = {}


def picture(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function (variables, axes) that draws an example on two axes side by side."""

    def register(draw: Callable[..., None]) -> Callable[..., None]:
        def make(variables: SimpleNamespace) -> Any:
            from matplotlib.figure import Figure

            figure = Figure(figsize=(8.0, 3.2), layout="constrained")
            axes = figure.subplots(1, 2)
            for axis in axes:
                axis.grid(alpha=0.3)
                axis.spines[["top", "right"]].set_visible(False)
            draw(variables, *axes)
            return figure

        PICTURES[name] = make
        return draw

    return register


@picture("01_f16_trim_and_fly")
def trim_and_fly(v: SimpleNamespace, left: Any, right: Any) -> None:
    """Altitude in a minute with fixed controls; poles of the small motions."""
    left.plot(v.record.t, v.record.flight.alt - 3000.0, ".-")
    left.set(xlabel="time (s)", ylabel="altitude above 3000 m (m)")
    poles = np.linalg.eigvals(v.small.A)
    right.plot(poles.real, poles.imag, "x")
    right.set(xlabel="real part (1/s)", ylabel="imaginary part (rad/s)", title="modes")


@picture("02_multirotor_figure_eight")
def figure_eight(v: SimpleNamespace, left: Any, right: Any) -> None:
    """The path from above, and the distance from it."""
    wanted = v.path(v.times)[0]
    left.plot(wanted[1], wanted[0], "k--", linewidth=0.8, label="wanted")
    left.plot(v.run.x.motion.pos[:, 1], v.run.x.motion.pos[:, 0], label="flown")
    left.set(xlabel="east (m)", ylabel="north (m)", aspect="equal")
    left.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    right.plot(v.times, v.error)
    right.set(xlabel="time (s)", ylabel="distance from the path (m)")


@picture("03_satellite_detumble_and_slew")
def detumble_and_slew(v: SimpleNamespace, left: Any, right: Any) -> None:
    """Turning dies out; wheels take up momentum in the slew."""
    left.semilogy(v.first.t / 60.0, v.rates)
    left.set(xlabel="time (min)", ylabel="turning (deg/s)", title="coils")
    right.plot(v.second.t - v.second.t[0], 1e3 * v.second.x.h)
    right.set(xlabel="time (s)", ylabel="wheels (mN m s)", title="slew")


@picture("04_two_stages_to_orbit")
def two_stages(v: SimpleNamespace, left: Any, right: Any) -> None:
    """Altitude and propellant of the stages."""
    left.plot(v.run.t, (np.linalg.norm(v.run.x.motion.pos, axis=1) - v.WGS84.a) / 1e3)
    left.set(xlabel="time (s)", ylabel="altitude (km)")
    right.plot(v.run.t, v.run.x.propellant / 1e3)
    right.set(xlabel="time (s)", ylabel="propellant of the stages (t)")


@picture("05_car_lane_change")
def lane_change(v: SimpleNamespace, left: Any, right: Any) -> None:
    """The way of the car, and how it leans."""
    left.plot(v.run.x.pos[:, 0], v.side)
    left.axhline(v.LANE, color="k", linestyle="--", linewidth=0.8)
    left.set(xlabel="ahead (m)", ylabel="to the right (m)")
    right.plot(v.times, v.roll)
    right.set(xlabel="time (s)", ylabel="roll (deg)")


@picture("06_nasa_check_case")
def check_case(v: SimpleNamespace, left: Any, right: Any) -> None:
    """Altitude with the published rows, and the difference."""
    left.plot(v.record.t, v.alt, label="here")
    left.plot(v.PUBLISHED[:, 0], v.PUBLISHED[:, 1], "o", fillstyle="none", label="NASA")
    left.set(xlabel="time (s)", ylabel="altitude (ft)")
    left.legend()
    right.plot(v.record.t, 1e6 * (v.alt - v.PUBLISHED[:, 1]), ".-")
    right.set(xlabel="time (s)", ylabel="difference (1e-6 ft)")


@picture("07_sensors_with_noise")
def sensors(v: SimpleNamespace, left: Any, right: Any) -> None:
    """Where 200 observers believe to be, and how far off they are."""
    left.plot(v.off[:, 1], v.off[:, 0], ".", markersize=3)
    left.plot(v.expected[1], v.expected[0], "r+", markersize=12)
    left.set(xlabel="error to the east (m)", ylabel="error to the north (m)", aspect="equal")
    right.hist(np.linalg.norm(v.off, axis=1), 30)
    right.set(xlabel="distance from the truth (m)", ylabel="runs")


@picture("08_f16_around_the_pole")
def around_the_pole(v: SimpleNamespace, left: Any, right: Any) -> None:
    """The way around the pole, and the altitude."""
    pos = v.record.trajectory.x.motion.pos
    left.plot(pos[:, 0] / 1e3, pos[:, 1] / 1e3)
    left.plot(0.0, 0.0, "k+")
    left.set(xlabel="x (km)", ylabel="y (km)", aspect="equal", title="around the pole")
    right.plot(v.record.t, v.record.flight.alt - v.ALT)
    right.set(xlabel="time (s)", ylabel="altitude above 3000 m (m)")


@picture("09_computed_torque_arm")
def computed_torque(v: SimpleNamespace, left: Any, right: Any) -> None:
    """The circle of the hand, and the joint angles along it."""
    circle = np.stack([v.wanted(t) for t in v.times])
    left.plot(circle[:, 1], circle[:, 2])
    left.set(xlabel="y (m)", ylabel="z (m)", aspect="equal", title="wanted circle")
    right.plot(v.times, np.rad2deg(v.found.q))
    right.set(xlabel="time (s)", ylabel="joint angles (deg)")


@picture("10_arm_identification")
def identification(v: SimpleNamespace, left: Any, right: Any) -> None:
    """Errors of the base parameters, and predicted torques."""
    numbers = np.arange(len(v.found))
    left.errorbar(numbers, 1e3 * v.wrong, 2e3 * v.deviations, fmt=".", capsize=2)
    left.axhline(0.0, color="k", linewidth=0.8)
    left.set(xlabel="base parameter", ylabel="error, 1e-3 SI units", title="with two deviations")
    right.plot(v.truth, v.fresh[:, v.base.columns] @ v.found, ".", markersize=2)
    right.set(xlabel="torque (N m)", ylabel="predicted (N m)")


@picture("17_pendulum_identified")
def pendulum_identified(v: SimpleNamespace, left: Any, right: Any) -> None:
    """Measured and identified angle, true and estimated rate."""
    measured, model = (np.rad2deg(y[0]) for y in (v.data.ys, v.fit.predicted))
    left.plot(v.data.ts, measured, ".", v.data.ts, model)
    left.set(xlabel="time (s)", ylabel="angle (deg)", title="measured, and the identified model")
    truth, found = (np.rad2deg(x.rate) for x in (v.truth.x, v.found.x))
    right.plot(v.data.ts, truth, v.data.ts, found, "--")
    right.set(xlabel="time (s)", ylabel="rate (deg/s)", title="truth, and the Kalman filter")


@picture("11_quadruped_pushed")
def quadruped(v: SimpleNamespace, left: Any, right: Any) -> None:
    """Height of the trunk, and how far it is pushed aside."""
    left.plot(v.times, v.height)
    left.set(xlabel="time (s)", ylabel="height (m)")
    right.plot(v.times, 1e3 * v.aside)
    right.axvspan(0.3, 0.4, alpha=0.2)
    right.set(xlabel="time (s)", ylabel="aside (mm)", title="pushed in the shaded time")


@picture("13_rl_rollout")
def rollout(v: SimpleNamespace, left: Any, right: Any) -> None:
    """What the policies are worth while they learn, and what a state is worth."""
    left.plot(v.worth)
    left.set(xlabel="round", ylabel="mean reward", ylim=(0.0, 1.0))
    place, angle = np.meshgrid(np.linspace(-2.0, 2.0, 41), np.linspace(-1.0, 1.0, 41))
    shown = right.contourf(place, np.rad2deg(angle), np.exp(-4.0 * angle**2 - 0.5 * place**2), 10)
    right.figure.colorbar(shown, ax=right)
    right.set(xlabel="position (m)", ylabel="angle (deg)", title="reward")


@picture("12_drone_with_arm")
def drone_with_arm(v: SimpleNamespace, left: Any, right: Any) -> None:
    """Ways of hull and load, and the angle of the swing."""
    left.plot(v.q[:, 1], -v.q[:, 2], label="hull")
    left.plot(v.load[:, 1], -v.load[:, 2], label="load")
    left.set(xlabel="to the side (m)", ylabel="up (m)", aspect="equal")
    left.legend()
    right.plot(v.times, v.angle)
    right.set(xlabel="time (s)", ylabel="swing (deg)")


@picture("14_quadrotor_monte_carlo_and_c")
def quadrotor_campaign(v: SimpleNamespace, left: Any, right: Any) -> None:
    """Heights of all flights, and how the mass decides where they end."""
    left.plot(v.times, -v.found.results["path"][:, :, 2].T, color="C0", alpha=0.1, linewidth=0.7)
    left.axhline(-v.GOAL[2], color="k", linestyle="--", linewidth=0.8)
    left.set(xlabel="time (s)", ylabel="height (m)", title="200 flights")
    right.plot(v.found.params.mass, v.found.results["sag (m)"], ".", markersize=3)
    right.set(xlabel="mass (kg)", ylabel="sag (m)")


@picture("15_drone_through_gates")
def gates(v: SimpleNamespace, left: Any, right: Any) -> None:
    """The path from above with the gates, and the speed."""
    times = np.linspace(0.0, v.found.tf, 201)
    x, _ = v.found.at(times)
    left.plot(x.pos[:, 1], x.pos[:, 0])
    left.plot(v.GATES[:, 1], v.GATES[:, 0], "o", fillstyle="none", color="C1", markersize=9)
    left.set(xlabel="east (m)", ylabel="north (m)", aspect="equal")
    right.plot(times, np.linalg.norm(x.vel, axis=1))
    for phase in v.found.phases[:-1]:
        right.axvline(phase.tf, color="C1", linestyle="--", linewidth=0.8)
    right.set(xlabel="time (s)", ylabel="speed (m/s)", title="gates are dashed")


@picture("25_quadruped_learns_to_walk")
def learnt_walk(v: SimpleNamespace, left: Any, right: Any) -> None:
    """The paths from above, and what was wanted; joints of a leg in a second."""
    seconds = v.walking.HELD
    heading = seconds * np.cumsum(v.ROUTE[:, 1])
    way = seconds * np.cumsum(v.ROUTE[:, :1] * np.stack([np.cos(heading), np.sin(heading)], 1), 0)
    left.plot(*way.T, "k--", linewidth=0.8, label="wanted")
    for name, q in v.walks.items():
        left.plot(q[:, 0], q[:, 1], label=name)
    left.set(xlabel="x (m)", ylabel="y (m)", aspect="equal")
    left.legend(frameon=False)
    some = slice(100, 150)
    lines = right.plot(seconds * np.arange(50), v.walks["steps of contact"][some, 7:10])
    right.legend(lines, ["roll", "pitch", "knee"], frameon=False, ncols=3)
    right.set(xlabel="time (s)", ylabel="joints of the front left leg (rad)")
