"""The C file of a project: kernel, default values, init and step."""

from __future__ import annotations

from archimedes.backends.c import assemble
from archimedes.embedded.c_types.c_values import initialiser
from archimedes.embedded.c_types.comments import block_comment
from archimedes.embedded.c_types.struct_layout import Root
from archimedes.embedded.model import Carry, Model

__all__ = ["source_text"]

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
        _memory(model),
        _init(model),
        _step(model),
        _carry(model),
    ]
    return "\n".join(part for part in parts if part)


def _values(model: Model, root: Root, what: str, comment: str) -> str:
    leaves = (model.values[place.number] for place in root.places)
    body = initialiser(root.struct, leaves, model.types) if root.places else "{0}"
    name = f"{model.name}_{root.role}_t {model.name}_{what}"
    return f"/* {comment} */\nstatic const {name} = {body};\n"


def _memory(model: Model) -> str:
    text = f"""\
static void {model.name}_clear(void *to, size_t size)
{{
    unsigned char *bytes = (unsigned char *)to;
    while (size > 0) {{
        size--;
        bytes[size] = 0;
    }}
}}
"""
    if any(carry.is_array for carry in model.carries):
        text += f"""
static void {model.name}_copy(void *to, const void *from, size_t size)
{{
    unsigned char *bytes = (unsigned char *)to;
    const unsigned char *source = (const unsigned char *)from;
    while (size > 0) {{
        size--;
        bytes[size] = source[size];
    }}
}}
"""
    return text


def _init(model: Model) -> str:
    name = model.name
    return f"""\
void {name}_init({name}_in_t *in, {name}_out_t *out, {name}_work_t *work)
{{
    *in = {name}_defaults;
    {name}_clear(out, sizeof *out);
    {name}_clear(work, sizeof *work);
}}
"""


def _step(model: Model) -> str:
    name = model.name
    unused = [
        word
        for word, used in (
            ("in", not model.inputs.is_empty),
            ("out", not model.outputs.is_empty),
            ("work", bool(model.source.workspace_type)),
        )
        if not used
    ]
    lines = [f"    (void){word};" for word in unused]
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
    body = "\n".join(_copy(name, carry) for carry in model.carries)
    return f"void {name}_carry({name}_in_t *in, const {name}_out_t *out)\n{{\n{body}\n}}\n"


def _copy(name: str, carry: Carry) -> str:
    if carry.is_array:
        return f"    {name}_copy({carry.to}, {carry.source}, sizeof {carry.to});"
    return f"    {carry.to} = {carry.source};"
