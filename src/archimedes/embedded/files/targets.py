"""The projects that can be made: which templates, where the code goes, what comes along."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from archimedes.embedded.boards import FOLDER as BOARD_FILES
from archimedes.embedded.files.header import header_text, wrapper_text
from archimedes.embedded.files.source_file import source_text
from archimedes.embedded.files.templating import TEMPLATES, render_folder
from archimedes.embedded.files.user_regions import SIGNATURE
from archimedes.embedded.model import Model
from archimedes.errors import CodegenError

__all__ = ["TARGETS", "Target", "project_files", "target_named"]


@dataclass(frozen=True)
class Target:
    """A kind of project: ``folder`` is where its files go (``{name}`` is filled in), ``board``
    the names of startup files that come along.
    """

    name: str
    folder: str = ""
    board: tuple[str, ...] = ()


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
    )
}


def target_named(name: str) -> Target:
    """Return a target, or say which there are."""
    if name not in TARGETS:
        raise CodegenError(
            f"target={name!r} is not one of {', '.join(map(repr, TARGETS))}; for another kind of "
            "project give template=, a folder with templates of your own"
        )
    return TARGETS[name]


def project_files(
    model: Model, target: Target, template: Path | None, wrapper: bool
) -> dict[str, str]:
    """Return the files of a project by path; those of ``template`` replace the target's."""
    name = model.name
    folder = target.folder.format(name=name)
    files = {f"{name}.h": header_text(model), f"{name}.c": source_text(model)}
    if wrapper:
        files[f"{name}.hpp"] = wrapper_text(model)
    words = _words(model, target)
    made = render_folder(TEMPLATES / target.name, words)
    if template is not None:
        made.update(render_folder(template, words))
    clash = sorted(set(made) & set(files))
    if clash:
        raise CodegenError(
            f"a template makes {clash[0]}, which is the name of a generated file: rename the "
            "template, or generate with another name="
        )
    files.update(made)
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
    for place in model.outputs.places:
        c_type = model.types.c_type(place.leaf.code)
        form, cast = _FORMATS[c_type]
        if not place.leaf.shape:
            value = f"{cast}out.{place.access}"
            lines.append(f'    printf("{place.access} = {form}\\n", {value});')
            continue
        first = f"out.{place.access}" + "[0]" * len(place.leaf.shape)
        lines += [
            f"    for (int i = 0; i < {place.leaf.size}; i++) {{",
            f"        const {c_type} *values = &{first};",
            f'        printf("{place.access}[%d] = {form}\\n", i, {cast}values[i]);',
            "    }",
        ]
    return lines
