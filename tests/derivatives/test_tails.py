"""Derivatives of the elementary functions over their whole range, to second order.

Tails, points near zero and near the ends of domains, huge and tiny arguments: relative errors
against the closed form in 60 digits. The expected value is the derivative at the double itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import archimedes as arc

Formula = Callable[..., Any]

#: Largest relative error, in units of 2**-53; the formulas lose a few of them, never digits.
UNITS = 32.0

TINY = (0.0, 1e-300, 1e-20, -1e-10, 1e-5)
LINE = (*TINY, -0.3, 0.7, 1.0, -3.0, 12.0)
HUGE = (1e5, -1e40, 1e90)
NEAR_ONE = (1 - 2.0**-53, -1 + 2.0**-50, 0.999999, -0.5, 0.49999)
POSITIVE = (1e-150, 1e-20, 0.3, 1.0, 1 + 2.0**-52, 7.0, 1e20, 1e100)


def sech2(x: Any) -> Any:
    return mp.sech(x) ** 2


#: name -> first derivative, second derivative, points
UNARY: dict[str, tuple[Formula, Formula, tuple[float, ...]]] = {
    "sin": (mp.cos, lambda x: -mp.sin(x), (*LINE, 1e5, 1e22)),
    "cos": (lambda x: -mp.sin(x), lambda x: -mp.cos(x), (*LINE, 1e5, 1e22)),
    "tan": (
        lambda x: mp.sec(x) ** 2,
        lambda x: 2 * mp.tan(x) * mp.sec(x) ** 2,
        (*LINE, 1.5707963267948966, 1e22),
    ),
    "arcsin": (
        lambda x: (1 - x * x) ** -0.5,
        lambda x: x * (1 - x * x) ** -1.5,
        (*TINY, *NEAR_ONE),
    ),
    "arccos": (
        lambda x: -((1 - x * x) ** -0.5),
        lambda x: -x * (1 - x * x) ** -1.5,
        (*TINY, *NEAR_ONE),
    ),
    "arctan": (
        lambda x: 1 / (1 + x * x),
        lambda x: -2 * x / (1 + x * x) ** 2,
        (*LINE, *HUGE, 1e100),
    ),
    "sinh": (mp.cosh, mp.sinh, (*LINE, 700.0, -700.0)),
    "cosh": (mp.sinh, mp.cosh, (*LINE, 700.0, -700.0)),
    "tanh": (
        sech2,
        lambda x: -2 * mp.tanh(x) * sech2(x),
        (*LINE, 15.0, 20.0, -40.0, 200.0, -230.0),
    ),
    "arcsinh": (
        lambda x: (1 + x * x) ** -0.5,
        lambda x: -x * (1 + x * x) ** -1.5,
        (*LINE, *HUGE, 1e100),
    ),
    "arccosh": (
        lambda x: (x * x - 1) ** -0.5,
        lambda x: -x * (x * x - 1) ** -1.5,
        (1 + 2.0**-52, 1.0001, 3.0, 1e20, 1e100),
    ),
    "arctanh": (
        lambda x: 1 / (1 - x * x),
        lambda x: 2 * x / (1 - x * x) ** 2,
        (*TINY, *NEAR_ONE),
    ),
    "exp": (mp.exp, mp.exp, (*LINE, -700.0, 700.0)),
    "exp2": (
        lambda x: mp.log(2) * mp.mpf(2) ** x,
        lambda x: mp.log(2) ** 2 * mp.mpf(2) ** x,
        (*LINE, -1000.0, 1000.0),
    ),
    "expm1": (mp.exp, mp.exp, (*LINE, -36.0, -40.0, -700.0, 700.0)),
    "log": (lambda x: 1 / x, lambda x: -1 / x**2, POSITIVE),
    "log2": (lambda x: 1 / x / mp.log(2), lambda x: -1 / x**2 / mp.log(2), POSITIVE),
    "log10": (lambda x: 1 / x / mp.log(10), lambda x: -1 / x**2 / mp.log(10), POSITIVE),
    "log1p": (
        lambda x: 1 / (1 + x),
        lambda x: -1 / (1 + x) ** 2,
        (*TINY, -1 + 2.0**-53, -0.99, 3.0, 1e20, 1e100),
    ),
    "sqrt": (lambda x: x**-0.5 / 2, lambda x: -(x**-1.5) / 4, POSITIVE),
    "cbrt": (
        lambda x: abs(x) ** (-mp.mpf(2) / 3) / 3,
        lambda x: -2 * mp.sign(x) * abs(x) ** (-mp.mpf(5) / 3) / 9,
        (*POSITIVE, -8.0, -1e-100),
    ),
}

POINTS = [
    pytest.param(name, x, id=f"{name}({x:.17g})")
    for name, (_, _, points) in UNARY.items()
    for x in points
]


def check(got: Any, want: Any, units: float = UNITS) -> None:
    """Fails unless ``got`` has a relative error of a few units, or ``want`` underflows."""
    got = mp.mpf(float(got))
    error = abs(got - want)
    assert error <= abs(want) * units * mp.mpf(2) ** -53 + mp.mpf(2) ** -1060, (
        f"got {mp.nstr(got, 20)}, want {mp.nstr(want, 20)}: "
        f"{mp.nstr(error / abs(want) * 2**53 if want else error, 5)} units"
    )


@pytest.mark.parametrize(("name", "x"), POINTS)
def test_unary(name: str, x: float) -> None:
    first, second, _ = UNARY[name]
    fn = getattr(np, name)
    with mp.workdps(60):
        check(arc.grad(fn)(x), first(mp.mpf(x)))
        check(arc.grad(arc.grad(fn))(x), second(mp.mpf(x)))


#: Names -> where they are drawn from; the others take all sizes.
DOMAINS = {
    **dict.fromkeys(["arcsin", "arccos", "arctanh"], (-1.0, 1.0)),
    **dict.fromkeys(["log", "log2", "log10", "sqrt"], (0.0, 1e150)),
    **dict.fromkeys(["sinh", "cosh", "exp", "expm1"], (-300.0, 300.0)),
    "arccosh": (1.0, 1e100),
    "log1p": (-1.0, 1e150),
    "exp2": (-400.0, 400.0),
    "tanh": (-150.0, 150.0),
}
FIRST = {name: arc.grad(getattr(np, name)) for name in UNARY}
SECOND = {name: arc.grad(arc.grad(getattr(np, name))) for name in UNARY}


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(list(UNARY)), st.floats(0, 1), st.floats(-150, 2), st.booleans())
@example("tanh", 0.9, 0.0, True)
def test_unary_anywhere(name: str, part: float, exponent: float, ends: bool) -> None:
    """Points over the whole range: evenly in a domain, or towards its ends by powers of ten."""
    low, high = DOMAINS.get(name, (-1e75, 1e75))
    near = (low if part < 0.5 else high) if name in DOMAINS else 0.0
    sign = 1.0 if part < 0.5 else -1.0
    x = near + sign * 10.0**exponent if ends else low + part * (high - low)
    assume(low < x < high)
    with mp.workdps(60):
        first, second = (mp.mpf(formula(mp.mpf(x))) for formula in UNARY[name][:2])
        for got, want in ((FIRST[name](x), first), (SECOND[name](x), second)):
            if want == 0 or 1e-290 < abs(want) < 1e290:
                check(got, want)


PAIRS = (
    (1e-200, 1e-200),
    (1e-200, -3e-200),
    (3.0, 4.0),
    (-1e-9, 2.0),
    (2.0, -1e-9),
    (0.0, 2.0),
    (-3.0, 0.0),
    (1e-150, 1.0),
    (1e200, 3e199),
    (-1e-9, 1e12),
)


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_arctan2(pair: tuple[float, float]) -> None:
    y, x = (mp.mpf(v) for v in pair)
    with mp.workdps(60):
        square = x * x + y * y
        gradient = arc.jac(lambda p: np.arctan2(p[0], p[1]))(np.array(pair))
        check(gradient[0], x / square)
        check(gradient[1], -y / square)
        # The entries of the Hessian share the scale 1 / square, to which zeros are relative.
        hessian = np.asarray(arc.hess(lambda p: np.arctan2(p[0], p[1]))(np.array(pair)))
        cross = (y * y - x * x) / square**2
        want = [[-2 * x * y / square**2, cross], [cross, 2 * x * y / square**2]]
        if square > 1e-300:
            for index in np.ndindex(2, 2):
                entry = want[index[0]][index[1]]
                assert abs(mp.mpf(hessian[index]) - entry) <= 1e-14 / square + mp.mpf(10) ** -320


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_hypot(pair: tuple[float, float]) -> None:
    a, b = (mp.mpf(v) for v in pair)
    with mp.workdps(60):
        length = mp.sqrt(a * a + b * b)
        gradient = arc.jac(lambda p: np.hypot(p[0], p[1]))(np.array(pair))
        check(gradient[0], a / length)
        check(gradient[1], b / length)
        hessian = np.asarray(arc.hess(lambda p: np.hypot(p[0], p[1]))(np.array(pair)))
        cube = length**3
        for (i, j), entry in {
            (0, 0): b * b / cube,
            (0, 1): -a * b / cube,
            (1, 0): -a * b / cube,
            (1, 1): a * a / cube,
        }.items():
            check(hessian[i, j], entry, 64.0)


POWERS = (
    (3.0, 0.0),
    (0.5, 0.0),
    (2.0, 1.0),
    (1.0, 0.0),
    (1e-100, 0.5),
    (1e100, -2.0),
    (1.0 + 1e-10, 3.0),
    (0.7, 1e-10),
)


@pytest.mark.parametrize("pair", POWERS, ids=str)
def test_power(pair: tuple[float, float]) -> None:
    x, y = (mp.mpf(v) for v in pair)
    with mp.workdps(60):
        gradient = arc.jac(lambda p: p[0] ** p[1])(np.array(pair))
        check(gradient[0], y * x ** (y - 1))
        check(gradient[1], x**y * mp.log(x))
        hessian = np.asarray(arc.hess(lambda p: p[0] ** p[1])(np.array(pair)))
        check(hessian[0, 0], y * (y - 1) * x ** (y - 2))
        cross = x ** (y - 1) * (1 + y * mp.log(x))
        check(hessian[0, 1], cross)
        check(hessian[1, 0], cross)
        check(hessian[1, 1], x**y * mp.log(x) ** 2)


@pytest.mark.parametrize("y", [0.5, 1.0, 2.0, 3.0])
def test_power_at_a_zero_base(y: float) -> None:
    # x**y: y x**(y-1), y (y-1) x**(y-2), and x**(y-1) (1 + y log x), which has no limit up to y = 1
    hessian = np.asarray(arc.hess(lambda p: p[0] ** p[1])(np.array([0.0, y])))
    assert hessian[1, 1] == 0.0
    if y > 1:
        assert hessian[0, 1] == hessian[1, 0] == 0.0
    else:
        assert not np.isfinite(hessian[0, 1]) and not np.isfinite(hessian[1, 0])
    first = arc.jac(lambda p: p[0] ** p[1])(np.array([0.0, y]))
    assert first[1] == 0.0


def test_power_where_it_jumps() -> None:
    hessian = np.asarray(arc.hess(lambda p: p[0] ** p[1])(np.array([0.0, 0.0])))
    assert hessian[0, 0] == 0.0
    assert not np.isfinite([hessian[0, 1], hessian[1, 0], hessian[1, 1]]).any()


LOG_SUMS = ((0.0, 0.0), (1.5, 1.5), (-40.0, 3.0), (1e-9, 0.0), (-700.0, -700.0), (5.0, 745.0))


@pytest.mark.parametrize("pair", LOG_SUMS, ids=str)
@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_log_of_a_sum(name: str, pair: tuple[float, float]) -> None:
    a, b = (mp.mpf(v) for v in pair)
    fn = getattr(np, name)
    with mp.workdps(400):
        base = mp.e if name == "logaddexp" else mp.mpf(2)
        part = base**a / (base**a + base**b)
        gradient = arc.jac(lambda p: fn(p[0], p[1]))(np.array(pair))
        check(gradient[0], part)
        check(gradient[1], 1 - part)
        curve = part * (1 - part) * mp.log(base)
        hessian = np.asarray(arc.hess(lambda p: fn(p[0], p[1]))(np.array(pair)))
        for i, j in np.ndindex(2, 2):
            want = curve if i == j else -curve
            # The larger operand's own entry is a difference of terms of this size.
            assert abs(mp.mpf(hessian[i, j]) - want) <= 1e-15 * part + mp.mpf(10) ** -300


def test_log_of_a_sum_of_equal_terms() -> None:
    for count in (2, 3, 5):
        x = np.full(count, 0.25)
        parts = arc.grad(lambda v: np.logaddexp.reduce(v))(x)
        np.testing.assert_allclose(parts, np.full(count, 1 / count), rtol=1e-15)
        curve = arc.hess(lambda v: np.logaddexp.reduce(v))(x)
        want = np.eye(count) / count - 1 / count**2
        np.testing.assert_allclose(curve, want, rtol=1e-13, atol=1e-16)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_log_of_a_sum_of_infinities(value: float) -> None:
    assert arc.compile(np.logaddexp)(value, value) == value
    assert arc.compile(np.logaddexp)(value, -value) == np.inf


REMAINDERS = (
    (1.0, 0.1),  # 1.0 / 0.1 rounds up to 10, and 0.1 goes in 9 times
    (0.7, 0.1),
    (-1.0, 0.1),
    (1.0, -0.1),
    (5.5, 2.0),
    (-5.5, 2.0),
    (4.0, 2.0),
    (-4.0, 2.0),
    (4.0, -2.0),
    (0.0, 3.0),
    (1e17, 3.0),
)


@pytest.mark.parametrize("pair", REMAINDERS, ids=str)
def test_remainders(pair: tuple[float, float]) -> None:
    with mp.workdps(60):
        ratio = mp.mpf(pair[0]) / mp.mpf(pair[1])
        quotient, truncated = mp.floor(ratio), mp.sign(ratio) * mp.floor(abs(ratio))
    got = arc.jac(lambda p: p[0] % p[1])(np.array(pair))
    np.testing.assert_allclose(got, [1.0, -float(quotient)], rtol=1e-15)
    got = arc.jac(lambda p: np.fmod(p[0], p[1]))(np.array(pair))
    np.testing.assert_allclose(got, [1.0, -float(truncated)], rtol=1e-15)


@pytest.mark.parametrize("x", [-2.0, -2.5, 0.0, 1.0, 1.25])
def test_fraction(x: float) -> None:
    assert arc.grad(lambda v: np.modf(v)[0])(x) == 1.0
    for got, want in zip(arc.compile(np.modf)(x), np.modf(x)):
        assert got == want and np.signbit(got) == np.signbit(want)


def test_third_derivatives_at_zero() -> None:
    """The formulas of the first derivatives are smooth, not only their values right."""
    third = lambda fn: arc.grad(arc.grad(arc.grad(fn)))(0.0)
    for fn, want in ((np.tanh, -2.0), (np.arcsin, 1.0), (np.arctan, -2.0), (np.arctanh, 2.0)):
        np.testing.assert_allclose(third(fn), want, rtol=1e-14)
