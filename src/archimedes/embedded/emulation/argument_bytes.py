"""Arguments as the bytes of C structs, and results from them, leaf after leaf."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import tree
from archimedes.embedded.project import CProject
from archimedes.errors import CodegenError
from archimedes.graph.dtypes import I64
from archimedes.tree.content import content_key

__all__ = ["pack_arguments", "unpack_results"]


def pack_arguments(project: CProject, arguments: tuple[Any, ...], call: int = 0) -> bytes:
    """Return the leaves of ``<name>_in_t`` for one call, in order and without padding.

    Arguments must have the form of codegen's examples; static ones and parameters, which are part
    of the code, their values. ``call`` is named in errors.
    """
    leaves = _leaves(project, arguments, f"inputs[{call}]")
    return b"".join(leaves[place.number].tobytes() for place in project.model.inputs.places)


def _leaves(project: CProject, arguments: tuple[Any, ...], where: str) -> list[np.ndarray]:
    prepared, model = project.prepared, project.model
    try:
        values = prepared.signature.bind(arguments, {})
    except TypeError as error:
        raise CodegenError(f"{where}: {error}") from error
    for name, wanted in prepared.fixed.items():
        if content_key(values[name]) != content_key(wanted):
            raise CodegenError(
                f"{where}: argument {name} is {values[name]!r}, but the code was generated for "
                f"{wanted!r}, which is part of it"
            )
    dynamic = {name: values[name] for name in prepared.arguments}
    flat, treedef = tree.flatten(tuple(dynamic.values()))
    wanted_leaves, wanted_tree = tree.flatten(tuple(prepared.arguments.values()))
    if not wanted_tree.matches(treedef):
        raise CodegenError(
            f"{where} has another structure than the arguments that the code was generated for: "
            f"{treedef} instead of {wanted_tree}"
        )
    paths = [p for name, sub in zip(dynamic, treedef.children) for p in sub.paths(name)]
    bound = {place.number: place for place in model.parameters.places}
    result: list[np.ndarray] = []
    for leaf, wanted, spec, path in zip(flat, wanted_leaves, prepared.recording.leaves, paths):
        if not spec.traced:
            if content_key(leaf) != content_key(wanted):
                raise CodegenError(f"{where}: {path} is {leaf!r}, but {wanted!r} is in the code")
            continue
        if np.shape(leaf) != spec.shape:
            raise CodegenError(
                f"{where}: {path} has shape {np.shape(leaf)}, but the code was generated for "
                f"{spec.shape}"
            )
        stored = _stored(project, np.asarray(leaf), spec.code, f"{where}: {path}")
        if len(result) in bound and not np.array_equal(stored, np.asarray(wanted, stored.dtype)):
            raise CodegenError(
                f"{where}: {path} is a parameter, with the value {wanted!r} in the code: generate "
                "the code again to change it, or leave it out of parameters"
            )
        result.append(stored)
    return result


def _stored(project: CProject, value: np.ndarray, code: int, what: str) -> np.ndarray:
    """Return the value in the type that C stores."""
    dtype = project.model.types.dtype(code)
    if code == I64 and value.size:
        limits = np.iinfo(dtype)
        if value.min() < limits.min or value.max() > limits.max:
            raise CodegenError(f"{what} does not fit in {dtype}: leave int_type=int")
    with np.errstate(over="ignore"):
        return value.astype(dtype)


def unpack_results(project: CProject, data: bytes) -> Any:
    """Return the result tree from the leaves of ``<name>_out_t``, in order and without padding."""
    model, recording = project.model, project.prepared.recording
    leaves = [np.zeros(leaf.shape, model.types.dtype(leaf.code)) for leaf in model.out_leaves]
    at = 0
    for place in model.outputs.places:
        stop = at + leaves[place.number].nbytes
        block = np.frombuffer(data[at:stop], leaves[place.number].dtype)
        leaves[place.number] = block.reshape(place.leaf.shape).copy()
        at = stop
    return recording.out_tree.unflatten([leaf if leaf.ndim else leaf[()] for leaf in leaves])
