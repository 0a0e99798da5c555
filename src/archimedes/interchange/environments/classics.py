"""Classic tasks: a pole on a cart, a pendulum to swing up; with Gymnasium's equations.

Sources: A. G. Barto, R. S. Sutton, C. W. Anderson, Neuronlike adaptive elements that can solve
difficult learning control problems, IEEE Trans. SMC 13, 1983; Gymnasium's CartPole-v1 and
Pendulum-v1, whose constants these are.
"""

from __future__ import annotations

import numpy as np

from archimedes import random
from archimedes.interchange.environments.environment import Environment
from archimedes.typing import Array, Scalar

__all__ = ["cart_pole", "pendulum"]


def cart_pole() -> Environment:
    """Return a pole on a cart, which is pushed left or right to keep it up: CartPole-v1.

    The state is position, velocity, angle from upright, and its rate; the reward is 1 for each
    step. An episode ends when the pole leans by 12 degrees or the cart is 2.4 m away, or after 500
    steps of 20 ms.

    Examples
    --------
    >>> from archimedes.interchange.environments import cart_pole
    >>> cart_pole()
    <CartPole: action 2 choices, observation (4,), 500 steps at most>
    """
    gravity, cart, pole, length, step = 9.8, 1.0, 0.1, 0.5, 0.02
    lean, far = 12.0 * 2.0 * np.pi / 360.0, 2.4

    def dynamics(x: Array, choice: Scalar) -> Array:
        _, speed, angle, rate = x
        force = np.where(choice == 1, 10.0, -10.0)
        sin, cos = np.sin(angle), np.cos(angle)
        push = (force + pole * length * rate**2 * sin) / (cart + pole)
        turn = (gravity * sin - cos * push) / (length * (4.0 / 3.0 - pole * cos**2 / (cart + pole)))
        pull = push - pole * length * turn * cos / (cart + pole)
        return x + step * np.stack([speed, pull, rate, turn])

    return Environment(
        dynamics,
        initial=lambda key: random.uniform(key, (4,), -0.05, 0.05),
        action=2,
        reward=lambda x, u, x_next: 1.0,
        observation_limits=(
            -np.array([2.0 * far, 100.0, 2.0 * lean, 100.0]),
            np.array([2.0 * far, 100.0, 2.0 * lean, 100.0]),
        ),
        terminated=lambda x: (np.abs(x[0]) > far) | (np.abs(x[2]) > lean),
        max_steps=500,
        name="CartPole",
    )


def pendulum() -> Environment:
    """Return a pendulum to swing up by a torque of up to 2 N m: Pendulum-v1.

    The state is the angle from upright and its rate, the observation cosine, sine and rate. The
    reward falls with the squares of angle, rate and torque. An episode takes 200 steps of 50 ms.

    Examples
    --------
    >>> from archimedes.interchange.environments import pendulum
    >>> pendulum()
    <Pendulum: action 1 numbers, observation (3,), 200 steps at most>
    """
    gravity, mass, length, step, fastest = 10.0, 1.0, 1.0, 0.05, 8.0

    def dynamics(x: Array, torque: Scalar) -> Array:
        angle, rate = x
        turn = 3.0 * gravity / (2.0 * length) * np.sin(angle) + 3.0 / (mass * length**2) * torque
        rate = np.clip(rate + turn * step, -fastest, fastest)
        return np.stack([angle + rate * step, rate])

    def reward(x: Array, torque: Scalar, x_next: Array) -> Scalar:
        angle = (x[0] + np.pi) % (2.0 * np.pi) - np.pi
        return -(angle**2 + 0.1 * x[1] ** 2 + 0.001 * torque**2)

    return Environment(
        dynamics,
        initial=lambda key: random.uniform(key, (2,), -1.0, 1.0) * np.array([np.pi, 1.0]),
        action=(-2.0, 2.0),
        reward=reward,
        observe=lambda x: np.stack([np.cos(x[0]), np.sin(x[0]), x[1]]),
        observation_limits=(-np.array([1.0, 1.0, fastest]), np.array([1.0, 1.0, fastest])),
        max_steps=200,
        name="Pendulum",
    )
