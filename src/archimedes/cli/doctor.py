"""``archimedes doctor``: what is installed, what is missing, and how to add it.

It is needed most where something is broken: it imports nothing that could fail without saying so,
writes nothing, and asks each thing by itself.
"""

from __future__ import annotations

import argparse

from archimedes.cli.answers import print_json

__all__ = ["declare", "run"]

SIGNS = {"ok": "ok", "missing": "--", "problem": "!!", "info": "  "}


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the options (there is only --json)."""


def run(options: argparse.Namespace) -> int:
    """Look at everything; the exit status is 1 where something that is needed is wrong."""
    from archimedes.cli.examinations import examine

    sections = examine()
    wrong = [f for found in sections.values() for f in found if f.state == "problem"]
    if options.json:
        data = {title: [f._asdict() for f in found] for title, found in sections.items()}
        print_json({"healthy": not wrong, "sections": data})
        return 1 if wrong else 0
    for title, found in sections.items():
        print(f"{title}")
        for f in found:
            print(f"  {SIGNS[f.state]}  {f.name:<26}{f.value}")
            if f.advice:
                print(f"      {f.advice}")
        print()
    print(
        f"{len(wrong)} thing(s) to repair, marked !!" if wrong else "All that is needed is there."
    )
    return 1 if wrong else 0
