"""Python numbers, type tests, structures of arguments, and effects that a recording could lose."""

from __future__ import annotations

import collections.abc
import functools
import math
import numbers
import warnings

import numpy as np

import archimedes as arc
from archimedes.errors import IntegerRangeError, ShapeDtypeError, TraceError
from archimedes.spatial import EulerAngles, Quaternion, Transformation
from tests.misuse.catalogue import entry

F32 = np.array([1.5, 2.5], np.float32)
I64 = np.array([3, -4])


# ---- promotion -----------------------------------------------------------------------------


@entry("promotion")
def a_power_times_float32(run):
    return run(lambda x: x**2 * F32)(3.0)


@entry("promotion")
def a_bit_times_float32(run):
    return run(lambda n: (n & 1) * F32)(3)


@entry("promotion")
def rounded_times_float32(run):
    return run(lambda x: (round(x) * F32, round(x, 1) * F32))(3.76)


@entry("promotion")
def rounded_to_a_tie_that_is_none(run):
    return run(lambda x: round(x, 2))(2.675)


@entry("promotion")
def numpy_rounds_otherwise(run):
    return run(lambda x: np.round(x, 2))(2.675)


@entry("promotion")
def plus_true(run):
    return run(lambda x: (x + True) * F32)(2.5)


@entry("promotion")
def an_array_of_a_number_widens(run):
    return run(lambda x: np.asarray(x) * F32)(2.5)


@entry("promotion")
def a_function_of_a_number_widens(run):
    return run(lambda x: (np.sin(x) * F32, np.maximum(x, 0) * F32))(2.5)


@entry("promotion")
def the_sum_of_comparisons_counts(run):
    return run(lambda x: (x > 1) + (x > 2))(2.5)


@entry("promotion")
def the_sum_of_comparisons_of_numpy_numbers_does_not(run):
    return run(lambda x: (x > 1) + (x > 2))(np.float64(2.5))


@entry("promotion")
def comparisons_summed_by_sum(run):
    return run(lambda x: sum([x > 1, x > 2, x > 3]) / 2)(2.5)


@entry("promotion")
def a_negated_comparison(run):
    return run(lambda x: -(x > 1) * I64)(2.5)


@entry("promotion", error=TraceError, says=["np.logical_not"])
def an_inverted_comparison(run):
    with warnings.catch_warnings():  # from 3.12 on Python warns of it too
        warnings.simplefilter("ignore", DeprecationWarning)
        return run(lambda x: np.where(~(x > 1), 1.0, 2.0))(2.5)


@entry("promotion")
def an_inverted_comparison_of_numpy_numbers(run):
    return run(lambda x: np.where(~(x > 1), 1.0, 2.0))(np.float64(2.5))


@entry("promotion")
def integers_divided(run):
    return run(lambda n: (n / 2, n // 2, -n // 2, n % -3, divmod(n, 4)))(7)


@entry("promotion")
def an_integer_to_a_negative_power(run):
    return run(lambda n: n**-2 * F32)(4)


@entry("promotion", error=TraceError, says=["2.0**n", "static"])
def an_integer_to_a_traced_power(run):
    return run(lambda n: 2**n)(-1)


@entry("promotion", error=TraceError, eager_error=ValueError, says=["np.maximum(n, 0)"])
def integer_arrays_to_a_traced_power(run):
    return run(lambda n: n**n)(np.array([2, -1]))


@entry("promotion")
def a_number_below_a_huge_integer(run):
    return run(lambda n: (n < 10**19, n >= -(10**30), n == 2**80))(5)


@entry("promotion", error=IntegerRangeError, says=["int64", "1.1805916207174113e+21"])
def times_a_huge_integer(run):
    return run(lambda n: n * 2**70)(5)


@entry("promotion", error=OverflowError, eager_error=OverflowError, says=["int64"])
def an_array_plus_a_huge_integer(run):
    return run(lambda n: n + 2**63)(I64)


@entry("promotion", error=OverflowError, says=["argument", "static"], line=False)
def an_argument_beyond_int64(run):
    return run(lambda n: n % 7)(2**70)


@entry("promotion", error=TraceError, says=["static"])
def a_list_repeated(run):
    return run(lambda n: n * [1.0, 2.0])(3)


@entry("promotion")
def items_and_lists_are_python_numbers(run):
    return run(lambda x: (x[0].item() * F32, x.tolist()[1] * F32, x[1] * F32))(np.array([2.0, 3.0]))


@entry("promotion")
def whole_numbers_from_math(run):
    return run(lambda x: (math.floor(x) * F32, math.ceil(x) / 2, math.trunc(-x) * I64))(2.5)


# ---- type tests ----------------------------------------------------------------------------


def _told(*tests):
    def function(x):
        for k, test in enumerate(tests):
            x = x + 10**k if test(x) else x
        return x

    return function


@entry("type tests")
def is_it_a_float(run):
    f = run(_told(lambda x: isinstance(x, float), lambda x: isinstance(x, int)))
    return f(0.5), f(2), f(np.float64(0.5)), f(np.float32(0.5)), f(np.array([0.5]))


@entry("type tests")
def is_it_a_real_number(run):
    f = run(_told(lambda x: isinstance(x, numbers.Real), lambda x: isinstance(x, numbers.Integral)))
    return f(0.5), f(2), f(np.int64(2)), f(np.array([0.5]))


@entry("type tests")
def is_it_a_scalar(run):
    f = run(_told(np.isscalar, lambda x: np.isscalar(np.sum(x)), lambda x: np.ndim(x) == 0))
    return f(0.5), f(np.float64(0.5)), f(np.array(0.5)), f(np.array([0.5]))


@entry("type tests")
def has_it_a_shape_or_a_length(run):
    f = run(_told(lambda x: hasattr(x, "shape"), lambda x: hasattr(x, "__len__")))
    return f(0.5), f(np.float64(0.5)), f(np.array([0.5]))


@entry("type tests")
def is_it_iterable(run):
    iterable = lambda x: isinstance(x, collections.abc.Iterable)
    f = run(_told(iterable, lambda x: np.iterable(x), lambda x: hasattr(x, "__iter__")))
    return f(0.5), f(np.float64(0.5)), f(np.array([0.5]))


@entry("type tests")
def dispatch_on_the_type(run):
    @functools.singledispatch
    def scaled(x):
        return 10 * x

    @scaled.register
    def _(x: float):
        return 2 * x

    return run(scaled)(1.5)


@entry("type tests", error=TraceError, says=["np.sin"])
def math_after_a_type_test(run):
    return run(lambda x: math.sin(x) if isinstance(x, float) else np.sin(x))(0.5)


# ---- errors that are caught ----------------------------------------------------------------


@entry("caught errors", error=TraceError, says=["went on", "arc.cond"])
def a_branch_in_a_try(run):
    def f(x):
        try:
            if x > 0:
                return x
        except Exception:
            pass
        return -x

    return run(f)(2.0)


@entry("caught errors", error=TraceError, says=["went on", "hash(x)"])
def a_cache_in_a_try(run):
    table = {1.0: 10.0, 2.0: 20.0}

    def f(x):
        try:
            return table[x]
        except TypeError:
            return x

    return run(f)(2.0)


@entry("caught errors", error=TraceError, says=["went on", "static"])
def a_conversion_in_a_try(run):
    def f(x):
        try:
            return int(x) * 2
        except TypeError:
            return x

    return run(f)(2.0)


# ---- effects -------------------------------------------------------------------------------


@entry("effects")
def a_callback_without_a_result(run):
    log: list[float] = []

    def f(x):
        arc.callback(lambda v: log.append(float(v)), None, x)
        arc.callback(lambda v: log.append(2 * float(v)), None, x)
        return x + 1

    result = run(f)(3.0)
    return result, log


@entry("effects")
def a_callback_in_a_loop_whose_result_is_not_used(run):
    log: list[int] = []

    def f(x):
        arc.fori_loop(
            0, 3, lambda i, c: (arc.callback(lambda v: log.append(int(v)), None, i), c)[1], x
        )
        return x

    result = run(f)(3.0)
    return result, log


# ---- structures of arguments ---------------------------------------------------------------


@entry("structures")
def values_of_a_dict(run):
    f = run(lambda d: np.stack(list(d.values())))
    return f({"b": 1.0, "a": 2.0}), f({"a": 2.0, "b": 1.0})


@entry("structures")
def keys_of_a_result(run):
    return list(run(lambda x: {"b": x, "a": 2 * x})(1.0))


@entry("structures", error=ShapeDtypeError, says=["another order"], line=False)
def a_carry_filled_in_another_order(run):
    step = lambda c, _: ({"b": c["a"], "a": c["b"]}, None)
    return run(lambda x: arc.scan(step, {"a": x, "b": x}, length=2)[0])(1.0)


@entry("structures", error=TraceError, says=["x.filled"], line=False)
def a_masked_array(run):
    return run(lambda x: x.sum())(np.ma.array([1.0, 2.0], mask=[False, True]))


@entry("structures", error=TraceError, says=["np.asarray(x)", "@"], line=False)
def a_matrix(run):
    return run(lambda m: m.sum(axis=0))(np.eye(2).view(np.matrix))


@entry("structures", error=TraceError, says=["x.filled"])
def a_masked_array_closed_over(run):
    mask = np.ma.array([1.0, 2.0], mask=[False, True])
    return run(lambda x: np.sum(x * mask))(np.ones(2))


@entry("structures", error=TraceError, says=["columns"], line=False)
def a_table_of_records(run):
    table = np.rec.array([(1.0, 2.0)], dtype=[("a", float), ("b", float)])
    return run(lambda t: t.a + t.b)(table)


# ---- spatial -------------------------------------------------------------------------------


@entry("spatial", error=ValueError, eager_error=ValueError, says=["bring their own"], line=False)
def angles_with_another_sequence(run):
    return run(lambda a: Quaternion.from_euler(EulerAngles(a, "xyz"), seq="zyx").array)(np.ones(3))


@entry("spatial")
def one_point_through_three_transformations(run):
    r = Quaternion.random(0, (3,))
    return run(lambda x, p: x.apply(p))(Transformation(np.ones(3), r), np.array([1.0, 2.0, 3.0]))


@entry(
    "spatial", error=TypeError, eager_error=TypeError, says=["left must be a number"], line=False
)
def an_array_beyond_a_table(run):
    left = np.array([1.0, 2.0])
    return run(lambda x: np.interp(x, [0.0, 1.0], [1.0, 2.0], left=left))(np.array([-1.0, 2.0]))
