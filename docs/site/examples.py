"""A page for each script of ``examples/``, and the gallery."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docs.site.demo_pictures import demo_cards
from docs.site.kept_outputs import EXAMPLES

__all__ = ["example_pages"]

OPENING = """# Gallery

"""
PROGRAMS = """## Programs

Whole programs of at most 120 lines, each of which checks what it claims. They are the files of the
folder `examples` of the repository; copy one and change it. Each page has the program, what it
prints, and a picture drawn from its variables.

"""


def example_pages(outputs: dict[Path, list[dict[str, Any]]]) -> Iterator[tuple[str, str]]:
    """Yield the pages: path without ending, and text."""
    yield "gallery", _gallery(outputs)
    for script in EXAMPLES:
        yield f"examples/{script.stem}", _page(script, outputs[script][0])


def _heading(script: Path) -> str:
    return (
        script.stem.split("_", 1)[1]
        .replace("_", " ")
        .capitalize()
        .replace("F16", "F-16")
        .replace("Nasa", "NASA")
        .replace("Rl ", "RL ")
        .replace("monte carlo", "Monte Carlo")
        .replace(" and c", " and C")
        .replace("urdf", "URDF")
        .replace("lqr", "LQR")
    )


def _says(script: Path) -> str:
    return ast.get_docstring(ast.parse(script.read_text("utf-8"))) or ""


def _page(script: Path, output: dict[str, Any]) -> str:
    pictures = "".join(
        f"![{_heading(script)}, drawn from the program's variables.](../pictures/{p})\n\n"
        for p in output["pictures"]
    )
    return (
        f"# {_heading(script)}\n\n{_says(script)}\n\n{pictures}"
        f"```python\n{script.read_text('utf-8').rstrip()}\n```\n\nIt prints:\n\n"
        f"```{{code-block}} text\n:class: output\n\n{output['text'].rstrip()}\n```\n"
    )


def _gallery(outputs: dict[Path, list[dict[str, Any]]]) -> str:
    cards = "".join(_card(script, outputs[script][0]) for script in EXAMPLES)
    names = "\n".join(f"examples/{s.stem}" for s in EXAMPLES)
    return f"{OPENING}{demo_cards()}{PROGRAMS}{cards}\n```{{toctree}}\n:hidden:\n\n{names}\n```\n"


def _card(script: Path, output: dict[str, Any]) -> str:
    picture = "".join(f"![{_heading(script)}](pictures/{p})\n\n" for p in output["pictures"][:1])
    line = " ".join(_says(script).split("\n\n")[0].split())
    return f"### [{_heading(script)}](examples/{script.stem}.md)\n\n{line}\n\n{picture}"
