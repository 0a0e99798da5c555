"""Files of trajectories that are damaged, or made to do harm: refused at once, by name."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from archimedes.simulate import Trajectory

T = np.linspace(0.0, 1.0, 5)
GOOD = Trajectory(T, {"a": np.arange(5.0), "b": np.ones((5, 2))})
TABLE = "t,a,b[0],b[1]\n0.0,0.0,1.0,1.0\n0.5,2.0,1.0,1.0\n"


def stored(array) -> bytes:
    data = io.BytesIO()
    np.save(data, array, allow_pickle=True)
    return data.getvalue()


def archive(changes: dict[str, bytes | None]) -> bytes:
    """The archive of a good trajectory with some members changed, or left out."""
    whole = io.BytesIO()
    GOOD.to_npz(whole)
    data = io.BytesIO()
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(data, "w") as file:
        members = {name: source.read(name) for name in source.namelist()} | changes
        for name, content in members.items():
            if content is not None:
                file.writestr(name, content)
    return data.getvalue()


ARCHIVES = {
    "empty": b"",
    "text": b"a trajectory",
    "single array": stored(np.arange(3.0)),
    "pickle": archive({"x.a.npy": stored(np.array([print], dtype=object))}),
    "cut": archive({})[:400],
    "no header": archive({"header.npy": None}),
    "no times": archive({"t.npy": None}),
    "no status": archive({"status.npy": None}),
    "status of others": archive({"status.npy": stored(np.zeros(3, int))}),
    "other times": archive({"t.npy": stored(np.zeros(2))}),
    "header of something else": archive({"header.npy": stored(np.array('{"format": "other"}'))}),
    "header without a version": archive(
        {"header.npy": stored(np.array('{"format": "archimedes-trajectory"}'))}
    ),
    "nested header": archive({"header.npy": stored(np.array("[" * 100_000))}),
    "no array": archive({"x.a.npy": b"nothing"}),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_archives(tmp_path, name):
    path = tmp_path / "x.npz"
    path.write_bytes(ARCHIVES[name])
    with pytest.raises(ValueError, match=r"from_npz: .*x\.npz|Trajectory: t has shape \(2,\)"):
        Trajectory.from_npz(path)


@pytest.mark.parametrize("seed", range(40))
def test_archives_with_a_wrong_byte(tmp_path, seed):
    rng = np.random.default_rng(seed)
    data = bytearray(archive({}))
    data[int(rng.integers(len(data)))] ^= int(rng.integers(1, 256))
    path = tmp_path / "x.npz"
    path.write_bytes(data)
    try:
        found = Trajectory.from_npz(path)
    except ValueError:
        return
    assert found.t.tobytes() == T.tobytes()  # a date, or the name of a part


TABLES = {
    "": "is empty",
    "t,a\n0,abc\n": "column 'a' holds something other than numbers: 'abc'",
    "t,a\n0,1\n0.5,x\n": "numbers: 'x'",
    "t,a,a\n0,1,2\n": "the column 'a' appears twice",
    "t,a\n0,1\n0\n": "line 3 has 1 values, the header 2",
    "t,a\n0," + "1" * 200_000 + "\n": "not a table of numbers: field larger",
    "t,run,a\n0,0,1\n0,999999999999,2\n": "runs are counted from 0 on",
    "t,run,a\n0,-1,1\n": "runs are counted from 0 on",
    TABLE.replace(",", ";"): "columns are separated by ';'",
    "time,a\n0,1\n": "no column named t",
}


@pytest.mark.parametrize("text", TABLES, ids=range(len(TABLES)))
def test_tables(tmp_path, text):
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=TABLES[text]):
        Trajectory.from_csv(path)


def test_names_that_claim_a_billion_places_cost_nothing(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(TABLE.replace("b[1]", "b[999999999]"))
    assert Trajectory.from_csv(path).x["b"][999999999].tolist() == [1.0, 1.0]


def test_bytes_that_are_no_text_and_marks_of_spreadsheets(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"t,a\n0,\xff\n")
    with pytest.raises(ValueError, match=r"x\.csv is not a table of numbers: 'utf-8' codec"):
        Trajectory.from_csv(path)
    path.write_text("\ufeff" + TABLE, encoding="utf-8")
    assert Trajectory.from_csv(path).t.tolist() == [0.0, 0.5]
    path.write_text("t,a\n0,1000000000000000000000000\n")
    assert Trajectory.from_csv(path).x["a"].tolist() == [1e24]
