"""Arrays made while recording are NumPy arrays, before and after a traced value is written."""

from __future__ import annotations

import copy
import functools
import operator
import pickle
import warnings

import numpy as np
import pytest
from numpy import array as make_array
from numpy import eye, zeros

import archimedes as arc
from archimedes.checks import is_traced
from archimedes.symbolic.recorded.recorded_array import RecordedArray
from tests.optional_packages import import_or_skip

ROW = np.array([1.0, 2.0, 3.5])
PLACES = np.array([0, 1, 0])
TABLE = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.5]])
X = np.array([0.5, -1.5, 2.0])


def same(function, *args) -> None:
    """Compare eager, interpreted and native results: values, shapes, dtypes."""
    want = function(*copy.deepcopy(args))
    for backend in ("interpreter", "llvm"):
        got = arc.compile(function, backend=backend)(*args)
        want_parts, got_parts = (w if isinstance(w, tuple) else (w,) for w in (want, got))
        assert len(want_parts) == len(got_parts)
        for w, g in zip(want_parts, got_parts):
            assert np.shape(w) == np.shape(g)
            assert np.asarray(w).dtype == np.asarray(g).dtype
            np.testing.assert_allclose(g, w, rtol=1e-14, atol=0.0)


# ---- kept by the user ------------------------------------------------------------------------


class Model:
    @functools.cached_property
    def gains(self):
        return np.diag(np.array([1.0, 2.0, 3.0])) + np.eye(3)

    @functools.cache  # noqa: B019
    def offsets(self, n):
        return np.linspace(0.0, 1.0, n)

    def force(self, x):
        return self.gains @ x + self.offsets(3)


def test_constants_kept_by_caches_serve_later_calls() -> None:
    model, fresh = Model(), Model()
    want = fresh.force(X)
    assert arc.compile(model.force)(X).tolist() == want.tolist()
    assert model.force(X).tolist() == want.tolist()
    assert type(model.gains + 1.0) is np.ndarray
    assert arc.compile(lambda x: model.force(2.0 * x))(X).tolist() == fresh.force(2.0 * X).tolist()
    assert arc.jac(model.force)(X).tolist() == fresh.gains.tolist()
    assert np.linalg.eigvals(model.gains).tolist() == [2.0, 3.0, 4.0]
    assert repr(model.gains) == repr(fresh.gains)


def test_kept_constants_are_pickled_copied_and_passed_as_plain_arrays() -> None:
    @functools.cache
    def numbers():
        return np.arange(3.0)

    assert arc.compile(lambda x: numbers() * x)(X).tolist() == (np.arange(3.0) * X).tolist()
    array = numbers()
    assert type(pickle.loads(pickle.dumps(array))) is np.ndarray
    assert copy.deepcopy(array).tolist() == [0.0, 1.0, 2.0]
    assert arc.compile(lambda x: x + 1.0)(array).tolist() == [1.0, 2.0, 3.0]
    array[0] = 5.0
    assert array.tolist() == [5.0, 1.0, 2.0]


def test_an_array_that_another_recording_made_does_not_take_traced_values() -> None:
    @functools.cache
    def zeros_of(n):
        return np.zeros(n)

    def second(x):
        zeros_of(3)[0] = x[0]
        return zeros_of(3)

    arc.compile(lambda x: x + zeros_of(3))(X)
    with pytest.raises(arc.TraceError, match=r"made in another recording[\s\S]*a = np.array\(a\)"):
        arc.compile(second)(X)
    assert zeros_of(3).tolist() == [0.0, 0.0, 0.0]


def test_an_array_with_traced_values_says_so_after_its_recording() -> None:
    @functools.cache
    def made():
        return np.zeros(2)

    def f(x):
        y = made()
        y[0] = x[0]
        return y

    try:
        arc.compile(f)(X)
    except arc.TraceError:
        return  # noticed where it happened
    for use in (lambda y: y + 1.0, np.sin, lambda y: y.sum(), lambda y: y[0] + 1.0, pickle.dumps):
        with pytest.raises(arc.TraceError):
            use(made())


# ---- constants are arrays --------------------------------------------------------------------


def type_tests(x):
    y = np.zeros(2)
    assert isinstance(y, np.ndarray)
    assert isinstance(y[0], np.float64)
    assert isinstance(y + 1.0, np.ndarray)
    assert isinstance(np.concatenate([y, y]), np.ndarray)
    y[0] = x[0]
    assert isinstance(y, np.ndarray)
    assert not is_traced(np.ones(3) * 2.0)
    return y


def type_tests_of_arguments(x):
    parts = (x, x[1:], x + 1.0, np.array([x[0], 1.0]), np.sin(x), x[0, ...])
    assert all(isinstance(part, np.ndarray) for part in parts)
    assert not isinstance(x[0], np.ndarray)
    assert not isinstance(np.sum(x), np.ndarray)
    assert x.flags.c_contiguous
    assert x.strides == (8,)
    return x


def eigenvalues(x):
    A = np.array([[0.0, 1.0], [-4.0, -0.4]])
    values = np.linalg.eigvals(A)
    return np.max(values.real) * x + np.abs(values.imag[0])


def rank(x):
    return np.linalg.matrix_rank(np.diag([1.0, 2.0, 0.0])) * x


def complex_arithmetic(x):
    z = np.exp(1j * np.linspace(0.0, 1.0, 3)) * (np.ones(3) + 2j)
    return x * z.real + z.imag


def branch_on_constants(x):
    A = np.eye(3)
    return x if np.all(A == A.T) and A[0, 0] > 0.5 else -x


def counts_and_indices(x):
    order = np.argsort(np.array([3.0, 1.0, 2.0]))
    return x[order], x[np.array([2, 0])], np.zeros(int(np.ones(2).sum())) + x[:2]


def unique_and_nonzero(x):
    values = np.unique(np.array([1.0, 1.0, 2.0]))
    return values * x[np.nonzero(np.array([1.0, 0.0, 1.0]))]


def python_numbers(x):
    y = np.full(3, 2.0)
    return x * float(y[0]) + sum(y) + max(y) + y.tolist()[1] + y.item(0) + int(y[2])


def formatted(x):
    return x * len(f"{np.ones(2)} {np.float64(1.0):.3f}")


@pytest.mark.parametrize(
    "function",
    [
        type_tests,
        type_tests_of_arguments,
        eigenvalues,
        rank,
        complex_arithmetic,
        branch_on_constants,
        counts_and_indices,
        unique_and_nonzero,
        python_numbers,
        formatted,
    ],
)
def test_constants_are_numpy_arrays(function) -> None:
    same(function, X)


def test_other_libraries_take_constants() -> None:
    linalg = pytest.importorskip("scipy.linalg")
    same(lambda x: linalg.expm(np.zeros((3, 3)) + np.eye(3)) @ x, X)
    same(lambda x: linalg.solve_continuous_are(np.eye(3), np.eye(3), np.eye(3), np.eye(3)) @ x, X)


def test_pandas_takes_constants() -> None:
    pandas = import_or_skip("pandas")

    def f(x):
        frame = pandas.DataFrame({"a": np.arange(3.0), "b": np.ones(3)})
        return frame["a"].to_numpy() * x + frame["b"].mean()

    same(f, X)


def test_zeros_in_constants_vanish() -> None:
    def f(x):
        A = np.zeros((3, 3))
        A[0, 1] = 2.0
        A[2, 2] = x[0]
        return A @ x

    assert len(arc.compile(f).graph(X).live()) <= 8


# ---- names bound before ----------------------------------------------------------------------


def test_names_imported_from_numpy_work_alike() -> None:
    before = zeros, eye, make_array

    def f(x):
        y = zeros(3)
        y[1:] = x[:2]
        A = eye(3)
        A[0, 2] = x[0]
        return A @ y + make_array([x[0], 1.0, 2.0])

    same(f, X)
    assert (zeros, eye, make_array) == before
    assert zeros is np.zeros


# ---- tables ----------------------------------------------------------------------------------


READING = [
    (lambda i: TABLE[i], "np.take(TABLE, i, axis=0)", lambda i: np.take(TABLE, i, axis=0)),
    (lambda i: ROW[i], "np.take(ROW, i)", lambda i: np.take(ROW, i)),
    (lambda i: [4, 5, 6][i], "np.take([4, 5, 6], i)", lambda i: np.take([4, 5, 6], i)),
    (lambda i: TABLE[i, 1], "np.array(TABLE)[i, 1]", lambda i: np.array(TABLE)[i, 1]),
    (lambda i: TABLE[:, i], "np.take(TABLE, i, axis=1)", lambda i: np.take(TABLE, i, axis=1)),
    (lambda i: TABLE[i, i], "np.array(TABLE)[i, i]", lambda i: np.array(TABLE)[i, i]),
    (
        lambda i: TABLE[[i, 0], [0, i]],
        "np.array(TABLE)[[i, 0], [0, i]]",
        lambda i: np.array(TABLE)[[i, 0], [0, i]],
    ),
    (
        lambda i: (2.0 * TABLE)[i],
        "np.take(2.0 * TABLE, i, axis=0)",
        lambda i: np.take(2.0 * TABLE, i, axis=0),
    ),
    (
        lambda i: TABLE.T[[i, 0]],
        "np.take(TABLE.T, [i, 0], axis=0)",
        lambda i: np.take(TABLE.T, [i, 0], axis=0),
    ),
    (
        lambda i: TABLE.take(i, axis=0),
        "np.take(TABLE, i, axis=0)",
        lambda i: np.take(TABLE, i, axis=0),
    ),
    (lambda i: TABLE.item(i), "np.take(TABLE, i)", lambda i: np.take(TABLE, i)),
    (
        lambda i: ROW.searchsorted(i + 0.5),
        "np.searchsorted(ROW, i + 0.5)",
        lambda i: np.searchsorted(ROW, i + 0.5),
    ),
    (
        lambda i: TABLE.dot(np.array([i, 1.0, 2.0])),
        "TABLE @ np.array([i, 1.0, 2.0])",
        lambda i: TABLE @ np.array([i, 1.0, 2.0]),
    ),
    (lambda i: TABLE.dot(ROW * i), "TABLE @ (ROW * i)", lambda i: TABLE @ (ROW * i)),
    (lambda i: i in ROW, "np.any(ROW == i)", lambda i: np.any(np.equal(ROW, i))),
    (
        lambda i: PLACES.choose([i * ROW, ROW]),
        "np.choose(PLACES, [i * ROW, ROW])",
        lambda i: np.choose(PLACES, [i * ROW, ROW]),
    ),
    (
        lambda i: ROW.mean(where=i < ROW),
        "np.mean(ROW, where=i < ROW)",
        lambda i: np.mean(ROW, where=i < ROW),
    ),
]


@pytest.mark.parametrize("method, remedy, function", READING, ids=[r[1] for r in READING])
def test_reading_a_plain_array_at_traced_values_names_the_function(
    method, remedy, function
) -> None:
    for i in (1, 2):
        with pytest.raises(arc.TraceError) as caught:
            arc.compile(method)(np.int64(i))
        assert remedy in str(caught.value)
        assert "test_recorded_arrays.py" in str(caught.value)
        np.testing.assert_array_equal(function(np.int64(i)), method(np.int64(i)))
        same(function, np.int64(i))


@pytest.mark.parametrize(
    "function",
    [
        lambda i: np.take(TABLE, [i, i], mode="wrap"),
        lambda i: np.array([10, 20, 30])[i],
        lambda i: np.array([True, False, True])[i],
        lambda i: np.array(TABLE)[-i, ..., None],
        lambda i: ROW.clip(i, i + 1.0),
    ],
)
@pytest.mark.parametrize("i", [1, 2])
def test_tables_of_the_recording_take_traced_indices(function, i) -> None:
    same(function, np.int64(i))


def test_tables_with_arrays_of_indices() -> None:
    def f(j):
        return np.take(TABLE, j, axis=0), np.array(TABLE)[0][j[:, None]], np.take(TABLE[1], j)

    same(f, np.array([2, 0, 1]))


@pytest.mark.parametrize("function", [lambda x: ROW[x > 0], lambda x: ROW.compress(x > 0)])
def test_a_mask_of_traced_values_is_refused(function) -> None:
    with pytest.raises(arc.TraceError, match=r"np.where\(x > 0, ROW, 0.0\)"):
        arc.compile(function)(X)


def traced_floats(x):
    y = np.zeros(3)
    y[:] = x
    return y


def dot_of_an_array_of_the_recording(x):
    y = traced_floats(x)
    return TABLE.dot(y)


def dot_of_a_view_taken_before(x):
    y = np.zeros((2, 3))
    row = y[0]
    y[0] = x
    return TABLE.dot(row)


def search_of_an_array_of_the_recording(x):
    y = traced_floats(x)
    return ROW.searchsorted(y)


def take_at_integers_of_the_recording(x):
    k = np.zeros(3, dtype=int)
    k[:] = x
    return ROW.take(k, mode="clip")


def index_of_integers_of_the_recording(x):
    k = np.zeros(3, dtype=int)
    k[:] = x
    return ROW[k]


def mask_of_the_recording(x):
    mask = np.zeros(3, dtype=bool)
    mask[:] = x > 0
    return ROW[mask]


def mask_taken_before(x):
    mask = np.zeros(3, dtype=bool)
    view = mask[:]
    mask[:] = x > 0
    return ROW[view]


@pytest.mark.parametrize(
    "function, remedy",
    [
        (dot_of_an_array_of_the_recording, "np.dot(TABLE, y)"),
        (dot_of_a_view_taken_before, "np.dot(TABLE, row)"),
        (search_of_an_array_of_the_recording, "np.searchsorted(ROW, y)"),
        (take_at_integers_of_the_recording, "np.take(ROW, k, mode='clip')"),
        (index_of_integers_of_the_recording, "np.take(ROW, k)"),
        (mask_of_the_recording, "np.where(mask, ROW, 0.0)"),
        (mask_taken_before, "np.where(view, ROW, 0.0)"),
    ],
)
def test_c_code_does_not_read_the_memory_of_arrays_that_hold_traced_values(
    function, remedy
) -> None:
    with pytest.raises(arc.TraceError) as caught:
        arc.compile(function)(X)
    assert remedy in str(caught.value)


# ---- writing ---------------------------------------------------------------------------------


def whole_and_parts(x):
    y = np.zeros((3, 3))
    y[0] = x
    y[1:, 1] = x[:2]
    y[2, 2] = 7.0
    return y


def older_views(x):
    y = np.zeros((2, 3))
    rows, columns, flat, tail = y[1], y.T, y.ravel(), y[:, 1:]
    backwards = y[::-1, ::-1]
    columns[0, 1] = x[0]
    flat[2] = x[1]
    tail[0, 0] += 1.0
    backwards[0, 0] = x[2]
    rows[1] = 4.0
    return y, rows, columns, flat, tail, backwards


def newer_views(x):
    y = np.zeros((2, 3), order="F")
    y[0, 0] = x[0]
    y.T[2] = x[:2]
    y.reshape(-1, order="F")[1] = x[2]
    y.reshape(-1)[2] = 9.0  # a copy
    return y


def copies_are_apart(x):
    y = np.zeros(3)
    z, w = y.copy(), y.astype(float)
    z[0] = x[0]
    w[1] = x[1]
    v = y[[0, 1]]
    v[0] = x[2]
    return y, z, w, v


def computed_constants(x):
    y = 2.0 * np.ones(3) + np.arange(3)
    y[1] = x[0]
    z = np.linalg.inv(np.eye(2) * 4.0)
    z[0, 1] = x[1]
    w = np.zeros_like(TABLE)
    w[0] = x
    v = np.copy(TABLE)
    v[1] = x
    u = np.linspace(0.0, 1.0, 3)
    u[0] = x[0]
    return y, z, w, v, u


def other_writers(x):
    y = np.zeros((3, 3))
    np.fill_diagonal(y, x)
    np.put(y, [1, 2], x[:2])
    np.copyto(y[2], x, where=[True, False, True])
    z = np.ones(3)
    np.add.at(z, [0, 0, 2], x)
    w = np.zeros(3)
    w.fill(x[0])
    v = np.arange(6.0)
    v.flat[2] = x[1]
    v.flat = v[::-1] * x[0]
    u = np.zeros(4)
    np.place(u, [True, False, True, True], x)
    t = np.zeros(3)
    np.putmask(t, [False, True, True], x)
    s = np.zeros((2, 2))
    np.put_along_axis(s, np.array([[0], [1]]), x[:2, None], axis=1)
    r = np.zeros(3)
    r.put([0, 2], x[:2])
    return y, z, w, v, u, t, s, r


def out_arguments(x):
    y, z = np.zeros(3), np.zeros((2, 3))
    assert np.add(x, 1.0, out=y) is y
    np.multiply(y, x, out=z[1])
    y += x
    y[1:] *= x[:2]
    total = np.zeros(3)
    np.sum(z, axis=0, out=total)
    np.matmul(np.eye(3), x, out=z[0])
    return y, z, total


def integer_and_bool(x):
    n = np.zeros(3, dtype=int)
    n[:] = x
    b = np.zeros(3, dtype=bool)
    b[0] = x[0] > 0
    f = np.zeros(3, dtype=np.float32)
    f[1] = x[1] / 3.0
    i = np.ones(2)
    i[0] = n[2]
    return n, b, f, i


def no_axes(x):
    y = np.zeros(())
    z = y
    z += x[0]
    w = np.array(1.0)
    w[...] = x[1]
    return y, w


def sorted_in_place(x):
    y = np.zeros(3)
    y[:] = x
    y.sort()
    z = np.array([3.0, 1.0, 2.0])
    z.sort()
    z[0] = x[0]
    return y, z


def assembled(x):
    A = np.block([[np.eye(2), np.zeros((2, 1))], [np.ones((1, 3))]])
    A[0, 2] = x[0]
    B = np.vstack([np.ones(3), TABLE[0]])
    B[0, 0] = x[1]
    return A, B


def loop_assembly(x):
    A = np.zeros((4, 4))
    for k in range(3):
        A[k, k + 1] = x[k]
        A[k + 1, k] -= A[k, k + 1]
    return A


def shape_assignment(x):
    y = np.zeros(6)
    v = y.view()
    with warnings.catch_warnings():  # NumPy is about to give this up
        warnings.simplefilter("ignore", DeprecationWarning)
        v.shape = (2, 3)
    v[1] = x
    return y, v


def views_by_functions(x):
    A = np.zeros((3, 3))
    np.einsum("ii->i", A)[:] = x
    np.transpose(A)[0, 1] = x[0]
    np.reshape(A, 9)[2] = 5.0
    np.atleast_3d(A)[2, 1, 0] = x[2]
    return A


def classes_written_in_python(x):
    y = np.zeros(3)
    y[:] = x
    z = np.r_[0.0:3.0]
    z[0] = x[0]
    total = sum((at[0] + 1) * value for at, value in np.ndenumerate(y))
    twice = np.vectorize(lambda a: 2.0 * a)
    return np.r_[y, 1.0, np.zeros(2)], np.c_[x, np.ones(3)], z, total, twice(y), twice(np.ones(2))


def operators_in_place(x):
    y, A = np.zeros(3), np.eye(3)
    y += x
    y **= 2
    y %= 1.7
    A @= np.outer(y, x)
    n = np.ones(3, dtype=int)
    n <<= 2
    n ^= x.astype(int)
    return y, A, n


def overlapping(x):
    y = np.arange(4.0)
    y[0] = x[0]
    y[1:] = y[:-1]
    y[0], y[1] = y[1], x[1]
    y[::-1] = y
    return y


def readings(x):
    y = np.zeros(3)
    y[:] = x
    return (
        y.sum(), y.mean(axis=0), y.max(), y.dot(y), y @ x, y.argmax(), y.cumsum(), y.clip(0.0, 1.0),
        y.reshape(3, 1), y.T, y[::-1], y.repeat(2), y.take([0, 2]), y.round(1), y.astype(int),
        np.stack(list(y)), y.copy(), abs(y), -y, y > 0.0, y**2, divmod(y, 2.0)[0],
        np.linalg.norm(y), np.where(y > 0.0, y, 0.0), np.interp(y, [0.0, 1.0], [1.0, 2.0]),
    )  # fmt: skip


WRITING = [
    whole_and_parts,
    older_views,
    newer_views,
    copies_are_apart,
    computed_constants,
    other_writers,
    out_arguments,
    integer_and_bool,
    no_axes,
    sorted_in_place,
    assembled,
    loop_assembly,
    shape_assignment,
    views_by_functions,
    classes_written_in_python,
    operators_in_place,
    overlapping,
    readings,
]


@pytest.mark.parametrize("function", WRITING, ids=[f.__name__ for f in WRITING])
def test_writing_traced_values_equals_numpy(function) -> None:
    same(function, X)


def test_regions_take_arrays_made_while_recording() -> None:
    def f(x):
        y = np.zeros(3)
        y[0] = x[0]
        total, rows = arc.scan(lambda c, r: (c + r, c * r), np.zeros(3), np.stack([y, x]))
        chosen = arc.cond(y[0] > 0.0, lambda a: a + 1.0, lambda a: a, y)
        return total, rows, chosen, arc.vmap(lambda a: 2.0 * a)(y), arc.compile(np.sin)(y)

    same(f, X)


def test_an_inner_recording_does_not_write_to_the_outer_ones_array() -> None:
    def f(x):
        y = np.zeros(3)

        def step(c, r):
            y[0] = 1.0
            return c + r, c

        return arc.scan(step, 0.0, x)[0] + y

    with pytest.raises(arc.TraceError, match="writes to the outer one's array"):
        arc.compile(f)(X)


def test_memory_of_an_array_with_traced_values_is_poisoned() -> None:
    seen = {}

    def f(x):
        y = np.ones(3)
        y[0] = x[0]
        assert type(y) is RecordedArray
        seen["memory"] = np.frombuffer(memoryview(y), float).tolist()
        return y

    assert arc.compile(f)(X).tolist() == [0.5, 1.0, 1.0]
    assert np.isnan(seen["memory"]).all()


def test_numbers_that_other_code_writes_into_memory_are_seen() -> None:
    def f(x):
        y = np.ones(3)
        y[0] = x[0]
        np.frombuffer(memoryview(y), float)[1] = 7.0  # as C code would
        return y

    assert arc.compile(f)(X).tolist() == [0.5, 7.0, 1.0]


@pytest.mark.filterwarnings("ignore:Calling expm:DeprecationWarning")  # of SciPy, of objects
@pytest.mark.parametrize(
    "leave",
    [
        lambda y: y.tobytes(),
        lambda y: y.__array_interface__,
        lambda y: float(y[0]),
        lambda y: [v + 1.0 for v in np.nditer(y)],
        lambda y: pickle.dumps(y),
        lambda y: np.frombuffer(y.tobytes()),
        lambda y: __import__("scipy.linalg").linalg.expm(y.reshape(1, 3) * np.ones((3, 1))),
        lambda y: y.view(np.int64)[0],
    ],
)
def test_leaving_python_names_the_line(leave) -> None:
    def f(x):
        y = np.zeros(3)
        y[0] = x[0]
        leave(y)
        return y

    with pytest.raises(arc.TraceError, match="test_recorded_arrays"):
        arc.compile(f)(X)


def test_a_read_only_array_stays_so() -> None:
    def f(x):
        y = np.zeros(3)
        y[0] = x[0]
        y.setflags(write=False)
        y[1] = 1.0
        return y

    with pytest.raises(ValueError, match="read-only"):
        arc.compile(f)(X)


def write_outside(x):
    OUTSIDE[1:] = x[:2]
    return x


def write_recorded_outside(x):
    y = np.zeros(3)
    y[0] = x[0]
    OUTSIDE[:] = y
    return x


def write_computed_outside(x):
    y = 2.0 * OUTSIDE
    y[0] = x[0]
    return y


def fill_outside(x):
    OUTSIDE.fill(x[0])
    return x


def put_outside(x):
    OUTSIDE.put([0], x[0])
    return x


def write_flat_outside(x):
    OUTSIDE.flat[0] = x[0]
    return x


def write_a_copy(x):
    y = OUTSIDE.copy()
    y[0] = x[0]
    return y


def write_a_conversion(x):
    y = OUTSIDE.astype(float)
    y[x > 0] = 1.0
    return y


def add_to_an_element(x):
    OUTSIDE[0] += x[0]
    return x


def write_at_a_traced_index(x):
    OUTSIDE[x.astype(int)[0]] = 1.0
    return x


OUTSIDE = np.zeros(3)


@pytest.mark.parametrize(
    "function",
    [
        write_outside,
        write_recorded_outside,
        write_computed_outside,
        fill_outside,
        put_outside,
        write_flat_outside,
        write_a_copy,
        write_a_conversion,
        add_to_an_element,
        write_at_a_traced_index,
    ],
)
def test_plain_arrays_refuse_traced_values(function) -> None:
    with pytest.raises(arc.TraceError) as caught:
        arc.compile(function)(X)
    message = str(caught.value)
    assert "written into a plain NumPy array" in message
    assert "test_recorded_arrays.py" in message
    assert "a = np.array(a)" in message
    assert OUTSIDE.tolist() == [0.0, 0.0, 0.0]


# ---- copies ------------------------------------------------------------------------------------


def test_an_inner_function_writes_to_its_copies_of_an_outer_array() -> None:
    def run(x, loop):
        def body(k, total):
            y = np.array(x)
            y[0] = total
            return total + np.sum(y) + np.sum(np.unwrap(x)) + np.sum(np.nan_to_num(x))

        return loop(0, 2, body, 0.5)

    def repeat(first, last, body, total):
        for k in range(first, last):
            total = body(k, total)
        return total

    recorded = arc.compile(lambda x: run(x, arc.fori_loop))(ROW)
    np.testing.assert_allclose(recorded, run(ROW, repeat), rtol=1e-14)


def test_an_array_is_made_of_the_elements_in_order() -> None:
    function = arc.compile(lambda x: np.array(x.flat))
    np.testing.assert_array_equal(function(ROW.reshape(1, 3)), ROW)


@pytest.mark.parametrize("compare", [operator.eq, operator.ne])
def test_equality_of_a_filled_array_and_a_traced_one(compare):
    """NumPy itself asks for the values of what stands on the right of == and !=."""

    def model(x, k):
        rows = np.zeros((2, 2))
        rows[1] = x
        return compare(rows, k), compare(k, rows), compare(np.zeros(1), k)

    args = np.array([0.5, 1.0]), np.array([1])
    for found, expected in zip(arc.compile(model)(*args), model(*args), strict=True):
        np.testing.assert_array_equal(found, expected)
