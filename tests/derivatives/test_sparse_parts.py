"""Parts of sparse derivatives: values and patterns, alone, compiled, mapped and as C."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc

X = np.array([0.3, 1.2, -0.7, 2.0])


def chain(x, gain=2.0):
    return np.sin(x[1:]) * x[:-1] ** 2 * gain


def energy(x, weights):
    return np.sum(weights * chain(x))


W = np.array([1.0, -2.0, 0.5])


def test_values_and_pattern_make_the_matrix():
    J = arc.jac(chain, sparse=True)
    pattern = J.pattern(X)
    assert pattern.shape == (3, 4)
    assert pattern.nnz == 6
    dense = np.zeros(pattern.shape)
    dense[pattern.rows, pattern.columns] = J.values(X)
    np.testing.assert_array_equal(dense, arc.jac(chain)(X))
    np.testing.assert_array_equal(pattern.matrix(J.values(X)).toarray(), J(X).toarray())


def test_the_order_is_that_of_csc():
    pattern = arc.jac(chain, sparse=True).pattern(X)
    keys = pattern.columns * 10 + pattern.rows
    assert np.all(np.diff(keys) > 0)
    np.testing.assert_array_equal(pattern.starts, [0, 1, 3, 5, 6])


def test_the_pattern_needs_shapes_only():
    J = arc.jac(chain, sparse=True)
    a, b = J.pattern(np.full(4, np.nan)), J.pattern(X)
    np.testing.assert_array_equal(a.rows, b.rows)


def test_lower_triangle_of_a_hessian():
    H = arc.hess(energy, sparse=True)
    pattern = H.lower.pattern(X, W)
    assert np.all(pattern.rows >= pattern.columns)
    lower = pattern.matrix(H.lower.values(X, W)).toarray()
    np.testing.assert_array_equal(lower, np.tril(arc.hess(energy)(X, W)))
    np.testing.assert_array_equal(H.lower(X, W).toarray(), lower)


def test_a_jacobian_has_no_lower_triangle():
    with pytest.raises(ValueError, match="only a Hessian"):
        _ = arc.jac(chain, sparse=True).lower


@pytest.mark.parametrize("backend", ["interpreter", "llvm"])
def test_values_in_recorded_code(backend):
    H = arc.hess(energy, sparse=True).lower

    def total(x, w):
        return np.sum(H.values(x, w) ** 2)

    f = arc.compile(total, backend=backend)
    assert f(X, W) == arc.compile(total, backend="interpreter")(X, W)
    slope = arc.grad(total)(X, W)
    step = 1e-6 * np.eye(4)
    numeric = [(total(X + e, W) - total(X - e, W)) / 2e-6 for e in step]
    np.testing.assert_allclose(slope, numeric, rtol=1e-6, atol=1e-6)


def test_values_of_a_batch_are_those_of_a_loop():
    J = arc.jac(chain, sparse=True)
    rows = np.random.default_rng(0).normal(size=(37, 4))
    got = arc.vmap(J.values)(rows)
    np.testing.assert_array_equal(got, [J.values(row) for row in rows])


def test_values_as_c(tmp_path):
    J = arc.jac(chain, sparse=True)
    project = arc.codegen(J.values, (X,), output_dir=tmp_path, return_names=["entries"])
    assert project.verify().outputs == 6


def test_trees_and_static_arguments():
    def f(p, scale, kind):
        y = p["a"] * p["b"][1:] if kind == "product" else p["a"] + p["b"][1:]
        return {"u": y * scale, "v": p["a"][0] ** 2}

    J = arc.jac(f, sparse=True, static_argnames="kind")
    p = {"a": np.array([1.0, 2.0]), "b": np.array([3.0, 4.0, 5.0])}
    assert J.pattern(p, 2.0, "product").nnz == J.values(p, 2.0, "product").size == 5
    np.testing.assert_array_equal(
        J(p, 2.0, kind="sum").toarray(),
        arc.jac(f, flat=True, static_argnames="kind")(p, 2.0, "sum"),
    )


def test_a_matrix_in_recorded_code_says_what_to_use():
    J = arc.jac(chain, sparse=True)
    with pytest.raises(arc.TraceError, match=r"\.values\(\.\.\.\)"):
        arc.compile(lambda x: J(x))(X)
