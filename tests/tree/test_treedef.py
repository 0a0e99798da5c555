import copy
import gc
import pickle
from collections import namedtuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archimedes import tree
from archimedes.errors import StructError
from archimedes.tree import field, struct
from archimedes.tree.content import content_key
from archimedes.tree.treedef import TABLE

Pair = namedtuple("Pair", ["first", "second"])


@struct
class Setting:
    x: float = 0.0
    value: object = field(static=True, default=None)


def of(value):
    return tree.structure(Setting(value=value))


def test_repr():
    x = {"a": [1.0, (2.0,), ()], "p": Pair(1.0, None), "s": Setting(1.0, "xyz")}
    assert repr(tree.structure(x)) == (
        "TreeDef({'a': [*, (*,), ()], 'p': Pair(first=*, second=None), "
        "'s': Setting(x=*, value='xyz')})"
    )
    assert repr(tree.structure(1.0)) == "TreeDef(*)"


def test_immutable():
    treedef = tree.structure([1.0])
    with pytest.raises(AttributeError, match="immutable"):
        treedef.num_leaves = 3
    with pytest.raises(AttributeError, match="immutable"):
        del treedef.num_leaves


def test_interned_through_copies_and_pickles():
    x = [Pair(1.0, Setting(value=np.arange(3))), {"a": None}]
    treedef = tree.structure(x)
    for again in (
        copy.copy(treedef),
        copy.deepcopy(treedef),
        pickle.loads(pickle.dumps(treedef)),
        tree.structure(copy.deepcopy(x)),
    ):
        assert again is treedef
    assert hash(treedef) == hash(tree.structure(x))


SAME = [
    (np.arange(3.0), np.arange(3.0)),
    ([1, [2.0]], [1, [2.0]]),
    ({"a": 1, "b": [2]}, {"a": 1, "b": [2]}),
    ({1, 2}, {2, 1}),
    (float("nan"), float("nan")),
    (np.float32(1.5), np.float32(1.5)),
    (slice(0, 2), slice(0, 2)),
    (Setting(1.0, [1]), Setting(1.0, [1])),
    ((1, "a", None), (1, "a", None)),
    (bytearray(b"a"), bytearray(b"a")),
    (np.array([None, "a"]), np.array([None, "a"])),
    (2 + 0j, 2 + 0j),
    (len, len),
]

DIFFERENT = [
    (1, 1.0),
    (1, True),
    (0.0, -0.0),
    (0j, complex(0.0, -0.0)),
    (np.arange(3.0), np.arange(3)),
    (np.zeros((2, 3)), np.zeros((3, 2))),
    ([1], (1,)),
    ([1], [1.0]),
    (Pair(1, 2), (1, 2)),
    ({"a": 1}, {"a": True}),
    ({"a": 1, "b": [2]}, {"b": [2], "a": 1}),
    (np.float32(1.0), np.float64(1.0)),
    (Setting(1.0), Setting(2.0)),
    (lambda: 0, lambda: 0),
    ("a", b"a"),
]


@pytest.mark.parametrize("a, b", SAME, ids=[str(k) for k in range(len(SAME))])
def test_static_values_with_equal_content(a, b):
    assert of(a) is of(b)


@pytest.mark.parametrize("a, b", DIFFERENT, ids=[str(k) for k in range(len(DIFFERENT))])
def test_static_values_with_different_content(a, b):
    assert of(a) != of(b)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda c: st.lists(c, max_size=3) | st.tuples(c, c) | st.dictionaries(st.text("ab"), c),
    max_leaves=6,
)


@given(values)
def test_content_key_of_a_copy_is_equal(value):
    assert content_key(copy.deepcopy(value)) == content_key(value)
    hash(content_key(value))


def test_unhashable_static_value_names_the_field():
    class Odd:
        __hash__ = None

    with pytest.raises(StructError, match=r"static field Setting\.value: .*type .*Odd.*__hash__"):
        of(Odd())


def test_structure_is_safe_from_later_changes_of_static_values():
    array, items = np.arange(3.0), [1, 2]
    a, b = of(array), of(items)
    array[0], items[0] = 9.0, 9
    assert a.unflatten([0.0]).value[0] == 0.0
    assert b.unflatten([0.0]).value == [1, 2]
    b.unflatten([0.0]).value.append(3)
    assert b.unflatten([0.0]).value == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        a.unflatten([0.0]).value[0] = 1.0


@pytest.mark.parametrize(
    "wrap",
    [lambda v: v, lambda v: [v], lambda v: (v,), lambda v: {"a": v}, Setting, Pair(1, 2)],
    ids=["itself", "list", "tuple", "dict", "setting", "pair"],
)
def test_structure_survives_a_round_trip_whatever_is_static(wrap):
    class Opaque:
        pass

    for inner in (Opaque(), np.arange(2), [1], bytearray(b"a"), {1}):
        value = Pair(1, inner) if isinstance(wrap, Pair) else wrap(inner)
        treedef = of(value)
        assert tree.structure(treedef.unflatten([1.0])) is treedef
        assert type(treedef.unflatten([1.0]).value) is type(value)


def test_changes_inside_static_structs_do_not_reach_the_structure():
    inner = Setting(np.zeros(2), [1])
    treedef = of(inner)
    inner.x[0] = 9.0
    inner.value.append(2)
    kept = treedef.unflatten([0.0]).value
    assert kept == Setting(np.zeros(2), [1])
    kept.value.append(3)
    assert treedef.unflatten([0.0]).value == Setting(np.zeros(2), [1])


def test_static_functions_come_back_as_the_same_object():
    def function():
        return None

    assert of(function).unflatten([0.0]).value is function


def test_unused_structures_are_forgotten():
    gc.collect()
    before = len(TABLE)
    for i in range(2000):
        of(f"forget {i}")
    gc.collect()
    assert len(TABLE) - before < 1000


def test_difference_of_equal_structures_is_none():
    assert of([1]).difference(of([1])) is None
    assert of([1]).difference(of([2]), "x").startswith("at x: Setting with static value=[1]")
    assert tree.structure([1.0]).difference(tree.structure([[1.0]])) == (
        "at [0]: a leaf against list"
    )
