"""Containers, arrays and numbers that a function reads change after it was recorded."""

from __future__ import annotations

import array
import collections
import ctypes
import types

import numpy as np

from tests.misuse.catalogue import entry
from tests.misuse.changing import Gain, before_and_after

TABLE = [1.0, 2.0]


@entry("identity")
def an_item_of_a_global_list(run):
    try:
        f = run(lambda x: TABLE[0] * x)
        return before_and_after(f, lambda: TABLE.__setitem__(0, 9.0))
    finally:
        TABLE[0] = 1.0


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


@entry("identity")
def the_order_of_an_ordered_dict(run):
    table = collections.OrderedDict(a=1.0, b=2.0)
    f = run(lambda x: x * next(iter(table.values())))
    return before_and_after(f, lambda: table.move_to_end("a"))


@entry("identity")
def the_order_of_a_dict(run):
    table = {"a": 1.0, "b": 2.0}
    f = run(lambda x: x * next(iter(table.values())))
    return before_and_after(f, lambda: table.update(a=table.pop("a")))


@entry("identity")
def a_dict_written_in_python(run):
    table = collections.UserDict(a=1.0)
    return before_and_after(run(lambda x: x * table["a"]), lambda: table.update(a=3.0))


@entry("identity")
def a_view_of_a_dict(run):
    table = {"a": 1.0}
    shown = types.MappingProxyType(table)
    return before_and_after(run(lambda x: x * shown["a"]), lambda: table.update(a=3.0))


@entry("identity")
def a_chain_of_dicts(run):
    table = {"a": 1.0}
    chain = collections.ChainMap({}, table)
    return before_and_after(run(lambda x: x * chain["a"]), lambda: table.update(a=3.0))


@entry("identity")
def an_array_of_objects(run):
    g = Gain(2.0)
    many = np.array([g], dtype=object)
    return before_and_after(run(lambda x: many[0].k * x), lambda: setattr(g, "k", 7.0))


@entry("identity")
def an_array_of_records(run):
    records = np.zeros(2, dtype=[("a", float)])
    f = run(lambda x: float(records["a"][0]) + x)
    return before_and_after(f, lambda: records["a"].__setitem__(0, 3.0))


@entry("identity")
def an_array_without_axes(run):
    k = np.array(2.0)
    return before_and_after(run(lambda x: k * x), lambda: k.__setitem__((), 7.0))


@entry("identity")
def a_view_of_memory(run):
    w = np.ones(3)
    shown = memoryview(w)
    return before_and_after(run(lambda x: shown[0] * x), lambda: w.__setitem__(0, 4.0))


@entry("identity")
def a_number_of_ctypes(run):
    k = ctypes.c_double(2.0)
    return before_and_after(run(lambda x: k.value * x), lambda: setattr(k, "value", 7.0))


@entry("identity")
def a_subclass_of_an_array_of_python(run):
    class Gains(array.array):
        pass

    gains = Gains("d", [1.0, 2.0])
    return before_and_after(run(lambda x: gains[1] * x), lambda: gains.__setitem__(1, 7.0))
