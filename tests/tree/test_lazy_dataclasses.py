"""Dataclasses whose methods are written when they are first used: as those of ``dataclasses``."""

import copy
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace

import pytest

from archimedes.lazy_dataclasses import lazy_dataclass


def made(decorator):
    """Return classes with everything that is supported, made by one of the two."""

    @decorator(frozen=True)
    class Base:
        a: int
        tag: str = field(default="t", kw_only=True)

        def __post_init__(self):
            object.__setattr__(self, "double", 2 * self.a)

    @decorator(frozen=True)
    class Inner(Base):
        b: list = field(default_factory=list)
        hidden: int = field(default=3, repr=False, compare=False)

    @decorator
    class Open:
        x: float

    @decorator(eq=False)
    class Own:
        x: float

        def __repr__(self):
            return "own"

    return Base, Inner, Open, Own


KINDS = {"lazy": made(lazy_dataclass), "std": made(dataclass)}


def outcomes(kind):
    """Return what can be seen of the classes of a kind."""
    Base, Inner, Open, Own = KINDS[kind]
    one, same = Inner(1, [2], tag="u"), Inner(1, [2], 9, tag="u")
    found = [repr(x).split("<locals>.")[-1] for x in (Base(1), one, Open(2.0), Own(1.0))]
    found += [one == same, one != Inner(2), Base(1) == one, one.double, one.hidden, one.b]
    found += [hash(Base(1)) == hash(Base(1)), hash(Base(1)) == hash((1, "t")), Open.__hash__]
    found += [replace(one, a=5).double, [f.name for f in fields(Inner)], Inner.__match_args__]
    found += [Inner(1).b is Inner(1).b, Own(1.0) == Own(1.0), Open(1) == Open(1), Open(1) == 1]
    copied = copy.copy(one)
    found += [copied == one, Inner.__init__.__qualname__.split("<locals>.")[-1]]
    changed = Open(1.0)
    changed.x = 3.0
    return [*found, changed.x]


def test_they_are_as_those_of_the_library():
    assert outcomes("lazy") == outcomes("std")


@pytest.mark.parametrize("kind", KINDS)
def test_frozen_ones_refuse_changes(kind):
    Base, Inner, *_ = KINDS[kind]
    for make in (Base, Inner):
        one = make(1)
        with pytest.raises(FrozenInstanceError, match="cannot assign to field 'a'"):
            one.a = 2
        with pytest.raises(FrozenInstanceError, match="cannot delete field 'a'"):
            del one.a


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_arguments_name_the_class(kind):
    Base, Inner, *_ = KINDS[kind]
    with pytest.raises(TypeError, match=r"Base\.__init__\(\) missing 1 required .*'a'"):
        Base()
    with pytest.raises(TypeError, match=r"Inner\.__init__\(\) got an unexpected .*'c'"):
        Inner(1, c=2)


@lazy_dataclass(frozen=True)
class Kept:
    x: int


def test_they_are_pickled():
    assert pickle.loads(pickle.dumps(Kept(4))) == Kept(4)


def test_a_class_that_contains_itself_is_shown():
    *_, Open, _ = KINDS["lazy"]
    one = Open(1.0)
    one.x = one
    assert repr(one).endswith("Open(x=...)")


def test_nothing_is_compiled_before_the_first_object(monkeypatch):
    from archimedes import lazy_dataclasses

    written = []
    monkeypatch.setattr(
        lazy_dataclasses,
        "_written",
        lambda cls, frozen, made=lazy_dataclasses._written: (
            written.append(cls) or made(cls, frozen)
        ),
    )
    *_, Open, _ = made(lazy_dataclass)
    assert not written
    assert (Open(1.0).x, Open(x=2.0).x) == (1.0, 2.0)
    assert written == [Open]
