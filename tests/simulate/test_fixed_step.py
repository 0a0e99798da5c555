"""discretize: steps of fixed length as compiled functions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

import archimedes as arc
from archimedes.simulate import discretize
from archimedes.spatial import Quaternion

A = np.array([[0.0, 1.0], [-4.0, -0.4]])
B = np.array([0.0, 1.0])


def linear(t, x, u):
    return A @ x + B * u


def taylor(z, order):
    total = term = np.eye(len(z))
    for k in range(1, order + 1):
        term = term @ z / k
        total = total + term
    return total


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("heun", 2), ("rk4", 4)])
def test_step_is_the_truncated_series(method, order):
    step = discretize(linear, dt=0.1, method=method, name="forward")
    assert step.__name__ == "forward"
    x, u = np.array([1.0, -0.5]), 0.7
    augmented = np.zeros((3, 3))
    augmented[:2, :2], augmented[:2, 2] = A, B * u
    expected = (taylor(0.1 * augmented, order) @ [*x, 1.0])[:2]
    assert np.allclose(step(0.0, x, u), expected, rtol=1e-14)


def test_several_steps_and_derivatives():
    step = discretize(linear, dt=0.2, n_steps=20)
    x, u = np.array([1.0, -0.5]), 0.7
    by_x = arc.jac(step, argnums=1)(0.0, x, u)
    assert np.abs(by_x - expm(0.2 * A)).max() < 1e-9
    many = arc.vmap(step, in_axes=(None, 0, None))(0.0, np.stack([x, -x]), u)
    assert np.array_equal(many[0], step(0.0, x, u))


def test_decorator_on_trees_and_projection():
    @arc.struct
    class State:
        att: Quaternion
        w: np.ndarray

    @discretize(dt=0.5)
    def turn(t, x):
        return State(x.att.kinematics(x.w, baumgarte=0.0), np.zeros(3))

    x = State(Quaternion([1.0, 0.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0]))
    for k in range(4):
        x = turn(0.5 * k, x)
    assert isinstance(x, State)
    assert abs(np.linalg.norm(x.att.array) - 1.0) < 1e-15
    assert x.att.array == pytest.approx([np.cos(1.0), 0.0, 0.0, np.sin(1.0)], abs=1e-4)


def test_time_and_static_arguments():
    def f(t, x, kind):
        return {"cubic": 3.0 * t**2, "linear": 1.0}[kind] + 0.0 * x

    step = discretize(f, dt=1.0, n_steps=2, static_argnames="kind")
    assert abs(step(1.0, 1.0, "cubic") - 8.0) < 1e-13
    assert abs(step(1.0, 1.0, "linear") - 2.0) < 1e-13


def test_bad_steps():
    with pytest.raises(ValueError, match=r"give the length of a step, dt="):
        discretize(linear)
    with pytest.raises(ValueError, match=r"dt = -1\.0 must be positive"):
        discretize(linear, dt=-1.0)
    with pytest.raises(ValueError, match="n_steps must be a whole number of at least 1"):
        discretize(linear, dt=1.0, n_steps=0)
