"""Every op on intervals: contains what is computed, and is what interval libraries give."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from archimedes.analysis.ranges import rounding
from archimedes.analysis.ranges.functions import FUNCTIONS, function_range, sine_range
from archimedes.analysis.ranges.operations import OPERATIONS
from archimedes.analysis.ranges.subdivision import bound_graph
from archimedes.graph import B8, F32, F64, I64, Graph
from archimedes.graph.ops import CODES, OPERANDS, TABLE
from tests.analysis.sampling import outside, points_in, points_of_types, results_at

mpmath = pytest.importorskip("mpmath")
INF = np.inf

NASTY = [
    *((0.0, 0.0), (-0.0, 0.0), (1.0, 1.0), (-1.0, 1.0), (0.0, 1.0), (-2.0, 0.0), (1.0, 2.0)),
    *((-3.0, -0.5), (0.1, 0.3), (1e-320, 1e-310), (-5e-324, 5e-324), (1e300, 1.7e308)),
    *((-1.7e308, 1e308), (0.0, INF), (-INF, INF), (-INF, -1.0), (1e-9, 1e9), (3.0, 4.0)),
    *((np.pi / 2, np.pi), (-7.0, 20.0), (1e15, 1e15 + 2), (0.999999, 1.0), (5e-324, 1e-300)),
]
FINITE = [pair for pair in NASTY if np.isfinite(pair).all()]


def ends_of(*pairs: tuple[float, float]) -> np.ndarray:
    """Return intervals as an array (2, n)."""
    return np.array(pairs, dtype=float).T


# ---- against another library's intervals --------------------------------------------------------

ARITHMETIC = {
    "add": (rounding.add, lambda a, b: a + b),
    "sub": (rounding.subtract, lambda a, b: a - b),
    "mul": (rounding.multiply, lambda a, b: a * b),
    "div": (rounding.divide, lambda a, b: a / b),
}


def is_next(ours: float, exact: mpmath.mpf, sign: float, *operands: float) -> bool:
    """Return whether an end is the exact one, moved to the next number at most."""
    if np.isinf(ours):
        return abs(exact) > 1.7976931348623157e308 or bool(mpmath.isinf(exact))
    gap = sign * (mpmath.mpf(ours) - exact)
    step = abs(float(np.nextafter(ours, -sign * INF)) - ours) if ours else 5e-324
    # Where the error cannot be computed, close to under- and overflow, it is one step more.
    steps = 1 if all(x == 0.0 or 1e-280 < abs(x) < 1e280 for x in (ours, *operands)) else 2
    # The other library rounds too, at 300 bits.
    return bool(-abs(exact) * mpmath.mpf(2) ** -250 <= gap <= steps * step)


@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_is_rounded_outward_to_the_next_number(name):
    ours, theirs = ARITHMETIC[name]
    rng = np.random.default_rng(1)
    pairs = list(itertools.product(FINITE, FINITE))[:: 1 if name == "mul" else 3]
    for _ in range(100):
        a, b = (np.sort(rng.normal(size=2) * 10.0 ** rng.integers(-8, 8)).tolist() for _ in "ab")
        pairs.append((tuple(a), tuple(b)))
    mpmath.iv.prec = 300
    for a, b in pairs:
        if name == "div" and b[0] <= 0.0 <= b[1]:
            continue
        exact = theirs(mpmath.iv.mpf(list(a)), mpmath.iv.mpf(list(b)))
        with np.errstate(all="ignore"), mpmath.workprec(300):
            low, high = ours(ends_of(a), ends_of(b))[:, 0]
            assert is_next(low, mpmath.mpf(exact.a), -1.0, *a, *b), (name, a, b, low, exact)
            assert is_next(high, mpmath.mpf(exact.b), 1.0, *a, *b), (name, a, b, high, exact)


def test_roots_and_squares_are_rounded_outward_to_the_next_number():
    rng = np.random.default_rng(2)
    numbers = [0.0, 1.0, 4.0, 2.0, 1e300, 5e-324, 1e-310, *(10.0 ** rng.uniform(-300, 300, 200))]
    with mpmath.workprec(300), np.errstate(all="ignore"):
        for x in numbers:
            point = ends_of((x, x))
            for ends, exact in (
                (rounding.root(point), mpmath.sqrt(mpmath.mpf(x))),
                (rounding.square(point), mpmath.mpf(x) ** 2),
            ):
                assert is_next(ends[0, 0], exact, -1.0, x) and is_next(ends[1, 0], exact, 1.0, x), x


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_sines_are_those_of_another_library(name):
    rng = np.random.default_rng(3)
    pairs = [p for p in FINITE if max(map(abs, p)) < 1e6]
    pairs += [tuple(sorted(rng.uniform(-30, 30, 2))) for _ in range(60)]
    mpmath.iv.prec = 120
    for pair in pairs:
        exact = getattr(mpmath.iv, name)(mpmath.iv.mpf(list(pair)))
        low, high = sine_range(name, ends_of(pair))[:, 0]
        # A turning point that is all but reached counts.
        assert float(exact.a) - 1e-14 <= low <= float(exact.a) + 1e-16, pair
        assert float(exact.b) - 1e-16 <= high <= float(exact.b) + 1e-14, pair


MPMATH = {
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "exp10": lambda x: mpmath.mpf(10) ** x,
    "log2": lambda x: mpmath.log(x, 2),
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "gammaln": lambda x: mpmath.log(abs(mpmath.gamma(x))),
    "arcsin": mpmath.asin,
    "arccos": mpmath.acos,
    "arctan": mpmath.atan,
    "arcsinh": mpmath.asinh,
    "arccosh": mpmath.acosh,
    "arctanh": mpmath.atanh,
}


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "sqrt"])
def test_functions_are_exact_at_the_ends_to_a_few_ulps(name):
    f, rng = FUNCTIONS[name], np.random.default_rng(4)
    low, high = max(f.low, -20.0), min(f.high, 20.0)
    exact = MPMATH.get(name) or getattr(mpmath, name)
    with mpmath.workdps(40):
        for _ in range(20):
            a, b = np.sort(rng.uniform(low, high, 2)).tolist()
            values = [exact(mpmath.mpf(x)) for x in (a, b)]
            least, most = min(values), max(values)
            if f.grows == 0 and a <= f.turn <= b:
                least = exact(mpmath.mpf(f.turn))
            ends = function_range(name, ends_of((a, b)))[:, 0]
            assert ends[0] <= least and most <= ends[1], (a, b)
            slack = 2.0 * f.absolute
            assert float(least) - ends[0] <= slack + 1e-14 * max(abs(float(least)), 1e-3)
            assert ends[1] - float(most) <= slack + 1e-14 * max(abs(float(most)), 1e-3)


# ---- every op, on what is computed --------------------------------------------------------------

COMPUTED = [op for op in TABLE if OPERANDS[op.code]]


def test_every_op_is_listed():
    assert {op.name for op in COMPUTED} == {*OPERATIONS}


def graph_of(name: str, kind: int) -> Graph:
    """Return the graph of one op on inputs."""
    g, op = Graph(), TABLE[CODES[name]]
    kinds = [B8, kind, kind] if name == "select" else [kind] * op.arity
    g.outputs = [g.emit(op.code, *(g.input(k) for k in kinds))]
    return g


def ranges_for(kind: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return a range of a type: nasty, or random."""
    if kind == B8:
        return [(0.0, 0.0), (1.0, 1.0), (0.0, 1.0)][rng.integers(3)]
    if kind == I64:
        a = int(rng.integers(-9, 9)) * int(10 ** rng.integers(0, 12))
        return float(a), float(a + rng.integers(0, 9))
    if rng.random() < 0.5:
        low, high = NASTY[rng.integers(len(NASTY))]
    else:
        low, high = np.sort(rng.normal(size=2) * 10.0 ** rng.integers(-3, 3)).tolist()
    if kind == F32:
        with np.errstate(over="ignore"):
            low, high = float(np.float32(low)), float(np.float32(high))
    return low, high


#: Functions that take long to evaluate.
SLOW = ("gamma", "gammaln", "digamma", "polygamma")


def check_op(op, trials: int) -> None:
    """Compare the ranges of an op with what it computes, on random and nasty intervals."""
    rng = np.random.default_rng(op.code)
    for kind in op.takes:
        g = graph_of(op.name, kind)
        for trial in range(trials):
            ends = np.array([ranges_for(k, rng) for k in g.input_dtypes]).T
            known = bound_graph(g, ends, boxes=(1, 6)[trial % 2])
            points = points_of_types(g, ends, points_in(ends, 200, rng))
            results = results_at(g, points)
            wrong = outside(results, known.ends, known.nan)
            assert not wrong.any(), (kind, ends, known.ends, results[wrong][:3])


def test_ops_contain_what_is_computed():
    for op in COMPUTED:
        if op.name not in SLOW:
            check_op(op, 4)


@pytest.mark.long
@pytest.mark.parametrize("op", COMPUTED, ids=lambda op: op.name)
def test_ops_contain_what_is_computed_on_many_intervals(op):
    check_op(op, 3 if op.name in SLOW else 20)


def bounds_of(name: str, *pairs: tuple[float, float], kind: int = F64, boxes: int = 1):
    """Return the range of one op on intervals."""
    return bound_graph(graph_of(name, kind), ends_of(*pairs), boxes)


def test_what_is_exact_stays_exact():
    assert bounds_of("mul", (-1.0, 1.0), (-1.0, 1.0)).ends[:, 0].tolist() == [-1.0, 1.0]
    assert bounds_of("add", (0.0, 1.0), (0.5, 2.0)).ends[:, 0].tolist() == [0.5, 3.0]
    assert bounds_of("div", (1.0, 2.0), (4.0, 8.0)).ends[:, 0].tolist() == [0.125, 0.5]
    assert bounds_of("sqrt", (0.0, 4.0)).ends[:, 0].tolist() == [0.0, 2.0]
    assert bounds_of("sin", (-10.0, 10.0)).ends[:, 0].tolist() == [-1.0, 1.0]
    assert bounds_of("floor", (0.5, 2.5)).ends[:, 0].tolist() == [0.0, 2.0]


def test_a_square_is_not_negative_and_a_difference_with_itself_is_zero():
    g = Graph()
    x = g.input(F64)
    g.outputs = [g.emit(CODES["mul"], x, x), g.emit(CODES["sub"], x, x)]
    assert bound_graph(g, ends_of((-1.0, 2.0)), 1).ends.T.tolist() == [[0.0, 4.0], [0.0, 0.0]]


def kinds_of(*args, **options) -> set[str]:
    return {problem.kind for problem in bounds_of(*args, **options).problems}


def test_what_cannot_be_excluded_is_listed():
    assert kinds_of("div", (1.0, 2.0), (-1.0, 1.0)) == {"division", "overflow"}
    assert kinds_of("div", (1.0, 2.0), (0.5, 1.0)) == set()
    assert kinds_of("sqrt", (-1.0, 2.0)) == {"domain"}
    assert kinds_of("log", (0.0, 2.0)) == {"domain", "overflow"}
    assert kinds_of("arcsin", (0.0, 1.0)) == set()
    assert kinds_of("arccos", (0.0, 1.5)) == {"domain"}
    assert kinds_of("exp", (0.0, 800.0)) == {"overflow"}
    assert kinds_of("mul", (0.0, 1e200), (0.0, 1e200)) == {"overflow"}
    assert kinds_of("add", (0.0, 3e38), (0.0, 3e38), kind=F32) == {"overflow"}
    assert kinds_of("add", (0.0, 3e38), (0.0, 3e38)) == set()
    assert kinds_of("quotient", (1.0, 2.0), (-1.0, 1.0), kind=I64) == {"division"}
    assert kinds_of("mul", (0.0, 4e18), (0.0, 9.0), kind=I64) == {"integer"}
    assert kinds_of("truncate", (0.0, 1e30)) == {"integer"}
    assert kinds_of("pow", (-1.0, 1.0), (0.5, 0.5)) == {"domain"}
    assert kinds_of("pow", (0.0, 1.0), (-1.5, -1.5)) == {"division", "overflow"}


def test_nan_is_known_where_it_can_be():
    assert bounds_of("sqrt", (-1.0, 2.0)).nan.all()
    assert not bounds_of("sqrt", (0.0, 2.0)).nan.any()
    assert bounds_of("mul", (0.0, 1.0), (0.0, INF)).nan.all()
    assert bounds_of("sub", (0.0, INF), (0.0, INF)).nan.all()
    assert not bounds_of("mul", (0.0, 1.0), (0.0, 1e300)).nan.any()


def test_the_sign_of_zero_decides_on_the_side_of_an_angle():
    """A range that begins at zero contains -0.0, whose angle is -pi."""
    low, high = bounds_of("arctan2", (0.0, 1.0), (-2.0, -1.0)).ends[:, 0]
    assert low <= -np.pi and high >= np.pi
    low, high = bounds_of("arctan2", (1e-300, 1.0), (-2.0, -1.0)).ends[:, 0]
    assert 1.5 < low < high <= np.pi
