"""Norms of every order, and condition numbers, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import archimedes as arc

from .matrices import check_like_numpy, random, traced

VECTOR = [None, 0, 1, 2, 3, 4, 2.5, 0.5, -1, -2, -2.5, np.inf, -np.inf]
MATRIX = [None, "fro", "f", "nuc", 1, -1, 2, -2, np.inf, -np.inf]


@pytest.mark.parametrize("order", VECTOR, ids=str)
def test_vector_norms(order) -> None:
    for x in (random(0, 5), np.array([3, -4]), random(1, 3).astype(np.float32)):
        rtol = 1e-6 if x.dtype == np.float32 else 1e-14
        check_like_numpy(lambda v: np.linalg.norm(v, order), x, rtol=rtol)
        check_like_numpy(lambda v: np.linalg.norm(v, order, keepdims=True), x, rtol=rtol)
    cube = random(2, 2, 3, 4)
    for axis in (0, 1, -1):
        check_like_numpy(lambda v, k=axis: np.linalg.norm(v, order, axis=k), cube)
        check_like_numpy(lambda v, k=axis: np.linalg.norm(v, order, k, keepdims=True), cube)
    if order is not None:
        for axes in (None, 1, (0, 2)):
            check_like_numpy(lambda v, k=axes: np.linalg.vector_norm(v, axis=k, ord=order), cube)


@pytest.mark.parametrize("order", MATRIX, ids=str)
def test_matrix_norms(order) -> None:
    for shape in ((3, 3), (2, 4), (4, 2), (1, 1)):
        check_like_numpy(lambda a: np.linalg.norm(a, order), random(0, *shape))
        check_like_numpy(lambda a: np.linalg.norm(a, order, keepdims=True), random(0, *shape))
    cube = random(2, 2, 3, 4)
    for axis in ((0, 1), (2, 0), (-1, -2)):
        check_like_numpy(lambda v, k=axis: np.linalg.norm(v, order, axis=k), cube)
        check_like_numpy(lambda v, k=axis: np.linalg.norm(v, order, k, keepdims=True), cube)
    if order is not None:
        check_like_numpy(lambda v: np.linalg.matrix_norm(v, ord=order), cube)
        check_like_numpy(lambda v: np.linalg.matrix_norm(v, ord=order, keepdims=True), cube)


def test_norm_of_any_number_of_dimensions() -> None:
    check_like_numpy(np.linalg.norm, random(0, 2, 3, 4))
    check_like_numpy(lambda x: np.linalg.norm(x, keepdims=True), random(0, 2, 3, 4))
    check_like_numpy(np.linalg.norm, np.float64(-3.0))


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6), st.floats(0.3, 6.0))
def test_any_order(values: list[float], order: float) -> None:
    x = np.array(values)
    with np.errstate(all="ignore"):
        want = np.linalg.norm(x, order)
    np.testing.assert_allclose(traced(lambda v: np.linalg.norm(v, order), x), want, rtol=1e-13)


ERRORS = [
    (lambda a: np.linalg.norm(a[0], "fro"), ValueError, "Invalid norm order 'fro' for vectors"),
    (lambda a: np.linalg.norm(a, 3), ValueError, "Invalid norm order for matrices"),
    (lambda a: np.linalg.norm(a, "max"), ValueError, "Invalid norm order for matrices"),
    (lambda a: np.linalg.norm(a, axis=(0, 0)), ValueError, "Duplicate axes given"),
    (lambda a: np.linalg.norm(a, axis=2), ValueError, "out of bounds"),
    (lambda a: np.linalg.norm(a, axis="x"), TypeError, "'axis' must be None, an integer"),
    (lambda a: np.linalg.norm(a[None], 1), ValueError, "Improper number of dimensions"),
]


@pytest.mark.parametrize(("function", "kind", "message"), ERRORS)
def test_errors_are_numpys(function, kind, message: str) -> None:
    for run in (function, arc.compile(function)):
        with pytest.raises(kind, match=message):
            run(random(0, 3, 3))


@pytest.mark.parametrize("order", MATRIX, ids=str)
def test_condition_number(order) -> None:
    if order == "f":
        return
    check_like_numpy(lambda a: np.linalg.cond(a, order), random(0, 3, 3))
    check_like_numpy(lambda a: np.linalg.cond(a, order), random(1, 2, 4, 4))


def test_condition_of_a_singular_matrix_is_infinite() -> None:
    for order in (None, 1, "fro"):
        assert traced(lambda a, p=order: np.linalg.cond(a, p), np.diag([1.0, 0.0])) == np.inf
    assert np.isnan(traced(np.linalg.cond, np.full((2, 2), np.nan)))


def test_norm_costs_little() -> None:
    counts = arc.compile(np.linalg.norm).statistics(random(0, 3)).by_op
    assert counts == {"mul": 3, "add": 2, "select": 2, "eq": 1, "sqrt": 1}


@pytest.mark.parametrize("order", [None, 1, 2, 3, 2.5])
def test_gradient_at_the_origin_is_zero(order) -> None:
    gradient = arc.grad(lambda x: np.linalg.norm(x, order))(np.zeros(3))
    np.testing.assert_array_equal(gradient, np.zeros(3))
