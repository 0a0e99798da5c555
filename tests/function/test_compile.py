"""compile: what a call accepts, what it returns, and that the result is NumPy's."""

from __future__ import annotations

import copy
import functools
import pickle
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import archimedes as arc
from tests.graph.spec import validate

X = np.array([0.3, -1.2, 2.0])
Pair = namedtuple("Pair", "first second")


@arc.struct
class State:
    pos: np.ndarray
    mass: float = 1.0
    label: str = arc.field(static=True, default="body")


@dataclass
class Plain:
    x: float
    y: np.ndarray


@arc.tree.register_dataclass
@dataclass
class Registered:
    x: float
    y: np.ndarray


# ---- names and kinds of functions --------------------------------------------------------------


def named(x):
    return np.sin(x) * 2.0


class Callable_:
    def __init__(self, gain):
        self.gain = gain

    def __call__(self, x):
        return np.sin(x) * self.gain


FUNCTIONS = {
    "function": (named, "named"),
    "lambda": (lambda x: np.sin(x) * 2.0, "<lambda>"),
    "partial": (functools.partial(lambda k, x: np.sin(x) * k, 2.0), "partial"),
    "partial keyword": (functools.partial(lambda x, k: np.sin(x) * k, k=2.0), "partial"),
    "callable object": (Callable_(2.0), "Callable_"),
    "compiled": (arc.compile(named), "named"),
    "bound method": (Callable_(2.0).__call__, "__call__"),
}


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_any_kind_of_function(kind):
    function, name = FUNCTIONS[kind]
    f = arc.compile(function)
    assert f.name == f.__name__ == name
    np.testing.assert_allclose(f(X), np.sin(X) * 2.0, rtol=1e-15)
    validate(f.graph(X))


def test_ufuncs_and_numpy_functions():
    np.testing.assert_allclose(arc.compile(np.sin)(X), np.sin(X), rtol=1e-15)
    assert arc.compile(np.linalg.norm)(np.array([3.0, 4.0])) == 5.0
    np.testing.assert_allclose(arc.compile(np.dot)(X, X), X @ X, rtol=1e-15)


def test_any_name_and_a_given_one():
    def λ_7(x):
        return x

    λ_7.__name__ = "not an identifier!"
    assert arc.compile(λ_7)(1.5) == 1.5
    assert arc.compile(λ_7, name="mine").name == "mine"
    assert "mine" in repr(arc.compile(λ_7, name="mine"))


def test_decorators_bare_and_with_options():
    @arc.compile
    def f(x):
        """Doc."""
        return 2 * x

    @arc.compile(static_argnames="n", name="power")
    def g(x, n):
        return x**n

    assert f(1.5) == 3.0 and f.__doc__ == "Doc."
    assert g(2.0, 3) == 8.0 and g.name == "power"


class Model:
    scale = 3.0

    def __init__(self, k):
        self.k = k

    @arc.compile
    def method(self, x, *, shift=0.0):
        return self.k * x + shift

    @classmethod
    @arc.compile
    def of_class(cls, x):
        return cls.scale * x

    @staticmethod
    @arc.compile
    def free(x):
        return -x

    @property
    @arc.compile
    def double(self):
        return self.k * 2


def test_methods():
    a, b = Model(2.0), Model(5.0)
    assert a.method(3.0) == 6.0 and b.method(3.0) == 15.0 and a.method(3.0, shift=1.0) == 7.0
    assert Model.method(a, 3.0) == 6.0
    assert Model.of_class(2.0) == 6.0 and a.of_class(2.0) == 6.0
    assert Model.free(2.0) == -2.0 and a.free(2.0) == -2.0
    assert a.double == 4.0


def test_bound_methods_can_be_looked_into():
    a = Model(2.0)
    assert a.method(3.0) == 6.0
    assert a.method.statistics(3.0).by_op == {"mul": 1}
    assert "mul" in str(a.method.graph(3.0))
    assert a.method.explain() == Model.method.explain()
    np.testing.assert_array_equal(arc.vmap(a.method)(X), 2 * X)
    assert arc.grad(a.method)(3.0) == 2.0


module_level = arc.compile(named, name="module_level")
module_level.__qualname__ = "module_level"


def test_copies_and_pickles_as_functions_do():
    f = arc.compile(lambda x: x * 2)
    assert copy.copy(f) is f and copy.deepcopy({"f": f})["f"] is f
    assert pickle.loads(pickle.dumps(module_level)) is module_level
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(f)


def test_methods_of_structs_trace_their_fields():
    @arc.struct
    class Gain:
        k: float

        @arc.compile
        def apply(self, x):
            return self.k * x

    assert Gain(2.0).apply(3.0) == 6.0
    assert Gain(4.0).apply(3.0) == 12.0
    assert len(Gain.apply.explain().splitlines()) == 1, "another value, not another recording"
    assert arc.grad(lambda g: g.apply(3.0))(Gain(2.0)) == Gain(3.0)


# ---- arguments ---------------------------------------------------------------------------------


def test_keywords_defaults_and_gathering():
    @arc.compile
    def f(a, b=2.0, *rest, c, d=4.0, **more):
        return a + 10 * b + 100 * sum(rest) + 1000 * c + 10000 * d + 1e5 * sum(more.values())

    assert f(1.0, c=3.0) == 43021.0
    assert f(1.0, 3.0, c=3.0) == 43031.0
    assert f(1.0, 3.0, 1.0, 2.0, c=0.0, d=0.0) == 331.0
    assert f(b=1.0, a=0.0, c=0.0, d=0.0, e=2.0, g=3.0) == 500010.0
    assert arc.compile(lambda *a: sum(a))(1.0, 2.0, 3.0) == 6.0
    assert arc.compile(lambda **k: k["x"] - k["y"])(y=1.0, x=3.0) == 2.0
    assert arc.compile(lambda x, /, y: x - y)(3.0, y=1.0) == 2.0


def test_default_arrays_and_none():
    ones = np.ones(3)

    @arc.compile
    def f(x, y=ones, z=None):
        return x + y if z is None else x + y + z

    np.testing.assert_array_equal(f(X), X + 1)
    np.testing.assert_array_equal(f(X, z=X), 2 * X + 1)


def test_arguments_are_bound_as_python_does():
    f = arc.compile(named, name="g")
    for call, message in [
        (lambda: f(), r"named\(\): missing a required argument: 'x'"),
        (lambda: f(1.0, 2.0), r"named\(\): too many positional arguments"),
        (lambda: f(1.0, y=2.0), r"named\(\): got an unexpected keyword argument 'y'"),
    ]:
        with pytest.raises(TypeError, match=message):
            call()


def test_dtypes_in_and_out():
    double = arc.compile(lambda x: x + x)
    for x in (
        np.float64(1.5),
        np.float32(1.5),
        np.int64(3),
        np.bool_(True),
        np.ones((2, 3)),
        np.ones((2, 3), np.float32),
        np.arange(4),
        np.array([True, False]),
        np.zeros((0, 2)),
        np.ones((2, 1, 3)),
    ):
        got, want = double(x), x + x
        assert np.asarray(got).dtype == np.asarray(want).dtype
        assert type(got) is type(want)
        np.testing.assert_array_equal(got, want)


def test_python_numbers_are_weak_as_in_numpy():
    f = arc.compile(lambda x, k: x * k)
    single = np.float32([1, 2])
    assert f(single, 2).dtype == f(single, 2.5).dtype == np.float32
    assert f(single, np.float64(2.5)).dtype == np.float64
    assert f(np.arange(3), 2).dtype == np.int64
    assert f(np.arange(3), 2.0).dtype == np.float64
    assert f(2, 3) == 6 and isinstance(f(2, 3), np.int64)


def test_arrays_in_any_memory_layout():
    f = arc.compile(lambda a: a[0] + 2 * a[-1])
    a = np.arange(12.0).reshape(3, 4)
    for view in (a, a.T, a[:, ::2], a[::-1], np.asfortranarray(a), a[1:, 1:]):
        np.testing.assert_array_equal(f(view), view[0] + 2 * view[-1])
    read_only = a.copy()
    read_only.flags.writeable = False
    np.testing.assert_array_equal(f(read_only), a[0] + 2 * a[-1])
    big_endian = a.astype(">f8")
    np.testing.assert_array_equal(f(big_endian), a[0] + 2 * a[-1])


def test_arguments_are_not_changed_and_results_do_not_alias():
    def f(x):
        y = x
        y = y * 1.0
        y[0] = 7.0
        return x, y

    g = arc.compile(f)
    x = X.copy()
    same, changed = g(x)
    np.testing.assert_array_equal(x, X)
    assert not np.shares_memory(same, x)
    changed[:] = 0.0
    np.testing.assert_array_equal(g(x)[1], [7.0, *X[1:]])


# ---- results -----------------------------------------------------------------------------------


def test_trees_of_all_kinds_come_back():
    def f(x):
        return {
            "tuple": (x, 2.0),
            "list": [x * 2, None, []],
            "named": Pair(x, {"deep": x + 1}),
            "struct": State(pos=x, mass=x[0]),
            "dataclass": Registered(x[1], x),
            "text": "constant",
            "none": None,
            "array": np.array([1, 2]),
            "flag": True,
            "int": 3,
            "function": named,
        }

    got, want = arc.compile(f)(X), f(X)
    assert set(got) == set(want)
    np.testing.assert_array_equal(got["tuple"][0], X)
    assert got["tuple"][1] == 2.0
    assert got["list"][1:] == [None, []]
    assert isinstance(got["named"], Pair)
    np.testing.assert_array_equal(got["named"].second["deep"], X + 1)
    assert isinstance(got["struct"], State) and got["struct"].label == "body"
    assert got["struct"].mass == X[0]
    assert isinstance(got["dataclass"], Registered) and got["dataclass"].x == X[1]
    assert got["text"] == "constant" and got["none"] is None and got["flag"] is True
    assert got["int"] == 3 and got["function"] is named
    np.testing.assert_array_equal(got["array"], [1, 2])


def test_objects_that_hide_traced_values_are_named():
    for result in (lambda x: Plain(x[1], 2.0), lambda x: [1.0, Plain(0.0, {"deep": x})]):
        with pytest.raises(arc.TraceError, match=r"result.* is a Plain, which.*@arc\.struct"):
            arc.compile(result)(X)
    assert arc.compile(lambda x: Plain(1.0, 2.0))(X) == Plain(1.0, 2.0)


@pytest.mark.parametrize("value", [None, 3, 2.5, True, "text", (), [], {}, np.float64(1.0)])
def test_constant_results(value):
    f = arc.compile(lambda x: value)
    assert f(1.0) == value and type(f(1.0)) is type(value)


def test_constant_arrays_are_fresh_each_time():
    f = arc.compile(lambda x: np.arange(3))
    first = f(1.0)
    first[0] = 99
    np.testing.assert_array_equal(f(1.0), [0, 1, 2])


def test_zero_dimensional_results_are_numpy_scalars():
    f = arc.compile(lambda x: (np.sum(x), x[0] > 0, np.argmax(x), np.sum(x.astype(np.float32))))
    types = [type(v) for v in f(X)]
    assert types == [np.float64, np.bool_, np.int64, np.float32]


def test_lists_of_traced_scalars_become_leaves():
    f = arc.compile(lambda x: [x[0], [x[1], x[2] * 2]])
    assert f(X) == [X[0], [X[1], 2 * X[2]]]


def test_return_names():
    f = arc.compile(lambda x: (x, 2 * x), return_names=("a", "b"))
    assert f(1.0) == (1.0, 2.0) and f.return_names == ("a", "b")
    assert arc.compile(lambda x: 2 * x, return_names=["y"])(1.0) == 2.0
    with pytest.raises(arc.TraceError, match=r"returns 2 values but return_names lists 1: \['a'\]"):
        arc.compile(lambda x: (x, x), return_names=["a"])(1.0)


# ---- functions that use functions --------------------------------------------------------------


def test_small_functions_are_inlined_and_large_ones_called():
    inner = arc.compile(lambda x: np.sin(x) * 2)
    outer = arc.compile(lambda x: inner(x) + inner(x * 2))
    assert "call" not in outer.statistics(X).by_op
    assert outer.statistics(X).by_op["sin"] == 6
    inner.inline_limit = 3
    again = arc.compile(lambda x: inner(x) + inner(x * 2))
    assert again.statistics(X).by_op["call"] == 2
    np.testing.assert_array_equal(again(X), outer(X))
    validate(again.graph(X))
    np.testing.assert_array_equal(arc.jac(again)(X), arc.jac(outer)(X))


def test_large_inner_function_is_a_call():
    @arc.compile
    def large(x):
        for k in range(600):
            x = np.sin(x) + k
        return x

    outer = arc.compile(lambda x: large(x) * large(x + 1.0) + large(x))
    assert outer.statistics(0.5).by_op == {"call": 2, "mul": 1, "add": 2}

    def plain(x):
        for k in range(600):
            x = np.sin(x) + k
        return x

    want = plain(0.5) * plain(1.5) + plain(0.5)
    np.testing.assert_allclose(outer(0.5), want, rtol=1e-12)


def test_inner_function_given_only_constants_inside_a_recording():
    inner = arc.compile(lambda x: np.sin(x))
    f = arc.compile(lambda y: y * inner(2.0) + inner(y))
    np.testing.assert_allclose(f(3.0), 3.0 * np.sin(2.0) + np.sin(3.0), rtol=1e-15)


def test_inner_results_are_trees():
    inner = arc.compile(lambda s: State(pos=s.pos * 2, mass=s.mass + 1))
    f = arc.compile(lambda s: inner(inner(s)))
    got = f(State(X, 1.0))
    assert isinstance(got, State) and got.mass == 3.0
    np.testing.assert_array_equal(got.pos, 4 * X)


def test_closures_over_traced_values_at_several_depths():
    @arc.compile
    def f(x, y):
        @arc.compile
        def g(z):
            @arc.compile
            def h(w):
                return w * x + y * z

            return h(z) + h(x)

        return g(y)

    def plain(x, y):
        return (y * x + y * y) + (x * x + y * y)

    assert f(2.0, 3.0) == plain(2.0, 3.0) == 28.0
    assert f(5.0, 7.0) == plain(5.0, 7.0)
    np.testing.assert_allclose(arc.grad(f)(2.0, 3.0), 3.0 + 2 * 2.0)


def test_closure_values_are_not_cached_between_recordings():
    """A function defined once that reads a cell: each enclosing recording sees its own value."""
    cell = []
    inner = arc.compile(lambda x: x * cell[-1])

    def outer(x, k):
        cell.append(k * 1.0)
        try:
            return inner(x)
        finally:
            cell.pop()

    assert arc.compile(outer)(2.0, 3.0) == 6.0
    assert arc.compile(outer)(2.0, 5.0) == 10.0
    assert arc.grad(outer, argnums=1)(2.0, 5.0) == 2.0


def test_recursion_on_a_static_argument():
    @arc.compile(static_argnames="n")
    def power(x, n):
        return x if n == 1 else x * power(x, n - 1)

    assert power(2.0, 10) == 1024.0
    assert arc.grad(power)(2.0, 3) == 12.0


def test_endless_recursion_is_noticed():
    @arc.compile
    def f(x):
        return f(x) + 1.0

    with pytest.raises(arc.TraceError, match=r"f\(\) calls itself.*static argument.*while_loop"):
        f(1.0)
    with pytest.raises(arc.TraceError, match="calls itself"):
        f(1.0)


def test_mutual_recursion_is_noticed():
    f = arc.compile(lambda x: g(x))
    g = arc.compile(lambda x: f(x))
    with pytest.raises(arc.TraceError, match="calls itself"):
        f(1.0)
