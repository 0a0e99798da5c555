"""solve, inv, det, slogdet and products, against NumPy and against the Solve region."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import archimedes as arc
from archimedes.graph.regions.linear_solve import eliminate

from .matrices import SQUARE, backward_error, check_like_numpy, random, traced

SIZES = (1, 2, 3, 4, 5, 7)
NAMES = sorted(SQUARE)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", NAMES)
def test_solve_is_backward_stable(name: str, n: int) -> None:
    a, b = SQUARE[name](n), random(11, n, 2)
    x = traced(np.linalg.solve, a, b)
    assert x.shape == b.shape
    assert backward_error(a, x, b) < 10 * n
    assert backward_error(a, traced(np.linalg.solve, a, b[:, 0]), b[:, 0]) < 10 * n


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", NAMES)
def test_inverse_as_good_as_lapack(name: str, n: int) -> None:
    a = SQUARE[name](n)
    condition = np.linalg.cond(a)
    error = np.abs(traced(np.linalg.inv, a) - np.linalg.inv(a)).max()
    assert error <= 20 * n * np.finfo(float).eps * condition * np.abs(np.linalg.inv(a)).max()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", NAMES)
def test_determinants(name: str, n: int) -> None:
    a = SQUARE[name](n)
    rtol = 20 * n * np.finfo(float).eps * np.linalg.cond(a)
    want, got = np.linalg.det(a), traced(np.linalg.det, a)
    assert abs(got - want) <= rtol * abs(want)
    sign, log = traced(np.linalg.slogdet, a)
    assert sign == np.sign(want)
    assert abs(log - np.linalg.slogdet(a)[1]) <= rtol + 1e-14 * abs(log)


# ---- the same bits as the region ----------------------------------------------------------------

entries = st.one_of(st.integers(-2, 2).map(float), st.floats(-1e3, 1e3))


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 4), st.integers(1, 3), st.data())
def test_unrolled_gives_the_bits_of_the_region(n: int, m: int, data) -> None:
    # Small whole numbers bring ties between pivots and exact singularity.
    a = np.array(data.draw(st.lists(entries, min_size=n * n, max_size=n * n))).reshape(n, n)
    b = np.array(data.draw(st.lists(entries, min_size=n * m, max_size=n * m))).reshape(n, m)
    with np.errstate(all="ignore"):
        want = eliminate(a, b)
    np.testing.assert_array_equal(traced(np.linalg.solve, a, b), want)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("name", NAMES)
def test_named_matrices_give_the_bits_of_the_region(name: str, n: int, dtype) -> None:
    a, b = SQUARE[name](n).astype(dtype), random(12, n, 2).astype(dtype)
    got = traced(np.linalg.solve, a, b)
    assert got.dtype == dtype
    with np.errstate(all="ignore"):  # the ill-conditioned ones are singular in float32
        np.testing.assert_array_equal(got, eliminate(a, b))


def test_constant_and_upper_triangular_matrices_keep_the_order_too() -> None:
    a, b = random(13, 4, 4), random(14, 4, 2)
    constant = traced(lambda y: np.linalg.solve(a, y), b)
    np.testing.assert_array_equal(constant, eliminate(a, b))
    triangular = traced(lambda x, y: np.linalg.solve(np.triu(x), y), a, b)
    np.testing.assert_array_equal(triangular, eliminate(np.triu(a), b))


# ---- structure ----------------------------------------------------------------------------------


def count(function, *args) -> int:
    return arc.compile(function).statistics(*args).total


def ops(function, *args) -> dict[str, int]:
    return arc.compile(function).statistics(*args).by_op


def test_node_counts_of_dense_matrices() -> None:
    a, b = random(0, 3, 3), random(1, 3)
    assert count(np.linalg.solve, a, b) <= 65
    assert count(np.linalg.inv, a) <= 105
    assert count(np.linalg.det, a) <= 110  # 50 of them keep the product of pivots in range
    assert count(np.linalg.det, a[:2, :2]) == 3
    assert count(np.linalg.solve, random(0, 4, 4), random(1, 4)) <= 145
    assert count(np.linalg.solve, random(0, 9, 9), random(1, 9)) == 1


def test_diagonal_matrix_is_divided_by() -> None:
    d, b = random(2, 6), random(3, 6)
    assert ops(lambda x, y: np.linalg.solve(np.diag(x), y), d, b) == {"div": 6}
    assert ops(lambda x: np.linalg.inv(np.diag(x)), d) == {"div": 6}
    assert ops(lambda x: np.linalg.det(np.diag(x)), d[:2]) == {"mul": 1}
    assert "div" not in ops(lambda x: np.linalg.det(np.diag(x)), d)


@pytest.mark.parametrize("shape", [np.tril, np.triu, lambda a: np.tril(a)[::-1]])
def test_triangular_matrix_is_substituted(shape) -> None:
    a, b = random(4, 5, 5), random(5, 5)
    counts = ops(lambda x, y: np.linalg.solve(shape(x), y), a, b)
    assert counts == {"mul": 10, "sub": 10, "div": 5}
    check_like_numpy(lambda x, y: np.linalg.solve(shape(x), y), a, b)
    check_like_numpy(lambda x: np.linalg.inv(shape(x)), a)
    check_like_numpy(lambda x: np.linalg.det(shape(x)), a)


def test_constant_matrix_is_factorised_while_recording() -> None:
    a = random(6, 5, 5)
    counts = ops(lambda y: np.linalg.solve(a, y), random(7, 5))
    assert set(counts) <= {"mul", "sub", "add", "div", "neg"}
    assert sum(counts.values()) <= 2 * 5 * 5


def test_block_structure_is_solved_block_by_block() -> None:
    def transform(r, p, y):
        homogeneous = np.block([[r, p[:, None]], [np.zeros((1, 3)), np.ones((1, 1))]])
        return np.linalg.solve(homogeneous, y)

    r, p, y = random(8, 3, 3), random(9, 3), random(10, 4)
    # the 3x3 solution, and subtracting p y[3] from the right-hand side
    assert count(transform, r, p, y) <= 65 + 6
    check_like_numpy(transform, r, p, y)


def test_two_equal_calls_are_one() -> None:
    a, b = random(0, 3, 3), random(1, 3)
    once = count(np.linalg.solve, a, b)
    assert count(lambda x, y: np.linalg.solve(x, y) + np.linalg.solve(x, y), a, b) == once + 3


# ---- shapes, dtypes, errors ---------------------------------------------------------------------

STACKS = [
    ((2, 3, 3), (3,)),
    ((2, 3, 3), (3, 4)),
    ((3, 3), (2, 3, 4)),
    ((2, 1, 3, 3), (5, 3, 1)),
    ((2, 6, 6), (6, 2)),
    ((1, 1), (1,)),
]


@pytest.mark.parametrize("shapes", STACKS, ids=str)
def test_stacks_broadcast_as_in_numpy(shapes) -> None:
    a, b = (random(k, *shape) for k, shape in enumerate(shapes))
    check_like_numpy(np.linalg.solve, a, b)
    for function in (np.linalg.inv, np.linalg.det, np.linalg.slogdet):
        check_like_numpy(function, a)


@pytest.mark.parametrize("left", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("right", [np.float32, np.float64, np.int64])
def test_dtypes_are_numpys(left, right) -> None:
    a = np.array([[4, 1], [2, 3]], dtype=left)
    b = np.array([1, 2], dtype=right)
    check_like_numpy(np.linalg.solve, a, b, rtol=1e-6)
    for function in (np.linalg.inv, np.linalg.det, np.linalg.slogdet):
        check_like_numpy(function, a, rtol=1e-6)


def test_singular_matrix_gives_inf_or_nan() -> None:
    for n in (2, 3, 4, 6):
        a = np.ones((n, n))
        assert not np.isfinite(traced(np.linalg.solve, a, np.arange(float(n)))).any()
        assert not np.isfinite(traced(np.linalg.inv, a)).all()
        assert traced(np.linalg.det, a) == 0.0
        assert tuple(traced(np.linalg.slogdet, a)) == (0.0, -np.inf)
    assert traced(np.linalg.det, np.zeros((3, 3))) == 0.0


def test_matrix_singular_by_its_literal_zeros() -> None:
    def hollow(x):
        a = np.zeros((3, 3))
        a[0] = x
        a[1, 1] = x[0]
        return a

    x = random(0, 3)
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        traced(lambda v: np.linalg.solve(hollow(v), v), x)
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        traced(lambda v: np.linalg.inv(hollow(v)), x)
    assert traced(lambda v: np.linalg.det(hollow(v)), x) == 0.0
    assert tuple(traced(lambda v: np.linalg.slogdet(hollow(v)), x)) == (0.0, -np.inf)


@pytest.mark.parametrize("function", [np.linalg.inv, np.linalg.det, np.linalg.slogdet])
def test_shape_errors(function) -> None:
    for bad, message in ((random(0, 3), "1-dimensional array given"),
                         (random(0, 2, 3), "must be square")):  # fmt: skip
        with pytest.raises(np.linalg.LinAlgError, match=message):
            function(bad)
        with pytest.raises(np.linalg.LinAlgError, match=message):
            traced(function, bad)


def test_solve_names_the_shapes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"shape \(3, 3\), b has shape \(2,\)"):
        traced(np.linalg.solve, random(0, 3, 3), random(1, 2))
    with pytest.raises(ValueError, match="mismatch in its core dimension"):
        traced(np.linalg.solve, random(0, 3, 3), random(1, 2, 3))


# ---- products -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", range(-4, 9))
def test_matrix_power(n: int) -> None:
    check_like_numpy(lambda a: np.linalg.matrix_power(a, n), random(0, 3, 3))
    check_like_numpy(lambda a: np.linalg.matrix_power(a, n), random(0, 2, 3, 3))
    if n >= 0:
        check_like_numpy(lambda a: np.linalg.matrix_power(a, n), np.array([[2, 1], [0, 3]]))


def test_matrix_power_needs_a_whole_exponent() -> None:
    with pytest.raises(TypeError, match="exponent must be an integer"):
        traced(lambda a: np.linalg.matrix_power(a, 1.5), random(0, 2, 2))


def test_multi_dot_takes_the_cheapest_order() -> None:
    a, b, c, d = random(0, 8, 2), random(1, 2, 8), random(2, 8, 2), random(3, 2, 1)
    chain = lambda *arrays: np.linalg.multi_dot(list(arrays))
    check_like_numpy(chain, a, b, c, d)
    check_like_numpy(chain, a[0], b, c[:, 0])
    check_like_numpy(chain, np.arange(4).reshape(2, 2), np.arange(6).reshape(2, 3))
    muls = ops(chain, a, b, c, d)["mul"]
    assert muls == 8 * 2 + 2 * 8 + 8 * 2  # from the right, vector by vector
    with pytest.raises(ValueError, match="at least two arrays"):
        traced(lambda x: np.linalg.multi_dot([x]), a)


TENSORS = [
    lambda a: np.linalg.tensorinv(a.reshape(2, 3, 6), ind=2),
    lambda a: np.linalg.tensorinv(a.reshape(6, 2, 3), ind=1),
    lambda a: np.linalg.tensorsolve(a.reshape(2, 3, 6), a[:2, :3]),
    lambda a: np.linalg.tensorsolve(a.reshape(2, 6, 3), a[:2, :3], axes=(1,)),
    lambda a: np.linalg.trace(a.reshape(4, 3, 3), offset=1),
    lambda a: np.linalg.diagonal(a.reshape(4, 3, 3), offset=-1),
    lambda a: np.linalg.matrix_transpose(a.reshape(4, 3, 3)),
    lambda a: np.linalg.vecdot(a, a[::-1], axis=0),
    lambda a: np.linalg.tensordot(a, a, axes=1),
]


@pytest.mark.parametrize("function", TENSORS)
def test_tensor_functions(function) -> None:
    check_like_numpy(function, random(0, 6, 6))


def test_every_function_of_the_module_is_covered() -> None:
    from archimedes.symbolic.core.registry import FUNCTIONS

    arc.compile(np.linalg.det)(np.eye(2))  # the rows are imported when the first is needed
    names = set(np.linalg.__all__) - {"LinAlgError"}
    refused = {"eig", "matrix_rank"}  # with a remedy
    assert {n for n in names if getattr(np.linalg, n) not in FUNCTIONS} == refused


# ---- range --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["diagonal", "dense", "large", "blocks"])
@pytest.mark.parametrize("sign", [1, -1])
def test_determinants_overflow_only_where_their_value_does(name: str, sign: int) -> None:
    n = {"diagonal": 16, "dense": 8, "large": 40, "blocks": 16}[name]
    sizes = 10.0 ** (sign * np.resize([100.0, 100.0, -120.0, -80.0], n))
    if name in ("diagonal", "blocks"):
        sizes = sizes**2  # elimination need not divide these by each other
    rotation = np.linalg.qr(random(20, n, n))[0]
    if name == "diagonal":
        got, want = traced(lambda d: np.linalg.det(np.diag(d)), sizes), 1.0
    elif name == "blocks":
        a = np.kron(np.eye(8), np.array([[2.0, 1.0], [1.0, 2.0]])) * sizes[:, None]
        mask = np.kron(np.eye(8), np.ones((2, 2))) > 0
        got, want = traced(lambda a: np.linalg.det(np.where(mask, a, 0.0)), a), 3.0**8
    else:
        got, want = traced(np.linalg.det, rotation * sizes[:, None]), np.linalg.det(rotation)
    np.testing.assert_allclose(got, want, rtol=1e-11)


def test_derivatives_of_determinants_stay_in_range() -> None:
    d = np.array([1e200, 1e200, 1e-300])
    np.testing.assert_allclose(traced(lambda d: np.linalg.det(np.diag(d)), d), 1e100, rtol=1e-12)
    np.testing.assert_allclose(
        arc.grad(lambda d: np.linalg.det(np.diag(d)))(d)[:2], [1e-100, 1e-100], rtol=1e-12
    )
    assert traced(np.linalg.det, np.diag([1e-310, 1e-310, 1e305])) == 1e-315
    assert traced(np.linalg.det, np.diag([np.inf, 2.0, 3.0])) == np.inf
