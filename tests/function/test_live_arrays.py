"""Large captured arrays are read where they lie: in-place changes count, nothing is recorded."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import archimedes as arc

N = 80
GLOBAL = np.random.default_rng(0).normal(size=(N, N))


def matrix(seed: int = 1, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape or (N, N))


X = matrix(2, N)


def through_global(x: Any) -> Any:
    return GLOBAL @ x


def helper(x: Any) -> Any:
    return GLOBAL @ x


def through_helper(x: Any) -> Any:
    return helper(x) + 1.0


def in_closure(a: np.ndarray) -> Any:
    return lambda x: a @ x


def recordings(f: Any) -> int:
    return f.explain().count("\n")


def check_follows(f: Any, plain: Any, a: np.ndarray, *args: Any, calls: int = 8) -> None:
    """Change an array between calls: results are the current ones, and nothing is recorded."""
    before = a.copy()
    try:
        np.testing.assert_allclose(f(*args), plain(*args), rtol=1e-11, atol=1e-11)
        count = recordings(f)
        for k in range(calls):
            a[k, 4] = 7.0 + k
            a[5] *= 1.5
            np.testing.assert_allclose(f(*args), plain(*args), rtol=1e-11, atol=1e-11)
        assert recordings(f) == count
    finally:
        a[...] = before


@pytest.mark.parametrize("backend", ["auto", "llvm", "interpreter"])
def test_changes_in_place_count(backend: str) -> None:
    a = matrix()
    for plain, array in (
        (in_closure(a), a),
        (through_global, GLOBAL),
        (through_helper, GLOBAL),
    ):
        check_follows(arc.compile(plain, backend=backend), plain, array, X)


def test_nothing_is_recorded_again() -> None:
    a = matrix()
    f = arc.compile(in_closure(a))
    f(X)
    count = recordings(f)
    for k in range(20):
        a[3, 4] = k
        np.testing.assert_allclose(f(X), a @ X, rtol=1e-11)
    assert recordings(f) == count
    assert "where they lie" in f.explain()


def test_every_kind_of_number() -> None:
    for dtype in (np.float64, np.float32, np.int64):
        a = (1000 * matrix()).astype(dtype)
        x, f = np.arange(N).astype(dtype), arc.compile(in_closure(a))
        for k in range(8):
            a[k, 4] = 7 + k
            np.testing.assert_allclose(f(x), a @ x, rtol=1e-4 if dtype == np.float32 else 1e-11)
        assert "where they lie" in f.explain()


def test_derivatives_and_batches() -> None:
    a = matrix()

    def model(x):
        return np.sum(np.sin(a @ x) ** 2)

    def gradient(x):
        y = a @ x
        return a.T @ (2.0 * np.sin(y) * np.cos(y))

    x = 0.1 * X
    check_follows(arc.grad(model), gradient, a, x)
    check_follows(arc.grad(arc.compile(model)), gradient, a, x)
    check_follows(arc.jac(in_closure(a)), lambda x: a, a, x)
    check_follows(arc.hess(lambda x: 0.5 * x @ (a @ x)), lambda x: 0.5 * (a + a.T), a, x, calls=3)
    mapped, rows = arc.vmap(in_closure(a)), matrix(3, 7, N)
    for k in range(6):
        a[k] += 1.0
        np.testing.assert_allclose(mapped(rows), rows @ a.T, rtol=1e-11, atol=1e-11)


def test_bodies_of_loops() -> None:
    a = matrix() / 20

    def model(x):
        return arc.scan(lambda c, _: (np.tanh(a @ c), None), x, length=3)[0]

    def plain(x):
        for _ in range(3):
            x = np.tanh(a @ x)
        return x

    check_follows(arc.compile(model), plain, a, X)


def test_inside_other_functions() -> None:
    """Those compare the content, and are right as well."""
    a = matrix()
    inner = arc.compile(in_closure(a))
    outer = arc.compile(lambda x: inner(x) + 1.0)
    for k in range(6):
        a[k] += 1.0
        np.testing.assert_allclose(outer(X), a @ X + 1.0, rtol=1e-11)
        np.testing.assert_allclose(inner(X), a @ X, rtol=1e-11)


def test_solves() -> None:
    a = matrix() / 50 - np.eye(N)
    f = arc.compile(lambda t, x: a @ x)
    for model in (f, lambda t, x: a @ x):
        for k in range(3):
            a[k] *= 0.5
            got = arc.odeint(model, (0.0, 0.5), X, rtol=1e-10, atol=1e-12)
            want = scipy.linalg.expm(0.5 * a) @ X
            np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-8)


def test_functions_of_equal_content_stay_apart() -> None:
    """What is kept by content never holds the memory of one of several equal arrays."""
    a = matrix()
    b = a.copy()
    make = lambda m: lambda t, x: m @ x / 50
    first = arc.odeint(make(a), (0.0, 0.1), X)
    a *= 2.0
    arc.odeint(make(a), (0.0, 0.1), X)
    np.testing.assert_array_equal(np.asarray(arc.odeint(make(b), (0.0, 0.1), X)), first)
    f, g = arc.compile(in_closure(a)), arc.compile(in_closure(b))
    outer = [f]
    call = arc.compile(lambda x: outer[0](x) * 2.0)
    np.testing.assert_allclose(call(X), 2 * a @ X, rtol=1e-11)
    a[...] = b
    outer[0] = g
    np.testing.assert_allclose(call(X), 2 * b @ X, rtol=1e-11)
    a[...] = 3 * b
    np.testing.assert_allclose(call(X), 2 * b @ X, rtol=1e-11)


# ---- where values are needed --------------------------------------------------------------------


def branching(a):
    def model(x):
        return a @ x if a[0, 0] > 0 else x - a @ x

    return model


def inverting(a):
    return lambda x: np.linalg.inv(a) @ x


def scaling(a):
    return lambda x: (2.0 * a + 1.0) @ x


def sizing(a):
    return lambda x: x[: 1 + int(abs(a[0, 0]))].sum() + (a @ x).sum()


def looking_up(a):
    return lambda x: np.interp(x, np.cumsum(np.abs(a.ravel())), a.ravel())


def foreign(a):
    return lambda x: float(a.tobytes()[0]) + a @ x


def asking_for_the_type(a):
    return lambda x: a @ x if type(a) is np.ndarray else x


def asking_for_the_type_of_a_constant(a):
    return lambda x: a @ x + (1.0 if type(a) is np.ndarray else 0.0)


@pytest.mark.parametrize(
    "make",
    [
        *(branching, inverting, scaling, sizing, looking_up, foreign),
        *(asking_for_the_type, asking_for_the_type_of_a_constant),
    ],
)
def test_where_values_are_needed_they_are_compared(make) -> None:
    a = matrix() + N * np.eye(N)
    plain = make(a)
    f = arc.compile(plain)
    for k in range(5):
        np.testing.assert_allclose(f(X), plain(X), rtol=1e-9, atol=1e-9)
        a[0, 0] = -a[0, 0]
        a[k + 1] *= 1.1
    assert "where they lie" not in f.explain()


def test_derivatives_do_not_hide_what_is_needed() -> None:
    a = matrix()
    f = arc.compile(asking_for_the_type_of_a_constant(a))
    np.testing.assert_allclose(arc.jac(f)(X), a)
    for k in range(5):
        a[k] += 1.0
        np.testing.assert_allclose(f(X), a @ X + 1.0, rtol=1e-11)
        np.testing.assert_allclose(arc.jac(f)(X), a)


def test_what_is_computed_of_arrays_alone_is_computed_once() -> None:
    a = matrix()
    f = arc.compile(scaling(a))
    assert f.statistics(X).by_op.get("loop", 0) <= arc.compile(in_closure(a)).statistics(
        X
    ).by_op.get("loop", 0)


def test_zeros_are_worth_knowing() -> None:
    a = np.diag(matrix(4, N)) + 0.0
    f = arc.compile(in_closure(a))
    f(X)
    assert "where they lie" not in f.explain()
    a[3, 4] = 7.0
    np.testing.assert_allclose(f(X), a @ X, rtol=1e-11)


# ---- other changes ------------------------------------------------------------------------------


def test_rebinding_records_anew() -> None:
    a = matrix()

    def model(x):
        return a @ x

    f = arc.compile(model)
    for _ in range(5):
        f(X)
    a = matrix(9)
    np.testing.assert_allclose(f(X), a @ X, rtol=1e-11)
    a = matrix(9, 2 * N, N)
    assert f(X).shape == (2 * N,)
    a = a.astype(np.float32)
    np.testing.assert_allclose(f(X), a @ X, rtol=1e-5)
    a = matrix(10)
    for k in range(6):
        a[k, k] += 1.0
        np.testing.assert_allclose(f(X), a @ X, rtol=1e-11)


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # from NumPy 2.5 on
def test_another_form_of_the_same_memory_records_anew() -> None:
    a = matrix()
    f = arc.compile(lambda x: a @ x[: a.shape[1]])
    for _ in range(6):
        f(np.ones(2 * N))
    a.shape = (N // 2, 2 * N)
    np.testing.assert_allclose(f(np.ones(2 * N)), a @ np.ones(2 * N), rtol=1e-11)


@pytest.mark.parametrize("name", ["cell", "global", "write"])
def test_state_is_refused_as_before(name: str) -> None:
    a = matrix()
    before = a.copy()

    def write(x):
        a[0, 0] += 1.0
        return a @ x

    def rebind(x):
        nonlocal a
        a = a + 1.0
        return a @ x

    def rebind_global(x):
        global GLOBAL
        GLOBAL = GLOBAL + 1.0
        return GLOBAL @ x

    held = GLOBAL
    model = {"cell": rebind, "global": rebind_global, "write": write}[name]
    with pytest.raises(arc.TraceError, match="while it is recorded"):
        arc.compile(model)(X)
    assert GLOBAL is held
    np.testing.assert_array_equal(a, before)


def test_other_ways_to_an_array() -> None:
    """Arrays in objects, containers and defaults are compared."""
    a = matrix()

    class Model:
        def __init__(self):
            self.a = a

        def __call__(self, x):
            return self.a @ x

    model, listed = Model(), [a]
    for plain in (
        model,
        lambda x: model(x),
        lambda x: listed[0] @ x,
        lambda x: listed[0] @ x + a @ x,
        lambda x, m=a: m @ x,
    ):
        f = arc.compile(plain)
        for k in range(5):
            a[k, 4] += 1.0
            np.testing.assert_allclose(f(X), plain(X), rtol=1e-11)


@arc.struct
class Plant:
    a: np.ndarray
    gain: float = 2.0

    def step(self, x):
        return self.gain * (self.a @ x)

    def __call__(self, x):
        return self.step(x)


@arc.struct
class Loop:
    plant: Plant

    def run(self, x):
        return self.plant.step(x) + 1.0


@pytest.mark.parametrize("name", ["name", "method", "inner method", "call", "global and field"])
def test_fields_of_structs(name: str) -> None:
    a = matrix()
    plant = Plant(a)
    loop = Loop(plant)
    plain = {
        "name": lambda x: plant.a @ x,
        "method": plant.step,
        "inner method": lambda x: loop.run(x),
        "call": plant,
        "global and field": lambda x: plant.step(x) + helper(x),
    }[name]
    f = arc.compile(plain)
    check_follows(f, plain, a, X)
    assert "where they lie" in f.explain()
    assert vars(plant)["a"] is a and vars(loop)["plant"] is plant


def test_what_is_differentiated_and_mapped_inside() -> None:
    def cost(x):
        return 0.5 * x @ (GLOBAL @ x)

    def model(x):
        return arc.grad(cost)(x) + arc.vmap(lambda k: np.sum(GLOBAL @ (k * x)))(np.ones(3))[0]

    def plain(x):
        return 0.5 * (GLOBAL + GLOBAL.T) @ x + np.sum(GLOBAL @ x)

    f = arc.compile(model)
    for k in range(4):
        GLOBAL[k] *= 1.5
        np.testing.assert_allclose(f(X), plain(X), rtol=1e-10, atol=1e-10)
        GLOBAL[k] /= 1.5


def recursive(x, n=3):
    return GLOBAL @ x if n == 0 else recursive(x, n - 1) * 0.5


def test_functions_that_call_themselves() -> None:
    check_follows(arc.compile(lambda x: recursive(x)), recursive, GLOBAL, X)
    check_follows(arc.compile(recursive, static_argnames="n"), recursive, GLOBAL, X)


def test_callbacks_get_the_array_itself() -> None:
    a, seen = matrix(), []

    def look(x):
        seen.append(type(a))
        return a @ x

    f = arc.compile(lambda x: arc.callback(look, x, x) + a @ x)
    for k in range(5):
        a[k] += 1.0
        np.testing.assert_allclose(f(X), 2 * a @ X, rtol=1e-11)
    assert set(seen) == {np.ndarray}


def test_imports_and_names_inside() -> None:
    def model(x):
        import math

        from archimedes import special

        assert __name__.endswith("test_live_arrays")
        return GLOBAL @ x * math.pi + special.erf(x)

    check_follows(arc.compile(model), model, GLOBAL, X)


def test_generated_c_has_the_numbers() -> None:
    a = matrix()
    f = arc.compile(in_closure(a), name="product")
    f(X)
    text = arc.codegen(f, (X,), name="product").files["product.c"]
    assert repr(float(a[0, 0]))[:10] in text or float(a[0, 0]).hex()[:12] in text


def test_threads_read_what_is_there() -> None:
    a = matrix()
    f = arc.compile(in_closure(a))
    want, found = a @ X, []

    def run():
        for _ in range(50):
            found.append(f(X))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 200
    for y in found:
        np.testing.assert_allclose(y, want, rtol=1e-11)


def test_arrays_live_as_long_as_they_are_read() -> None:
    def make():
        a = matrix()
        return arc.compile(in_closure(a)), a @ X

    f, want = make()
    for _ in range(8):
        np.testing.assert_allclose(f(X), want, rtol=1e-11)


def test_repeated_calls_compare_nothing() -> None:
    """The test before each call asks for the form of the array, never for its numbers."""
    f = arc.compile(in_closure(matrix()))
    for _ in range(6):
        f(X)
    (state,) = f.dependencies.in_place.recent
    assert state.check is not None
    assert "shape" in state.check.__code__.co_names
    assert "tobytes" not in state.check.__code__.co_names


@pytest.mark.parametrize(
    "model",
    [
        lambda a, x: a @ x if type(a) is np.ndarray else -x,
        lambda a, x: a @ x if hasattr(a, "ctypes") else -x,
        lambda a, x: x * len(str(a[0, 0])),
    ],
)
def test_zeros_in_the_first_call_do_not_hide_another_way(model) -> None:
    """With a traced array in its place these functions go another way, which at zero agrees."""
    a = matrix()
    f = arc.compile(lambda x: model(a, x))
    for x in (np.zeros(len(X)), X):
        for k in range(3):
            np.testing.assert_allclose(f(x), model(a, x), rtol=1e-12, atol=1e-12)
            a[k, 0] += 1.0
