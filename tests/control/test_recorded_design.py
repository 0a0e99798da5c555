"""Linear systems in recorded functions: derivatives, batches, and the same bits in C."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import control as ac

s = ac.tf("s")


def plant_of(k):
    A = np.stack([np.stack([0.0, 1.0]), np.stack([-k, -0.4])])
    return ac.StateSpace(A, [[0.0], [1.0]], [[1.0, 0.0]], [[0.0]])


def slope(f, x, h=1e-5):
    return (f(x + h) - f(x - h)) / (2.0 * h)


FUNCTIONS = {
    "feedback": lambda k: ac.feedback(plant_of(k), 2.0).dcgain()[0, 0],
    "series": lambda k: ac.h2_norm(ac.series(plant_of(k), plant_of(2.0))),
    "parallel": lambda k: ac.h2_norm(plant_of(k) + plant_of(2.0)),
    "step_response": lambda k: ac.step_response(plant_of(k), np.linspace(0.0, 2.0, 21)).y[-1, 0],
    "forced_response": lambda k: ac.forced_response(
        plant_of(k), np.linspace(0.0, 2.0, 21), np.linspace(0.0, 1.0, 21)
    ).y[-1, 0],
    "c2d": lambda k: ac.c2d(plant_of(k), 0.1).A[0, 1],
    "acker": lambda k: ac.acker(*list(plant_of(k))[:2], [-1.0, -2.0])[0, 0],
    "lqr": lambda k: ac.lqr(*list(plant_of(k))[:2], np.eye(2), np.eye(1))[0][0, 0],
    "lqg": lambda k: ac.lqg(plant_of(k), np.eye(2), np.eye(1), np.eye(2), np.eye(1)).A[1, 0],
    "lqi": lambda k: ac.lqi(plant_of(k), np.eye(3), np.eye(1))[0][0, 0],
    "tf": lambda k: ac.h2_norm(ac.ss(k / (s + 1.0) / (s + 2.0))),
    "frequency_response": lambda k: ac.frequency_response(plant_of(k), [1.0]).magnitude[0, 0, 0],
    "pade": lambda k: ac.delay(k).pade(2).A[0, 0],
}


#: Those that take less than a second each.
QUICK = ("feedback", "c2d", "acker", "tf", "frequency_response", "pade")
NAMES = [n if n in QUICK else pytest.param(n, marks=pytest.mark.long) for n in FUNCTIONS]


@pytest.mark.parametrize("name", NAMES)
def test_compiled_and_differentiated(name):
    f = FUNCTIONS[name]
    assert arc.compile(f)(1.5) == pytest.approx(float(f(1.5)), rel=1e-12)
    assert arc.grad(f)(1.5) == pytest.approx(float(slope(f, 1.5)), rel=1e-5, abs=1e-9)
    batch = arc.vmap(f)(np.array([1.0, 1.5]))
    assert batch[1] == pytest.approx(float(f(1.5)), rel=1e-12)


def test_controllers_in_c(tmp_path):
    # A design that adapts: gains by Ackermann's formula on board, and a filter with a delay.
    filters = ac.series(ac.c2d(ac.ss(1.0 / (0.2 * s + 1.0)), 0.1), ac.delay(0.3, dt=0.1))

    def control(stiffness, x, state):
        K = ac.acker(*list(plant_of(stiffness))[:2], [-1.0, -2.0])
        state, u = filters.step(state, -K @ x)
        return state, u

    example = (1.5, np.array([0.1, 0.2]), np.zeros(filters.nstates))
    compiled, plain = arc.compile(control)(*example), control(*example)
    np.testing.assert_allclose(compiled[0], plain[0], rtol=1e-14)
    project = arc.codegen(control, example, output_dir=tmp_path, return_names=["state", "u"])
    assert project.verify(samples=8).outputs == 5
