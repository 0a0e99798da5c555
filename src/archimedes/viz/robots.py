"""A robot's trajectory as panels over time: joints by name, angles in degrees, slides in m."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.display import for_reading
from archimedes.multibody.models.model import Model, coordinate_labels
from archimedes.simulate import Trajectory
from archimedes.spatial import Quaternion
from archimedes.viz.themes import Figure, File
from archimedes.viz.trajectories import Panel, draw_panels, roll_pitch_yaw, smooth

__all__ = ["plot_robot"]

#: Lines in one panel; more joints get several.
LINES = 8
#: What the coordinates and velocities of joints with one of them are called, by their unit.
TITLES = {"rad": "joint angle", "m": "joint position", "rad/s": "joint speed", "m/s": "joint speed"}


def plot_robot(
    model: Model,
    traj: Trajectory,
    joints: Sequence[str] | str | None = None,
    *,
    title: str | None = None,
    file: File = None,
) -> Figure:
    """Plot the motion of a robot over time, joint by joint.

    Lines have the names of the joints. Angles are in deg, slides in m; a floating base has its
    position, and its attitude as roll, pitch and yaw.

    Parameters
    ----------
    model : Model
        The robot.
    traj : Trajectory
        Trajectory whose states have ``q`` and ``v``, or a part ``robot`` that has them.
    joints : str or sequence of str, optional
        Joints to show. All by default.
    title : str, optional
        Title.
    file : path, optional
        File to save the figure to. Its ending determines the format.

    Returns
    -------
    matplotlib Figure
        The figure.

    Examples
    --------
    >>> import archimedes as arc
    >>> from archimedes import multibody as mb
    >>> from archimedes.viz import plot_robot
    >>> b = mb.Builder("pendulum")
    >>> b.add_body("rod", mass=1.0, com=[0, 0, -0.5], inertia=[0.1, 0.1, 0.01])
    >>> b.attach("rod", joint="hinge", axis=[0, 1, 0])
    >>> robot = b.build()
    >>> fall = lambda t, x: mb.dynamics(robot, t, x)
    >>> swing = arc.solve_ode(fall, (0.0, 1.0), mb.rest_state(robot, [0.5]))
    >>> figure = plot_robot(robot, swing)
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['hinge (deg)', 'hinge (deg/s)']
    """
    x: Any = getattr(traj.x, "robot", traj.x)
    if not (hasattr(x, "q") and hasattr(x, "v")):
        raise ValueError(
            "plot_robot: the states have no q and v: solve with mb.State, or plot the trajectory "
            "itself, arc.plot(traj)"
        )
    known = [*dict.fromkeys(link.joint for link in model.links if not link.mimic)]
    wanted = known if joints is None else [joints] if isinstance(joints, str) else list(joints)
    if missing := [name for name in wanted if name not in known]:
        raise KeyError(f"plot_robot: no joint {missing[0]!r} in {model.name!r}; there are {known}")
    t, fine = smooth(traj)
    x = getattr(fine, "robot", fine)
    panels = joint_panels(model, t, np.asarray(x.q), "q", wanted)
    panels += joint_panels(model, t, np.asarray(x.v), "v", wanted)
    return draw_panels(traj, panels, title, file)


def joint_panels(
    model: Model, t: np.ndarray, values: np.ndarray, which: str, joints: Sequence[str]
) -> list[Panel]:
    """Return panels of coordinates or velocities: plain joints together, others by themselves."""
    groups: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for k, (label, units) in enumerate(coordinate_labels(model, which)):
        joint, _, part = label.partition(".")
        if joint.split("[")[0] in joints or joint in joints:
            group = f"{joint} {'position' if which == 'q' else 'velocity'}" if part else ""
            groups.setdefault((group or TITLES.get(units, which), units), []).append(
                (part or label, k)
            )
    panels = []
    for (group, units), lines in groups.items():
        if which == "q" and [name for name, _ in lines] == ["qw", "qx", "qy", "qz"]:
            att = Quaternion(values[..., [k for _, k in lines]])
            rpy = roll_pitch_yaw(att, t.ndim)
            heading = group.replace("position", "attitude")
            panels.append(Panel(heading, "deg", ["roll", "pitch", "yaw"], t, rpy))
            continue
        for start in range(0, len(lines), LINES):
            names, places = zip(*lines[start : start + LINES])
            part, shown = for_reading(values[..., list(places)], units)
            heading = names[0] if len(names) == 1 else group
            panels.append(Panel(heading, shown, list(names), t, part))
    return panels
