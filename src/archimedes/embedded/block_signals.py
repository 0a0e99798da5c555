"""What the arguments and results of a project are to a block or a node: inputs, parameters, state.

Every leaf of the structs is a signal of its own, called after its path (``vehicle_mass``). An
argument that is named in ``parameters`` is set by a person; one with a result that replaces it is
kept inside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from archimedes.embedded.c_model import Model
from archimedes.embedded.c_structs import Field, Root, Struct
from archimedes.errors import CodegenError


class Signal(NamedTuple):
    """A leaf: its name, its place in the C struct, C type, shape, unit, text, default value."""

    name: str
    access: str
    c_type: str
    shape: tuple[int, ...]
    units: str
    text: str
    value: np.ndarray

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return int(np.prod(self.shape))


class Signals(NamedTuple):
    """The signals of a project by what they are; empty leaves are left out."""

    inputs: list[Signal]
    parameters: list[Signal]
    states: list[Signal]
    outputs: list[Signal]


def find_signals(model: Model, parameters: Sequence[str]) -> Signals:
    """Return the signals of a project; `parameters` are arguments, and stay in its inputs."""
    known = [field.name for field in model.inputs.struct.fields] if model.inputs.members else []
    if unknown := [name for name in parameters if name not in known]:
        raise CodegenError(
            f"codegen: parameters names {unknown[0]!r}, which is not an argument of "
            f"{model.name}(): there are {known}"
        )
    kept = {argument for argument, _ in model.state}
    if both := [name for name in parameters if name in kept]:
        raise CodegenError(f"codegen: {both[0]!r} is both a parameter and a state: choose one")
    found = Signals([], [], [], [])
    for top, signal in _walk_root(model, model.inputs):
        parts = {top in kept: found.states, top in parameters: found.parameters}
        parts.get(True, found.inputs).append(signal)
    found.outputs.extend(signal for _, signal in _walk_root(model, model.outputs))
    return found


def _walk_root(model: Model, root: Root) -> Iterator[tuple[str, Signal]]:
    """Yield the leaves of a struct, each with the member of the struct that it belongs to."""
    fields = dict(_walk(root.struct, ""))
    used: set[str] = set()
    for member in root.members:
        if not member.leaf.size:
            continue
        field, name = fields[member.access], member.access.replace(".", "_")
        while name in used:
            name += "_"
        used.add(name)
        value: Any = model.values[member.number] if root is model.inputs else 0.0
        shape = member.leaf.shape
        yield (
            member.access.split(".")[0],
            Signal(
                name,
                member.access,
                model.types.c_type(member.leaf.code),
                shape,
                field.units,
                field.text,
                np.broadcast_to(np.asarray(value), shape),
            ),
        )


def _walk(struct: Struct, front: str) -> Iterator[tuple[str, Field]]:
    for field in struct.fields:
        if field.struct is not None:
            yield from _walk(field.struct, f"{front}{field.name}.")
        else:
            yield front + field.name, field
