"""Stateful functions: which outputs become the inputs of the next step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from archimedes.embedded.c_types.struct_layout import Branch, Field, Place, Root
from archimedes.embedded.model import Carry
from archimedes.errors import CodegenError
from archimedes.graph.dtypes import DTYPES

__all__ = ["carry_statements", "state_pairs"]


def state_pairs(state: Any, inputs: Sequence[Branch], results: Sequence[Branch]) -> dict[str, str]:
    """Return argument to result, checked; a name alone means a result of the same name."""
    if state is None:
        return {}
    if isinstance(state, str):
        state = (state,)
    pairs = dict(state) if isinstance(state, Mapping) else {name: name for name in state}
    for given, known, what in (
        (pairs, inputs, "an input of the step"),
        (pairs.values(), results, "a result"),
    ):
        names = [branch.name for branch in known]
        for name in given:
            if name not in names:
                raise CodegenError(
                    f"codegen: state names {name!r}, which is not {what}: there are {names}; write "
                    "state={'argument': 'result'}, and name results with return_names"
                )
    return pairs


def carry_statements(pairs: Mapping[str, str], inputs: Root, outputs: Root) -> list[Carry]:
    """Return the assignments that make outputs the inputs of the next step."""
    statements: list[Carry] = []
    for argument, result in pairs.items():
        to, source = _under(inputs, argument), _under(outputs, result)
        _check_same(argument, to, result, source)
        a, b = _field(inputs, to), _field(outputs, source)
        if a is not None and b is not None and a.struct is not None and a.struct == b.struct:
            statements.append(Carry(f"in->{a.name}", f"out->{b.name}", False))
            continue
        for x, y in zip(to, source):
            statements.append(Carry(f"in->{x.access}", f"out->{y.access}", bool(x.leaf.shape)))
    return statements


def _under(root: Root, name: str) -> list[Place]:
    """Return the leaves of one argument or result."""
    found = []
    for place in root.places:
        rest = place.path.removeprefix(name)
        if place.path.startswith(name) and (not rest or rest[0] in ".["):
            found.append(place)
    return found


def _field(root: Root, places: Sequence[Place]) -> Field | None:
    """Return the member that holds these leaves."""
    if not places:
        return None
    name = places[0].access.split(".")[0]
    return next(field for field in root.struct.fields if field.name == name)


def _check_same(argument: str, to: list[Place], result: str, source: list[Place]) -> None:
    if len(to) != len(source):
        raise CodegenError(
            f"codegen: state {argument!r} has {len(to)} arrays but the result {result!r} has "
            f"{len(source)}: return a value of the same structure"
        )
    for x, y in zip(to, source):
        if x.leaf != y.leaf:
            raise CodegenError(
                f"codegen: state {x.path} is {DTYPES[x.leaf.code]}{list(x.leaf.shape)} but the "
                f"result {y.path} is {DTYPES[y.leaf.code]}{list(y.leaf.shape)}: give an example of "
                "the dtype and shape that the function returns"
            )
