"""Derivatives reuse a recording: the Python function is called once for all that is made of it."""

from __future__ import annotations

import sys
from contextlib import contextmanager

import numpy as np
import pytest

import archimedes as arc
from archimedes.function.dependencies.walk import Walk


@contextmanager
def calls_of(function):
    """Count how often Python enters a function, in a list; the function knows nothing of it."""
    found: list[int] = []

    def profile(frame, event, arg):
        if event == "call" and frame.f_code is function.__code__:
            found.append(1)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield found
    finally:
        sys.setprofile(before)


def energy(x):
    return np.sum(np.sin(x) * x[0]) + x[1] ** 3


def field(x):
    return np.array([x[0] * x[1], np.sin(x[1]), x[2] ** 2])


X = np.array([0.3, -1.2, 2.0])
V = np.array([1.0, 0.5, -2.0])

#: Name: (the function, what is made of it, called with these arguments).
MADE = {
    "grad": (energy, lambda f: arc.grad(f), (X,)),
    "hess": (energy, lambda f: arc.hess(f), (X,)),
    "sparse hess": (energy, lambda f: arc.hess(f, sparse=True), (X,)),
    "lower hess": (energy, lambda f: arc.hess(f, sparse=True).lower.values, (X,)),
    "jac": (field, lambda f: arc.jac(f), (X,)),
    "flat jac": (field, lambda f: arc.jac(f, flat=True), (X,)),
    "sparse jac": (field, lambda f: arc.jac(f, sparse=True), (X,)),
    "sparsity": (field, lambda f: arc.sparsity(f), (X,)),
    "jvp": (field, lambda f: arc.jvp(f), (X, V)),
    "vjp": (field, lambda f: arc.vjp(f), (X, V)),
    "jac of jac": (field, lambda f: arc.jac(arc.jac(f)), (X,)),
    "grad of a jvp": (energy, lambda f: arc.jac(arc.jvp(f)), (X, V)),
    "vmap": (field, lambda f: arc.vmap(f), (np.stack([X, V]),)),
    "vmap of jac": (field, lambda f: arc.vmap(arc.jac(f)), (np.stack([X, V]),)),
}


def dense(result):
    return result.toarray() if hasattr(result, "toarray") else result


@pytest.mark.parametrize("name", MADE)
def test_a_function_called_before_is_not_called_again(name):
    function, make, args = MADE[name]
    f = arc.compile(function)
    f(X)
    with calls_of(function) as calls:
        result = make(f)(*args)
    assert len(calls) == 0
    expected = make(function)(*args)
    np.testing.assert_array_equal(dense(result), dense(expected))


@pytest.mark.parametrize("name", MADE)
def test_a_fresh_one_is_called_once_for_all(name):
    function, make, args = MADE[name]
    f = arc.compile(function)
    with calls_of(function) as calls:
        made = make(f)
        made(*args)
        made(*args)
        f(X)
        make(f)(*args)
    assert len(calls) == 1


@pytest.mark.parametrize(
    "x",
    [0.7, np.float64(0.7), np.array(0.7), np.float32(0.7)],
    ids=["Python float", "float64", "array without axes", "float32"],
)
def test_scalars_of_all_kinds(x):
    def square(x):
        return x * x

    f = arc.compile(square)
    f(x)
    with calls_of(square) as calls:
        assert arc.grad(f)(x) == 2 * x
    assert len(calls) == 0


def test_an_array_as_it_lies_in_memory():
    def ravelled(x):
        return x.ravel("K")[1] * 2.0

    f = arc.compile(ravelled)
    x = np.asfortranarray([[1.0, 2.0], [3.0, 4.0]])
    assert f(x) == 6.0
    with calls_of(ravelled) as calls:
        np.testing.assert_array_equal(arc.grad(f)(x), [[0.0, 0.0], [2.0, 0.0]])
    assert len(calls) == 0


def test_an_int_is_differentiated_as_a_float_which_is_another_recording():
    def square(x):
        return x * x

    f = arc.compile(square)
    f(3)
    with calls_of(square) as calls:
        assert arc.grad(f)(3) == 6.0
        f(3.0)
    assert len(calls) == 1


def test_defaults_static_arguments_and_several_at_once():
    def power(x, y, scale=2.0, *, n):
        return scale * x**n * y

    f = arc.compile(power, static_argnames="n")
    f(1.5, 2.0, n=3)
    with calls_of(power) as calls:
        assert arc.grad(f, argnums=(0, 1))(1.5, 2.0, n=3) == (2 * 3 * 1.5**2 * 2.0, 2 * 1.5**3)
    assert len(calls) == 0
    with calls_of(power) as calls:
        assert arc.grad(f, argnums=2)(1.5, 2.0, n=3) == 1.5**3 * 2.0
    assert len(calls) == 1, "the default is an argument now"


def test_what_the_function_reads_still_counts():
    setting = {"gain": 2.0}

    def scaled(x):
        return setting["gain"] * x * x

    f = arc.compile(scaled)
    slope = arc.grad(f)
    assert (f(1.5), slope(1.5)) == (4.5, 6.0)
    setting["gain"] = 3.0
    with calls_of(scaled) as calls:
        assert slope(1.5) == 9.0
        assert f(1.5) == 6.75
    assert len(calls) == 1


def test_a_frozen_function_is_frozen_for_its_derivatives_too():
    setting = {"gain": 2.0}

    def scaled(x):
        return setting["gain"] * x * x

    f = arc.compile(scaled, freeze=True)
    f(1.5)
    setting["gain"] = 3.0
    assert (f(1.5), arc.grad(f)(1.5), arc.jac(arc.grad(f))(1.5)) == (4.5, 6.0, 4.0)


def test_inside_another_recording():
    f = arc.compile(energy)
    f(X)

    @arc.compile
    def step(x):
        return x - 0.1 * arc.grad(f)(x)

    with calls_of(energy) as calls:
        result = step(X)
    assert len(calls) == 0
    np.testing.assert_array_equal(result, X - 0.1 * arc.grad(energy)(X))


def test_values_of_the_enclosing_recording_are_found_in_it():
    @arc.compile
    def outer(x, k):
        inner = arc.compile(lambda y: k * y**2)
        return arc.grad(inner)(x) + inner(x)

    assert outer(3.0, 2.0) == 2 * 2.0 * 3.0 + 18.0
    assert arc.grad(outer, argnums=1)(3.0, 2.0) == 6.0 + 9.0


def test_methods():
    @arc.struct
    class Spring:
        k: float

        @arc.compile
        def energy(self, x):
            return 0.5 * self.k * x**2

    python = Spring.energy.function
    spring = Spring(3.0)
    spring.energy(2.0)
    with calls_of(python) as calls:
        assert arc.grad(spring.energy)(2.0) == 6.0
    assert len(calls) == 0


def test_a_function_is_looked_through_once_for_all_its_derivatives():
    factor = [2.0]

    def scaled(x):
        return factor[0] * field(x)

    f = arc.compile(scaled)
    slope = arc.jac(f, sparse=True)
    dense = arc.jac(f)
    with calls_of(Walk._run) as walks:
        f(X), slope.pattern(X), slope.values(X), slope(X), dense(X), arc.vmap(slope.values)(X[None])
        assert len(walks) == 1
        # What it reads still counts, for each of them.
        factor[0] = 3.0
        np.testing.assert_array_equal(dense(X), 3.0 * arc.jac(field)(X))
        np.testing.assert_array_equal(slope(X).toarray(), dense(X))


def test_entries_are_the_program_that_the_pattern_came_from():
    slope = arc.jac(field, sparse=True)
    pattern, values = slope.pattern(X), slope.values(X)
    assert slope.values.recording(X).blocks is slope._compiled.recording(X).blocks
    np.testing.assert_array_equal(pattern.matrix(values).toarray(), arc.jac(field)(X))
    # Inside another recording, with a value of it.
    outer = arc.compile(lambda x, k: arc.jac(lambda y: k * field(y), sparse=True).values(x))
    np.testing.assert_array_equal(outer(X, 2.0), 2.0 * values)
