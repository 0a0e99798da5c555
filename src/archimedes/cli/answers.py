"""What commands answer, as text or as JSON, and the files that they read and write.

A command writes into the one folder that is named, and nowhere else.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path


class CommandError(Exception):
    """A command cannot be carried out; the text says why, for the person who typed it."""

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(text)
        self.status = status


def print_json(data: object) -> None:
    """Print plain data on the standard output."""
    print(json.dumps(data, indent=2, ensure_ascii=False))


def answer(options: argparse.Namespace, data: object, text: str) -> None:
    """Print the data with ``--json``, and otherwise the text."""
    if options.json:
        print_json(data)
    else:
        print(text)


def add_output(parser: argparse.ArgumentParser, folder: str, content: str) -> None:
    """Declare ``--output``, a folder for some content."""
    text = f"folder for {content} (default: {folder})"
    parser.add_argument("--output", type=Path, default=Path(folder), help=text)


def output_folder(folder: Path) -> Path:
    """Make a folder and return it, or say why it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(
            f"{folder.absolute()} cannot be created ({error.strerror}): give another with --output"
        ) from None
    return folder


def output_file(folder: Path, name: str) -> Path:
    """Return a path directly inside a folder; a link that leads elsewhere is an error."""
    path = folder / name
    if Path(name).name != name or path.is_symlink():
        raise CommandError(
            f"{path} points outside {folder}: remove the link, or name another folder"
        )
    return path


def input_file(path: Path, most: int = 2**30) -> Path:
    """Return the path of a file that can be read, of `most` bytes."""
    if path.is_dir():
        raise CommandError(f"{path} is a folder: name a file in it")
    if not path.exists():
        raise CommandError(f"{path}: no such file")
    if not path.is_file():
        raise CommandError(f"{path}: not a regular file")
    if path.stat().st_size > most:
        raise CommandError(f"{path} has more than {most // 2**20} MiB, which is too large to read")
    return path
