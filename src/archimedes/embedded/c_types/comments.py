"""Text for comments in C: ASCII, one line, nothing that ends the comment."""

from __future__ import annotations

import re
import textwrap
import unicodedata

from archimedes.embedded.c_types.naming import c_identifier

__all__ = ["ascii_text", "block_comment", "shape_text"]

_SIGNS = {
    "·": "*",
    "×": "x",
    "°": "deg",
    "–": "-",
    "—": "-",
    "−": "-",
    "’": "'",
    "‘": "'",
    "“": '"',
    "”": '"',
    "…": "...",
    "µ": "u",
    "Ω": "Ohm",
    "√": "sqrt",
    "∞": "inf",
}


def _spell(char: str) -> str:
    if char.isascii():
        return char
    if char in _SIGNS:
        return _SIGNS[char]
    plain = unicodedata.normalize("NFKD", char)
    if "SUPERSCRIPT" in unicodedata.name(char, ""):
        return "^" + plain.replace("−", "-")
    return c_identifier(char) if char.isalpha() else plain if plain.isascii() else "?"


def ascii_text(text: str) -> str:
    """Return text that can stand in a comment of any compiler.

    >>> ascii_text("kg·m²,  angle α */ in °")
    'kg*m^2, angle alpha * / in deg'
    """
    spelled = "".join(_spell(char) for char in " ".join(text.split()))
    spelled = spelled.replace("^-^", "^-").replace("*/", "* /").replace("/*", "/ *")
    return re.sub(r"\?(?=\?)", "? ", spelled)  # no trigraphs


def block_comment(paragraphs: list[str], width: int = 96) -> str:
    """Return paragraphs as one comment, wrapped; a paragraph may hold lines of its own."""
    lines: list[str] = []
    for paragraph in paragraphs:
        lines += [""] if lines else []
        for line in paragraph.split("\n"):
            text = ascii_text(line)
            lines += textwrap.wrap(text, width - 3) or [""]
    first, *rest = lines
    return "\n".join([f"/* {first}", *(f" * {line}".rstrip() for line in rest), " */"])


def shape_text(shape: tuple[int, ...]) -> str:
    """Return a shape in words: nothing for a number.

    >>> shape_text((3, 4)), shape_text(())
    ('(3 x 4)', '')
    """
    return f"({' x '.join(str(n) for n in shape)})" if shape else ""
