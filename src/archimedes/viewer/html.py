"""A scene as one HTML file that needs nothing else: no network, no libraries, no other files.

Names, units and titles are data in it, never markup: they stand in a block of JSON whose every
``<``, ``>`` and ``&`` is written as an escape, and the script puts them on the page as text. The
page's own policy allows the one script and the one style sheet it was made with, by their digests,
and nothing else: no other script runs in it, and no request can leave it.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import json
from importlib import resources
from string import Template
from typing import Any

from archimedes.viewer.packing import pack
from archimedes.viewer.scene import Scene

__all__ = ["THEMES", "page"]

#: Files of the script, in order: one scope, no modules, so that it works from a file.
SCRIPTS = (
    *("numbers", "data", "shaders", "drawing", "camera"),
    *("frame", "charts", "controls", "main"),
)
THEMES = ("auto", "light", "dark")


@functools.cache
def _texts() -> tuple[str, str, str]:
    """Return template, style and script as they are in the package."""
    folder = resources.files("archimedes.viewer") / "page"
    read = lambda name: (folder / name).read_text(encoding="utf-8")  # noqa: E731
    script = "\n".join(read(f"{name}.js") for name in SCRIPTS)
    return read("page.html"), read("style.css"), f'"use strict";\n(() => {{\n{script}}})();\n'


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _json(data: Any) -> str:
    """Return data as JSON that cannot end the element it stands in, nor a line of a script."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def page(scene: Scene, theme: str = "auto") -> str:
    """Return the page of a scene; `theme` is "light", "dark" or "auto" (as the reader's system).

    >>> from archimedes.viewer import Body, box
    >>> still = Body("box", [box([1, 1, 1])], t=0.0, position=[0, 0, 0], attitude=[1, 0, 0, 0])
    >>> text = page(Scene("a </script> box", [still]))
    >>> "a </script> box" in text, text.count("<script")
    (False, 3)
    """
    if theme not in THEMES:
        raise ValueError(f"view: theme must be one of {THEMES}, got {theme!r}")
    template, style, script = _texts()
    description, data = pack(scene)
    return Template(template).substitute(
        TITLE=html.escape(scene.title or "Archimedes"),
        STYLE=style,
        SCRIPT=script,
        STYLE_HASH=_digest(style),
        SCRIPT_HASH=_digest(script),
        SCENE=_json({**description, "theme": theme}),
        DATA=data,
    )
