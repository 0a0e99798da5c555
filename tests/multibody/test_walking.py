"""Quadrupeds trot for 10 s without falling, in our steps of contact and in MuJoCo.

The controller is that of ``examples/22_quadruped_walks.py``. MuJoCo simulates the robot from the
file that `save` writes.
"""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from archimedes import multibody as mb
from tests.optional_packages import import_or_skip

from .robots import path_of

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "22_quadruped_walks.py"

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def example():
    import_or_skip("mujoco")
    return runpy.run_path(str(EXAMPLE))


def check_walk(q, x0, speed):
    """Check that a trunk went on for all of the time, upright and at its height."""
    up = 1.0 - 2.0 * (q[:, 4] ** 2 + q[:, 5] ** 2)
    assert len(q) == 5000 and np.isfinite(q).all()
    assert abs(q[-1, 0] - 10.0 * speed) < 0.5
    assert np.abs(q[:, 1]).max() < 0.1
    assert np.abs(q[:, 2] - x0.q[2]).max() < 0.05 * x0.q[2]
    assert np.degrees(np.arccos(up.min())) < 15.0


def walk_twice(example, robot, feet, controller, x0):
    """Return the configurations of a walk here and of one in MuJoCo, both of which are checked."""
    ours = example["walk"](robot, feet, controller, x0)
    theirs = example["walk_in_mujoco"](robot, controller, x0)
    check_walk(ours, x0, example["SPEED"])
    check_walk(theirs, x0, example["SPEED"])
    return ours, theirs


def test_a_quadruped_walks_here_and_in_mujoco(example):
    robot, feet, controller, x0 = (example[k] for k in ("robot", "feet", "controller", "x0"))
    ours, theirs = walk_twice(example, robot, feet, controller, x0)
    # The same robot and the same controller, two laws of contact: the trunks stay together.
    assert np.abs(ours[:, :3] - theirs[:, :3]).max() < 0.05


def test_nobody_walks_without_the_controller(example):
    """The test of a fall is one: without torques the robot lies on the ground after a second."""
    robot, feet, x0 = (example[k] for k in ("robot", "feet", "x0"))
    for q in (
        example["walk"](robot, feet, lambda x, t: 0.0 * x.v[6:], x0),
        example["walk_in_mujoco"](robot, lambda x, t: 0.0 * x.v[6:], x0),
    ):
        with pytest.raises(AssertionError):
            check_walk(q, x0, 0.0)


@pytest.mark.parametrize("name", ["go1"])
def test_robots_of_unitree_walk_here_and_in_mujoco(example, name):
    legs = ["FL", "FR", "RL", "RR"]
    b = mb.read(path_of(name))
    b.geometry = ()
    b.add_shape("world", "plane", [0.0, 0.0], "collision")
    for leg in legs:
        b.add_shape(f"{leg}_foot", "sphere", [example["RADIUS"]], "collision")
    robot, feet = b.build(base="floating"), [f"{leg}_foot" for leg in legs]
    q = mb.neutral(robot)
    q[7:] = np.tile([0.0, 0.8, -1.6], 4)
    q[2] = example["RADIUS"] - mb.frame_pose(robot, q, feet[0]).t[2]
    x0 = mb.rest_state(robot, q)
    controller = example["trot"](robot, [f"{leg}_thigh" for leg in legs], feet, q[2])
    walk_twice(example, robot, feet, controller, x0)
