"""XML files from anywhere, read as trees of elements: nothing in them is expanded or fetched."""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

#: What a model may take at most: bytes of the file, elements, and elements inside each other.
LARGEST, MOST, DEEPEST = 64 * 2**20, 500_000, 100


@dataclass(slots=True)
class Element:
    """One element: its name, attributes, texts and elements in order, and where it starts."""

    tag: str
    attributes: dict[str, str]
    place: str
    content: list[Element | str] = field(default_factory=list)

    def __iter__(self) -> Iterator[Element]:
        return (part for part in self.content if isinstance(part, Element))

    @property
    def text(self) -> str:
        """Its own text, without that of the elements inside."""
        return "".join(part for part in self.content if isinstance(part, str)).strip()

    def find(self, tag: str) -> Element | None:
        """Return the element of this name inside, if there is one."""
        parts = [part for part in self if part.tag == tag]
        if len(parts) > 1:
            raise parts[1].error(f"a second <{tag}> in <{self.tag}>; one is allowed")
        return parts[0] if parts else None

    def need(self, tag: str) -> Element:
        """Return the element of this name inside."""
        element = self.find(tag)
        if element is None:
            raise self.error(f"<{self.tag}> has no <{tag}>")
        return element

    def get(self, name: str) -> str:
        """Return an attribute that must be there."""
        if name not in self.attributes:
            raise self.error(f"<{self.tag}> has no attribute {name}")
        return self.attributes[name].strip()

    def error(self, message: str) -> ValueError:
        """Return an error that names the file and the line of this element."""
        return ValueError(f"{self.place}: {message}")


def read_elements(
    path: str | os.PathLike[str],
    namespaces: tuple[str, ...] | None = (),
    deepest: int = DEEPEST,
) -> Element:
    """Return the root element of an XML file.

    Elements of the `namespaces` are known by their plain names, those of others as "{space}name".
    None takes names as they are written, for files with prefixes that nothing declares.
    A DOCTYPE that only names a DTD is skipped, the DTD is not fetched. Refused with a ValueError:
    entities and all other declarations of the file's own, XInclude, files of more than 64 MiB, of
    more than 500,000 elements or more than `deepest` (100) inside each other, and what is not
    well-formed.
    """
    name = Path(path).name
    state = os.stat(path)
    if not stat.S_ISREG(state.st_mode):
        raise ValueError(f"{os.fspath(path)} is not a file")
    _check_size(name, state.st_size)
    return parse_elements(Path(path).read_bytes(), name, namespaces, deepest)


def parse_elements(
    data: bytes,
    name: str,
    namespaces: tuple[str, ...] | None = (),
    deepest: int = DEEPEST,
) -> Element:
    """Return the root element of XML that is in memory; `name` stands for the file in messages.

    The same is refused as by :func:`read_elements`.
    """
    _check_size(name, len(data))
    builder = _Builder(name, namespaces, deepest)
    try:
        builder.parser.Parse(data, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise ValueError(
            f"{name}:{error.lineno}: not well-formed XML: {reason} (column {error.offset})"
        ) from None
    except LookupError as error:
        raise ValueError(f"{name}: {error}; write it in UTF-8") from None
    assert builder.root is not None  # expat refuses files without an element
    return builder.root


def _check_size(name: str, size: int) -> None:
    if size > LARGEST:
        raise ValueError(f"{name}: {size} bytes are too much for a model; at most {LARGEST}")


class _Builder:
    """Makes elements of what the parser meets."""

    def __init__(self, name: str, namespaces: tuple[str, ...] | None, deepest: int) -> None:
        self.name, self.deepest = name, deepest
        self.namespaces = () if namespaces is None else namespaces
        self.root: Element | None = None
        self.open: list[Element] = []
        self.count = 0
        self.parser = expat.ParserCreate(namespace_separator=None if namespaces is None else " ")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters
        self.parser.StartDoctypeDeclHandler = self.doctype
        self.parser.EntityDeclHandler = self.refuse_entity
        self.parser.SkippedEntityHandler = self.refuse_unknown_entity

    def place(self) -> str:
        return f"{self.name}:{self.parser.CurrentLineNumber}"

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.count += 1
        if self.count > MOST:
            raise ValueError(f"{self.place()}: more than {MOST} elements are too much for a model")
        if len(self.open) >= self.deepest:
            raise ValueError(
                f"{self.place()}: more than {self.deepest} elements inside each other are too many "
                "for a model: split its calculations into several variables, or its file"
            )
        space, _, plain = tag.rpartition(" ")
        if space.endswith("/XInclude"):
            raise ValueError(
                f"{self.place()}: XInclude is not followed: put the text into the file itself"
            )
        known = not space or space in self.namespaces
        element = Element(plain if known else f"{{{space}}}{plain}", attributes, self.place())
        if self.open:
            self.open[-1].content.append(element)
        else:
            self.root = element
        self.open.append(element)

    def end(self, tag: str) -> None:
        self.open.pop()

    def characters(self, text: str) -> None:
        self.open[-1].content.append(text)

    def doctype(self, name: str, system: Any, public: Any, own_declarations: int) -> None:
        if own_declarations:
            raise ValueError(
                f"{self.place()}: the DOCTYPE has declarations of its own [...] (entities, "
                "attribute lists), which are not read: write out what they stand for and leave "
                "only the name of the DTD"
            )

    def refuse_entity(self, name: str, *what: Any) -> None:
        raise ValueError(f"{self.place()}: entity {name} is declared; entities are not read")

    def refuse_unknown_entity(self, name: str, *what: Any) -> None:
        raise ValueError(
            f"{self.place()}: entity &{name}; is not defined here; write what it stands for"
        )


#: Python's float would also take 1_000, inf, nan and the digits of other scripts.
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def number(text: str, of: Element, what: str) -> float:
    """Return the finite number that a text is; `of` and `what` say where it stands."""
    text = text.strip()
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not math.isfinite(value):
        raise of.error(f"{what} is {text[:40]!r}, which is not a finite number")
    return value


def numbers(of: Element, what: str) -> np.ndarray:
    """Return the numbers in the text of an element, separated by commas or white space."""
    words = of.text.replace(",", " ").split()
    if not words:
        raise of.error(f"{what} holds no numbers")
    return np.array([number(word, of, f"{what}: entry {k}") for k, word in enumerate(words, 1)])
