"""Start a project: a model, a test, a notebook and a C target.

Examples:
    archimedes new pendulum
"""

from __future__ import annotations

import argparse
import keyword
from pathlib import Path
from string import Template

from archimedes.cli.answers import CommandError, answer

#: Files of a project: NAME stands for its name in theirs, $name in their text.
TEMPLATES = Path(__file__).with_name("project_template")


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("name", help="of the project, a Python name such as pendulum")
    parser.add_argument("--output", type=Path, help="its folder, new or empty (default: its name)")


def run(options: argparse.Namespace) -> int:
    """Write the files, none of them over another."""
    name = options.name
    if not name.isidentifier() or keyword.iskeyword(name) or name != name.lower():
        raise CommandError(f"{name!r} must be a Python name in lower case, such as pendulum")
    if name in ("archimedes", "numpy", "test", "make_c", "pytest"):
        raise CommandError(f"{name!r} is the name of another module: choose one of your own")
    folder = options.output or Path(name)
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise CommandError(f"{folder}: exists and is not empty; name another folder with --output")
    texts = {
        file.stem.replace("NAME", name): Template(file.read_text("utf-8")).substitute(name=name)
        for file in sorted(TEMPLATES.glob("*.txt"))
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            (folder / path).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise CommandError(f"{folder} cannot be written ({error.strerror})") from None
    lines = [str(folder / path) for path in texts]
    lines.append(f"\ncd {folder} && python {name}.py && python -m pytest && python make_c.py")
    answer(options, {"folder": str(folder), "files": sorted(texts)}, "\n".join(lines))
    return 0
