"""Flights against JSBSim: a ball that falls, an F-16 whose stick is moved, and batches.

JSBSim flies its own ball and its own F-16 at its own rate, 120 steps a second, loading not counted;
ours flies its models at a tolerance that is more accurate. The error of each is that against
itself at ten times the rate or a tolerance of 1e-11, in altitude at the end.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import Table, in_processes, medians

__all__ = ["measure", "tables"]

PROCESSES = int(os.environ.get("FLIGHTS_PROCESSES", "3"))
MANY = int(os.environ.get("FLIGHTS_MANY", "100000"))
FOOT, SLUG = 0.3048, 14.593902937206364
RTOL = 1e-6
#: When the stick is moved, in s, and to where.
MOVES = ((1.0, -1.0), (2.0, 1.0), (3.0, 0.0))


def _best(run: Callable[[], Any], seconds: float = 0.3) -> float:
    best, begin = np.inf, time.perf_counter()
    while best == np.inf or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


#: The tumbling brick of NASA's check case 2, as a model of JSBSim.
BRICK = """<?xml version="1.0"?>
<fdm_config name="brick" version="2.0" release="BETA">
  <metrics>
    <wingarea unit="FT2">0.2222</wingarea>
    <wingspan unit="FT">0.3333</wingspan>
    <chord unit="FT">0.6667</chord>
    <htailarea unit="FT2">0</htailarea>
    <htailarm unit="FT">0</htailarm>
    <vtailarea unit="FT2">0</vtailarea>
    <vtailarm unit="FT">0</vtailarm>
    <location name="AERORP" unit="IN"><x>0</x><y>0</y><z>0</z></location>
  </metrics>
  <mass_balance>
    <ixx unit="SLUG*FT2">0.00189422</ixx>
    <iyy unit="SLUG*FT2">0.006211019</iyy>
    <izz unit="SLUG*FT2">0.007194665</izz>
    <emptywt unit="LBS">5.0</emptywt>
    <location name="CG" unit="IN"><x>0</x><y>0</y><z>0</z></location>
  </mass_balance>
  <ground_reactions/>
  <propulsion/>
  <flight_control name="none"/>
  <aerodynamics/>
</fdm_config>
"""


def _load(fdm: Any, model: str) -> None:
    if model != "brick":
        fdm.load_model(model)
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "aircraft" / "brick"
        place.mkdir(parents=True)
        (place / "brick.xml").write_text(BRICK)
        fdm.set_aircraft_path(str(place.parent))
        fdm.load_model("brick")


def _jsbsim(model: str, seconds: float, rate: float) -> Any:
    """Fly a model of JSBSim; return its altitude at the end in m, and the time it took in s."""
    import jsbsim

    # Some of its models write files where they are flown.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return _flown(jsbsim.FGFDMExec(None), model, seconds, rate)


def _flown(fdm: Any, model: str, seconds: float, rate: float) -> tuple[float, float]:
    fdm.set_debug_level(0)
    _load(fdm, model)
    fdm.disable_output()
    fdm.set_dt(1.0 / rate)
    fdm["ic/h-sl-ft"] = 30000.0
    fdm["ic/vt-fps"] = 700.0 if model == "f16" else 1.0
    if model == "brick":
        for axis, rate_deg in zip("pqr", (10.0, 20.0, 30.0)):
            fdm[f"ic/{axis}-rad_sec"] = np.deg2rad(rate_deg)
    fdm.run_ic()
    if model == "f16":
        fdm["propulsion/set-running"] = -1
    # The stick moves at three times only: nothing but steps of its own is in the loop.
    moves = MOVES if model == "f16" else ()
    begin = time.perf_counter()
    done = 0
    for at, stick in (*moves, (seconds, None)):
        while done < round(at * rate):
            fdm.run()
            done += 1
        if stick is not None:
            fdm["fcs/elevator-cmd-norm"] = 0.1 * stick
    took = time.perf_counter() - begin
    return fdm["position/h-sl-ft"] * FOOT, took


def _stick(t: Any) -> Any:
    """A pull of the stick from 1 to 2 s and a push from 2 to 3 s."""
    return np.where((t > 1.0) & (t < 2.0), -1.0, 0.0) + np.where((t > 2.0) & (t < 3.0), 1.0, 0.0)


def _ball() -> tuple[Any, Any]:
    from archimedes.vehicles import FlightState, Projectile

    ball = Projectile(SLUG, 3.6 * SLUG * FOOT**2 * np.eye(3), 0.1963495 * FOOT**2, 0.1)
    start = FlightState(0.0, 0.0, 30000.0 * FOOT, np.array([0.3, 0, 0]), np.zeros(3), np.zeros(3))
    return ball.dynamics, ball.state(start)


def _brick() -> tuple[Any, Any]:
    from archimedes.vehicles import FlightState, Projectile

    inertia = SLUG * FOOT**2 * np.diag([0.00189422, 0.006211019, 0.007194665])
    brick = Projectile(0.155404754 * SLUG, inertia)
    rates = np.deg2rad([10.0, 20.0, 30.0])
    start = FlightState(0.0, 0.0, 30000.0 * FOOT, np.zeros(3), np.zeros(3), rates)
    return brick.dynamics, brick.state(start)


def _f16() -> tuple[Any, Any]:
    from archimedes.vehicles import F16, FlightState, trim

    plane = F16()
    start = FlightState(
        0.0,
        0.0,
        30000.0 * FOOT,
        np.array([700.0 * FOOT, 0, 0]),
        np.array([0, 0.05, 0]),
        np.zeros(3),
    )
    steady = trim(plane, start, F16.Input(0.2, -0.03, 0.0, 0.0), {"power": 10.0})

    def dynamics(t: Any, x: Any) -> Any:
        u = steady.input
        return plane.dynamics(
            t, x, F16.Input(u.throttle, u.elevator + 0.02 * _stick(t), u.aileron, u.rudder)
        )

    return dynamics, steady.state


def _altitude(x: Any) -> Any:
    from archimedes.environment import ecef_to_geodetic

    motion = getattr(x, "motion", x)
    return ecef_to_geodetic(np.asarray(motion.pos)[..., -1, :])[2]


class _Flight:
    """A flight of ours, ready to be flown alone or many times."""

    def __init__(self, model: Callable[[], tuple[Any, Any]], seconds: float) -> None:
        self.dynamics, self.x0 = model()
        self.seconds = seconds

    def solve(self, rtol: float, x: Any = None, **more: Any) -> Any:
        from archimedes import solve_ode

        times = np.linspace(0.0, self.seconds, int(self.seconds) + 1)
        x = self.x0 if x is None else x
        span = (0.0, self.seconds)
        return solve_ode(self.dynamics, span, x, t_eval=times, rtol=rtol, atol=rtol, **more).x

    def dispersed(self, count: int) -> Any:
        """States whose velocities differ by about 1 m/s."""
        from archimedes import tree

        many = tree.map(lambda a: np.repeat(np.asarray(a)[None], count, axis=0), self.x0)
        off = np.random.default_rng(0).normal(size=(count, 3))
        return tree.replace(many, motion=tree.replace(many.motion, v_E=many.motion.v_E + off))

    def each(self, count: int) -> float:
        """Time in s for each of many flights, compiled before."""
        self.solve(RTOL, self.dispersed(16), in_axes=(0,))
        many = self.dispersed(count)
        begin = time.perf_counter()
        self.solve(RTOL, many, in_axes=(0,))
        return (time.perf_counter() - begin) / count


def measure() -> dict[str, float]:
    """Times in s of one flight and of many, and errors in m."""
    found: dict[str, float] = {}
    for name, seconds, model in (
        ("ball", 30.0, _ball),
        ("brick", 30.0, _brick),
        ("f16", 60.0, _f16),
    ):
        flight = _Flight(model, seconds)
        rough, exact = (_altitude(flight.solve(rtol)) for rtol in (RTOL, 1e-11))
        found[f"{name} our error"] = abs(float(rough - exact))
        found[f"{name} ours"] = _best(lambda flight=flight: flight.solve(RTOL))
        coarse = [_jsbsim(name, seconds, 120.0) for _ in range(3)]
        fine, _ = _jsbsim(name, seconds, 1200.0)
        found[f"{name} JSBSim"] = min(took for _, took in coarse)
        found[f"{name} its error"] = abs(coarse[0][0] - fine)
    for count in (1000, MANY):
        found[f"f16 {count}"] = flight.each(count)
    return found


def tables() -> list[Table]:
    """Measure in fresh processes."""
    m = medians(in_processes("benchmarks.flights", "measure", PROCESSES))
    cores = len(os.sched_getaffinity(0))
    rows = []
    flown = (
        ("ball", "ball, 30 s"),
        ("brick", "tumbling brick, 30 s"),
        ("f16", "F-16, 60 s, stick pulled and pushed"),
    )
    for name, text in flown:
        ratio = m[f"{name} JSBSim"] / m[f"{name} ours"]
        rows.append(
            [
                text,
                f"{1e3 * m[f'{name} ours']:.2f} ms",
                f"{1e3 * m[f'{name} JSBSim']:.1f} ms",
                f"{ratio:.0f}x",
                f"{m[f'{name} our error']:.1e} m",
                f"{m[f'{name} its error']:.1e} m",
            ]
        )
    for count in (1000, MANY):
        each = m[f"f16 {count}"]
        rows.append(
            [
                f"{count:,} F-16 flights of 60 s, each",
                f"{1e3 * each:.3f} ms",
                f"{1e3 * m['f16 JSBSim']:.1f} ms",
                f"{m['f16 JSBSim'] / each / cores:.0f}x per core",
                "",
                "",
            ]
        )
    return [
        Table(
            "Flights against JSBSim",
            ["flight", "Archimedes", "JSBSim", "ratio", "our error", "its error"],
            rows,
            "Outputs every second. JSBSim flies its own ball and F-16 from 30,000 ft at 120 Hz. "
            "Its F-16 has a flight control system and other tables: the flights are alike, not "
            "the same. "
            f"Ours uses rtol {RTOL:g}. Batches run on {cores} cores, JSBSim on one.",
        )
    ]
