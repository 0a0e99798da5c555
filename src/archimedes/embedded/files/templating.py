"""Project files from templates: ``@{word}`` in a file or in its name is filled in.

The templates of each target lie in ``templates/<target>``; users may give a folder of their own.
Every file ``x.in`` there becomes the file ``x`` of the project. ``@@{`` stands for ``@{``; other
signs mean themselves, so that Makefiles and CMake files need no escapes.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from pathlib import Path

from archimedes.errors import CodegenError

__all__ = ["TEMPLATES", "fill", "render_folder"]

#: Folder with one folder of templates per target.
TEMPLATES = Path(__file__).parents[1] / "templates"


class _Template(string.Template):
    delimiter = "@"
    pattern = r"""
        @(?:
            (?P<escaped>@(?=\{)) |
            \{(?P<braced>[A-Za-z_]+)\} |
            (?P<named>(?!)) |
            (?P<invalid>(?!))
        )
    """  # type: ignore[assignment]  # a string here, a pattern on the finished class


def fill(text: str, words: Mapping[str, str], file: str) -> str:
    """Fill in a template; ``file`` names it in errors.

    >>> fill("$(CC) @{name}.c -o @{name} @@{kept}", {"name": "ekf"}, "Makefile.in")
    '$(CC) ekf.c -o ekf @{kept}'
    """
    try:
        return _Template(text).substitute(words)
    except KeyError as error:
        word = error.args[0]
        line = text[: text.index("@{" + word + "}")].count("\n") + 1
        raise CodegenError(
            f"{file}:{line}: the template asks for @{{{word}}}, which does not exist: it can use "
            f"{', '.join('@{' + known + '}' for known in sorted(words))}"
        ) from None


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
