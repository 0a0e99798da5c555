"""Trajectories as the solver makes them: dense output, batches, events, files."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest

from archimedes.simulate import Trajectory, solve_ode
from archimedes.simulate.events.event import Event


def decay(t, x, rate):
    return {"a": -rate * x["a"]}


def test_one_solve():
    traj = solve_ode(decay, (0.0, 2.0), {"a": np.ones(2)}, args=(0.5,))
    assert traj.success and traj.names == ["a[0]", "a[1]"]
    np.testing.assert_allclose(traj(1.234)["a"], np.exp(-0.5 * 1.234), rtol=1e-7)
    np.testing.assert_allclose(traj([0.3, 0.4])["a"][1], np.exp(-0.2), rtol=1e-7)
    np.testing.assert_array_equal(traj[2:](1.0)["a"], traj(1.0)["a"])
    np.testing.assert_array_equal(traj.final["a"], traj[-1]["a"])


def test_a_batch_and_its_parts():
    rates = np.array([0.5, 1.0, 2.0])
    options = {"args": (rates,), "in_axes": (None, 0), "dense": True}
    many = solve_ode(decay, (0.0, 2.0), {"a": np.ones(2)}, **options)
    assert many.batch_shape == (3,) and many.success.all()
    for k, rate in enumerate(rates):
        one = many[k]
        assert not np.isnan(one.t).any() and one.t[-1] == 2.0
        np.testing.assert_allclose(one(0.7)["a"], np.exp(-rate * 0.7), rtol=1e-7)
        np.testing.assert_allclose(many.final["a"][k], np.exp(-2.0 * rate), rtol=1e-7)
    np.testing.assert_array_equal(many[[2, 0]](0.7)["a"][1], many[0](0.7)["a"])
    back = Trajectory.from_csv(io.StringIO(many.to_csv()), like=many[0][0])
    assert back[1].x["a"].tobytes() == many[1].x["a"].tobytes()


def test_what_the_solver_says_survives_a_file():
    half = Event(lambda t, x, rate: x["a"][0] - 0.5)
    traj = solve_ode(decay, (0.0, 2.0), {"a": np.ones(2)}, args=(1.0,), events=half)
    assert "events: 1, at t = 0.693147" in repr(traj)
    file = io.BytesIO()
    traj.to_npz(file)
    file.seek(0)
    back = Trajectory.from_npz(file, like=traj[0])
    assert back.stats == traj.stats and back.message == traj.message
    assert back.events["t"].tobytes() == traj.events["t"].tobytes()
    assert back.events["x_after"]["a"].tobytes() == traj.events["x_after"]["a"].tobytes()


def test_pickled():
    traj = solve_ode(decay, (0.0, 2.0), {"a": np.ones(2)}, args=(0.5,), t_eval=[0.0, 1.0])
    again = pickle.loads(pickle.dumps(traj))
    assert again.x["a"].tobytes() == traj.x["a"].tobytes() and again.stats == traj.stats


def test_trajectories_of_parts_and_of_arrays_are_pickled_and_copied():
    whole = Trajectory(np.arange(3.0), {"a": np.ones((3, 2))}, units={"a": "m"})
    for traj in (whole, whole[1:]):
        for again in (pickle.loads(pickle.dumps(traj)), copy.deepcopy(traj), copy.copy(traj)):
            assert again.t.tobytes() == traj.t.tobytes() and again.units == traj.units
            with pytest.raises(TypeError):
                again.given_units["a"] = "ft"
