"""``f.precision``: models that lose digits are diagnosed to their line and mended by the advice."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.analysis.precision.report import PrecisionReport
from archimedes.errors import ShapeDtypeError

from . import precision_models as models


@pytest.mark.parametrize("name", models.CASES)
def test_the_line_is_found_and_the_advice_mends_it(name):
    model, line, advice, mended, args = models.CASES[name]
    report = arc.compile(model).precision(*args)
    assert isinstance(report, PrecisionReport) and not report.ok
    found = [f for f in report if line in f.expression]
    assert found and found[0].file == models.__file__ and found[0].kind == "digits"
    assert any(advice in finding.message for finding in found), str(report)
    assert report.digits < 4 and max(r.relative for r in report.results) > report.rtol
    assert report.double and report.double_error <= report.rtol and "in double" in str(report)
    after = arc.compile(mended).precision(*args)
    assert after.ok and not list(after) and after.digits > 4.0, str(after)
    assert "results within" in str(after)


def test_float32_results_are_those_of_numpy():
    """Written out in float32 by hand."""
    f = np.float32
    a, b, c = f(1.0), f(300.0), f(1.0)
    d = b * b - f(4.0) * a * c
    root = (-b + np.sqrt(d)) / (f(2.0) * a)
    exact = (-300.0 + np.sqrt(90000.0 - 4.0)) / 2.0
    (result,) = arc.compile(models.larger_root).precision(1.0, 300.0, 1.0).results
    assert result.computed == float(root) and result.value == exact
    np.testing.assert_allclose(result.absolute, abs(float(root) - exact), rtol=1e-12)
    np.testing.assert_allclose(result.relative, abs(float(root) - exact) / abs(exact), rtol=1e-12)
    np.testing.assert_allclose(
        result.ulps, result.absolute / float(np.spacing(f(-exact))), rtol=1e-12
    )
    np.testing.assert_allclose(result.digits, -np.log10(result.relative), rtol=1e-12)


def test_a_mixed_program_is_what_numpy_computes_with_casts():
    """d in double, the rest in float32: the error that the report gives for it."""
    report = arc.compile(models.covariance).precision(1e8, 1e-9, 1e-2)
    P, q, r = np.float64(np.float32(1e8)), np.float32(1e-9), np.float32(1e-2)
    lines = {word for text in report.double for word in text.split() if ".py:" in word}
    assert len(lines) == 2  # K and the update; the prediction stays in float32
    for _ in range(1000):
        P = np.float64(np.float32(P) + q)
        K = P / (P + np.float64(r))
        P = P - K * P
    exact = report.results[0].value
    np.testing.assert_allclose(report.double_error, abs(P - exact) / exact, rtol=1e-9)


def test_drift_is_reported_per_step():
    report = arc.compile(models.clock).precision(0.01)
    t = np.float32(0.0)
    for _ in range(360_000):
        t = t + np.float32(0.01)
    (line,) = report.lines
    np.testing.assert_allclose(line.drift, (float(t) - 3600.0) / 360_000, rtol=1e-6)
    assert "in proportion to time" in report[0].message and "360,000 steps" in report[0].message


def test_an_integrator_that_stands_still_says_so():
    def integrate(x, rate):
        return arc.fori_loop(0, 1000, lambda k, x: x + rate, x)

    report = arc.compile(integrate).precision(1e4, 1e-4, rtol=1e-6)
    assert "stands still" in report[0].message and report.lines[0].absorbed == 1.0


def test_effects_are_those_of_single_lines():
    def model(x):
        y = x - 0.125
        z = y * 3.0
        w = z - 2.5
        return w

    report = arc.compile(model).precision(np.nextafter(23 / 24, 1) + 1e-6, rtol=1e-6)
    effects = {line.text: line.effect for line in report.lines}
    assert effects["z = y * 3.0"] > effects["w = z - 2.5"] >= 0


def test_latitude_and_height_from_earth_centred_coordinates():
    """In float32 a position is known to half a metre: that is the argument's fault."""
    from archimedes.environment import ecef_to_geodetic, geodetic_to_ecef

    f = arc.compile(ecef_to_geodetic, return_names=("lat", "lon", "alt"))
    report = f.precision(geodetic_to_ecef(0.8, 0.2, 10.0))
    assert not report.ok and "argument p_E" in report.double
    (finding,) = [x for x in report if x.expression == "p_E"]
    assert "subtract a reference before converting" in finding.message
    lat, lon, alt = report.results
    assert min(lat.digits, lon.digits) > 6.5 and alt.digits < 2.5

    def relative_height(d_E, p_E):
        # The difference from a known point, converted after it was taken.
        return d_E @ p_E / np.sqrt(p_E @ p_E)

    p_E = geodetic_to_ecef(0.8, 0.2, 0.0)
    d_E = geodetic_to_ecef(0.8, 0.2, 10.0) - p_E
    assert arc.compile(relative_height).precision(d_E, p_E).digits > 6


def test_attitude_from_a_rotation_matrix():
    """The angle of a small rotation by the trace, and by the sine."""

    def angle(R):
        c = (np.trace(R) - 1.0) / 2.0
        return np.arccos(c)

    def mended(R):
        s = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2.0
        return np.arctan2(np.sqrt(s @ s), (np.trace(R) - 1.0) / 2.0)

    R = arc.spatial.RotationVector(np.array([1e-3, 2e-3, -1e-3])).as_matrix()
    report = arc.compile(angle).precision(R)
    assert report.digits < 2 and any("np.arctan2" in finding.message for finding in report)
    assert arc.compile(mended).precision(R).digits > 5


def test_long_counters_and_sums():
    """A sum of many numbers, naive and compensated: Higham (2002), section 4.3."""

    def naive(x):
        return arc.scan(lambda s, v: (s + v, None), 1e4, x)[0]

    def kahan(x):
        def step(state, v):
            s, c = state
            y = v - c
            t = s + y
            return (t, (t - s) - y), None

        return arc.scan(step, (1e4, 0.0), x)[0][0]

    x = np.full(10_000, 1e-3 / 3.0)
    report = arc.compile(naive).precision(x, rtol=1e-5)
    assert not report.ok and "stands still" in report[0].message
    assert arc.compile(kahan).precision(x, rtol=1e-6).ok


def test_a_loss_without_a_single_culprit_is_still_a_finding():
    """The inverse of a matrix of condition 1e4: many roundings, none of them bad."""
    A = np.random.default_rng(0).normal(size=(7, 7))
    report = arc.compile(lambda A: np.linalg.inv(A @ A.T) @ A).precision(A, digits=5.5)
    assert report.digits < 5.5 and not report.ok and len(report) >= 1


def test_series_and_powers_near_one():
    """exp(-15) by its series (Higham 2002, section 1.12) and a height from a ratio of pressures."""

    def series(x):
        term = total = 1.0
        for k in range(1, 60):
            term = term * x / k
            total = total + term
        return total

    report = arc.compile(series).precision(-15.0)
    assert report[0].expression == "total = total + term"
    assert "terms of up to 3.35e+05 cancel" in report[0].message
    height = arc.compile(lambda p: (1.0 - (p / 101325.0) ** 0.190284) * 44330.8)
    assert "np.expm1(y*np.log(x))" in height.precision(101324.5)[0].message


def test_a_small_difference_that_is_added_to_a_large_number_is_not_blamed():
    """The innovation of a filter that has settled has no digits, and needs none."""

    def settle(z):
        def step(k, state):
            y, t = state
            e = z - y
            y = y + 0.1 * e
            t = t + 1e-3
            return y, t

        return arc.fori_loop(0, 20_000, step, (0.0, 4000.0))

    report = arc.compile(settle).precision(20.0, rtol=1e-6)
    assert not report.ok and {f.expression for f in report} == {"t = t + 1e-3"}


def test_a_parameter_of_the_name_of_an_option_is_the_functions():
    f = arc.compile(lambda x, digits: x * digits)
    assert f.precision(2.0, digits=3.0).results[0].value == 6.0


# ---- float64 against double-double -------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "args"),
    [
        (models.larger_root, (1.0, 1e8, 1.0)),
        (models.variance, (1e7 + np.linspace(0.0, 1.0, 40),)),
        (models.variance, (1e7 + np.linspace(0.0, 1.0, 400),)),
        (models.angle_between, (np.array([1.0, 0.0, 0.0]), np.array([1.0, 1e-7, 0.0]))),
        (models.covariance, (1e14, 1e-9, 1e-4)),
    ],
)
def test_float64_is_compared_with_double_double(model, args):
    report = arc.compile(model).precision(*args, dtype=np.float64)
    assert report.against == "double-double" and not report.ok and report.digits < 4
    assert not report.double
    healthy = arc.compile(lambda x: np.exp(np.sin(x)) + x).precision(0.3, dtype=float)
    assert healthy.ok and healthy.digits > 15


def test_the_reference_of_float64_is_right():
    """The root of Goldberg's quadratic by mpmath."""
    mpmath = pytest.importorskip("mpmath")
    report = arc.compile(models.larger_root).precision(1.0, 1e8, 1.0, dtype=np.float64)
    with mpmath.workdps(60):
        exact = (-(mpmath.mpf(10) ** 8) + mpmath.sqrt(mpmath.mpf(10) ** 16 - 4)) / 2
        error = abs(mpmath.mpf(report.results[0].computed) - exact)
        np.testing.assert_allclose(report.results[0].absolute, float(error), rtol=1e-12)


# ---- decisions, and values that are no numbers ---------------------------------------------------


def test_a_branch_that_goes_another_way_is_reported():
    def model(x):
        return np.where(x * 3.0 > 0.3, 1.0, 2.0)

    report = arc.compile(model).precision(0.1)
    assert "the branch is taken in float64 and not taken in float32" in report[0].message
    assert report[0].expression == "return np.where(x * 3.0 > 0.3, 1.0, 2.0)"


def test_an_integer_that_differs_is_reported():
    def model(t):
        return (t * 100.0).astype(int)

    for function in (model, lambda t: np.floor(100.0 * t)):
        report = arc.compile(function).precision(np.float64(0.29))
        assert "the integer is 28 in float64 and 29 in float32" in report[0].message


def test_a_loop_that_runs_longer_is_noted():
    def root(a):
        return arc.while_loop(
            lambda s: np.abs(s * s - a) > 1e-12 * a, lambda s: 0.5 * (s + a / s), a, max_steps=60
        )

    report = arc.compile(root).precision(2.0)
    assert report.ok
    assert any("runs 5 times in float64 and 60 times in float32" in note for note in report.notes)


@pytest.mark.parametrize(
    ("function", "args", "ok"),
    [
        (lambda x: np.log(x), (-1.0,), True),  # nan in both
        (lambda x: 1.0 / x, (0.0,), True),  # infinite in both
        (lambda x: x * 0.0, (3.0,), True),  # zero in both
        (lambda x: x * 1e-30 * 1e-20, (1.0,), False),  # underflow
        (lambda x: x * 1e-30 * 1e-13, (1.0,), False),  # subnormal: two digits
        (lambda x: x[:0], (np.ones(3),), True),
        (lambda x: (x, 3.0), (2,), True),
        (lambda x: x > 1, (2.0,), True),
        (lambda k: k * 3, (7,), True),
        (lambda x: np.sqrt(1.0 - x), (0.9999999999,), False),
        (lambda x: np.sqrt(x - 1.0), (1.0 + 1e-9,), False),
    ],
)
def test_special_values(function, args, ok):
    with np.errstate(all="ignore"):
        assert arc.compile(function).precision(*args).ok is ok


def test_nan_in_float32_only_is_explained():
    def model(v):
        u = v / np.sqrt(v @ v)
        return np.arccos(u @ u)

    report = arc.compile(model).precision(np.array([0.75, 2.38, 1.65]))
    assert "is nan in float32 and not in float64" in "".join(f.message for f in report)
    assert "clip" in "".join(f.message for f in report)


def test_a_result_that_float64_cannot_tell_from_zero_is_judged_by_its_terms():
    """The sine of pi, and forces in equilibrium: nothing but rounding is left of them."""
    sine = arc.compile(lambda x: np.sin(x)).precision(np.pi)
    assert sine.ok and sine.results[0].value == np.sin(np.pi)
    assert "cannot be told from zero" in sine.notes[-1]
    np.testing.assert_allclose(sine.results[0].relative, 8.742278e-8 / np.pi, rtol=0.5)
    balance = arc.compile(lambda f: f[0] + f[1] - f[2])
    assert balance.precision(np.array([0.1, 0.2, 0.3]) * 1e5).ok
    # A difference of which float64 knows three digits is no zero.
    assert not balance.precision(np.array([0.1, 0.2, 0.3 + 1e-13])).ok


def test_errors_below_atol_do_not_count():
    f = arc.compile(lambda x: x - 1.0)
    assert not f.precision(1.0 + 1e-7).ok and f.precision(1.0 + 1e-7, atol=1e-6).ok


def test_small_elements_count_as_a_thousandth_of_the_largest():
    rotation = arc.compile(lambda a: np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]))
    assert rotation.precision(np.pi / 2).ok


def test_overflow_without_effect_is_a_remark():
    report = arc.compile(lambda x: 1.0 / (1.0 + np.exp(x))).precision(100.0, atol=1e-30)
    assert report.ok and "overflows" in report.notes[0]


# ---- all regions ---------------------------------------------------------------------------------


def test_bodies_of_loops_branches_maps_and_systems_are_examined():
    def model(x, A):
        y = arc.vmap(lambda v: v * v - 1.0)(x)
        z = arc.cond(x[0] > 0.0, lambda v: v - 1.0, lambda v: v + 1.0, x[1])
        w, ws = arc.scan(lambda c, v: (c * 0.5 + v, c), x[0], x)
        return y, z, w, ws, np.linalg.solve(A, x)

    hilbert = 1.0 / (1.0 + np.add.outer(np.arange(5.0), np.arange(5.0)))
    x = np.array([1.0 + 1e-6, 3.0, 2.0, 1.0, 0.5])
    report = arc.compile(model).precision(x, hilbert)
    lines = {line.text.split("=")[0].strip(): line for line in report.lines}
    np.testing.assert_allclose(lines["y"].amplification, 5e5, rtol=1e-3)
    assert {"y", "z", "w, ws"} <= set(lines)
    assert any("linear system" in finding.message for finding in report)


def test_methods_and_named_results_are_examined():
    @arc.struct
    class Gain:
        k: float = 2.0

        @arc.compile(return_names=("difference", "double"))
        def step(self, x):
            return x - 1.0, self.k * x

    report = Gain().step.precision(1.0 + 1e-7)
    assert [result.name for result in report.results] == ["difference", "double"]


def test_lines_inside_the_package_are_named_with_the_line_that_calls_them():
    def model(x):
        return arc.spatial.quaternion_log(x)[0] - 1.0

    assert arc.compile(model).precision(np.array([1.0, 0.1, 0.0, 0.0])).lines[0].file == __file__


# ---- ranges --------------------------------------------------------------------------------------


def test_ranges_are_sampled_at_corners_and_inside():
    f = arc.compile(models.larger_root)
    inside = f.precision(1.0, 3.0, 1.0, ranges={"b": (2.5, 3.5)})
    assert inside.ok and "samples" in inside.about
    report = f.precision(1.0, 3.0, 1.0, ranges={"a": (1.0, 2.0), "b": (3.0, 1e4)})
    assert not report.ok and "conjugate" in report[0].message
    assert "no division by zero" in report.proven and "proven: no division" in str(report)
    assert report.results[0].relative > 0.1


def test_ranges_of_leaves_and_of_whole_arguments():
    @arc.struct
    class State:
        pos: np.ndarray

    def model(x, k):
        return x.pos * 2.0 + k

    f = arc.compile(model)
    x = State(np.ones(3))
    for ranges in ({"x.pos": (-np.ones(3), np.ones(3))}, {"x": (-1, 1), "k": (-2, 2)}):
        assert f.precision(x, 3, ranges=ranges).ok
    with pytest.raises(ValueError, match="no number of the arguments is called 'y'"):
        f.precision(x, 3, ranges={"y": (0, 1)})
    with pytest.raises(ValueError, match="lower limit above upper limit"):
        f.precision(x, 3, ranges={"k": (1, 0)})
    with pytest.raises(ShapeDtypeError, match=r"a range of shape \(2,\) does not fit x\.pos"):
        f.precision(x, 3, ranges={"x.pos": (np.zeros(2), np.ones(2))})
    with pytest.raises(ValueError, match=r"the range of x\.pos, from 0 to inf, cannot be sampled"):
        f.precision(x, 3, ranges={"x.pos": (0.0, np.inf)})
    with pytest.raises(TypeError, match="ranges must be a dict"):
        f.precision(x, 3, ranges=[(0, 1)])


def test_what_is_proven_and_what_was_only_sampled():
    def model(x, y):
        return np.sqrt(x) / (y - 0.4)

    f = arc.compile(model)
    sound = f.precision(ranges={"x": (0.0, 4.0), "y": (1.0, 2.0)})
    assert sound.ok and not sound.sampled
    assert {"no overflow", "no division by zero"} < {*sound.proven}
    # A pole that no sample meets.
    report = f.precision(1.0, 0.0, ranges={"x": (0.0, 4.0), "y": (-1.0, 1.0)})
    assert "no division by zero" not in report.proven
    assert any(
        "no division by zero: not proven for test_precision.py:" in s for s in report.sampled
    )
    # What overflows in float32 only.
    big = arc.compile(lambda x: x * x)
    assert "no overflow" in big.precision(ranges={"x": (0.0, 1e19)}).proven
    assert "no overflow" not in big.precision(ranges={"x": (0.0, 1e20)}).proven
    wide = big.precision(ranges={"x": (0.0, 1e20)}, dtype=np.float64)
    assert "no overflow" in wide.proven


# ---- options and report --------------------------------------------------------------------------


def test_options_are_checked():
    f = arc.compile(lambda x: 2.0 * x)
    with pytest.raises(ValueError, match=r"dtype=.*choose np.float32 or np.float64"):
        f.precision(1.0, dtype=np.int64)
    with pytest.raises(ValueError, match="give rtol or digits, not both"):
        f.precision(1.0, rtol=1e-3, digits=3)
    with pytest.raises(ValueError, match="must be positive"):
        f.precision(1.0, rtol=0.0)
    with pytest.raises(ValueError, match=r"float32 has 7\.2 digits"):
        f.precision(1.0, digits=9)
    assert f.precision(0.1, digits=6).rtol == pytest.approx(1e-6)


def test_a_report_is_text_and_plain_values():
    report = arc.compile(models.larger_root).precision(1.0, 1e4, 1.0)
    text = str(report)
    assert "float32 against float64, results not within 1e-04" in text
    assert "precision_models.py:" in text and "amplifies" in text
    figures = report.figures()
    assert figures["results"][0]["name"] == "result" and figures["dtype"] == "float32"
    assert report.as_json()[0]["kind"] == "digits"


def test_long_reports_show_the_worst():
    f = arc.compile(lambda x: tuple(x * k for k in range(1, 31)))
    text = str(f.precision(0.1))
    assert len(text.splitlines()) < 20 and "and 20 results with smaller errors" in text


def test_it_is_refused_while_recording():
    inner = arc.compile(lambda x: 2.0 * x)
    with pytest.raises(Exception, match="outside of functions that are being recorded"):
        arc.compile(lambda x: inner.precision(x).digits)(1.0)
