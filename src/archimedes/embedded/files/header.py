"""The public header of a generated project, and its C++ wrapper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archimedes.embedded.c_types.comments import ascii_text, block_comment, shape_text
from archimedes.embedded.c_types.struct_layout import Field, Struct

if TYPE_CHECKING:
    from archimedes.embedded.model import Model

__all__ = ["header_text", "wrapper_text"]


def header_text(model: Model) -> str:
    """Return ``<name>.h``."""
    upper = model.name.upper()
    structs = "\n\n".join(_typedef(struct, model) for struct in model.structs)
    parts = [
        block_comment([model.notice, *model.description]),
        f"#ifndef {upper}_H\n#define {upper}_H",
        "#include <stdbool.h>\n#include <stdint.h>",
        '#ifdef __cplusplus\nextern "C" {\n#endif',
        _macros(model),
        structs,
        _work(model),
        _functions(model),
        "#ifdef __cplusplus\n}\n#endif",
        f"#endif /* {upper}_H */",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _macros(model: Model) -> str:
    upper = model.name.upper()
    lines = [
        "/* Version given by the author; hash of algorithm and structs, values excepted. */",
        f'#define {upper}_VERSION "{model.version}"',
        f'#define {upper}_GENERATOR "{model.generator}"',
        f'#define {upper}_HASH "{model.digest}"',
        f"#define {upper}_HASH32 0x{model.digest[:8]}UL",
        "",
        "/* How many numbers each argument and result holds. */",
    ]
    for role, struct in model.roots():
        for field in struct.fields:
            lines.append(f"#define {upper}_SIZE_{role.upper()}_{field.name} {_size(field)}")
    if model.constants:
        lines += ["", "/* Values that were fixed when this was generated. */"]
        lines += [f"#define {upper}_{name} {text}" for name, text in model.constants]
    return "\n".join(lines)


def _size(field: Field) -> int:
    if field.leaf is not None:
        return field.leaf.size
    assert field.struct is not None
    return sum(_size(inner) for inner in field.struct.fields)


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
    assert field.leaf is not None
    dims = "".join(f"[{n}]" for n in field.leaf.shape)
    return f"{model.types.c_type(field.leaf.code)} {field.name}{dims};"


def _note(field: Field) -> str:
    """Say shape, units and description of a member."""
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


def _functions(model: Model) -> str:
    name = model.name
    lines = [
        "/* Set the inputs to their default values, and everything else to zero. */",
        f"void {name}_init({name}_in_t *in, {name}_out_t *out, {name}_work_t *work);",
        "",
        "/* Compute the outputs from the inputs. Nothing is kept between calls but what these",
        " * structs hold, so that instances with structs of their own may run at the same time. */",
        f"void {name}_step(const {name}_in_t *in, {name}_out_t *out, {name}_work_t *work);",
    ]
    if model.carries:
        pairs = ", ".join(f"in->{a} = out->{b}" for a, b in model.state)
        lines += [
            "",
            f"/* Make the new state the input of the next step: {pairs}. */",
            f"void {name}_carry({name}_in_t *in, const {name}_out_t *out);",
        ]
    return "\n".join(lines)


def wrapper_text(model: Model) -> str:
    """Return ``<name>.hpp``: a class around the C functions, for C++11 and later."""
    name = model.name
    class_name = "".join(word[:1].upper() + word[1:] for word in name.split("_") if word)
    carry = f"        {name}_carry(&in, &out);\n" if model.carries else ""
    return f"""\
{block_comment([model.notice, f"{name} as a C++ class; link with {name}.c."])}

#ifndef {name.upper()}_HPP
#define {name.upper()}_HPP

#include "{name}.h"

namespace archimedes_generated {{

/* Inputs and outputs are members to write and read; copies are independent instances. */
class {class_name} {{
public:
    using In = {name}_in_t;
    using Out = {name}_out_t;

    {class_name}() noexcept {{ reset(); }}

    /* Set the inputs to their default values, and everything else to zero. */
    void reset() noexcept {{ {name}_init(&in, &out, &work_); }}

    /* Compute the outputs from the inputs{" and carry the state over" if carry else ""}. */
    const Out &step() noexcept
    {{
        {name}_step(&in, &out, &work_);
{carry}        return out;
    }}

    In in;
    Out out;

private:
    {name}_work_t work_;
}};

}} // namespace archimedes_generated

#endif /* {name.upper()}_HPP */
"""
