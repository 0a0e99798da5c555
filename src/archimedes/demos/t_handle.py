"""A body spun about its middle axis flips over and over (the Dzhanibekov effect), and many do."""

from __future__ import annotations

import numpy as np

import archimedes as arc
from archimedes import tree
from archimedes.demos import tumbling
from archimedes.demos.reporting import Report, time_call
from archimedes.spatial import RigidBody
from archimedes.viewer import Camera, Mesh, cylinder, moved, view

COPIES = 10_000
#: Largest relative drift of what is conserved, and difference from SciPy at tight tolerances.
ALLOWED = 1e-7


def flat(x: RigidBody.State) -> np.ndarray:
    """Return a state over time as rows of numbers."""
    return np.concatenate([np.asarray(leaf) for leaf in tree.leaves(x)], axis=-1)


def run(report: Report) -> None:
    """Show the model, the physics, the speed, and ten thousand copies."""
    show_model(report)
    once = tumbling.simulate(tumbling.FLIP)
    show_physics(report, once)
    show_speed(report, once)
    show_batch(report)
    write(report, once)


def show_model(report: Report) -> None:
    """Show that the recorded model is the plain NumPy one, and its derivative."""
    x, u = tumbling.body()
    compiled = arc.compile(tumbling.dynamics)
    eager, native = tumbling.dynamics(0.0, x, u), compiled(0.0, x, u)
    difference = float(np.max(np.abs(flat(eager) - flat(native))))
    jacobian = arc.jac(tumbling.dynamics, argnums=1, flat=True)(0.0, x, u)
    report.section("The model: RigidBody.dynamics, plain NumPy on structs")
    report.line("recorded as", compiled.statistics(0.0, x, u).nodes, "d", "", "scalar operations")
    report.line("NumPy against native code", difference, ".1e", "", "largest difference")
    report.line("entries of the Jacobian", jacobian.size, "d", "", "from the same recording")
    report.check("native code is the model", difference < 1e-12)


def show_physics(report: Report, once: arc.Trajectory) -> None:
    """Show what is conserved, and when the body flips."""
    report.section(f"One body, {tumbling.DURATION:g} s: it spins about its middle axis and flips")
    drifts = tumbling.drifts(once)
    for name, drift in drifts.items():
        report.line(name, drift, ".1e", "", "largest relative drift")
    flips = once.events["t"]
    interval, exact = float(np.mean(np.diff(flips))), tumbling.flip_interval()
    report.line("flips", len(flips), "d", "", f"the first at t = {flips[0]:.3f} s")
    report.line("time between flips", interval, ".6f", "s", f"closed form {exact:.6f} s")
    report.check("what is conserved stays", max(drifts.values()) < ALLOWED)
    report.check("flips come as the closed form says", abs(interval / exact - 1.0) < ALLOWED)


def show_speed(report: Report, once: arc.Trajectory) -> None:
    """Show the time one simulation takes, here and in SciPy, and the error of both."""
    exact = tumbling.scipy_solution(rtol=3e-14, atol=1e-15)
    tumbling.simulate()  # records and compiles
    own, ours = time_call(tumbling.simulate, 10)
    theirs, scipys = time_call(tumbling.scipy_solution, 2)
    errors = [float(np.max(np.abs(x - exact))) for x in (flat(own.x), theirs)]
    report.section(f"Speed, one simulation with {len(once)} outputs, measured now")
    report.line("Archimedes", ours, "", "s", f"error {errors[0]:.0e}")
    report.line("SciPy DOP853, same tolerances", scipys, "", "s", f"error {errors[1]:.0e}")
    report.line("against SciPy", scipys / ours, ".0f", "x", "faster")
    report.line("against real time", tumbling.DURATION / ours, ",.0f", "x", "faster")
    report.check("SciPy agrees", errors[0] < ALLOWED)


def show_batch(report: Report) -> None:
    """Simulate dispersed copies as one batch."""
    runs = report.copies(COPIES)
    x0 = tumbling.disperse(runs)
    tumbling.simulate_batch(tree.map(lambda leaf: leaf[:64], x0))  # compiles the lane kernel
    many, seconds = time_call(lambda: tumbling.simulate_batch(x0))
    report.section(f"{runs:,} dispersed copies as one batch, each with its own steps, all cores")
    report.line("time", seconds, "", "s", f"{1e6 * seconds / runs:.0f} us each")
    ratio = runs * tumbling.DURATION / seconds
    report.line("against real time", ratio, ",.0f", "x", "all of them together")
    worst = max(tumbling.drifts(many).values())
    report.line("worst drift of any", worst, ".1e", "", "energy, momenta, quaternion norm")
    pick = runs // 2
    alone = tumbling.simulate_batch(tree.map(lambda leaf: leaf[pick : pick + 1], x0))
    same = flat(alone[0].x).tobytes() == flat(many[pick].x).tobytes()
    report.line(f"copy {pick:,} alone", "same bits" if same else "OTHER BITS")
    report.check("all copies conserve what they must", np.all(many.success) and worst < ALLOWED)
    report.check("a copy alone has the same bits", same)


def write(report: Report, once: arc.Trajectory) -> None:
    """Write the table, the plot and the page."""
    report.table("tumbling", once)
    title = "A rigid body flipping about its middle axis"
    report.figure("tumbling", once, ["w_B", "att"], title=title)
    page = view({"handle": (RigidBody(), once)}, title="The handle that flips")
    page.scene.note = "Spun about its middle axis, free of forces; flips are marked on the slider"
    page.scene.ground = None
    page.scene.camera = Camera("follow", "handle", azimuth=-50.0, elevation=30.0)
    body = page.scene.body("handle")
    body.meshes = handle_meshes()
    body.trail, body.least_pixels = False, 0.0
    page.scene.charts = [c for c in page.scene.charts if c.title == "angular velocity"]
    report.page(page, "t-handle")


def handle_meshes() -> list[Mesh]:
    """Return the handle that flips: a bar on a stem, in the axes of its moments of inertia."""
    bar = cylinder(0.16, 1.5, axis=[0, 1, 0], color="#c9973c")
    stem = moved(cylinder(0.12, 0.9, axis=[1, 0, 0], color="#aab2bd"), [0.45, 0, 0])
    tip = moved(cylinder(0.17, 0.12, axis=[1, 0, 0], color="#e8743b"), [0.92, 0, 0])
    # Of the moments 1, 2 and 3, that about the bar is the least, that across both the largest.
    rotation = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
    return [moved(mesh, rotation=rotation) for mesh in (bar, stem, tip)]
