"""A task of robots with legs: walk."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archimedes import multibody as mb
from archimedes import random
from archimedes.checks import check_shape
from archimedes.function import fori_loop
from archimedes.interchange.environments.environment import Environment
from archimedes.typing import Array, ArrayLike, Scalar, Tree

__all__ = ["walk"]


def walk(
    robot: mb.Model,
    feet: Sequence[str],
    stance: ArrayLike,
    speed: float = 0.5,
    *,
    reach: float = 0.5,
    stiffness: float = 80.0,
    damping: float = 3.0,
    ground: mb.Ground | None = None,
    dt: float = 0.002,
    steps: int = 10,
    max_steps: int = 500,
) -> Environment:
    """Return a robot with legs that is to walk along x, with contact and friction.

    Actions are angles of the joints about those of the stance, which springs and dampers follow;
    they are held for several steps of contact. The observation is the height, the vertical in axes
    of the base, the angles of the joints relative to the stance, and all velocities. The reward is
    1 at the speed that is wanted; an episode ends with the base at half its height, or tilted by 60
    degrees.

    Parameters
    ----------
    robot : Model
        The robot, with a floating base.
    feet : sequence of str
        Names of the frames, or bodies, that touch the ground.
    stance : array (nq,)
        Configuration in which an episode begins, but for noise.
    speed : float, optional
        Velocity along x that is wanted, in m/s. 0.5 by default.
    reach : float, optional
        Largest commanded change of an angle from the stance in rad, 0.5 by default.
    stiffness : float, optional
        Stiffness of the joints in N m/rad, 80 by default.
    damping : float, optional
        Damping of the joints in N m s/rad, 3 by default.
    ground : Ground, optional
        The ground, level with a friction of 0.7 by default.
    dt : float, optional
        Length of a step of contact in s, 0.002 by default.
    steps : int, optional
        Steps of contact for an action, 10 by default.
    max_steps : int, optional
        Actions of an episode, 500 by default.

    Examples
    --------
    >>> from archimedes.demos.quadruped import FEET, robot, standing
    >>> from archimedes.interchange.environments import walk
    >>> walk(robot, FEET, standing()[0])  # doctest: +SKIP
    <Walk: action 12 numbers, observation (34,), 500 steps at most>
    """
    stance = np.asarray(stance, dtype=float)
    check_shape(stance, "walk: stance", (robot.nq,))
    joints, height = stance[7:], stance[2]
    contacts = [mb.sphere(foot, 0.0) for foot in feet]
    floor = mb.Ground(friction=0.7) if ground is None else ground

    def dynamics(x: Tree, targets: Array) -> Tree:
        def one(_: Scalar, x: Tree) -> Tree:
            torque = stiffness * (targets - x.q[7:]) - damping * x.v[6:]
            u = np.concatenate([np.zeros(6), torque])
            return mb.contact_step(robot, x, dt, contacts, floor, u)

        return fori_loop(0, steps, one, x)

    def initial(key: Array) -> Tree:
        noise = random.uniform(key, (len(joints) + robot.nv,), -1.0, 1.0)
        q = np.concatenate([stance[:7], joints + 0.05 * noise[: len(joints)]])
        return mb.State(q, 0.05 * noise[len(joints) :])

    def vertical(x: Tree) -> Array:
        """Return the world's vertical in axes of the base."""
        w, a, b, c = x.q[3:7]
        return np.stack([2.0 * (a * c - w * b), 2.0 * (b * c + w * a), 1.0 - 2.0 * (a**2 + b**2)])

    def observe(x: Tree) -> Array:
        return np.concatenate([x.q[2:3], vertical(x), x.q[7:] - joints, x.v])

    def reward(x: Tree, targets: Array, x_next: Tree) -> Scalar:
        made = (x_next.q[0] - x.q[0]) / (steps * dt)
        off = (made - speed) ** 2 + (x_next.q[1] - x.q[1]) ** 2 / (steps * dt) ** 2
        return np.exp(-4.0 * off) - 0.01 * np.sum((targets - joints) ** 2)

    most = np.concatenate([[5.0], np.ones(3), np.full(len(joints), np.pi), np.full(robot.nv, 50.0)])
    return Environment(
        dynamics,
        initial,
        action=(joints - reach, joints + reach),
        reward=reward,
        observe=observe,
        observation_limits=(-most, most),
        terminated=lambda x: (x.q[2] < 0.5 * height) | (vertical(x)[2] < 0.5),
        max_steps=max_steps,
        name="Walk",
    )
