"""Taking trees apart and putting them together: random trees, every node type, misuse."""

import threading
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archimedes import tree
from archimedes.errors import StructError
from archimedes.tree import field, struct

Pair = namedtuple("Pair", ["first", "second"])


@struct
class Two:
    a: object
    b: object = 0.0
    tag: object = field(static=True, default=None)


@struct(slots=True)
class Slotted:
    x: object


@tree.register_dataclass
@dataclass
class Plain:
    u: object
    v: object = 1.0


def slow_leaves(x):
    """The leaves of a tree by a plain recursive walk: the oracle of flatten."""
    if x is None:
        return []
    walkers = {
        Two: lambda: [x.a, x.b],
        Slotted: lambda: [x.x],
        Plain: lambda: [x.u, x.v],
        dict: lambda: [x[k] for k in sorted(x)],
        OrderedDict: lambda: list(x.values()),
        list: lambda: x,
        tuple: lambda: x,
        Pair: lambda: x,
    }
    if type(x) not in walkers:
        return [x]
    return [leaf for child in walkers[type(x)]() for leaf in slow_leaves(child)]


scalars = st.floats(allow_nan=False) | st.integers() | st.text(max_size=3) | st.booleans()
tags = st.none() | st.integers() | st.text(max_size=2) | st.lists(st.integers(), max_size=2)
names = st.text("abc", min_size=1, max_size=3)


def nodes(children):
    return (
        st.lists(children, max_size=3)
        | st.lists(children, max_size=3).map(tuple)
        | st.dictionaries(names, children, max_size=3)
        | st.dictionaries(names, children, max_size=3).map(OrderedDict)
        | st.builds(Pair, children, children)
        | st.builds(Two, children, children, tags)
        | st.builds(Slotted, children)
        | st.builds(Plain, children, children)
        | st.none()
    )


trees = st.recursive(scalars, nodes, max_leaves=12)


@given(trees)
def test_round_trip(x):
    leaves, treedef = tree.flatten(x)
    assert leaves == slow_leaves(x)
    assert treedef.num_leaves == len(leaves) == len(tree.paths(x))
    again = tree.unflatten(treedef, leaves)
    assert again == x
    assert type(again) is type(x)
    assert tree.structure(again) is treedef


@given(trees)
def test_leaves_can_be_any_objects(x):
    leaves, treedef = tree.flatten(x)
    marks = [object() for _ in leaves]
    marked = treedef.unflatten(marks)
    assert all(a is b for a, b in zip(tree.leaves(marked), marks, strict=True))
    assert tree.structure(marked) is treedef


@given(trees)
def test_is_leaf_predicate(x):
    assert tree.flatten(x, is_leaf=lambda v: True) == ([x], tree.structure(0.0))
    assert tree.flatten(x, is_leaf=lambda v: False) == tree.flatten(x)
    leaves, treedef = tree.flatten(x, is_leaf=lambda v: isinstance(v, (list, Two)))
    assert not any(isinstance(node, (list, Two)) for node in walk_nodes(treedef))
    assert treedef.unflatten(leaves) == x


def walk_nodes(treedef):
    yield treedef.kind.cls
    for child in treedef.children:
        yield from walk_nodes(child)


@given(trees, trees)
def test_structures_are_equal_exactly_when_identical(x, y):
    same = tree.structure(x) == tree.structure(y)
    assert same == (repr(tree.structure(x)) == repr(tree.structure(y)))
    assert same == (tree.structure(x).difference(tree.structure(y)) is None)


def test_none_is_a_leaf_on_request():
    leaves, treedef = tree.flatten([None, 1.0], is_leaf=lambda v: v is None)
    assert leaves == [None, 1.0]
    assert treedef == tree.structure([0.0, 0.0])


def test_dicts_keep_the_order_they_were_filled_in_and_correspond_by_key():
    a, b = {"x": 1.0, "y": 2.0}, {"y": 20.0, "x": 10.0}
    assert tree.structure(a) != tree.structure(b)
    assert tree.structure(a).matches(tree.structure(b))
    assert "another order" in tree.structure(a).difference(tree.structure(b), ordered=True)
    assert tree.leaves(b) == [10.0, 20.0]
    assert tree.paths(b) == ["['x']", "['y']"]
    assert list(tree.map(lambda v: v, b)) == ["y", "x"]
    assert tree.map(lambda v, w: v + w, a, b) == {"x": 11.0, "y": 22.0}


def test_dict_keys_without_an_order():
    a, b = {1: "one", "a": "A", None: "none"}, {None: "none", "a": "A", 1: "one"}
    assert tree.structure(a).matches(tree.structure(b))
    assert tree.map(str.upper, a) == {1: "ONE", "a": "A", None: "NONE"}


def test_ordered_dict_keeps_its_order():
    a = OrderedDict(y=1.0, x=2.0)
    assert tree.leaves(a) == [1.0, 2.0]
    assert tree.structure(a) != tree.structure(OrderedDict(x=2.0, y=1.0))
    assert list(tree.map(lambda v: v, a)) == ["y", "x"]


def test_defaultdict():
    a = defaultdict(list, b=1.0, a=2.0)
    again = tree.map(lambda v: v, a)
    assert again == a and again.default_factory is list
    assert repr(tree.structure(a)) == "TreeDef(defaultdict({'b': *, 'a': *}))"


def test_unregistered_types_are_leaves():
    @dataclass
    class Free:
        x: float

    class MyList(list):
        pass

    for leaf in (Free(1.0), MyList([1.0]), "text", np.zeros(3), {1.0, 2.0}, object()):
        assert tree.is_leaf(leaf)
        assert tree.leaves([leaf])[0] is leaf


def test_paths():
    x = Two({"mass": 1.0, 3: [2.0]}, Pair(Two(1.0), (None, 5.0)))
    expected = ["a['mass']", "a[3][0]", "b.first.a", "b.first.b", "b.second[1]"]
    assert tree.paths({"mass": 1.0}, "p") == ["p['mass']"]
    two = Two({"mass": 1.0}, x.b)
    assert tree.paths(two) == ["a['mass']", *expected[2:]]
    assert tree.paths(two, "x")[:2] == ["x.a['mass']", "x.b.first.a"]
    assert tree.paths([two])[0] == "[0].a['mass']"
    assert tree.paths(1.0) == [""] and tree.paths(1.0, "x") == ["x"]
    assert sorted(tree.paths(x)) == sorted(expected)


def test_map():
    x = Two(1.0, [2.0, (3.0,)], tag="t")
    assert tree.map(lambda a, b, c: a + b * c, x, x, x) == Two(2.0, [6.0, (12.0,)], tag="t")
    assert tree.map(abs, -1.0) == 1.0
    assert tree.map(abs, None) is None


@pytest.mark.parametrize(
    "a, b, words",
    [
        (Two(1.0, 2.0), Two(1.0, np.zeros(2)), None),
        (Two(1.0, [0.0]), Two(1.0, np.zeros(1)), "at b: list against ndarray"),
        (Two(1.0, "s"), Two(1.0, (0.0,)), "at b: str against tuple"),
        ([Two(1.0)], [Slotted(1.0)], r"at \[0\]: Two against Slotted"),
        ({"p": [1, 2]}, {"p": [1, 2, 3]}, r"at \['p'\]: list of 2 against list of 3"),
        ({"p": 1, "q": 2}, {"p": 1, "r": 2}, r"keys \['p', 'q'\] against dict with keys"),
        (Two(0, tag="xyz"), Two(0, tag="zyx"), "at the root: Two with static tag='xyz' against"),
        ([1, None], [1, 2.0], r"at \[1\]: NoneType against float"),
        (Pair(1, 2), (1, 2), "at the root: Pair against tuple"),
        ([1, [2, 3], 4.0], [1, [2, 3], "s", 5], "at the root: list of 3 against list of 4"),
        (Two([1, 2], (3, {})), Two([1, 2], (3, [])), r"at b\[1\]: dict against list"),
    ],
)
def test_map_names_the_first_difference(a, b, words):
    if words is None:
        tree.map(lambda x, y: None, a, b)
        return
    with pytest.raises(StructError, match=words):
        tree.map(lambda x, y: None, a, b)


def test_map_says_which_tree_differs():
    with pytest.raises(StructError, match="map: tree number 3 has another structure"):
        tree.map(lambda *v: v, [1], [2], (3,))


def test_unflatten_errors():
    treedef = tree.structure(Two(1.0, [2.0]))
    for leaves in ([], [1.0], (1.0, 2.0, 3.0), iter([1.0])):
        with pytest.raises(
            StructError, match=r"Two\(a=\*, b=\[\*\], tag=None\).*has 2 leaves, but"
        ):
            tree.unflatten(treedef, leaves)
    assert tree.unflatten(treedef, iter([1.0, 2.0])) == Two(1.0, [2.0])
    with pytest.raises(StructError, match="the first argument is a TreeDef"):
        tree.unflatten([1.0, 2.0], treedef)


def test_none_fills_a_subtree():
    like = tree.structure({"p": Two(0, 0), "x": (0, 0)})
    values = {"p": None, "x": (1.0, None)}
    with pytest.raises(ValueError, match="the trees differ"):
        tree.flatten_up_to(like, values)
    assert tree.flatten_up_to(like, values, none_fills=True) == [None, None, 1.0, None]


def test_flatten_up_to():
    axes = {"x": 0, "p": [1, 2]}
    args = {"p": [Two(1.0, 2.0), 3.0], "x": (4.0, 5.0)}
    assert tree.flatten_up_to(tree.structure(axes), args) == [Two(1.0, 2.0), 3.0, (4.0, 5.0)]
    with pytest.raises(StructError, match=r"at args\['p'\]: list of 2 against list of 1"):
        tree.flatten_up_to(tree.structure(axes), {"p": [1.0], "x": 2.0}, "args")
    with pytest.raises(StructError, match=r"at args\['p'\]: list against float"):
        tree.flatten_up_to(tree.structure(axes), {"p": 1.0, "x": 2.0}, "args")


def test_all_and_reduce():
    assert tree.all({"a": True, "b": np.ones(3)}) is True
    assert tree.all({"a": True, "b": np.array([1.0, 0.0])}) is False
    assert tree.all(None) is True
    assert tree.reduce(lambda a, b: a + b, [1, (2, {"a": 3})]) == 6
    assert tree.reduce(lambda a, b: [*a, b], {"b": 2, "a": 1}, []) == [1, 2]
    assert tree.reduce(max, None, 0) == 0
    with pytest.raises(StructError, match="no leaves; give an initializer"):
        tree.reduce(max, None)


class Foreign:
    def __init__(self, parts, unit):
        self.parts, self.unit = parts, unit


def test_register_node():
    returned = tree.register_node(
        Foreign,
        lambda x: (x.parts, x.unit),
        lambda unit, parts: Foreign(parts, unit),
        lambda unit: [".lo", ".hi"],
    )
    assert returned is Foreign
    x = Foreign([1.0, [2.0]], ["m"])
    assert tree.paths({"x": x}) == ["['x'].lo", "['x'].hi[0]"]
    assert tree.structure(x) == tree.structure(Foreign([3.0, [4.0]], ["m"]))
    assert tree.structure(x) != tree.structure(Foreign([3.0, [4.0]], ["s"]))
    y = tree.map(lambda v: 2 * v, x)
    assert (y.parts, y.unit) == ([2.0, [4.0]], ["m"])
    y.unit.append("changed")
    assert tree.map(lambda v: v, x).unit == ["m"]
    with pytest.raises(StructError, match="gave 2 labels for 1 children"):
        tree.paths(Foreign([1.0], "m"))
    with pytest.raises(StructError, match="Foreign is already registered"):
        tree.register_node(Foreign, None, None)
    with pytest.raises(StructError, match="Foreign with 'm' against Foreign with 's'"):
        tree.map(lambda a, b: a, Foreign([1, 2], "m"), Foreign([1, 2], "s"))


def test_register_node_misuse():
    class Bad:
        pass

    tree.register_node(Bad, lambda x: [1.0], lambda aux, c: Bad())
    with pytest.raises(
        StructError, match=r"flatten function of .*Bad must return \(children, aux\)"
    ):
        tree.leaves(Bad())
    with pytest.raises(StructError, match="expected a class"):
        tree.register_node("Bad", None, None)


def test_register_dataclass_choices():
    def fresh():
        return dataclass(type("Link", (), {"__annotations__": {"m": float, "name": str}}))

    for arguments in ({"data_fields": ["m"]}, {"static_fields": ["name"]}):
        cls = tree.register_dataclass(fresh(), **arguments)
        assert repr(tree.structure(cls(1.0, "arm"))) == "TreeDef(Link(m=*, name='arm'))"
    cls = tree.register_dataclass(fresh(), ["m"], ["name"])
    assert tree.leaves(cls(1.0, "arm")) == [1.0]
    assert tree.leaves(tree.register_dataclass(fresh())(1.0, "arm")) == [1.0, "arm"]
    assert tree.leaves(tree.register_dataclass(fresh(), [], ["m", "name"])(1.0, "arm")) == []
    with pytest.raises(StructError, match="no field 'mm'; did you mean 'm'"):
        tree.register_dataclass(fresh(), ["mm"])
    with pytest.raises(StructError, match="must be data or static, once"):
        tree.register_dataclass(fresh(), ["m"], ["m"])
    with pytest.raises(StructError, match="is not a dataclass: decorate it with @struct"):
        tree.register_dataclass(int)
    with pytest.raises(StructError, match="already registered"):
        tree.register_dataclass(Plain)
    assert not tree.is_struct(Plain(1.0))


def test_register_struct():
    @tree.register_struct
    @dataclass
    class Point:
        x: float
        unit: str = field(static=True, default="m")

    class Custom:
        def __init__(self, x):
            self.x = x

    assert tree.is_struct(Point(1.0)) and tree.leaves(Point(1.0)) == [1.0]
    assert tree.register_struct(Point) is Point
    tree.register_struct(Custom, lambda c: ((c.x,), None), lambda aux, xs: Custom(*xs))
    assert tree.is_struct(Custom) and tree.leaves([Custom(3.0)]) == [3.0]
    with pytest.raises(StructError, match="give both"):
        tree.register_struct(Custom, lambda c: ((), None))


def test_threads_agree_on_one_structure():
    Local = namedtuple("Local", ["x"])
    start, found = threading.Barrier(8), []

    def work():
        start.wait()
        for i in range(200):
            found.append((i, tree.structure([Local(Two(1.0, tag=i))])))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    by_tag = {}
    for i, treedef in found:
        assert by_tag.setdefault(i, treedef) is treedef
