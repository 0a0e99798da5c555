"""Units of recorded functions: what fits, what does not, where, and what would be right."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import field, struct


@struct
class State:
    pos: np.ndarray = field(units="m")
    vel: np.ndarray = field(units="m/s")


@struct
class Oscillator:
    mass: float = field(units="kg", default=2.0)
    stiffness: float = field(units="N/m", default=3.0)
    damping: float = field(units="N s/m", default=0.1)

    def dynamics(self, t, x):
        force = -self.stiffness * x.pos - self.damping * x.vel
        return State(pos=x.vel, vel=force / self.mass)

    def wrong_force(self, t, x):
        force = -self.stiffness * x.pos - self.damping * x.pos  # LINE force
        return State(pos=x.vel, vel=force / self.mass)

    def without_mass(self, t, x):
        force = -self.stiffness * x.pos - self.damping * x.vel  # LINE mass
        return State(pos=x.vel, vel=force)

    def wrong_rate(self, t, x):
        force = -self.stiffness * x.pos - self.damping * x.vel
        return State(
            pos=x.pos,  # LINE rate
            vel=force / self.mass,
        )


X = State(np.ones(3), np.ones(3))


def line(mark):
    with open(__file__) as file:
        return next(n for n, text in enumerate(file, 1) if text.rstrip().endswith(f"# LINE {mark}"))


def only(report):
    assert len(report) == 1, str(report)
    return report[0]


def test_a_model_that_fits():
    report = arc.check_units(Oscillator().dynamics)(0.0, X)
    assert report.ok
    assert report.units["return.pos"] == "m/s"
    assert report.units["return.vel"] == "m/s^2"
    assert str(report) == "nothing to report for Oscillator.dynamics()"


def test_a_sum_names_line_expression_and_both_units():
    found = only(arc.check_units(Oscillator().wrong_force)(0.0, X))
    assert found.file == __file__
    assert found.line == line("force")
    assert found.expression == "-self.stiffness * x.pos - self.damping * x.pos"
    assert found.message.startswith("subtracts N s from N (`-self.stiffness * x.pos` is N,")
    assert found.kind == "units"


def test_a_missing_mass_is_named():
    found = only(arc.check_units(Oscillator().without_mass, rates_of="x")(0.0, X))
    assert found.line == line("mass")
    assert found.message == "State.vel is given N, it must be m/s^2: divide by `self.mass`?"


def test_a_wrong_rate_points_to_its_keyword():
    found = only(arc.check_units(Oscillator().wrong_rate, rates_of="x")(0.0, X))
    assert found.line == line("rate")
    assert found.message.startswith("State.pos is given m, it must be m/s")
    assert found.expression == "x.pos"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda m, s, f, a: m + s, "adds m and s"),
        (lambda m, s, f, a: m - f, "subtracts ft from m"),
        (lambda m, s, f, a: np.maximum(m, s), "takes the larger of m and s"),
        (lambda m, s, f, a: np.where(m > s, m, 0.0), "compares s with m (`s` is s, `m` is m)"),
        (lambda m, s, f, a: np.where(m > 0, m, s), "chooses between m and s"),
        (lambda m, s, f, a: np.exp(m), "np.exp takes a plain number, but its argument is m"),
        (lambda m, s, f, a: np.arctan2(m, s), "takes the angle of m and s"),
        (lambda m, s, f, a: np.hypot(m, s), "combines m and s to a length"),
        (lambda m, s, f, a: np.sin(a), "this is degrees, np.deg2rad makes radians of it"),
        (lambda m, s, f, a: np.sin(np.deg2rad(np.deg2rad(a))), "np.deg2rad takes degrees, but"),
        (lambda m, s, f, a: np.rad2deg(a) + a, "np.rad2deg takes radians, but its argument is deg"),
        (lambda m, s, f, a: arc.special.erf(m), "np.erf takes a plain number"),
        (lambda m, s, f, a: 2.0**m, "the exponent is m"),
        (lambda m, s, f, a: m ** (s / s), "raises m to a power that is not constant"),
        (lambda m, s, f, a: np.linalg.norm(np.array([m, s])), "adds m^2 and s^2"),
        (lambda m, s, f, a: np.stack([m, s]) @ np.stack([m, s]), "adds m^2 and s^2"),
        (lambda m, s, f, a: 2.0 * m + f, "2 would turn m into ft, but that factor is 3.28084"),
        (lambda m, s, f, a: np.sqrt(m * m * m) + m, "adds m^1.5 and m"),
        (lambda m, s, f, a: np.mean(np.stack([m, m])) + s, "adds m and s"),
        (lambda m, s, f, a: arc.quantity(3.0, "ft") + s, "adds m and s"),
        (lambda m, s, f, a: 2.0 * arc.quantity(3.0, "ft") * m + m, "adds m^2 and m"),
        (lambda m, s, f, a: 0.5 * m * s**2 + m, "adds m s^2 and m"),
        (lambda m, s, f, a: 4 / 3 * np.pi * m**3 + s, "adds m^3 and s"),
        (lambda m, s, f, a: arc.quantity(s, "ft") + m, ""),
    ],
)
def test_each_rule(function, message):
    units = {"m": "m", "s": "s", "f": "ft", "a": "deg"}
    report = arc.check_units(function, units)(1.0, 2.0, 3.0, 0.5)
    assert any(message in f.message for f in report), str(report)


@pytest.mark.parametrize(
    "function",
    [
        lambda m, s, f, a: m + 2.0,
        lambda m, s, f, a: m + 0.3048 * f,
        lambda m, s, f, a: m + f / 3.28,
        lambda m, s, f, a: m + 0.5 * 0.3048 * f,
        lambda m, s, f, a: np.sin(np.deg2rad(a)) + np.cos(a * np.pi / 180),
        lambda m, s, f, a: m + 1.0 * s,
        lambda m, s, f, a: -2.0 * m - 0.5 * s,
        lambda m, s, f, a: 0.01 * m * s + m,
        lambda m, s, f, a: np.where(m > 0, m, 0.0) + np.inf,
        lambda m, s, f, a: np.sqrt(m**2 + (3.0 * m) ** 2) + m,
        lambda m, s, f, a: m**1.5 / np.sqrt(m) + m,
        lambda m, s, f, a: m * np.sign(s) + np.clip(m, -1.0, 1.0),
        lambda m, s, f, a: np.remainder(m, 2.0 * m) + np.hypot(m, m),
        lambda m, s, f, a: np.interp(m, [0.0, 1.0], [2.0, 3.0]) * m,
        lambda m, s, f, a: np.linalg.norm(np.array([m, 2.0 * m, 0.0])) + m,
        lambda m, s, f, a: (m > 0) * m + m,
        lambda m, s, f, a: np.stack([m, s]) * 2.0,
        lambda m, s, f, a: m + arc.quantity(3.0, "ft"),
        lambda m, s, f, a: np.exp(-s / arc.quantity(2.0, "min")) * m + m,
    ],
)
def test_no_false_alarm(function):
    units = {"m": "m", "s": "s", "f": "ft", "a": "deg"}
    report = arc.check_units(function, units)(1.0, 2.0, 3.0, 0.5)
    assert report.ok, str(report)


def test_undeclared_arguments_get_the_units_they_need():
    report = arc.check_units(lambda m, v, x: m * v**2 / 2 + x, {"m": "kg", "v": "m/s"})(
        1.0, 2.0, 3.0
    )
    assert report.units == {"m": "kg", "v": "m/s", "x": "N m", "return": "N m"}


def test_quantity_is_a_plain_number():
    value = arc.quantity(10, "ft")
    assert type(value) is float
    assert value == 10 * 0.3048
    array = arc.quantity([1.0, 2.0], "km")
    assert type(array) is np.ndarray
    assert array.tolist() == [1000.0, 2000.0]
    assert arc.compile(lambda x: arc.quantity(x, "ft"))(10.0) == value
    assert arc.quantity(1.0, "m") == 1.0
    assert arc.quantity(68, "degF") == pytest.approx(293.15, rel=1e-15)


GRAVITY = arc.quantity(32.174, "ft/s^2")
OFFSET = arc.quantity([1.0, 2.0, 3.0], "ft")


def test_constants_of_a_module_carry_their_unit():
    assert "m/s^2" in only(arc.check_units(lambda v: v + GRAVITY, {"v": "m/s"})(1.0)).message
    assert only(arc.check_units(lambda v: v + OFFSET, {"v": "m/s"})(np.ones(3)))
    assert arc.check_units(lambda p: p + OFFSET, {"p": "m"})(np.ones(3)).ok


def test_many_quantities_are_not_kept():
    from archimedes.analysis.units import recording

    held = [arc.quantity(float(k), "ft") for k in range(10)]
    for k in range(3 * recording._MANY):
        arc.quantity(float(k), "ft")
    assert len(recording._numbers) <= recording._MANY + 10
    assert all(recording.known_unit(value) is not None for value in held)
    # Another number of the same value has no unit.
    assert recording.known_unit(held[3] + 0.0) is None


def test_quantity_keeps_its_unit_in_structs_and_containers():
    @struct
    class Part:
        mass: float  # no unit declared

    part, pair = Part(arc.quantity(2.0, "lbm")), [arc.quantity(1.0, "s")]
    assert only(arc.check_units(lambda x: x + part.mass, {"x": "m"})(1.0))
    assert only(arc.check_units(lambda x: x + pair[0], {"x": "m"})(1.0))


def test_units_of_elements_in_a_field():
    @struct
    class Pose:
        xy_yaw: np.ndarray = field(units="m, m, rad")

    def mixed(p):
        return p.xy_yaw[0] + p.xy_yaw[2]

    def fine(p):
        return np.cos(p.xy_yaw[2]) * p.xy_yaw[0] + p.xy_yaw[1]

    assert only(arc.check_units(mixed)(Pose(np.ones(3))))
    assert arc.check_units(fine)(Pose(np.ones(3))).units["return"] == "m"
    with pytest.raises(arc.UnitsError, match=r"p.xy_yaw has 3 units for 2 elements"):
        arc.check_units(fine)(Pose(np.ones(2)))


def test_units_by_element():
    def f(x):
        return x[0] + x[1] * 2.0, x[0] + x[2]

    report = arc.check_units(f, {"x": ["m", "m", "kg"]})(np.ones(3))
    assert "adds m and kg" in only(report).message
    report = arc.check_units(f, {"x": "m"})(np.ones(3))
    assert report.ok


def test_all_forms_of_arguments():
    def several(*values, y=2.0):
        return values[0] + values[1], values[0] + y

    units = {"values[0]": "m", "values[1]": "s", "y": "kg"}
    found = {f.expression for f in arc.check_units(several, units)(1.0, 2.0)}
    assert found == {"values[0] + values[1]", "values[0] + y"}
    by_key = arc.check_units(lambda d: d["a"] + d["b"], {"d['a']": "m", "d['b']": "s"})
    assert only(by_key({"a": 1.0, "b": 2.0}))
    # A count decides on shapes: it is static, unless it has a unit.
    assert arc.check_units(lambda n, x: x * np.ones(n), {"x": "m"})(3, 2.0).ok
    assert only(arc.check_units(lambda n, x: x + n, {"x": "m", "n": "s"})(3, 2.0))


def test_repr_says_what_is_checked():
    def f(x):
        return x

    assert repr(arc.check_units(f, {"x": "m"})).endswith("f, {'x': 'm'})")


def test_errors_name_what_is_wrong():
    def f(x):
        return x

    with pytest.raises(arc.UnitsError, match=r"unknown unit"):
        arc.check_units(f, {"x": "smoot"})(1.0)
    with pytest.raises(arc.UnitsError, match="units names 'y', but the arguments are 'x'"):
        arc.check_units(f, {"y": "m"})(1.0)
    with pytest.raises(arc.UnitsError, match="rates_of is 'y'"):
        arc.check_units(f, rates_of="y")
    with pytest.raises(arc.UnitsError, match="units is a mapping"):
        arc.check_units(f, ["m"])
    with pytest.raises(arc.UnitsError, match="x has 2 units for 3 elements"):
        arc.check_units(f, {"x": ["m", "s"]})(np.ones(3))
    with pytest.raises(TypeError, match="func must be"):
        arc.check_units(1.0)


def test_what_could_not_be_taken_into_account_is_said():
    import functools

    part = Oscillator()
    factor = functools.lru_cache(lambda mass: 2.0 * mass)  # it hashes the number itself

    def f(x):
        return x * factor(part.mass)

    report = arc.check_units(f, {"x": "m"})(1.0)
    assert report.ok
    assert str(report).endswith("without the units of structs that it reads or makes")


def test_recordings_are_as_they_were():
    def f(x, A):
        sorted_x = np.sort(x) * 1.0 + np.interp(x, [0.0, 1.0, 2.0], [1.0, 3.0, 2.0]) / 2.0
        return np.linalg.solve(A, sorted_x) + arc.scan(lambda c, s: (c + s, c), 0.0, x)[0]

    args = np.arange(3.0), 2.0 * np.eye(3)
    before = arc.compile(f).graph(*args).digest()
    assert arc.check_units(f, {"x": "m", "A": ""})(*args).ok
    after = arc.compile(lambda x, A: f(x, A)).graph(*args)
    assert after.digest() == before
    assert after.lines is None
    assert type(after).__name__ == "Graph"


def test_threads_do_not_see_each_others_checks():
    import threading

    kinds = []

    def check(x):
        other = threading.Thread(
            target=lambda: kinds.append(type(arc.compile(lambda y: y + 1.0).graph(1.0)).__name__)
        )
        other.start()
        other.join()
        return x + 1.0

    assert arc.check_units(check, {"x": "m"})(1.0).ok
    assert kinds == ["Graph"]


def test_arrays_without_elements_have_no_unit():
    def f(x: float):
        return np.sum(x + np.zeros(0)) + x

    assert arc.check_units(f)(1.0).ok
