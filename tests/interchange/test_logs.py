"""Logs of PX4, ArduPilot and ground stations, against what other programs read in them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import archimedes as arc
from archimedes.interchange import Topic, log_topics, read_log
from archimedes.interchange.logs.reading import find_signals
from archimedes.sysid import Timeseries, output_error
from tests.interchange.log_files import Dataflash, telemetry, ulog, ulog_message
from tests.optional_packages import import_or_skip

GYRO = "gyro:uint64_t timestamp;float[3] xyz;uint8_t n;uint8_t[3] _padding0;"
MOTORS = "motors:uint64_t timestamp;float[4] control;"


def gyro_row(k, instance=0, time=None):
    time = 1_000_000 + 4000 * k if time is None else time
    return ("gyro", instance, "Q3fB", (time, k, 2.0 * k, -k, k % 4))


def motor_row(k):
    values = (1_000_500 + 8000 * k, 0.1 * k, 0.2 * k, 0.3, np.nan)
    return ("motors", 0, "Q4f", values)


@pytest.fixture
def flight(tmp_path):
    """Gyroscopes at 250 Hz, two of them, motors at 125 Hz from half a millisecond later."""
    import_or_skip("pyulog")
    rows = []
    for k in range(100):
        rows += [gyro_row(k), gyro_row(k, 1)] + ([motor_row(k // 2)] if k % 2 == 0 else [])
    path = tmp_path / "flight.ulg"
    path.write_bytes(ulog([GYRO, MOTORS], rows))
    return path


# ---- PX4 ---------------------------------------------------------------------------------------


def test_topics_of_a_ulog(flight):
    topics = log_topics(flight)
    assert sorted(topics) == ["gyro", "gyro[1]", "motors"]
    assert list(topics["gyro"].columns) == ["xyz[0]", "xyz[1]", "xyz[2]", "n"]
    np.testing.assert_allclose(topics["gyro"].times, 1.0 + 0.004 * np.arange(100), rtol=1e-15)
    assert topics["motors"].rate == pytest.approx(125.0)
    assert "gyro[1]      100" in repr(topics) and "250" in repr(topics)
    assert repr(topics["motors"]).startswith("motors: 50 samples, 1.0005 to 1.3925 s, 125 Hz")


def test_inputs_are_held_and_outputs_linear(flight):
    data = read_log(flight, "motors.control[0..1]", ["gyro.xyz", "gyro[1].xyz[2]"], rate=1000.0)
    assert data.inputs == ("motors.control[0]", "motors.control[1]")
    assert data.outputs == ("gyro.xyz[0]", "gyro.xyz[1]", "gyro.xyz[2]", "gyro[1].xyz[2]")
    assert data.hold == "zoh" and (data.ts[0], data.ts[-1]) == (1.0005, 1.3925)
    at = data.ts - 1.0
    np.testing.assert_allclose(data.ys[0], at / 0.004, atol=1e-9)
    np.testing.assert_allclose(data.ys[3], -at / 0.004, atol=1e-9)
    steps = np.floor((at - 0.0005) / 0.008 + 1e-9)
    np.testing.assert_allclose(data.us[0], np.float32(0.1 * steps), rtol=1e-6)


def test_without_a_rate_outputs_are_as_logged(flight):
    data = read_log(flight, "motors.control[2]", "gyro.xyz[0]")
    np.testing.assert_array_equal(data.ys[0], np.arange(1, 99))
    assert data.ts[0] == 1.004


def test_other_holds(flight):
    data = read_log(
        flight, "motors.control[1]", "gyro.n", rate=1000.0, hold="foh", outputs_hold="zoh"
    )
    at = data.ts - 1.0
    np.testing.assert_allclose(data.us[0], 0.2 * (at - 0.0005) / 0.008, atol=1e-6)
    np.testing.assert_array_equal(data.ys[0], np.floor(at / 0.004 + 1e-9) % 4)
    assert data.hold == "foh"


def test_a_span(flight):
    data = read_log(flight, outputs="gyro.xyz[0]", span=(1.1, 1.2))
    assert data.ts[0] == pytest.approx(1.1) and data.ts[-1] == pytest.approx(1.2)
    assert len(data) == 26 and data.us.shape == (0, 26)


def test_gaps_are_missing(tmp_path):
    """Of 0.1 s without samples nothing is made up; shorter ones are filled."""
    import_or_skip("pyulog")
    rows = [gyro_row(k) for k in range(100) if not (40 <= k < 65 or k == 10)]
    path = tmp_path / "gap.ulg"
    path.write_bytes(ulog([GYRO], rows))
    data = read_log(path, outputs="gyro.xyz[0]", rate=250.0)
    missing = np.isnan(data.ys[0])
    np.testing.assert_array_equal(np.flatnonzero(missing), np.arange(40, 65))
    assert data.ys[0, 10] == pytest.approx(10.0)
    whole = read_log(path, outputs="gyro.xyz[0]", rate=250.0, max_gap=1.0)
    np.testing.assert_allclose(whole.ys[0], np.arange(100.0), atol=1e-9)


def test_order_of_samples(tmp_path):
    """Samples are sorted; of equal times the last counts; a clock that was set anew is refused."""
    import_or_skip("pyulog")
    path = tmp_path / "order.ulg"
    rows = [gyro_row(k) for k in (0, 1, 3, 2, 4)] + [gyro_row(7, time=1_016_000)]
    path.write_bytes(ulog([GYRO], rows))
    np.testing.assert_array_equal(read_log(path, outputs="gyro.xyz[0]").ys[0], [0, 1, 2, 3, 7])
    path.write_bytes(ulog([GYRO], [gyro_row(k, time=t) for k, t in enumerate((5, 6, 9, 1, 2))]))
    rows = [gyro_row(k, time=1_000_000 * t) for k, t in enumerate((5, 6, 9, 1, 2))]
    path.write_bytes(ulog([GYRO], rows))
    with pytest.raises(ValueError, match="clock goes back from 9 to 1 s at sample 3"):
        read_log(path, outputs="gyro.xyz")


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ("gyros.xyz", "'gyros.xyz' names no topic of the log; similar: gyro, gyro"),
        ("gyro.x", r"gyro has no column 'x'; it has xyz\[0\], xyz\[1\]"),
        ("gyro.xyz[2..4]", r"no column 'xyz\[3\]'"),
        ("gyro.xyz[2..1]", r"\[2..1\] must go up"),
        ("gyro.xyz[0..99999999999]", "must go up"),
        ((), "outputs must name at least one signal"),
        ("gyro.xyz", None),
    ],
)
def test_names_that_are_not_there(flight, outputs, message):
    if message is None:
        assert len(read_log(flight, outputs=outputs).outputs) == 3
        return
    with pytest.raises(ValueError, match=message):
        read_log(flight, outputs=outputs)


def test_wrong_arguments(flight, tmp_path):
    with pytest.raises(TypeError, match="name of a signal"):
        read_log(flight, outputs=[3])
    with pytest.raises(ValueError, match=r"input motors.control\[3\] is not finite at 1.004 s"):
        read_log(flight, "motors.control", "gyro.n")
    with pytest.raises(ValueError, match="rate"):
        read_log(flight, outputs="gyro.n", rate=0.0)
    with pytest.raises(ValueError, match="lower it, or give span="):
        read_log(flight, outputs="gyro.n", rate=1e12)
    with pytest.raises(ValueError, match=r"span=\(5, 6\) is outside the log, 1 to 1.396 s"):
        read_log(flight, outputs="gyro.n", span=(5, 6))
    with pytest.raises(ValueError, match="two times in s that increase"):
        read_log(flight, outputs="gyro.n", span=(1.2, 1.1))
    with pytest.raises(ValueError, match="two at least are needed"):
        read_log(flight, outputs="gyro.n", span=(1.1005, 1.102))
    with pytest.raises(ValueError, match="hold='spline'"):
        read_log(flight, outputs="gyro.n", hold="spline")
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_log(tmp_path / "none.ulg", outputs="gyro.n")
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(ValueError, match=r"no reader for a '.txt' file; there are .*\.ulg"):
        log_topics(tmp_path / "a.txt")


def test_no_common_times(tmp_path):
    import_or_skip("pyulog")
    path = tmp_path / "apart.ulg"
    late = [("motors", 0, "Q4f", (9_000_000 + k, 0, 0, 0, 0)) for k in range(5)]
    path.write_bytes(ulog([GYRO, MOTORS], [gyro_row(k) for k in range(5)] + late))
    with pytest.raises(ValueError, match=r"gyro ends at 1\.016 s, motors begins at 9 s"):
        read_log(path, "motors.control[0]", "gyro.n")


def test_damaged_ulogs(flight, tmp_path):
    data, path = flight.read_bytes(), tmp_path / "bad.ulg"
    for size in (0, 3, 15, 16):
        path.write_bytes(data[:size])
        if size < 7:
            with pytest.raises(ValueError, match="not a ULog file"):
                log_topics(path)
        elif size < 16:
            with pytest.raises(ValueError, match="not a ULog file, or damaged"):
                log_topics(path)
        else:
            assert not log_topics(path)
    path.write_bytes(data[: len(data) // 2 + 1])  # the power went off: what is there is read
    assert 40 < len(log_topics(path)["gyro"]) < 60
    head = data[: data.index(b"A", 300)]
    for formats, message in (
        ([b"a:uint64_t timestamp;b[60000] x;", b"b:float[60000] y;"], "the message b has"),
        ([b"a:b x;", b"b:a y;"], "contains itself"),
        ([b"a:a x;"], "contains itself"),
    ):
        path.write_bytes(
            head[:59] + b"".join(ulog_message("F", text.decode().encode()) for text in formats)
        )
        with pytest.raises(ValueError, match=message):
            log_topics(path)


def test_noise_is_no_log(tmp_path):
    """Bytes at random behind a valid head give an error or topics, nothing else."""
    import_or_skip("pyulog")
    rng = np.random.default_rng(4)
    path = tmp_path / "noise.ulg"
    good = ulog([GYRO], [gyro_row(k) for k in range(20)])
    for _ in range(60):
        data = bytearray(good)
        for at in rng.integers(16, len(data), 5):
            data[at] = rng.integers(256)
        path.write_bytes(bytes(data))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            try:
                log_topics(path)
            except ValueError as error:
                assert "noise.ulg" in str(error)


# ---- ArduPilot ---------------------------------------------------------------------------------


def imu_log(count=50):
    log = Dataflash()
    kind = log.describe("IMU", "QBffcL", "TimeUS,I,GyrX,AccX,T,Lat")
    log.add("FMTU", 0, kind, b"s#Eo-d", b"F-00--")
    log.describe("ARR", "Qan", "TimeUS,Samples,Text")
    log.describe("MODE", "QM", "TimeUS,Mode")
    for k in range(count):
        for instance in (0, 2):
            time = 2_000_000 + 2500 * k + instance
            log.add("IMU", time, instance, 0.5 * k, 9.8 + instance, 2537, 473977420 + k)
    log.add("ARR", 2_000_000, *range(32), b"text")
    log.add("MODE", 2_100_000, 5)
    return log


def test_topics_of_a_dataflash_log_are_those_of_pymavlink(tmp_path):
    reader = import_or_skip("pymavlink.DFReader")
    path = tmp_path / "00000001.BIN"
    path.write_bytes(imu_log().data)
    topics = log_topics(path)
    assert {"IMU", "IMU[2]", "ARR", "MODE"} <= set(topics)
    assert topics["IMU"].units == {"GyrX": "rad/s", "AccX": "m/s^2", "Lat": "deg"}
    assert topics["ARR"].columns["Samples[31]"][0] == 31 and "Text" not in topics["ARR"].columns
    with reader.DFReader_binary(str(path)) as other:
        rows = {0: [], 2: []}
        while (message := other.recv_match(type="IMU")) is not None:
            rows[message.I].append(message)
    for instance, name in ((0, "IMU"), (2, "IMU[2]")):
        times = [message.TimeUS / 1e6 for message in rows[instance]]
        np.testing.assert_array_equal(topics[name].times, times)
        for label in ("GyrX", "AccX", "T", "Lat"):
            values = [getattr(message, label) for message in rows[instance]]
            np.testing.assert_array_equal(topics[name].columns[label], values)
    data = read_log(path, outputs=["IMU.GyrX", "IMU[2].AccX"], rate=400.0)
    assert data.output_units == ("rad/s", "m/s^2") and "IMU.GyrX (rad/s)" in repr(data)
    np.testing.assert_allclose(data.ys[0], 200.0 * (data.ts - 2.0), atol=1e-9)


def test_damaged_dataflash_logs(tmp_path):
    log, path = imu_log(), tmp_path / "bad.bin"
    good = len(log.data)
    path.write_bytes(log.data[:-4] + b"")
    with pytest.warns(UserWarning, match=r"bad.bin: \d+ bytes of the log are damaged"):
        topics = log_topics(path)
    assert len(topics["IMU"]) == 50
    path.write_bytes(log.data[:2000] + b"\xa3\x95\x07nonsense" + log.data[2000:])
    with pytest.warns(UserWarning, match="damaged"):
        topics = log_topics(path)
    assert 98 <= len(topics["IMU"]) + len(topics["IMU[2]"]) <= 100
    for data in (b"", b"\xa3\x95", b"x" * 500, log.data[:80], b"\xa3\x95\x80" + bytes(86)):
        path.write_bytes(data)
        with pytest.raises(ValueError, match="not a dataflash log of ArduPilot"):
            log_topics(path)
    # Formats that lie about their size, or use unknown characters, describe nothing.
    for size, characters in ((0, b"Q"), (3, b""), (200, b"Qf"), (11, b"X")):
        bad = Dataflash()
        bad.add("FMT", 77, size, b"LIE", characters, b"TimeUS")
        path.write_bytes(bad.data + b"\xa3\x95\x4d" + bytes(20))
        with pytest.warns(UserWarning, match="damaged"):
            assert "LIE" not in log_topics(path)
    rng = np.random.default_rng(0)
    for _ in range(60):
        data = bytearray(log.data)
        for at in rng.integers(0, good, 8):
            data[at] = rng.integers(256)
        path.write_bytes(bytes(data))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            log_topics(path)


# ---- telemetry ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mavlink():
    return import_or_skip("pymavlink.dialects.v20.ardupilotmega")


def test_topics_of_telemetry(mavlink, tmp_path):
    """Two systems send attitudes, one of them signed; units lose their prefix."""
    drone, other = mavlink.MAVLink(None, 1, 1), mavlink.MAVLink(None, 2, 1)
    other.signing.secret_key = bytes(32)
    other.signing.sign_outgoing = True
    start, rows = 1_700_000_000_000_000, []
    for k in range(20):
        for source in (drone, other):
            message = mavlink.MAVLink_attitude_message(100 * k, 0.01 * k, 0, 0, 0.1, 0, 0)
            rows.append((start + 100_000 * k, message.pack(source)))
        place = mavlink.MAVLink_global_position_int_message(
            100 * k, 473977420, 85455940, 488000, 1500, -250, 0, 0, 9000
        )
        rows.append((start + 100_000 * k + 500, place.pack(drone, force_mavlink1=True)))
        for number in (0, 1):
            cells = [3700 + number] * 10
            battery = mavlink.MAVLink_battery_status_message(number, 0, 0, 2500, cells, 0, 0, 0, 50)
            rows.append((start + 100_000 * k + 700, battery.pack(drone)))
    path = tmp_path / "ground.tlog"
    path.write_bytes(telemetry(rows))
    topics = log_topics(path)
    names = ["ATTITUDE[1:1]", "ATTITUDE[2:1]", "BATTERY_STATUS", "BATTERY_STATUS[1]"]
    assert sorted(topics) == [*names, "GLOBAL_POSITION_INT"]
    place = topics["GLOBAL_POSITION_INT"]
    np.testing.assert_allclose(place.times, 0.1 * np.arange(20) + 0.0005, rtol=1e-12)
    first = {name: values[0] for name, values in place.columns.items()}
    assert (first["lat"], first["alt"], first["relative_alt"]) == (47.397742, 488.0, 1.5)
    assert (first["vx"], first["hdg"], place.columns["time_boot_ms"][3]) == (-2.5, 90.0, 0.3)
    assert place.units["lat"] == "deg" and place.units["vx"] == "m/s"
    assert topics["BATTERY_STATUS[1]"].columns["voltages[9]"][0] == 3.701
    data = read_log(path, outputs="ATTITUDE[1:1].roll", rate=20.0)
    np.testing.assert_allclose(data.ys[0], 0.1 * data.ts, atol=1e-7)
    assert data.output_units == ("rad",)


def test_damaged_telemetry(mavlink, tmp_path):
    drone, path = mavlink.MAVLink(None, 1, 1), tmp_path / "bad.tlog"
    rows = [
        (k, mavlink.MAVLink_attitude_message(k, 0, 0, 0, 0, 0, 0).pack(drone)) for k in range(9)
    ]
    data = telemetry(rows)
    path.write_bytes(data[:100] + b"\xfd\xff" + data[100:])
    with pytest.warns(UserWarning, match="damaged"):
        assert len(log_topics(path)["ATTITUDE"]) == 8
    path.write_bytes(data[:-1])
    with pytest.warns(UserWarning, match="damaged"):
        assert len(log_topics(path)["ATTITUDE"]) == 8
    for bad in (b"", b"\xfd" * 300, bytes(1000), b"text" * 50):
        path.write_bytes(bad)
        with pytest.raises(ValueError, match="not a telemetry log: no packet of MAVLink"):
            log_topics(path)


# ---- what it is for ----------------------------------------------------------------------------


@pytest.mark.long
def test_a_time_constant_from_a_log(tmp_path):
    """A roll axis with known gain and lag, logged at two rates: the fit finds both."""
    import_or_skip("pyulog")
    rng = np.random.default_rng(0)
    gain, tau, dt = 8.0, 0.12, 0.004
    command, rate, rows = 0.0, 0.0, []
    for k in range(1500):
        if k % 2 == 0:  # a sample of the command every 8 ms, held
            command = 0.3 * np.sign(np.sin(0.9 * k * dt) + np.sin(5.3 * k * dt))
            rows.append(("motors", 0, "Q4f", (1_000_000 + 4000 * k, command, 0, 0, 0)))
        noisy = rate + 0.02 * rng.normal()
        rows.append(("gyro", 0, "Q3fB", (1_000_000 + 4000 * k, noisy, 0, 0, 0)))
        rate += (gain * command - rate) * (1.0 - np.exp(-dt / tau))  # exact for a held input
    path = tmp_path / "roll.ulg"
    path.write_bytes(ulog([GYRO, MOTORS], rows))
    data = read_log(path, "motors.control[0]", "gyro.xyz[0]", rate=250.0)
    model = lambda t, x, u, p: (p["gain"] * u - x) / p["tau"]
    guess = {"gain": 5.0, "tau": 0.3}
    fit = output_error(model, lambda t, x, u, p: x, data, guess, np.zeros(1))
    low, high = fit.confidence(0.99)
    assert low["tau"] < tau < high["tau"] and low["gain"] < gain < high["gain"]
    assert high["tau"] - low["tau"] < 0.01


def test_find_signals_prefers_the_longest_topic():
    one = {"a[0]": np.zeros(1), "b.c": np.zeros(1)}
    topics = {name: Topic(name, np.zeros(1), one) for name in ("/imu", "/imu.raw")}
    assert find_signals(topics, "/imu.raw.a")[0][0].name == "/imu.raw"
    assert [c for _, c in find_signals(topics, "/imu.b")] == ["b.c"]
    assert len(find_signals(topics, "/imu")) == 2
    empty = {"x": Topic("x", np.zeros(0), {"y": np.zeros(0)})}
    with pytest.raises(ValueError, match="the log has no sample of x"):
        find_signals(empty, "x.y")


def test_units_of_time_series():
    data = Timeseries([0.0, 1.0], [1.0, 1.0], [2.0, 2.0], input_units="V", output_units=("rad",))
    assert data.input_units == ("V",) and "in u[0] (V)" in data.report()
    assert arc.tree.leaves(data[0:2])[0].shape == (2,)
    assert data[0:2].output_units == ("rad",) == data.resample(0.5).output_units
    with pytest.raises(ValueError, match="output_units must have 1 units"):
        Timeseries([0.0, 1.0], None, [2.0, 2.0], output_units=("rad", "m"))
