"""The Python blocks of a page, and what it takes to run them.

A block that begins with the line "```python" is run as part of its page. Words behind it say more:

- ``raises``: it ends in an error, whose message is shown;
- ``interactive``: it saves an interactive page, which is shown behind it;
- ``needs=gcc,mujoco``: it is run where these programs, or modules, are found.

Anything else in the same fences ("```text", "```c", "```py") is only shown.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PAGES", "ROOT", "Block", "blocks_of", "missing", "source_pages"]

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```python([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WORD = re.compile(r"raises|interactive|needs=[\w,.-]+")


@dataclass(frozen=True)
class Block:
    """A block: its code, the page's line it begins at, what is behind it, where it ends."""

    code: str
    line: int
    end: int
    raises: bool = False
    needs: tuple[str, ...] = ()
    interactive: bool = False


def blocks_of(text: str) -> Iterator[Block]:
    """Yield the Python blocks of a page in order.

    >>> [(b.line, b.raises) for b in blocks_of("Text.\\n\\n```python raises\\nf(1)\\n```\\n")]
    [(4, True)]
    """
    for found in FENCE.finditer(text):
        words = found[1].split()
        line = text.count("\n", 0, found.start(2)) + 1
        if unknown := [w for w in words if not WORD.fullmatch(w)]:
            raise ValueError(f"line {line - 1}: a block of Python says {unknown[0]!r}")
        needs = [n for w in words if w.startswith("needs=") for n in w[6:].split(",")]
        yield Block(
            found[2], line, found.end(), "raises" in words, tuple(needs), "interactive" in words
        )


def missing(needs: Sequence[str]) -> list[str]:
    """Return which of the programs and modules that a block needs are not here.

    >>> missing(("numpy", "no_such_thing"))
    ['no_such_thing']
    """
    return [n for n in needs if shutil.which(n) is None and importlib.util.find_spec(n) is None]


def source_pages() -> list[Path]:
    """Return all pages that people write, decisions among them."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


#: Pages with blocks.
PAGES = [page for page in source_pages() if FENCE.search(page.read_text("utf-8"))]
