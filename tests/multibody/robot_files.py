"""``python -m tests.multibody.robot_files FOLDER ...``: the MJCF files in folders against MuJoCo.

Of each model is shown whether it loads, by how much accelerations without actuators, constraints
and contact differ, relative to the largest of each of `STATES` random states, and by how much the
motion over a second differs from MuJoCo's at a small step, with limits, dry friction, actuators,
tendons and equality, but without contact. It may differ by what halving MuJoCo's step changes.

Files that MuJoCo itself refuses, for other reasons than meshes and textures that are not there, are
no models: they are parts of others, or of another version; nor are those in which nothing moves.
``--largest 40`` leaves out motions of
models with more velocities; ``--only TEXT`` takes files with this in their path.
"""

from __future__ import annotations

import argparse
import copy
import multiprocessing
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import archimedes as arc
from archimedes import multibody as mb
from archimedes.multibody.files.mjcf import MjcfReader, compile_mjcf
from archimedes.multibody.systems.dynamics import find_stateful

from .mujoco_peer import mujoco, transport, world_axes

__all__ = ["Row", "compare", "forced_difference", "motion_difference", "unforced_difference"]

STATES = 8
#: Relative error of accelerations; it grows with the condition of the mass matrix beyond 1e6.
WITHIN, CONDITION = 1e-9, 1e6
#: Accelerations smaller than this, in SI units, are what rounding leaves of none.
NO_ACCELERATION = 1e-6
#: Times at which motions are compared, in s, and of how many steps of the file one of the reference
#: is a part.
TIMES, FINER = (0.25, 0.5, 0.75, 1.0), 16
#: Differences of motions below this are rounding, and what the tolerance of the solver leaves.
ROUNDING = 2e-6
SECONDS = 240.0


@dataclass
class Row:
    """What is found of a file; `why` says what is not as it should be."""

    file: Path
    kind: str = "model"
    nv: int = -1
    loads: bool = False
    unforced: float = np.nan
    halving: float = np.nan
    motion: float = np.nan
    why: str = ""
    ignored: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def agrees(self) -> bool:
        """Whether accelerations without forces do."""
        return self.unforced <= WITHIN

    @property
    def moves(self) -> bool:
        """Whether motions agree."""
        return self.motion <= max(self.halving, ROUNDING)


# ---- dynamics ------------------------------------------------------------------------------------


def unforced_difference(model, m, states=STATES):
    """Return by how much accelerations differ, relative to the largest, without constraints."""
    m, flags = copy.deepcopy(m), mujoco.mjtDisableBit
    m.opt.disableflags |= flags.mjDSBL_CONSTRAINT | flags.mjDSBL_ACTUATION | flags.mjDSBL_CONTACT
    m.jnt_actgravcomp[:] = 0  # there a part of what actuators do
    d, rng, most = mujoco.MjData(m), np.random.default_rng(0), 0.0
    model = model.replace(friction=0.0 * model.friction)
    if model.tendons is not None:
        tendons = model.tendons.replace(friction=0.0 * model.tendons.friction)
        model = model.replace(tendons=tendons)
    q = np.stack([mb.random_configuration(model, rng) for _ in range(states)])
    v = rng.normal(size=(states, model.nv))
    tau = 0.0 * v
    ours = mb.aba(model, q, v, tau, passive=True)
    for k in range(states):
        T = world_axes(model, q[k])
        d.qpos[:], d.qvel[:] = q[k], T @ v[k]
        mujoco.mj_forward(m, d)
        theirs = T.T @ (d.qacc_smooth - transport(model, q[k], v[k]))
        M = np.zeros((m.nv, m.nv))
        mujoco.mj_fullM(m, d, M)
        size = np.abs(theirs).max() * max(1.0, np.linalg.cond(M) / CONDITION)
        most = max(most, np.abs(ours[k] - theirs).max() / max(size, NO_ACCELERATION))
    return most


def forced_difference(reader, model, m, states=4):
    """Return by how much accelerations differ, with all but contact, near the file's start."""
    m, flags = copy.deepcopy(m), mujoco.mjtDisableBit
    options = m.opt
    options.disableflags |= flags.mjDSBL_CONTACT
    options.tolerance, options.iterations, options.noslip_iterations = 0.0, 200, 0
    options.solver = mujoco.mjtSolver.mjSOL_NEWTON
    d, rng, most = mujoco.MjData(m), np.random.default_rng(0), 0.0
    for _ in range(states):
        q = mb.integrate(model, np.array(m.qpos0), 0.05 * rng.normal(size=m.nv))
        v = rng.normal(size=m.nv)
        T = world_axes(model, q)
        d.qpos[:], d.qvel[:], d.ctrl[:] = q, T @ v, rng.normal(size=m.nu)
        d.act[:] = 0.1 * rng.normal(size=m.na)
        mujoco.mj_forward(m, d)
        theirs = T.T @ (d.qacc - transport(model, q, v))
        x = mb.State(q, v)
        if find_stateful(model.actuators):
            held = d.act[reader.activations]
            x = mb.driven_state(model, model.actuators, q, held).replace(v=v)
        acting = {"actuators": model.actuators, "closures": model.closures}
        ours = mb.soft_dynamics(model, 0.0, x, d.ctrl[reader.commands], **acting).v
        most = max(most, np.abs(ours - theirs).max() / np.abs(theirs).max())
    return most


# ---- motions -------------------------------------------------------------------------------------


@dataclass
class Start:
    """A state in MuJoCo's numbers, with commands."""

    q: np.ndarray
    v: np.ndarray
    activations: np.ndarray
    commands: np.ndarray


def acting(m):
    """Return how many actuators the file does not switch off."""
    if m.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_ACTUATION:
        return 0
    return sum(not m.opt.disableactuator >> int(k) & 1 for k in m.actuator_group)


def start_of(m):
    """Return the first keyframe, or where the file has its bodies, with some speed and commands."""
    rng = np.random.default_rng(0)
    start = Start(np.array(m.qpos0), np.zeros(m.nv), np.zeros(m.na), np.zeros(m.nu))
    if m.nkey:
        start.q, start.activations = np.array(m.key_qpos[0]), np.array(m.key_act[0])
        start.commands = np.array(m.key_ctrl[0])
    start.v = 0.3 * rng.normal(size=m.nv)
    limited, spread = np.array(m.actuator_ctrllimited, dtype=bool), np.ones(m.nu)
    low, high = np.array(m.actuator_ctrlrange).reshape(-1, 2).T
    spread[limited] = 0.5 * (high - low)[limited]
    start.commands = start.commands + 0.1 * spread * rng.normal(size=m.nu)
    start.commands[limited] = np.clip(start.commands, low, high)[limited]
    return start


def motion_there(m, start, divide):
    """Return MuJoCo's configurations at `TIMES`, with its step divided; None if it diverges."""
    m = copy.deepcopy(m)
    flags, options = mujoco.mjtDisableBit, m.opt
    options.disableflags |= flags.mjDSBL_CONTACT | flags.mjDSBL_AUTORESET
    options.tolerance, options.iterations, options.noslip_iterations = 0.0, 200, 0
    options.solver = mujoco.mjtSolver.mjSOL_NEWTON
    per = [max(round(t / options.timestep), k + 1) * divide for k, t in enumerate(TIMES)]
    options.timestep /= divide
    d, found = mujoco.MjData(m), []
    d.qpos[:], d.qvel[:], d.ctrl[:] = start.q, start.v, start.commands
    if m.na:
        d.act[:] = start.activations
    for step in range(per[-1]):
        mujoco.mj_step(m, d)
        if step + 1 in per:
            found.append(np.array(d.qpos))
    return found if np.isfinite(found).all() and np.abs(d.qvel).max() < 1e8 else None


def motion_here(model, m, start, commands):
    """Return our configurations at the same times."""
    times = [max(round(t / m.opt.timestep), k + 1) * m.opt.timestep for k, t in enumerate(TIMES)]
    v, u = world_axes(model, start.q).T @ start.v, start.commands[commands]
    x = mb.State(start.q, v)
    if find_stateful(model.actuators):
        x = mb.driven_state(model, model.actuators, start.q, start.activations).replace(v=v)

    def rates(t, x):
        acting = {"actuators": model.actuators, "closures": model.closures}
        return mb.soft_dynamics(model, t, x, u, **acting)

    return arc.solve_ode(
        rates, (0.0, times[-1]), x, t_eval=[0.0, *times], rtol=1e-8, atol=1e-9, max_steps=400_000
    )


def motion_difference(model, m, commands):
    """Return by how much motions differ, what halving MuJoCo's step changes, and what is wrong.

    `commands` says where those of our actuators are among those of the file.
    """
    act = acting(m)
    if len(model.actuators) != act:
        return np.nan, np.nan, f"{len(model.actuators)} of {act} actuators act"
    start = start_of(m)
    theirs = [motion_there(m, start, divide) for divide in (1, 2, FINER)]
    if theirs[2] is None:
        return np.nan, np.nan, "MuJoCo's motion diverges"

    def apart(one, two):
        if one is None or two is None:
            return np.inf
        each = [mb.difference(model, a, b) for a, b in zip(one, two, strict=True)]
        return float(np.abs(each).max())

    halving = apart(theirs[0], theirs[1])
    ours = motion_here(model, m, start, commands)
    if not ours.success:
        return np.nan, halving, f"solve_ode: {ours.message}"
    return apart(list(ours.x.q[1:]), theirs[2]), halving, ""


# ---- files ---------------------------------------------------------------------------------------


def compare(file, largest):
    """Return the row of a file."""
    begin, row = time.perf_counter(), Row(Path(file))
    try:
        m, lost = compile_mjcf(mujoco, str(file))
    except (ValueError, mujoco.FatalError) as error:
        row.kind, row.why = "no model", " ".join(str(error).split())[:100]
        return row
    if m.nv == 0:
        row.kind = "nothing moves"
        return row
    try:
        reader = MjcfReader(mujoco, m, Path(file).stem, lost)
        builder = reader.read()
        row.ignored = tuple(builder.report.ignored)
        model = builder.build(physical=False)
        row.loads, row.nv = True, model.nv
        row.unforced = unforced_difference(model, m)
        if model.nv <= largest:
            row.motion, row.halving, row.why = motion_difference(model, m, reader.commands)
        else:
            row.why = "too large for a motion here"
    except Exception as error:  # whatever it is, it is a row of the table
        row.why = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    row.seconds = time.perf_counter() - begin
    return row


def compare_aside(file, largest):
    """Return the row of a file, by a process of its own, whose time is limited."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    fork = multiprocessing.get_context("fork")
    worker = fork.Process(target=lambda: theirs.send(compare(file, largest)))
    worker.start()
    row = Row(Path(file), why=f"more than {SECONDS:g} s")
    try:
        if ours.poll(SECONDS):
            row = ours.recv()
    except EOFError:
        row.why = "the process died"
    worker.kill()
    worker.join()
    return row


def mjcf_files(folders):
    """Return the files in folders, or the files themselves, that have a <mujoco>."""
    for folder in map(Path, folders):
        for file in [folder] if folder.is_file() else sorted(folder.rglob("*.xml")):
            text = file.read_text(errors="ignore")
            if "<mujoco" in text and "<mujocoinclude" not in text:
                yield file


def summarize(rows):
    """Print how many models do what."""
    models = [row for row in rows if row.kind == "model"]
    still = sum(row.kind == "nothing moves" for row in rows)
    moved = [row for row in models if row.why != "too large for a motion here"]
    print(f"{len(rows)} files, {len(models)} of them models, and {still} in which nothing moves")
    print(f"load: {sum(row.loads for row in models)} of {len(models)}")
    print(f"unforced dynamics within {WITHIN:g}: {sum(row.agrees for row in models)}")
    print(f"motion within halving: {sum(row.moves for row in moved)} of {len(moved)}")
    reasons = Counter(row.why[:70] for row in models if not row.moves)
    for reason, count in reasons.most_common():
        print(f"  {count:4} {reason or 'motion differs by more'}")
    words = Counter(
        kind
        for row in models
        for kind in {" ".join(w for w in x.split(": ", 1)[-1].split() if "'" not in w and not
                              any(c.isdigit() for c in w))[:60] for x in row.ignored}
    )  # fmt: skip
    print("ignored, in how many models:")
    for what, count in words.most_common(30):
        print(f"  {count:4} {what}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", help="folders, which are searched, or files")
    parser.add_argument("--largest", type=int, default=40, help="most velocities for a motion")
    parser.add_argument("--only", default="", help="take files with this in their path")
    options, rows = parser.parse_args(), []
    columns = "{:70} {:>4} {:>9} {:>9} {:>9} {:>6} {}"
    print(columns.format("model", "nv", "unforced", "motion", "halving", "s", "what is wrong"))
    for file in mjcf_files(options.folders):
        if options.only not in str(file):
            continue
        row = compare_aside(file, options.largest)
        rows.append(row)
        wrong = "" if row.agrees else "UNFORCED "
        wrong += "" if row.moves or row.why else "MOTION "
        if row.kind == "model":
            print(
                columns.format(
                    str(file)[-70:], row.nv, f"{row.unforced:.1e}", f"{row.motion:.1e}",
                    f"{row.halving:.1e}", f"{row.seconds:.1f}", wrong + row.why
                ),
                flush=True,
            )  # fmt: skip
    summarize(rows)
    return int(any(row.kind == "model" and not (row.agrees and row.moves) for row in rows))


if __name__ == "__main__":
    sys.exit(main())
