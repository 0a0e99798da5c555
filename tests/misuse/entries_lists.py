"""Lists and tuples of numbers given to NumPy's functions, in place of arrays."""

from __future__ import annotations

import numpy as np

from archimedes.errors import TraceError
from tests.misuse.catalogue import entry

F32 = np.array([1.5, 2.5], np.float32)


@entry("lists")
def the_largest_of_a_number_and_a_limit(run):
    return run(lambda x: np.max([x, 1.0]))(0.5)


@entry("lists")
def the_mean_of_two_numbers(run):
    return run(lambda x, y: np.mean([x, y]))(0.5, 2.0)


@entry("lists")
def a_choice_between_lists(run):
    return run(lambda x, y: np.where([True, False], [x, y], [y, x]))(0.5, 2.0)


@entry("lists", error=TraceError, says=["np.sin(np.array([x, 1.0]))"])
def the_sine_of_a_list(run):
    return run(lambda x: np.sin([x, 1.0]))(0.5)


@entry("lists", error=TraceError, says=["np.sin(np.array(x))"])
def the_sine_of_an_argument_that_is_a_list(run):
    return run(lambda x: np.sin(x))([0.5, 1.0])


@entry("lists")
def the_sine_of_an_array_of_a_list(run):
    return run(lambda x: np.sin(np.array([x, 1.0])))(0.5)


@entry("lists")
def a_sum_of_a_list_times_float32(run):
    return run(lambda x: np.sum([x, 1.0]) * F32)(0.1)


@entry("lists")
def differences_of_float32_numbers_and_a_literal(run):
    return run(lambda x: np.diff([x, 1.0]) * F32)(np.float32(0.1))


@entry("lists")
def the_norm_of_float32_numbers(run):
    return run(lambda x, y: np.linalg.norm([x, y]) * F32)(np.float32(3), np.float32(4))


@entry("lists")
def ints_and_floats_in_one_list(run):
    return run(lambda n, x: (np.sum([n, x]), np.sort([n, x])))(3, 0.5)


@entry("lists")
def bools_counted(run):
    return run(lambda x: np.sum([x > 1, x > 2, True]))(1.5)


@entry("lists")
def rounding_a_list_of_ints_keeps_ints(run):
    return run(lambda n: np.round([n, 3], 1))(2)


@entry("lists")
def a_tuple_of_tuples_is_a_matrix(run):
    return run(lambda x: np.linalg.det(((x, 1.0), (0.5, x))))(2.0)


@entry("lists")
def limits_as_lists(run):
    return run(lambda x: np.clip(np.array([0.1, 5.0]), [x, x], [1.0, 3 * x]))(0.5)


@entry("lists")
def breakpoints_in_a_list(run):
    return run(lambda x: np.interp([0.2, 0.7], [0.0, x], [x, 2 * x]))(0.6)


@entry("lists")
def rows_of_different_kinds(run):
    return run(lambda x: np.stack([[x, 1], (2, x)]) * F32)(np.float32(0.3))


@entry("lists")
def lists_of_different_lengths_joined(run):
    return run(lambda x: np.concatenate([[x], [1, 2, x]]))(0.5)


@entry("lists")
def a_list_in_a_list_of_choices(run):
    return run(lambda x: np.select([x > 1, x <= 1], [[x, 1.0], [2.0, x]]))(0.5)


@entry("lists")
def functions_in_a_dict(run):
    scales = {np.sin: 2.0, np.cos: 3.0}
    return run(lambda x: scales[np.cos] * np.cos(np.array([x, 0.0])))(0.5)


@entry("lists")
def a_function_compared_with_another(run):
    reduce = np.max

    def f(x):
        return np.max([x, 1.0]) if reduce == np.max else np.min([x, 1.0])

    return run(f)(3.0)


@entry("lists")
def a_function_asked_what_it_is(run):
    return run(lambda x: x * isinstance(np.sin, np.ufunc) * np.add.nin)(3.0)


@entry("lists", error=TraceError, says=["np.where"])
def the_different_values_in_a_list(run):
    return run(lambda x: np.flatnonzero([x, 0.0]))(1.0)


@entry("lists", error=TraceError, says=["total(np.array([x, 1.0]))"])
def a_sum_kept_before_the_recording(run):
    total = np.sum
    return run(lambda x: total([x, 1.0]) * F32)(0.1)


@entry("lists", error=TraceError, says=["norm(np.array([x, 4.0]))"])
def a_norm_in_a_default(run):
    def length(x, norm=np.linalg.norm):
        return norm([x, 4.0])

    return run(lambda x: length(x))(3.0)
