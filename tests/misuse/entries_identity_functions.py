"""A function's code, defaults, variables and modules change after it was recorded."""

from __future__ import annotations

import functools
import math
import sys
import types

import numpy as np

import archimedes as arc
from tests.misuse import settings_module
from tests.misuse.catalogue import entry
from tests.misuse.changing import Gain, X, before_and_after

SCALE = 2.0


def set_global(name, value):
    return lambda: globals().__setitem__(name, value)


@entry("identity")
def a_global_number(run):
    try:
        return before_and_after(run(lambda x: SCALE * x), set_global("SCALE", 7.0))
    finally:
        set_global("SCALE", 2.0)()


@entry("identity")
def a_global_read_by_a_function_that_is_called(run):
    def inner(x):
        return SCALE * x

    try:
        return before_and_after(run(lambda x: inner(x) + 1.0), set_global("SCALE", 7.0))
    finally:
        set_global("SCALE", 2.0)()


@entry("identity")
def a_variable_rebound_with_nonlocal(run):
    k = 2.0

    def change():
        nonlocal k
        k = 5.0

    return before_and_after(run(lambda x: k * x), change)


@entry("identity")
def a_variable_that_appears_later(run):
    def f(x):
        try:
            return late * x
        except NameError:
            return x

    made = run(f)
    first = [made(X) for _ in range(7)][-1]
    late = 4.0
    return first, made(X)


@entry("identity")
def a_module_attribute(run):
    try:
        f = run(lambda x: settings_module.gain * x)
        return before_and_after(f, lambda: setattr(settings_module, "gain", 7.0))
    finally:
        settings_module.gain = 2.0


@entry("identity")
def a_module_attribute_behind_another_name(run):
    settings = settings_module
    try:
        f = run(lambda x: settings.table[1] * x)
        return before_and_after(f, lambda: settings.table.__setitem__(1, 9.0))
    finally:
        settings.table[1] = 2.0


@entry("identity")
def a_class_in_a_module(run):
    try:
        f = run(lambda x: settings_module.Limits.low * x)
        return before_and_after(f, lambda: setattr(settings_module.Limits, "low", 7.0))
    finally:
        settings_module.Limits.low = 1.0


@entry("identity")
def a_global_of_a_function_in_a_module(run):
    try:
        f = run(lambda x: settings_module.scaled(x))
        return before_and_after(f, lambda: setattr(settings_module, "gain", 7.0))
    finally:
        settings_module.gain = 2.0


@entry("identity")
def a_module_imported_inside(run):
    def f(x):
        from tests.misuse import settings_module as s

        return s.gain * x

    try:
        return before_and_after(run(f), lambda: setattr(settings_module, "gain", 7.0))
    finally:
        settings_module.gain = 2.0


@entry("identity")
def a_mutable_default(run):
    def f(x, p=[2.0]):  # noqa: B006
        return p[0] * x

    return before_and_after(run(f), lambda: f.__defaults__[0].__setitem__(0, 7.0))


@entry("identity")
def a_replaced_default(run):
    def f(x, k=2.0):
        return k * x

    return before_and_after(run(lambda x: f(x)), lambda: setattr(f, "__defaults__", (7.0,)))


@entry("identity")
def a_keyword_default(run):
    def f(x, *, k=2.0):
        return k * x

    return before_and_after(run(lambda x: f(x)), lambda: f.__kwdefaults__.update(k=7.0))


@entry("identity")
def a_replaced_code(run):
    def f(x):
        return 2.0 * x

    def g(x):
        return x - 1.0

    return before_and_after(run(lambda x: f(x)), lambda: setattr(f, "__code__", g.__code__))


@entry("identity")
def an_attribute_of_a_function(run):
    def f(x):
        return f.k * x

    f.k = 2.0
    return before_and_after(run(f), lambda: setattr(f, "k", 7.0))


@entry("identity")
def a_partial(run):
    g = Gain(2.0)
    f = run(functools.partial(lambda gain, x: gain.k * x, g))
    return before_and_after(f, lambda: setattr(g, "k", 7.0))


@entry("identity")
def keywords_of_a_partial(run):
    part = functools.partial(lambda x, k: k * x, k=2.0)
    return before_and_after(run(lambda x: part(x)), lambda: part.keywords.update(k=7.0))


@entry("identity")
def a_decorated_function(run):
    scale = [2.0]

    def decorate(f):
        @functools.wraps(f)
        def wrapper(*args):
            return scale[0] * f(*args)

        return wrapper

    @decorate
    def f(x):
        return x + SCALE

    try:
        return (
            before_and_after(run(f), lambda: scale.__setitem__(0, 5.0)),
            before_and_after(run(f), set_global("SCALE", 7.0)),
        )
    finally:
        set_global("SCALE", 2.0)()


@entry("identity")
def a_function_with_a_cache(run):
    @functools.lru_cache
    def table(n):
        return np.arange(float(n))

    n = 3

    def change():
        nonlocal n
        n = 4

    return before_and_after(run(lambda x: np.sum(table(n)) * x), change)


@entry("identity")
def a_cached_property_thrown_away(run):
    class Model:
        def __init__(self):
            self.k = 2.0

        @functools.cached_property
        def inverse(self):
            return 1.0 / self.k

    m = Model()

    def change():
        m.k = 4.0
        del m.inverse

    return before_and_after(run(lambda x: m.inverse * x), change)


@entry("identity")
def a_function_in_a_table_of_functions(run):
    laws = {"drag": np.square, "lift": np.abs}
    f = run(lambda x: laws["drag"](x))
    return before_and_after(f, lambda: laws.update(drag=np.negative))


@entry("identity")
def an_operator_that_is_defined_by_a_class(run):
    class Unit:
        def __mul__(self, x):
            return 2.0 * x

    u = Unit()
    f = run(lambda x: u * x)
    return before_and_after(f, lambda: setattr(Unit, "__mul__", lambda self, x: 7.0 * x))


@entry("identity")
def a_global_that_hides_a_builtin(run):
    try:
        f = run(lambda x: x * min(2.0, 3.0))
        return before_and_after(f, set_global("min", lambda a, b: 10.0))
    finally:
        globals().pop("min", None)


@entry("identity")
def a_recorded_function_in_another(run):
    k = [2.0]
    inner = run(lambda x: k[0] * x)
    f = run(lambda x: inner(x) + 1.0)
    return before_and_after(f, lambda: k.__setitem__(0, 7.0))


@entry("identity")
def a_static_argument_changed_in_place(run):
    g = Gain(2.0)
    f = run(lambda gain, x: gain.k * x)
    return before_and_after(f, lambda: setattr(g, "k", 7.0), g, X)


@entry("identity")
def a_function_as_an_argument(run):
    k = [2.0]
    law = lambda x: k[0] * x
    f = run(lambda g, x: g(x) + 1.0)
    return before_and_after(f, lambda: k.__setitem__(0, 7.0), law, X)


@entry("identity")
def two_objects_of_the_same_content_as_arguments(run):
    a, b = Gain(2.0), Gain(2.0)
    f = run(lambda gain, x: gain.k * x)
    first = before_and_after(f, lambda: None, a, X), before_and_after(f, lambda: None, b, X)
    a.k = 7.0
    return first, f(a, X), f(b, X)


@entry("identity", through=lambda f, backend: arc.vmap(arc.compile(f, backend=backend)))
def a_map_over_instances(run):
    g = Gain(2.0)
    return before_and_after(run(g.apply), lambda: setattr(g, "k", 7.0))


def _slope(f, backend):
    return arc.compile(arc.jac(f), backend=backend)


@entry("identity", through=_slope)
def a_jacobian_of_a_linear_function(run):
    g = Gain(2.0)
    f = run(lambda x: math.sqrt(g.k) * x)
    if not hasattr(f, "explain"):
        eager = lambda x: math.sqrt(g.k) * np.eye(3)
        return before_and_after(eager, lambda: setattr(g, "k", 9.0))
    return before_and_after(f, lambda: setattr(g, "k", 9.0))


@entry("identity")
def a_global_by_a_name_that_is_computed(run):
    name = "SC" + "ALE"
    try:
        f = run(lambda x: globals()[name] * x)
        return before_and_after(f, set_global("SCALE", 7.0))
    finally:
        set_global("SCALE", 2.0)()


@entry("identity")
def a_module_replaced_by_another(run):
    def made(k):
        module = types.ModuleType("a_module_of_settings")
        module.k = k
        return module

    def f(x):
        import a_module_of_settings

        return a_module_of_settings.k * x

    change = lambda k: sys.modules.__setitem__("a_module_of_settings", made(k))
    try:
        change(2.0)
        return before_and_after(run(f), lambda: change(7.0))
    finally:
        del sys.modules["a_module_of_settings"]


@entry("identity")
def a_case_added_to_a_single_dispatch(run):
    @functools.singledispatch
    def law(kind, x):
        return x

    f = run(lambda x: law(1, x))
    return before_and_after(f, lambda: law.register(int, lambda kind, x: 3.0 * x))
