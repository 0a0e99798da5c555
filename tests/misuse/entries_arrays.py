"""Arrays made while recording, tables, views, memory order, and bodies that write."""

from __future__ import annotations

import copy
import functools
import pickle

import numpy as np
from numpy import array as np_array
from numpy import eye as identity_matrix
from numpy import zeros

import archimedes as arc
from archimedes.errors import TraceError
from tests.misuse.catalogue import entry

X = np.array([0.5, -1.5, 2.0])
TABLE = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.5]])
OUTSIDE = np.zeros(3)


# ---- constants that are kept -----------------------------------------------------------------


@entry("kept constants")
def cached_property_made_while_recording(run):
    class Model:
        @functools.cached_property
        def gains(self):
            return np.diag([1.0, 2.0, 3.0]) @ np.ones((3, 3))

    model = Model()
    f, g = run(lambda x: model.gains @ x), run(lambda x: model.gains.T @ x + 1.0)
    return f(X), g(X), model.gains + 0.0, np.linalg.matrix_rank(model.gains)


@entry("kept constants")
def lru_cache_made_while_recording(run):
    @functools.cache
    def nodes(n):
        return np.linspace(-1.0, 1.0, n) ** 2

    f, g = run(lambda x: nodes(3) * x), run(lambda x: np.interp(x, [-2.0, 0.0, 2.0], nodes(3)))
    return f(X), g(X), nodes(3).sum()


@entry("kept constants")
def default_filled_while_recording(run):
    def f(x, memo={}):  # noqa: B006
        if "A" not in memo:
            memo["A"] = np.eye(3) * 2.0
        return memo["A"] @ x

    g = run(f)
    return g(X), g(2.0 * X)


@entry("kept constants")
def a_kept_constant_pickled_and_copied(run):
    @functools.cache
    def kept():
        return np.arange(3.0)

    result = run(lambda x: x * kept())(X)
    return result, pickle.loads(pickle.dumps(kept())), copy.deepcopy(kept()), repr(kept())


@entry("kept constants", error=TraceError, says=["made in another recording", "np.array(a)"])
def a_kept_constant_written_to_in_another_function(run):
    @functools.cache
    def kept():
        return np.zeros(3)

    def second(x):
        kept()[0] = x[0]
        return kept() + 0.0

    run(lambda x: x + kept())(X)
    return run(second)(X)


# ---- constants in Python's hands -------------------------------------------------------------


@entry("constants")
def type_test_of_a_new_array(run):
    def f(x):
        y = np.zeros(3)
        scale = 2.0 if isinstance(y, np.ndarray) else 100.0
        y[:] = x
        return y * scale * (1.0 if isinstance(y, np.ndarray) else 100.0)

    return run(f)(X)


@entry("constants")
def type_test_of_an_argument(run):
    def area(x):
        return np.sum(x) if isinstance(x, np.ndarray) else x

    return run(area)(X), run(area)(2.0), run(lambda x: area(x[0]) + area(x[1:]))(X)


@entry("constants")
def eigenvalues_of_a_constant(run):
    def f(x):
        A = np.array([[0.0, 1.0], [-4.0, -0.4]])
        return np.max(np.linalg.eigvals(A).real) * x

    return run(f)(X)


@entry("constants")
def complex_numbers_of_constants(run):
    def f(x):
        s = 2j * np.arange(3.0)
        H = 1.0 / (s**2 + 0.1 * s + 1.0)
        return np.abs(H) * x + H.imag

    return run(f)(X)


@entry("constants")
def branch_on_a_constant_computed_inside(run):
    def f(x):
        A = np.array([[2.0, 1.0], [1.0, 2.0]])
        return x if np.all(np.linalg.eigvalsh(A) > 0.0) else -x

    return run(f)(X)


@entry("constants")
def shapes_from_computed_constants(run):
    def f(x):
        edges = np.unique(np.round(np.linspace(0.0, 2.0, 5)))
        return np.zeros((len(edges), int(edges.max()))) + x[0]

    return run(f)(X)


@entry("constants")
def python_numbers_from_constants(run):
    def f(x):
        w = np.full(3, 0.5)
        return x * float(w[0]) + sum(w.tolist()) + max(w) + round(w.mean(), 2)

    return run(f)(X)


@entry("constants")
def set_and_dict_of_constants(run):
    def f(x):
        kinds = {float(k): i for i, k in enumerate(np.arange(3.0))}
        return x * kinds[2.0] + len({*np.ones(4).tolist()})

    return run(f)(X)


# ---- writing traced values -------------------------------------------------------------------


@entry("writing")
def names_imported_from_numpy(run):
    def f(x):
        y = zeros((2, 3))
        y[0] = x
        A = identity_matrix(3)
        A[0, 1] = x[1]
        return A @ y[0] + np_array([1.0, x[0], x[1]])

    return run(f)(X)


@entry("writing")
def a_view_taken_before_the_first_traced_value(run):
    def f(x):
        A = np.zeros((3, 3))
        column, flat, corner = A[:, 1], A.ravel(), A[::-1, ::-1][0]
        A[0, 1] = x[0]
        column[2] = x[1]
        flat[3] += x[2]
        corner[0] = 4.0
        return A, column, flat, corner

    return run(f)(X)


@entry("writing")
def a_copy_of_a_table(run):
    def f(x):
        A = np.copy(TABLE)
        A[1] = x
        B = np.array(TABLE)
        B[:, 0] = x
        D = np.zeros_like(TABLE)
        D[0, 0] = x[0]
        return A, B, D, TABLE

    return run(f)(X)


@entry("writing", error=TraceError, says=["written into a plain NumPy array", "a = np.array(a)"])
def a_global_array(run):
    def f(x):
        OUTSIDE[0] = x[0]
        return x

    try:
        return run(f)(X)
    finally:
        OUTSIDE[:] = 0.0


@entry("writing", error=TraceError, says=["written into a plain NumPy array", "a = np.array(a)"])
def what_the_method_copy_returns(run):
    def f(x):
        A = TABLE.copy()
        A[1] = x
        return A

    return run(f)(X)


@entry("writing", error=TraceError, says=["written into a plain NumPy array", "a = np.array(a)"])
def an_array_computed_from_a_global(run):
    def f(x):
        y = TABLE[0] * 2.0
        y[0] = x[0]
        return y

    return run(f)(X)


@entry("writing", error=TraceError, says=["written into a plain NumPy array", "a = np.array(a)"])
def an_array_with_traced_values_into_a_global(run):
    def f(x):
        y = np.zeros(3)
        y[1] = x[1]
        OUTSIDE[:] = y
        return y

    try:
        return run(f)(X)
    finally:
        OUTSIDE[:] = 0.0


@entry("writing", error=TraceError, says=["writes to the outer one's array", "y = x.copy()"])
def a_body_that_logs_into_an_array_around_it(run):
    def f(x):
        log = np.zeros(3)

        def step(carry, k):
            log[0] = 1.0
            return carry + k, carry

        return arc.scan(step, 0.0, x)[0] + log

    return run(f)(X)


@entry("writing")
def an_integer_array_truncates(run):
    def f(x):
        n = np.zeros(3, dtype=int)
        n[:] = 10.0 * x
        n[0] += 3
        return n

    return run(f)(X)


@entry("writing")
def writers_other_than_assignment(run):
    def f(x):
        A = np.zeros((3, 3))
        np.fill_diagonal(A, x)
        np.put(A, [1, 5], x[:2])
        b = np.ones(3)
        np.add.at(b, [0, 0, 2], x)
        np.copyto(b[1:2], x[:1])
        c = np.empty(3)
        np.multiply(x, 2.0, out=c)
        c[1:] -= b[1:]
        d = np.arange(3.0)
        d.flat[1] = x[0]
        d.sort()
        return A, b, c, d

    return run(f)(X)


@entry("writing", error=TraceError, says=["arc.callback"])
def bytes_of_an_array_with_traced_values(run):
    def f(x):
        y = np.zeros(3)
        y[0] = x[0]
        return x * len(y.tobytes())

    return run(f)(X)


# ---- tables ----------------------------------------------------------------------------------


@entry("tables", error=TraceError, says=["np.take(TABLE, i, axis=0)"])
def a_global_table_at_a_traced_index(run):
    return run(lambda i: TABLE[i])(np.int64(1))


@entry("tables", error=TraceError, says=["np.array(TABLE)[i, 1]"])
def a_global_table_at_a_pair_of_indices(run):
    return run(lambda i: TABLE[i, 1])(np.int64(1))


@entry("tables", error=TraceError, says=["np.take([1.0, 2.0, 4.0], i)"])
def a_list_at_a_traced_index(run):
    return run(lambda i: [1.0, 2.0, 4.0][i])(np.int64(1))


@entry("tables")
def a_copy_of_a_table_at_a_traced_index(run):
    def f(i):
        table = np.array(TABLE)
        return table[i], table[i, 1], table[:, i], table.T[i], (2.0 * table)[i]

    return run(f)(np.int64(1)), run(f)(np.int64(2))


@entry("tables")
def take_of_a_table(run):
    f = run(lambda i: (np.take(TABLE, i, axis=1), np.take(TABLE, i), np.take(TABLE[0], [i, 0])))
    return f(np.int64(2))


@entry("tables")
def a_table_at_an_array_of_indices(run):
    def f(j):
        return np.take(TABLE, j, axis=0), np.take(TABLE[0], j), np.array(TABLE)[j, j]

    return run(f)(np.array([2, 0, 1]))


@entry("tables")
def a_table_times_a_traced_vector(run):
    return run(lambda x: (TABLE @ x, x @ TABLE, np.dot(TABLE, x), np.dot(TABLE[0], x)))(X)


@entry("tables", error=TraceError, says=["np.dot(TABLE, x) or TABLE @ x"])
def a_method_of_a_table_with_a_traced_vector(run):
    return run(lambda x: TABLE.dot(x))(X)


@entry("tables")
def a_method_of_a_table_that_is_a_ufunc(run):
    return run(lambda x: TABLE.clip(x - 0.5, x))(X)


@entry("tables", error=TraceError, says=["np.where(x > 0.0, TABLE[0], 0.0)"])
def a_table_under_a_traced_mask(run):
    return run(lambda x: TABLE[0][x > 0.0])(X)


@entry("tables", error=TraceError, says=["np.where(mask, row, 0.0)"])
def a_table_under_a_mask_filled_inside(run):
    row = TABLE[0]

    def f(x):
        mask = np.zeros(3, dtype=bool)
        mask[0] = x[0] > 0.0
        return row[mask]

    return run(f)(X)


# ---- views and order -------------------------------------------------------------------------


@entry("views")
def ellipsis_gives_an_array_that_writes_through(run):
    def f(x):
        s = x[0, ...]
        s += 1.0
        t = x[1]
        t += 1.0
        return x + 0.0, s + 0.0, t

    return run(f)(X.copy())


@entry("views")
def contiguous_copy_of_a_transpose(run):
    def f(x):
        y = np.ascontiguousarray(x.T)
        y[0, 0] = 99.0
        z = np.ascontiguousarray(x)
        z[0, 1] = 77.0
        return x + 0.0, y, z + 0.0

    return run(f)(TABLE.copy())


@entry("views")
def einsum_of_a_diagonal(run):
    def f(x):
        np.einsum("ii->i", x)[:] += 1.0
        return x + 0.0

    return run(f)(TABLE.copy())


@entry("views")
def require_and_order_arguments(run):
    def f(x):
        a = np.require(x, requirements="F")
        a[0, 0] = 5.0
        b = np.asarray(x, order="C")
        b[0, 1] = 6.0
        return x + 0.0, a + 0.0, np.add(x, 1.0, order="F").ravel("K")

    return run(f)(TABLE.copy())


@entry("views")
def an_array_of_a_scalar_is_its_own(run):
    def f(x):
        s = x[1]
        y = np.atleast_1d(s)
        y[0] = 7.0
        return x, s, y

    return run(f)(X)


@entry("memory order")
def elements_in_the_order_of_memory(run):
    f = run(lambda x: (x.ravel("K"), x.reshape(-1, order="A"), x.flatten("A"), (x + 1).ravel("K")))
    return f(TABLE), f(np.asfortranarray(TABLE)), f(TABLE.T)


@entry("memory order")
def ravel_of_a_fortran_array_is_a_copy(run):
    def f(x):
        flat = x.ravel()
        flat[0] = -1.0
        return x + 0.0, flat

    return run(f)(TABLE.copy()), run(f)(np.asfortranarray(TABLE))


# ---- bodies that write -----------------------------------------------------------------------


@entry("bodies that write")
def scan_with_an_in_place_body(run):
    def step(carry, x):
        carry += x
        return carry, carry

    start = np.zeros(2)
    f = run(lambda c, xs: arc.scan(step, c, xs))
    return f(start, np.ones((3, 2))), start


@entry("bodies that write")
def branches_that_write_to_their_arguments(run):
    def raise_all(x):
        x += 1.0
        return x

    x = X.copy()
    f = run(lambda x: (arc.cond(x[0] > 0.0, raise_all, np.negative, x), x))
    return f(x), x


@entry("bodies that write")
def a_loop_that_writes_to_its_state(run):
    def body(i, x):
        x[i % 3] *= 2.0
        return x

    x = X.copy()
    return run(lambda x: arc.fori_loop(0, 5, body, x))(x), x
