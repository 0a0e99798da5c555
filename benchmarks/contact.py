"""Quadrupeds on flat ground: steps with contact, against MuJoCo's rollout.

A trunk on four legs, 18 degrees of freedom, each foot a sphere: the same MJCF, steps of 2 ms and
servos for both. A third of the robots stands, a third trots, a third is dropped, tilted and
turning. Measured are processor times of 50 steps, half a second into the motion, in turns in one
process; ours is one map over a scan. Penetration is that of the feet that touch the ground, slip
the speed along the ground of the feet of robots that stand, both at the end; "open" is the share of
feet in the air.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import archimedes as arc
from archimedes import multibody as mb
from benchmarks.report import Table, in_processes, medians, processor

__all__ = ["FEET", "MJCF", "STEP", "load", "measure", "simulate", "starts", "tables", "targets"]

STEP, STIFFNESS, DAMPING, FRICTION = 2e-3, 80.0, 3.0, 0.7
#: Steps before anything is measured, and in one turn.
BEFORE, STEPS, TURNS, PROCESSES = 250, 50, 5, 3
COUNTS = (1000, 10_000)
THIGH, RADIUS, HEIGHT = 0.25, 0.02, 0.42
LEGS = {"fl": (0.2, 0.15), "fr": (0.2, -0.15), "hl": (-0.2, 0.15), "hr": (-0.2, -0.15)}
FEET = [f"{leg}_foot" for leg in LEGS]

_LEG = """
    <body name="{leg}_hip" pos="{x} {y} 0">
      <inertial pos="0 0 0" mass="0.3" diaginertia="3e-4 3e-4 1e-4"/>
      <joint name="{leg}_roll" axis="1 0 0"/>
      <body name="{leg}_thigh">
        <inertial pos="0 0 -0.125" mass="0.6" diaginertia="3.7e-3 3.7e-3 1.1e-3"/>
        <joint name="{leg}_pitch" axis="0 1 0"/>
        <body name="{leg}_shin" pos="0 0 -0.25">
          <inertial pos="0 0 -0.125" mass="0.6" diaginertia="3.7e-3 3.7e-3 1.1e-3"/>
          <joint name="{leg}_knee" axis="0 1 0"/>
          <geom name="{leg}_foot" type="sphere" size="0.02" pos="0 0 -0.25" contype="1"
            conaffinity="0"/>
        </body>
      </body>
    </body>"""

MJCF = f"""<mujoco model="quadruped">
<option timestep="{STEP}"/>
<default>
  <joint type="hinge" armature="0.01" damping="0.1"/>
  <geom friction="{FRICTION} 0.005 0.0001" condim="3" group="3"/>
</default>
<worldbody>
  <geom name="floor" type="plane" size="0 0 1" contype="0" conaffinity="1"/>
  <body name="trunk" pos="0 0 {HEIGHT + RADIUS}">
    <freejoint name="root"/>
    <inertial pos="0 0 0" mass="10" diaginertia="0.08 0.3 0.35"/>
    {"".join(_LEG.format(leg=leg, x=x, y=y) for leg, (x, y) in LEGS.items())}
  </body>
</worldbody>
<actuator>{
    "".join(
        f'<position name="{leg}_{part}" joint="{leg}_{part}" kp="{STIFFNESS}" kv="{DAMPING}"/>'
        for leg in LEGS
        for part in ("roll", "pitch", "knee")
    )
}</actuator>
</mujoco>"""


def load() -> mb.Model:
    """Return the robot, without its servos."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "quadruped.xml"
        path.write_text(MJCF, encoding="utf-8")
        return mb.load(path)


def simulate(model: mb.Model, backend: str = "auto") -> Callable[..., Any]:
    """Return the function of a start (q, v) and targets (steps, 12) whose result is the end."""
    feet, ground = mb.contact_shapes(model), mb.Ground(friction=FRICTION)

    def one(x: mb.State, wanted: Any) -> tuple[Any, None]:
        u = STIFFNESS * (wanted - x.q[7:]) - DAMPING * x.v[6:]
        u = np.concatenate([np.zeros(6), u])
        return mb.contact_step(model, x, STEP, feet, ground, u), None

    def run(q: Any, v: Any, wanted: Any) -> tuple[Any, Any]:
        x = arc.scan(one, mb.State(q, v), wanted)[0]
        return x.q, x.v

    return arc.compile(run, backend=backend)


def starts(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return configurations (count, 19) and velocities (count, 18): standing, trotting, dropped."""
    rng = np.random.default_rng(0)
    bend = np.arccos(HEIGHT / (2.0 * THIGH))
    q, v = np.zeros((count, 19)), np.zeros((count, 18))
    q[:, 2], q[:, 3] = HEIGHT + RADIUS, 1.0
    q[:, 7:] = np.tile([0.0, bend, -2.0 * bend], 4) + rng.normal(size=(count, 12)) * 0.02
    dropped = np.arange(count) % 3 == 2
    q[dropped, 2] += rng.uniform(0.05, 0.25, size=dropped.sum())
    q[dropped, 3:7] += rng.normal(size=(dropped.sum(), 4)) * 0.1
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1)[:, None]
    v[dropped] = rng.normal(size=(dropped.sum(), 18)) * 0.5
    return q, v


def targets(count: int, first: int, steps: int) -> np.ndarray:
    """Return the angles (count, steps, 12) at which servos aim from a step on."""
    bend = np.arccos(HEIGHT / (2.0 * THIGH))
    aims = np.tile([0.0, bend, -2.0 * bend], (count, steps, 4))
    trots = np.arange(count) % 3 == 1
    phase = np.random.default_rng(1).uniform(0.0, 2.0 * np.pi, size=(trots.sum(), 1))
    angle = 2.0 * np.pi * 2.0 * STEP * np.arange(first, first + steps) + phase
    for leg, shift in enumerate((0.0, np.pi, np.pi, 0.0)):
        lift = np.maximum(np.sin(angle + shift), 0.0)
        aims[trots, :, 3 * leg + 1] += 0.4 * lift + 0.1 * np.cos(angle + shift)
        aims[trots, :, 3 * leg + 2] -= 0.8 * lift
    return aims


def world_velocity(model: mb.Model, q: np.ndarray, v: np.ndarray, back: bool = False) -> np.ndarray:
    """Return velocities (n, 18) as MuJoCo has them, the linear one of the trunk in world axes."""
    R = mb.frame_pose(model, q, "trunk").r.as_matrix()
    turned = np.einsum("nji,nj->ni" if back else "nij,nj->ni", R, v[:, :3])
    return np.concatenate([turned, v[:, 3:]], axis=1)


def quality(model: mb.Model, q: np.ndarray, v: np.ndarray) -> dict[str, float]:
    """Return penetration in mm, slip in mm/s and the share of open contacts at some states."""
    depths, slips = [], []
    stands = np.arange(len(q)) % 3 == 0
    for leg in LEGS:
        shin = mb.frame_pose(model, q, f"{leg}_shin")
        twist = mb.frame_twist(model, q, v, f"{leg}_shin", "aligned")
        arm = np.einsum("nij,j->ni", shin.r.as_matrix(), [0.0, 0.0, -THIGH])
        arm_to_ground = arm - [0.0, 0.0, RADIUS]
        speed = twist[:, :3] + np.cross(twist[:, 3:], arm_to_ground)
        depth = RADIUS - shin.t[:, 2] - arm[:, 2]
        depths.append(depth)
        slips.append(np.hypot(speed[:, 0], speed[:, 1])[stands & (depth > -1e-4)])
    depth, slip = np.concatenate(depths), np.concatenate(slips)
    deep = depth[depth > 0.0] if np.any(depth > 0.0) else np.zeros(1)
    return {
        "median depth": 1e3 * float(np.median(deep)),
        "most depth": 1e3 * float(np.max(deep)),
        "median slip": 1e3 * float(np.median(slip)) if slip.size else float("nan"),
        "open": float(np.mean(depth < -1e-4)),
    }


def measure() -> dict[str, float]:
    """Return microseconds of a step of both, for each number of robots, and how good they are."""
    import mujoco
    from mujoco import rollout

    model = load()
    ours = arc.vmap(simulate(model), threads=1)
    theirs = mujoco.MjModel.from_xml_string(MJCF)
    data = [mujoco.MjData(theirs)]
    q, v = starts(1000)
    q, v = ours(q, v, targets(1000, 0, BEFORE))
    aims = targets(1000, BEFORE, STEPS)
    figures: dict[str, float] = {}
    for count in COUNTS:
        rows = np.arange(count) % 1000
        state = np.zeros((count, 38))
        state[:, 1:20], state[:, 20:] = q[rows], world_velocity(model, q, v)[rows]
        start, wanted, ends = (q[rows], v[rows]), aims[rows], {}
        calls = {
            "ours": lambda s=start, w=wanted, e=ends: e.update(ours=ours(*s, w)),
            "MuJoCo": lambda s=state, w=wanted, e=ends: e.update(
                MuJoCo=rollout.rollout(theirs, data, s, w, nstep=STEPS)[0]
            ),
        }
        took: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(TURNS):
            for name, call in calls.items():
                begin = time.process_time()
                call()
                took[name].append(time.process_time() - begin)
        for name, times in took.items():
            figures[f"{count} {name}"] = 1e6 * statistics.median(times) / (count * STEPS)
    end = ends["MuJoCo"][:1000, -1, 1:]
    q_end, v_end = end[:, :19], world_velocity(model, end[:, :19], end[:, 19:], back=True)
    for name, states in (("ours", [x[:1000] for x in ends["ours"]]), ("MuJoCo", [q_end, v_end])):
        figures |= {f"{name} {key}": x for key, x in quality(model, *states).items()}
    return figures


def tables() -> list[Table]:
    """Return the table."""
    x = medians(in_processes("benchmarks.contact", "measure", PROCESSES))
    rows = []
    for count in COUNTS:
        for name in ("ours", "MuJoCo"):
            took = x[f"{count} {name}"]
            good = [x[f"{name} {key}"] for key in ("median depth", "most depth", "median slip")]
            ratio = f"{x[f'{count} MuJoCo'] / took:.1f}" if name == "ours" else ""
            rows.append([f"{count:,}", name, f"{took:.2f} us", f"{1e6 / took:.2e}", ratio,
                         *(f"{g:.2g}" for g in good), f"{x[f'{name} open']:.2f}"])  # fmt: skip
    columns = ("robots", "who", "a step", "steps per second and core", "ratio", "penetration, mm",
               "at most, mm", "slip, mm/s", "open")  # fmt: skip
    note = f"{(__doc__ or '').strip()} Medians of {PROCESSES} processes. {processor()}."
    return [Table("Quadrupeds on the ground", columns, rows, note)]
