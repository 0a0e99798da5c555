"""Models that leave as FMUs and come back: the same numbers, names and derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from tests.interchange.fmi.test_import_fmu import VERSIONS

pytestmark = pytest.mark.long

U, P = np.zeros(3), {"g": 9.81, "D": 0.1 * np.eye(3)}
X0 = {"r": np.array([0.0, 0.0, 1.0]), "v": np.array([1.0, 2.0, 3.0])}


def body(t, x, u, p):
    return {"r": x["v"], "v": u - p["g"] * np.array([0.0, 0.0, 1.0]) - p["D"] @ x["v"]}


@pytest.fixture(scope="module", params=VERSIONS)
def path(request, tmp_path_factory):
    """A body in the air as an FMU; 3.0 has arrays, 2.0 numbers."""
    file = tmp_path_factory.mktemp("fmu") / f"body-{request.param}.fmu"
    options = {"kind": ("cs", "me"), "version": request.param, "dt": 0.01, "method": "rk4"}
    arc.export_fmu(body, file, X0, inputs=U, parameters=P, **options)
    return file


def numbers(values) -> np.ndarray:
    """Return the last row of values by name as one vector."""
    return np.concatenate([np.ravel(np.asarray(value)[-1]) for value in values.values()])


def test_co_simulation_has_the_same_bits(path):
    own = arc.solve_ode(body, (0.0, 0.5), X0, args=(U, P), method="rk4", dt=0.01)
    traj = arc.import_fmu(path, trust=True, kind="cs").simulate((0.0, 0.5), dt=0.01)
    np.testing.assert_array_equal(numbers(traj.x), [*own.x["r"][-1], *own.x["v"][-1]])


def test_model_exchange(path):
    own = arc.solve_ode(body, (0.0, 0.5), X0, args=(U, P))
    traj = arc.import_fmu(path, trust=True).simulate((0.0, 0.5))
    np.testing.assert_allclose(numbers(traj.x), [*own.x["r"][-1], *own.x["v"][-1]], atol=1e-10)


def test_each_variable_is_one_line_of_the_report(path):
    fmu = arc.import_fmu(path)
    assert len(fmu.report().splitlines()) == 2 + len(fmu.variables)


def test_jacobian(path):
    fmu = arc.import_fmu(path, trust=True)
    jacobian = arc.jac(lambda x: fmu.dynamics(0.0, x))(np.arange(6.0))
    expected = np.zeros((6, 6))
    expected[:3, 3:] = np.eye(3)
    expected[3:, 3:] = -P["D"]
    np.testing.assert_array_equal(jacobian, expected)


def test_the_first_use_is_in_a_solve(path):
    """Nothing of the FMU changes while a function that calls it is recorded."""
    fmu = arc.import_fmu(path, trust=True)
    x0 = fmu.x0
    traj = arc.solve_ode(lambda t, x: fmu.dynamics(t, x), (0.0, 0.1), x0, method="rk4", dt=0.05)
    own = arc.solve_ode(body, (0.0, 0.1), X0, args=(U, P), method="rk4", dt=0.05)
    np.testing.assert_allclose(numbers(traj.x), [*own.x["r"][-1], *own.x["v"][-1]], rtol=1e-14)


@pytest.mark.parametrize("version", VERSIONS)
def test_events_and_controllers(tmp_path, version):
    """A bouncing ball with a sampled part: events of the state and of time."""

    def ball(t, x, q):
        return np.stack([x[1], -9.81 + q])

    events = arc.Event(
        lambda t, x, q: x[0], direction=-1, reset=lambda t, x, q: np.stack([x[0], -0.8 * x[1]])
    )
    sampled = arc.Sampled(lambda t, x, q: -0.5 * x[1], init=0.0, dt=0.25)
    parts = {"events": events, "sampled": sampled}
    x0, file = np.array([1.0, 0.0]), tmp_path / "ball.fmu"
    arc.export_fmu(ball, file, x0, kind=("cs", "me"), version=version, dt=0.01, **parts)
    own = arc.solve_ode(ball, (0.0, 2.0), x0, **parts)
    fmu = arc.import_fmu(file, trust=True)
    traj = fmu.simulate((0.0, 2.0))
    bounces = traj.events["t"][traj.events["event"] == 0]
    np.testing.assert_allclose(bounces, own.events["t"], atol=1e-9)
    np.testing.assert_allclose(numbers(traj.x), own.x[-1], atol=1e-8)
    solved = arc.solve_ode(fmu.dynamics, (0.0, 2.0), fmu.x0, events=fmu.events)
    np.testing.assert_allclose(numbers(solved.x), own.x[-1], atol=1e-8)
    steps = arc.import_fmu(file, trust=True, kind="cs").simulate((0.0, 2.0), dt=0.01)
    fixed = arc.solve_ode(ball, (0.0, 2.0), x0, method="rk4", dt=0.01, **parts)
    np.testing.assert_array_equal(numbers(steps.x), fixed.x[-1])


def test_balls_that_land_together(tmp_path):
    def fall(t, x):
        return np.concatenate([x[2:], np.full(2, -9.81)])

    def bounce(k):
        def reset(t, x):
            return np.where(np.arange(4) == 2 + k, -0.5 * x, x)

        return arc.Event(lambda t, x: x[k], direction=-1, reset=reset)

    # The second ball lands a rounding error later than the first.
    x0 = np.array([1.0, np.nextafter(1.0, 2.0), 0.0, 0.0])
    arc.export_fmu(
        fall, tmp_path / "balls.fmu", x0, events=[bounce(0), bounce(1)], kind="me", name="balls"
    )
    fmu = arc.import_fmu(tmp_path / "balls.fmu", trust=True)
    traj = fmu.simulate((0.0, 0.8))
    solve = arc.solve_ode(fmu.dynamics, (0.0, 0.8), fmu.x0, events=fmu.events)
    landing = np.sqrt(2.0 / 9.81)
    height = 0.5 * 9.81 * landing * (0.8 - landing) - 0.5 * 9.81 * (0.8 - landing) ** 2
    for end in (traj[-1], solve[-1]):
        np.testing.assert_allclose([end["x[1]"], end["x[2]"]], height, atol=1e-8)
