"""Make a page in 3-D of a trajectory (npz, csv), a flight (yaml) or a robot (urdf, sdf, mjcf).

Examples:
    archimedes view flight.npz --vehicle f16
    archimedes view robot.urdf --show
    archimedes view flight.yaml --interactive --show
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from archimedes.cli import answers
from archimedes.cli.run_file import said, vehicle_names
from archimedes.system.programs import open_page


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("file", type=Path, help="a trajectory (.npz, .csv), flight or robot")
    parser.add_argument("--vehicle", help=f"what moves: {', '.join(vehicle_names())}")
    packages = "folder of packages that a robot's file names"
    parser.add_argument("--packages", type=Path, action="append", help=packages)
    parser.add_argument("--title", default="", help="what stands above it")
    parser.add_argument("--interactive", action="store_true",
                        help="run the model of a flight or robot in the page")  # fmt: skip
    parser.add_argument("--show", action="store_true", help="open the page in a browser")
    answers.add_output(parser, "archimedes_view", "the page")


def run(options: argparse.Namespace) -> int:
    """Write the page and say where it is."""
    from archimedes.cli.flights import MISTAKES

    path = answers.input_file(options.file)
    readers = INTERACTIVE if options.interactive else READERS
    make = readers.get(path.suffix.lower())
    if make is None:
        what = "an interactive page is made of a flight or a robot: " if options.interactive else ""
        endings = ", ".join(sorted(readers))
        raise answers.CommandError(f"{path}: {what}the name must end in {endings}")
    try:
        shown = make(path, options)
    except MISTAKES as error:
        raise answers.CommandError(said(error, path)) from None
    shown.scene.title = options.title or shown.scene.title or path.name
    target = answers.output_file(answers.output_folder(options.output), f"{path.stem}.html")
    shown.save(target)
    size, span, left_out = target.stat().st_size, list(shown.scene.span), shown.scene.left_out
    for line in left_out:
        print(f"not shown: {line}", file=sys.stderr)
    data = {"page": str(target), "bytes": size, "span": span, "not_shown": left_out}
    answers.answer(options, data, str(target))
    if options.show:
        open_page(target)
    return 0


def flight(path: Path, options: argparse.Namespace) -> Any:
    """Fly a description and show it."""
    from archimedes.cli.flights import fly_file
    from archimedes.viewer import view

    flown = fly_file(path)
    name = flown.config.vehicle
    note = "" if flown.complete else flown.trajectory.message
    return view({name: (flown.vehicle, flown.trajectory)}, title=flown.config.title, note=note)


def trajectory(path: Path, options: argparse.Namespace) -> Any:
    """Show states over time, of a vehicle by its name, or of a plain body."""
    from archimedes.simulate import Trajectory
    from archimedes.vehicles import load
    from archimedes.viewer import view

    read = Trajectory.from_npz if path.suffix.lower() == ".npz" else Trajectory.from_csv
    if options.vehicle is None:
        from archimedes.spatial import RigidBody

        return view({"body": (RigidBody(), plain_body(read(path)))})
    vehicle = load(options.vehicle)
    return view({options.vehicle: (vehicle, read(path, like=example_state(vehicle)))})


def example_state(vehicle: Any) -> Any:
    """Return a state of a vehicle, for its structure."""
    import numpy as np

    from archimedes.spatial import Quaternion
    from archimedes.vehicles import FlightState

    zero = np.zeros(3)
    if hasattr(vehicle, "state"):
        return vehicle.state(FlightState(0.0, 0.0, 0.0, zero, zero, zero))
    wheels = np.zeros(len(vehicle.wheels.axes))
    return type(vehicle).State(pos=zero, vel=zero, att=Quaternion.identity(), w_B=zero, h=wheels)


def plain_body(read: Any) -> Any:
    """Return a trajectory of a rigid body from one that was read without knowing what it is."""
    import numpy as np

    from archimedes.cli.flights import as_numbers
    from archimedes.simulate import Trajectory
    from archimedes.spatial import Quaternion, RigidBody

    x = read.x
    motion = x.get("motion", x) if isinstance(x, dict) else {}
    if not (isinstance(motion, dict) and "pos" in motion and "att" in motion):
        raise ValueError("there are no columns pos and att: name the vehicle with --vehicle")
    pos, att = as_numbers(motion["pos"], "pos"), as_numbers(motion["att"], "att")
    lead = read.t.shape
    if pos.shape != (*lead, 3) or att.shape not in ((*lead, 4), (*lead, 3)):
        raise ValueError(
            "pos must have 3 components and att 4 (or 3 angles): they have shapes "
            f"{pos.shape[len(lead) :]} and {att.shape[len(lead) :]}"
        )
    as_numbers(read.t, "t")
    q = att if att.shape[-1] == 4 else Quaternion.from_euler(att, "xyz").array
    still = np.zeros(pos.shape)
    v, w = (as_numbers(motion.get(name, still), name) for name in ("v_B", "w_B"))
    return Trajectory(read.t, RigidBody.State(pos, Quaternion(q), v, w))


def robot(path: Path, options: argparse.Namespace) -> Any:
    """Show a robot swaying through the ranges of its joints."""
    import numpy as np

    from archimedes import multibody as mb
    from archimedes.simulate import Trajectory
    from archimedes.viewer import view
    from archimedes.viewer.robots import start

    builder = mb.read(path, options.packages)
    moves = any(joint.kind.nv for joint in builder.joints.values())
    # It is to be looked at: an inertia that no body has does no harm.
    model = builder.build(None if moves else "floating", physical=False)
    t = np.linspace(0.0, 6.0, 181)
    q = np.tile(start(model), (len(t), 1))
    for name in model.joint_names:
        part = model.q_slice(name)
        if part.stop - part.start == 1:
            k = part.start
            low, high = (float(np.clip(v[k], -1.0, 1.0)) for v in (model.lower, model.upper))
            middle, half = 0.5 * (low + high), 0.4 * (high - low)
            q[:, k] = middle + half * np.sin(2.0 * np.pi * t / 6.0 + 0.6 * k)
    note = "its joints sway" if moves else ""
    v = np.gradient(q, t, axis=0) if model.nq == model.nv else np.zeros((len(t), model.nv))
    return view({model.name: (model, Trajectory(t, mb.State(q, v)))}, note=note)


def interactive_flight(path: Path, options: argparse.Namespace) -> Any:
    """Let a vehicle start as its flight does, with its controls on sliders."""
    from archimedes.cli.flights import plan_file
    from archimedes.vehicles import ground_event
    from archimedes.viewer import view

    config, vehicle, x0, u = plan_file(path)
    events = {} if config.ground is None else {"the ground": ground_event(vehicle, config.ground)}
    more: dict[str, Any] = {"events": events, "t_end": config.duration, "title": config.title}
    return view({config.vehicle: (vehicle, x0)}, inputs=u, interactive=True, **more)


def interactive_robot(path: Path, options: argparse.Namespace) -> Any:
    """Let a robot hang from its base, to be driven by sliders and dragged."""
    from archimedes import multibody as mb
    from archimedes.viewer import view

    model = mb.read(path, options.packages).build()
    return view(model, interactive=True, note="drag a link with the mouse")


INTERACTIVE = {
    **dict.fromkeys((".yaml", ".yml", ".json"), interactive_flight),
    **dict.fromkeys((".urdf", ".sdf", ".xml", ".mjcf"), interactive_robot),
}
READERS = {
    **dict.fromkeys((".npz", ".csv"), trajectory),
    **dict.fromkeys((".yaml", ".yml", ".json"), flight),
    **dict.fromkeys((".urdf", ".sdf", ".xml", ".mjcf"), robot),
}
