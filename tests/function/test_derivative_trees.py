"""grad, jac, hess, jvp, vjp of trees: shapes, types and blocks as CONVENTIONS fixes them.

Values are checked against formulas written by hand; the catalogue is in tests/derivatives.
"""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from tests.graph.spec import validate

X = np.array([0.5, -1.0, 2.0])
M = np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 3.0]])


@arc.struct
class Body:
    pos: np.ndarray
    mass: float
    name: str = arc.field(static=True, default="b")


@arc.struct
class World:
    body: Body
    gain: np.ndarray


BODY = Body(X, 2.0)


def energy(b):
    return 0.5 * b.mass * np.sum(b.pos**2)


def outputs(b):
    return {"force": b.mass * M @ b.pos, "energy": energy(b)}


def test_grad_returns_the_struct():
    g = arc.grad(energy)(BODY)
    assert isinstance(g, Body) and g.name == "b"
    np.testing.assert_allclose(g.pos, 2.0 * X)
    np.testing.assert_allclose(g.mass, 0.5 * X @ X)
    assert isinstance(g.mass, np.float64) and g.pos.shape == (3,)


def test_grad_of_nested_structs_and_containers():
    def f(w, others):
        return energy(w.body) * np.sum(w.gain) + others["k"] * others["list"][1]

    w = World(BODY, np.ones((2, 2)))
    g = arc.grad(f, argnums=(0, 1))(w, {"k": 3.0, "list": [1.0, 5.0], "none": None})
    assert isinstance(g, tuple) and isinstance(g[0], World) and isinstance(g[0].body, Body)
    np.testing.assert_allclose(g[0].gain, np.full((2, 2), X @ X))
    np.testing.assert_allclose(g[0].body.pos, 4 * 2.0 * X)
    assert g[1] == {"k": 5.0, "list": [0.0, 3.0], "none": None}


def test_jac_blocks():
    j = arc.jac(outputs)(BODY)
    assert set(j) == {"force", "energy"}
    assert isinstance(j["force"], Body) and isinstance(j["energy"], Body)
    np.testing.assert_allclose(j["force"].pos, 2.0 * M)
    np.testing.assert_allclose(j["force"].mass, M @ X)
    np.testing.assert_allclose(j["energy"].pos, 2.0 * X)
    np.testing.assert_allclose(j["energy"].mass, 0.5 * X @ X)
    assert j["force"].pos.shape == (2, 3) and j["force"].mass.shape == (2,)
    assert j["energy"].pos.shape == (3,) and np.shape(j["energy"].mass) == ()


def test_jac_flat_is_over_ravelled_trees():
    j = arc.jac(outputs, flat=True)(BODY)
    # results ravel as energy, force (sorted keys), arguments as pos, mass
    want = np.block([[2.0 * X, 0.5 * X @ X], [2.0 * M, (M @ X)[:, None]]])
    np.testing.assert_allclose(j, want)
    vector, unravel = arc.tree.ravel(BODY)
    again = arc.jac(lambda v: arc.tree.ravel(outputs(unravel(v)))[0])(vector)
    np.testing.assert_array_equal(j, again)


def test_block_shape_is_output_shape_then_input_shape():
    f = lambda a: np.einsum("ij,jk->ik", a, a.T)
    a = M
    j = arc.jac(f)(a)
    assert j.shape == (2, 2, 2, 3)
    eye = np.eye(2)
    want = np.einsum("ip,kq->ikpq", eye, a) + np.einsum("kp,iq->ikpq", eye, a)
    np.testing.assert_allclose(j, want)


def test_hess_of_array_and_tree():
    q = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, -1.0], [0.0, -1.0, 1.0]])
    np.testing.assert_allclose(arc.hess(lambda x: 0.5 * x @ q @ x)(X), q)
    h = arc.hess(energy)(BODY)
    assert isinstance(h, Body) and isinstance(h.pos, Body) and isinstance(h.mass, Body)
    np.testing.assert_allclose(h.pos.pos, 2.0 * np.eye(3))
    np.testing.assert_allclose(h.pos.mass, X)
    np.testing.assert_allclose(h.mass.pos, X)
    assert h.mass.mass == 0.0
    flat = arc.hess(energy, flat=True)(BODY)
    want = np.block([[2.0 * np.eye(3), X[:, None]], [X[None], np.zeros((1, 1))]])
    np.testing.assert_allclose(flat, want)
    h = arc.hess(lambda a: np.sum(a**3))(M)
    assert h.shape == (2, 3, 2, 3)
    np.testing.assert_allclose(h.reshape(6, 6), np.diag(6 * M.ravel()))


def test_argnums():
    f = lambda a, b, c: a**2 * b + c**3
    at = (2.0, 3.0, 5.0)
    assert arc.grad(f)(*at) == 12.0
    assert arc.grad(f, argnums=1)(*at) == 4.0
    assert arc.grad(f, argnums=-1)(*at) == 75.0
    assert arc.grad(f, argnums=(0, 2))(*at) == (12.0, 75.0)
    assert arc.grad(f, argnums=[2, 0])(*at) == (75.0, 12.0)
    assert arc.grad(f, argnums=(1,))(*at) == (4.0,)
    assert arc.jac(f, argnums=(-1, -2))(*at) == (75.0, 4.0)
    assert arc.grad(f, argnums=np.int64(2))(*at) == 75.0
    h = arc.hess(f, argnums=(0, 1))(*at)
    assert h == ((6.0, 4.0), (4.0, 0.0))
    np.testing.assert_array_equal(
        arc.hess(f, argnums=(1, 0), flat=True)(*at), [[0.0, 4.0], [4.0, 6.0]]
    )


def test_keywords_and_defaults():
    f = lambda x, y=3.0, *, k=2.0: x**2 * y * k
    assert arc.grad(f)(5.0) == 60.0
    assert arc.grad(f)(5.0, k=1.0) == 30.0
    assert arc.grad(f)(5.0, y=1.0) == 20.0
    assert arc.grad(f, argnums=1)(5.0) == 50.0
    assert arc.grad(f, argnums=-1)(5.0) == 50.0, "argnums counts positional arguments"
    assert arc.jvp(f)(5.0, 1.0, k=1.0) == 30.0
    assert arc.vjp(f)(5.0, 2.0) == 120.0
    assert arc.grad(lambda *xs: xs[0] * xs[1] * xs[2], argnums=2)(2.0, 3.0, 4.0) == 6.0


def test_static_arguments():
    f = lambda x, n, mode: sum(x**k for k in range(1, n + 1)) if mode == "sum" else x
    for options in ({"static_argnums": (1, 2)}, {"static_argnames": ("n", "mode")}):
        assert arc.grad(f, **options)(2.0, 3, "sum") == 1 + 4 + 12
        assert arc.jac(f, **options)(2.0, 2, "sum") == 5.0
        assert arc.hess(f, **options)(2.0, 3, "sum") == 2 + 12
        assert arc.jvp(f, **options)(2.0, 3, "sum", 10.0) == 170.0
        assert arc.vjp(f, **options)(2.0, 3, "sum", 10.0) == 170.0
    compiled = arc.compile(f, static_argnames=("n", "mode"))
    assert arc.grad(compiled)(2.0, 3, "sum") == arc.jvp(compiled)(2.0, 3, "sum", 1.0) == 17.0
    assert arc.grad(f, argnums=-3, static_argnames=("n", "mode"))(2.0, 3, "sum") == 17.0


def test_int_arguments_are_promoted():
    assert arc.grad(lambda x: x**2)(3) == 6.0
    g = arc.grad(lambda x: np.sum(x * x))(np.array([1, 2]))
    assert g.dtype == np.float64 and g.tolist() == [2.0, 4.0]
    d = arc.grad(lambda d: d["a"] * d["n"])({"a": 2.0, "n": 3})
    assert d == {"a": 3.0, "n": 2.0}
    assert arc.jvp(lambda x: x**2)(3, 1) == 6.0
    assert arc.hess(lambda x: x**3)(2) == 12.0


def test_bools_and_strings_are_passed_through():
    mask = np.array([True, False, True])

    def f(d):
        return np.sum(np.where(d["mask"], d["x"] ** 2, 0.0)) * (2.0 if d["flag"] else 1.0)

    at = {"flag": True, "mask": mask, "x": X, "z": 1.0}
    g = arc.grad(f)(at)
    np.testing.assert_allclose(g["x"], np.where(mask, 4 * X, 0.0))
    assert g["z"] == 0.0 and g["flag"] is True
    v = {"flag": True, "mask": mask, "x": np.ones(3), "z": 5.0}
    np.testing.assert_allclose(arc.jvp(f)(at, v), np.sum(np.where(mask, 4 * X, 0.0)))


@pytest.mark.parametrize("result", [np.float32, np.float64])
@pytest.mark.parametrize("argument", [np.float32, np.float64])
def test_dtypes(argument, result):
    x = X.astype(argument)
    f = lambda x: (x.astype(result) ** 2) * result(2)
    wide = np.result_type(argument, result)
    for j in (arc.jac(f), arc.jac(f, flat=True), arc.jac(lambda x: arc.jac(f)(x) @ x)):
        validate(j.graph(x))
    assert arc.jac(f)(x).dtype == arc.jac(f, flat=True)(x).dtype == wide
    np.testing.assert_allclose(arc.jac(f)(x), np.diag(4 * X), rtol=1e-6)
    scalar = lambda x: np.sum(f(x))
    assert arc.grad(scalar)(x).dtype == argument
    assert arc.hess(scalar)(x).dtype == argument
    assert arc.vjp(f)(x, np.ones(3)).dtype == argument
    assert arc.jvp(f)(x, np.ones(3)).dtype == result
    assert arc.jac(f, sparse=True)(x).dtype == wide
    np.testing.assert_allclose(arc.hess(scalar)(x), 4 * np.eye(3), rtol=1e-6)


def test_mixed_dtypes_in_a_tree():
    f = lambda d: np.sum(d["a"] ** 2 * d["b"])
    at = {"a": np.float32([1, 2]), "b": np.float64(3)}
    g = arc.grad(f)(at)
    assert g["a"].dtype == np.float32 and g["b"].dtype == np.float64
    h = arc.hess(f)(at)
    dtypes = [[h[i][j].dtype.name for j in "ab"] for i in "ab"]
    assert dtypes == [["float32", "float64"], ["float64", "float64"]]
    for made in (arc.grad(f), arc.hess(f), arc.hess(f, flat=True), arc.jac(f)):
        validate(made.graph(at))


def test_jvp_and_vjp_of_trees():
    tangent = Body(np.array([1.0, 0.0, -1.0]), 0.5)
    got = arc.jvp(outputs)(BODY, tangent)
    np.testing.assert_allclose(got["force"], 2.0 * M @ tangent.pos + 0.5 * M @ X)
    np.testing.assert_allclose(got["energy"], 2.0 * X @ tangent.pos + 0.5 * 0.5 * X @ X)
    weights = {"force": np.array([1.0, -2.0]), "energy": 3.0}
    back = arc.vjp(outputs)(BODY, weights)
    assert isinstance(back, Body)
    np.testing.assert_allclose(back.pos, 2.0 * weights["force"] @ M + 6.0 * X)
    np.testing.assert_allclose(back.mass, weights["force"] @ M @ X + 1.5 * X @ X)
    # the two are transposes of each other
    left = sum(np.sum(weights[k] * got[k]) for k in weights)
    np.testing.assert_allclose(left, back.pos @ tangent.pos + back.mass * 0.5)
    two = arc.jvp(lambda a, b: a * b, argnums=(0, 1))(2.0, 3.0, (1.0, 10.0))
    assert two == 3.0 + 20.0


def test_functions_with_an_argument_called_tangent():
    assert arc.jvp(lambda tangent, x: tangent * x, argnums=1)(2.0, 3.0, 5.0) == 10.0
    assert arc.vjp(lambda cotangent: cotangent**2)(3.0, 5.0) == 30.0


def test_results_that_do_not_depend_on_the_argument():
    assert arc.grad(lambda x: 3.0)(2.0) == 0.0
    np.testing.assert_array_equal(arc.jac(lambda x: np.ones(2))(X), np.zeros((2, 3)))
    assert arc.jac(lambda x: [1.0, x * 2, np.zeros(2)])(1.0)[1] == 2.0
    np.testing.assert_array_equal(
        arc.jac(lambda x: [1.0, x[0], np.zeros(2)], flat=True)(X),
        [[0, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0]],
    )
    got = arc.jac(lambda x: [1.0, x[0], np.zeros(2)], sparse=True)(X)
    assert got.shape == (4, 3) and got.toarray()[1, 0] == 1.0
    assert arc.sparsity(lambda x: [1.0, x[0], np.zeros(2)])(X).shape == (4, 3)
    assert arc.jvp(lambda x: 3.0)(1.0, 1.0) == 0.0
    np.testing.assert_array_equal(arc.vjp(lambda x: 3.0)(X, 1.0), np.zeros(3))
    np.testing.assert_array_equal(arc.hess(lambda x: 3.0)(X), np.zeros((3, 3)))
    assert arc.jac(lambda x: None)(1.0) is None


def test_empty_arguments_and_results():
    assert arc.jac(lambda x: x * 2)(np.zeros(0)).shape == (0, 0)
    assert arc.jac(lambda x: x[:0])(X).shape == (0, 3)
    assert arc.grad(lambda x: np.sum(x))(np.zeros((0, 2))).shape == (0, 2)


# ---- nesting -----------------------------------------------------------------------------------

NESTED = {
    "grad grad": lambda f: arc.grad(arc.grad(f)),
    "jac grad": lambda f: arc.jac(arc.grad(f)),
    "grad jac": lambda f: arc.grad(arc.jac(f)),
    "jac jac": lambda f: arc.jac(arc.jac(f)),
    "hess": lambda f: arc.hess(f),
    "jvp grad": lambda f: lambda x: arc.jvp(arc.grad(f))(x, 1.0),
    "grad jvp": lambda f: arc.grad(lambda x: arc.jvp(f)(x, 1.0)),
    "vjp grad": lambda f: lambda x: arc.vjp(arc.grad(f))(x, 1.0),
    "vjp jvp": lambda f: lambda x: arc.vjp(lambda y: arc.jvp(f)(y, 1.0))(x, 1.0),
    "compiled": lambda f: arc.compile(arc.grad(arc.compile(arc.grad(arc.compile(f))))),
    "vmap": lambda f: lambda x: arc.vmap(arc.grad(arc.grad(f)))(np.array([x, 0.0]))[0],
    "grad vmap": lambda f: arc.grad(lambda x: arc.vmap(arc.grad(f))(np.stack([x, 1.0]))[0]),
}


@pytest.mark.parametrize("name", NESTED)
def test_second_derivative_by_every_nesting(name):
    f = lambda x: np.sin(x) * x**3
    x = 0.7
    want = 6 * x * np.sin(x) + 6 * x**2 * np.cos(x) - x**3 * np.sin(x)
    np.testing.assert_allclose(NESTED[name](f)(x), want, rtol=1e-13)


def test_powers_at_zero():
    """d/da a**b at b = 0 is 0 for every a; d/db at a = 0 is 0 for b > 0."""
    f = lambda a, b: a**b
    for a in (0.0, 2.0, -3.0):
        assert arc.grad(f)(a, 0.0) == arc.jac(f)(a, 0.0) == 0.0
    assert arc.grad(f, argnums=1)(0.0, 2.0) == 0.0
    assert arc.grad(f)(0.0, 1.0) == 1.0 and arc.grad(f)(0.0, 2.0) == 0.0
    assert arc.hess(lambda a: a**2.0)(0.0) == 2.0


def test_fifth_derivative():
    f = lambda x: np.exp(2 * x)
    for _ in range(5):
        f = arc.grad(f)
    np.testing.assert_allclose(f(0.3), 32 * np.exp(0.6), rtol=1e-13)


def test_derivative_inside_a_function_with_a_closure():
    @arc.compile
    def newton_step(x, a):
        f = lambda y: y**2 - a
        return x - f(x) / arc.grad(f)(x)

    np.testing.assert_allclose(newton_step(2.0, 3.0), 2.0 - 1.0 / 4.0)
    np.testing.assert_allclose(arc.grad(newton_step, argnums=1)(2.0, 3.0), 1.0 / 4.0)


def test_perturbation_confusion():
    """d/dx [x * d/dy (x + y)] is 1: the inner derivative must not see the outer direction."""
    outer = arc.grad(lambda x: x * arc.grad(lambda y: x + y)(1.0))
    assert outer(3.0) == 1.0
    inner = arc.jvp(lambda x: x * arc.jvp(lambda y: x * y)(2.0, 1.0))
    assert inner(3.0, 1.0) == 6.0


def test_names_and_documentation():
    def cost(x):
        return x**2

    assert arc.grad(cost).name == "grad_cost" and arc.jac(cost, name="J").name == "J"
    assert arc.jvp(cost).name == "jvp_cost" and "cost" in arc.hess(cost).__doc__


# ---- sparse ------------------------------------------------------------------------------------


def tridiagonal(x):
    return x**2 + np.roll(x, 1) * np.arange(len(x)) - np.roll(x, -1)


def test_sparse_jacobian():
    x = np.linspace(0.1, 1.0, 12)
    got = arc.jac(tridiagonal, sparse=True)(x)
    assert got.format == "csc" and got.shape == (12, 12)
    np.testing.assert_array_equal(got.toarray(), arc.jac(tridiagonal)(x))
    pattern = arc.sparsity(tridiagonal)(x)
    assert pattern.dtype == bool and pattern.nnz == got.nnz == 35  # x[-1] enters with weight 0
    assert arc.jac(tridiagonal, sparse=True).colors(x) <= 4


def test_sparse_hessian_uses_symmetry():
    def arrow(x):
        return np.sum(x[1:] ** 2) * x[0] + np.sum(x**3)

    x = np.linspace(0.1, 1.0, 9)
    sparse = arc.hess(arrow, sparse=True)
    assert sparse.colors(x) == 2
    got = sparse(x)
    assert got.nnz == 9 + 2 * 8
    np.testing.assert_allclose(got.toarray(), arc.hess(arrow)(x), rtol=1e-15)


def test_sparse_of_trees_and_values_that_happen_to_be_zero():
    f = lambda d: {"p": d["a"] * d["b"], "q": d["b"] ** 2}
    got = arc.jac(f, sparse=True)({"a": np.zeros(2), "b": np.zeros(2)})
    assert got.shape == (4, 4) and got.nnz == 6, "the pattern does not depend on values"
    got = arc.jac(f, sparse=True)({"a": np.array([1.0, 2.0]), "b": np.array([3.0, 4.0])})
    np.testing.assert_array_equal(
        got.toarray(), [[3, 0, 1, 0], [0, 4, 0, 2], [0, 0, 6, 0], [0, 0, 0, 8]]
    )


def test_sparse_inside_a_recording_is_refused():
    with pytest.raises(arc.TraceError, match=r"sparse=True.*use sparse=False"):
        arc.compile(lambda x: arc.jac(tridiagonal, sparse=True)(x))(X)
