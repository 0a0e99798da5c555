"""Configurations: what is accepted, what is refused, and the words of each refusal."""

# ruff: noqa: RUF012  (mutable defaults are copied for each instance)

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archimedes.errors import StructError
from archimedes.tree import StructConfig, UnionConfig, field, is_struct, struct

T = TypeVar("T")


@struct
class Engine:
    thrust: float


class Turbofan(StructConfig, type="turbofan"):
    thrust: float
    table: list[float] = [1.0, 2.0]

    def build(self) -> Engine:
        return Engine(self.thrust)


class Electric(StructConfig, type="electric"):
    power: float
    cells: int = 12


class Vehicle(StructConfig):
    name: str
    engine: UnionConfig[Turbofan, Electric]
    mass: float | None = None
    J_B: np.ndarray = np.eye(3)
    mode: Literal["fast", "slow", 3] = "fast"
    spare: UnionConfig[Turbofan | Electric] | None = None
    wings: list[Electric] = []
    tanks: dict[str, Turbofan] = {}
    size: tuple[float, float] = (1.0, 2.0)
    trims: tuple[float, ...] = ()
    data: Path = Path("data.csv")
    flag: bool = False
    engine_struct: Engine = Engine(1.0)
    steps: npt.NDArray[np.int64] = field(default_factory=lambda: np.arange(2))
    extra: Any = None


MINIMAL = {"name": "a", "engine": {"type": "turbofan", "thrust": 1}}


def vehicle(**changes):
    return Vehicle.from_dict({**MINIMAL, **changes})


FULL = {
    "mass": 10,
    "J_B": [[1, 0], [0, 2.5]],
    "mode": "slow",
    "spare": {"type": "electric", "power": 2.0},
    "wings": [{"power": 1}, {"type": "electric", "power": 2, "cells": 3}],
    "tanks": {"left": {"thrust": 1, "table": [3]}},
    "size": [3, 4],
    "trims": [1, 2, 3],
    "data": "other.csv",
    "flag": True,
    "engine_struct": {"thrust": 5},
    "steps": [[1, 2]],
    "extra": {"free": [1, "text"]},
}


def test_everything_that_is_accepted():
    v = vehicle(**FULL)
    assert v.engine == Turbofan(thrust=1.0) and isinstance(v.engine.thrust, float)
    assert v.engine.build() == Engine(1.0)
    assert v.mass == 10.0 and isinstance(v.mass, float)
    np.testing.assert_array_equal(v.J_B, [[1.0, 0.0], [0.0, 2.5]])
    assert v.J_B.dtype == np.float64 and v.steps.dtype == np.int64
    assert v.spare == Electric(power=2.0)
    assert v.wings == [Electric(power=1.0), Electric(power=2.0, cells=3)]
    assert v.tanks == {"left": Turbofan(thrust=1.0, table=[3.0])}
    assert v.size == (3.0, 4.0) and v.trims == (1.0, 2.0, 3.0)
    assert v.data == Path("other.csv")
    assert v.engine_struct == Engine(5.0)
    assert v.extra == {"free": [1, "text"]}
    assert vehicle(mode=3).mode == 3 and vehicle(mass=None).mass is None
    assert is_struct(v) and v.replace(name="b").name == "b"


@pytest.mark.parametrize("suffix", [".yaml", ".yml", ".json"])
def test_files_round_trip(tmp_path, suffix):
    v = vehicle(**FULL)
    path = tmp_path / f"vehicle{suffix}"
    v.save(path)
    assert Vehicle.load(path) == v
    assert Vehicle.load(str(path)) == v
    assert Vehicle.from_dict(json.loads(json.dumps(v.to_dict()))) == v


def test_to_dict_is_plain_and_names_the_type():
    assert vehicle().to_dict()["engine"] == {"type": "turbofan", "thrust": 1.0, "table": [1.0, 2.0]}
    assert vehicle().to_dict()["J_B"] == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    "change, words",
    [
        (
            {"engine": {"type": "turbofan", "thrust": "abc"}},
            "engine.thrust: expected a number, got 'abc'",
        ),
        (
            {"engine": {"type": "turbofan", "thrust": "1.0"}},
            "engine.thrust: expected a number, got '1.0'",
        ),
        (
            {"engine": {"type": "turbofan", "thrust": True}},
            "engine.thrust: expected a number, got True",
        ),
        ({"engine": {"type": "turbofan"}}, "engine.thrust: missing; Turbofan needs a number"),
        (
            {"engine": {"type": "rocket"}},
            "engine.type: expected one of 'turbofan', 'electric', got 'rocket'",
        ),
        (
            {"engine": {"thrust": 1.0}},
            "engine.type: expected a 'type' (one of 'turbofan', 'electric'), got None",
        ),
        (
            {"engine": {"type": "turbofan", "thrst": 1}},
            "engine.thrst: unknown key of Turbofan; did you mean 'thrust'?",
        ),
        ({"engine": 3}, "engine: expected a Turbofan or an Electric, got 3"),
        ({"nam": "x"}, "nam: unknown key of Vehicle; did you mean 'name'?"),
        ({"zzz": "x"}, "zzz: unknown key of Vehicle; known names: name, engine, mass"),
        ({"name": 3}, "name: expected text, got 3"),
        ({"mass": "heavy"}, "mass: expected a number, got 'heavy'"),
        ({"J_B": [[1, 0], [0, "x"]]}, "J_B[1][1]: expected a number, got 'x'"),
        ({"J_B": [[1, 0], [0]]}, "J_B: the rows of an array must have equal lengths"),
        ({"J_B": 3}, "J_B: expected an array (nested lists of numbers), got 3"),
        ({"steps": [1.5]}, "steps[0]: expected an integer, got 1.5"),
        ({"mode": "medium"}, "mode: expected one of 'fast', 'slow', 3, got 'medium'"),
        ({"mode": 3.0}, "mode: expected one of 'fast', 'slow', 3, got 3.0"),
        ({"wings": [{"power": 1}, {"power": "x"}]}, "wings[1].power: expected a number, got 'x'"),
        ({"wings": {"power": 1}}, "wings: expected a list, got {'power': 1}"),
        (
            {"wings": [{"type": "turbofan", "power": 1}]},
            "wings[0].type: expected 'electric', got 'turbofan'",
        ),
        (
            {"tanks": {"left": {"thrust": None}}},
            "tanks['left'].thrust: expected a number, got None",
        ),
        ({"tanks": {1: {"thrust": 1}}}, "key of tanks: expected text, got 1"),
        ({"tanks": [1]}, "tanks: expected a mapping, got [1]"),
        ({"tanks": {"a": 1}}, "tanks['a']: expected a Turbofan, got 1"),
        ({"size": [1, 2, 3]}, "size: expected a list of 2, got [1, 2, 3]"),
        ({"size": 1}, "size: expected a list, got 1"),
        ({"flag": 1}, "flag: expected true or false, got 1"),
        ({"data": 5}, "data: expected a file name, got 5"),
        ({"engine_struct": {"thrust": "x"}}, "engine_struct.thrust: expected a number, got 'x'"),
        (
            {"engine_struct": {"thrsut": 1}},
            "engine_struct.thrsut: unknown key of Engine; did you mean 'thrust'?",
        ),
        ({"wings": [{"power": 1, "cells": 2.0}]}, "wings[0].cells: expected an integer, got 2.0"),
        ({"extra": 1, 5: 2}, "5: unknown key of Vehicle"),
    ],
)
def test_refusals_give_the_full_path(change, words):
    with pytest.raises(StructError) as caught:
        vehicle() if not change else Vehicle.from_dict({**MINIMAL, **change})
    assert str(caught.value).startswith(words)


def test_constructor_checks_too():
    assert Turbofan(thrust=1).thrust == 1.0
    with pytest.raises(StructError, match="thrust: expected a number, got 'abc'"):
        Turbofan(thrust="abc")
    with pytest.raises(StructError, match="thrust: missing"):
        Turbofan()
    with pytest.raises(StructError, match="expected a mapping of the fields of Vehicle, got"):
        Vehicle.from_dict([1])


def test_arrays_are_accepted_as_they_are():
    assert vehicle(J_B=np.eye(2, dtype=int)).J_B.dtype == np.float64
    with pytest.raises(StructError, match="steps: expected an array of int64"):
        vehicle(steps=np.array([1.5]))
    assert vehicle(mass=np.float64(2.0)).mass == 2.0
    assert vehicle(J_B=[np.float64(1.0), 2]).J_B.tolist() == [1.0, 2.0]


def test_further_checks_in_post_init_get_the_path():
    class Positive(StructConfig):
        x: float

        def __post_init__(self):
            if self.x <= 0:
                raise ValueError("x must be positive")

    class Holder(StructConfig):
        inner: Positive

    with pytest.raises(StructError, match=r"^inner: x must be positive"):
        Holder.from_dict({"inner": {"x": -1}})


def test_inherited_configurations():
    class Base(StructConfig, type="base"):
        a: float = 1.0

    class Sub(Base, type="sub"):
        b: float

    class Unnamed(Base):
        c: float = 0.0

    assert Sub.from_dict({"type": "sub", "b": 2}) == Sub(a=1.0, b=2.0)
    assert Unnamed.config_type is None
    with pytest.raises(StructError, match="type: unknown key of"):
        Unnamed.from_dict({"type": "base"})


def test_plain_dataclass_fields():
    @dataclass
    class Limits:
        low: float
        high: float = 1.0

    class Holder(StructConfig):
        limits: Limits
        number: int | float | str = 0

    assert Holder.from_dict({"limits": {"low": 0}}).limits == Limits(0.0)
    assert type(Holder(limits=Limits(0.0), number=2).number) is int
    assert type(Holder(limits=Limits(0.0), number=2.5).number) is float
    with pytest.raises(StructError, match="number: expected an integer or a number or text, got"):
        Holder(limits=Limits(0.0), number=[])


def test_other_annotations():
    class Holder(StructConfig):
        h: T

    with pytest.raises(StructError, match="h: a configuration cannot hold values of type ~T"):
        Holder(h=1)

    class Good(StructConfig):
        a: Annotated[float, "metres"] = 0.0
        b: Sequence[int] = ()
        c: Mapping[str, float] = {}
        d: list = []
        e: npt.NDArray[np.bool_] = np.zeros(1, bool)
        g: complex = 1j

    made = Good(a=1, b=[1, 2], c={"x": 1}, d=["a", 1], e=[True, False])
    assert (type(made.a), made.b, made.c, made.d) == (float, [1, 2], {"x": 1.0}, ["a", 1])
    assert made.e.dtype == np.bool_
    with pytest.raises(StructError, match=r"e\[0\]: expected true or false, got 1"):
        Good(e=[1])
    with pytest.raises(StructError, match="g: expected a complex, got 'x'"):
        Good(g="x")


def test_mistakes_in_the_definition():
    class NoType(StructConfig):
        x: float

    class Same(StructConfig, type="electric"):
        x: float

    with pytest.raises(
        StructError, match=r"UnionConfig: expected StructConfig classes with a type"
    ):
        UnionConfig[Turbofan, NoType]
    with pytest.raises(StructError, match="type names must differ"):
        UnionConfig[Electric, Same]
    with pytest.raises(StructError, match="a field cannot be called 'type'"):

        class Clash(StructConfig, type="clash"):
            type: str

    class Unknown(StructConfig):
        x: "Missing"  # noqa: F821

    with pytest.raises(StructError, match="annotation 'Missing' cannot be found"):
        Unknown(x=1)
    with pytest.raises(StructError, match=r"Electric does not define build\(\)"):
        Electric(power=1.0).build()


def load_text(tmp_path, text, name="c.yaml"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Electric.load(path)


def test_yaml_numbers(tmp_path):
    for text in ("1e-6", "1.e3", "-2.5E+3", "+1e6", "3", ".5e1", "010"):
        assert load_text(tmp_path, f"power: {text}").power == float(text)
    with pytest.raises(StructError, match="power: expected a number, got '1e-6'"):
        load_text(tmp_path, "power: '1e-6'")
    with pytest.raises(StructError, match="expected a number, got '1e-6x'"):
        load_text(tmp_path, "power: 1e-6x")


def test_yaml_anchors_and_merges(tmp_path):
    text = "power: &p 3\ncells: *p\n"
    assert load_text(tmp_path, text) == Electric(power=3.0, cells=3)
    text = "tanks: {a: &a {thrust: 1, table: [5]}, b: {<<: *a, thrust: 2}}\n"
    path = tmp_path / "v.yaml"
    path.write_text("name: n\nengine: {type: electric, power: 1}\n" + text)
    assert Vehicle.load(path).tanks["b"] == Turbofan(thrust=2.0, table=[5.0])


def test_exponential_aliases_are_refused_quickly(tmp_path):
    levels = [f"  - &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]" for i in range(1, 30)]
    text = "\n".join(["power:", "  - &l0 [x]", *levels])
    with pytest.raises(StructError, match=r"its aliases \(\*name\) stand for [\d,]+ values"):
        load_text(tmp_path, text)


@pytest.mark.parametrize(
    "name, text, words",
    [
        ("c.yaml", "power: [1", "c.yaml: not valid YAML"),
        ("c.json", "{", "c.json: not valid JSON"),
        ("c.json", '{"power": 1, "power": 2}', "c.json: the key 'power' is given twice"),
        ("c.yaml", "power: 1\npower: 2\n", "c.yaml: the key 'power' is given twice"),
        ("c.yaml", "? [1, 2]\n: 3\n", "a key must be text or a number"),
        ("c.yaml", "", "c.yaml: the configuration: expected a mapping"),
        ("c.yaml", "power: !!python/object/apply:os.system ['true']", "not valid YAML"),
        ("c.yaml", "power: &a [*a]", "c.yaml: "),
        ("c.yaml", "power: abc", "c.yaml: power: expected a number, got 'abc'"),
        ("c.json", "[" * 100_000, "nested too deeply"),
        ("c.yaml", b"power: \xff", "not UTF-8"),
        ("c.yaml", "power: 2001-99-99", "c.yaml: "),
        ("c.toml", "power = 1", "must end in one of .yaml, .yml, .json"),
    ],
)
def test_unusable_files(tmp_path, name, text, words):
    with pytest.raises(StructError) as caught:
        load_text(tmp_path, text, name)
    assert words in str(caught.value)


def test_unreadable_files(tmp_path):
    with pytest.raises(StructError, match="cannot be read: No such file"):
        Electric.load(tmp_path / "none.yaml")
    with pytest.raises(StructError, match="cannot be written"):
        Electric(power=1.0).save(tmp_path / "none" / "x.yaml")


numbers = st.floats(allow_nan=False)


@pytest.mark.long
@given(numbers, st.integers(), st.lists(numbers), st.text())
def test_random_values_survive_yaml(tmp_path_factory, power, cells, table, name):
    v = Vehicle(
        name=name, engine=Turbofan(thrust=power, table=table), spare=Electric(power=1, cells=cells)
    )
    path = tmp_path_factory.mktemp("config") / "v.yaml"
    v.save(path)
    assert Vehicle.load(path) == v
