"""MathML 2 content markup, read into expressions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from archimedes.vehicles.dave_ml.expressions import (
    OPERATIONS,
    Apply,
    Expression,
    Number,
    Piecewise,
    Reference,
)
from archimedes.xml_elements import Element, number

__all__ = ["parse"]

CONSTANTS = {"pi": np.pi, "exponentiale": np.e, "true": 1.0, "false": 0.0, "notanumber": np.nan}
CONSTANTS |= {"infinity": np.inf, "eulergamma": np.euler_gamma}
#: Qualifiers that stand between an operation and its arguments: they come last here.
QUALIFIERS = {"root": "degree", "log": "logbase"}


def parse(math: Element) -> Expression:
    """Return the expression in a <math> element."""
    parts = list(math)
    if math.tag != "math" or len(parts) != 1:
        raise math.error(f"<{math.tag}> must be a <math> with one expression")
    return _parse(parts[0])


def _parse(element: Element) -> Expression:
    if element.tag in CONSTANTS:
        return Number(CONSTANTS[element.tag])
    reader = _READERS.get(element.tag)
    if reader is None:
        raise element.error(
            f"MathML <{element.tag}> is not among the expressions that are read: "
            f"{', '.join([*_READERS, *CONSTANTS])}"
        )
    return reader(element)


def _number(element: Element) -> Number:
    """<cn>: a number, or two with <sep/> between them."""
    form = element.attributes.get("type", "real")
    words = [part.strip() for part in element.content if isinstance(part, str) and part.strip()]
    if form in ("e-notation", "rational") and len(words) == 2:
        if form == "e-notation":
            return Number(number("e".join(words), element, "<cn>"))
        above, below = (number(word, element, "<cn>") for word in words)
        if below == 0.0:
            raise element.error("<cn> of type 'rational' has a denominator of zero")
        return Number(above / below)
    if form not in ("real", "integer", "double") or element.attributes.get("base", "10") != "10":
        raise element.error(f"<cn> of type {form!r} and other bases than 10 are not read")
    return Number(number(element.text, element, "<cn>"))


def _apply(element: Element) -> Expression:
    """<apply>: an operation and its arguments, or one expression in an <apply> of its own.

    NASA's F-16 and two-stage rocket write <apply><piecewise>...</piecewise></apply>.
    """
    parts = list(element)
    if not parts:
        raise element.error("<apply> is empty; it needs an operation and its arguments")
    head, rest = parts[0], parts[1:]
    name = head.tag
    if name in _READERS:
        if rest:
            raise rest[0].error(
                f"<apply> around <{name}> holds this one expression, got <{rest[0].tag}> after it"
            )
        return _parse(head)
    if name == "csymbol":
        address = head.attributes.get("definitionURL", "")
        name = address.rpartition("#")[2] or head.text
    if name not in OPERATIONS:
        raise head.error(
            f"MathML operation {name!r} is not among those that are read: {', '.join(OPERATIONS)}"
        )
    qualifier = QUALIFIERS.get(name)
    last = [part for part in rest if part.tag == qualifier]
    arguments = [_parse(part) for part in rest if part.tag != qualifier]
    arguments += [_parse(inner) for part in last for inner in part]
    _, fewest, most = OPERATIONS[name]
    if not fewest <= len(arguments) <= most:
        allowed = f"{fewest}" if fewest == most else f"{fewest} to {most}"
        raise element.error(f"{name} takes {allowed} arguments, got {len(arguments)}")
    return Apply(name, tuple(arguments))


def _reference(element: Element) -> Reference:
    if not element.text:
        raise element.error("<ci> is empty; it holds the varID of a variable")
    return Reference(element.text, element.place)


def _semantics(element: Element) -> Expression:
    """The first element is the expression, the others are annotations."""
    parts = list(element)
    if not parts:
        raise element.error("<semantics> is empty")
    return _parse(parts[0])


def _piecewise(element: Element) -> Piecewise:
    pieces, otherwise = [], element.find("otherwise")
    for part in element:
        inside = list(part)
        if part.tag not in ("piece", "otherwise") or len(inside) != 1 + (part.tag == "piece"):
            raise part.error(
                "<piecewise> holds <piece>s of a value and a condition and one <otherwise>, got "
                f"<{part.tag}> with {len(inside)} elements"
            )
        if part.tag == "piece":
            pieces.append((_parse(inside[0]), _parse(inside[1])))
    if not pieces:
        raise element.error("<piecewise> has no <piece>")
    rest = None if otherwise is None else _parse(next(iter(otherwise)))
    return Piecewise(tuple(pieces), rest)


_READERS: dict[str, Callable[[Element], Expression]] = {
    "cn": _number,
    "ci": _reference,
    "apply": _apply,
    "reln": _apply,  # MathML 1 writes relations so
    "piecewise": _piecewise,
    "semantics": _semantics,
}
