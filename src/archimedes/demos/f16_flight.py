"""An F-16 trims, flies two turns and a climb in wind with its autopilot; so do dispersed copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import archimedes as arc
from archimedes import tree
from archimedes.control import modes
from archimedes.demos.reporting import Report, duration, time_call
from archimedes.environment import ConstantWind, OneCosineGust, Winds
from archimedes.typing import Array, Scalar, Tree
from archimedes.vehicles import F16, F16Autopilot, FlatEarth, FlightState, linearize, load, trim
from archimedes.vehicles.steady_flight import Trim
from archimedes.viewer import view

SPEED, ALT, SECONDS, DT = 170.0, 1500.0, 60.0, 0.05
COPIES = 1000
#: Seconds that SciPy flies with NumPy alone: enough to compare, few enough to wait for.
COMPARED = 0.5
TOLERANCES: dict[str, Any] = {"rtol": 1e-6, "atol": 1e-8}
plane = load("f16", world=FlatEarth())


def steady() -> Any:
    """Return level flight to the north: attitude and controls are searched for."""
    v_NED, rpy = np.array([SPEED, 0.0, 0.0]), np.array([0.0, 0.05, 0.0])
    wanted = FlightState(0.0, 0.0, ALT, v_NED, rpy, np.zeros(3))
    return trim(plane, wanted, F16.Input(throttle=0.15, elevator=-0.03), {"power": 10.0})


def aircraft(p: Tree) -> F16:
    """Return the aircraft with its wind, gust and mass."""
    wind = Winds((ConstantWind(p["wind"]), gust(p["gust"])))
    return plane.replace(mass=p["mass"], xcg=p["xcg"], world=FlatEarth(wind=wind))


def gust(speed: Scalar) -> OneCosineGust:
    """Return a gust from below between 46 and 50 s."""
    return OneCosineGust(np.array([0.0, 0.0, -1.0]) * speed, start=46.0, rise=2.0, hold=False)


def target(t: Scalar) -> Any:
    """Return what is to be flown: right by 120 deg, 240 m up, back and further to the left."""
    course = np.where(t < 5.0, 0.0, np.where(t < 30.0, np.deg2rad(120.0), np.deg2rad(-60.0)))
    return F16Autopilot.Target(ALT + 12.0 * np.clip(t - 15.0, 0.0, 20.0), course, SPEED)


class ClosedLoop(NamedTuple):
    """The aircraft and its autopilot; `fly` takes one set of parameters, or a batch of them."""

    update: Callable[..., Any]
    dynamics: Callable[..., Any]
    fly: Callable[..., arc.Trajectory]
    memory: Tree


def close_loop(trimmed: Trim, autopilot: F16Autopilot) -> ClosedLoop:
    """Return the flight of an aircraft under its autopilot."""

    def update(t: Scalar, x: F16.State, memory: Tree, p: Tree) -> Any:
        return autopilot.step(memory, aircraft(p), t, x, target(t), DT)

    def dynamics(t: Scalar, x: F16.State, memory: Tree, p: Tree) -> Any:
        return aircraft(p).dynamics(t, x, memory.input)

    part = arc.Sampled(update, init=autopilot.initial(), dt=DT)

    def fly(p: Tree, samples: int, **options: Any) -> arc.Trajectory:
        times = np.linspace(0.0, SECONDS, samples)
        options |= {"args": (p,), "t_eval": times, "sampled": part, **TOLERANCES}
        return arc.solve_ode(dynamics, (0.0, SECONDS), trimmed.state, **options)

    return ClosedLoop(update, dynamics, fly, autopilot.initial())


def nominal() -> dict[str, Any]:
    """Return the parameters of the flight that is planned."""
    wind = np.array([-3.0, 12.0, 0.0])
    return {"wind": wind, "gust": np.array(8.0), "mass": plane.mass, "xcg": plane.xcg}


def disperse(count: int, seed: int = 1) -> dict[str, Any]:
    """Return `count` sets of parameters: wind, gust, mass and centre of mass vary."""
    rng, p = np.random.default_rng(seed), nominal()
    return {
        "wind": p["wind"] + rng.normal(size=(count, 3)) * [4.0, 4.0, 0.5],
        "gust": p["gust"] * rng.uniform(-1.0, 1.5, count),
        "mass": p["mass"] * (1.0 + 0.03 * rng.normal(size=count)),
        "xcg": p["xcg"] + 0.01 * rng.normal(size=count),
    }


def run(report: Report) -> None:
    """Trim, linearize, design, fly, compare, disperse."""
    trimmed = steady()
    autopilot = show_trim(report, trimmed)
    loop = close_loop(trimmed, autopilot)
    fly = loop.fly
    flight, first = time_call(lambda: fly(nominal(), 601, progress=report.progress))
    _, again = time_call(lambda: fly(nominal(), 601), 3)
    show_flight(report, flight, first, again)
    show_comparison(report, flight, again, trimmed, loop)
    many = show_batch(report, fly)
    write(report, flight, many, trimmed)


def show_trim(report: Report, trimmed: Trim) -> F16Autopilot:
    """Tell the steady flight and its modes; return the autopilot designed for it."""
    report.section(f"Level flight at {SPEED:g} m/s and {ALT:g} m: trimmed, linearized")
    u, out = trimmed.input, plane.outputs(0.0, trimmed.state, trimmed.input)
    report.line("throttle", float(u.throttle), ".3f")
    report.line("elevator", np.rad2deg(u.elevator), ".2f", "deg")
    report.line("angle of attack", np.rad2deg(out.alpha), ".2f", "deg")
    report.line("largest rate left", np.abs(trimmed.residual).max(), ".0e", "", "m/s^2, rad/s^2")
    report.check("trim", trimmed.success)
    small = linearize(plane, trimmed)
    for mode in modes(small):
        if mode.frequency > 1e-6:
            period = f"period {2 * np.pi / mode.pole.imag:.1f} s, " if mode.pole.imag else ""
            how = f"{period}damping {mode.damping:.2f}"
            name = mode.name or f"mode of {mode.main_states[0]}"
            report.line(name, mode.frequency, ".3f", "rad/s", how)
    return F16Autopilot.design(plane, trimmed, small)


def show_flight(report: Report, flight: arc.Trajectory, first: float, again: float) -> None:
    """Print how the flight went and how fast it was simulated."""
    report.section(f"One flight of {SECONDS:g} s in wind, the autopilot sampled at {1 / DT:g} Hz")
    state = plane.world.flight(flight.t, flight.x.motion)
    bank = np.rad2deg(np.abs(state.rpy[:, 0]).max())
    wanted = float(target(SECONDS).alt)
    report.line("climbed to", state.alt[-1], ".1f", "m", f"wanted {wanted:.0f} m")
    report.line("largest bank", bank, ".1f", "deg")
    report.line("steps of the solver", int(flight.stats["steps"]), "d", "", "DOP853, rtol 1e-6")
    report.speed(first, again, SECONDS)
    report.check("the flight reaches its end", flight.success)
    report.check("altitude held within 2 m", abs(state.alt[-1] - wanted) < 2.0)


def show_comparison(
    report: Report, flight: arc.Trajectory, again: float, trimmed: Trim, loop: ClosedLoop
) -> None:
    """Fly the first half second with SciPy and the same model in plain NumPy, and compare."""
    from scipy.integrate import solve_ivp

    start, unravel = tree.ravel(trimmed.state)
    p = nominal()

    def alone() -> Any:
        x, memory = start, loop.memory
        for k in range(round(COMPARED / DT)):
            t = k * DT
            memory = loop.update(t, unravel(x), memory, p)

            def slope(t: float, x: np.ndarray, held: Tree = memory) -> Any:
                return tree.ravel(loop.dynamics(t, unravel(x), held, p))[0]

            x = solve_ivp(slope, (t, t + DT), x, method="DOP853", **TOLERANCES).y[:, -1]
        return x

    theirs, seconds = time_call(alone)
    ours = tree.ravel(flight[int(np.argmin(np.abs(flight.t - COMPARED)))])[0]
    difference = float(np.max(np.abs(ours - theirs) / np.maximum(np.abs(theirs), 1.0)))
    ratio = (seconds / COMPARED) / (again / SECONDS)
    report.section("The same model in plain NumPy, solved by SciPy")
    ours = f"here {duration(again / SECONDS)}"
    report.line("one simulated second", seconds / COMPARED, "", "s", ours)
    report.line("against SciPy and NumPy", ratio, ",.0f", "x", "faster")
    report.line("largest relative difference", difference, ".0e", "", f"after {COMPARED:g} s")
    report.check("SciPy agrees", difference < 1e-5)


def show_batch(report: Report, fly: Callable[..., Any]) -> arc.Trajectory:
    """Fly dispersed copies as one batch and tell how far they spread."""
    count = report.copies(COPIES)
    report.section(f"{count:,} dispersed copies as one batch: wind, gust, mass, centre of mass")
    p = disperse(count)
    axes = {"in_axes": (None, dict.fromkeys(p, 0))}
    few = tree.map(lambda leaf: leaf[:16], p)
    _, first = time_call(lambda: fly(few, 61, **axes))  # compiles the kernel for batches
    many, seconds = time_call(lambda: fly(p, 61, progress=report.progress, **axes))
    report.line("compilation", first, "", "s", "once, for batches of any size")
    each = f"{1e3 * seconds / count:.2f} ms each, all cores"
    report.line("flight", seconds, "", "s", each)
    report.line("against real time", count * SECONDS / seconds, ",.0f", "x", "all of them together")
    last = many.x.motion.pos[:, -1]
    spread = last.std(axis=0)
    report.line("spread at the end, north", spread[0], ".0f", "m", "standard deviation")
    report.line("spread at the end, east", spread[1], ".0f", "m", "standard deviation")
    report.line("spread at the end, altitude", spread[2], ".2f", "m", "held against the gust")
    pick = count // 2
    alone = fly(tree.map(lambda leaf: leaf[pick : pick + 1], p), 61, **axes)
    same = bytes(alone.x.motion.pos[0]) == bytes(many.x.motion.pos[pick])
    report.line(f"copy {pick:,} alone", "same bits" if same else "OTHER BITS")
    report.check("all copies reach the end", np.all(many.success))
    report.check("a copy alone has the same bits", same)
    return many


def write(report: Report, flight: arc.Trajectory, many: arc.Trajectory, trimmed: Trim) -> None:
    """Write plots, the page and the table."""
    shown = arc.Trajectory(flight.t, outputs(flight))
    title = "F-16: two turns and a climb in wind"
    surfaces = {f"surfaces[{k}]": n for k, n in enumerate(("elevator", "aileron", "rudder"))}
    labels = {**surfaces, "load_factor": "load factor"}
    report.figure("flight", shown, labels=labels, title=title)
    small = linearize(plane, trimmed)
    report.figure("modes", small, title="Modes of level flight")
    off = many.x.motion.pos - flight.x.motion.pos[:: (len(flight.t) - 1) // (many.t.shape[1] - 1)]
    bank = plane.world.flight(many.t, many.x.motion).rpy[..., 0]
    spread = arc.Trajectory(many.t, Spread(off[..., 0], off[..., 1], -off[..., 2], bank))
    title = f"{len(many.t):,} dispersed flights against the planned one: all, 90 %, 50 %"
    report.figure("dispersion", spread, spread="fan", title=title)
    note = f"Autopilot at {1 / DT:g} Hz, crosswind and a gust at 46 s; {len(many.t):,} dispersed"
    world = aircraft(nominal())
    page = view({"F-16": (world, flight)}, batch=many, title="F-16 in wind", note=note)
    report.page(page, "f16")
    report.table("flight", flight)


@arc.struct
class Spread:
    """How far dispersed flights are from the planned one."""

    north: Array = arc.field(units="m")
    east: Array = arc.field(units="m")
    up: Array = arc.field(units="m")
    bank: Array = arc.field(units="rad")


@arc.struct
class Shown:
    """What a pilot looks at, over time."""

    altitude: Array = arc.field(units="m")
    airspeed: Array = arc.field(units="m/s")
    bank: Array = arc.field(units="deg")
    heading: Array = arc.field(units="deg")
    load_factor: Array = arc.field(units="")
    surfaces: Array = arc.field(units="deg")


def outputs(flight: arc.Trajectory) -> Shown:
    """Return the quantities to plot."""
    u = flight.u.input
    out = arc.vmap(aircraft(nominal()).outputs)(flight.t, flight.x, u)
    rpy = np.rad2deg(np.unwrap(out.flight.rpy, axis=0))
    surfaces = np.rad2deg(np.stack([u.elevator, u.aileron, u.rudder], axis=1))
    return Shown(out.flight.alt, out.airspeed, rpy[:, 0], rpy[:, 2], out.load_factor, surfaces)
