"""Small scenes and trajectories that the tests of the viewer share."""

from __future__ import annotations

import numpy as np

from archimedes.simulate import Trajectory
from archimedes.spatial import Quaternion, RigidBody
from archimedes.viewer import Arrow, Body, Chart, Ghosts, Ground, Mark, Path, Scene, box

#: A name that would run code if it were ever taken for markup.
HOSTILE = "</script><img src=x onerror=\"document.title='owned'\">&<b>"


def falling(title: str = "falling", name: str = "box", units: str = "m") -> Scene:
    """Return a scene with one of everything; `name`, `title` and `units` are put everywhere."""
    t = np.linspace(0.0, 2.0, 41)
    height = np.stack([3.0 * t, 0 * t, 25 - 4.9 * t**2], axis=1)
    half = 0.5 * t
    turn = np.stack([np.cos(half), 0 * t, np.sin(half), 0 * t], axis=1)
    scene = Scene(title, note=title, ground=Ground())
    scene.bodies.append(Body(name, [box([2, 1, 0.5])], t, height, turn, trail=True, label=True))
    scene.arrows.append(Arrow(name, name, t, [0.0, 0.0, -3.0], units))
    scene.charts.append(Chart(name, t, height.T, [name, "y", "z"], units))
    scene.marks.append(Mark(1.0, name))
    scene.paths.append(Path(name, height + np.array([0, 2, 0])))
    rng = np.random.default_rng(0)
    spread = height + 0.3 * rng.normal(size=(20, 1, 3))
    scene.ghosts.append(Ghosts(name, t, spread, np.tile(turn, (20, 1, 1)), 0.5))
    return scene


def tumbling() -> Trajectory:
    """Return a body that moves along a line while it turns about z, twice around."""
    t = np.linspace(0.0, 4.0, 81)
    half = 0.5 * np.pi * t
    zero = 0.0 * t
    att = np.stack([np.cos(half), zero, zero, np.sin(half)], axis=1)
    x = RigidBody.State(
        pos=np.stack([2.0 * t, zero, -10.0 + zero], axis=1),
        att=Quaternion(att),
        v_B=np.zeros((81, 3)),
        w_B=np.tile([0.0, 0.0, np.pi], (81, 1)),
    )
    return Trajectory(t, x)
