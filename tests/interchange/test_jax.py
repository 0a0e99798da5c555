"""Functions of JAX's arrays: derivatives against JAX's checks, transformations, mistakes."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

import archimedes as arc
from archimedes.errors import IntegerRangeError, ShapeDtypeError
from archimedes.interchange import to_jax
from archimedes.interchange.jax_functions import _call_on_gpu
from archimedes.interchange.leaf_functions import ArrayKind, TreeFunction
from archimedes.spatial import Quaternion

from ..cuda import device_learning, fake_cupy
from ..optional_packages import import_or_skip
from .differentiable import CASES, Pendulum

jax = import_or_skip("jax")
jnp = jax.numpy


@contextmanager
def x64(on):
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", on)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)


@pytest.fixture(autouse=True)
def _double():
    with x64(True):
        yield


@pytest.mark.parametrize("name", CASES)
@pytest.mark.long_cases("arithmetic", "drone", "solve", "arm", "table")
def test_check_grads(name):
    from jax.test_util import check_grads

    case = CASES[name]
    check_grads(to_jax(case.function), case.args, order=2, modes=("fwd", "rev"), rtol=1e-4)


def f(x, w):
    return np.tanh(x @ w["a"]) * w["b"], np.sum(x) > 0.0


def reference(x, w):
    return jnp.tanh(x @ w["a"]) * w["b"], jnp.sum(x) > 0.0


SHARED = {"a": np.array([[0.4], [-1.0], [0.2]]), "b": np.array(1.5)}
ROWS = np.linspace(-1.0, 1.0, 12).reshape(4, 3)


@pytest.fixture(scope="module")
def functions():
    return to_jax(f), to_jax(arc.vmap(f, in_axes=(0, None)))


@pytest.mark.long
def test_maps_and_their_derivatives(functions):
    one, many = functions
    mapped = jax.vmap(one, in_axes=(0, None))
    want, above = jax.vmap(reference, in_axes=(0, None))(ROWS, SHARED)
    for g in (mapped, jax.jit(mapped), many, jax.jit(many)):
        got, positive = g(ROWS, SHARED)
        assert positive.dtype == bool and np.array_equal(positive, above)
        np.testing.assert_allclose(got, want, rtol=1e-14)
    total = lambda h: lambda w: jnp.sum(h(ROWS, w)[0] ** 2)
    expected = jax.hessian(total(jax.vmap(reference, in_axes=(0, None))))(SHARED)
    for g in (mapped, many):
        got = jax.jit(jax.hessian(total(g)))(SHARED)
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected)):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


@pytest.mark.long
def test_transformations_agree(functions):
    g = lambda x: functions[0](x, SHARED)[0][0]
    want = jax.vmap(jax.hessian(lambda x: reference(x, SHARED)[0][0]))(ROWS)
    fwd, rev = jax.jacfwd, jax.jacrev
    for outer, inner in ((fwd, rev), (rev, fwd), (fwd, fwd), (rev, rev)):
        got = jax.vmap(outer(inner(g)))(ROWS)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)
    push = lambda v: jax.jvp(g, (ROWS[0],), (v,))[1]
    (pulled,) = jax.linear_transpose(push, ROWS[0])(1.0)
    np.testing.assert_allclose(pulled, jax.grad(g)(ROWS[0]), rtol=1e-14)
    _, pull = jax.vjp(g, ROWS[0])
    (pushed,) = jax.linear_transpose(lambda c: pull(c)[0], 1.0)(ROWS[1])
    np.testing.assert_allclose(pushed, push(ROWS[1]), rtol=1e-14)


def test_results_without_derivatives_between_others():
    g = to_jax(lambda x, n, y: (np.sum(x > 0.0), x**2 * y, n + 1, np.sum(x**3) * y))
    x, y = jnp.array([0.3, -1.2, 0.8]), jnp.array(2.0)

    def total(x, y):
        _, square, _, cube = g(x, 4, y)
        return 2.0 * square.sum() + cube

    want = 2.0 * (4.0 * x + 3.0 * x**2), 2.0 * (x**2).sum() + (x**3).sum()
    for got in (jax.grad(total, argnums=(0, 1))(x, y), jax.jacfwd(total, argnums=(0, 1))(x, y)):
        np.testing.assert_allclose(got[0], want[0], rtol=1e-14)
        np.testing.assert_allclose(got[1], want[1], rtol=1e-14)


def test_inside_loops():
    step = to_jax(lambda x: x - 0.1 * np.sin(x))

    def after(x):
        return jax.lax.fori_loop(0, 5, lambda _, x: step(x), x)

    def same(x):
        return jax.lax.fori_loop(0, 5, lambda _, x: x - 0.1 * jnp.sin(x), x)

    np.testing.assert_allclose(jax.jit(after)(1.2), same(1.2), rtol=1e-14)
    np.testing.assert_allclose(jax.grad(after)(1.2), jax.grad(same)(1.2), rtol=1e-14)


def test_structs_are_pytrees():
    energy = to_jax(lambda model, q: np.sum(model.dynamics(0.0, q.rotate(np.ones(3))[:2]) ** 2))
    model = Pendulum(jnp.array(0.5), jnp.array(0.3))
    attitude = Quaternion(np.array([0.5, 0.5, 0.5, 0.5]))
    slope, turn = jax.jit(jax.grad(energy, argnums=(0, 1)))(model, attitude)
    want = arc.grad(energy.__wrapped__, argnums=(0, 1))(Pendulum(0.5, 0.3), attitude)
    assert type(slope) is Pendulum and slope.name == "bob" and type(turn) is Quaternion
    np.testing.assert_allclose(slope.length, want[0].length, rtol=1e-14)
    np.testing.assert_allclose(turn.array, want[1].array, rtol=1e-14)
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(model)]
    assert paths == [".length", ".damping"]


def test_dtypes():
    g = to_jax(lambda x, n, b: (x * 2.0, x * np.ones(2), n + 1, b & True, 3.0, "text"))
    with x64(False):
        for call in (g, jax.jit(lambda *args: g(*args)[:5])):
            got = call(jnp.ones(2), jnp.array(4), jnp.array(True))
            names = [str(y.dtype) for y in got[:4]]
            assert names == ["float32", "float32", "int32", "bool"] and got[2] == 5
    x = jnp.ones(2, np.float32)
    assert [str(y.dtype) for y in g(x, 4, True)[:3]] == ["float32", "float64", "int64"]
    assert g(x, 4, True)[5] == "text"
    assert jax.grad(lambda x: g(x, 4, True)[1].sum())(x).dtype == np.float32


def test_memory_is_shared_outside_jit():
    g = to_jax(arc.vmap(lambda x: 2.0 * x))
    x = jnp.ones((20_000, 3))
    first = jax.block_until_ready(g(x))
    assert np.array_equal(first, np.full((20_000, 3), 2.0))
    assert first.unsafe_buffer_pointer() % 64 == 0
    # Whoever keeps the result keeps its memory.
    again = g(first)
    del first
    assert np.array_equal(again, np.full((20_000, 3), 4.0))


def test_arrays_on_a_gpu_stay_there(monkeypatch):
    """On an emulated device: JAX here has none, so that only the exchange is tested."""
    monkeypatch.setattr(jax, "block_until_ready", lambda arrays: arrays)
    monkeypatch.setattr(jnp, "from_dlpack", lambda array: array)
    rows, count = np.linspace(0.0, 1.0, 12).reshape(4, 3), np.arange(4, dtype=np.int32)
    with fake_cupy.installed() as cupy:
        batch = arc.vmap(lambda x, n: (np.sin(x) * x[0], n + 1))
        model = TreeFunction(batch, "to_jax")
        read = lambda leaf, name: (leaf, ArrayKind(leaf.shape, np.dtype(leaf.dtype.kind + "8")))
        function = model.prepare((rows, count), {}, read, np.moveaxis).function
        types = [jax.ShapeDtypeStruct((4, 3), np.float64), jax.ShapeDtypeStruct((4,), np.int32)]
        arrays = [fake_cupy.Tensor(rows), fake_cupy.ndarray(count)]
        got = _call_on_gpu(function, arrays, types, 0)
        assert all(isinstance(x, cupy.ndarray) for x in got)
        assert got[0].get().tobytes() == batch(rows, count.astype(np.int64))[0].tobytes()
        assert got[1].dtype == np.int32 and got[1].get().tolist() == [1, 2, 3, 4]
        arrays[1] = fake_cupy.ndarray(np.array([0, 1, 2, 2**31 - 1], np.int32))
        with pytest.raises(IntegerRangeError, match="a result has whole numbers of more than 32"):
            _call_on_gpu(function, arrays, types, 0)


def test_empty_batches(functions):
    value, _ = functions[1](np.zeros((0, 3)), SHARED)
    assert value.shape == (0, 1)
    slope = jax.grad(lambda w: jnp.sum(functions[1](np.zeros((0, 3)), w)[0]))(SHARED)
    assert not slope["a"].any() and slope["a"].shape == (3, 1)


def test_whole_numbers_that_do_not_fit():
    g = to_jax(lambda n: 2 * n)
    with x64(False):
        assert g(2**30 - 1) == 2**31 - 2
        with pytest.raises(IntegerRangeError, match=r"n has whole numbers .*jax_enable_x64"):
            g(np.array([2**40, 3]))
        with pytest.raises(IntegerRangeError, match="a result has whole numbers"):
            g(2**30)
    assert g(2**40) == 2**41


@pytest.mark.long
def test_the_checks_on_a_device_pass_here():
    lines = []
    assert device_learning.check_all(lines.append, 1000, on_gpu=False)
    assert "  results have the bits of the CPU: True" in lines


def test_mistakes():
    g = to_jax(lambda x: x * 2.0)
    with pytest.raises(ShapeDtypeError, match=r"x is an array of bfloat16.*astype"):
        g(jnp.ones(3, jnp.bfloat16))
    with pytest.raises(ShapeDtypeError, match="x is an array of complex128"):
        g(jnp.ones(3) * 1j)
    with pytest.raises(ValueError, match="leave out_axes=0"):
        to_jax(arc.vmap(lambda x: x, out_axes=1))
    with pytest.raises(TypeError, match=r"write arc.to_jax\(f\)\(x\)"):
        to_jax(3.0)
    with pytest.raises(arc.TraceError, match="callback"):
        jax.grad(to_jax(lambda x: arc.callback(lambda x: 2.0 * x, x, x)))(1.0)
