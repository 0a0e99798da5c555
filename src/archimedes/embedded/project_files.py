"""The files of a project: its targets, their templates, and the regions that are the user's own.

The templates of each target lie in ``templates/<target>``; users may give a folder of their own.
Every file ``x.in`` there becomes the file ``x`` of the project. What a user writes between two
markers survives regeneration: a region is ``USER CODE BEGIN name`` ... ``USER CODE END name``, each
marker on a line of its own in whatever comment style the file has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from archimedes.checks import check_choice
from archimedes.embedded.boards import FOLDER as BOARD_FILES
from archimedes.embedded.c_files import source_files, wrapper_text
from archimedes.embedded.c_model import SIGNATURE, Model
from archimedes.embedded.c_text import TEMPLATES, fill
from archimedes.errors import CodegenError


@dataclass(frozen=True)
class Target:
    """A kind of project: ``folder`` is where its files go (``{name}`` is filled in), ``board``
    has the names of startup files that are copied.
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
    """Return a target by its name; an unknown name is an error that lists all of them."""
    remedy = "for another kind of project give template=, a folder with templates of your own"
    check_choice(name, "target", TARGETS, remedy, CodegenError)
    return TARGETS[name]


def project_files(
    model: Model, target: Target, template: Path | None, wrapper: bool
) -> dict[str, str]:
    """Return the files of a project by path; those of ``template`` replace the target's."""
    name = model.name
    folder = target.folder.format(name=name)
    files = source_files(model)
    if wrapper:
        files[f"{name}.hpp"] = wrapper_text(model)
    words = _words(model, target)
    rendered = render_folder(TEMPLATES / target.name, words)
    if template is not None:
        rendered.update(render_folder(template, words))
    clash = sorted(set(rendered) & set(files))
    if clash:
        raise CodegenError(
            f"a template makes {clash[0]}, which is the name of a generated file: rename the "
            "template, or generate with another name="
        )
    files.update(rendered)
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
        raise CodegenError(
            f"template {str(folder)!r} is not a folder: give the path of one that holds *.in files"
        )
    files = {}
    for path in sorted(folder.rglob("*.in")):
        inside = path.relative_to(folder).as_posix().removesuffix(".in")
        text = path.read_text(encoding="utf-8")
        files[fill(inside, words, str(path))] = fill(text, words, str(path))
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
                raise CodegenError(
                    f"{file}: there are two regions USER CODE {name}: give them different names"
                )
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
    return CodegenError(
        f"{file}:{line}: {what} where {state}: repair the USER CODE markers, so that what is "
        "between them can be kept"
    )


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
