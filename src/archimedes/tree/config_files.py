"""Reading and writing plain data (dicts, lists, numbers, text) as YAML or JSON files.

YAML goes through PyYAML's safe loader, which makes plain data only, with two changes: ``1e-6`` is
a number, as in YAML 1.2, and a key given twice is an error instead of silently the last one.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from archimedes.errors import StructError

__all__ = ["read_data", "write_data"]


def unique_pairs(pairs: Iterable[tuple[Any, Any]]) -> dict:
    """Make a dict of (key, value) pairs; a repeated key is an error."""
    found: dict = {}
    for key, value in pairs:
        if key in found:
            raise StructError(f"the key {key!r} is given twice")
        found[key] = value
    return found


@functools.cache
def yaml_loader() -> type:
    """Return the loader class, made on first use so that importing this package needs no yaml."""
    import yaml

    class Loader(yaml.SafeLoader):
        """The safe loader with YAML 1.2 floats and unique keys."""

    def construct_mapping(loader: Any, node: Any) -> dict:
        merge = "tag:yaml.org,2002:merge"  # keys merged by << may be given again
        own = [loader.construct_object(key) for key, _ in node.value if key.tag != merge]
        if unhashable := [key for key in own if isinstance(key, (dict, list))]:
            raise StructError(f"a key must be text or a number, got {unhashable[0]!r}")
        unique_pairs((key, None) for key in own)
        loader.flatten_mapping(node)
        return loader.construct_mapping(node, deep=True)

    Loader.add_constructor("tag:yaml.org,2002:map", construct_mapping)
    number = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+$")
    Loader.add_implicit_resolver("tag:yaml.org,2002:float", number, list("-+0123456789."))
    return Loader


def parse_yaml(text: str) -> Any:
    import yaml

    try:
        return yaml.load(text, Loader=yaml_loader())  # a subclass of SafeLoader
    except yaml.YAMLError as error:
        raise StructError(f"not valid YAML: {error}") from error


def parse_json(text: str) -> Any:
    import json

    try:
        return json.loads(text, object_pairs_hook=unique_pairs)
    except json.JSONDecodeError as error:
        raise StructError(f"not valid JSON: {error}") from error


def print_yaml(data: Any) -> str:
    import yaml

    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True)


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


def read_data(path: str | os.PathLike[str]) -> Any:
    """Return the plain data in a YAML or JSON file; every failure is a StructError."""
    path = Path(path)
    parse, _ = file_format(path)
    try:
        return parse(path.read_text(encoding="utf-8"))
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
        path.write_text(print_data(data), encoding="utf-8")
    except OSError as error:
        raise StructError(f"{path}: cannot be written: {error.strerror or error}") from error
