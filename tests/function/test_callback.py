"""callback: plain, recorded, batched, differentiated."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from tests.graph.spec import validate

X = np.array([0.5, -1.0, 2.0])


def test_plain_and_recorded():
    calls = []

    def host(x, d):
        calls.append((x, d))
        return {"y": x * 2, "n": int(d["k"])}

    program = lambda x: arc.callback(host, {"y": np.zeros(3), "n": 0}, x, {"k": x[0] * 10})
    plain = program(X)
    f = arc.compile(program)
    validate(f.graph(X))
    assert len(calls) == 1, "recording does not call it"
    for _ in range(2):
        recorded = f(X)
        np.testing.assert_array_equal(recorded["y"], plain["y"])
        assert recorded["n"] == plain["n"] == 5 and isinstance(recorded["n"], np.int64)
    assert len(calls) == 3
    assert isinstance(calls[1][0], np.ndarray) and calls[1][0].dtype == np.float64


def test_it_runs_at_every_call_and_in_order():
    log = []

    def note(k):
        return lambda x: (log.append((k, float(x))), x)[1]

    def program(x):
        a = arc.callback(note("first"), 0.0, x)
        b = arc.callback(note("second"), 0.0, a + 1.0)
        return arc.callback(note("first"), 0.0, x) + b

    assert arc.compile(program)(1.0) == 3.0
    assert log == [("first", 1.0), ("second", 2.0), ("first", 1.0)]


def test_without_arguments():
    state = iter(range(10))
    f = arc.compile(lambda x: x + arc.callback(lambda: next(state), 0))
    assert [f(1.0), f(1.0), f(1.0)] == [1.0, 2.0, 3.0]


def test_shapes_and_dtypes_by_example():
    class Spec:
        shape = (2,)
        dtype = np.float32

    f = arc.compile(lambda x: arc.callback(lambda v: np.array([1.0, 2.0]), Spec, x))
    assert f(1.0).dtype == np.float32 and f(1.0).shape == (2,)
    g = arc.compile(lambda x: arc.callback(lambda v: v > 0, np.bool_(False), x))
    assert g(1.0).dtype == np.bool_
    h = arc.compile(lambda x: arc.callback(lambda v: [v, (v, None)], [0.0, (0.0, None)], x))
    assert h(3.0) == [3.0, (3.0, None)]


def test_batched_calls_see_one_instance_each():
    shapes = []

    def host(x):
        shapes.append(x.shape)
        return float(np.sum(x))

    rows = np.arange(6.0).reshape(2, 3)
    got = arc.vmap(lambda r: arc.callback(host, 0.0, r))(rows)
    np.testing.assert_array_equal(got, rows.sum(axis=1))
    assert shapes == [(3,)] * 2
    assert arc.vmap(lambda r: arc.callback(host, 0.0, r))(np.zeros((0, 3))).shape == (0,)


def test_in_loops_and_branches():
    seen = []

    def host(x):
        seen.append(float(x))
        return x

    def program(x):
        c, _ = arc.scan(lambda c, s: (c + arc.callback(host, 0.0, s), None), 0.0, x)
        return arc.cond(c > 100.0, lambda: arc.callback(host, 0.0, c), lambda: c)

    assert arc.compile(program)(X) == X.sum()
    assert seen == X.tolist(), "the branch not taken is not called"


def test_derivative():
    def f(x):
        return arc.callback(
            np.sin, x, x, jvp=lambda primals, tangents: np.cos(primals[0]) * tangents[0]
        )

    np.testing.assert_allclose(arc.jac(f)(X), np.diag(np.cos(X)), rtol=1e-15)
    np.testing.assert_allclose(arc.grad(lambda x: np.sum(f(x)))(X), np.cos(X), rtol=1e-15)
    np.testing.assert_allclose(arc.hess(lambda x: np.sum(f(x)))(X), np.diag(-np.sin(X)), atol=1e-15)
    np.testing.assert_allclose(arc.vmap(arc.grad(lambda s: f(s)))(X), np.cos(X), rtol=1e-15)


def test_derivative_of_several_arguments_and_results():
    def host(a, d):
        return a * d["b"], a + d["b"]

    def f(a, b):
        def rule(primals, tangents):
            (a, d), (da, dd) = primals, tangents
            return da * d["b"] + a * dd["b"], da + dd["b"]

        return arc.callback(host, (0.0, 0.0), a, {"b": b}, jvp=rule)

    assert arc.jac(f, argnums=(0, 1))(2.0, 3.0) == ((3.0, 2.0), (1.0, 1.0))
    assert arc.vjp(f, argnums=(0, 1))(2.0, 3.0, (1.0, 10.0)) == (13.0, 12.0)


def test_misuse():
    f = arc.compile(lambda x: arc.callback(np.sin, 0.0, x))
    with pytest.raises(arc.TraceError, match=r"'sin' has no derivative.*callback\(\.\.\., jvp"):
        arc.grad(f)(1.0)
    with pytest.raises(TypeError, match="callback: func must be a function, got int"):
        arc.callback(3, 0.0, 1.0)
    with pytest.raises(arc.TraceError, match="callback: result has dtype complex128"):
        arc.callback(np.sin, 1j, 1.0)
    wrong = lambda x: np.zeros(2)
    for run in (lambda c: c(1.0), lambda c: arc.compile(c)(1.0)):
        with pytest.raises(ValueError, match=r"wrong\(\) returned result of shape \(2,\)") as _:
            wrong.__name__ = "wrong"
            run(lambda x: arc.callback(wrong, np.zeros(3), x))
        with pytest.raises(TypeError, match=r"returned result of dtype float64, declared int64"):
            run(lambda x: arc.callback(lambda v: 2.7, 0, x))
        with pytest.raises(arc.StructError, match="at result"):
            run(lambda x: arc.callback(lambda v: (v, v), [0.0, 0.0], x))
    with pytest.raises(arc.TraceError, match=r"args\[0\] is a str"):
        arc.compile(lambda x: arc.callback(lambda s, x: x, 0.0, "name", x))(1.0)
