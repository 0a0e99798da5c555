"""MCAP files and bags of ROS: out, in, and damaged ones."""

from __future__ import annotations

import json

import numpy as np
import pytest

import archimedes as arc
from archimedes.simulate import Trajectory
from archimedes.spatial import Quaternion, RigidBody
from archimedes.viewer import Body, Scene, box
from tests.optional_packages import import_or_skip

read_log, log_topics = arc.interchange.read_log, arc.interchange.log_topics


def flight(count=11):
    rng = np.random.default_rng(0)
    t = np.linspace(0.0, 1.0, count)
    att = Quaternion(rng.normal(size=(count, 4)))
    x = RigidBody.State(*(rng.normal(size=(count, 3)), att, *rng.normal(size=(2, count, 3))))
    return Trajectory(t, x, u={"throttle": np.sin(t)}, y=np.cos(t))


def messages_of(path):
    """Return topic, schema, time and message of all messages, by the reader of MCAP's makers."""
    reading = import_or_skip("mcap.reader")
    with path.open("rb") as file:
        reader = reading.make_reader(file, validate_crcs=True)
        return [
            (channel.topic, schema, message.log_time, json.loads(message.data))
            for schema, channel, message in reader.iter_messages()
        ]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    import_or_skip("mcap")
    traj = flight()
    return traj, traj.to_mcap(tmp_path_factory.mktemp("mcap") / "flight.mcap")


def test_another_reader_finds_the_numbers(written):
    traj, path = written
    every = messages_of(path)
    states = [m for topic, _, _, m in every if topic == "/x"]
    assert np.array_equal([m["pos"] for m in states], traj.x.pos)
    assert np.array_equal([m["att"] for m in states], traj.x.att.array)
    assert [m["t"] for m in states] == traj.t.tolist()
    assert [m["throttle"] for topic, _, _, m in every if topic == "/u"] == traj.u[
        "throttle"
    ].tolist()
    schema = next(json.loads(schema.data) for topic, schema, _, _ in every if topic == "/x")
    assert schema["properties"]["v_B"]["unit"] == "m/s"
    stamps = [stamp for _, _, stamp, _ in every]
    assert stamps == sorted(stamps) and stamps[-1] == 10**9


def test_frames_are_those_of_scipy(written):
    """A rotation of Foxglove takes the child's coordinates to the parent's, as SciPy's does."""
    from scipy.spatial.transform import Rotation

    traj, path = written
    frames = [(s, m) for topic, s, _, m in messages_of(path) if topic == "/tf"]
    assert frames[0][0].name == "foxglove.FrameTransforms" and len(frames) == len(traj.t)
    for k, (_, message) in enumerate(frames):
        (one,) = message["transforms"]
        assert (one["parent_frame_id"], one["child_frame_id"]) == ("world", "body")
        R = Rotation.from_quat([one["rotation"][key] for key in "xyzw"]).as_matrix()
        np.testing.assert_allclose(R.T, traj.x.att[k].as_matrix(), atol=1e-14)
        assert [one["translation"][key] for key in "xyz"] == traj.x.pos[k].tolist()


def test_read_again_with_the_same_bits(written):
    traj, path = written
    data = read_log(path, inputs="/u.throttle", outputs=["/x.pos", "/x.w_B[1]", "/y.value"])
    assert np.array_equal(data.us[0], traj.u["throttle"])
    assert np.array_equal(data.ys, [*traj.x.pos.T, traj.x.w_B[:, 1], traj.y])
    assert data.output_units == ("m", "m", "m", "rad/s", "")
    np.testing.assert_allclose(data.ts, traj.t, atol=1e-9)


def test_a_scene_has_shapes(tmp_path):
    import_or_skip("mcap")
    traj = flight(3)
    block = box([1, 2, 3], color="#ff8000")
    base = Body("base", [block], traj.t, traj.x.pos, traj.x.att)
    arm = Body("arm", [], traj.t[0], [0, 0, 1.0], [2.0, 0, 0, 0], parent="base")
    path = traj.to_mcap(tmp_path / "scene.mcap", scene=Scene(bodies=[base, arm]))
    every = messages_of(path)
    (scene,) = [m for topic, _, _, m in every if topic == "/scene"]
    shape = scene["entities"][0]["triangles"][0]
    assert len(shape["points"]) == 8 and len(shape["indices"]) == 36
    assert shape["color"] == {"r": 1.0, "g": 128 / 255, "b": 0.0, "a": 1.0}
    arms = [m["transforms"][0] for topic, _, _, m in every if topic == "/tf"]
    arms = [one for one in arms if one["child_frame_id"] == "arm"]
    assert len(arms) == 1 and arms[0]["parent_frame_id"] == "base"
    assert arms[0]["rotation"] == {"w": 1.0, "x": 0.0, "y": 0.0, "z": 0.0}
    view = arc.view(RigidBody(), traj)
    traj.to_mcap(path, scene=view)
    assert {topic for topic, *_ in messages_of(path)} == {"/x", "/u", "/y", "/tf", "/scene"}


def test_batches_and_odd_numbers(tmp_path):
    import_or_skip("mcap")
    t = np.array([[0.0, 0.5, 1.0], [0.0, 0.25, np.nan]])
    x = {
        "n": np.array([[1, 2, 3], [4, 5, 6]]),
        "wide": {"z": np.array([[np.inf, np.nan, 1.0]] * 2)},
    }
    path = Trajectory(t, x).to_mcap(tmp_path / "batch.mcap")
    topics = log_topics(path)
    assert [len(topics[name]) for name in ("/run0/x", "/run1/x")] == [3, 2]
    assert topics["/run1/x"].columns["n"].tolist() == [4.0, 5.0]
    z = topics["/run0/x"].columns["wide.z"]
    assert np.isnan(z[:2]).all() and z[2] == 1.0
    empty = Trajectory(np.zeros(0), np.zeros((0, 2))).to_mcap(tmp_path / "empty.mcap")
    assert not log_topics(empty)


def test_wrong_uses(tmp_path):
    import_or_skip("mcap")
    late = Trajectory(np.array([-1.0, 0.0]), np.zeros(2))
    with pytest.raises(ValueError, match=r"times must be from 0 .* got -1 to 0 s; shift them"):
        late.to_mcap(tmp_path / "a.mcap")
    with pytest.raises(TypeError, match=r"scene must be a Scene or what arc.view returns, got int"):
        flight().to_mcap(tmp_path / "a.mcap", scene=3)
    assert not [*tmp_path.iterdir()]


# ---- ROS ---------------------------------------------------------------------------------------


def write_bag(path, kind):
    """Write a bag by rosbags: IMU and joints, with a picture's worth of bytes."""
    typesys = import_or_skip("rosbags.typesys")
    from rosbags.rosbag1 import Writer as Writer1
    from rosbags.rosbag2 import StoragePlugin
    from rosbags.rosbag2 import Writer as Writer2

    one = kind == "ros1"
    store = typesys.get_typestore(typesys.Stores.ROS1_NOETIC if one else typesys.Stores.ROS2_HUMBLE)
    if one:
        writer = Writer1(path)
    else:
        plugin = StoragePlugin.MCAP if kind == "mcap" else StoragePlugin.SQLITE3
        writer = Writer2(path, version=9, storage_plugin=plugin)
    T = store.types
    with writer:
        names = ["sensor_msgs/msg/JointState", "std_msgs/msg/UInt8MultiArray"]
        links = [
            writer.add_connection(f"/{topic}", name, typestore=store)
            for topic, name in zip(("joints", "bytes"), names)
        ]
        dump = store.serialize_ros1 if one else store.serialize_cdr
        for k in range(20):
            sec = {"sec": k, "nanosec": 5}
            header = {"stamp": T["builtin_interfaces/msg/Time"](**sec), "frame_id": "base"}
            header |= {"seq": k} if one else {}
            angles = np.array([0.1 * k, -0.2 * k])
            joints = T[names[0]](
                header=T["std_msgs/msg/Header"](**header), name=["a", "b"], position=angles,
                velocity=2.0 * angles, effort=np.zeros(0),
            )  # fmt: skip
            layout = T["std_msgs/msg/MultiArrayLayout"](dim=[], data_offset=0)
            many = T[names[1]](layout=layout, data=np.zeros(1000, np.uint8))
            stamp = 1_700_000_000_000_000_000 + k * 10_000_000
            for link, name, message in zip(links, names, (joints, many)):
                writer.write(link, stamp, dump(message, name))
    return path


@pytest.fixture(scope="module")
def bags(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bags")
    names = {"ros1": "one.bag", "ros2": "two", "mcap": "three"}
    return {kind: write_bag(folder / name, kind) for kind, name in names.items()}


@pytest.mark.parametrize("kind", ["ros1", "ros2", "mcap", "mcap file"])
def test_bags(bags, kind):
    path = bags[kind.split()[0]]
    path = next(path.glob("*.mcap")) if kind == "mcap file" else path
    topics = log_topics(path)
    joints = topics["/joints"]
    assert len(joints) == 20 and not any("data[" in c for c in topics["/bytes"].columns)
    assert np.array_equal(joints.columns["position[1]"], -0.2 * np.arange(20))
    assert joints.columns["header.stamp.sec"].tolist() == [*range(20)]
    data = read_log(path, inputs="/joints.position[0]", outputs="/joints.velocity")
    assert np.array_equal(data.ys[0], 0.2 * np.arange(20))
    np.testing.assert_allclose(data.ts, 0.01 * np.arange(20), atol=1e-12)


# ---- damaged and hostile -----------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*the file is cut off")
def test_damaged_mcap_files(written, tmp_path):
    _, path = written
    whole, file = path.read_bytes(), tmp_path / "bad.mcap"
    rng = np.random.default_rng(0)
    damaged = [b"", whole[:4], whole[:8], b"PK" + whole, whole[: len(whole) // 2]]
    for _ in range(60):
        data = bytearray(whole)
        for at in rng.integers(8, len(data), size=3):
            data[at] ^= 1 << int(rng.integers(8))
        damaged.append(bytes(data))
    for data in damaged:
        file.write_bytes(data)
        try:
            log_topics(file)
        except ValueError as error:
            assert "bad.mcap: not an MCAP file" in str(error)


@pytest.mark.parametrize("cut", [1, 2, 9])
def test_a_file_that_is_cut_off_is_read_up_to_there(cut, tmp_path):
    """A recorder that lost its power has written chunks, and neither their end nor an index."""
    writing = import_or_skip("mcap.writer")
    path = tmp_path / "a.mcap"
    with path.open("wb") as file:
        writer = writing.Writer(file, chunk_size=64, compression=writing.CompressionType.NONE)
        writer.start()
        channel = writer.register_channel("/a", "json", 0)
        for k in range(20):
            writer.add_message(channel, 10**9 * k, b'{"v": %d}' % k, 0)
        writer.finish()
    whole = path.read_bytes()
    chunk = whole.index(b'{"v": 11}')
    path.write_bytes(whole[: chunk + cut])
    with pytest.warns(UserWarning, match=r"a.mcap: the file is cut off, and its last \d+ bytes"):
        values = log_topics(path)["/a"].columns["v"]
    assert 8 <= len(values) <= 11
    assert values.tolist() == [*range(len(values))]
    path.write_bytes(whole[:-30])  # the index
    assert len(log_topics(path)["/a"]) == 20


def test_what_json_has_not_is_refused_or_left_out(tmp_path):
    traj = flight(4)
    path = tmp_path / "a.mcap"
    path.write_bytes(b"of before")
    with pytest.raises(TypeError, match=r"to_mcap: x.z has the dtype complex128.*to_hdf5"):
        Trajectory(traj.t, {"z": 1j * traj.t}).to_mcap(path)
    assert path.read_bytes() == b"of before"
    import_or_skip("mcap")
    pos = traj.x.pos.copy()
    pos[1, 0], pos[2, 2] = np.nan, np.inf
    Trajectory(traj.t, traj.x.replace(pos=pos)).to_mcap(path)
    messages = messages_of(path)
    assert json.dumps([message for *_, message in messages], allow_nan=False)
    assert [time for topic, _, time, _ in messages if topic == "/tf"] == [0, 10**9]


def raw_mcap(path, data=b"{}", encoding="json", schema=None, topic="/a"):
    writing = import_or_skip("mcap.writer")
    with path.open("wb") as file:
        writer = writing.Writer(file)
        writer.start()
        number = 0
        if schema is not None:
            number = writer.register_schema(*schema)
        channel = writer.register_channel(topic, encoding, number)
        writer.add_message(channel, 5, data, 5)
        writer.finish()
    return path


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[" * 100_000 + b"]" * 100_000, "nested more than 32 levels"),
        (b'{"a":' * 100_000, "nested more than 32 levels"),
        (b"{", "damaged"),
        (b"\xff\xfe", "damaged"),
    ],
)
def test_messages_that_are_no_messages(data, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        log_topics(raw_mcap(tmp_path / "a.mcap", data))


def test_huge_numbers_and_many_columns(tmp_path):
    text = json.dumps({f"k{i}": i for i in range(5000)} | {"big": 10**400})
    with pytest.warns(UserWarning, match="/a: the first 4096 numbers"):
        topic = log_topics(raw_mcap(tmp_path / "a.mcap", text.encode()))["/a"]
    assert len(topic.columns) == 4096
    big = raw_mcap(tmp_path / "b.mcap", json.dumps({"big": -(10**400)}).encode())
    assert log_topics(big)["/a"].columns["big"].tolist() == [-np.inf]


def test_other_encodings_are_left_out(tmp_path):
    path = raw_mcap(tmp_path / "a.mcap", b"\x08\x01", "protobuf", ("x.Y", "protobuf", b"\n"))
    with pytest.warns(UserWarning, match="/a is left out: its messages are in protobuf"):
        assert not log_topics(path)


def test_definitions_of_ros_that_are_none(tmp_path):
    for text in (b"float64 x\nfloat64", b"a/B[] x\n" * 3, b"\xff"):
        path = raw_mcap(tmp_path / "a.mcap", b"\0" * 8, "cdr", ("a/B", "ros2msg", text))
        with pytest.raises(ValueError, match=r"a.mcap: not an MCAP file, or damaged"):
            log_topics(path)


def test_a_chunk_that_unpacks_to_gigabytes(tmp_path):
    """The chunk says 100 bytes; its compressed data say 2 GiB."""
    import_or_skip("mcap")
    zstandard = import_or_skip("zstandard")
    from mcap.data_stream import RecordBuilder
    from mcap.records import Chunk, Header

    packed = zstandard.ZstdCompressor().compressobj(size=2**31)
    data = b"".join(packed.compress(bytes(2**20)) for _ in range(2**11)) + packed.flush()
    assert len(data) < 2**20
    builder = RecordBuilder()
    Header(profile="", library="").write(builder)
    Chunk(
        compression="zstd", data=data, message_start_time=0, message_end_time=1,
        uncompressed_crc=0, uncompressed_size=100,
    ).write(builder)  # fmt: skip
    file = tmp_path / "bomb.mcap"
    file.write_bytes(b"\x89MCAP0\r\n" + builder.end())
    with pytest.raises(ValueError, match="a chunk of 2147483648 bytes; at most"):
        log_topics(file)


def test_damaged_bags(bags, tmp_path):
    whole, file = bags["ros1"].read_bytes(), tmp_path / "bad.bag"
    rng = np.random.default_rng(0)
    for k in range(30):
        data = bytearray(whole[: len(whole) * (k % 7 + 1) // 7])
        for at in rng.integers(0, len(data), size=4):
            data[at] ^= 255
        file.write_bytes(data)
        try:
            log_topics(file)
        except ValueError as error:
            assert "bad.bag: not a bag of ROS, or damaged" in str(error)
    with pytest.raises(ValueError, match=r"not a bag of ROS 2: the folder has no metadata.yaml"):
        log_topics(tmp_path)
