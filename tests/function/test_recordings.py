"""When a function is recorded again and when not; what explain says; what a failure leaves."""

from __future__ import annotations

import copy
import gc
import weakref

import numpy as np
import pytest

import archimedes as arc
from archimedes import symbolic
from archimedes.function.leaf_specs import LeafSpec
from archimedes.function.recording import trace_leaf
from archimedes.graph.dtypes import F64
from archimedes.symbolic.core.trace import _stack

X = np.array([1.0, 2.0])


def counted(function=None, **options):
    """A compiled function, and a function that tells how often it was recorded."""

    def f(*args, **kwargs):
        return function(*args, **kwargs) if function else args[0]

    made = arc.compile(f, **options)
    return made, lambda: len(made.explain().splitlines())


@pytest.fixture(autouse=True)
def numpy_as_it_was():
    before = {name: getattr(np, name) for name in ("zeros", "array", "asarray", "eye", "full")}
    yield
    assert _stack.traces == []
    assert {name: getattr(np, name) for name in before} == before


CHANGES = {
    "shape": (np.ones(2), np.ones(3)),
    "dimensions": (np.ones(2), np.ones((2, 1))),
    "dtype": (np.ones(2), np.ones(2, np.float32)),
    "int to float": (1, 1.0),
    "python to numpy number": (1.0, np.float64(1.0)),
    "structure": ((1.0, 2.0), [1.0, 2.0]),
    "keys": ({"a": 1.0}, {"b": 1.0}),
    "key order": ({"a": 1.0, "b": 2.0}, {"b": 3.0, "a": 4.0}),
    "number of leaves": ([1.0], [1.0, 2.0]),
    "none": (1.0, None),
    "layout": (np.ones((2, 2)), np.ones((2, 2)).T),
    "bool": ([True, 1.0], [False, 1.0]),
    "string": (["a", 1.0], ["b", 1.0]),
    "function": ([np.sin, 1.0], [np.cos, 1.0]),
}
SAME = {
    "value": (1.0, 2.0),
    "array value": (np.ones(2), np.zeros(2)),
    "int value": (1, 2**40),
    "numpy bool": (np.True_, np.False_),
    "gaps": (np.ones((2, 3)), np.ones((4, 6))[::2, ::2]),
    "equal string": (["ab", 1.0], ["".join(["a", "b"]), 2.0]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_recorded_again(name):
    f, runs = counted(lambda x: 0.0)
    first, second = CHANGES[name]
    for x in (first, second, first, second):
        f(x)
    assert runs() == 2


@pytest.mark.parametrize("name", SAME)
def test_not_recorded_again(name):
    f, runs = counted(lambda x: 0.0)
    first, second = SAME[name]
    for x in (first, second, first):
        f(x)
    assert runs() == 1


STATIC = {
    "int": (2, 3),
    "int or float": (2, 2.0),
    "bool or int": (True, 1),
    "signed zero": (0.0, -0.0),
    "array": (np.array([1.0, 2.0]), np.array([1.0, 3.0])),
    "array dtype": (np.array([1.0]), np.array([1.0], np.float32)),
    "list": ([1, [2]], [1, [3]]),
    "dict": ({"a": [1]}, {"a": [2]}),
    "set": ({1, 2}, {1, 3}),
    "string": ("euler", "rk4"),
    "tuple of strings": (("x", "y"), ("x", "z")),
    "none": (None, 0),
    "class": (int, float),
    "slice": (slice(0, 2), slice(0, 3)),
}


@pytest.mark.parametrize("how", ["number", "name", "keyword"])
@pytest.mark.parametrize("name", STATIC)
def test_static_arguments_by_content(name, how):
    options = {"static_argnums": 1} if how == "number" else {"static_argnames": "s"}
    runs = []

    def body(x, s):
        runs.append(s)
        return x

    f = arc.compile(body, **options, freeze=True)  # which may change what it reads
    call = (lambda s: f(1.0, s=s)) if how == "keyword" else (lambda s: f(1.0, s))
    a, b = STATIC[name]
    for value in (a, b, copy.deepcopy(a), copy.deepcopy(b)):
        assert call(value) == 1.0
    assert len(runs) == 2
    assert repr(runs) == repr([a, b]), "the function got the values themselves"


def test_static_kinds_of_parameter():
    @arc.compile(static_argnames=("mode", "n"))
    def f(x, *values, mode="sum", n=1):
        return (sum(values) if mode == "sum" else values[0]) * x * n

    assert f(2.0, 1.0, 3.0) == 8.0
    assert f(2.0, 1.0, 3.0, mode="first") == 2.0
    assert f(2.0, 1.0, 3.0, n=10) == 80.0
    assert arc.compile(lambda a, b, c: a * b**c, static_argnums=-1)(2.0, 3.0, 2) == 18.0
    assert arc.compile(lambda a, b, c: [a] * b * c, static_argnums=(1, 2))(2.0, 2, 1) == [2.0, 2.0]
    assert arc.compile(lambda x, **k: x ** k["n"], static_argnames="n")(2.0, n=3) == 8.0


def test_static_sizes_can_shape_arrays():
    f = arc.compile(lambda x, n: np.zeros(n) + x, static_argnames="n")
    assert f(1.0, 3).shape == (3,) and f(1.0, 4).shape == (4,)


def test_misuse_of_static():
    for options, message in [
        ({"static_argnums": 2}, r"static_argnums=2 is out of range: f\(\) has 2 positional"),
        ({"static_argnums": -3}, "static_argnums=-3 is out of range"),
        ({"static_argnames": "z"}, r"names 'z', which is not a parameter of f\(\): \['x', 'y'\]"),
    ]:
        with pytest.raises(ValueError, match=message):

            @arc.compile(**options)
            def f(x, y):
                return x

    with pytest.raises(
        ValueError, match=r"names 'rest', which collects further arguments of g\(\)"
    ):

        @arc.compile(static_argnames="rest")
        def g(x, *rest):
            return x


def test_results_of_values_do_not_depend_on_earlier_calls():
    f = arc.compile(lambda x: np.sin(x) * 3)
    first = [f(k * 0.1) for k in range(50)]
    assert [f(k * 0.1) for k in range(50)] == first
    np.testing.assert_allclose(first, 3 * np.sin(0.1 * np.arange(50)), rtol=1e-14)


def test_static_leaves_still_decide_after_many_calls():
    """A flag or a string among the leaves is looked at on every call, warm or not."""
    f = arc.compile(lambda d: d["x"] * (2.0 if d["flag"] else 3.0) + len(d["name"]))
    for _ in range(3):
        for _ in range(300):
            assert f({"x": 1.0, "flag": True, "name": "a"}) == 3.0
        assert f({"x": 1.0, "flag": False, "name": "a"}) == 4.0
        assert f({"x": 1.0, "flag": True, "name": "abc"}) == 5.0
    g = arc.compile(lambda x, flag: x if flag else -x)
    for _ in range(300):
        assert g(1.0, True) == 1.0
    assert g(1.0, False) == -1.0 and g(1.0, True) == 1.0


def test_kinds_still_decide_after_many_calls():
    f = arc.compile(lambda x, y: x + y)
    for _ in range(300):
        assert f(1.0, X) is not None
    assert f(1, 2) == 3 and isinstance(f(1, 2), np.int64)
    assert f(np.float32(1), np.float32(2)).dtype == np.float32
    assert f(X, X).shape == (2,) and f(1.0, np.ones(5)).shape == (5,)
    np.testing.assert_array_equal(f(1.0, X), X + 1)
    with pytest.raises(TypeError):
        f(1.0)
    np.testing.assert_array_equal(f(y=X, x=1.0), X + 1)


# ---- explain, clear_cache, repr ----------------------------------------------------------------


def test_explain():
    f = arc.compile(lambda x, n: x * 1.0, static_argnames="n", name="f")
    assert f.explain() == "f: nothing recorded yet"
    f(1.0, 1)
    f(2, 1)
    f(X, 1)
    f(X.astype(np.float32), 1)
    f(X, 2)
    assert f.explain().splitlines() == [
        "1. f(x: Python float): first call",
        "2. f(x: Python int): x was Python float, now Python int",
        "3. f(x: float64[2]): x was Python int, now float64[2]",
        "4. f(x: float32[2]): x was float64[2], now float32[2]",
        "5. f(x: float64[2]): another value of a static argument",
    ]


def test_explain_names_the_leaf():
    f = arc.compile(lambda s: s["b"][0] * 1.0, name="f")
    f({"a": 1.0, "b": [1.0, "x"]})
    f({"a": 1.0, "b": [1, "x"]})
    f({"a": 1.0, "b": [1, "y"]})
    lines = f.explain().splitlines()
    assert lines[1].endswith("s['b'][0] was Python float, now Python int")
    assert lines[2].endswith("s['b'][1] was static 'x', now static 'y'")
    f({"c": 1.0, "b": [1.0]})
    assert f.explain().splitlines()[3].endswith("arguments of another structure")


def test_clear_cache():
    scale = [2.0]
    f, runs = counted(lambda x: x * scale[0], freeze=True)
    assert f(3.0) == 6.0
    scale[0] = 5.0
    assert f(3.0) == 6.0, "values of closures are those of the recording"
    f.clear_cache()
    assert f(3.0) == 15.0 and runs() == 1
    assert f.explain().splitlines() == ["1. f(args[0]: Python float): first call"]


def test_repr_and_graph_and_statistics():
    f = arc.compile(lambda x, k=2.0: x * k, name="scale")
    assert repr(f) == "<compiled scale(x, k=2.0), 0 recorded>"
    assert f.statistics(X).by_op == {"mul": 2}
    assert "mul" in str(f.graph(X))
    assert repr(f) == "<compiled scale(x, k=2.0), 1 recorded>"


# ---- failures ----------------------------------------------------------------------------------


def test_an_exception_leaves_nothing_behind():
    broken = [True]

    @arc.compile
    def f(x):
        y = np.zeros(2)
        y[0] = x[0]
        if broken[0]:
            raise KeyError("not yet")
        return y

    for _ in range(3):
        with pytest.raises(KeyError, match="not yet"):
            f(X)
        assert isinstance(np.zeros(2), np.ndarray) and _stack.traces == []
    broken[0] = False
    np.testing.assert_array_equal(f(X), [1.0, 0.0])


def test_an_exception_deep_inside_leaves_nothing_behind():
    def bad(c, s):
        raise RuntimeError("inside the loop")

    programs = [
        lambda x: arc.scan(bad, 0.0, x),
        lambda x: arc.cond(x[0] > 0, lambda: 1 / 0, lambda: 0.0),
        lambda x: arc.vmap(lambda a: {}["missing"])(x),
        lambda x: arc.grad(lambda y: bad(y, y))(x),
        lambda x: arc.while_loop(lambda v: bad(v, v), lambda v: v, x),
        lambda x: arc.compile(lambda y: bad(y, y))(x),
    ]
    for program in programs:
        with pytest.raises((RuntimeError, ZeroDivisionError, KeyError)):
            arc.compile(program)(X)
        assert _stack.traces == []
        assert arc.compile(lambda x: np.sum(x))(X) == 3.0


def test_a_failing_callback_leaves_nothing_behind():
    def fails(x):
        raise OSError("sensor is off")

    f = arc.compile(lambda x: arc.callback(fails, 0.0, x))
    for _ in range(2):
        with pytest.raises(OSError, match="sensor is off"):
            f(1.0)


def test_values_that_leave_a_recording():
    kept = []
    with pytest.raises(arc.TraceError, match=r"(?s)list kept.*traced value.*test_recordings\.py"):
        arc.compile(lambda x: kept.append(x))(1.0)
    assert kept == []
    trace = symbolic.Trace()
    with trace:
        kept.append(trace_leaf(trace, LeafSpec(F64)))
    for use in (
        lambda: kept[0] + 1.0,
        lambda: np.sin(kept[0]),
        lambda: arc.compile(lambda y: y)(kept[0]),
    ):
        with pytest.raises(arc.TraceError, match=r"(?s)trace.*test_recordings\.py"):
            use()
    for use in (
        lambda: arc.compile(lambda y: y + kept[0])(1.0),
        lambda: arc.grad(lambda y: y * kept[0])(1.0),
        lambda: arc.vmap(lambda y: y * kept[0])(X),
    ):
        with pytest.raises(arc.TraceError, match=r"kept\[0\] holds a value of a recording that"):
            use()


@pytest.mark.long
def test_native_code_goes_with_its_function():
    """Also where the function is part of a cycle, which Python takes apart in any order."""

    @arc.struct
    class S:
        x: float

    gone = []
    for k in range(10):
        f = arc.compile(lambda s: S(s.x * 2.0), backend="llvm")
        for _ in range(3):
            assert f(S(1.0 + k)).x == 2.0 + 2 * k
        weakref.finalize(f._cache[next(iter(f._cache))][0], gone.append, k)
        Model = type("Model", (), {"dynamics": f})
        Model.itself = Model
        del f, Model
        gc.collect()
    assert len(gone) == 10
