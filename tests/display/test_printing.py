"""Whatever the package returns is printed in a few lines with sensible digits; report() has all."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import archimedes as arc
from archimedes import control, multibody, observers, optimize, sysid, tree, vehicles, viewer
from archimedes.display import COLUMNS, LINES, Readable
from archimedes.simulate import Normal, RunKey, Trajectory, Uniform, monte_carlo
from archimedes.spatial import Quaternion, RigidBody
from archimedes.tree.struct_methods import ONE_LINE, struct_repr
from archimedes.vehicles import dave_ml
from tests.display.samples import T, first_order_fit, flight_record, snake, tumbling


def oscillation(t, x):
    return np.stack([x[1], -x[0] - 0.1 * x[1]])


def throw(p):
    times = np.linspace(0.0, 1.0, 80)
    path = p["speed"] * np.stack([times, times, times], axis=1)
    return {"path": path, "range": p["speed"] ** 2 / 9.81, "noise": arc.random.normal(p["key"])}


@functools.cache
def campaign():
    draws = {"speed": Normal(20.0, 1.0), "angle": Uniform(0.5, 0.9), "key": RunKey()}
    return monte_carlo(throw, draws, n=40)


def flight():
    ball = vehicles.Projectile(mass=1.0, inertia=np.eye(3), area=0.01, drag=0.5)
    start = vehicles.FlightState(0.6, -1.3, 1000.0, np.zeros(3), np.zeros(3), np.zeros(3))
    return vehicles.FlightCase(ball, start, 5.0)


def trimmed():
    level = vehicles.FlightState(0.6, -1.3, 3000.0, np.ones(3), np.full(3, 0.1), np.zeros(3))
    u = vehicles.F16.Input(1.0 / 3.0, -0.05)
    return vehicles.Trim({}, u, level, np.full(11, 1e-13), True, "trimmed")


def table_model(folder):
    rows = "".join(
        f'<variableDef varID="v{k}" name="n{k}" units="m" initialValue="3"/>' for k in range(60)
    )
    path = folder / "many.dml"
    path.write_text(f"<DAVEfunc>{rows}</DAVEfunc>")
    return dave_ml.read(path)


def checks():
    row = dave_ml.CheckRow("cruise", "lift", 1.0, 1.5, 1e-6, ok=False, internal=False)
    return dave_ml.CheckReport((row,) * 60, shots=60)


#: Results with a text of their own, by the name of their class.
PRINTED = {
    "Timeseries": lambda: sysid.Timeseries(T, np.ones((3, 400)), np.ones((30, 400)) / 3.0),
    "Fit": first_order_fit,
    "ResidualTests": lambda: first_order_fit().tests(),
    "Campaign": campaign,
    "Statistics": lambda: campaign().statistics(),
    "Trajectory": tumbling,
    "OptimizeResult": lambda: arc.minimize(lambda x: np.sum((x - 1.0 / 3.0) ** 2), np.zeros(200)),
    "LMResult": lambda: optimize.lm_solve(lambda x: x - 1.0 / 3.0, np.zeros(40)),
    "QPSolution": lambda: optimize.QPSolution(T, T, T, 1.0 / 3.0, 0, 7, 1e-9),
    "InputSeries": lambda: arc.InputSeries(T, np.ones((400, 30))),
    "Trim": trimmed,
    "Estimate": lambda: observers.Estimate(T, np.eye(400), T, np.eye(400), 1.0 / 3.0),
    "KinematicsResult": lambda: multibody.KinematicsResult(T / 3.0, T, True, 7),
    "OperatingPoint": lambda: control.OperatingPoint(T, T, T, T, {"x": 1 / 3}, {}, True, "", len),
    "Model": lambda: snake().build(),
    "Builder": snake,
    "Report": lambda: snake().report,
    "FlightCase": flight,
    "FlightRecord": flight_record,
    "CheckReport": checks,
    "ModeTable": lambda: control.modes([[0.0, 1.0], [-4.0, -0.4]]),
    "Compiled": lambda: arc.compile(oscillation),
    "F16": lambda: vehicles.F16(),
    "KalmanFilter": lambda: observers.KalmanFilter(np.eye(30), np.eye(30), np.eye(30), np.eye(30)),
    "View": lambda: viewer.view(RigidBody(), tumbling((5,))),
}  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    made = {name: make() for name, make in PRINTED.items()}
    made["DaveModel"] = table_model(tmp_path_factory.mktemp("dave"))
    return made


def too_large(text, width=COLUMNS):
    lines = text.splitlines()
    return len(lines) > LINES or max(map(len, lines)) > width


def test_printing_is_short(results):
    """Issue 29: a campaign took 243 lines, a Timeseries all its numbers."""
    for name, value in results.items():
        for text in (repr(value), str(value)):
            assert text and not too_large(text), f"{name}:\n{text}"
            assert " object at 0x" not in text, name


def test_details_on_request(results):
    """One rule: report() of a result is text, and has what print leaves out."""
    without = [name for name, value in results.items() if not hasattr(value, "report")]
    assert {*without} <= {"InputSeries", "F16", "KalmanFilter", "View"}
    longer = ["Timeseries", "Campaign", "Statistics", "Trajectory", "OptimizeResult", "Model",
              "CheckReport", "FlightRecord", "QPSolution"]  # fmt: skip
    for name in longer:
        text = results[name].report()
        assert isinstance(text, str) and len(text) > len(repr(results[name])), name
    assert "path[79,2]" in results["Campaign"].report()
    assert "j39" in results["Model"].report()
    assert "plugin 49" in results["Report"].report() and "plugin 49" in results["Builder"].report()
    assert results["OptimizeResult"].report().count("0.333333") >= 200


STUB = re.compile(r"from (archimedes\.\S+) import (\w+) as \2")


@functools.cache
def public_classes():
    """Return the public classes by name; read from the stubs, so that no package changes."""
    found = {}
    for stub in Path(arc.__file__).parent.glob("**/__init__.pyi"):
        for home, name in STUB.findall(stub.read_text(encoding="utf-8")):
            value = getattr(importlib.import_module(home), name)
            if inspect.isclass(value) and not issubclass(value, BaseException):
                found[f"{value.__module__}.{name}"] = value
    return found


def classes():
    """Return the public classes that list their fields: structs and results."""
    listed = (struct_repr, Readable.__repr__)
    known = public_classes().items()
    return {n: c for n, c in known if dataclasses.is_dataclass(c) and c.__repr__ in listed}


CLASSES = classes()


@pytest.mark.parametrize("name", CLASSES)
def test_large_values_do_not_make_large_texts(name):
    """Every public struct, with a large array in each field."""
    value = object.__new__(CLASSES[name])
    for f in dataclasses.fields(value):
        value.__dict__[f.name] = np.full((50, 60), 1.0 / 3.0)
    assert not too_large(repr(value), ONE_LINE), repr(value)


def test_public_dataclasses_do_not_print_all_their_numbers():
    """The text that `dataclass` writes has every number: what holds arrays has one of its own."""
    bare = []
    for name, cls in public_classes().items():
        own = cls.__repr__
        file = getattr(getattr(own, "__code__", None), "co_filename", "")
        by_dataclass = file.endswith(("dataclasses.py", "reprlib.py", "<string>"))
        if by_dataclass and own is not struct_repr and "array" in (cls.__doc__ or ""):
            bare.append(name)
    assert bare == [], bare


DIGITS = re.compile(r"(?<![\w.])-?\d+\.(\d+)(?:e[+-]?\d+)?")


def test_numbers_have_sensible_digits(results):
    """No number is printed to its last bit, and rounding noise is zero."""
    for name, value in results.items():
        for found in DIGITS.finditer(repr(value)):
            digits = found[0].split("e")[0].replace(".", "").lstrip("-0")
            assert len(digits) <= 10, f"{name}: {found[0]}"
    noisy = Trajectory(T, {"x": np.where(T > 5.0, 1.0, 1e-17)})
    assert "e-17" not in noisy.report()


def test_digits_show_the_spread():
    found = monte_carlo(lambda p: 1000.0 + p["a"], {"a": Normal(0.0, 0.01)}, n=50)
    line = repr(found).splitlines()[-1].split()
    low, high = float(line[-5]), float(line[-1])
    values = found.results
    assert low == pytest.approx(values.min(), abs=1e-4) != high
    assert high == pytest.approx(values.max(), abs=1e-4)


def test_angles_are_degrees_where_a_person_reads_them():
    @arc.struct
    class Turn:
        bank: float = arc.field(units="rad")
        speed: float = arc.field(units="m/s")

    found = monte_carlo(lambda p: Turn(p["a"], 1.0), {"a": Uniform(0.1, 0.2)}, n=20)
    assert re.search(r"^bank \(deg\) +20 +8\.\d", repr(found), re.M)
    assert found.results.bank.max() < 0.2
    traj = Trajectory(T, Turn(np.full(400, np.pi / 6), T))
    assert re.search(r"^bank \(deg\) +30 +30 ", traj.report(), re.M)
    assert "bank (deg)" in traj._repr_html_() and ">30<" in traj._repr_html_()
    arm = snake(2).build()
    assert "j0 (revolute, -57.3 to 57.3 deg)" in str(arm)
    slides = str(snake(5).build())
    assert "j4 (prismatic, -1 to 1 m)" in slides


def test_trim_tells_the_controls():
    text = repr(trimmed())
    assert text.startswith("Trim: trimmed (largest rate left 1e-13)")
    assert re.search(r"^  throttle +0\.333333$", text, re.M)
    assert re.search(r"^  elevator \(deg\) +-2\.86479$", text, re.M)


def test_campaigns_are_tables_in_notebooks():
    text = campaign()._repr_html_()
    assert text.startswith("<table><caption>Campaign: 40 of 40 runs") and "<td>range</td>" in text


def test_speeds_of_rotors_stay_in_rad_per_s():
    @arc.struct
    class Rotor:
        speed: float = arc.field(units="rad/s")

    assert "speed (rad/s)" in Trajectory(T, Rotor(np.full(400, 600.0))).report()
    assert "speed (deg/s)" in Trajectory(T, Rotor(np.full(400, 1.0))).report()


def test_dispersions_are_relative_to_the_mean():
    found = campaign()
    line = next(row for row in repr(found).splitlines() if row.startswith("range"))
    mean, std = (f(found.results["range"]) for f in (np.mean, lambda x: np.std(x, ddof=1)))
    assert f"{100 * std / mean:.2g} %" in line


def test_keys_of_random_numbers_are_no_parameters():
    found = campaign()
    assert found.keys == ("key",) and found.is_key("key[1]") and not found.is_key("keys")
    assert not re.search(r"^key", found.report(), re.M)
    assert re.search(r"^speed ", found.report(), re.M)
    nested = monte_carlo(lambda p: p["noise"]["seed"][0] * 0.0, {"noise": {"seed": RunKey()}}, n=3)
    assert nested.keys == ("noise.seed",) and nested.is_key("noise.seed[0]")


def test_structs_while_recording_can_be_printed():
    def noted(x):
        assert "State(pos=" in repr(RigidBody.State(x, Quaternion([1.0, 0, 0, 0]), x, x))
        return x

    def shown(data):
        assert repr(data) == "Timeseries(...)"
        return data.ys

    arc.compile(noted)(np.zeros(3))
    arc.compile(shown)(sysid.Timeseries(np.arange(3.0), None, np.arange(3.0)))


def test_messages_are_wrapped_not_cut():
    """What to do about a failure stands at the end of the message."""
    long = "no steady flight found: " + "the rate of climb is left, " * 6 + "or start nearer"
    told = (
        trimmed().replace(message=long),
        flight_record()._replace(trajectory=Trajectory(T, T, message=long)),
        Trajectory(T, T, message=long),
        control.OperatingPoint(T, T, T, T, {}, {}, False, long, len),
    )
    for result in told:
        text = repr(result)
        assert not too_large(text), text
        assert "or start nearer" in " ".join(text.split()), text


def test_odd_values():
    """nan, inf, nothing, and text."""
    nothing = Trajectory(np.zeros(0), np.zeros((0, 2)))
    assert "no samples" in repr(nothing) and nothing.report() and nothing._repr_html_()
    wild = Trajectory(np.arange(3.0), {"x": np.array([np.nan, np.inf, 1e300])})
    assert re.search(r"^x +nan +1e\+300 +1e\+300 +inf$", wild.report(), re.M)
    empty = monte_carlo(lambda p: np.nan, {"a": Normal(0.0, 1.0)}, n=3)
    assert "all runs failed" in repr(empty) and empty.report()
    gaps = sysid.Timeseries(np.arange(3.0), None, np.array([np.nan, 1.0, 2.0]))
    assert re.search(r"y\[0\] +1 +2 +1$", repr(gaps))
    assert "Timeseries: 3 samples, 0 to 2 s" in repr(gaps)
    assert tree.structure(gaps)
