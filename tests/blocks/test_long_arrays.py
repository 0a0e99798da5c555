"""Long arrays inside recorded functions: NumPy's meaning, loops instead of nodes, derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc

RNG = np.random.default_rng(5)
A = RNG.standard_normal((30, 30))


def _assigned(x):
    y = np.zeros(len(x))
    y[1:-1] = 2.0 * x[2:] - x[:-2]
    y[0] = x[3] * x[4]
    y[-1] += 1.0
    return y


def _masked(x):
    y = x.copy()
    y[y < 0.0] = -1.0
    y[np.argmax(x[:5])] = 7.0
    return y


def _in_place(x):
    y = x.copy()
    y *= 2.0
    y[::3] -= x[::3] ** 2
    np.sin(y, out=y)
    return y


def _blocks_of_rows(x):
    m = x.reshape(-1, 4)
    return np.concatenate([m[::-1, 0], m.T.ravel(), np.ones(3), m.sum(axis=0), m.max(axis=1)])


def _stepped(x):
    return arc.fori_loop(0, 5, lambda i, u: u + 0.1 * (np.roll(u, 1) - 2 * u + np.roll(u, -1)), x)


def _scanned(x):
    last, sums = arc.scan(lambda c, k: (0.5 * c + np.sin(k * c), np.sum(c * x)), x, np.arange(4.0))
    return np.append(last, sums)


def _repeated(x):
    step = lambda u: 1.5 * u + np.abs(np.tanh(u)) + 1.0
    return arc.while_loop(lambda u: u[0] < 50.0, step, x, max_steps=100)


def _chosen(x):
    return arc.cond(x[2] > 0.0, lambda u: u * np.sum(u), lambda u: np.cos(u)[::-1], x)


GRID, VALUES = np.sort(RNG.standard_normal(9)), RNG.standard_normal(9)
TABLE = arc.interpolant([np.linspace(-3.0, 3.0, 12)], RNG.standard_normal(12), method="cubic")


def _search(x):
    rising = np.arange(len(x)) * 0.1 + 0.01 * np.sin(x)
    return np.interp(x * 5.0, np.arange(len(x)) * 0.1 + x**2 * 1e-3, rising) * np.searchsorted(
        rising[::9], x, side="right"
    )


def _sorted(x):
    rows = np.sort(x.reshape(-1, 4), axis=0)
    order = np.argsort((x * 3.0).astype(int), kind="stable")
    return np.concatenate([np.sort(x), x[order], rows.T.ravel(), np.percentile(x, [5.0, 70.0])])


def _cumulated(x):
    y = np.cumsum(x) + np.maximum.accumulate(np.cumprod(1.0 + 0.1 * np.sin(x)))
    m = np.cumsum(x.reshape(4, -1), axis=1) + np.cumsum(x.reshape(4, -1), axis=0)
    return np.append(y + m.ravel(), [np.prod(np.cos(x)), np.logaddexp.reduce(x)])


def _places(x):
    m = x.reshape(4, -1)
    first = [np.argmax(x), np.argmin(m), np.argmax(np.where(x > 0.0, np.nan, x))]
    return np.concatenate([first, np.argmax(m, axis=0), np.argmin(m, axis=1)])


def _scattered(x):
    y, m = x * 2.0, x.reshape(-1, 4) * 1.0
    y[np.argsort(x)] = np.sin(x)
    y[(np.abs(x) * 10.0).astype(int) % 50] = x
    m[np.argsort(m, axis=0)[:, 0], 1] = m[:, 2]
    return y + m.ravel()


FUNCTIONS = {
    "scattered": _scattered,
    "sorted": _sorted,
    "cumulated": _cumulated,
    "places": _places,
    "slid": lambda x: np.append(np.convolve(x, x[:7]), np.correlate(x, [1.0, -2.0, 0.5], "same")),
    "powers": lambda x: np.polyval(x, 0.3 + 0.1 * x[:3]) + np.vander(x * 0.1, 5).sum(axis=0)[:3],
    "copied": lambda x: np.cumsum(np.broadcast_to(x[:, None], (len(x), 3)), axis=0).ravel(),
    "summed": lambda x: np.einsum("ij,jk,kl->il", A, np.outer(x[:30], x[:9]), A[:9, :7]).ravel(),
    "interp": lambda x: np.interp(x, GRID, VALUES) + TABLE(x) * np.searchsorted(GRID, x),
    "search": _search,
    "sum": lambda x: np.sum(np.sin(x) * x),
    "moments": lambda x: np.mean(x) + np.std(x) + np.linalg.norm(x) + x @ x,
    "stencil": lambda x: np.roll(x, 1) - 2.0 * x + np.roll(x, -1),
    "differences": lambda x: np.diff(x) / np.diff(np.linspace(0.0, 1.0, len(x))),
    "assigned": _assigned,
    "masked": _masked,
    "in place": _in_place,
    "rows": _blocks_of_rows,
    "products": lambda x: (
        np.tanh(A @ x[:30]) @ A @ x[-30:] + np.trace(A @ np.outer(x[:30], x[:30]))
    ),
    "batched products": lambda x: np.einsum("ij,kj->ik", A, np.outer(x, x[:30])),
    "where": lambda x: np.where(x > 0.0, np.sqrt(np.abs(x)), x**2) + np.clip(x, -0.5, 0.5),
    "extremes": lambda x: np.max(x) - np.min(x) + np.max(x.reshape(4, -1) ** 2, axis=0).sum(),
    "gathered": lambda x: x[np.arange(len(x)) * 7 % len(x)] * x[[3, 3, 1] * (len(x) // 4)].sum(),
    "taken": lambda x: x[(np.abs(x) * 10).astype(int) % 50] * 2.0,
    "one element": lambda x: x[5] * x[-1] + x[7],
    "stepped": _stepped,
    "scanned": _scanned,
    "repeated": _repeated,
    "chosen": _chosen,
    "mapped": lambda x: arc.vmap(lambda a, b: a * np.sin(b))(x, x[::-1]),
    "held": lambda x: arc.stop_gradient(np.cos(x)) * x,
    "special": lambda x: arc.special.erf(x) + arc.special.gammaln(2.0 + x**2),
    "float32": lambda x: x.astype(np.float32) * np.float32(3),
    "integers": lambda x: (x * 10).astype(int) // 3 + np.arange(len(x)),
    "bools": lambda x: np.array([np.any(x > 3.0), np.all(x < 4.0)]),
}
SMOOTH = [
    name for name in FUNCTIONS if name not in ("places", "integers", "bools", "float32", "taken")
]


@pytest.mark.long_cases("products", "interp", "p*", "search")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_equals_numpy_on_every_backend(name):
    for n in (64, 100):
        x = RNG.standard_normal(n)
        want = FUNCTIONS[name](x)
        native, interpreted = (
            arc.compile(FUNCTIONS[name], backend=backend)(x) for backend in ("llvm", "interpreter")
        )
        np.testing.assert_allclose(native, want, rtol=2e-13, atol=1e-13)
        assert np.asarray(native).dtype == np.asarray(want).dtype
        assert np.asarray(native).tobytes() == np.asarray(interpreted).tobytes()


@pytest.mark.long_cases("products", "*e*")
@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_equal_those_of_elements(name):
    x = RNG.standard_normal(80)
    f = FUNCTIONS[name]

    def total(x):
        return np.sum(np.cos(f(x)))

    blocks = arc.grad(total)(x)
    elements = arc.grad(arc.compile(total, loops_from=10_000, backend="interpreter"))(x)
    np.testing.assert_allclose(blocks, elements, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", ["stencil", "assigned", "differences", "where", "in place"])
def test_jacobians_are_as_sparse_as_those_of_elements(name):
    x = RNG.standard_normal(80)
    f = FUNCTIONS[name]
    blocks = arc.jac(f, sparse=True)(x)
    elements = arc.jac(arc.compile(f, loops_from=10_000), sparse=True)(x)
    assert blocks.nnz == elements.nnz
    np.testing.assert_allclose(blocks.toarray(), elements.toarray(), rtol=1e-12, atol=1e-12)


@pytest.mark.long
def test_hessians():
    x = RNG.standard_normal(70)

    def energy(x):
        return np.sum(np.sin(x[1:] - x[:-1]) * x[1:])

    elements = arc.hess(arc.compile(energy, loops_from=10_000))(x)
    np.testing.assert_allclose(arc.hess(energy)(x), elements, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "name",
    [
        "sum",
        "stencil",
        "where",
        "stepped",
        "in place",
        "interp",
        "sorted",
        "cumulated",
        "held",
        "special",
    ],
)
def test_graphs_do_not_grow_with_arrays(name):
    f = arc.compile(FUNCTIONS[name])
    small, large = (len(f.recording(np.ones(n)).blocks) for n in (100, 5_000))
    assert large <= small + 2
    gradient = arc.grad(lambda x: np.sum(FUNCTIONS[name](x)))
    small, large = (len(gradient.recording(np.ones(n)).blocks) for n in (100, 5_000))
    assert large <= small + 10


def test_loops_can_be_read_and_asked_for():
    f = arc.compile(lambda x: np.sum(np.exp(x)))
    f(np.ones(200))
    assert "2 loops over arrays, the largest 200" in f.explain()
    g = arc.compile(lambda x: np.sum(np.exp(x)), loops_from=1000)
    g(np.ones(200))
    assert "loops over arrays" not in g.explain()
    with pytest.raises(ValueError, match="loops_from must be a whole number of at least 1, got 0"):
        arc.compile(lambda x: x, loops_from=0)


def test_batches_of_programs_on_long_arrays():
    x = RNG.standard_normal((3, 100))
    f = arc.vmap(FUNCTIONS["stencil"])
    np.testing.assert_allclose(f(x), [FUNCTIONS["stencil"](row) for row in x], rtol=1e-13)


@pytest.mark.parametrize(
    "f", [lambda x: np.tanh(x * x[:, None]), lambda x: np.hypot(x, x[:, None])]
)
def test_short_vectors_may_make_long_arrays(f):
    x = np.linspace(0.1, 1.0, 40)
    compiled = arc.compile(f)
    assert len(compiled.recording(x).blocks) < 60
    np.testing.assert_allclose(compiled(x), f(x), rtol=1e-14)


@pytest.mark.parametrize("backend", ["interpreter", "llvm"])
@pytest.mark.parametrize("axis", [(1, 0), (0, 1), (-1, 0), (2, 0)])
def test_products_are_in_the_order_of_the_array_not_of_the_axes(axis, backend):
    # Partial products of sorted numbers overflow in one order and vanish in another.
    x = np.sort(np.sort(np.random.default_rng(0).normal(size=(62, 55, 1)), axis=0), axis=1)
    with np.errstate(over="ignore"):
        expected = np.prod(2.56 * x * x, axis=axis)
    found = arc.compile(lambda x: np.prod(2.56 * x * x, axis=axis), backend=backend)(x)
    np.testing.assert_array_equal(found, expected)
