"""Explain a message: the mistake, an example, and what to write instead.

Examples:
    archimedes explain branch
    archimedes explain
"""

from __future__ import annotations

import argparse
import difflib
import re
from pathlib import Path

from archimedes.cli.answers import CommandError, answer
from archimedes.installation import checkout_folder


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("kind", nargs="*", help="what the message names (default: list all kinds)")


def run(options: argparse.Namespace) -> int:
    """Print a section, or the list of kinds."""
    if not options.kind:
        titles = {kind: text.partition("\n")[0] for kind, text in read_sections().items()}
        answer(options, titles, "\n".join(f"{kind:<22}{t}" for kind, t in titles.items()))
        return 0
    kind = find_kind(" ".join(options.kind))
    section = read_sections()[kind]
    answer(options, {"kind": kind, "section": section}, section)
    return 0


def find_kind(text: str) -> str:
    """Return the kind that a user typed, whatever its case, with spaces or hyphens.

    >>> find_kind("Callback-in-c")
    'callback in C'
    """
    kinds = {kind.lower(): kind for kind in read_sections()}
    typed = text.lower().replace("-", " ").strip()
    if typed in kinds:
        return kinds[typed]
    near = difflib.get_close_matches(typed, kinds, n=3, cutoff=0.5)
    meant = f"did you mean {' or '.join(repr(kinds[k]) for k in near)}? " if near else ""
    raise CommandError(f"no explanation of {text!r}; {meant}`archimedes explain` lists all kinds")


def read_sections() -> dict[str, str]:
    """Return the sections of the page about errors by the kind of mistake that they explain.

    >>> print(read_sections()["branch"].splitlines()[0])
    A branch on a value
    """
    sections = {}
    for section in re.split(r"^###? ", _page().read_text("utf-8"), flags=re.MULTILINE):
        title, _, text = section.partition("\n")
        if mark := re.match(r"<!-- explain: (.+) -->\n", text):
            sections[mark[1]] = f"{title}\n{text[mark.end() :]}".rstrip()
    return dict(sorted(sections.items()))


def _page() -> Path:
    """Return the page: beside this file in a wheel, in ``docs`` in a source tree."""
    root = checkout_folder()
    return root / "docs" / "errors.md" if root else Path(__file__).with_name("errors.md")
