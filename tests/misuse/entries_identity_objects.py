"""Objects that a function reads change after it was recorded."""

from __future__ import annotations

import contextvars
import dataclasses
import enum
import functools
import operator
import types
import weakref

import archimedes as arc
from tests.misuse.catalogue import entry
from tests.misuse.changing import Gain, before_and_after, fresh


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
    scale = [2.0]

    class Model:
        @staticmethod
        def rate(x):
            return scale[0] * x

    return before_and_after(run(lambda x: Model.rate(x)), lambda: scale.__setitem__(0, 7.0))


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
def a_context_variable(run):
    k = contextvars.ContextVar("k", default=2.0)
    return before_and_after(run(lambda x: k.get() * x), lambda: k.set(7.0))


@entry("identity")
def an_object_behind_a_weak_reference(run):
    g = Gain(2.0)
    link = weakref.ref(g)
    return before_and_after(run(lambda x: link().k * x), lambda: setattr(g, "k", 7.0))


@entry("identity")
def an_object_in_a_dict_of_weak_references(run):
    g = Gain(2.0)
    table = weakref.WeakValueDictionary(a=g)
    return before_and_after(run(lambda x: table["a"].k * x), lambda: setattr(g, "k", 7.0))


@entry("identity")
def a_descriptor(run):
    class Held:
        def __init__(self, value):
            self.value = value

        def __get__(self, instance, owner=None):
            return self.value

    class Model:
        k = Held(2.0)

    m = Model()
    f = run(lambda x: m.k * x)
    return before_and_after(f, lambda: setattr(vars(Model)["k"], "value", 7.0))


@entry("identity")
def an_attribute_of_a_metaclass(run):
    class Meta(type):
        k = 2.0

    class Model(metaclass=Meta):
        pass

    return before_and_after(run(lambda x: Model.k * x), lambda: setattr(Meta, "k", 7.0))


@entry("identity")
def a_method_reached_through_super(run):
    class Base:
        def rate(self, x):
            return x

    class Child(Base):
        def rate(self, x):
            return super().rate(x) + 1.0

    f = run(Child().rate)
    return before_and_after(f, lambda: setattr(Base, "rate", lambda self, x: 9.0 * x))


@entry("identity")
def other_bases(run):
    class Base:
        def rate(self, x):
            return x

    class Other:
        def rate(self, x):
            return 5.0 * x

    class Child(Base):
        pass

    child = Child()
    f = run(lambda x: child.rate(x))
    return before_and_after(f, lambda: setattr(Child, "__bases__", (Other, Base)))


@entry("identity")
def a_method_with_arguments_filled_in(run):
    class Model:
        k = 2.0

        def rate(self, a, x):
            return a * self.k * x

        fast = functools.partialmethod(rate, 3.0)

    m = Model()
    return before_and_after(run(lambda x: m.fast(x)), lambda: setattr(Model, "k", 7.0))


@entry("identity")
def a_chain_of_three_thousand_objects(run):
    head = last = types.SimpleNamespace(k=1.0, next=None)
    for _ in range(3000):
        last.next = types.SimpleNamespace(k=1.0, next=None)
        last = last.next

    def f(x):
        total, at = 0.0, head
        while at is not None:
            total, at = total + at.k, at.next
        return total * x

    return before_and_after(run(f), lambda: setattr(last, "k", 9.0))
