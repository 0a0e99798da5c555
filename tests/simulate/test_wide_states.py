"""Wide states: solves by explicit methods are kernels whose code does not grow with the state."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import archimedes as arc
from archimedes import Event
from archimedes.function.recording_store import store
from archimedes.simulate.stepping import solve_kernels


def ring(t, x, a):
    return np.sin(np.roll(x, 1)) * a - x * np.cos(x) + np.exp(-t)


WAYS = {
    "every step": {},
    "interpolants": {"dense": True},
    "fixed steps": {"method": "rk4", "dt": 0.1},
    "many outputs": {"t_eval": np.linspace(0.0, 2.0, 50)},
    "few outputs": {"t_eval": np.linspace(0.0, 2.0, 5)},
    "back in time": {"t_eval": np.linspace(2.0, 0.0, 40)},
    "events": {
        "events": [Event(lambda t, x, a: x[3] - 0.5, reset=lambda t, x, a: x * 0.5)],
        "method": "tsit5",
    },
}


@pytest.mark.long_cases(
    "back in time", "every step", "few outputs", "fixed steps", "interpolants", "many outputs"
)
@pytest.mark.parametrize("way", WAYS)
def test_kernels_have_the_bits_of_steps_in_python(monkeypatch, way):
    span = (2.0, 0.0) if way == "back in time" else (0.0, 2.0)
    found = []
    for where in (False, True):
        monkeypatch.setattr(solve_kernels, "in_python", lambda plan, where=where: where)
        store.clear()
        start = np.linspace(0.0, 1.0, 100)
        found.append(arc.solve_ode(ring, span, start, args=(1.3,), rtol=1e-6, **WAYS[way]))
    kernel, python = found
    assert kernel.success
    assert np.array_equal(kernel.t, python.t)
    assert np.array_equal(kernel.x, python.x)
    assert kernel.stats == python.stats
    assert len(kernel.t) > 4


def test_code_does_not_grow_with_the_state():
    sizes = []
    for n in (100, 1000):
        store.clear()
        assert arc.solve_ode(ring, (0.0, 0.1), np.linspace(0.0, 1.0, n), args=(1.3,)).success
        (kernels,) = store.values()
        repeated = kernels.made["one", False]
        (one,) = repeated._known.values()
        sizes.append(one.tiers.backend and one.kernel.figures().code_bytes)
    assert sizes[1] < 1.1 * sizes[0]
    assert sizes[1] < 200_000


def test_against_scipy():
    start = np.linspace(0.0, 1.0, 200)
    found = arc.solve_ode(ring, (0.0, 3.0), start, args=(1.3,))
    expected = solve_ivp(ring, (0.0, 3.0), start, "DOP853", args=(1.3,), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(found.x[-1], expected.y[:, -1], rtol=1e-7, atol=1e-8)


@pytest.mark.long
def test_functions_written_element_by_element():
    def heat(t, u):
        du = np.zeros_like(u)
        for k in range(1, len(u) - 1):
            du[k] = u[k + 1] - 2.0 * u[k] + u[k - 1]
        return du

    def whole(t, u):
        du = np.zeros_like(u)
        du[1:-1] = u[2:] - 2.0 * u[1:-1] + u[:-2]
        return du

    start = np.sin(np.linspace(0.0, np.pi, 150))
    ways = [arc.solve_ode(f, (0.0, 1.0), start) for f in (heat, whole)]
    assert np.array_equal(ways[0].x, ways[1].x)
