"""The arguments and results of a recorded function as branches of C structs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.embedded.c_types.c_values import Scalars
from archimedes.embedded.c_types.struct_layout import Branch, LeafShape, label_name
from archimedes.embedded.preparation import Prepared
from archimedes.errors import CodegenError
from archimedes.graph.dtypes import I64, is_float
from archimedes.tree.specialise import field_names
from archimedes.tree.treedef import TreeDef

__all__ = ["Arguments", "argument_branches", "fixed_values", "result_branches"]


@dataclass(frozen=True)
class Arguments:
    """Branches of the arguments; shape, example value and path of each traced leaf."""

    branches: tuple[Branch, ...]
    leaves: tuple[LeafShape, ...]
    values: tuple[np.ndarray, ...]
    paths: tuple[str, ...]

    def check_values(self, types: Scalars, nonfinite: bool) -> None:
        """Raise for example values that C's types or a target's init cannot hold."""
        for leaf, value, path in zip(self.leaves, self.values, self.paths):
            stored = types.dtype(leaf.code)
            if leaf.code == I64:
                limits = np.iinfo(stored)
                bad = (value < limits.min) | (value > limits.max)
                why = f"does not fit in {types.c_type(leaf.code)}: leave int_type=int"
            elif is_float(leaf.code):
                with np.errstate(over="ignore"):
                    bad = ~np.isfinite(value.astype(stored)) & (not nonfinite)
                kind = types.c_type(leaf.code)
                why = (
                    f"is not a finite default value of type {kind}: give a finite example, or pass "
                    "options={'nonfinite': True} if that is meant"
                )
            else:
                continue
            if bad.any():
                at = np.argwhere(bad)[0]
                place = path + "".join(f"[{k}]" for k in at)
                raise CodegenError(f"codegen: {place} = {value[tuple(at)]} {why}")


def argument_branches(prepared: Prepared) -> Arguments:
    """Return what the traced arguments look like in C; static leaves have no place in it."""
    specs = iter(prepared.recording.leaves)
    branches: list[Branch] = []
    shapes: list[LeafShape] = []
    values: list[np.ndarray] = []
    paths: list[str] = []
    for name, example in prepared.arguments.items():
        leaves, treedef = tree.flatten(example)
        numbered: list[tuple[int, LeafShape | None]] = []
        for leaf, path in zip(leaves, treedef.paths(name)):
            spec = next(specs)
            if not spec.traced:
                numbered.append((-1, None))
                continue
            shape = LeafShape(spec.code, spec.shape)
            numbered.append((len(shapes), shape))
            shapes.append(shape)
            values.append(np.asarray(leaf))
            paths.append(path)
        branches.append(Branch(name, treedef, tuple(numbered)))
    return Arguments(tuple(branches), tuple(shapes), tuple(values), tuple(paths))


def result_branches(
    prepared: Prepared, return_names: Sequence[str] | None
) -> tuple[list[Branch], list[LeafShape]]:
    """Return what the results look like in C: the elements of a tuple by ``return_names`` or as
    y0, y1, ..., the values of a dict or namedtuple by their names, anything else as ``y``.
    """
    recording = prepared.recording
    shapes = [LeafShape(out.spec.code, out.spec.shape) for out in recording.outs]
    names, trees = _named_results(prepared, return_names)
    branches, at = [], 0
    for name, treedef in zip(names, trees):
        stop = at + treedef.num_leaves
        branches.append(Branch(name, treedef, tuple(enumerate(shapes[at:stop], at))))
        at = stop
    return branches, shapes


def _named_results(
    prepared: Prepared, return_names: Sequence[str] | None
) -> tuple[list[str], list[TreeDef]]:
    root = prepared.recording.out_tree
    several = list(root.children)
    is_tuple = root.kind.cls in (tuple, list)
    is_named = hasattr(root.kind.cls, "_fields") or issubclass(root.kind.cls, dict)
    if return_names is not None:
        names = [str(name) for name in return_names]
        if len(names) == 1 and not (is_tuple and len(several) == 1):
            return names, [root]
        if len(names) != len(several):
            raise CodegenError(
                f"codegen: {prepared.name}() returns {len(several) if is_tuple else 1} values but "
                f"return_names lists {len(names)}: {names}"
            )
        return names, several
    if is_tuple:
        return [f"y{k}" for k in range(len(several))], several
    if is_named:
        labels = root.kind.labels(root.aux, len(several))
        return [label_name(label) for label in labels], several
    return ["y"], [root]


def fixed_values(prepared: Prepared) -> Iterator[tuple[str, Any]]:
    """Yield path and value of what is fixed: static arguments, static leaves and fields."""
    yield from prepared.fixed.items()
    for name, example in prepared.arguments.items():
        leaves, treedef = tree.flatten(example)
        for leaf, path in zip(leaves, treedef.paths(name)):
            if isinstance(leaf, (bool, str)):
                yield path, leaf
        yield from _static_fields(treedef, name)


def _static_fields(treedef: TreeDef, path: str) -> Iterator[tuple[str, Any]]:
    if hasattr(treedef.kind.cls, "__dataclass_fields__"):
        for name, value in zip(field_names(treedef.kind.cls)[1], treedef.aux):
            yield f"{path}.{name}", value
    labels = treedef.kind.labels(treedef.aux, len(treedef.children))
    for label, child in zip(labels, treedef.children):
        yield from _static_fields(child, path + label)
