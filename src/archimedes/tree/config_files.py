"""Reading and writing plain data (dicts, lists, numbers, text) as YAML or JSON files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from archimedes.errors import StructError
from archimedes.tree.yaml_files import parse_yaml, print_yaml, unique_pairs

__all__ = ["read_data", "write_data"]

#: Bytes that a file may have: settings are short, tables belong in files of their own.
LIMIT = 16 * 2**20


def parse_json(text: str) -> Any:
    import json

    try:
        return json.loads(text, object_pairs_hook=unique_pairs)
    except json.JSONDecodeError as error:
        raise StructError(f"not valid JSON: {error}") from error


def print_json(data: Any) -> str:
    import json

    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


FORMATS: dict[str, tuple[Callable[[str], Any], Callable[[Any], str]]] = {
    ".yaml": (parse_yaml, print_yaml),
    ".yml": (parse_yaml, print_yaml),
    ".json": (parse_json, print_json),
}


def file_format(path: Path) -> tuple[Callable[[str], Any], Callable[[Any], str]]:
    if path.suffix.lower() not in FORMATS:
        raise StructError(f"{path}: the file name must end in one of {', '.join(FORMATS)}")
    return FORMATS[path.suffix.lower()]


def _text(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(LIMIT + 1)
    if len(data) > LIMIT:
        raise StructError(
            f"has more than {LIMIT // 2**20} MiB, too much for a configuration: keep tables in a "
            "file of their own (CSV, NPZ) and give its name"
        )
    return data.decode("utf-8")


def read_data(path: str | os.PathLike[str]) -> Any:
    """Return the plain data in a YAML or JSON file; every failure is a StructError."""
    path = Path(path)
    parse, _ = file_format(path)
    try:
        return parse(_text(path))
    except OSError as error:
        raise StructError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise StructError(f"{path}: is not UTF-8 text: {error.reason}") from error
    except RecursionError as error:
        raise StructError(f"{path}: is nested too deeply, or refers to itself") from error
    except (StructError, ValueError) as error:
        raise StructError(f"{path}: {error}") from error


def write_data(data: Any, path: str | os.PathLike[str]) -> None:
    """Write plain data to a YAML or JSON file, by the suffix of its name."""
    path = Path(path)
    _, print_data = file_format(path)
    try:
        path.write_text(print_data(data), encoding="utf-8", newline="\n")
    except OSError as error:
        raise StructError(f"{path}: cannot be written: {error.strerror or error}") from error
