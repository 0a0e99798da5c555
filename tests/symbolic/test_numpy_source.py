"""Functions of NumPy that are recorded by running NumPy's own code (decision 081)."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc

X = np.linspace(0.0, 1.0, 6)
Y = np.sin(3.0 * X)


def put(a, index, values):
    b = a.copy()
    np.put_along_axis(b, index, values, 0)
    return b


def pad_by_hand(x):
    def fill(row, width, axis, options):
        row[: width[0]] = 1.5
        row[-width[1] :] = 2.5

    return np.pad(x, (1, 2), fill)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda x, y: np.polyfit(x, y, 2, full=True)[0], (X, Y)),
        (lambda x, y: np.polyfit(x, y, 1, cov=True)[1], (X, Y)),
        (put, (np.zeros(4), np.array([2, 0]), np.array([5.0, 7.0]))),
        (pad_by_hand, (X,)),
        (lambda x, y: np.kron(np.outer(x, y), np.eye(2)), (X, Y)),
        (lambda x, w: np.average(x, weights=w), (X, 1.0 + Y**2)),
    ],
)
def test_agrees_with_numpy(function, args):
    np.testing.assert_allclose(
        arc.compile(function)(*args), function(*args), rtol=1e-12, atol=1e-14
    )


def test_numpy_itself_is_not_touched():
    before = {name: id(value) for name, value in vars(np).items()}
    inner = {name: id(value) for name, value in np.kron.__wrapped__.__globals__.items()}
    arc.compile(lambda x: np.kron(x, x))(X)
    assert {name: id(value) for name, value in vars(np).items()} == before
    after = {name: id(value) for name, value in np.kron.__wrapped__.__globals__.items()}
    assert after == inner


def test_checks_are_those_of_numpy():
    def power(a):
        return np.linalg.matrix_power(a, 2.5)

    for run in (power, arc.compile(power)):
        with pytest.raises(TypeError, match="exponent must be an integer"):
            run(np.eye(2))
