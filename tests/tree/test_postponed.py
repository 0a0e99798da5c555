"""Structs whose annotations are strings, as `from __future__ import annotations` makes them."""

from __future__ import annotations

import dataclasses
import typing
from typing import ClassVar, Generic, TypeVar

import numpy as np

from archimedes import tree
from archimedes.tree import InitVar, StructConfig, UnionConfig, field, struct

T = TypeVar("T")


@struct
class Node(Generic[T]):
    value: T
    next: Node[T] | None = None
    count: ClassVar[int] = 3
    start: InitVar[float] = 0.0
    label: str = field(static=True, default="n")

    def __post_init__(self, start: float):
        assert start >= 0.0


@struct
class Base:
    gain: float = 1.0


@struct
class Sub(Base):
    _: dataclasses.KW_ONLY
    later: Later
    table: np.ndarray = np.zeros(2)
    names: typing.ClassVar[dict] = {}


@struct
class Later:
    x: float = 0.0


def test_fields_are_sorted_out_from_strings():
    assert [f.name for f in tree.fields(Node)] == ["value", "next", "label"]
    assert tree.leaves(Node(1.0, Node(2.0), start=1.0)) == [1.0, 2.0]
    sub = Sub(later=Later())
    assert [f.name for f in tree.fields(sub)] == ["gain", "later", "table"]
    assert Sub(later=Later()).table is not sub.table


def test_type_hints_resolve():
    assert typing.get_type_hints(Sub)["later"] is Later


def test_self_reference_and_local_names_in_configs():
    class Leafy(StructConfig, type="leafy"):
        size: float

    class Twig(StructConfig, type="twig"):
        parts: list[UnionConfig[Leafy, Twig]] = field(default_factory=list)

    made = Twig.from_dict({"parts": [{"type": "twig"}, {"type": "leafy", "size": 1}]})
    assert made == Twig(parts=[Twig(), Leafy(size=1.0)])


class Outer(StructConfig):
    inner: Inner
    late: LateConfig | None = None

    class Inner(StructConfig):
        x: float


class LateConfig(StructConfig):
    y: int


def test_inner_and_later_classes_in_configs():
    made = Outer.from_dict({"inner": {"x": 1}, "late": {"y": 2}})
    assert made.inner == Outer.Inner(x=1.0)
    assert made.late == LateConfig(y=2)
