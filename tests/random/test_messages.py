"""Arguments that are wrong, and what is said about them."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc

r = arc.random
KEY = r.key(1)

WRONG = {
    "a seed for a key": (lambda: r.uniform(0), TypeError, "arc.random.key(seed)"),
    "a generator for a key": (
        lambda: r.normal(np.random.default_rng(0)),
        TypeError,
        "NumPy's generators keep a state",
    ),
    "keys for a key": (lambda: r.normal(r.split(KEY, 3)), TypeError, "arc.vmap"),
    "a float key": (lambda: r.normal(KEY * 1.0), TypeError, "int64 argument of its own"),
    "a float seed": (lambda: r.key(1.0), TypeError, "whole number"),
    "a truth for a seed": (lambda: r.key(True), ValueError, "seed"),
    "a long seed": (lambda: r.key(2**128), ValueError, "128 bits"),
    "many seeds": (lambda: r.key(np.arange(3)), TypeError, "split"),
    "a float to fold in": (lambda: r.fold_in(KEY, 1.5), TypeError, "i must be a whole number"),
    "half a key": (lambda: r.split(KEY, 1.5), TypeError, "n must be an int"),
    "fewer than no keys": (lambda: r.split(KEY, -1), ValueError, "negative"),
    "a negative shape": (lambda: r.uniform(KEY, (2, -1)), ValueError, "negative"),
    "a float shape": (lambda: r.uniform(KEY, 2.0), TypeError, "shape"),
    "one number for three means": (
        lambda: r.normal(KEY, (), mean=np.zeros(3)),
        ValueError,
        "does not hold the parameters",
    ),
    "shapes that do not fit": (
        lambda: r.uniform(KEY, low=np.zeros(2), high=np.ones(3)),
        ValueError,
        "do not fit",
    ),
    "low above high": (lambda: r.uniform(KEY, 2, low=1.0, high=0.0), ValueError, "high - low"),
    "no bounds": (lambda: r.uniform(KEY, 2, low=-np.inf), ValueError, "finite"),
    "bounds too far apart": (
        lambda: r.uniform(KEY, 2, low=-1.7e308, high=1.7e308),
        ValueError,
        "finite",
    ),
    "a negative deviation": (lambda: r.normal(KEY, 2, std=-1.0), ValueError, "std"),
    "a negative scale": (lambda: r.exponential(KEY, scale=-1.0), ValueError, "scale"),
    "an integer dtype": (lambda: r.normal(KEY, dtype=int), TypeError, "float64 or float32"),
    "float bounds": (lambda: r.integers(KEY, 0.0, 2.0), TypeError, "low must be a whole number"),
    "no integers": (lambda: r.integers(KEY, 3, 3), ValueError, "below high"),
    "likelier than sure": (lambda: r.bernoulli(KEY, 1.2), ValueError, "between 0 and 1"),
    "too many without replacement": (
        lambda: r.choice(KEY, 3, 4, replace=False),
        ValueError,
        "4 entries cannot be chosen from 3",
    ),
    "from nothing": (lambda: r.choice(KEY, 0), ValueError, "from 0"),
    "too few weights": (lambda: r.choice(KEY, 3, p=[1.0, 1.0]), ValueError, "shape (3,)"),
    "negative weights": (lambda: r.choice(KEY, 2, p=[1.0, -1.0]), ValueError, "negative"),
    "no weight": (lambda: r.choice(KEY, 2, p=[0.0, 0.0]), ValueError, "zero"),
    "too few entries with a weight": (
        lambda: r.choice(KEY, 4, 3, replace=False, p=[0.5, 0.0, 0.5, 0.0]),
        ValueError,
        "only 2 of 4 have a p above zero",
    ),
    "weights with an infinite sum": (
        lambda: r.choice(KEY, 2, p=[1.5e308, 1.5e308]),
        ValueError,
        "also its sum",
    ),
    "a float to permute": (lambda: r.permutation(KEY, 2.5), ValueError, "static int"),
    "a mean that does not fit": (
        lambda: r.multivariate_normal(KEY, np.zeros(2), np.eye(3)),
        ValueError,
        "cov (n, n)",
    ),
    "a skew covariance": (
        lambda: r.multivariate_normal(KEY, np.zeros(2), np.array([[1.0, 0.5], [0.0, 1.0]])),
        ValueError,
        "symmetric",
    ),
    "an indefinite covariance": (
        lambda: r.multivariate_normal(KEY, np.zeros(2), np.array([[1.0, 2.0], [2.0, 1.0]])),
        ValueError,
        "positive definite",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_message(name):
    call, kind, words = WRONG[name]
    with pytest.raises(kind) as caught:
        call()
    assert words in str(caught.value)
    assert "arc.random" in str(caught.value)


def test_a_traced_shape():
    with pytest.raises(TypeError, match="known when the function is recorded"):
        arc.compile(lambda key, n: r.uniform(key, n))(KEY, 3)


def test_no_number_drawn_gives_empty_arrays():
    assert r.choice(KEY, 0, 0).shape == (0,)
    assert r.permutation(KEY, 0).shape == (0,)
    assert r.split(KEY, 0).shape == (0, 2)


def test_lists_of_traced_numbers_are_parameters():
    def draw(key, x):
        weights = [x, 1.0, 0.5]
        return (
            r.uniform(key, low=[x, 0.0], high=10),
            r.normal(key, mean=[0.0, x], std=x),
            r.choice(key, [x, 2 * x, 3 * x], 4, p=weights),
            r.integers(key, 3, [8, 9]),
        )

    for eager, recorded in zip(draw(KEY, 2.0), arc.compile(draw)(KEY, 2.0)):
        np.testing.assert_array_equal(eager, recorded)


def test_narrow_integers():
    assert (r.fold_in(KEY, np.int32(3)) == r.fold_in(KEY, 3)).all()
    assert r.integers(KEY, np.uint8(200)) == r.integers(KEY, 200)
    with pytest.raises(ValueError, match=r"high must be below 2\^63"):
        r.integers(KEY, 0, np.uint64(2**63))


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("p", [[0.0, 0.0, 0.0], [1.0, -1.0, 1.0], [1.0, np.nan, 1.0]])
def test_wrong_probabilities_of_a_recording_draw_nothing(replace, p):
    def draw(key, p):
        values = np.array([2.0, 3.0, 5.0])
        return r.choice(key, values, 2, replace, p), r.choice(key, 3, 2, replace, p)

    numbers, places = arc.compile(draw)(KEY, np.array(p))
    assert np.isnan(numbers).all()
    assert (places == np.iinfo(np.int64).min).all()


def test_too_few_probabilities_above_zero_in_a_recording():
    draw = arc.compile(lambda key, p: r.choice(key, np.arange(3.0), 2, replace=False, p=p))
    assert np.isnan(draw(KEY, np.array([0.0, 1.0, 0.0]))).all()
    assert set(draw(KEY, np.array([0.0, 1.0, 1e-320]))) == {1.0, 2.0}


def test_wrong_parameters_of_a_recording_are_nan():
    def draw(key, x):
        return (
            r.uniform(key, 2, low=1.0, high=x),
            r.normal(key, 2, std=x),
            r.exponential(key, 2, scale=x),
            r.multivariate_normal(key, np.zeros(1), np.reshape(x, (1, 1))),
        )

    for numbers in arc.compile(draw)(KEY, -1.0):
        assert np.isnan(numbers).any()
    for eager, recorded in zip(draw(KEY, 2.0), arc.compile(draw)(KEY, 2.0)):
        np.testing.assert_array_equal(eager, recorded)


def test_parameters_in_arrays_made_inside():
    def draw(key, x):
        mean, made = np.zeros(3), np.zeros(2, dtype=np.int64)
        mean[1] = x
        made[0] = arc.random.bits(key)
        return (
            r.normal(key, mean=mean, std=np.ones(3)),
            r.uniform(made, 2),
            r.permutation(key, mean),
        )

    for eager, recorded in zip(draw(KEY, 2.0), arc.compile(draw)(KEY, 2.0)):
        np.testing.assert_array_equal(eager, recorded)
