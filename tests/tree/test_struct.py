"""@struct as a user meets it. Annotations here are real objects; test_postponed has strings."""

import abc
import copy
import dataclasses
import pickle
import typing
from functools import cached_property
from typing import ClassVar, Generic, TypeVar

import numpy as np
import pytest

import archimedes as arc
from archimedes import tree
from archimedes.errors import StructError
from archimedes.tree import InitVar, field, struct

T = TypeVar("T")


@struct
class Attitude:
    array: np.ndarray
    seq: str = field(static=True, default="xyz")


@struct
class Body:
    rpy_attitude: bool = False
    baumgarte: float = 1.0

    @struct
    class State:
        pos: np.ndarray
        att: Attitude
        v_B: np.ndarray

    @struct
    class Input:
        F_B: np.ndarray
        m: float
        dm_dt: float = field(default=0.0, units="kg/s")
        dJ_dt: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))

    def name(self):
        return "body"


@struct
class Aircraft(Body):
    m: float
    J_B: np.ndarray
    span: float = 10.0

    def name(self):
        return "aircraft " + super().name()


@struct
class Box(Generic[T]):
    value: T


def state(seq="xyz"):
    return Body.State(pos=np.arange(3.0), att=Attitude(np.ones(4), seq), v_B=np.zeros(3))


def test_instances_are_frozen():
    x = state()
    with pytest.raises(dataclasses.FrozenInstanceError):
        x.pos = np.zeros(3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        del x.pos


def test_methods_and_super_work():
    assert Aircraft(m=1.0, J_B=np.eye(3)).name() == "aircraft body"


def test_default_factory_gives_each_instance_its_own_array():
    a, b = Body.Input(np.zeros(3), 1.0), Body.Input(np.zeros(3), 1.0)
    assert a.dJ_dt is not b.dJ_dt
    assert a.dm_dt == 0.0


@pytest.mark.parametrize(
    "default", [np.zeros(2), [1.0], {"a": 1}, {1, 2}, Attitude(np.zeros(4))], ids=repr
)
@pytest.mark.parametrize("wrap", [lambda d: d, lambda d: field(default=d), dataclasses.field])
def test_mutable_defaults_are_copied(default, wrap):
    value = wrap(default=default) if wrap is dataclasses.field else wrap(default)
    made = struct(type("Made", (), {"__annotations__": {"x": object}, "x": value}))
    first, second = made().x, made().x
    assert first is not second
    assert first is not default
    assert np.all(first == default)


def test_array_in_default_struct_is_not_shared():
    @struct
    class Outer:
        att: Attitude = Attitude(np.zeros(4))

    Outer().att.array[0] = 7.0
    assert Outer().att.array[0] == 0.0


def test_required_fields_after_inherited_defaults_are_keyword_only():
    a = Aircraft(True, 2.0, 12.0, m=3.0, J_B=np.eye(3))
    assert (a.rpy_attitude, a.baumgarte, a.span, a.m) == (True, 2.0, 12.0, 3.0)
    by_keyword = Aircraft(m=3.0, J_B=np.eye(3), span=12.0, baumgarte=2.0, rpy_attitude=True)
    assert by_keyword == a
    with pytest.raises(TypeError, match="m"):
        Aircraft(True, 2.0, 12.0, 3.0)
    assert Aircraft.__match_args__ == ("rpy_attitude", "baumgarte", "span")


def test_keyword_only_fields_keep_their_metadata():
    @struct
    class Heavy(Body):
        m: float = field(units="kg")
        label: str = field(static=True)

    h = Heavy(m=2.0, label="a")
    assert {f.name: f.metadata.get("units") for f in tree.fields(h)}["m"] == "kg"
    assert tree.leaves(h) == [False, 1.0, 2.0]


def test_mixed_bases_with_defaults_first():
    @struct
    class WithDefault:
        a: float = 1.0

    @struct
    class Required:
        b: float

    @struct
    class Both(Required, WithDefault):
        c: float = 3.0

    made = Both(b=2.0)
    assert (made.a, made.b, made.c) == (1.0, 2.0, 3.0)
    assert typing.get_type_hints(Both) == {"a": float, "b": float, "c": float}


def test_override_that_adds_a_default_before_a_required_field():
    @struct
    class Base:
        a: float
        b: float

    @struct
    class Sub(Base):
        a: float = 1.0

    assert Sub(b=2.0) == Sub(1.0, b=2.0)


def test_reannotation_keeps_the_inherited_default():
    @struct
    class Sub(Body):
        baumgarte: float
        extra: float

    assert Sub(extra=1.0).baumgarte == 1.0


def test_order_mistake_inside_one_class_is_an_error():
    with pytest.raises(StructError, match=r"'b'.*needs a default too, or field\(kw_only=True\)"):

        @struct
        class Wrong:
            a: float = 1.0
            b: float


def test_kw_only_marker_and_class_variables():
    @struct
    class Mixed:
        table: ClassVar[np.ndarray] = np.arange(3)
        a: float
        _: dataclasses.KW_ONLY
        b: float = 2.0

    assert Mixed(1.0, b=3.0).b == 3.0
    assert Mixed.table[2] == 2
    assert tree.leaves(Mixed(1.0)) == [1.0, 2.0]
    with pytest.raises(TypeError):
        Mixed(1.0, 3.0)


def test_init_var_and_post_init():
    @struct
    class Scaled:
        x: float
        scale: InitVar[float] = 2.0
        y: float = field(init=False)

        def __post_init__(self, scale):
            object.__setattr__(self, "y", self.x * scale)

    s = Scaled(3.0, 5.0)
    assert (s.x, s.y) == (3.0, 15.0)
    assert tree.leaves(s) == [3.0, 15.0]
    assert s.replace(x=1.0).y == 2.0
    with pytest.raises(StructError, match="no field 'y'"):
        s.replace(y=1.0)


def test_replace_needs_a_required_init_var_again():
    @struct
    class Needs:
        x: float
        seed: InitVar[int]

    with pytest.raises(StructError, match="'seed' is an InitVar without a default"):
        Needs(1.0, 2).replace(x=2.0)
    assert Needs(1.0, 2).replace(x=2.0, seed=1).x == 2.0


def test_replace_names_the_nearest_field():
    with pytest.raises(StructError, match=r"Body\.State\.replace: no field 'poss'; .*'pos'"):
        state().replace(poss=np.zeros(3))


def test_replace_runs_post_init():
    @struct
    class Positive:
        x: float

        def __post_init__(self):
            if self.x <= 0:
                raise ValueError("x must be positive")

    with pytest.raises(ValueError, match="x must be positive"):
        Positive(1.0).replace(x=-1.0)


def test_replace_function_on_other_types():
    class Point(typing.NamedTuple):
        x: float
        y: float

    assert tree.replace(Point(1.0, 2.0), y=3.0) == Point(1.0, 3.0)
    with pytest.raises(StructError, match="no field 'z'"):
        tree.replace(Point(1.0, 2.0), z=3.0)
    with pytest.raises(StructError, match=r"replace needs a struct.*got list"):
        tree.replace([1.0], x=2.0)


def test_equality_is_a_plain_bool_by_content():
    x = state()
    assert (x == state()) is True
    assert (x != state()) is False
    assert (x == x.replace(pos=np.zeros(3))) is False
    assert (x == x.replace(pos=np.arange(4.0))) is False
    assert (x == state("zyx")) is False
    assert x != 3
    assert x != Body()
    assert Box(1) == Box(1.0) == Box(np.float64(1.0)) == Box(np.array(1.0))
    assert Box(np.array([np.nan])) != Box(np.array([np.nan]))
    assert Box([1.0]) != Box((1.0,))
    assert Box("a") == Box("a")


def test_equality_across_classes():
    @struct
    class Other(Body):
        pass

    assert Other() != Body()


def test_hash_by_content():
    assert hash(Box((1.0, "a"))) == hash(Box((1.0, "a")))
    assert hash(Box(1)) == hash(Box(1.0))
    assert {Box(1.0): "found"}[Box(1.0)] == "found"


def test_hash_survives_a_forgotten_structure():
    kept = Box((1.0, Box("x")))
    first = hash(kept)
    for i in range(3000):  # push the structure out of the bounded caches
        tree.structure(Attitude(0.0, str(i)))
    assert hash(kept) == first


def test_hash_of_arrays_names_the_leaf():
    with pytest.raises(TypeError, match=r"Body\.State is not hashable: its leaf pos .* ndarray"):
        hash(state())


def test_user_methods_are_kept():
    @struct
    class Own:
        x: float

        def __repr__(self):
            return f"<{self.x}>"

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 5

        def replace(self, **changes):
            return "mine"

    @struct
    class Child(Own):
        y: float = 0.0

    for made in (Own(1.0), Child(1.0)):
        assert repr(made) == "<1.0>"
        assert made == object()
        assert hash(made) == 5
        assert made.replace() == "mine"


def test_eq_without_hash_makes_a_class_unhashable_as_in_python():
    @struct
    class OnlyEq:
        x: float

        def __eq__(self, other):
            return True

    with pytest.raises(TypeError):
        hash(OnlyEq(1.0))


def test_dataclass_keywords():
    @struct(order=True, slots=True)
    class Version:
        major: int
        minor: int = 0

    @struct(frozen=False)
    class Mutable:
        x: float

    @struct(eq=False)
    class Identity:
        x: float

    assert Version(1) < Version(1, 2)
    assert not hasattr(Version(1), "__dict__")
    assert hash(Version(1)) == hash(Version(1))
    assert tree.map(lambda v: v + 1, Version(1, 2)) == Version(2, 3)
    m = Mutable(1.0)
    m.x = 2.0
    assert m == Mutable(2.0)
    with pytest.raises(TypeError):
        hash(m)
    assert Identity(1.0) != Identity(1.0)


def test_slots_round_trip():
    @struct(slots=True)
    class Slotted:
        x: float
        y: float = 1.0

    leaves, treedef = tree.flatten(Slotted(2.0))
    assert tree.unflatten(treedef, leaves) == Slotted(2.0)
    assert copy.copy(Slotted(2.0)) == Slotted(2.0)


def test_generics():
    box = Box[float](1.0)
    assert box == Box(1.0)
    assert tree.leaves(box) == [1.0]

    @struct
    class Labelled(Box[T]):
        label: str = field(static=True, default="")

    assert tree.leaves(Labelled([1.0, 2.0], label="a")) == [1.0, 2.0]


def test_cached_property_is_not_carried_over():
    @struct
    class Lazy:
        x: float

        @cached_property
        def double(self):
            return 2 * self.x

    lazy = Lazy(2.0)
    assert lazy.double == 4.0
    assert tree.map(lambda v: v + 1, lazy).double == 6.0


def test_pattern_matching():
    match state():
        case Body.State(pos, Attitude(q, seq), v_B=v):
            assert (pos.shape, q.shape, seq, v.shape) == ((3,), (4,), "xyz", (3,))
        case _:
            pytest.fail("did not match")


@pytest.mark.parametrize(
    "copier", [lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy]
)
@pytest.mark.parametrize("x", [state(), Aircraft(m=1.0, J_B=np.eye(3)), Box({"a": [1.0]})])
def test_copies_are_equal(copier, x):
    y = copier(x)
    assert y == x
    assert type(y) is type(x)
    assert tree.structure(y) is tree.structure(x)


def test_deepcopy_copies_arrays():
    x = state()
    assert copy.deepcopy(x).pos is not x.pos
    assert copy.copy(x).pos is x.pos


def test_standard_introspection():
    assert [f.name for f in dataclasses.fields(Body.State)] == ["pos", "att", "v_B"]
    assert typing.get_type_hints(Body.State)["att"] is Attitude
    assert dataclasses.asdict(Box(1.0)) == {"value": 1.0}
    assert dataclasses.replace(Box(1.0), value=2.0) == Box(2.0)
    assert Body.State.__qualname__ == "Body.State"
    assert [f.name for f in tree.fields(state())] == ["pos", "att", "v_B"]
    with pytest.raises(StructError, match="fields needs a struct or a dataclass, got int"):
        tree.fields(3)


def test_is_struct():
    assert tree.is_struct(state()) and tree.is_struct(Body) and tree.is_struct(Box[int](1))
    assert not tree.is_struct([1.0]) and not tree.is_struct(None) and not tree.is_struct(int)


def test_undecorated_subclass_is_a_struct_with_the_same_fields():
    class Plain(Attitude):
        def norm(self):
            return float(np.linalg.norm(self.array))

    x = Plain(np.ones(4))
    assert tree.is_struct(x)
    assert tree.map(lambda a: 2 * a, x).norm() == 4.0
    assert type(tree.map(lambda a: a, x)) is Plain


def test_misuse_of_the_decorator_and_field():
    with pytest.raises(StructError, match="struct decorates a class, got 3"):
        struct(3)
    with pytest.raises(StructError, match=r"static must be True or False.*field\(default=...\)"):
        field(1.0)
    with pytest.raises(StructError, match="cannot be called 'replace'"):

        @struct
        class Wrong:
            replace: float


def test_any_field_name_and_number_of_fields():
    names = ["x", "f", "v", "d0", "append", "stop", "take", "cls", "key", "find", "treedef", "Ω_E"]
    names += [f"n{i}" for i in range(200)]
    for chosen in ([], names[:1], names):
        made = struct(type("Made", (), {"__annotations__": dict.fromkeys(chosen, float)}))
        x = made(**{name: float(i) for i, name in enumerate(chosen)})
        assert tree.leaves(x) == list(map(float, range(len(chosen))))
        assert tree.paths(x) == chosen
        assert tree.map(lambda v: v, x) == x


def test_structs_that_implement_a_protocol_or_an_abstract_class():
    class Shape(typing.Protocol):
        def area(self) -> float: ...

    class Named(abc.ABC):
        @abc.abstractmethod
        def name(self): ...

    @struct
    class Square(Shape, Named):
        side: float = 2.0

        def area(self):
            return self.side**2

        def name(self):
            return "square"

    assert tree.map(lambda v: v + 1, Square()).area() == 9.0


def test_metadata_is_kept():
    f = field(static=True, units="m", metadata={"tex": "x"})
    assert dict(f.metadata) == {"tex": "x", "static": True, "units": "m"}


def test_struct_of_a_struct_is_that_struct():
    """The issue's own."""

    @struct
    class Body:
        mass: float = 1.0

    assert struct(Body) is Body
    assert struct()(Body) is Body
    assert Body(2.0).mass == 2.0


class Wing(arc.Struct):
    """A struct by its base class."""

    area: float = arc.field(units="m^2")
    profile: str = arc.field(static=True, default="naca0012")


class Delta(Wing):
    sweep: float = 0.5


def test_structs_by_their_base_class():
    assert tree.is_struct(Wing) and tree.is_struct(Delta) and not tree.is_struct(arc.Struct)
    assert tree.leaves(Delta(3.0)) == [3.0, 0.5]
    assert Delta(3.0).replace(sweep=0.7) == Delta(3.0, sweep=0.7)
    assert arc.compile(lambda w: w.replace(area=2.0 * w.area))(Wing(4.0)).area == 8.0
    assert arc.struct(Wing) is Wing
    with pytest.raises(dataclasses.FrozenInstanceError, match=r"x = x\.replace\(area=\.\.\.\)"):
        Wing(1.0).area = 2.0


def test_options_of_the_base_class():
    class Named(arc.Struct, kw_only=True):
        name: float

    with pytest.raises(TypeError):
        Named(1.0)
    with pytest.raises(StructError, match=r"Write @struct\(slots=True\)"):

        class Slotted(arc.Struct, slots=True):
            a: float
