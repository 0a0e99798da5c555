"""The C files of a project: header, source, C++ wrapper, and the layout of Archimedes 0.5."""

from __future__ import annotations

from pathlib import Path

from archimedes.backends.c import assemble
from archimedes.embedded.c_model import Model
from archimedes.embedded.c_structs import Field, Root, Struct, initialiser
from archimedes.embedded.c_text import ascii_text, block_comment, fill_template, shape_text

#: What the names of the files and functions that hold the algorithm end with, in the original
#: layout.
KERNEL = "_kernel"


def source_files(model: Model) -> dict[str, str]:
    """Return the files that a program must be compiled with, by name."""
    return {f"{model.name}.h": header_text(model), f"{model.name}.c": source_text(model)}


def write_sources(model: Model, folder: Path) -> None:
    """Write these files into a folder."""
    for name, text in source_files(model).items():
        (folder / name).write_text(text, encoding="ascii", newline="\n")


# ---- header -----------------------------------------------------------------------------


def header_text(model: Model) -> str:
    """Return ``<name>.h``."""
    name, upper = model.name, model.name.upper()
    sizes = [
        f"#define {upper}_SIZE_{role.upper()}_{field.name} {field.size}"
        for role, struct in model.roots()
        for field in struct.fields
    ]
    constants, carry = [], []
    if model.constants:
        constants = ["", "/* Values that were fixed when this was generated. */"]
        constants += [f"#define {upper}_{macro} {text}" for macro, text in model.constants]
    if model.carries:
        pairs = ", ".join(f"in->{a} = out->{b}" for a, b in model.state)
        comment = f"/* Make the new state the input of the next step: {pairs}. */"
        carry = ["", comment, f"void {name}_carry({name}_in_t *in, const {name}_out_t *out);"]
    return fill_template(
        "header.h.in",
        name=name,
        NAME=upper,
        comment=block_comment([model.notice, *model.description]),
        version=model.version,
        generator=model.generator,
        hash=model.digest,
        short_hash=model.digest[:8],
        sizes="".join(f"\n{line}" for line in sizes),
        constants="".join(f"\n{line}" for line in constants),
        structs="\n\n".join(_typedef(struct, model) for struct in model.structs),
        work=_work(model),
        carry="".join(f"\n{line}" for line in carry),
    )


def _typedef(struct: Struct, model: Model) -> str:
    if not struct.fields:
        return (
            f"/* {ascii_text(struct.origin)}: nothing */\n"
            f"typedef struct {{\n    unsigned char unused;\n}} {struct.c_name};"
        )
    declared = [_declaration(field, model) for field in struct.fields]
    wide = min(max(len(text) for text in declared), 40)
    lines = []
    for field, text in zip(struct.fields, declared):
        note = _note(field)
        lines.append(f"    {text:<{wide}} /* {note} */" if note else f"    {text}")
    head = f"/* {ascii_text(struct.origin)} */\ntypedef struct {{\n"
    return head + "\n".join(lines) + f"\n}} {struct.c_name};"


def _declaration(field: Field, model: Model) -> str:
    if field.struct is not None:
        return f"{field.struct.c_name} {field.name};"
    dims = "".join(f"[{n}]" for n in field.shape.shape)
    return f"{model.types.c_type(field.shape.code)} {field.name}{dims};"


def _note(field: Field) -> str:
    """Return shape, units and description of a member, for its comment."""
    shape = shape_text(field.leaf.shape) if field.leaf is not None else ""
    units = f"[{field.units}]" if field.units else ""
    return " ".join(ascii_text(part) for part in (shape, units, field.text) if part)


def _work(model: Model) -> str:
    name = model.name
    if not model.source.workspace_type:
        return (
            "/* Scratch memory of the step: none is needed, all of it is on the stack. */\n"
            f"typedef struct {{\n    unsigned char unused;\n}} {name}_work_t;"
        )
    return (
        f"{model.source.types.strip()}\n\n/* Scratch memory of the step: nothing in it needs to be "
        f"kept between calls. */\ntypedef {model.source.workspace_type} {name}_work_t;"
    )


# ---- source -----------------------------------------------------------------------------

#: GCC fuses multiplications and additions unless told not to, and the Arduino tools take no flags.
_NO_CONTRACTION = """\
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=off")
#endif
"""

#: On AVR a double is a float.
_DOUBLES = """
/* Fails to compile where double has 32 bits: generate with float_type=np.float32 there. */
typedef char {name}_double_has_64_bits[sizeof(double) == 8 ? 1 : -1];
"""


def source_text(model: Model) -> str:
    """Return ``<name>.c``."""
    head = block_comment([model.notice, *model.description[:1]])
    include = f'#include "{model.name}.h"\n'
    if not model.parameters.is_empty:
        include += "\n" + _values(
            model, model.parameters, "params", "Parameters: change values here, or generate again."
        )
    if model.types.float_type.itemsize == 8:
        include += _DOUBLES.format(name=model.name)
    parts = [
        head,
        _NO_CONTRACTION,
        assemble([model.source], types=False, include=include),
        _values(model, model.inputs, "defaults", "Values that the inputs have after init."),
        *(fill_template(f"{part}.c.in", name=model.name) for part in _parts(model)),
        _step(model),
        _carry(model),
    ]
    return "\n".join(part for part in parts if part)


def _values(model: Model, root: Root, what: str, comment: str) -> str:
    leaves = (model.values[member.number] for member in root.members)
    body = initialiser(root.struct, leaves, model.types) if root.members else "{0}"
    name = f"{model.name}_{root.role}_t {model.name}_{what}"
    return f"/* {comment} */\nstatic const {name} = {body};\n"


def _parts(model: Model) -> list[str]:
    """Return the templates of what stands before the step; one clears memory, one copies it."""
    copies = any(carry.is_array for carry in model.carries)
    return ["clear", *(["copy"] if copies else []), "init"]


def _step(model: Model) -> str:
    name = model.name
    unused = {
        "in": model.inputs.is_empty,
        "out": model.outputs.is_empty,
        "work": not model.source.workspace_type,
    }
    lines = [f"    (void){word};" for word in unused if unused[word]]
    indent = " " * (len(model.source.name) + 5)
    lines.append(f"    {model.source.name}(" + f",\n{indent}".join(model.call) + ");")
    body = "\n".join(lines)
    return (
        f"void {name}_step(const {name}_in_t *in, {name}_out_t *out, {name}_work_t *work)\n"
        f"{{\n{body}\n}}\n"
    )


def _carry(model: Model) -> str:
    if not model.carries:
        return ""
    name = model.name
    lines = [
        f"    {name}_copy({carry.to}, {carry.source}, sizeof {carry.to});"
        if carry.is_array
        else f"    {carry.to} = {carry.source};"
        for carry in model.carries
    ]
    body = "\n".join(lines)
    return f"void {name}_carry({name}_in_t *in, const {name}_out_t *out)\n{{\n{body}\n}}\n"


# ---- other layouts ----------------------------------------------------------------------


def wrapper_text(model: Model) -> str:
    """Return ``<name>.hpp``: a class around the C functions, for C++11 and later."""
    name = model.name
    return fill_template(
        "wrapper.hpp.in",
        name=name,
        NAME=name.upper(),
        comment=block_comment([model.notice, f"{name} as a C++ class; link with {name}.c."]),
        **{"class": "".join(word[:1].upper() + word[1:] for word in name.split("_") if word)},
        carry=f"        {name}_carry(&in, &out);\n" if model.carries else "",
        and_carry=" and carry the state over" if model.carries else "",
    )


def original_files(model: Model) -> dict[str, str]:
    """Return C files with the names that programs written for Archimedes 0.5 use, by path.

    The name of the model ends with ``_kernel``: the algorithm is in ``<name>_kernel.c``.
    ``<name>.h`` and ``<name>.c`` give it the names ``<name>_arg_t``, ``<name>_res_t``,
    ``<name>_work_t`` and functions ``int <name>_init`` and ``int <name>_step`` that return 0, so
    that a ``main.c`` which uses them builds as it is.
    """
    name = model.name.removesuffix(KERNEL)
    words = {
        "name": name,
        "NAME": name.upper(),
        "kernel": model.name,
        "comment": block_comment([model.notice, *model.description[:1]]),
        "arguments": f"({name}_arg_t *arg, {name}_res_t *res, {name}_work_t *work)",
    }
    own = {f"{name}.{end}": fill_template(f"original.{end}.in", **words) for end in ("h", "c")}
    return own | source_files(model)
