"""From a recording to the model of a C project: names, structs, kernel, values."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from archimedes.backends.c import Argument, CSource, render
from archimedes.embedded.c_types.branches import (
    Arguments,
    argument_branches,
    fixed_values,
    result_branches,
)
from archimedes.embedded.c_types.c_values import Scalars
from archimedes.embedded.c_types.naming import Renames, c_identifier
from archimedes.embedded.c_types.struct_layout import Layout, LeafShape, Place, Root, Struct
from archimedes.embedded.files.user_regions import SIGNATURE
from archimedes.embedded.model import Model
from archimedes.embedded.preparation import Prepared
from archimedes.embedded.settings import Options
from archimedes.embedded.state_carrying import carry_statements, state_pairs
from archimedes.embedded.traceability import LineNotes
from archimedes.errors import CodegenError
from archimedes.graph.dtypes import B8, F64, I64
from archimedes.graph.retype import retype
from archimedes.version import __version__

__all__ = ["make_model"]

#: File names that would hide a header of the C library or a file of the project.
_FILES = frozenset(
    (
        *("assert", "complex", "ctype", "errno", "fenv", "float", "inttypes", "iso646", "limits"),
        *("locale", "math", "setjmp", "signal", "stdarg", "stdbool", "stddef", "stdint", "stdio"),
        *("stdlib", "string", "tgmath", "time", "wchar", "wctype", "main", "board", "Arduino"),
    )
)


def make_model(
    prepared: Prepared,
    types: Scalars,
    options: Options,
    *,
    parameters: Sequence[str],
    state: Any,
    return_names: Sequence[str] | None,
    input_notes: Mapping[str, str],
    output_notes: Mapping[str, str],
) -> Model:
    """Name everything, lay out the structs, render the kernel and gather the values."""
    if prepared.name == "<lambda>":
        raise CodegenError("codegen: a lambda has no name for files and functions: give name='...'")
    renames = Renames()
    name = renames.one(prepared.name, "the function's name", _FILES)
    arguments = argument_branches(prepared)
    arguments.check_values(types, options.nonfinite)
    results, out_leaves = result_branches(prepared, return_names)
    _check_parameters(parameters, prepared)
    free = [b for b in arguments.branches if b.name not in parameters]
    pairs = state_pairs(state, free, results)

    layout = Layout(name, renames)
    inputs = layout.root("in", free, input_notes)
    bound = [b for b in arguments.branches if b.name in parameters]
    params = layout.root("params", bound, input_notes)
    outputs = layout.root("out", results, output_notes)
    _check_notes(input_notes, inputs.paths | params.paths, "input_descriptions")
    _check_notes(output_notes, outputs.paths, "output_descriptions")

    source, call = _kernel(
        name, prepared, types, options, arguments, out_leaves, (inputs, params, outputs)
    )
    graph = prepared.recording.graph
    if types.float_type == np.float32:
        graph = retype(graph)
    return Model(
        name=name,
        version=options.version,
        generator=f"archimedes {__version__}",
        notice=f"{SIGNATURE} {__version__} from the Python function {prepared.name}.",
        description=tuple(_description(prepared, renames, types)),
        types=types,
        structs=tuple(layout.structs),
        inputs=inputs,
        parameters=params,
        outputs=outputs,
        leaves=arguments.leaves,
        values=arguments.values,
        out_leaves=tuple(out_leaves),
        constants=tuple(_constants(prepared, types)),
        carries=tuple(carry_statements(pairs, inputs, outputs)),
        state=tuple((c_identifier(a), c_identifier(b)) for a, b in pairs.items()),
        renamed=dict(renames.changed),
        call=tuple(call),
        source=source,
        graph=graph,
        digest=_digest(source, layout.structs, types),
    )


def _check_parameters(parameters: Sequence[str], prepared: Prepared) -> None:
    for name in parameters:
        if name not in prepared.arguments:
            raise CodegenError(
                f"codegen: parameters names {name!r}, which is not a traced argument of "
                f"{prepared.name}(): there are {list(prepared.arguments)}"
            )


def _check_notes(notes: Mapping[str, str], known: frozenset[str], what: str) -> None:
    for path in notes:
        if path not in known:
            raise CodegenError(
                f"codegen: {what} describes {path!r}, which does not exist: there are "
                f"{sorted(known)}"
            )


# ---- the kernel ----------------------------------------------------------------------------------


def _kernel(
    name: str,
    prepared: Prepared,
    types: Scalars,
    options: Options,
    arguments: Arguments,
    out_leaves: Sequence[LeafShape],
    roots: tuple[Root, Root, Root],
) -> tuple[CSource, list[str]]:
    """Render the graph, and return with it the expressions that the step calls it with."""
    inputs, params, outputs = roots
    held = {p.number: (p, "in->") for p in inputs.places}
    held.update({p.number: (p, f"{name}_params.") for p in params.places})
    found = {p.number: p for p in outputs.places}
    # The renderer's helpers begin with arc_.
    kernel = f"kernel_{name}" if name.startswith("arc_") else f"{name}_kernel"
    spelled = _Spelled("arc_", f"{kernel}_")
    given = [
        Argument(spelled(held[k][0].access if k in held else "empty"), leaf.code, leaf.shape)
        for k, leaf in enumerate(arguments.leaves)
    ]
    wanted = [
        Argument(
            spelled(f"out.{found[k].access}" if k in found else "empty"), leaf.code, leaf.shape
        )
        for k, leaf in enumerate(out_leaves)
    ]
    graph = prepared.recording.blocks
    source = render(
        graph,
        kernel,
        inputs=given,
        outputs=wanted,
        float_type=types.c_type(F64),
        int_type=types.c_type(I64),
        scratch=options.scratch,
        lines=LineNotes(graph) if options.traceability else None,
        optimize=prepared.optimize,
    )
    # Only init, step and carry are seen from outside.
    own = source.text.replace(f"{source.prototype}\n{{", f"static {source.prototype}\n{{")
    source = dataclasses.replace(source, text=own)
    call = [_passed(held[k][0], held[k][1], "") for k in sorted(held)]
    call += [_passed(found[k], "out->", "&") for k in sorted(found)]
    return source, call + (["work"] if source.workspace_type else [])


class _Spelled:
    """Names of the kernel's parameters: the path in the struct, made unique."""

    def __init__(self, *own: str) -> None:
        self.own = own
        self.taken: set[str] = set()

    def __call__(self, access: str) -> str:
        plain = c_identifier(access.replace(".", "_"))
        # The renderer's own names begin with these.
        plain = f"arg_{plain}" if plain.startswith(self.own) else plain
        name, k = plain, 2
        while name in self.taken:
            name, k = f"{plain}_{k}", k + 1
        self.taken.add(name)
        return name


def _passed(place: Place, holder: str, scalar: str) -> str:
    """Return the expression for a leaf: the address of its first element, or the number."""
    if place.leaf.shape:
        return f"&{holder}{place.access}" + "[0]" * len(place.leaf.shape)
    return f"{scalar}{holder}{place.access}"


# ---- what the header says ----------------------------------------------------------------------


def _description(prepared: Prepared, renames: Renames, types: Scalars) -> list[str]:
    paragraphs = [prepared.summary] if prepared.summary else []
    paragraphs.append(
        "Everything outside of regions marked USER CODE is replaced when this is generated again. "
        "Compile with -ffp-contract=off and without -ffast-math: results then are the same bits as "
        "in Python. No memory is allocated, and no function of the C library is called."
    )
    if renames.changed:
        lines = [f"{c_name} is {path}" for path, c_name in renames.changed.items()]
        paragraphs.append("Names that C could not keep:\n" + "\n".join(lines))
    return paragraphs


def _constants(prepared: Prepared, types: Scalars) -> list[tuple[str, str]]:
    """Return macros for the fixed values that C can write."""
    spelled = _Spelled()
    rows = []
    for path, value in fixed_values(prepared):
        text = _macro_text(value, types)
        if text is not None:
            rows.append((f"FIXED_{spelled(path)}", text))
    return rows


def _macro_text(value: Any, types: Scalars) -> str | None:
    if isinstance(value, (bool, np.bool_)):
        return types.literal(value, B8)
    if isinstance(value, (int, np.integer)) and abs(int(value)) < 2**31:
        return f"({int(value)})" if value < 0 else str(int(value))
    if isinstance(value, (float, np.floating)) and np.isfinite(value):
        return f"({types.literal(value, F64)})"
    if isinstance(value, str) and value.isascii() and value.isprintable():
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("??", "?\\?") + '"'
    return None


def _digest(source: CSource, structs: Sequence[Struct], types: Scalars) -> str:
    """Hash what the code computes and how its structs lie, but no default values or comments."""
    h = hashlib.blake2b(digest_size=8)
    text = "\n".join(x for x in source.text.split("\n") if not x.lstrip().startswith("/*"))
    for part in (source.prototype, source.types, text, *source.helpers.values()):
        h.update(part.encode() + b"\0")
    for struct in structs:
        h.update(repr((struct.c_name, [_shape(struct, types)])).encode())
    return h.hexdigest()


def _shape(struct: Struct, types: Scalars) -> list[Any]:
    return [
        (f.name, f.struct.c_name)
        if f.struct is not None
        else (f.name, types.c_type(f.leaf.code), f.leaf.shape)  # type: ignore[union-attr]
        for f in struct.fields
    ]
