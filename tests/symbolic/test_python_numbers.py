"""Python numbers as arguments: Python's rules among themselves, NumPy's beside arrays."""

from __future__ import annotations

import collections.abc
import itertools
import math
import numbers
import operator

import numpy as np
import pytest

import archimedes as arc
from archimedes.errors import IntegerRangeError, TraceError

F32 = np.array([1.5, 2.5], np.float32)
I64 = np.array([3, -4])

EXPRESSIONS = {
    # The issue's own.
    "power": (lambda x: x**2 * F32, 3.0),
    "bit": (lambda n: (n & 1) * F32, 3),
    "rounded": (lambda x: round(x) * F32, 3.7),
    "rounded to digits": (lambda x: round(x, 2) * F32, 2.675),
    "plus True": (lambda x: (x + True) * F32, 2.5),
    "an array of it": (lambda x: np.asarray(x) * F32, 2.5),
    "sum of comparisons": (lambda x: (x > 1) + (x > 2), 2.5),
    "beyond int64": (lambda n: n < 10**19, 5),
    "beyond int64, an array": (lambda n: np.array([n, -n]) >= -(10**19), 5),
    "negative power": (lambda n: n**-2, 4),
    # More of the kind.
    "function result widens": (lambda x: np.sin(x) * F32, 0.5),
    "operator on function result": (lambda x: (np.abs(x) + 1) * F32, 0.5),
    "item": (lambda x: np.array([x, 2.0])[0].item() * F32, 0.5),
    "tolist": (lambda x: sum(np.array([x, 2.0]).tolist()) * F32, 0.5),
    "element": (lambda x: np.array([x, 2.0])[0] * F32, 0.5),
    "floor": (lambda x: math.floor(x) * F32, 2.5),
    "ceil of int": (lambda n: math.ceil(n) * I64, 2),
    "trunc": (lambda x: math.trunc(-x) / 2 * F32, 2.5),
    "divmod": (lambda x: divmod(x, 2)[1] * F32, 7.5),
    "true division of ints": (lambda n: (n / 2) * F32, 7),
    "floor division": (lambda n: (n // 2, -n // 2, n % -3, 7 // n), 5),
    "negated comparison": (lambda x: -(x > 1) * F32, 2.5),
    "absolute comparison": (lambda x: abs(x > 1) + 0, 2.5),
    "comparison times comparison": (lambda x: (x > 1) * (x > 2) * I64, 2.5),
    "comparison minus": (lambda x: (x > 1) - (x > 3), 2.5),
    "comparison and": (lambda x: (x > 1) & (x > 2), 2.5),
    "comparison and int": (lambda n: (n > 1) & n, 3),
    "comparison shifted": (lambda n: (n > 1) << n, 3),
    "sum of builtin": (lambda x: sum([x > 1, x > 2, x > 9]), 2.5),
    "in place": (lambda x: _in_place(x) * F32, 2.5),
    "minus one to the power": (lambda n: (-1) ** n * F32, 3),
    "big float": (lambda x: x * 2**70, 1.5),
    "equal to None": (lambda x: (x == None, x != None), 1.5),  # noqa: E711
    "equal to text": (lambda x: x == "auto" or x, 1.5),
    "result type": (lambda x: np.zeros(2, np.result_type(x, np.float32)) + 1, 1.5),
    "where": (lambda x: np.where(True, x, F32), 1.5),
    "beside a float32 scalar": (lambda x: np.float32(2) * x + x * np.float32(3), 1.5),
    "maximum widens": (lambda x: np.maximum(x, 0) * F32, 1.5),
    "invert int": (lambda n: ~n * I64, 5),
    "linspace": (lambda h: np.linspace(0, h, 3) * F32[0], np.float32(2.5)),
    # Loops and branches hand numbers on as numbers.
    "fori_loop": (lambda x: arc.fori_loop(0, 3, lambda i, c: c + i / 2, x) * F32, 2.5),
    "fori_loop that widens": (lambda x: arc.fori_loop(0, 3, lambda i, c: np.abs(c), x) * F32, 2.5),
    "while_loop": (lambda x: _doubled(x) * F32, 3),
    "scan": (lambda x: arc.scan(lambda c, k: (c + k, c), x, length=3)[0] * F32, 2.5),
    "cond": (lambda x: arc.cond(x > 0, lambda y: y, lambda y: 2 * y, x) * F32, 2.5),
    "cond of literals": (lambda x: arc.cond(x > 0, lambda: 1.0, lambda: 2) * F32, 2.5),
    "cond that widens": (lambda x: arc.cond(x > 0, np.abs, np.sign, x) * F32, 2.5),
    "stop_gradient": (lambda x: arc.stop_gradient(x) * F32, 2.5),
}


def _doubled(n):
    return arc.while_loop(lambda c: c < 20, lambda c: 2 * c, n, max_steps=9)


def _in_place(x):
    x += 1
    x *= 2
    x **= 2
    return x


def _same(eager, recorded) -> None:
    eager, recorded = (v if isinstance(v, tuple) else (v,) for v in (eager, recorded))
    for a, b in zip(eager, recorded, strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("backend", ["interpreter", "llvm"])
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expression_is_python_and_numpy(name: str, backend: str) -> None:
    function, argument = EXPRESSIONS[name]
    _same(function(argument), arc.compile(function, backend=backend)(argument))


BINARY = (
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.and_,
    operator.or_,
    operator.xor,
    operator.lshift,
    operator.rshift,
    operator.lt,
    operator.ge,
    operator.eq,
    operator.ne,
)


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.__name__)
def test_every_operator_on_every_pair_of_numbers(op) -> None:
    """A traced bool is a comparison; types and values are Python's, or Python refuses too."""
    makers = {"float": lambda v: v + 0.5, "int": lambda v: v, "bool": lambda v: v > 2}
    for (a, make_a), (b, make_b), literal in itertools.product(
        makers.items(), makers.items(), (False, True)
    ):

        def function(v, w, make_a=make_a, make_b=make_b, literal=literal):
            return op(make_a(v), make_b(7 if literal else w))

        try:
            wanted = function(3, 7)
        except TypeError:
            with pytest.raises(TypeError):
                arc.compile(function)(3, 7)
            continue
        kinds = []

        def seen(v, w, function=function, kinds=kinds):
            result = function(v, w)
            kinds.append(result.__class__)
            return result

        got = arc.compile(seen, backend="interpreter", freeze=True)(3, 7)
        assert kinds == [type(wanted)], (op, a, b)
        assert got == wanted, (op, a, b)


TYPE_TESTS = {
    "float": lambda x: isinstance(x, float),
    "int": lambda x: isinstance(x, int),
    "bool": lambda x: isinstance(x, bool),
    "Number": lambda x: isinstance(x, numbers.Number),
    "Real": lambda x: isinstance(x, numbers.Real),
    "Integral": lambda x: isinstance(x, numbers.Integral),
    "isscalar": np.isscalar,
    "generic": lambda x: isinstance(x, np.generic),
    "floating": lambda x: isinstance(x, np.floating),
    "integer": lambda x: isinstance(x, np.integer),
    "float32": lambda x: isinstance(x, np.float32),
    "shape": lambda x: hasattr(x, "shape"),
    "dtype": lambda x: hasattr(x, "dtype"),
    "len": lambda x: hasattr(x, "__len__"),
    "iter": lambda x: hasattr(x, "__iter__"),
    "Iterable": lambda x: isinstance(x, collections.abc.Iterable),
    "Sized": lambda x: isinstance(x, collections.abc.Sized),
    "iterable": lambda x: np.iterable(x),
    "class": lambda x: x.__class__ in (int, float, bool),
}
VALUES = (1.5, 3, np.float64(1.5), np.float32(1.5), np.int64(3), np.array([1.5, 2.5]))


@pytest.mark.parametrize("test", TYPE_TESTS)
def test_type_tests_answer_as_for_the_value(test: str) -> None:
    """Of arguments, elements, results of functions and of operators."""
    uses = (
        lambda x: x,
        np.sin,
        lambda x: x + 1,
        lambda x: x > 1,
        lambda x: np.array(x, ndmin=1)[0],
    )
    for value, use in itertools.product(VALUES, uses):
        answers: list[bool] = []

        def function(x, use=use, answers=answers):
            answers.append(TYPE_TESTS[test](use(x)))
            return x

        function(value)
        arc.compile(function, freeze=True)(value)
        assert answers[0] == answers[1], (value, answers)


def test_an_array_without_axes_is_an_array() -> None:
    answers = []

    def function(x):
        answers.append((np.isscalar(x), hasattr(x, "__len__"), isinstance(x, float)))
        return x * 2

    f = arc.compile(function, freeze=True)
    assert f(np.array(1.5)) == f(np.float64(1.5)) == f(1.5) == 3.0
    assert answers == [(False, True, False), (True, False, True), (True, False, True)]
    for _ in range(10):  # with native calls too
        f(np.float64(1.5)), f(np.array(1.5))
    assert len(answers) == 3


def test_rounding_to_digits_is_python_s() -> None:
    """Ties in decimal that are none in binary; against Python itself."""
    rng = np.random.default_rng(0)
    ties = np.round(rng.uniform(-1000, 1000, 300)) / 8 + rng.integers(0, 2, 300) * 1e-13
    decimals = rng.integers(-(10**6), 10**6, 600) / 1000 + 0.0005
    values = [2.675, 0.5, -0.5, 1e17, -0.0, math.inf, 1.005, *ties.tolist(), *decimals.tolist()]
    for digits in (0, 1, 2, 3, 10, -1, -2):
        f = arc.vmap(arc.compile(lambda x, d=digits: round(x.item(), d)))
        got = f(np.array(values))
        wanted = [round(v, digits) for v in values]
        np.testing.assert_array_equal(got, wanted)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted))


@pytest.mark.parametrize(
    "function, argument, error, text",
    [
        (lambda n: n * 2**70, 3, IntegerRangeError, "does not fit into int64"),
        (lambda n: n + 2**63, np.array([3]), OverflowError, "does not fit into int64"),
        (lambda n: 2**n, 3, TraceError, r"2\.0\*\*n"),
        (lambda n: n**n, np.array([3]), TraceError, r"np\.maximum\(n, 0\)"),
        (lambda n: n**-1, np.array([3]), ValueError, "negative integer powers"),
        (lambda x: ~(x > 1), 3.0, TraceError, "np.logical_not"),
        (lambda x: math.sin(x), 3.0, TraceError, "np.sin"),
        (lambda x: x * [1, 2], 3.0, TypeError, "index"),
        (lambda n: n * [1, 2], 3, TraceError, "static"),
        (lambda x: x & 1, 3.0, TypeError, "bitwise_and"),
        (lambda x: x.shape, 3.0, AttributeError, "no attribute 'shape'"),
        (lambda x: list(np.sin(x)), 3.0, TypeError, "not iterable"),
        (lambda x: round(x, 30), 3.0, TraceError, "np.round"),
        (lambda n: pow(n, 2, 5), 3, TraceError, r"x\*\*y % z"),
    ],
)
def test_what_cannot_be_right_is_an_error(function, argument, error, text) -> None:
    with pytest.raises(error, match=text):
        arc.compile(function)(argument)


def test_integer_powers_with_exponents_shown_not_to_be_negative() -> None:
    n = np.array([3, -2, 0])
    for function in (
        lambda n: n ** np.abs(n),
        lambda n: n ** np.maximum(n, 0),
        lambda n: n ** (n & 3),
        lambda n: n ** (n > 0),
        lambda n: n**3,
    ):
        np.testing.assert_array_equal(arc.compile(function)(n), function(n))


def test_single_dispatch_and_matching_take_the_number_s_branch() -> None:
    import functools

    @functools.singledispatch
    def scaled(x):
        return 10 * x

    @scaled.register
    def _(x: float):
        return 2 * x

    def matched(x):
        match x:
            case float():
                return 3 * x
            case _:
                return x

    assert arc.compile(scaled)(2.0) == scaled(2.0) == 4.0
    assert arc.compile(matched)(2.0) == matched(2.0) == 6.0


def test_numbers_in_loops_and_derivatives() -> None:
    f = lambda x: (x**3 + (x > 0)) / 2
    assert arc.grad(f)(2.0) == 6.0
    assert arc.compile(lambda x: arc.fori_loop(0, 3, lambda i, c: c + i / 2, x))(1.0) == 2.5
