"""Series of samples: shapes, files, tables, and what cannot be one; tests of residuals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from archimedes.sysid import Timeseries, residual_tests
from tests.optional_packages import import_or_skip

TS = np.array([0.0, 0.1, 0.25, 0.3])


def test_rows_and_slices():
    data = Timeseries(TS, None, np.ones((2, 4)), outputs=("a", "b"))
    assert data.us.shape == (0, 4) and data.outputs == ("a", "b") and data.inputs == ()
    assert len(data[1:3]) == 2 and data[1:3].outputs == ("a", "b")
    first, rest = data.split(0.5)
    assert len(first) == len(rest) == 2
    even = data.resample(0.1)
    assert even.dt == pytest.approx(0.1) and len(even) == 4
    gap = Timeseries([0.0, 1.0, 2.0], [0.0, 1.0, 2.0], [0.0, np.nan, 2.0]).resample(0.5)
    assert np.isnan(gap.ys[0, 1]) and gap.us[0, 1] == 0.0


def test_files(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text("t, u, y, z\n0.0,1.0,2.0,9\n0.1,1.5,,9\n\n0.25,2.0,3.0,9\n", encoding="utf-8")
    data = Timeseries.from_csv(path, inputs=["u"], outputs=["y"])
    np.testing.assert_array_equal(data.ts, [0.0, 0.1, 0.25])
    np.testing.assert_array_equal(data.ys, [[2.0, np.nan, 3.0]])
    with pytest.raises(ValueError, match=r"has no columns \['v'\]; it has \['t', 'u', 'y', 'z'\]"):
        Timeseries.from_csv(path, inputs=["v"], outputs=["y"])
    path.write_text("t,y\n0,1\n1,x\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 3: y is 'x', not a number"):
        Timeseries.from_csv(path, inputs=[], outputs=["y"])
    path.write_text("t,y\n0,1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="at least two samples"):
        Timeseries.from_csv(path, inputs=[], outputs=["y"])


def test_tables():
    pandas = import_or_skip("pandas")
    frame = pandas.DataFrame({"u": [1.0, 2.0, 3.0], "y": [0.0, 1.0, np.nan]}, index=[0.0, 0.5, 0.7])
    data = Timeseries.from_pandas(frame, ["u"], ["y"])
    np.testing.assert_array_equal(data.ts, [0.0, 0.5, 0.7])
    assert data.inputs == ("u",) and np.isnan(data.ys[0, 2])
    frame.index = pandas.to_datetime([f"2024-01-01 00:0{v}" for v in ("0:00", "0:01", "1:00")])
    np.testing.assert_allclose(Timeseries.from_pandas(frame, ["u"], ["y"]).ts, [0.0, 1.0, 60.0])
    frame["when"] = [0.0, 2.0, 3.0]
    assert Timeseries.from_pandas(frame, [], ["y"], time="when").ts[1] == 2.0
    zoned = frame.tz_localize("Europe/Zurich")  # NumPy has no dates of a time zone
    np.testing.assert_allclose(Timeseries.from_pandas(zoned, ["u"], ["y"]).ts, [0.0, 1.0, 60.0])
    with pytest.raises(ValueError, match="the table has no columns"):
        Timeseries.from_pandas(frame, ["v"], ["y"])
    with pytest.raises(TypeError, match="from_pandas: frame must be a DataFrame, got dict"):
        Timeseries.from_pandas({"y": [1.0]}, [], ["y"])


def test_one_column_is_named_by_its_name(tmp_path):
    """A text is one name, as in `read_log`, and not a list of names of one letter."""
    path = tmp_path / "run.csv"
    path.write_text("t,u,y,uy\n0,1,2,5\n1,2,3,6\n", encoding="utf-8")
    data = Timeseries.from_csv(path, inputs="u", outputs="uy")
    assert data.inputs == ("u",) and data.outputs == ("uy",) and data.ys.tolist() == [[5.0, 6.0]]
    pandas = import_or_skip("pandas")
    table = Timeseries.from_pandas(pandas.read_csv(path), "u", "uy", time="t")
    assert table.outputs == ("uy",) and table.ys.tolist() == data.ys.tolist()


MESSAGES = [
    (lambda: Timeseries([0.0, 0.0, 1.0], None, np.ones(3)), "ts must increase strictly"),
    (lambda: Timeseries([0.0, np.nan, 1.0], None, np.ones(3)), "ts must be finite"),
    (lambda: Timeseries([0.0], None, np.ones(1)), "a vector of at least 2 numbers"),
    (
        lambda: Timeseries(TS, np.ones((4, 2)), np.ones(4)),
        "times are the last axis: transpose it, give us.T",
    ),
    (
        lambda: Timeseries(TS, np.ones(3), np.ones(4)),
        r"us must have one column.*\(1, 3\)",
    ),
    (
        lambda: Timeseries(TS, [1.0, np.nan, 1.0, 1.0], np.ones(4)),
        "us must hold finite numbers",
    ),
    (lambda: Timeseries(TS, None, [1.0, np.inf, 1.0, 1.0]), "or nan where nothing was measured"),
    (lambda: Timeseries(TS, None, np.ones(4), outputs=("a", "b")), "outputs must name 1 rows"),
    (
        lambda: Timeseries(TS, None, np.ones(4)).dt,
        "ts is not uniform: steps go from 0.05 to 0",
    ),
    (lambda: Timeseries(TS, None, np.ones(4)).resample(0.0), "dt must be positive"),
    (lambda: Timeseries(TS, None, np.ones(4)).split(0.99), "less than two on a side"),
    (lambda: residual_tests(np.ones((1, 10)), lags=8), "lags must be between 1 and half"),
    (lambda: residual_tests(np.ones(10)), "residuals must be a matrix"),
]


@pytest.mark.parametrize(("call", "words"), MESSAGES)
def test_errors_name_the_argument_and_the_remedy(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()


def test_correlations():
    rng = np.random.default_rng(4)
    white, u = rng.normal(size=(2, 800)), rng.normal(size=(1, 800))
    found = residual_tests(white, u)
    assert found.white and found.independent
    assert found.auto.shape == (2, 20) and found.cross.shape == (2, 1, 41)
    coloured = lfilter([1.0], [1.0, -0.5], white[:1])
    assert not residual_tests(coloured).white
    np.testing.assert_allclose(residual_tests(coloured).auto[0, :2], [0.5, 0.25], atol=0.06)
    driven = white[:1] + 0.5 * np.roll(u, 3, axis=1)
    found = residual_tests(driven, u)
    # The input three samples earlier.
    assert np.argmax(np.abs(found.cross[0, 0])) == 20 + 3 and not found.independent
    white[0, ::7] = np.nan
    assert residual_tests(white).white


def test_how_often_white_noise_is_called_coloured():
    rng = np.random.default_rng(0)
    calls = [residual_tests(rng.normal(size=(1, 300))).white for _ in range(200)]
    # 5 % of 200 is 10; more than 21 would happen once in a thousand.
    assert 200 - 21 <= sum(calls) <= 199


CELLS = {
    "t,u,y\n0,1,0\n\n,1,1\n": "line 4: t is missing; leave the line out",
    "t,u,y\n0,1,0\n\n1,1,abc\n": "line 4: y is 'abc', not a number",
    "t;u;y\n0;1;0\n1;1;1\n": "it has .'t;u;y'., as separated by commas",
    "t,u,y,y\n0,1,0,5\n1,1,1,6\n": "more than one column 'y'",
    "t,u,y\n0,1,0\n1,,1\n": "us must hold finite numbers, sample 1 does not",
}


@pytest.mark.parametrize("text", CELLS)
def test_files_with_faults_are_refused_by_line(tmp_path, text):
    path = tmp_path / "data.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=CELLS[text]):
        Timeseries.from_csv(path, ["u"], ["y"])


def test_a_file_from_a_spreadsheet_with_gaps(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("\ufefft,u,y\n0,1,0\n0.1,1,\n0.3,1\n0.5,1,2\n", encoding="utf-8")
    np.testing.assert_array_equal(
        Timeseries.from_csv(path, ["u"], ["y"]).ys, [[0.0, np.nan, np.nan, 2.0]]
    )
