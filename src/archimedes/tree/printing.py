"""How structs are shown: one line of text, or a small HTML table in notebooks."""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["show_value", "struct_html", "struct_repr"]


def show_scalar(value: Any) -> str:
    return str(value) if isinstance(value, (np.number, np.bool_)) else repr(value)


def show_tuple(value: tuple) -> str:
    inner = ", ".join(map(show_value, value))
    return f"({inner},)" if len(value) == 1 else f"({inner})"


def show_dict(value: dict) -> str:
    return f"{{{', '.join(f'{show_value(k)}: {show_value(v)}' for k, v in value.items())}}}"


SHOW: dict[type, Callable[[Any], str]] = {
    list: lambda value: f"[{', '.join(map(show_value, value))}]",
    tuple: show_tuple,
    dict: show_dict,
}


def show_value(value: Any) -> str:
    """Return the repr of a value, with NumPy scalars written as plain numbers.

    >>> import numpy as np
    >>> show_value([np.float64(0.5), np.zeros(2)])
    '[0.5, array([0., 0.])]'
    """
    return SHOW.get(type(value), show_scalar)(value)


def short_name(cls: type) -> str:
    """Return the qualified name of a class, without the function it may be defined in."""
    return cls.__qualname__.rpartition("<locals>.")[2]


@reprlib.recursive_repr()
def struct_repr(self: Any) -> str:
    """Return the text of a struct, such as ``Body.State(pos=array([0., 0., 0.]))``."""
    shown = [f.name for f in dataclasses.fields(self) if f.repr]
    inner = ", ".join(f"{name}={show_value(getattr(self, name))}" for name in shown)
    return f"{short_name(type(self))}({inner})"


def struct_html(self: Any) -> str:
    """Return a nested HTML table of names, shapes, units and values."""
    import html  # slow to import, and needed in notebooks only

    rows = []
    for f in dataclasses.fields(self):
        if not f.repr:
            continue
        value = getattr(self, f.name)
        nested = getattr(type(value), "_repr_html_", None) is struct_html
        shape = getattr(value, "shape", None)
        cells = (
            html.escape(f.name),
            "" if shape is None else html.escape(str(tuple(shape))),
            html.escape(str(f.metadata.get("units", ""))),
            struct_html(value) if nested else f"<pre>{html.escape(show_value(value))}</pre>",
        )
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    head = "<tr><th>name</th><th>shape</th><th>units</th><th>value</th></tr>"
    caption = f"<caption>{html.escape(short_name(type(self)))}</caption>"
    return f"<table>{caption}{head}{''.join(rows)}</table>"
