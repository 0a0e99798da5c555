"""Trajectory: parts, indexing, names and units, text."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import tree
from archimedes.simulate.trajectory.trajectory import Trajectory
from archimedes.spatial import Quaternion, RigidBody


@arc.struct
class Wheel:
    angle: float = arc.field(units="rad")
    slip: np.ndarray = arc.field()


@arc.struct
class Car:
    wheels: list
    pos: np.ndarray = arc.field(units="m")
    gear: int = arc.field(metadata={"units": "1"})
    mode: str = arc.field(static=True, default="road")


def tumbling(m=6):
    t = np.linspace(0.0, 1.0, m)
    k = np.arange(m, dtype=float)[:, None]
    x = RigidBody.State(
        pos=k * [1.0, 2.0, 3.0],
        att=Quaternion(np.tile([1.0, 0.0, 0.0, 0.0], (m, 1))),
        v_B=k + np.zeros(3),
        w_B=-k + np.zeros(3),
    )
    return Trajectory(t, x, message="done", stats={"steps": 5})


def batch(n=3, m=4):
    t = np.broadcast_to(np.linspace(0.0, 3.0, m), (n, m)).copy()
    t[1, 3:] = np.nan
    x = {"a": np.arange(n * m, dtype=float).reshape(n, m), "b": np.zeros((n, m, 2))}
    stats = {"steps": np.array([7, 8, 9]), "threads": 2}
    return Trajectory(t, x, status=np.array([0, -2, 1]), stats=stats)


def test_fields_of_one_solve():
    traj = tumbling()
    assert traj.t.shape == (6,) and traj.batch_shape == () and len(traj) == 6
    assert traj.success is True and traj.status == 0 and traj.message == "done"
    assert traj.u is None and traj.y is None and traj.events is None
    assert Trajectory([0, 1], np.eye(2)).t.dtype == np.float64
    assert Trajectory([0], np.ones((1, 1)), status=-1).success is False


def test_integer_index_gives_the_state():
    last = tumbling()[-1]
    assert isinstance(last, RigidBody.State) and isinstance(last.att, Quaternion)
    np.testing.assert_array_equal(last.pos, [5.0, 10.0, 15.0])
    np.testing.assert_array_equal(tumbling().final.pos, last.pos)
    np.testing.assert_array_equal([x.pos[0] for x in tumbling()], np.arange(6.0))


def test_slices_are_trajectories():
    traj = tumbling()
    part = traj[2:5]
    assert isinstance(part, Trajectory) and part.message == "done" and part.stats == {"steps": 5}
    np.testing.assert_array_equal(part.t, traj.t[2:5])
    np.testing.assert_array_equal(part.x.pos, traj.x.pos[2:5])
    np.testing.assert_array_equal(traj[::-1].t, traj.t[::-1])
    np.testing.assert_array_equal(traj[[0, 5]].t, [0.0, 1.0])
    np.testing.assert_array_equal(traj[traj.t > 0.5].t, traj.t[traj.t > 0.5])


def test_between_goes_both_ways_in_time():
    traj = tumbling()
    np.testing.assert_array_equal(traj.between(0.15, 0.65).t, traj.t[1:4])
    np.testing.assert_array_equal(traj[::-1].between(0.65, 0.15).t, traj.t[3:0:-1])
    assert len(traj.between(5.0, 6.0)) == 0


def test_inputs_and_outputs_are_cut_along():
    t = np.arange(4.0)
    traj = Trajectory(t, t[:, None], u={"F": t * 2}, y=t * 3)
    np.testing.assert_array_equal(traj[1:3].u["F"], [2.0, 4.0])
    np.testing.assert_array_equal(traj[1:3].y, [3.0, 6.0])


def test_batch_index():
    many = batch()
    assert many.batch_shape == (3,) and len(many) == 3
    np.testing.assert_array_equal(many.success, [True, False, True])
    one = many[2]
    assert one.success is True and one.status == 1 and one.stats == {"steps": 9, "threads": 2}
    np.testing.assert_array_equal(one.x["a"], [8.0, 9.0, 10.0, 11.0])
    some = many[[0, 2]]
    assert some.batch_shape == (2,) and list(some.stats["steps"]) == [7, 9]
    np.testing.assert_array_equal(many[:, 0]["a"], [0.0, 4.0, 8.0])
    np.testing.assert_array_equal(many[1, 2]["a"], 6.0)
    assert many[:, 1:3].t.shape == (3, 2)


def test_an_instance_that_ended_early_loses_its_filling():
    many = batch()
    assert len(many[1]) == 3 and many[1].status == -2
    np.testing.assert_array_equal(many.final["a"], [3.0, 6.0, 11.0])
    assert [len(one) for one in many] == [4, 3, 4]


def test_dense_output_is_called():
    class Dense:
        def __call__(self, t):
            return {"a": 10.0 * np.asarray(t)}

    t = np.arange(3.0)
    traj = Trajectory(t, {"a": 10.0 * t}, dense=Dense())
    assert traj(0.25) == {"a": 2.5}
    assert traj[1:](0.25) == {"a": 2.5}
    with pytest.raises(ValueError, match=r"no dense output.*dense=True.*t_eval"):
        tumbling()(0.3)


def test_dense_output_of_a_batch_follows_the_index():
    class Dense:
        def __init__(self, slopes):
            self.slopes = slopes

        def __call__(self, t):
            return self.slopes * t

        def __getitem__(self, key):
            return Dense(self.slopes[key])

    t = np.zeros((2, 1))
    many = Trajectory(t, t, dense=Dense(np.array([1.0, 5.0])))
    assert many[1](2.0) == 10.0
    assert many[[1, 0], :](1.0).tolist() == [5.0, 1.0]


def test_names_and_units():
    traj = tumbling()
    assert traj.names[:5] == ["pos[0]", "pos[1]", "pos[2]", "att[0]", "att[1]"]
    assert traj.units["pos[2]"] == "m" and traj.units["w_B[0]"] == "rad/s"
    assert traj.units["att[3]"] == ""
    car = Car([Wheel(np.zeros(2), np.zeros((2, 2))) for _ in range(2)], np.zeros(2), np.ones(2))
    names = Trajectory([0.0, 1.0], car).units
    assert names == {
        "wheels[0].angle": "rad",
        "wheels[0].slip[0]": "",
        "wheels[0].slip[1]": "",
        "wheels[1].angle": "rad",
        "wheels[1].slip[0]": "",
        "wheels[1].slip[1]": "",
        "pos": "m",
        "gear": "1",
    }
    assert Trajectory([0.0], np.zeros((1, 2, 2))).names == ["x[0,0]", "x[0,1]", "x[1,0]", "x[1,1]"]
    assert Trajectory([0.0], np.zeros(1)).names == ["x"]
    assert Trajectory([0.0], {"b": np.ones(1), "a c": np.ones(1)}).names == ["x['a c']", "b"]


def test_columns_by_name():
    traj = tumbling()
    np.testing.assert_array_equal(traj["pos[1]"], traj.x.pos[:, 1])
    np.testing.assert_array_equal(traj["x.pos[1]"], traj.x.pos[:, 1])
    assert traj["att"].shape == (6, 4)
    t = np.arange(2.0)
    both = Trajectory(t, t[:, None], u={"F": t}, y=t[:, None] + 1)
    assert both["u.F"].tolist() == [0.0, 1.0] and both["y[0]"].tolist() == [1.0, 2.0]
    with pytest.raises(KeyError, match=r"no column 'speed'; there are \['pos\[0\]'"):
        traj["speed"]


def test_bad_shapes_and_indices():
    with pytest.raises(arc.StructError, match=r"t has shape \(3,\).*x\['a'\].*\(2,\)"):
        Trajectory(np.arange(3.0), {"a": np.zeros(2)})
    with pytest.raises(ValueError, match=r"t must have shape \(m,\)"):
        Trajectory(0.0, 1.0)
    with pytest.raises(IndexError, match=r"2 entries and this trajectory 1 axes"):
        tumbling()[0, 1]
    for key in (None, ..., 0.5, [[0, 1]]):
        with pytest.raises(IndexError, match=r"whole numbers, slices|between"):
            tumbling()[key]
    with pytest.raises(IndexError, match="out of bounds"):
        tumbling()[6]


def test_text_is_aligned_as_scipy_results_are():
    assert repr(tumbling()).splitlines() == [
        " message: done",
        " success: True",
        "  status: 0",
        "       t: 0 to 1, 6 samples",
        "       x: RigidBody.State",
        "            pos  (3,)  m",
        "            att  (4,)",
        "            v_B  (3,)  m/s",
        "            w_B  (3,)  rad/s",
        "   stats: steps 5",
    ]
    many = repr(batch())
    assert "2 of 3" in many and "3 trajectories, 0 to 3, 4 samples" in many
    assert "steps 7 to 9, threads 2" in many
    events = {"t": np.array([0.25, 0.5]), "event": np.array([0, 1])}
    assert "  events: 2, at t = 0.25, 0.5" in repr(Trajectory([0.0], np.zeros(1), events=events))
    assert "no samples" in repr(Trajectory(np.zeros(0), np.zeros((0, 2))))


def test_html_names_units_and_escapes():
    html = tumbling()._repr_html_()
    assert "<td>pos[2] (m)</td><td>0</td><td>15</td><td>0</td><td>15</td>" in html
    odd = Trajectory([0.0], {"a<b": np.ones(1)}, message="<script>")._repr_html_()
    assert "<script>" not in odd and "a&lt;b" in odd
    assert "<table>" in batch()._repr_html_()
    assert "<table>" in Trajectory(np.zeros(0), np.zeros((0, 2)))._repr_html_()


def test_a_trajectory_is_a_tree():
    doubled = tree.map(lambda leaf: 2 * np.asarray(leaf), tumbling())
    np.testing.assert_array_equal(doubled.x.pos[-1], [10.0, 20.0, 30.0])
    assert doubled.message == "" and doubled.dense is None


def test_functions_return_trajectories():
    def model(rate):
        t = np.linspace(0.0, 1.0, 3)
        return Trajectory(t, {"a": rate * t}, u=rate * t)

    many = arc.vmap(model)(np.array([1.0, 4.0]))
    assert many.t.shape == (2, 3) and many.status.tolist() == [0, 0]
    np.testing.assert_array_equal(many[1].x["a"], [0.0, 2.0, 4.0])
