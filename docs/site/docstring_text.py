"""Docstrings as reStructuredText: what is prose in them is taken literally."""

from __future__ import annotations

import re

__all__ = ["as_text", "first_sentence"]

#: Code and roles stay as they are.
LITERAL = re.compile(r"(:\w+:`[^`]+`|``.+?``|`[^`]+`)", re.DOTALL)
SPECIAL = re.compile(r"([*|\\])|_(?=\W|$)")


def as_text(docstring: str) -> str:
    """Return a docstring with the marks that would be read as markup escaped.

    >>> as_text("Of ``a*b`` and *args, x_.")
    'Of ``a*b`` and \\\\*args, x\\\\_.'
    """
    parts = re.split(r"\n\s*\n", docstring)
    return "\n\n".join(_paragraph(part) for part in parts)


def _paragraph(text: str) -> str:
    if text.lstrip().startswith(">>>"):
        return text
    before, code, after = text.partition("\n>>>")
    pieces = LITERAL.split(before)
    escaped = [p if k % 2 else SPECIAL.sub(r"\\\g<0>", p) for k, p in enumerate(pieces)]
    prose = "".join(escaped)
    if re.search(r"^    ", prose, re.MULTILINE) and not prose.startswith(("-", " ")):
        prose = re.sub(r"^    (?=\S)", "", prose, flags=re.MULTILINE)
    return prose + ("\n\n>>>" + after if code else "")


def first_sentence(docstring: str) -> str:
    """Return the first sentence of a docstring, on one line.

    >>> first_sentence("Return x, e.g. 1.5 of it.\\nMore.")
    'Return x, e.g. 1.5 of it.'
    """
    paragraph = " ".join(docstring.split("\n\n")[0].split())
    found = re.match(r".*?[.:](?=\s[A-Z`]|$)", paragraph)
    return (found[0] if found else paragraph).rstrip(":")
