"""The files of a project: header and source, its targets and templates, and the user's own regions.

The templates of each target lie in ``templates/<target>``; users may give a folder of their own.
Every file ``x.in`` there becomes the file ``x`` of the project. What a user writes between two
markers survives regeneration: a region is ``USER CODE BEGIN name`` ... ``USER CODE END name``, each
marker on a line of its own in whatever comment style the file has. There are also a C++ wrapper and
the layout of Archimedes 0.5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from archimedes.backends.c import assemble
from archimedes.checks import check_choice
from archimedes.embedded import c_text
from archimedes.embedded.boards import FOLDER as BOARD_FILES
from archimedes.embedded.c_model import SIGNATURE, Model
from archimedes.embedded.c_structs import Field, Root, Struct, initialiser
from archimedes.embedded.c_text import ascii_text, block_comment, fill_template, shape_text
from archimedes.embedded.ros2 import ros2_files, ros2_words
from archimedes.embedded.simulink import simulink_words
from archimedes.errors import CodegenError

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
NO_CONTRACTION = """\
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
        NO_CONTRACTION,
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


@dataclass(frozen=True)
class Target:
    """A kind of project: ``folder`` is where its files go (``{name}`` is filled in), ``board``
    has the names of startup files that are copied. ``words(model, parameters)`` returns further
    words of its templates; its parameters are set where it runs, not in the C file.
    ``files(model, parameters)`` returns further files.
    """

    name: str
    folder: str = ""
    board: tuple[str, ...] = ()
    words: Callable[[Model, Sequence[str]], dict[str, str]] | None = None
    files: Callable[[Model, Sequence[str]], dict[str, str]] | None = None


#: Targets by the name that ``codegen`` takes.
TARGETS = {
    target.name: target
    for target in (
        Target("c"),
        # The Arduino tools want a sketch in a folder of its own name.
        Target("arduino", folder="{name}/"),
        Target(
            "cortex-m",
            board=("cortex_m.c", "cortex_m.ld", "memory.c", "semihosting.c", "semihosting.h"),
        ),
        Target("simulink", words=simulink_words),
        Target("ros2", words=ros2_words, files=ros2_files),
    )
}


def target_named(name: str) -> Target:
    """Return a target by its name; an unknown name is an error that lists all of them."""
    remedy = "for another kind of project give template=, a folder with templates of your own"
    check_choice(name, "target", [*TARGETS, "wasm"], remedy, CodegenError)
    return TARGETS[name]


def project_files(
    model: Model, target: Target, own: Path | None, wrapper: bool, parameters: Sequence[str] = ()
) -> dict[str, str]:
    """Return the files of a project by path; those of ``template`` replace the target's.

    `parameters` are the arguments that are set where the target runs.
    """
    name = model.name
    folder = target.folder.format(name=name)
    files = source_files(model)
    if wrapper:
        files[f"{name}.hpp"] = wrapper_text(model)
    words = _words(model, target)
    if target.words is not None:
        words |= target.words(model, parameters)
    rendered = render_folder(c_text.TEMPLATES / target.name, words)
    if own is not None:
        rendered.update(render_folder(own, words))
    clash = sorted(set(rendered) & set(files))
    if clash:
        raise CodegenError(
            f"a template makes {clash[0]}, which is the name of a generated file: rename the "
            "template, or generate with another name="
        )
    files.update(rendered)
    files.update(target.files(model, parameters) if target.files is not None else {})
    for file in target.board:
        text = (BOARD_FILES / file).read_text(encoding="utf-8")
        files[f"board/{file}"] = f"/* {SIGNATURE}: copied as it is. */\n{text}"
    return {folder + path: text for path, text in files.items()}


def _words(model: Model, target: Target) -> dict[str, str]:
    """Return what templates may use."""
    sources = [f"board/{file}" for file in target.board if file.endswith(".c")]
    return {
        "name": model.name,
        "NAME": model.name.upper(),
        "notice": model.notice,
        "version": model.version,
        "hash": model.digest,
        "float_type": model.types.float_type.name,
        "board_sources": " ".join(sources),
        "carry": f"\n    {model.name}_carry(&in, &out);" if model.carries else "",
        "print_outputs": "\n".join(_prints(model)),
    }


#: printf's conversion and the cast of its argument, by C type: enough digits to read back.
_FORMATS = {
    "double": ("%.17g", ""),
    "float": ("%.9g", "(double)"),
    "bool": ("%d", "(int)"),
    "int64_t": ("%lld", "(long long)"),
    "int32_t": ("%ld", "(long)"),
}


def _prints(model: Model) -> list[str]:
    """Return statements that print every output, for the example program."""
    lines = []
    for member in model.outputs.members:
        leaf, access = member.leaf, member.access
        c_type = model.types.c_type(leaf.code)
        form, cast = _FORMATS[c_type]
        if not leaf.shape:
            lines.append(f'    printf("{access} = {form}\\n", {cast}out.{access});')
            continue
        lines += [
            f"    for (int i = 0; i < {leaf.size}; i++) {{",
            f"        const {c_type} *values = &out.{access}{'[0]' * len(leaf.shape)};",
            f'        printf("{access}[%d] = {form}\\n", i, {cast}values[i]);',
            "    }",
        ]
    return lines


def render_folder(folder: Path, words: Mapping[str, str]) -> dict[str, str]:
    """Return the files of all templates in a folder, by their path in the project."""
    if not folder.is_dir():
        raise CodegenError(f"template {str(folder)!r} is not a folder, with *.in files in it")
    files = {}
    for path in sorted(folder.rglob("*.in")):
        inside = path.relative_to(folder).as_posix().removesuffix(".in")
        text = path.read_text(encoding="utf-8")
        files[c_text.fill(inside, words, str(path))] = c_text.fill(text, words, str(path))
    if not files:
        raise CodegenError(f"template folder {str(folder)!r} holds no *.in files")
    return files


# ---- the user's own regions -------------------------------------------------------------

_MARKER = re.compile(r"^.*USER CODE (BEGIN|END) +([A-Za-z0-9_.-]+).*$", re.MULTILINE)


def user_code(text: str, file: str) -> dict[str, str]:
    """Return the text inside each region of a file, by name.

    >>> user_code("/* USER CODE BEGIN a */\\nint x;\\n/* USER CODE END a */\\n", "main.c")
    {'a': 'int x;\\n'}
    """
    regions: dict[str, str] = {}
    open_name, start = "", 0
    for marker in _MARKER.finditer(text):
        word, name = marker[1], marker[2]
        if (word == "BEGIN") == bool(open_name) or (word == "END" and name != open_name):
            raise _marker_error(file, text, marker.start(), f"USER CODE {word} {name}", open_name)
        if word == "BEGIN":
            if name in regions:
                raise CodegenError(f"{file}: two regions USER CODE {name}: rename one of them")
            open_name, start = name, marker.end() + 1
        else:
            regions[name] = text[start : marker.start()]
            open_name = ""
    if open_name:
        raise _marker_error(file, text, len(text), "the end of the file", open_name)
    return regions


def _marker_error(file: str, text: str, at: int, what: str, open_name: str) -> CodegenError:
    line = text.count("\n", 0, at) + 1
    state = f"region {open_name!r} is open" if open_name else "no region is open"
    return CodegenError(f"{file}:{line}: {what} where {state}: repair the USER CODE markers")


def keep_user_code(new: str, old: str, file: str, discard: bool = False) -> str:
    """Return ``new`` with the regions of ``old`` filled in.

    A region of ``old`` that holds text of the user and does not exist in ``new`` is an error, and
    so is an old file that was not generated, unless ``discard``.
    """
    defaults, own = user_code(new, file), user_code(old, file)
    if not discard:
        _check_nothing_lost(defaults, own, old, file)
    pieces, at = [], 0
    for marker in _MARKER.finditer(new):
        if marker[1] == "BEGIN":
            pieces.append(new[at : marker.end() + 1])
            pieces.append(own.get(marker[2], defaults[marker[2]]))
        else:
            at = marker.start()
    return "".join(pieces) + new[at:]


def _check_nothing_lost(defaults: dict[str, str], own: dict[str, str], old: str, file: str) -> None:
    """Raise if something that a user wrote would be lost."""
    lost = [name for name, text in own.items() if name not in defaults and text.strip()]
    if lost:
        raise CodegenError(
            f"{file}: the text in USER CODE {lost[0]} would be lost, because the new file has no "
            f"such region (it has {sorted(defaults)}): move the text to one of these, or pass "
            "options={'discard_user_code': True}"
        )
    if old and SIGNATURE not in old and not own:
        raise CodegenError(
            f"{file} exists and is not a generated file: move it away, choose another output_dir, "
            "or pass options={'discard_user_code': True}"
        )
