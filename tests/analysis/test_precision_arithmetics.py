"""The arithmetics against independent ones: the interpreter, mpmath, known condition numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import archimedes as arc
from archimedes.analysis.precision.arithmetics import DOUBLE, SINGLE
from archimedes.analysis.precision.conditions import condition_numbers
from archimedes.analysis.precision.double_double import DOUBLE_DOUBLE, DoubleDouble
from archimedes.analysis.precision.execution import Execution
from archimedes.analysis.precision.rounding import round_some
from archimedes.analysis.precision.statistics import relative_error, split
from archimedes.backends.interpreter import run
from archimedes.graph.dtypes import DTYPES, item_type
from archimedes.graph.ops import BY_NAME, CODES
from archimedes.graph.regions import Scan
from archimedes.graph.retype import retype

from ..programs.catalogue import programs
from ..programs.values import bits_equal

PROGRAMS = {program.name: program for program in programs()}
#: Bits of a float64 have no meaning in an arithmetic of other numbers.
_MOVES_BITS = ("bits", "from_bits", "bits32", "from_bits32")


def _instances(program, few=3):
    for k in range(min(few, program.count)):
        yield [x[k] for x in program.columns]


def _equal(a, b):
    return bits_equal(np.atleast_1d(np.asarray(a)), np.atleast_1d(np.asarray(b))).all()


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_gives_the_bits_of_the_interpreter(name):
    """In float64, and in float32 those of the program that ``codegen`` writes."""
    program = PROGRAMS[name]
    graph, single = program.graph, retype(program.graph)
    for values in _instances(program):
        for out, expected in zip(Execution(DOUBLE).run(graph, values), run(graph, values)):
            assert _equal(out, expected)
        with np.errstate(all="ignore"):
            narrow = [
                np.asarray(x).astype(DTYPES[item_type(kind)])[()]
                for x, kind in zip(values, single.input_dtypes)
            ]
        for out, expected in zip(Execution(SINGLE).run(graph, values), run(single, narrow)):
            assert _equal(out, expected)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_with_all_lines_in_float32_is_the_program_in_float32(name):
    """Double rounding is innocuous (Figueroa 1995), except in subnormal numbers."""
    program = PROGRAMS[name]
    single, rounded = retype(program.graph), round_some(program.graph, lambda g, node: True)
    for values in _instances(program, 2):
        with np.errstate(all="ignore"):
            narrow = [
                np.asarray(x).astype(DTYPES[item_type(kind)])[()]
                for x, kind in zip(values, single.input_dtypes)
            ]
            wide = [
                np.asarray(x).astype(DTYPES[item_type(kind)])[()]
                for x, kind in zip(narrow, program.graph.input_dtypes)
            ]
        for out, expected in zip(run(rounded, wide), run(single, narrow)):
            with np.errstate(all="ignore"):
                out = np.asarray(out).astype(np.asarray(expected).dtype)
            if np.asarray(out).dtype.kind == "f":
                small = np.abs(expected) < 1e-37
                np.testing.assert_array_equal(np.where(small, 0, out), np.where(small, 0, expected))
            else:
                assert _equal(out, expected)


@pytest.mark.parametrize("name", PROGRAMS)
def test_double_double_agrees_with_float64_to_its_digits(name):
    program = PROGRAMS[name]
    if any(code in map(CODES.get, _MOVES_BITS) for code in program.graph.op):
        pytest.skip("bits of float64")
    for values in _instances(program, 1):
        outs = Execution(DOUBLE_DOUBLE).run(program.graph, values)
        for out, expected in zip(outs, run(program.graph, values)):
            high = np.asarray(split(out)[0])
            expected = np.asarray(expected)
            expected = expected.astype(float) if expected.dtype.kind == "f" else expected
            assert high.shape == expected.shape
            if expected.dtype.kind != "f":
                continue
            finite = np.isfinite(expected) & (np.abs(expected) < 1e300)
            np.testing.assert_allclose(high[finite], expected[finite], rtol=2e-6, atol=1e-300)


@pytest.mark.parametrize("reverse", [False, True])
def test_steps_of_compiled_loops_are_those_of_interpreted_ones(reverse):
    def model(z):
        return arc.scan(lambda c, v: (c * 0.999 + v * np.sin(c), c), 0.3, z)

    z = np.linspace(0.0, 1.0, 6000)
    graph = arc.compile(model).recording(z).blocks
    (node,) = [i for i, region in graph.regions.items() if isinstance(region, Scan)]
    graph.regions[node] = replace(graph.regions[node], reverse=reverse)
    native, plain = Execution(SINGLE), Execution(SINGLE, compiled=False)
    for a, b in zip(native.run(graph, [z]), plain.run(graph, [z])):
        assert _equal(a, b)
    body = native.bodies[(node, 0),]
    (row,) = body.rows.values()
    (out, *_), kept = body.graph.outputs, plain.bodies[(node, 0),].rows
    at = np.array([path[-1] for path in kept])
    assert body.steps is not None and body.count == 1 and len(at) > 1000
    assert np.array_equal(body.steps, np.arange(6000))
    assert _equal(row[out][at], np.array([values[out] for values in kept.values()]))


# ---- double-double against mpmath ----------------------------------------------------------------

#: Function of mpmath, least and greatest argument.
FUNCTIONS = {
    "add": (lambda m, a, b: a + b, -20.0, 20.0),
    "sub": (lambda m, a, b: a - b, -20.0, 20.0),
    "mul": (lambda m, a, b: a * b, -20.0, 20.0),
    "div": (lambda m, a, b: a / b, -20.0, 20.0),
    "fma": (lambda m, a, b, c: a * b + c, -20.0, 20.0),
    "sqrt": (lambda m, a: m.sqrt(a), 1e-6, 100.0),
    "cbrt": (lambda m, a: m.cbrt(a), 1e-6, 100.0),
    "hypot": (lambda m, a, b: m.hypot(a, b), -20.0, 20.0),
    "sin": (lambda m, a: m.sin(a), -1e6, 1e6),
    "cos": (lambda m, a: m.cos(a), -20.0, 20.0),
    "tan": (lambda m, a: m.tan(a), -20.0, 20.0),
    "arcsin": (lambda m, a: m.asin(a), -1.0, 1.0),
    "arccos": (lambda m, a: m.acos(a), -1.0, 1.0),
    "arctan": (lambda m, a: m.atan(a), -20.0, 20.0),
    "arctan2": (lambda m, a, b: m.atan2(a, b), -20.0, 20.0),
    "sinh": (lambda m, a: m.sinh(a), -20.0, 20.0),
    "cosh": (lambda m, a: m.cosh(a), -20.0, 20.0),
    "tanh": (lambda m, a: m.tanh(a), -20.0, 20.0),
    "arcsinh": (lambda m, a: m.asinh(a), -20.0, 20.0),
    "arccosh": (lambda m, a: m.acosh(a), 1.0, 50.0),
    "arctanh": (lambda m, a: m.atanh(a), -1.0, 1.0),
    "exp": (lambda m, a: m.exp(a), -300.0, 300.0),
    "exp2": (lambda m, a: m.power(2, a), -300.0, 300.0),
    "exp10": (lambda m, a: m.power(10, a), -100.0, 100.0),
    "expm1": (lambda m, a: m.expm1(a), -3.0, 3.0),
    "log": (lambda m, a: m.log(a), 1e-6, 1e6),
    "log2": (lambda m, a: m.log(a) / m.log(2), 1e-6, 1e6),
    "log10": (lambda m, a: m.log10(a), 1e-6, 1e6),
    "log1p": (lambda m, a: m.log1p(a), -0.99, 3.0),
    "pow": (lambda m, a, b: m.power(a, b), 0.01, 8.0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_double_double_functions_have_thirty_digits(name):
    mpmath = pytest.importorskip("mpmath")
    exact, low, high = FUNCTIONS[name]
    rng = np.random.default_rng(1)
    arity = BY_NAME[name].arity
    columns = [rng.uniform(low, high, 40) for _ in range(arity)]
    rests = [x * rng.uniform(-1.0, 1.0, 40) * 2.0**-54 for x in columns]
    operands = [DoubleDouble(x, rest) for x, rest in zip(columns, rests)]
    with np.errstate(all="ignore"):
        result = DOUBLE_DOUBLE.functions[CODES[name]](*operands)
    with mpmath.workprec(300):
        for k in range(40):
            args = [mpmath.mpf(x[k]) + mpmath.mpf(r[k]) for x, r in zip(columns, rests)]
            expected = exact(mpmath, *args)
            error = abs(mpmath.mpf(result.high[k]) + mpmath.mpf(result.low[k]) - expected)
            # Near a zero of sin an argument of 32 digits has fewer.
            assert error < 1e-29 * (abs(expected) + (1.0 if name in ("sin", "cos") else 0.0))


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if BY_NAME[n].arity == 1])
def test_double_double_functions_of_special_values_are_those_of_float64(name):
    values = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e308, 5e-324, 1e22, -3.0])
    with np.errstate(all="ignore"):
        result = DOUBLE_DOUBLE.functions[CODES[name]](DoubleDouble(values))
        expected = DOUBLE.functions[CODES[name]](values)
    np.testing.assert_allclose(result.high, expected, rtol=1e-14)


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "rint"])
def test_whole_numbers_look_at_what_is_behind_the_sixteenth_digit(name):
    function = DOUBLE_DOUBLE.functions[CODES[name]]
    above = function(DoubleDouble(np.array([3.0, 2.5, -3.0]), np.array([1e-17, 1e-17, 1e-17])))
    below = function(DoubleDouble(np.array([3.0, 2.5, -3.0]), np.array([-1e-17] * 3)))
    expected = {
        "floor": ([3, 2, -3], [2, 2, -4]),
        "ceil": ([4, 3, -2], [3, 3, -3]),
        "trunc": ([3, 2, -2], [2, 2, -3]),
        "rint": ([3, 3, -3], [3, 2, -3]),
    }[name]
    assert above.high.tolist() == expected[0] and below.high.tolist() == expected[1]


def test_comparisons_look_at_both_parts():
    a, b = DoubleDouble(1.0, 1e-20), DoubleDouble(1.0, 2e-20)
    assert a < b and a <= b and b > a and a != b
    assert DOUBLE_DOUBLE.functions[CODES["truncate"]](DoubleDouble(3.0, -1e-20)) == 2


# ---- condition numbers ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in ("fma",)])
def test_condition_numbers_are_those_of_mpmath(name):
    """|x f'(x) / f(x)| with the derivative by mpmath."""
    mpmath = pytest.importorskip("mpmath")
    exact, low, high = FUNCTIONS[name]
    low, high = max(low, -2.0), min(high, 3.0)
    rng = np.random.default_rng(2)
    for _ in range(5):
        args = [float(x) for x in rng.uniform(low, high, BY_NAME[name].arity)]
        result = float(DOUBLE.functions[CODES[name]](*map(np.float64, args)))
        for k, number in enumerate(condition_numbers(name, result, *args)):
            with mpmath.workdps(40):
                point = tuple(map(mpmath.mpf, args))
                order = tuple(int(j == k) for j in range(len(args)))
                slope = mpmath.diff(lambda *x: exact(mpmath, *x), point, order)
                expected = abs(point[k] * slope / exact(mpmath, *point))
            np.testing.assert_allclose(float(number), float(expected), rtol=1e-7)


def test_known_condition_numbers():
    """Higham (2002), section 1.6 and problem 1.5; Goldberg (1991), section 1.4."""
    x, y = 1.000001, 1.0
    assert condition_numbers("sub", x - y, x, y)[0] == pytest.approx(1e6, rel=1e-5)
    assert condition_numbers("sqrt", 3.0, 9.0)[0] == 0.5
    assert condition_numbers("exp", np.exp(50.0), 50.0)[0] == pytest.approx(50.0)
    assert condition_numbers("log", np.log(1.001), 1.001)[0] == pytest.approx(1000.5, rel=1e-3)
    assert condition_numbers("arccos", np.arccos(1 - 1e-8), 1 - 1e-8)[0] == pytest.approx(
        5e7, rel=1e-6
    )
    assert condition_numbers("floor", 1.0, 1.5) == [0.0]
    assert condition_numbers("mul", 0.0, 0.0, 3.0)[1] == 0.0


def test_relative_errors_of_values_that_are_no_numbers():
    inf, nan = np.inf, np.nan
    low = np.array([0.0, 1.0, inf, inf, nan, nan, -inf, 1.0])
    high = np.array([0.0, 0.0, inf, 1.0, nan, 1.0, inf, 2.0])
    with np.errstate(all="ignore"):
        errors = relative_error(low - high, high, low)
    assert errors.tolist() == [0.0, inf, 0.0, inf, 0.0, inf, inf, 0.5]
