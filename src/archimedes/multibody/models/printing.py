"""A model printed as a tree: joints, what they carry, masses and limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import concrete

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Link, Model

__all__ = ["one_each", "tree_text"]


def tree_text(model: Model) -> str:
    """Return one line per link under the line of its parent, totals first."""
    head = repr(model)[len("Model(") : -1].replace(f"{model.name!r}: ", f"{model.name}: ", 1)
    children: dict[int, list[int]] = {}
    for i, link in enumerate(model.links):
        children.setdefault(link.parent, []).append(i)
    lines = [head]
    waiting = [(i, "", i == children[-1][-1]) for i in reversed(children[-1])]
    while waiting:
        i, indent, last = waiting.pop()
        lines.append(f"{indent}{'└─' if last else '├─'} {link_text(model, i)}")
        below = children.get(i, [])
        inner = indent + ("   " if last else "│  ")
        waiting += [(k, inner, k == below[-1]) for k in reversed(below)]
    return "\n".join(lines)


def link_text(model: Model, i: int) -> str:
    """Return the line of one link."""
    link = model.links[i]
    body = link.body or "(massless)"
    mass = one_each(model.masses)
    weight = "" if mass is None or not link.body else f", {mass[i]:.4g} kg"
    welded = [f.name for f in model.frames if f.link == i and f.name != link.body]
    more = f" + {', '.join(welded)}" if welded else ""
    return f"{link.joint} ({link.kind.name}{detail(model, link)}) → {body}{weight}{more}"


def detail(model: Model, link: Link) -> str:
    """Return the limits of a joint, or what it follows."""
    if link.mimic:
        source = next(k.joint for k in model.links if k.q == link.q and not k.mimic)
        shift = f" {'-' if link.offset < 0 else '+'} {abs(link.offset):g}" if link.offset else ""
        return f", {link.scale:g} {source}{shift}"
    places = slice(link.q, link.q + link.kind.nq)
    low, high = limits(model.lower, places), limits(model.upper, places)
    if low is None or high is None or not np.isfinite([*low, *high]).any():
        return ""
    return "".join(f", {a:.4g} to {b:.4g}" for a, b in zip(low, high, strict=True))


def limits(values: Any, places: slice) -> list[float] | None:
    """Return the values of a joint where they are known."""
    known = one_each(values)
    return None if known is None else known[places].tolist()


def one_each(values: Any) -> Any:
    """Return numbers where they are known and of one model, None where they are of many."""
    known = concrete(values)
    return known if known is not None and known.ndim == 1 else None
