"""Reading and writing plain data (dicts, lists, numbers, text) as YAML or JSON files.

YAML is read by version 1.2 of its standard. PyYAML's own rules are those of 1.1; its safe loader
makes plain data only. What we change:

- which plain words are numbers, truth values and nothing: the core schema of YAML 1.2 (chapter
  10.3.2). ``010`` is ten, ``1e-6`` a number; ``1:30``, ``yes``, ``off``, ``2024-01-01`` are text;
- a key given twice is an error, not silently the last one;
- aliases may not make more of a file than it is: a few lines of aliases to aliases stand for
  billions of values ("billion laughs").
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from archimedes.errors import StructError

#: Values that a file may stand for once all its aliases are written out.
VALUES = 1_000_000

_TAG = "tag:yaml.org,2002:"
#: Tag, the words that have it, and the characters they begin with. Merging (``<<``) is of 1.1, and
#: too useful to lose.
_CORE = (
    ("null", r"~|null|Null|NULL|", "~nN"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+.0123456789",
    ),
    ("merge", r"<<", "<"),
)


def unique_pairs(pairs: Iterable[tuple[Any, Any]]) -> dict:
    """Make a dict of (key, value) pairs; a repeated key is an error."""
    mapping: dict = {}
    for key, value in pairs:
        if key in mapping:
            raise StructError(f"the key {key!r} is given twice")
        mapping[key] = value
    return mapping


def _add_core(cls: Any) -> None:
    for tag, words, first in _CORE:
        starts = [*first, ""] if tag == "null" else list(first)
        cls.add_implicit_resolver(_TAG + tag, re.compile(f"(?:{words})$"), starts)


def _construct_mapping(loader: Any, node: Any) -> dict:
    # Keys merged by << may be given again.
    own = [loader.construct_object(key) for key, _ in node.value if key.tag != _TAG + "merge"]
    if unhashable := [key for key in own if isinstance(key, (dict, list))]:
        raise StructError(f"a key must be text or a number, got {unhashable[0]!r}")
    unique_pairs((key, None) for key in own)
    loader.flatten_mapping(node)
    return loader.construct_mapping(node, deep=True)


def _construct_int(loader: Any, node: Any) -> int:
    text = loader.construct_scalar(node)
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    return int(text if base == 10 else text[2:], base)


@functools.cache
def yaml_loader() -> type:
    """Return the loader class, made on first use so that importing this package needs no yaml."""
    import yaml

    class Loader(yaml.SafeLoader):
        """The safe loader with the words of YAML 1.2, unique keys and bounded aliases."""

        yaml_implicit_resolvers: dict = {}  # noqa: RUF012  (instead of those of YAML 1.1)

        def get_single_node(self) -> Any:
            node = super().get_single_node()
            if node is not None:
                check_size(node)
            return node

    _add_core(Loader)
    Loader.add_constructor(_TAG + "map", _construct_mapping)
    Loader.add_constructor(_TAG + "int", _construct_int)
    return Loader


@functools.cache
def yaml_dumper() -> type:
    """Return the dumper class: text that either version takes for something else is quoted."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """The safe dumper, which knows the words of YAML 1.1, and those of 1.2."""

    _add_core(Dumper)
    return Dumper


def check_size(node: Any) -> None:
    """Raise where aliases make more values of a file than is reasonable."""
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()

    def size(node: Any) -> int:
        if isinstance(node.value, str):
            return 1
        count = sizes.get(id(node))
        if count is None:
            if id(node) in open_nodes:
                raise StructError("an alias refers to a node that contains it")
            open_nodes.add(id(node))
            parts = [x for item in node.value for x in (item if type(item) is tuple else (item,))]
            count = sizes[id(node)] = 1 + sum(map(size, parts))
        return count

    total = size(node)
    if total > VALUES:
        raise StructError(
            f"its aliases (*name) stand for {total:,} values, more than {VALUES:,}: write them "
            "out, or give the data in a file of its own"
        )


def parse_yaml(text: str) -> Any:
    """Return the data of a text; every failure is a StructError or a ValueError."""
    import yaml

    try:
        return yaml.load(text, Loader=yaml_loader())  # a subclass of SafeLoader
    except yaml.YAMLError as error:
        raise StructError(f"not valid YAML: {error}") from error


def print_yaml(data: Any) -> str:
    """Return plain data as text that `parse_yaml` reads back as it was."""
    import yaml

    return yaml.dump(data, Dumper=yaml_dumper(), sort_keys=False, allow_unicode=True)


#: Bytes that a file may have: settings are short, tables belong in files of their own.
LIMIT = 16 * 2**20


def parse_json(text: str) -> Any:
    """Return the data of JSON text; a repeated key is an error."""
    import json

    try:
        return json.loads(text, object_pairs_hook=unique_pairs)
    except json.JSONDecodeError as error:
        raise StructError(f"not valid JSON: {error}") from error


def print_json(data: Any) -> str:
    """Return data as JSON text."""
    import json

    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


FORMATS: dict[str, tuple[Callable[[str], Any], Callable[[Any], str]]] = {
    ".yaml": (parse_yaml, print_yaml),
    ".yml": (parse_yaml, print_yaml),
    ".json": (parse_json, print_json),
}


def file_format(path: Path) -> tuple[Callable[[str], Any], Callable[[Any], str]]:
    """Return how a file is parsed and printed, by the ending of its name."""
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


#: One step of a path such as ``rotors.arms[2]['left']``.
_STEP = re.compile(r"\[(\d+)\]|\['((?:[^'])*)'\]|\.?([^.\[\]]+)")


def find_line(path: str | os.PathLike[str], field: str) -> int | None:
    """Return the line of a field in a file, of the nearest key above it, or None.

    Parameters
    ----------
    path : path
        A YAML or JSON file; JSON is YAML in this respect.
    field : str
        Such as ``rotors.arm`` or ``stages[1].thrust``.
    """
    import yaml

    try:
        node = yaml.compose(_text(Path(path)), Loader=yaml_loader())
    except (yaml.YAMLError, StructError, OSError, UnicodeDecodeError):
        return None
    line = None
    for index, quoted, name in _STEP.findall(field):
        if isinstance(node, yaml.SequenceNode) and index and int(index) < len(node.value):
            node = node.value[int(index)]
            line = node.start_mark.line + 1
            continue
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        key = quoted or name
        if (pair := next((p for p in pairs if p[0].value == key), None)) is None:
            break
        line, node = pair[0].start_mark.line + 1, pair[1]
    return line


def write_data(data: Any, path: str | os.PathLike[str]) -> None:
    """Write plain data to a YAML or JSON file, by the suffix of its name."""
    path = Path(path)
    _, print_data = file_format(path)
    try:
        path.write_text(print_data(data), encoding="utf-8", newline="\n")
    except OSError as error:
        raise StructError(f"{path}: cannot be written: {error.strerror or error}") from error
