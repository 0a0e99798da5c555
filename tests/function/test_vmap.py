"""vmap against Python loops: axes, trees, nesting, keywords, empty batches, misuse."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.function.batching import vmap
from tests.graph.spec import validate

A = np.arange(12.0).reshape(4, 3) / 7
B = np.cos(np.arange(4.0))


@arc.struct
class S:
    x: np.ndarray
    k: float


@pytest.fixture(params=["eager", "written out", "region"])
def mapped(request, monkeypatch):
    """vmap in its three forms: on numbers, unrolled into a recording, as a Map region."""
    limit = 10**9 if request.param == "written out" else 0
    monkeypatch.setattr(vmap, "UNROLL_LIMIT", limit)

    def run(function, *args, **kwargs):
        if request.param == "eager":
            return function(*args, **kwargs)
        f = arc.compile(lambda args, kwargs: function(*args, **kwargs))
        validate(f.graph(args, kwargs))
        if request.param == "region" and np.shape(args[0] if args else 0)[:1] != (0,):
            assert "map" in f.statistics(args, kwargs).by_op
        return f(args, kwargs)

    return run


def test_over_the_first_axis(mapped):
    got = mapped(arc.vmap(lambda r: np.sum(r) * r), A)
    np.testing.assert_allclose(got, np.stack([np.sum(r) * r for r in A]), rtol=1e-15)


def test_axes(mapped):
    f = lambda r, b: r * b
    got = mapped(arc.vmap(f, in_axes=(1, None)), A, B)
    np.testing.assert_array_equal(got, np.stack([A[:, k] * B for k in range(3)]))
    got = mapped(arc.vmap(f, in_axes=(-1, None), out_axes=1), A, B)
    np.testing.assert_array_equal(got, np.stack([A[:, k] * B for k in range(3)], axis=1))
    got = mapped(arc.vmap(f, in_axes=(0, 0), out_axes=-1), A, B)
    np.testing.assert_array_equal(got, (A * B[:, None]).T)
    got = mapped(arc.vmap(lambda a, b: a @ b, in_axes=(None, 0)), A.T, np.stack([B, 2 * B]))
    np.testing.assert_allclose(got, np.stack([A.T @ B, 2 * A.T @ B]), rtol=1e-15)


def test_trees_of_axes(mapped):
    def f(s, d):
        return {"p": s.x * s.k + d["c"], "q": (d["v"], s.k)}

    s, d = S(A, B), {"c": 2.0, "v": A.T}
    axes = (S(0, 0), {"c": None, "v": 1})
    got = mapped(arc.vmap(f, in_axes=axes, out_axes={"p": 1, "q": 0}), s, d)
    want = [f(S(A[k], B[k]), {"c": 2.0, "v": A.T[:, k]}) for k in range(4)]
    np.testing.assert_allclose(got["p"], np.stack([w["p"] for w in want], axis=1), rtol=1e-15)
    np.testing.assert_array_equal(got["q"][0], np.stack([w["q"][0] for w in want]))
    np.testing.assert_array_equal(got["q"][1], B)
    # one axis for a whole argument
    got = mapped(arc.vmap(lambda s, c: s.x * c, in_axes=(0, None)), s, 2.0)
    np.testing.assert_array_equal(got, 2 * A)


def test_results_shared_by_all(mapped):
    f = lambda r, b: (np.sum(r), np.sum(b), 3.0)
    got = mapped(arc.vmap(f, in_axes=(0, None), out_axes=(0, None, None)), A, B)
    np.testing.assert_allclose(got[0], A.sum(axis=1), rtol=1e-15)
    np.testing.assert_allclose(got[1], B.sum(), rtol=1e-15)
    assert got[2] == 3.0
    constants = mapped(arc.vmap(lambda r: (r, 3.0, np.ones(2))), A)
    np.testing.assert_array_equal(constants[1], np.full(4, 3.0))
    np.testing.assert_array_equal(constants[2], np.ones((4, 2)))


def test_keywords_and_defaults_are_shared(mapped):
    f = lambda r, scale=2.0, *, shift=0.0: r * scale + shift
    np.testing.assert_array_equal(mapped(arc.vmap(f), A), 2 * A)
    np.testing.assert_array_equal(mapped(arc.vmap(f), A, shift=np.ones(3)), 2 * A + 1)
    np.testing.assert_array_equal(mapped(arc.vmap(f), A, scale=3.0), 3 * A)
    got = mapped(arc.vmap(f, in_axes=(0, 0)), A, B, shift=1.0)
    np.testing.assert_array_equal(got, A * B[:, None] + 1.0)


def test_nested(mapped):
    outer = arc.vmap(arc.vmap(lambda a, b: a * b + 1, in_axes=(0, None)), in_axes=(0, 0))
    np.testing.assert_array_equal(mapped(outer, A, B), A * B[:, None] + 1)
    table = arc.vmap(arc.vmap(np.hypot, in_axes=(None, 0)), in_axes=(0, None))
    want = np.hypot(B[:, None], A[:, 0])
    np.testing.assert_allclose(mapped(table, B, A[:, 0]), want, rtol=1e-15)
    reducing = arc.vmap(arc.vmap(lambda row: np.prod(row) + row[0]))
    cube = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(mapped(reducing, cube), cube.prod(axis=2) + cube[..., 0])


def test_dtypes(mapped):
    f = arc.vmap(lambda n, b, s: (n + 1, ~b, s * 2))
    n, b, s = mapped(f, np.arange(3), np.array([True, False, True]), np.float32([1, 2, 3]))
    assert (n.dtype, b.dtype, s.dtype) == (np.int64, np.bool_, np.float32)
    assert n.tolist() == [1, 2, 3] and b.tolist() == [False, True, False]


def test_empty_batch(mapped):
    f = arc.vmap(lambda r: (np.sin(r) * np.sum(r), r[0] > 0, 1))
    a, b, c = mapped(f, np.zeros((0, 3)))
    assert a.shape == (0, 3) and b.shape == (0,) and b.dtype == np.bool_ and c.shape == (0,)


def test_batch_of_one(mapped):
    np.testing.assert_array_equal(mapped(arc.vmap(lambda r: r * 2), A[:1]), 2 * A[:1])


def test_control_flow_inside(mapped):
    def f(r):
        total, _ = arc.scan(lambda c, s: (c * s + 1.0, None), r[0], r)
        n = arc.while_loop(lambda v: v < 3.0, lambda v: v * 2 + 0.1, np.abs(total))
        return arc.cond(total > 1.0, lambda: n, lambda: -n)

    got = mapped(arc.vmap(f), A)
    np.testing.assert_allclose(got, [f(r) for r in A], rtol=1e-15)


def test_closures_and_derivatives():
    def program(x):
        return arc.vmap(lambda r: np.sum(r * x) ** 2)(A)

    np.testing.assert_allclose(arc.compile(program)(A[0]), (A @ A[0]) ** 2, rtol=1e-14)
    want = 2 * (A @ A[0])[:, None] * A
    np.testing.assert_allclose(arc.jac(program)(A[0]), want, rtol=1e-13)
    per_row = arc.vmap(arc.grad(lambda r, k: np.sum(np.sin(r) * k)), in_axes=(0, None))
    np.testing.assert_allclose(per_row(A, 2.0), 2 * np.cos(A), rtol=1e-15)


def test_of_compiled_functions_with_static_arguments():
    f = arc.compile(lambda r, n: r**n, static_argnames="n")
    np.testing.assert_allclose(arc.vmap(f, in_axes=(0, None))(A, 3), A**3, rtol=1e-15)


def test_large_batches_equal_single_calls():
    f = lambda r: np.sin(r[0]) * np.exp(r[1]) / (1 + r[2] ** 2)
    rows = np.random.default_rng(0).normal(size=(5000, 3))
    batch = arc.vmap(f)(rows)
    single = arc.compile(f)
    assert all(single(rows[k]) == batch[k] for k in range(0, 5000, 97))


def test_size_does_not_grow_with_the_batch():
    f = arc.compile(lambda a: arc.vmap(lambda r: np.sum(np.sin(r)) ** 2 + np.prod(r))(a))
    sizes = {f.statistics(np.ones((n, 4))).total for n in (200, 400)}
    assert len(sizes) == 1


def test_name_and_repr():
    def model(x):
        return x

    f = arc.vmap(model, in_axes=(0,))
    assert f.__name__ == "vmap_model" and "model" in repr(f)
    assert arc.vmap(model, name="m").__name__ == "m"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: arc.vmap(3),
            TypeError,
            r"vmap: func must be a function, got int: write arc\.vmap\(f\)",
        ),
        (
            lambda: arc.vmap(np.sin, in_axes=(0, 0))(A),
            ValueError,
            r"in_axes has 2 entries, but sin\(\) was given 1 arguments",
        ),
        (
            lambda: arc.vmap(lambda a, b: a)(A, 1.0),
            ValueError,
            r"argument \[1\] has shape \(\), which has no axis 0.*None to share it",
        ),
        (lambda: arc.vmap(lambda a: a, in_axes=2)(A), ValueError, "has no axis 2"),
        (lambda: arc.vmap(lambda a: a, in_axes=None)(A), ValueError, "no argument has an axis"),
        (
            lambda: arc.vmap(lambda a, b: a)(A, np.ones(3)),
            ValueError,
            r"different lengths: \{'\[0\]': 4, '\[1\]': 3\}",
        ),
        (
            lambda: arc.vmap(lambda d: d["b"], in_axes=({"a": 0},))({"b": B}),
            ValueError,
            r"axes \{'a': 0\} do not match the dict",
        ),
        (
            lambda: arc.vmap(lambda d: d[0], in_axes=((0, 0, 0),))((B, B)),
            ValueError,
            "do not match the tuple",
        ),
        (
            lambda: arc.vmap(lambda a: a * 2, out_axes=None)(A),
            ValueError,
            "out_axes is None for result, which differs between instances",
        ),
        (
            lambda: arc.vmap(lambda a: {"p": a, "q": a}, out_axes={"p": 0, "q": None})(A),
            ValueError,
            r"out_axes is None for result\['q'\]",
        ),
        (lambda: arc.vmap(lambda a: a[0], out_axes=1)(A), ValueError, "out_axes=1 is out of range"),
        (
            lambda: arc.vmap(lambda a: a, out_axes=(0, 0))(A),
            ValueError,
            "do not match the ndarray",
        ),
    ],
)
def test_misuse(call, error, message):
    with pytest.raises(error, match=message):
        call()
