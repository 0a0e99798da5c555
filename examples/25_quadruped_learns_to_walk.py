"""A quadruped learns to walk where it is told to, and what it has learnt becomes C code.

Thousands of robots act at once: dynamics, contact, rewards and resets of all are one kernel, on the
CPU or on a GPU (`learning/walking.py`), and PyTorch improves what they do (`learning/ppo.py`). The
policy then walks a route, in steps of contact and in MuJoCo, which reads the robot from its file.
Called without options it takes the stored policy, which 12 minutes on one core have made.

    python examples/25_quadruped_learns_to_walk.py --robots 8192 --device cuda --seconds 120
"""

import argparse
import importlib.util
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import archimedes as arc
from archimedes import multibody as mb
from archimedes.spatial import Quaternion

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))
from learning import walking  # noqa: E402

#: For each action of 10 s: m/s ahead and rad/s to the left.
ROUTE = np.repeat([[0.6, 0.0], [0.4, 0.8], [0.6, 0.0]], [200, 100, 200], axis=0)


def options():
    """Return what the command line asks for; what it says to others, such as pytest, is left."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--rounds", type=int, help="learn for so many rounds")
    parser.add_argument("--seconds", type=float, help="learn for so long, compilation included")
    parser.add_argument("--robots", type=int, default=1024, help="robots that learn at once")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--policy", default=FOLDER / "learning/walking_policy.npz", help="to read")
    parser.add_argument("--out", help="file to write the learnt policy to")
    return parser.parse_known_args()[0]


def learn(chosen):
    """Return the arrays of a policy that is learnt now."""
    from learning.ppo import Robots, train

    def progress(seen):
        ahead, turn = (seen[:, [0, 5]] - seen[:, 11:13]).abs().mean(0).tolist()
        return f"off by {ahead:.2f} m/s and {turn:.2f} rad/s"

    print(f"{chosen.robots} robots on {chosen.device}: compiling", flush=True)
    begin = time.perf_counter()
    robots = Robots(walking.task, chosen.robots, chosen.device)
    took = time.perf_counter() - begin
    print(f"compiled in {took:.1f} s", flush=True)
    left = None if chosen.seconds is None else chosen.seconds - took
    policy = train(robots, chosen.rounds, left, progress=progress)[0].arrays()
    if chosen.out:
        np.savez_compressed(chosen.out, **policy)
    return policy


def walk(control, start, route):
    """Return the configurations of a walk in steps of contact."""

    def one(state, command):
        state = {**state, "command": command}
        return walking.dynamics(state, control(state)), state["x"].q

    return arc.compile(lambda state, route: arc.scan(one, state, route)[1])(start, route)


def walk_in_mujoco(control, start, route):
    """Return those of a walk of the saved model in MuJoCo."""
    import mujoco

    with tempfile.TemporaryDirectory() as folder:
        mb.save(walking.robot, folder + "/robot.xml")
        model = mujoco.MjModel.from_xml_path(folder + "/robot.xml")
    model.opt.timestep, model.geom_friction[:, 0] = 0.5 * walking.STEP, start["friction"]
    data, control, state, places = mujoco.MjData(model), arc.compile(control), {**start}, []
    data.qpos = start["x"].q
    for k, command in enumerate(route):
        q, v = data.qpos.copy(), data.qvel.copy()
        v[:3] = Quaternion(q[3:7]).rotate(v[:3])  # which MuJoCo has in axes of the world
        phase = np.float64(k * walking.HELD / walking.PERIOD % 1.0)
        state |= {"x": mb.State(q, v), "command": command, "phase": phase}
        state["aim"] = control(state)
        for _ in range(round(walking.HELD / model.opt.timestep)):
            data.qfrc_applied[6:] = walking.torques(mb.State(data.qpos, data.qvel), state["aim"])
            mujoco.mj_step(model, data)
        places.append(q)
    return np.array(places)


def report(name, q):
    """Print how it walked; return whether it walked the route, upright."""
    tilt = np.degrees(np.arccos(1.0 - 2.0 * (q[:, 4] ** 2 + q[:, 5] ** 2))).max()
    way = np.hypot(*np.diff(q[:, :2], axis=0).T).sum()
    turn = np.degrees(np.unwrap(2.0 * np.arctan2(q[:, 6], q[:, 3]))[-1])
    seconds = walking.HELD * len(q)
    print(f"{name}: {way:.2f} m in {seconds:.0f} s, turned by {turn:.0f} deg,", end=" ")
    print(f"height {q[:, 2].min():.3f} to {q[:, 2].max():.3f} m, tilt up to {tilt:.1f} deg")
    wanted, angle = walking.HELD * ROUTE[:, 0].sum(), np.degrees(walking.HELD * ROUTE[:, 1].sum())
    return tilt < 15.0 and abs(way - wanted) < 0.1 * wanted and abs(turn - angle) < 15.0


if __name__ == "__main__":
    chosen, start = options(), walking.standing(ROUTE[0])
    learns = chosen.rounds is not None or chosen.seconds is not None
    control = walking.controller(learn(chosen) if learns else dict(np.load(chosen.policy)))
    walks = {"steps of contact": walk(control, start, ROUTE)}
    if importlib.util.find_spec("mujoco"):
        walks["MuJoCo"] = walk_in_mujoco(control, start, ROUTE)
    good = [report(name, q) for name, q in walks.items()]
    project = arc.codegen(control, (start,), name="trot")
    print(project, project.verify() if shutil.which("gcc") else "", sep="\n")
    assert all(good) or learns, "the policy walks the route"
