"""What a function reads changes after it was recorded: the next call must notice."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import math
import operator
import types

import numpy as np

import archimedes as arc
from tests.misuse import settings_module
from tests.misuse.catalogue import entry

X = np.array([0.5, -1.5, 2.0])
SCALE = 2.0
TABLE = [1.0, 2.0]


def before_and_after(f, change, *args):
    """Call often enough for native call paths, change something, call again, twice."""
    args = args or (X,)
    first = [f(*args) for _ in range(7)][-1]
    change()
    return first, f(*args), [f(*args) for _ in range(7)][-1]


def set_global(name, value):
    return lambda: globals().__setitem__(name, value)


class Gain:
    k = 2.0
    shared = [3.0]  # noqa: RUF012

    def __init__(self, k=None):
        if k is not None:
            self.k = k

    def apply(self, x):
        return self.k * x

    def __call__(self, x):
        return self.apply(x) + self.shared[0]

    @property
    def doubled(self):
        return 2.0 * self.k

    @staticmethod
    def fixed(x):
        return SCALE * x

    @classmethod
    def made(cls, x):
        return cls.k * x


def fresh():
    """Return a class of its own, which an entry may change."""
    return types.new_class("Gain", (), {}, lambda ns: ns.update(_body()))


def _body():
    skipped = ("__dict__", "__weakref__")
    body = {name: value for name, value in vars(Gain).items() if name not in skipped}
    return {**body, "shared": [3.0]}


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
def an_item_of_a_global_list(run):
    try:
        f = run(lambda x: TABLE[0] * x)
        return before_and_after(f, lambda: TABLE.__setitem__(0, 9.0))
    finally:
        TABLE[0] = 1.0


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
def an_attribute(run):
    g = Gain(2.0)
    return before_and_after(run(lambda x: g.k * x), lambda: setattr(g, "k", 7.0))


@entry("identity")
def an_attribute_of_a_bound_method(run):
    g = Gain(2.0)
    return before_and_after(run(g.apply), lambda: setattr(g, "k", 7.0))


@entry("identity")
def an_attribute_of_a_callable_object(run):
    g = Gain(2.0)
    return before_and_after(run(g), lambda: setattr(g, "k", 7.0))


@entry("identity")
def an_attribute_that_hides_a_class_attribute(run):
    g = Gain()
    return before_and_after(run(g.apply), lambda: setattr(g, "k", 7.0))


@entry("identity")
def an_attribute_deleted_so_that_the_class_shows(run):
    g = Gain(9.0)
    return before_and_after(run(g.apply), lambda: delattr(g, "k"))


@entry("identity")
def a_class_attribute(run):
    cls = fresh()
    return before_and_after(run(cls().apply), lambda: setattr(cls, "k", 7.0))


@entry("identity")
def a_class_attribute_read_from_the_class(run):
    cls = fresh()
    return before_and_after(run(lambda x: cls.k * x), lambda: setattr(cls, "k", 7.0))


@entry("identity")
def a_mutable_class_attribute(run):
    cls = fresh()
    return before_and_after(run(cls()), lambda: cls.shared.__setitem__(0, 8.0))


@entry("identity")
def a_class_attribute_of_a_base(run):
    base = fresh()
    child = type("Child", (base,), {})
    return before_and_after(run(child().apply), lambda: setattr(base, "k", 7.0))


@entry("identity")
def a_method_that_a_subclass_gets_later(run):
    base = fresh()
    child = type("Child", (base,), {})
    f = run(child().apply.__self__)
    return before_and_after(f, lambda: setattr(child, "apply", lambda self, x: x - 1.0))


@entry("identity")
def a_patched_method(run):
    cls = fresh()
    return before_and_after(run(cls()), lambda: setattr(cls, "apply", lambda self, x: x - 1.0))


@entry("identity")
def a_method_patched_on_the_instance(run):
    g = Gain(2.0)
    return before_and_after(run(g), lambda: setattr(g, "apply", lambda x: x - 1.0))


@entry("identity")
def a_patched_property(run):
    cls = fresh()
    g = cls(3.0)
    f = run(lambda x: g.doubled * x)
    return before_and_after(f, lambda: setattr(cls, "doubled", property(lambda self: -self.k)))


@entry("identity")
def what_a_property_computes_from(run):
    g = Gain(3.0)
    return before_and_after(run(lambda x: g.doubled * x), lambda: setattr(g, "k", 5.0))


@entry("identity")
def what_a_static_method_reads(run):
    try:
        f = run(lambda x: Gain.fixed(x))
        return before_and_after(f, set_global("SCALE", 7.0))
    finally:
        set_global("SCALE", 2.0)()


@entry("identity")
def what_a_class_method_reads(run):
    cls = fresh()
    return before_and_after(run(lambda x: cls.made(x)), lambda: setattr(cls, "k", 7.0))


@entry("identity")
def the_class_of_an_object(run):
    one, other = fresh(), fresh()
    other.k = 11.0
    g = one()
    return before_and_after(run(g.apply.__self__), lambda: setattr(g, "__class__", other))


@entry("identity")
def a_whole_dict_of_attributes(run):
    g = Gain(2.0)
    return before_and_after(run(g), lambda: setattr(g, "__dict__", {"k": 6.0}))


@entry("identity")
def a_slot(run):
    class Slotted:
        __slots__ = ("k",)

    s = Slotted()
    s.k = 2.0
    return before_and_after(run(lambda x: s.k * x), lambda: setattr(s, "k", 7.0))


@entry("identity")
def a_slot_of_a_base(run):
    class Base:
        __slots__ = ("k",)

    class Child(Base):
        __slots__ = ("other",)

    s = Child()
    s.k = 2.0
    return before_and_after(run(lambda x: s.k * x), lambda: setattr(s, "k", 7.0))


@entry("identity")
def a_simple_namespace(run):
    p = types.SimpleNamespace(k=2.0)
    return before_and_after(run(lambda x: p.k * x), lambda: setattr(p, "k", 7.0))


@entry("identity")
def a_namespace_in_a_namespace(run):
    p = types.SimpleNamespace(motor=types.SimpleNamespace(k=2.0))
    return before_and_after(run(lambda x: p.motor.k * x), lambda: setattr(p.motor, "k", 7.0))


@entry("identity")
def a_dataclass(run):
    @dataclasses.dataclass
    class Parameters:
        k: float = 2.0

    p = Parameters()
    return before_and_after(run(lambda x: p.k * x), lambda: setattr(p, "k", 7.0))


@entry("identity")
def a_dataclass_with_slots(run):
    @dataclasses.dataclass(slots=True)
    class Parameters:
        k: float = 2.0

    p = Parameters()
    return before_and_after(run(lambda x: p.k * x), lambda: setattr(p, "k", 7.0))


@entry("identity")
def a_frozen_dataclass_written_by_force(run):
    @dataclasses.dataclass(frozen=True)
    class Parameters:
        k: float = 2.0

    p = Parameters()
    return before_and_after(run(lambda x: p.k * x), lambda: object.__setattr__(p, "k", 7.0))


@entry("identity")
def a_struct_that_is_closed_over(run):
    @arc.struct
    class Plant:
        k: float
        names: tuple = arc.field(static=True, default=("a",))

        def rate(self, x):
            return self.k * x

    p = Plant(2.0)

    def change():
        nonlocal p
        p = p.replace(k=7.0)

    return before_and_after(run(lambda x: p.rate(x)), change)


@entry("identity")
def a_list_of_objects(run):
    springs = [Gain(1.0), Gain(2.0)]
    f = run(lambda x: sum(s.k * x for s in springs))
    return before_and_after(f, lambda: setattr(springs[1], "k", 9.0))


@entry("identity")
def a_list_that_grows(run):
    springs = [Gain(1.0)]
    f = run(lambda x: sum(s.k * x for s in springs))
    return before_and_after(f, lambda: springs.append(Gain(4.0)))


@entry("identity")
def a_dict_of_objects(run):
    parts = {"a": Gain(1.0), "b": Gain(2.0)}
    f = run(lambda x: parts["a"].k * x + parts["b"].k)
    return before_and_after(f, lambda: setattr(parts["b"], "k", 9.0))


@entry("identity")
def a_key_of_a_dict(run):
    parts = {"a": 1.0}
    return before_and_after(run(lambda x: parts["a"] * x), lambda: parts.update(a=5.0))


@entry("identity")
def a_nested_container(run):
    nested = {"a": [{"b": (1.0, [2.0])}]}
    f = run(lambda x: nested["a"][0]["b"][1][0] * x)
    return before_and_after(f, lambda: nested["a"][0]["b"][1].__setitem__(0, 6.0))


@entry("identity")
def a_set(run):
    members = {1, 2}
    f = run(lambda x: x * len(members))
    return before_and_after(f, lambda: members.add(7))


@entry("identity")
def a_deque(run):
    window = collections.deque([1.0, 2.0], maxlen=2)
    return before_and_after(run(lambda x: x * sum(window)), lambda: window.append(9.0))


@entry("identity")
def a_default_dict(run):
    table = collections.defaultdict(float, a=2.0)
    return before_and_after(run(lambda x: x * table["a"]), lambda: table.update(a=9.0))


@entry("identity")
def a_subclass_of_list(run):
    class Gains(list):
        scale = 1.0

    gains = Gains([1.0, 2.0])
    f = run(lambda x: gains[0] * gains.scale * x)
    return (
        before_and_after(f, lambda: gains.__setitem__(0, 4.0)),
        before_and_after(f, lambda: setattr(gains, "scale", 3.0)),
    )


@entry("identity")
def a_captured_array_written_to(run):
    w = np.ones(3)
    return before_and_after(run(lambda x: w * x), lambda: w.__setitem__(1, 9.0))


@entry("identity")
def a_captured_array_written_through_a_view(run):
    w = np.ones(4)
    v = w[::2]
    f = run(lambda x: v * x[:2])
    return before_and_after(f, lambda: w.__setitem__(2, 9.0))


@entry("identity")
def a_read_only_view_of_an_array_that_is_written_to(run):
    w = np.ones(3)
    v = w.view()
    v.flags.writeable = False
    return before_and_after(run(lambda x: v * x), lambda: w.__setitem__(0, 9.0))


@entry("identity")
def a_read_only_array_made_writable_again(run):
    w = np.ones(3)
    w.flags.writeable = False

    def change():
        w.flags.writeable = True
        w[0] = 9.0

    return before_and_after(run(lambda x: w * x), change)


@entry("identity")
def a_captured_array_reshaped_in_place(run):
    w = np.arange(4.0)

    def change():
        w.resize((2, 2), refcheck=False)

    return before_and_after(run(lambda x: np.sum(w[0]) * x), change)


@entry("identity")
def an_attribute_that_is_an_array(run):
    g = Gain(np.ones(3))
    return before_and_after(run(g.apply), lambda: g.k.__setitem__(0, 5.0))


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
def an_attribute_by_its_name(run):
    g = Gain(2.0)
    name = "k"
    return before_and_after(run(lambda x: getattr(g, name) * x), lambda: setattr(g, "k", 7.0))


@entry("identity")
def an_attribute_through_vars(run):
    g = Gain(2.0)
    key = "".join(["z", "eta"])
    g.zeta = 1.0
    return before_and_after(run(lambda x: vars(g)[key] * x), lambda: setattr(g, "zeta", 7.0))


@entry("identity")
def an_attribute_through_attrgetter(run):
    p = types.SimpleNamespace(motor=Gain(2.0))
    read = operator.attrgetter("motor.k")
    return before_and_after(run(lambda x: read(p) * x), lambda: setattr(p.motor, "k", 7.0))


@entry("identity")
def an_attribute_found_by_getattr_of_the_class(run):
    class Lazy:
        def __init__(self):
            self._data = {"k": 2.0}

        def __getattr__(self, name):
            return self._data[name]

    p = Lazy()
    return before_and_after(run(lambda x: p.k * x), lambda: p._data.update(k=7.0))


@entry("identity")
def a_value_of_an_enum(run):
    class Mode(enum.Enum):
        SLOW = 1.0
        FAST = 3.0

    p = types.SimpleNamespace(mode=Mode.SLOW)
    f = run(lambda x: p.mode.value * x)
    return before_and_after(f, lambda: setattr(p, "mode", Mode.FAST))


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


@entry("identity")
def a_value_that_comes_back(run):
    g = Gain(2.0)
    f = run(g.apply)
    first = before_and_after(f, lambda: setattr(g, "k", 7.0))
    return first, before_and_after(f, lambda: setattr(g, "k", 2.0))


@entry("identity")
def a_number_of_another_type(run):
    p = types.SimpleNamespace(k=2)
    return before_and_after(run(lambda x: x // p.k), lambda: setattr(p, "k", 2.0))


@entry("identity")
def the_sign_of_a_zero(run):
    p = types.SimpleNamespace(k=0.0)
    return before_and_after(run(lambda x: np.copysign(x, p.k)), lambda: setattr(p, "k", -0.0))


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
