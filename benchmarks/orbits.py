"""Satellites against Basilisk: orbit and attitude of a station for 8 hours, alone and in batches.

Basilisk integrates with Runge-Kutta 4 and steps of 10 s, setting up not counted; ours at a
tolerance that is more accurate. The error of each is that of the position at the end, against
Basilisk with steps of 1 s and against ours at 1e-12.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from benchmarks.flights import _best
from benchmarks.report import Table, in_processes, medians

__all__ = ["measure", "tables"]

PROCESSES = int(os.environ.get("ORBITS_PROCESSES", "3"))
MANY = int(os.environ.get("ORBITS_MANY", "100000"))
MU, SECONDS, RTOL = 3.986004415e14, 8 * 3600.0, 1e-9
INERTIA = np.array([[1.02e8, -6.96e6, -5.48e6], [-6.96e6, 9.1e7, 5.9e5], [-5.48e6, 5.9e5, 1.64e8]])
POSITION = np.array([7e6, 0.0, 0.0])
VELOCITY = np.sqrt(MU / 7e6) * np.array([0.0, 0.8, 0.6])
RATE = np.array([0.001, -0.002, 0.0015])


def _basilisk(dt: float) -> tuple[np.ndarray, float]:
    """Fly Basilisk's spacecraft; return its position at the end, and the time it took in s."""
    from Basilisk.simulation import spacecraft
    from Basilisk.utilities import SimulationBaseClass, macros, simIncludeGravBody

    sim = SimulationBaseClass.SimBaseClass()
    process = sim.CreateNewProcess("process")
    process.addTask(sim.CreateNewTask("task", macros.sec2nano(dt)))
    craft = spacecraft.Spacecraft()
    sim.AddModelToTask("task", craft)
    gravity = simIncludeGravBody.gravBodyFactory()
    earth = gravity.createEarth()
    earth.isCentralBody, earth.mu = True, MU
    gravity.addBodiesTo(craft)
    craft.hub.mHub, craft.hub.IHubPntBc_B = 4e5, INERTIA.tolist()
    craft.hub.r_CN_NInit, craft.hub.v_CN_NInit = POSITION[:, None], VELOCITY[:, None]
    craft.hub.omega_BN_BInit = RATE[:, None]
    sim.InitializeSimulation()
    sim.ConfigureStopTime(macros.sec2nano(SECONDS))
    begin = time.perf_counter()
    sim.ExecuteSimulation()
    took = time.perf_counter() - begin
    return np.array(craft.scStateOutMsg.read().r_BN_N), took


def measure() -> dict[str, float]:
    """Times in s and errors in m."""
    from archimedes import solve_ode, tree
    from archimedes.environment import PointMassGravity
    from archimedes.spatial import Quaternion
    from archimedes.vehicles import Satellite

    craft = Satellite(4e5, INERTIA, gravity=PointMassGravity(MU), gravity_gradient=False)
    x0 = Satellite.State(POSITION, VELOCITY, Quaternion.identity(), RATE, np.zeros(3))
    idle = craft.idle()

    def solve(rtol: float, x: Any = x0, **more: Any) -> Any:
        span, times = (0.0, SECONDS), np.array([SECONDS])
        tolerances = {"rtol": rtol, "atol": rtol}
        run = solve_ode(
            craft.dynamics,
            span,
            x,
            args=(idle,),
            t_eval=times,
            method="dop853",
            **tolerances,
            **more,
        )
        return run.x.pos[..., -1, :]

    exact, (fine, _) = solve(1e-12), _basilisk(1.0)
    coarse = [_basilisk(10.0) for _ in range(3)]
    found = {
        "our error": float(np.linalg.norm(solve(RTOL) - exact)),
        "its error": float(np.linalg.norm(coarse[0][0] - fine)),
        "difference": float(np.linalg.norm(exact - fine)),
        "ours": _best(lambda: solve(RTOL)),
        "Basilisk": min(took for _, took in coarse),
    }
    for count in (1000, MANY):
        many = tree.map(lambda a, n=count: np.repeat(np.asarray(a)[None], n, axis=0), x0)
        off = np.random.default_rng(0).normal(size=(count, 3))
        many = tree.replace(many, vel=many.vel + off)
        axes = {"in_axes": (0, None)}
        solve(RTOL, tree.map(lambda a: a[:64], many), **axes)
        begin = time.perf_counter()
        solve(RTOL, many, **axes)
        found[f"ours {count}"] = (time.perf_counter() - begin) / count
    return found


def tables() -> list[Table]:
    """Measure in fresh processes."""
    m = medians(in_processes("benchmarks.orbits", "measure", PROCESSES))
    cores = len(os.sched_getaffinity(0))
    rows = [
        [
            "one",
            f"{1e3 * m['ours']:.2f} ms",
            f"{1e3 * m['Basilisk']:.1f} ms",
            f"{m['Basilisk'] / m['ours']:.0f}x",
            f"{m['our error']:.1e} m",
            f"{m['its error']:.1e} m",
        ]
    ]
    for count in (1000, MANY):
        each = m[f"ours {count}"]
        ratio = m["Basilisk"] / each / cores
        rows.append(
            [
                f"{count:,}, each",
                f"{1e3 * each:.3f} ms",
                f"{1e3 * m['Basilisk']:.1f} ms",
                f"{ratio:.0f}x per core",
                "",
                "",
            ]
        )
    return [
        Table(
            "A station in orbit for 8 h against Basilisk",
            ["satellites", "Archimedes", "Basilisk", "ratio", "our error", "its error"],
            rows,
            f"Orbit and attitude. dop853 with rtol {RTOL:g} against RK4 with steps of 10 s. The "
            f"exact solutions of both differ by {m['difference']:.1e} m. Batches on {cores} cores.",
        )
    ]
