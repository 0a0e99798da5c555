"""``archimedes demo``: one body, ten thousand of them, and how that compares."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import archimedes as arc
from archimedes import tree
from archimedes.backends.cpus import cpu_count
from archimedes.cli import tumbling
from archimedes.simulate import Trajectory
from archimedes.simulate.trajectory.exports import MissingExtra
from archimedes.viz import plot

__all__ = ["demo"]

#: Largest relative drift of what is conserved, and difference from SciPy at tight tolerances.
ALLOWED = 1e-7


def timed(work: Callable[[], Any], repeats: int = 1) -> tuple[Any, float]:
    """Return the result of some work and the least time in s that it took."""
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
    return result, best


def line(name: str, value: str, remark: str = "") -> None:
    print(f"  {name:<34}{value:>12}   {remark}".rstrip())


def milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 1.0 else f"{seconds:.2f} s"


def flat(x: Any) -> np.ndarray:
    """Return a state over time as rows of numbers."""
    return np.concatenate([np.asarray(leaf) for leaf in tree.leaves(x)], axis=-1)


def demo(folder: Path, runs: int = 10_000) -> int:
    """Run the demonstration, write plot and trajectory to `folder`, return the exit status."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SystemExit(
            f"archimedes demo: {folder.absolute()} cannot be made ({error.strerror}): name another "
            "folder with --output"
        ) from None
    cores = cpu_count()
    print(
        f"Archimedes {arc.__version__}  (Python {platform.python_version()}, NumPy "
        f"{np.__version__}, {platform.machine()}, {cores} cores)\n"
    )
    good = show_model()
    traj = tumbling.simulate(tumbling.FLIP)
    good &= show_physics(traj)
    good &= show_speed(traj)
    good &= show_batch(runs)
    write_files(traj, folder)
    print("\nAll checks passed." if good else "\nSOME CHECKS FAILED: see above.")
    return 0 if good else 1


def show_model() -> bool:
    """Show that the recorded model is the plain NumPy one, and its derivative."""
    x, u = tumbling.body()
    compiled = arc.compile(tumbling.dynamics)
    eager, native = tumbling.dynamics(0.0, x, u), compiled(0.0, x, u)
    difference = float(np.max(np.abs(flat(eager) - flat(native))))
    jacobian = arc.jac(tumbling.dynamics, argnums=1, flat=True)(0.0, x, u)
    print("The model: RigidBody.dynamics, plain NumPy on structs")
    line("recorded as", f"{compiled.statistics(0.0, x, u).nodes}", "scalar operations")
    line("NumPy against native code", f"{difference:.1e}", "largest difference")
    line("Jacobian", f"{jacobian.shape[0]} x {jacobian.shape[1]}", "from the same recording")
    return difference < 1e-12


def show_physics(traj: Trajectory) -> bool:
    """Show what is conserved, and when the body flips."""
    print(f"\nOne body, {tumbling.DURATION:g} s: it spins about its intermediate axis and flips")
    found = tumbling.drifts(traj)
    for name, drift in found.items():
        line(name, f"{drift:.1e}", "largest relative drift")
    flips = traj.events["t"]
    interval, exact = float(np.mean(np.diff(flips))), tumbling.flip_interval()
    line("flips", f"{len(flips)}", f"the first at t = {flips[0]:.3f} s")
    line("time between flips", f"{interval:.6f} s", f"closed form {exact:.6f} s")
    return bool(traj.success) and max(*found.values(), abs(interval / exact - 1.0)) < ALLOWED


def show_speed(traj: Trajectory) -> bool:
    """Show the time one simulation takes, here and in SciPy, and the error of both."""
    print(f"\nSpeed, one simulation with {len(traj)} outputs, measured now")
    exact = tumbling.scipy_solution(rtol=3e-14, atol=1e-15)
    tumbling.simulate()  # records and compiles
    own, ours = timed(tumbling.simulate, 10)
    theirs, scipys = timed(tumbling.scipy_solution, 2)
    errors = [float(np.max(np.abs(x - exact))) for x in (flat(own.x), theirs)]
    line("Archimedes", milliseconds(ours), f"error {errors[0]:.0e}")
    line("SciPy DOP853, same tolerances", milliseconds(scipys), f"error {errors[1]:.0e}")
    line("against SciPy", f"{scipys / ours:.0f} x", "faster")
    line("against real time", f"{tumbling.DURATION / ours:,.0f} x", "faster")
    return errors[0] < ALLOWED


def show_batch(runs: int) -> bool:
    """Simulate dispersed copies as one batch."""
    print(f"\n{runs:,} dispersed copies as one batch, each with its own steps, all cores")
    x0 = tumbling.dispersed(runs)
    tumbling.simulate_batch(tree.map(lambda leaf: leaf[:64], x0))  # compiles the lane kernel
    many, seconds = timed(lambda: tumbling.simulate_batch(x0))
    line("time", milliseconds(seconds), f"{1e6 * seconds / runs:.0f} us each")
    ratio = runs * tumbling.DURATION / seconds
    line("against real time", f"{ratio:,.0f} x", "all of them together")
    worst = max(tumbling.drifts(many).values())
    line("worst drift of any", f"{worst:.1e}", "energy, momenta, quaternion norm")
    pick = runs // 2
    alone = tumbling.simulate_batch(tree.map(lambda leaf: leaf[pick : pick + 1], x0))
    same = flat(alone[0].x).tobytes() == flat(many[pick].x).tobytes()
    line(f"copy {pick:,} alone", "same bits" if same else "OTHER BITS")
    return bool(np.all(many.success)) and same and worst < ALLOWED


def write_files(traj: Trajectory, folder: Path) -> None:
    """Write the trajectory and its plot, and say where they are."""
    table = folder / "tumbling.csv"
    traj.to_csv(table, units=True)
    print(f"\nWritten: {table}")
    os.environ.setdefault("MPLBACKEND", "agg")  # a file is wanted, no window
    picture = folder / "tumbling.png"
    title = "A rigid body flipping about its intermediate axis"
    try:
        plot(traj, ["w_B", "att"], title=title, file=picture)
    except MissingExtra as missing:
        print(f"No plot: {missing}", file=sys.stderr)
    else:
        print(f"Written: {picture}")
