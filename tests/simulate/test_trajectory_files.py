"""Trajectories written and read back: the same numbers, bit for bit."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import archimedes as arc
from archimedes import tree
from archimedes.simulate.trajectory.trajectory import Trajectory
from archimedes.spatial import EulerAngles, Quaternion, RigidBody
from tests.optional_packages import import_or_skip

ROUTES = {
    "csv": lambda traj, **like: Trajectory.from_csv(io.StringIO(traj.to_csv()), **like),
    "csv with units": lambda traj, **like: Trajectory.from_csv(
        io.StringIO(traj.to_csv(units=True)), **like
    ),
    "pandas": lambda traj, **like: Trajectory.from_pandas(traj.to_pandas(), **like),
    "xarray": lambda traj, **like: Trajectory.from_xarray(traj.to_xarray(), **like),
}
#: Formats that are written to a file, with what reads them.
FILES = {"npz": "numpy", "hdf5": "h5py", "mat": "scipy", "parquet": "pyarrow", "netcdf": "h5netcdf"}
NEEDED = {"pandas": "pandas", "xarray": "xarray", **FILES}


def through_file(name):
    def there_and_back(traj, **like):
        file = io.BytesIO()
        getattr(traj, f"to_{name}")(file)
        file.seek(0)
        return getattr(Trajectory, f"from_{name}")(file, **like)

    return there_and_back


ROUTES |= {name: through_file(name) for name in FILES}
through_npz = ROUTES["npz"]


@pytest.fixture(params=ROUTES)
def route(request):
    import_or_skip(NEEDED.get(request.param, "numpy"))
    return ROUTES[request.param]


def assert_same(a, b):
    assert tree.structure(a) is tree.structure(b), tree.structure(a).difference(tree.structure(b))
    for one, other in zip(tree.leaves(a), tree.leaves(b)):
        assert one.dtype == other.dtype and one.shape == other.shape
        assert one.tobytes() == other.tobytes()


def random_states(lead, att=Quaternion, seed=0):
    rng = np.random.default_rng(seed)
    n = 4 if att is Quaternion else 3
    return RigidBody.State(
        rng.normal(size=(*lead, 3)),
        att(rng.normal(size=(*lead, n))),
        rng.normal(size=(*lead, 3)) * 1e-300,
        rng.normal(size=(*lead, 3)) * 1e300,
    )


def test_structs_come_back_as_they_were(route):
    t = np.sort(np.random.default_rng(1).uniform(size=7))
    for att in (Quaternion, EulerAngles):
        traj = Trajectory(t, random_states((7,), att))
        back = route(traj, like=traj[0])
        assert_same(back.x, traj.x)
        assert back.t.tobytes() == t.tobytes()
        assert back.names == traj.names and back.units == traj.units


def test_arrays_need_no_like(route):
    t = np.linspace(0.0, 1.0, 5)
    for shape in ((), (1,), (3,), (2, 2)):
        traj = Trajectory(t, np.random.default_rng(2).normal(size=(5, *shape)))
        assert_same(route(traj).x, traj.x)
        assert_same(route(traj, like=traj[0]).x, traj.x)


@pytest.mark.parametrize("name", ROUTES)
def test_structs_need_no_like_where_the_file_says_what_they_are(name):
    import_or_skip(NEEDED.get(name, "numpy"))
    traj = Trajectory(np.arange(4.0), random_states((4,), EulerAngles), u=[np.ones(4), None])
    back = ROUTES[name](traj)
    if name in ("csv", "csv with units"):  # a header line, and nothing else
        assert list(back.x) == ["pos", "att", "v_B", "w_B"]
        assert back.x["att"].tobytes() == traj.x.att.array.tobytes()
    else:
        assert_same(back.x, traj.x)
        assert_same(back.u, traj.u)
    assert back.names == traj.names
    assert back.units == (dict.fromkeys(traj.names, "") if name == "csv" else traj.units)


@pytest.mark.parametrize(
    "u", [np.arange(4.0), np.ones((4, 2)), {"F": np.ones(4), "M": np.zeros(4)}]
)
@pytest.mark.parametrize("x", [np.ones((4, 2)), {"u": np.ones(4), "y": np.zeros((4, 2))}])
def test_inputs_and_outputs_come_along(route, x, u):
    traj = Trajectory(np.arange(4.0), x, u=u, y={"z": np.full(4, 2.5)})
    for likes in ({}, {"like": traj[0]}):
        back = route(traj, **likes)
        for part in ("x", "u", "y"):
            mine, theirs = (tree.leaves(getattr(one, part)) for one in (traj, back))
            assert [a.tolist() for a in mine] == [a.tolist() for a in theirs]


def test_states_called_like_the_time_or_the_run(route):
    traj = Trajectory(np.arange(2.0), {"t": np.ones(2), "run": np.zeros(2)})
    back = route(traj)
    assert back.t.tolist() == [0.0, 1.0] and back.x["t"].tolist() == [1.0, 1.0]


KEYS = [
    "a\nb",
    "a\\nb",
    "it's",
    'say "x"',
    "both ' and \"",
    "['q']",
    "a.b",
    "a[0]",
    "\r",
    "é",
    "tab\t",
]


@pytest.mark.parametrize("key", KEYS)
def test_every_key_of_a_dict_survives(route, key):
    traj = Trajectory(np.arange(3.0), {key: np.arange(3.0), "other": np.ones((3, 2))})
    for likes in ({}, {"like": traj[0]}):
        back = route(traj, **likes)
        assert set(back.x) == {key, "other"}
        assert back.x[key].tolist() == [0.0, 1.0, 2.0]


def test_a_key_that_is_no_text_is_named():
    table = "t,x['\\N{no such letter}']\n0.0,1.0\n"
    with pytest.raises(ValueError, match="has a key that is not text"):
        Trajectory.from_csv(io.StringIO(table))


def test_batches_with_instances_that_ended_early(route):
    t = np.tile(np.linspace(0.0, 1.0, 4), (3, 1))
    t[1, 2:] = np.nan
    status = np.array([0, -1, 0])
    traj = Trajectory(t, random_states((3, 4)), status=status)
    back = route(traj, like=traj[0][0])
    assert back.t.tobytes() == t.tobytes()
    for k in range(3):
        assert_same(back[k].x, traj[k].x)
        assert len(back[k]) == len(traj[k])


def test_whole_numbers_and_truth_values_keep_their_type(route):
    x = {"count": np.array([1, 2**62 + 1]), "on": np.array([True, False])}
    traj = Trajectory(np.arange(2.0), x)
    assert_same(route(traj, like=traj[0]).x, traj.x)


@pytest.mark.parametrize("name", ROUTES)
def test_complex_numbers_are_kept_or_refused(name):
    import_or_skip(NEEDED.get(name, "numpy"))
    traj = Trajectory(np.arange(2.0), {"z": np.array([1 + 2j, np.nan])})
    if name not in ("parquet", "netcdf"):
        assert_same(ROUTES[name](traj, like=traj[0]).x, traj.x)
        return
    with pytest.raises(TypeError, match=rf"to_{name}: z has the dtype complex128.*to_hdf5"):
        ROUTES[name](traj)


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 4), st.just(2))))
def test_every_number_survives(x):
    traj = Trajectory(np.arange(float(len(x))), x)
    back = Trajectory.from_csv(io.StringIO(traj.to_csv()))
    nan = np.isnan(x)
    assert np.array_equal(np.isnan(back.x), nan)
    assert back.x[~nan].tobytes() == x[~nan].tobytes()
    assert through_npz(traj).x.tobytes() == x.tobytes()


def test_what_the_csv_looks_like(tmp_path):
    traj = Trajectory([0.0, 0.1], {"pos": np.array([[1.0, 0.1], [2.0, np.inf]])})
    assert traj.to_csv() == "t,pos[0],pos[1]\n0.0,1.0,0.1\n0.1,2.0,inf\n"
    path = tmp_path / "run.csv"
    Trajectory([0.0], random_states((1,))).to_csv(path, units=True)
    header = path.read_text().splitlines()[0]
    assert header.startswith("t (s),pos[0] (m),pos[1] (m),pos[2] (m),att[0],")
    assert Trajectory.from_csv(path).names[0] == "pos[0]"


def test_what_the_frame_looks_like():
    traj = Trajectory([0.0, 0.1], random_states((2,)), message="done")
    frame = traj.to_pandas()
    assert frame.index.name == "t" and list(frame.columns) == traj.names
    assert frame.attrs["units"]["w_B[2]"] == "rad/s" and frame.attrs["message"] == "done"
    many = Trajectory(np.zeros((2, 1)), np.zeros((2, 1, 1))).to_pandas()
    assert many.index.names == ["run", "t"]


def test_what_the_dataset_looks_like():
    traj = Trajectory([0.0, 0.1], random_states((2,)))
    data = traj.to_xarray()
    assert data["pos"].dims == ("t", "pos_0") and data["pos"].attrs["units"] == "m"
    many = Trajectory(np.zeros((2, 1)), np.zeros((2, 1, 3))).to_xarray()
    assert many["x"].dims == ("run", "t", "x_0")


def test_npz_keeps_what_the_solver_said(tmp_path):
    path = tmp_path / "run.archive"
    events = [
        {"t": np.array([0.5]), "x": np.ones((1, 2))},
        {"t": np.zeros(0), "x": np.ones((0, 2))},
    ]
    Trajectory(
        [0.0],
        np.zeros((1, 2)),
        status=-3,
        message="step too small",
        stats={"steps": 4, "h": 0.5},
        events=events,
    ).to_npz(path, compressed=True)
    back = Trajectory.from_npz(path)
    assert (back.status, back.message) == (-3, "step too small")
    assert back.stats == {"steps": 4, "h": 0.5}
    assert back.events[0]["t"].tolist() == [0.5] and back.events[1]["x"].shape == (0, 2)
    assert back.success is False


def test_files_that_are_something_else(tmp_path):
    empty, text, other = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "c.npz"
    empty.write_text("")
    with pytest.raises(ValueError, match="is empty; it needs a header line"):
        Trajectory.from_csv(empty)
    text.write_text("time,a\n0,1\n")
    with pytest.raises(ValueError, match=r"no column named t; there are \['time', 'a'\]"):
        Trajectory.from_csv(text)
    text.write_text("t,a\n0,1\n1\n")
    with pytest.raises(ValueError, match="line 3 has 1 values, the header 2"):
        Trajectory.from_csv(text)
    text.write_text("t,a\n0,fast\n")
    with pytest.raises(ValueError, match="column 'a' holds something other than numbers: 'fast'"):
        Trajectory.from_csv(text)
    with pytest.raises(ValueError, match="not an archive of to_npz"):
        Trajectory.from_npz(text)
    np.savez(other, a=np.zeros(2))
    with pytest.raises(ValueError, match="not an archive of to_npz"):
        Trajectory.from_npz(other)
    np.savez(other, header=np.array('{"format": "else"}'))
    with pytest.raises(ValueError, match="an archive, but not of a trajectory"):
        Trajectory.from_npz(other)


def test_pickles_are_refused(tmp_path):
    path = tmp_path / "evil.npz"
    np.savez(path, header=np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="not an archive of to_npz"):
        Trajectory.from_npz(path)
    with pytest.raises(TypeError, match=r"x\.a holds Python objects"):
        Trajectory([0.0], {"a": np.array([object()])}).to_npz(path)


def test_like_that_does_not_fit(route):
    traj = Trajectory(np.arange(2.0), {"a": np.zeros((2, 2)), "b": np.zeros(2)})
    with pytest.raises(ValueError, match=r"x\.c, which like has with shape \(\), is not there"):
        route(traj, like={"a": np.zeros(2), "b": 0.0, "c": 0.0})
    with pytest.raises(ValueError, match=r"no leaf for \['b'\]|no leaf for \['x.b'\]"):
        route(traj, like={"a": np.zeros(2)})
    with pytest.raises(ValueError, match=r"a.*shape|is not there|no place"):
        route(traj, like={"a": np.zeros(3), "b": 0.0})


@pytest.mark.parametrize("name", ["pandas", "xarray"])
def test_missing_packages_are_named(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=rf'needs {name}: pip install .*\[data\]"'):
        getattr(Trajectory([0.0], np.zeros(1)), f"to_{name}")()


def test_errors_are_ours():
    from archimedes.simulate.trajectory.exports import MissingExtra

    assert issubclass(MissingExtra, arc.ArchimedesError)


@pytest.mark.parametrize(
    "x",
    [
        (np.arange(3.0), np.ones((3, 2))),
        {"a": (np.arange(3.0), {"b": np.ones(3)})},
        {"a": (np.ones((3, 2)), np.arange(3.0)), "b": np.ones((3, 2, 2))},
    ],
    ids=["number, array", "number, dict", "array, number"],
)
def test_lists_of_numbers_and_arrays_come_back_from_csv(x):
    back = ROUTES["csv"](Trajectory(np.arange(3.0), x)).x
    assert [leaf.shape for leaf in tree.leaves(back)] == [leaf.shape for leaf in tree.leaves(x)]
    for one, other in zip(tree.leaves(back), tree.leaves(x)):
        assert one.tobytes() == other.tobytes()
