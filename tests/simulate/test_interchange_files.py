"""Trajectories, campaigns and systems in files that other tools read and write."""

from __future__ import annotations

import io

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from archimedes.control import StateSpace, TransferFunction, tf
from archimedes.simulate import Normal, Trajectory, monte_carlo
from archimedes.simulate.campaigns.campaign import Campaign
from archimedes.spatial import Quaternion, RigidBody
from archimedes.tree import field, struct
from tests.optional_packages import import_or_skip

T = np.linspace(0.0, 1.0, 5)


@struct
class Pose:
    pos: np.ndarray = field(units="m")
    angle: np.ndarray = field(units="rad")


def rows(*shape):
    return np.random.default_rng(3).normal(size=shape)


@pytest.fixture
def flight():
    x = RigidBody.State(rows(5, 3), Quaternion(rows(5, 4)), rows(5, 3), rows(5, 3))
    return Trajectory(T, x, u={"F": rows(5)}, message="done", units={"u.F": "N"})


def test_pandas_and_polars_users_read_the_parquet_file(flight, tmp_path):
    pd, parquet = import_or_skip("pandas"), import_or_skip("pyarrow.parquet")
    flight.to_parquet(tmp_path / "x.parquet")
    frame = pd.read_parquet(tmp_path / "x.parquet")
    assert frame["pos[1]"].tolist() == flight.x.pos[:, 1].tolist()
    assert frame.attrs["units"]["v_B[0]"] == "m/s" and frame.attrs["message"] == "done"
    assert parquet.read_schema(tmp_path / "x.parquet").field("u.F").metadata[b"units"] == b"N"


def test_h5py_reads_groups(flight, tmp_path):
    h5py = import_or_skip("h5py")
    flight.to_hdf5(tmp_path / "x.h5")
    with h5py.File(tmp_path / "x.h5") as file:
        assert file["x/pos"][()].tobytes() == flight.x.pos.tobytes()
        assert file["x/pos"].attrs["units"] == "m" and file["u/F"].attrs["units"] == "N"
        assert file["t"][()].tolist() == T.tolist()


def test_xarray_and_netcdf4_read_the_netcdf_file(flight, tmp_path):
    xr = import_or_skip("xarray")
    import_or_skip("h5netcdf")
    flight.to_netcdf(tmp_path / "x.nc")
    with xr.open_dataset(tmp_path / "x.nc", engine="h5netcdf") as data:
        assert data["pos"].dims == ("t", "pos_0") and data["pos"].attrs["units"] == "m"
        assert data["att"].to_numpy().tobytes() == flight.x.att.array.tobytes()


def test_matlab_structs(flight, tmp_path):
    flight.to_mat(tmp_path / "x.mat")
    found = scipy.io.loadmat(tmp_path / "x.mat", simplify_cells=True)
    assert found["x"]["v_B"].tobytes() == np.ascontiguousarray(flight.x.v_B).tobytes()
    assert found["units"]["x"] == {"pos": "m", "v_B": "m/s", "w_B": "rad/s"}
    assert found["t"].tolist() == T.tolist()


def test_events_and_statistics_are_kept_in_files_of_arrays(tmp_path):
    import_or_skip("h5py")
    traj = Trajectory(
        [0.0],
        np.zeros((1, 2)),
        status=-3,
        message="step too small",
        stats={"steps": 4, "method": "rk4"},
        events=[{"t": np.array([0.5])}, {"t": np.zeros(0)}],
        hold="foh",
    )
    for name in ("hdf5", "mat", "npz"):
        getattr(traj, f"to_{name}")(tmp_path / name)
        back = getattr(Trajectory, f"from_{name}")(tmp_path / name)
        assert (back.status, back.message, back.stats) == (
            -3,
            "step too small",
            {"steps": 4, "method": "rk4"},
        )
        assert back.hold == "foh"
        assert back.events[0]["t"].tolist() == [0.5] and back.events[1]["t"].shape == (0,)


@pytest.mark.parametrize("name", ["pandas", "parquet", "xarray", "netcdf", "hdf5", "mat", "npz"])
@pytest.mark.parametrize("lead", [(2, 3, 4), (1, 2), (0,)])
def test_batches_and_empty_trajectories_keep_their_shape(name, lead, tmp_path):
    for package in ("pandas", "xarray", "pyarrow", "h5netcdf"):
        import_or_skip(package)
    t = np.broadcast_to(np.linspace(0.0, 1.0, lead[-1]), lead)
    traj = Trajectory(t, {"a": rows(*lead, 2), "none": None, "empty": np.zeros((*lead, 0))})
    if name in ("pandas", "xarray"):
        back = getattr(Trajectory, f"from_{name}")(getattr(traj, f"to_{name}")())
    else:
        getattr(traj, f"to_{name}")(tmp_path / "x")
        back = getattr(Trajectory, f"from_{name}")(tmp_path / "x")
    assert back.t.shape == lead and back.x["none"] is None
    assert back.x["a"].tobytes() == traj.x["a"].tobytes()
    assert back.x["empty"].shape == (*lead, 0)


def test_a_frame_that_was_edited_says_what_it_has(flight):
    import_or_skip("pandas")
    frame = flight.to_pandas()
    assert isinstance(Trajectory.from_pandas(frame.iloc[1:3]).x.att, Quaternion)
    fewer = Trajectory.from_pandas(frame.drop(columns="att[3]"))
    assert isinstance(fewer.x, dict) and fewer.units["pos[0]"] == "m"
    assert Trajectory.from_pandas(frame.assign(mach=1.0)).names[-1] == "mach"
    batch = Trajectory(np.zeros((2, 1)), np.zeros((2, 1)), status=np.array([0, -1]))
    assert Trajectory.from_pandas(batch.to_pandas().xs(0)).status == -1  # whose it was is lost


# ---- units -------------------------------------------------------------------------------

TABLE = "t (ms),pos[0] (ft),pos[1] (ft),angle (deg)\n0,1,2,90\n1000,0,0,0\n"


def test_units_of_a_table_are_converted_to_those_of_the_fields():
    traj = Trajectory.from_csv(io.StringIO(TABLE), like=Pose(np.zeros(2), 0.0))
    assert traj.t.tolist() == [0.0, 1.0]
    np.testing.assert_allclose(traj.x.pos[0], [0.3048, 0.6096], rtol=1e-15)  # the foot's definition
    np.testing.assert_allclose(traj.x.angle[0], np.pi / 2, rtol=1e-15)


def test_units_of_a_table_are_kept_where_no_field_has_one():
    traj = Trajectory.from_csv(io.StringIO(TABLE))
    assert traj.units == {"pos[0]": "ft", "pos[1]": "ft", "angle": "deg"}
    assert "pos    (2,)  ft" in repr(traj)
    assert traj[1:].to_csv(units=True) == "t (s),pos[0] (ft),pos[1] (ft),angle (deg)\n1.0,0,0,0\n"


def test_units_that_do_not_fit():
    for unit, message in {
        "(kg)": r"from_csv: pos\[0\] is in 'kg', and its field in 'm'",
        "(raw)": r"from_csv: pos\[0\] is in 'raw', not in 'm': 'raw': unknown unit",
    }.items():
        with pytest.raises(ValueError, match=message):
            table = io.StringIO(TABLE.replace("(ft)", unit))
            Trajectory.from_csv(table, like=Pose(np.zeros(2), 0.0))
    with pytest.raises(ValueError, match="t is in 'm', and its field in 's'"):
        Trajectory.from_csv(io.StringIO("t (m),a\n0,1\n"))
    with pytest.raises(TypeError, match="the unit of 'x' must be text such as 'm/s', got 3"):
        Trajectory([0.0], np.zeros(1), units={"x": 3})


# ---- files of others ---------------------------------------------------------------------


def matlab_file(path, **variables):
    scipy.io.savemat(path, variables, do_compression=True)
    return path


def test_variables_of_matlab_are_states(tmp_path):
    x = {"pos": np.ones((5, 3)), "h": T}
    path = matlab_file(tmp_path / "x.mat", t=T, x=x, u=np.ones((1, 5)), units={"x": {"h": "m"}})
    traj = Trajectory.from_mat(path)
    assert traj.x["pos"].shape == (5, 3) and traj.x["h"].tolist() == T.tolist()
    assert traj.u.shape == (5,) and traj.units["h"] == "m"


CELL = np.array([1.0, "a"], dtype=object)
MATLAB = {
    "no variable t with the times": {"x": T},
    r"x has the size 2 x 5, and there are 5 times.*write x'": {"t": T, "x": np.ones((2, 5))},
    "c is a cell array": {"t": T, "x": T, "c": CELL},
    "x is a sparse matrix": {"t": T, "x": scipy.sparse.csc_array(np.eye(5))},
    "x is an array of 2 structs": {"t": T, "x": np.zeros(2, [("a", float)])},
}


@pytest.mark.parametrize("message", MATLAB)
def test_variables_of_matlab_that_are_no_trajectory(tmp_path, message):
    path = matlab_file(tmp_path / "x.mat", **MATLAB[message])
    with pytest.raises(ValueError, match=rf"from_mat: .*x\.mat.*{message}"):
        Trajectory.from_mat(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t;a\n0,5;1,25\n1;2\n", "columns are separated by ';': write commas"),
        ("t\ta\n0\t1\n", r"columns are separated by '\\t': write commas"),
        ("t,a,a[0]\n0,1,2\n", r"the names 'a\[0\]' and 'a' cannot both be columns"),
        (f"t,{'a.' * 10_000}b\n0,1\n", "nested more than 50 deep"),
    ],
    ids=["semicolons", "tabs", "number and array", "deep"],
)
def test_tables_of_text_that_are_no_trajectories(text, message):
    with pytest.raises(ValueError, match=message):
        Trajectory.from_csv(io.StringIO(text))


def test_what_is_no_frame():
    with pytest.raises(TypeError, match="from_pandas: frame must be a DataFrame, got dict"):
        Trajectory.from_pandas({"t": [0.0]})


def test_columns_of_tables_that_are_no_numbers(tmp_path):
    pd = import_or_skip("pandas")
    import_or_skip("pyarrow")
    times = pd.date_range("2024-01-01", periods=3, freq="500ms")
    frame = pd.DataFrame({"t": times, "a": pd.array([1, None, 3], dtype="Int64")})
    frame.to_parquet(tmp_path / "x.parquet")
    traj = Trajectory.from_parquet(tmp_path / "x.parquet")
    assert traj.t.tolist() == [0.0, 0.5, 1.0] and np.isnan(traj.x["a"][1])
    zoned = Trajectory.from_pandas(frame.assign(t=times.tz_localize("Europe/Zurich")))
    assert zoned.t.tolist() == [0.0, 0.5, 1.0]
    frame.assign(note=["x", "y", "z"]).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(ValueError, match=r"x\.parquet: column 'note' holds .* numbers: 'x'"):
        Trajectory.from_parquet(tmp_path / "x.parquet")


def hdf5_file(path, **datasets):
    h5py = import_or_skip("h5py")
    with h5py.File(path, "w") as file:
        file["t"] = T
        for make in datasets.values():
            make(file, h5py)
    return path


HDF5 = {
    "x/a is a link to something else": lambda f, h5py: f.__setitem__(
        "x/a", h5py.ExternalLink("/etc/passwd", "/")
    ),
    "x/a takes its numbers from another file": lambda f, h5py: f.create_dataset(
        "x/a", (5,), "u1", external=[("/etc/passwd", 0, 5)]
    ),
    "x/a claims 40000000000000 bytes": lambda f, h5py: f.create_dataset(
        "x/a", (5, 10**12), "f8", chunks=(1, 1000)
    ),
    "nested more than 50 deep": lambda f, h5py: f.__setitem__("g", f["/"]),
    "x/a holds something other than numbers": lambda f, h5py: f.__setitem__("x/a", ["p"] * 5),
    r"from_hdf5: .*x\.h5 cannot be read as HDF5": None,
}


@pytest.mark.parametrize("message", HDF5)
def test_hdf5_files_that_do_harm(tmp_path, message):
    if HDF5[message] is None:
        (tmp_path / "x.h5").write_bytes(b"no such thing")
    else:
        hdf5_file(tmp_path / "x.h5", bad=HDF5[message])
    with pytest.raises(ValueError, match=message):
        Trajectory.from_hdf5(tmp_path / "x.h5")


def test_datasets_of_others_are_states(tmp_path):
    path = hdf5_file(tmp_path / "x.h5", a=lambda f, h5py: f.__setitem__("x/wing/a", T))
    assert Trajectory.from_hdf5(path).x["wing"]["a"].tolist() == T.tolist()


@pytest.mark.parametrize("name", ["mat", "hdf5", "parquet", "netcdf"])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_damaged_files_are_refused_or_read(tmp_path, name):
    for package in ("h5py", "pyarrow", "h5netcdf"):
        import_or_skip(package)
    good = Trajectory(T, {"a": T, "q": Quaternion(np.ones((5, 4)))}, u=np.zeros((5, 2)))
    getattr(good, f"to_{name}")(tmp_path / "good")
    data, refused = (tmp_path / "good").read_bytes(), 0
    for seed in range(24):
        rng = np.random.default_rng(seed)
        broken = bytearray(data)
        k = int(rng.integers(len(broken) - 8))
        broken[k : k + 8] = rng.bytes(8)
        (tmp_path / "x").write_bytes(broken if seed % 3 else broken[:k])
        try:
            getattr(Trajectory, f"from_{name}")(tmp_path / "x")
        except ValueError as error:
            refused += "from_" in str(error) or "Trajectory:" in str(error)
    assert refused >= 8  # those that were cut, at least


def test_a_class_is_taken_from_this_process_only(tmp_path):
    traj = Trajectory(T, Pose(np.ones((5, 2)), T))
    traj.to_npz(tmp_path / "x.npz")
    assert isinstance(Trajectory.from_npz(tmp_path / "x.npz").x, Pose)
    with np.load(tmp_path / "x.npz") as archive:
        arrays = dict(archive)
    header = str(arrays.pop("header"))
    for name in (
        f"{__name__}:Other",
        "os:system",
        "archimedes.cli.__main__:main",
        "subprocess:Popen",
    ):
        text = header.replace(f"{__name__}:Pose", name)
        assert text != header
        np.savez(tmp_path / "y.npz", header=np.array(text), **arrays)
        back = Trajectory.from_npz(tmp_path / "y.npz")
        assert isinstance(back.x, dict) and list(back.x) == ["pos", "angle"]
    text = header.replace('"leaves": [', '"leaves": [["<f8", [-1]], ')
    np.savez(tmp_path / "y.npz", header=np.array(text), **arrays)
    with pytest.raises(ValueError, match=r"from_npz: .*y\.npz: the structure is damaged"):
        Trajectory.from_npz(tmp_path / "y.npz")


# ---- campaigns ---------------------------------------------------------------------------


def campaign(results, params, messages=None):
    n = len(np.ravel(params["k"]))
    return Campaign(np.arange(n), params, results, n, n, np.zeros(n, int), messages or {})


def test_a_campaign_is_one_dataset(tmp_path):
    xr = import_or_skip("xarray")
    import_or_skip("h5netcdf")
    x = Pose(rows(3, 5, 2), rows(3, 5))
    runs = Trajectory(np.tile(T, (3, 1)), x, u=rows(3, 5), units={"u": "N"})
    found = campaign({"flight": runs, "range": rows(3)}, {"k": T[:3], "fixed": np.array(2.0)})
    found.to_netcdf(tmp_path / "x.nc")
    with xr.open_dataset(tmp_path / "x.nc", engine="h5netcdf") as data:
        assert data["flight.pos"].dims == ("run", "flight.t", "flight.pos_1")
        assert data["flight.pos"].attrs["units"] == "m" and data["flight.u"].attrs["units"] == "N"
        assert data["flight.t"].to_numpy().tolist() == T.tolist()
        assert data["range"].dims == ("run",)
        assert set(data.coords) == {"run", "status", "k", "flight.t"}
        at = data.swap_dims(run="k").sel(k=0.25)  # by a parameter
        assert at["flight.pos"].to_numpy().tobytes() == x.pos[1].tobytes()


def test_axes_of_results_have_names():
    import_or_skip("xarray")
    found = monte_carlo(
        lambda p: {"path": p["k"] * np.ones((4, 2)), "k": p["k"]}, {"k": Normal()}, n=3
    )
    data = found.to_xarray({"path": ("step", "axis")})
    assert data["path"].dims == ("run", "step", "axis") and "params.k" in data.coords
    assert found.to_xarray()["path"].dims == ("run", "path_0", "path_1")
    with pytest.raises(ValueError, match=r"dims\['path'\] has 1 names, and path has 2 axes"):
        found.to_xarray({"path": ("step",)})
    with pytest.raises(ValueError, match=r"dims names 'way'; the results are \['k', 'path'\]"):
        found.to_xarray({"way": ()})


# ---- linear systems ----------------------------------------------------------------------

A, B = np.array([[0.0, 1.0], [-2.0, -0.3]]), np.array([[0.0], [1.0]])


@pytest.mark.parametrize("dt", [None, 0.1])
def test_state_space_systems_in_matlab_files(tmp_path, dt):
    names = {"states": ("angle", "rate"), "inputs": ("F",), "state_units": ("rad", "rad/s")}
    system = StateSpace(A, B, np.eye(2), np.zeros((2, 1)), dt, **names)
    system.to_mat(tmp_path / "x.mat")
    back = StateSpace.from_mat(tmp_path / "x.mat")
    assert all(a.tobytes() == b.tobytes() for a, b in zip(system, back))
    assert (back.dt, back.states, back.inputs, back.state_units) == (dt, *names.values())
    found = scipy.io.loadmat(tmp_path / "x.mat")
    assert found["Ts"] == (dt or 0.0) and found["A"].tobytes("F") == A.tobytes("F")
    assert [cell.item() for cell in found["StateName"].ravel()] == ["angle", "rate"]


def test_transfer_functions_in_matlab_files(tmp_path):
    system = tf([[[1.0], [2.0, 1.0]]], [[[1.0, 2.0], [1.0, 2.0, 3.0]]], inputs=("a", "b"))
    system.to_mat(tmp_path / "x.mat")
    back = TransferFunction.from_mat(tmp_path / "x.mat")
    assert back.inputs == ("a", "b") and back(0.5j).tolist() == system(0.5j).tolist()
    found = scipy.io.loadmat(tmp_path / "x.mat")
    assert found["num"].shape == (1, 2) and found["num"][0, 1].tolist() == [[2.0, 1.0]]
    one = matlab_file(tmp_path / "x.mat", num=[1.0], den=[1.0, 2.0], Ts=0.5)
    assert TransferFunction.from_mat(one).dt == 0.5


SYSTEMS = {
    r"has no variable B; it has \['A'\].*save\('system.mat', 'A', 'B'": {"A": 1.0},
    r"B must be a matrix of shape \(2, n\)": {"A": A, "B": 1.0, "C": B.T, "D": 0.0},
    "A must be a matrix of real numbers": {"A": CELL, "B": 1.0, "C": 1.0, "D": 0.0},
    "Ts must be the length of a step": {"A": 1.0, "B": 1.0, "C": 1.0, "D": 0.0, "Ts": -1.0},
}


@pytest.mark.parametrize("message", SYSTEMS)
def test_matlab_files_that_are_no_systems(tmp_path, message):
    path = matlab_file(tmp_path / "x.mat", **SYSTEMS[message])
    with pytest.raises(ValueError, match=rf"from_mat: .*x\.mat.*{message}"):
        StateSpace.from_mat(path)
