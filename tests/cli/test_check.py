"""`archimedes check`: models, robots and configurations; findings, exit statuses, JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from archimedes.cli import main
from archimedes.vehicles import parameter_file

ROOT = Path(__file__).resolve().parents[2]


def check(capsys, *words):
    """Return status, standard output and standard error of a check."""
    status = main(["check", *map(str, words)])
    out, err = capsys.readouterr()
    return status, out, err


# ---- robots ------------------------------------------------------------------------------------

ARM = """<robot name="arm">
<link name="base"><inertial><mass value="5"/>
  <inertia ixx="0.02" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><geometry><box size="0.2 0.2 0.2"/></geometry></collision></link>
<link name="arm">
  <inertial><origin xyz="0.15 0 0"/><mass value="{mass}"/>
  <inertia ixx="{ixx}" iyy="{iyy}" izz="{izz}" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><origin xyz="0.15 0 0"/><geometry><box size="{size}"/></geometry></collision></link>
<joint name="hinge" type="revolute"><parent link="base"/><child link="arm"/>
  <axis xyz="0 1 0"/><limit lower="-{limit}" upper="{limit}" effort="10" velocity="5"/></joint>
</robot>
"""
#: A bar of aluminium: 0.3 x 0.05 x 0.05 m, 2 kg.
GOOD = {"mass": 2, "ixx": 0.00083, "iyy": 0.0154, "izz": 0.0154, "size": "0.3 0.05 0.05"}
GOOD |= {"limit": 2.5}


def write_arm(folder, **changes):
    path = folder / "arm.urdf"
    path.write_text(ARM.format(**{**GOOD, **changes}))
    return path


def test_a_sound_robot_has_no_findings(tmp_path, capsys):
    status, out, _ = check(capsys, write_arm(tmp_path))
    assert status == 0 and out == "nothing to report for 2 parts\n"


@pytest.mark.parametrize(
    ("changes", "line", "words"),
    [
        ({"ixx": 8300.0, "iyy": 154e3, "izz": 154e3}, 5, "it looks like g cm^2 or kg mm^2"),
        ({"ixx": 8.3, "iyy": 154.0, "izz": 154.0}, 5, "it looks like kg cm^2"),
        ({"ixx": 0.0154, "iyy": 0.0154, "izz": 0.08}, 5, "exceeds the sum of the others"),
        ({"mass": 2000}, 5, "more than any metal: the mass looks like g"),
        ({"size": "300 50 50"}, 5, "300 m large, which looks like mm"),
        ({"mass": 0.02, "size": "3 0.5 0.5"}, 5, "less than any foam: the mass looks like t"),
        ({"limit": 150}, 9, "it looks like deg, convert it to rad"),
        ({"limit": 1e16}, 9, None),  # no limit
    ],
)
def test_numbers_in_other_units_are_found_with_their_line(tmp_path, capsys, changes, line, words):
    path = write_arm(tmp_path, **changes)
    status, out, _ = check(capsys, path, "--format", "json")
    findings = json.loads(out)
    if words is None:
        assert status == 0 and findings == []
        return
    assert status == 1
    found = [f for f in findings if words in f["message"]]
    assert found and found[0]["line"] == line and found[0]["file"] == str(path)
    assert found[0]["kind"] == "units"


def test_our_own_robot_passes(capsys):
    assert check(capsys, ROOT / "examples" / "arm.urdf")[0] == 0


def test_a_robot_that_cannot_be_read(tmp_path, capsys):
    path = tmp_path / "bad.urdf"
    path.write_text("<robot name='x'>\n<link name='a'><inertial><mass value='heavy'/>\n")
    status, out, _ = check(capsys, path)
    assert status == 1 and f"{path}:3: units: not well-formed XML" in out


# ---- configurations ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["car", "f16", "multirotor", "rocket", "satellite"])
def test_the_parameter_files_of_our_vehicles_pass(capsys, name):
    assert check(capsys, parameter_file(name))[0] == 0


def test_the_flights_of_our_vehicles_pass(capsys):
    flights = sorted(parameter_file("f16").parents[1].glob("*/*_flight.yaml"))
    assert len(flights) >= 3
    assert check(capsys, *flights)[0] == 0


def test_a_wrong_unit_is_a_finding_with_its_line(tmp_path, capsys):
    text = parameter_file("multirotor").read_text()
    path = tmp_path / "drone.yaml"
    path.write_text(text.replace("arm: 0.23", "arm: 0.23 kg"))
    status, out, _ = check(capsys, path)
    line = next(n for n, row in enumerate(path.read_text().splitlines(), 1) if "arm:" in row)
    assert status == 1
    assert out == f"{path}:{line}: units: rotors.arm: expected a quantity in m, got 0.23 kg\n"
    path.write_text(
        "title: x\nvehicle: multirotor\nstart: {alt: 10 kg, v_NED: [0, 0, 0]}\nduration: 1\n"
    )
    status, out, _ = check(capsys, path, "--json")
    assert status == 1 and json.loads(out)[0]["line"] == 3


# ---- statuses ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("model.txt", "x", "the name must end in .json, .mjcf, .py"),
        ("none.py", None, "no such file"),
        ("other.yaml", "a: 1", "a vehicle has the key 'type', a flight the key 'vehicle'"),
        ("bad.py", "def f(:", "bad.py:1: cannot be read: "),
        ("wrong.py", "1 / 0", "cannot be run: ZeroDivisionError: division by zero"),
    ],
)
def test_what_cannot_be_checked_has_the_status_2(tmp_path, capsys, name, text, message):
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    status, _, err = check(capsys, path)
    assert status == 2 and message in err


# ---- models ------------------------------------------------------------------------------------

MODEL = """import numpy as np
import archimedes as arc


@arc.struct
class State:
    angle: float = arc.field(units="rad")
    rate: float = arc.field(units="rad/s")


@arc.struct
class Pendulum:
    mass: float = arc.field(units="kg", default=1.0)
    length: float = arc.field(units="m", default=0.5)
    g: float = arc.field(units="m/s^2", default=9.81)

    def dynamics(self, t, x, torque):
        inertia = self.mass * self.length**2
        weight = {weight}
        return State(x.rate, (torque - weight) / inertia)


def closed_loop(t, x):
    return Pendulum().dynamics(t, x, -2.0 * x.rate)


def save(path):
    raise RuntimeError("nobody may call this")
{more}
"""
RIGHT = "self.mass * self.g * self.length * np.sin(x.angle)"
WRONG = "self.mass * self.g * np.sin(x.angle)"


def write_model(folder, weight, more=""):
    path = folder / "model.py"
    path.write_text(MODEL.format(weight=weight, more=more))
    return path


def test_a_sound_model_has_no_findings_and_says_what_was_not_checked(tmp_path, capsys):
    path = write_model(tmp_path, RIGHT)
    status, out, err = check(capsys, path)
    assert (status, out) == (0, "nothing to report for 3 parts\n")
    assert err == f"not checked: {path}: units of save: nothing that is recorded calls it\n"


def test_a_mistake_is_found_in_its_line_without_running_anything(tmp_path, capsys):
    path = write_model(tmp_path, WRONG)
    status, out, _ = check(capsys, path, "--format", "json")
    findings = json.loads(out)
    assert status == 1 and {f["file"] for f in findings} == {str(path)}
    assert 20 in {f["line"] for f in findings} and {f["kind"] for f in findings} == {"units"}


def test_what_the_file_records_is_checked_with_its_arguments(tmp_path, capsys):
    more = """
def swing(t, y):
    return np.stack([y.rate, -9.81 * np.sin(y.angle + y.rate)])

print("running", arc.jac(lambda y: swing(0.0, y))(State(0.1, 0.2)))
"""
    path = write_model(tmp_path, RIGHT, more)
    status, out, err = check(capsys, path)
    line = (
        path.read_text()
        .splitlines()
        .index("    return np.stack([y.rate, -9.81 * np.sin(y.angle + y.rate)])")
        + 1
    )
    assert status == 1 and f"{path}:{line}: units: adds a plain number and rad/s" in out
    assert "running" in err and "running" not in out


def test_what_stands_under_main_is_run_on_demand(tmp_path, capsys):
    more = """
def grow(p):
    return p.angle + p.rate

if __name__ == "__main__":
    arc.compile(grow)(State(0.1, 0.2))
"""
    path = write_model(tmp_path, RIGHT, more)
    assert check(capsys, path)[0] == 0
    assert check(capsys, path, "--run")[0] == 1


def test_units_that_a_file_declares_are_checked(tmp_path, capsys):
    more = """
def fall(h, t):
    return h - t

check_fall = arc.check_units(fall, {"h": "m", "t": "s"})
"""
    status, out, _ = check(capsys, write_model(tmp_path, RIGHT, more))
    assert status == 1 and "subtracts s from m" in out


def test_frames_and_units_are_one_list(tmp_path, capsys):
    more = """
def to_body(R_BN, v_E):
    return R_BN @ v_E
"""
    status, out, _ = check(capsys, write_model(tmp_path, WRONG, more), "--json")
    assert status == 1 and {f["kind"] for f in json.loads(out)} == {"units", "frames"}


def test_a_file_that_cannot_be_run_does_not_hide_what_others_have(tmp_path, capsys):
    bad = tmp_path / "bad.py"
    bad.write_text("import no_such_package\n")
    status, out, err = check(capsys, bad, write_model(tmp_path, WRONG))
    assert status == 1 and "model.py:20" in out
    assert f"not checked: {bad} cannot be run: ModuleNotFoundError" in err


STRANGER = """
import numpy as np
import archimedes as arc
from archimedes.spatial import Quaternion

@arc.struct
class Drone:
    mass: float = arc.field(default=1.2, units="kg")
    arm: float = arc.field(default=0.2, units="m")

    @arc.struct
    class State:
        att: Quaternion
        v_B: np.ndarray = arc.field(units="m/s")
        w_B: np.ndarray = arc.field(units="rad/s")

    def dynamics(self, t, x, thrust):
        F_B = np.array([0.0, 0.0, -thrust])
        return Drone.State(att=x.att.kinematics(x.w_B), v_B=F_B / self.mass, w_B=F_B * self.arm)
"""


def test_a_state_with_an_attitude_needs_no_example(tmp_path, capsys):
    (tmp_path / "drone.py").write_text(STRANGER, encoding="utf-8")
    assert main(["check", str(tmp_path / "drone.py")]) == 1
    said = capsys.readouterr()
    assert "drone.py:19: units: " in said.out and "not checked" not in said.err
