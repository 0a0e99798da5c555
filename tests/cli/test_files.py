"""`run` and `view` on files of all kinds: good, broken, hostile."""

from __future__ import annotations

import json
import os
import pickle
import time
import zipfile

import numpy as np
import pytest

from archimedes.cli import main
from archimedes.cli.run_file import flight_templates
from archimedes.simulate import Trajectory
from archimedes.spatial import Quaternion
from archimedes.vehicles import FlightState, load
from tests.long_parameters import long_after
from tests.viewer.scenes import HOSTILE, tumbling

TEMPLATES = {name: path.read_text("utf-8") for name, path in flight_templates().items()}
FLIGHT = TEMPLATES["multirotor"].replace("duration: 8.0", "duration: 0.5")
#: Rotors that stop: 10 m to fall.
FALL = """\
vehicle: multirotor
start: {alt: 10.0, v_NED: [0.0, 0.0, 0.0]}
controls: {speeds: [0.0, 0.0, 0.0, 0.0]}
inner: {speeds: [0.0, 0.0, 0.0, 0.0]}
duration: 8.0
samples: 81
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def everything(folder):
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.long
def test_run_writes_trajectory_table_and_page(folder, capsys):
    (folder / "flight.yaml").write_text(FLIGHT)
    assert main(["run", "flight.yaml", "--output", "out", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["vehicle"] == "multirotor" and told["altitude at the end (m)"] > 9.0
    made = {"flight.yaml", *(f"out/flight.{e}" for e in ("npz", "csv", "html"))}
    assert everything(folder) == made
    assert main(["view", "out/flight.csv", "--output", "seen"]) == 0
    assert main(["view", "out/flight.npz", "--vehicle", "multirotor", "--output", "seen"]) == 0
    assert everything(folder) == made | {"seen/flight.html"}


def test_the_template_is_a_flight(folder, capsys):
    for name in TEMPLATES:
        assert main(["run", "--template", name]) == 0
        assert capsys.readouterr().out == TEMPLATES[name]


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_templates_can_be_run(folder, capsys, name):
    (folder / "flight.yaml").write_text(TEMPLATES[name])
    assert main(["run", "flight.yaml", "--no-page", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["end"] == "after its duration" and told["altitude at the end (m)"] > 0.0


@pytest.mark.long
def test_the_rocket_of_the_template_reaches_orbit(folder):
    """Energy and angular momentum at the end are those of an orbit above the air."""
    (folder / "flight.yaml").write_text(TEMPLATES["rocket"])
    assert main(["run", "flight.yaml", "--no-page"]) == 0
    rest = np.zeros(3)
    like = load("rocket").state(FlightState(0.0, 0.0, 0.0, rest, rest, rest))
    flown = Trajectory.from_npz("archimedes_run/flight.npz", like=like)
    r = flown.final.motion.pos
    v = flown.final.motion.v_E + np.cross([0.0, 0.0, 7.292115e-5], r)
    mu = 3.986004418e14
    a = -0.5 * mu / (0.5 * v @ v - mu / np.linalg.norm(r))
    e = np.sqrt(1.0 - np.sum(np.cross(r, v) ** 2) / (mu * a))
    assert a * (1.0 - e) > 6378137.0 + 150e3
    assert flown.final.attached.tolist() == [0.0, 1.0]


def test_a_flight_into_the_ground_ends_there_and_fails(folder, capsys):
    (folder / "fall.yaml").write_text(FALL)
    assert main(["run", "fall.yaml", "--no-page", "--json"]) == 1
    said = capsys.readouterr()
    told = json.loads(said.out)
    drone = load("multirotor")  # falls with drag: closed forms
    limit, weight = drone.mass * 9.80665 / drone.drag[2], 10.0 * drone.drag[2] / drone.mass
    t = np.sqrt(limit) / 9.80665 * np.arccosh(np.exp(weight))
    speed = np.sqrt(limit * (1.0 - np.exp(-2.0 * weight)))
    end = f"the flight ended at the ground after {t:.6g} s, at {speed:.4g} m/s"
    assert told["end"] == end and said.err == f"archimedes run: fall.yaml: {end}\n"
    assert told["speed at the end (m/s)"] == pytest.approx(speed, abs=1e-3)
    table = np.genfromtxt(folder / "archimedes_run" / "fall.csv", delimiter=",", names=True)
    down = next(name for name in table.dtype.names if "pos2" in name)
    assert np.all(table[down] <= 1e-9) and abs(table[down][-1]) < 1e-9
    assert table[table.dtype.names[0]][-1] == pytest.approx(told["duration (s)"], abs=1e-3)


def test_a_flight_without_ground_falls_on(folder):
    (folder / "fall.yaml").write_text(FALL + "ground: null\n")
    assert main(["run", "fall.yaml", "--no-page"]) == 0


WRONG = {
    "guidance of an aircraft": (
        TEMPLATES["f16"] + "guidance: {kick: 0.1}\n",
        "guidance steers a rocket, not a f16",
    ),
    "guidance and controls": (
        TEMPLATES["rocket"] + "controls: {throttle: 1.0}\n",
        "leave out controls and trim",
    ),
    "an unknown number of the guidance": (
        TEMPLATES["rocket"].replace("kick:", "kik:"),
        "guidance has no 'kik'",
    ),
    "a start below the ground": (
        FALL.replace("alt: 10.0", "alt: -10.0"),
        "below the ground at 0 m",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_flights_that_cannot_be_are_refused(folder, capsys, what):
    text, message = WRONG[what]
    (folder / "wrong.yaml").write_text(text)
    assert main(["run", "wrong.yaml"]) == 1
    said = capsys.readouterr().err
    assert message in said and "wrong.yaml" in said
    assert everything(folder) == {"wrong.yaml"}


class Bomb:
    """Leaves a trace if anybody unpickles it."""

    def __reduce__(self):
        return (os.mkdir, ("owned",))


HOSTILE_YAML = {
    "a tag that runs code": "!!python/object/apply:os.mkdir [owned]",
    "a tag deep inside": FLIGHT + "inner: !!python/object/apply:os.mkdir [owned]\n",
    "billion laughs": "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "".join(f"{c}: &{c} [{','.join(['*' + p] * 9)}]\n" for p, c in zip("abcdefgh", "bcdefghi")),
    "an alias to itself": "a: &a [*a]",
    "deep nesting": "[" * 20_000,
    "not text": b"\xff\xfe\x00\x01",
    "empty": "",
    "a list": "[1, 2]",
    "an unknown key": FLIGHT + "run_this: rm\n",
    "an unknown vehicle": FLIGHT.replace("vehicle: multirotor", "vehicle: ufo"),
    "a vehicle elsewhere": FLIGHT.replace("vehicle: multirotor", "vehicle: ../../etc/x.yaml"),
    "a vehicle by an absolute path": FLIGHT.replace("vehicle: multirotor", "vehicle: /etc/x.yaml"),
    "a vehicle that is a number": FLIGHT.replace("vehicle: multirotor", "vehicle: 3"),
    "too long": FLIGHT.replace("duration: 0.5", "duration: 1.0e+300"),
    "backwards": FLIGHT.replace("duration: 0.5", "duration: -1.0"),
    "too many samples": FLIGHT.replace("samples: 401", "samples: 999999999999"),
    "text for a number": FLIGHT.replace("alt: 10.0", "alt: high"),
    "nan": FLIGHT.replace("590.0, 590.0, 590.0, 590.0", ".nan, 590.0, 590.0, 590.0"),
    "an unknown control": FLIGHT.replace("speeds:", "exec:"),
    "rotors too few": FLIGHT.replace("590.0, 590.0, 590.0, 590.0", "590.0, 590.0, 590.0"),
}


@pytest.mark.parametrize("what", long_after(3, HOSTILE_YAML))
def test_hostile_descriptions(folder, capsys, what):
    text = HOSTILE_YAML[what]
    path = folder / "bad.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    for command in ("run", "view"):
        start = time.process_time()
        assert main([command, "bad.yaml", "--output", "out"]) == 1
        said = capsys.readouterr()
        assert "Traceback" not in said.err and len(said.err) < 3000
        assert said.err.startswith(f"archimedes {command}: ") and said.out == ""
        assert "bad.yaml" in said.err.splitlines()[0]
        assert time.process_time() - start < 20.0
    assert everything(folder) == {"bad.yaml"} and not (folder / "owned").exists()


def archive(**arrays):
    def write(path):
        np.savez(path, **arrays)

    return write


def pickled(path):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("t.npy", pickle.dumps(Bomb()))
    np.savez(path.with_suffix(".other.npz"), t=np.array([Bomb()], dtype=object))
    os.replace(path.with_suffix(".other.npz"), path)


def zipped(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("../../escaped.npy", b"x")
        file.writestr("header.npy", b"\x93NUMPY" + b"\0" * 1000)


HEAD = json.dumps({"format": "archimedes-trajectory", "version": 1, "message": "", "units": {}})
T = np.linspace(0.0, 1.0, 5)
HOSTILE_NPZ = {
    "pickles": pickled,
    "paths that lead out": zipped,
    "no archive": lambda path: path.write_bytes(b"PK\x03\x04 nothing"),
    "empty": lambda path: path.write_bytes(b""),
    "something else": archive(a=T),
    "no positions": archive(header=np.array(HEAD), t=T, x=T),
    "positions of other lengths": archive(
        **{"header": np.array(HEAD), "t": T, "x.pos": np.zeros((4, 3)), "x.att": np.zeros((5, 4))}
    ),
    "nan": archive(
        **{
            "header": np.array(HEAD),
            "t": T,
            "x.pos": np.full((5, 3), np.nan),
            "x.att": np.tile([1.0, 0, 0, 0], (5, 1)),
        }
    ),
}


@pytest.mark.parametrize("what", long_after(2, HOSTILE_NPZ))
def test_hostile_archives(folder, capsys, what):
    HOSTILE_NPZ[what](folder / "bad.npz")
    assert main(["view", "bad.npz"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("archimedes view: ") and "bad.npz" in said and "Traceback" not in said
    assert everything(folder) == {"bad.npz"} and not (folder / "owned").exists()
    assert not (folder.parent / "escaped.npy").exists()


HOSTILE_CSV = {
    "garbage": b"\x00\x01\x02\xff\n\x00",
    "no header": b"1,2,3\n4,5,6\n",
    "text": b"t,pos[0],pos[1],pos[2]\n0,a,b,c\n",
    "holes": b"t,pos[0],pos[1],pos[2],att[0],att[1],att[2],att[3]\n0,1,2\n",
    "a huge index": b"t,pos[999999999],att[0]\n0,1,2\n",
    "formulas": b"t,=cmd|' /C calc'!A0\n0,1\n",
    "empty": b"",
}


@pytest.mark.parametrize("what", long_after(2, HOSTILE_CSV))
def test_hostile_tables(folder, capsys, what):
    (folder / "bad.csv").write_bytes(HOSTILE_CSV[what])
    assert main(["view", "bad.csv"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("archimedes view: ") and "bad.csv" in said and "Traceback" not in said
    assert everything(folder) == {"bad.csv"}


def test_names_in_files_are_escaped(folder):
    made = tumbling()
    x = {"pos": made.x.pos, "att": made.x.att.array}
    Trajectory(made.t, x).to_npz(folder / "flight.npz")
    assert main(["view", "flight.npz", "--title", HOSTILE]) == 0
    page = (folder / "archimedes_view" / "flight.html").read_text(encoding="utf-8")
    assert HOSTILE not in page and "<img" not in page and page.count("<script") == 3
    (folder / "flight.yaml").write_text(FLIGHT.replace("title: A", f"title: '{HOSTILE}' #"))
    text = FLIGHT.split("\n", 2)[2]
    quoted = json.dumps(HOSTILE)
    (folder / "flight.yaml").write_text(f"title: {quoted}\n{text}")
    assert main(["run", "flight.yaml", "--output", "out"]) == 0
    page = (folder / "out" / "flight.html").read_text(encoding="utf-8")
    assert HOSTILE not in page and "<img" not in page


def test_nothing_is_written_through_a_link(folder, capsys):
    victim = folder / "victim.txt"
    victim.write_text("precious")
    (folder / "out").mkdir()
    (folder / "out" / "flight.html").symlink_to(victim)
    tumbled = tumbling()
    Trajectory(tumbled.t, {"pos": tumbled.x.pos, "att": tumbled.x.att.array}).to_npz("flight.npz")
    assert main(["view", "flight.npz", "--output", "out"]) == 1
    assert "points outside out" in capsys.readouterr().err and victim.read_text() == "precious"


def test_files_that_are_none(folder, capsys):
    assert main(["view", "."]) == 1 and "is a folder" in capsys.readouterr().err
    assert main(["view", "none.npz"]) == 1 and "no such file" in capsys.readouterr().err
    os.mkfifo(folder / "pipe.npz")
    assert main(["view", "pipe.npz"]) == 1 and "not a regular file" in capsys.readouterr().err
    (folder / "a.exe").write_text("")
    assert main(["view", "a.exe"]) == 1 and "must end in .csv" in capsys.readouterr().err


def test_a_robot_sways(folder):
    urdf = """<robot name="arm"><link name="base"/><link name="tip"><inertial>
    <mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="j" type="revolute"><parent link="base"/><child link="tip"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""
    (folder / "arm.urdf").write_text(urdf)
    assert main(["view", "arm.urdf"]) == 0
    assert (folder / "archimedes_view" / "arm.html").stat().st_size > 50_000
    (folder / "bad.urdf").write_text('<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a/>')
    assert main(["view", "bad.urdf"]) == 1


def test_an_attitude_may_be_angles(folder):
    made = tumbling()
    rpy = Quaternion(made.x.att.array).as_euler("xyz").array
    Trajectory(made.t, {"pos": made.x.pos, "att": rpy}).to_csv(folder / "a.csv")
    assert main(["view", "a.csv"]) == 0


def test_interactive_pages_of_flights_and_robots(folder, capsys):
    (folder / "flight.yaml").write_text(FLIGHT)
    assert main(["view", "flight.yaml", "--interactive", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    text = (folder / "archimedes_view" / "flight.html").read_text(encoding="utf-8")
    assert told["bytes"] < 1_000_000 and '"name":"speeds[0]"' in text and "wasm-unsafe-eval" in text
    (folder / "orbit.yaml").write_text(TEMPLATES["rocket"])
    assert main(["view", "orbit.yaml", "--interactive"]) == 1
    assert "guidance steers this flight" in capsys.readouterr().err
    (folder / "a.csv").write_text("t,x")
    assert main(["view", "a.csv", "--interactive"]) == 1
    assert "an interactive page is made of a flight or a robot" in capsys.readouterr().err
