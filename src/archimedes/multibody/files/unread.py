"""What a reader does not know in a file: elements and attributes beside those of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from archimedes.multibody.models.reports import Report
from archimedes.xml_elements import Element

__all__ = ["Known", "report_unread"]


class Known(NamedTuple):
    """What is read of an element, names with blanks between: attributes, and elements inside.

    `seen` are elements that are for the eye alone: neither read nor reported.
    """

    attributes: str = ""
    elements: str = ""
    seen: str = ""


def report_unread(
    element: Element, table: Mapping[str, Known], report: Report, of: str, texts: bool = False
) -> None:
    """Add to a report what is in an element, which is `of` this, and not in the table.

    What is inside an unknown element is not looked at, nor are attributes without a value. `texts`
    tells that numbers may be texts of elements.
    """
    known = table.get(element.tag, Known())
    if element.text and not texts:
        report.ignored.append(f"{element.place}: text in <{element.tag}> of {of}")
    for key, value in element.attributes.items():
        if key not in known.attributes.split() and value.strip() and not key.startswith("xmlns"):
            report.ignored.append(f"{element.place}: {key} in <{element.tag}> of {of}")
    for part in element:
        if part.tag in known.elements.split():
            report_unread(part, table, report, of, texts)
        elif part.tag not in known.seen.split():
            report.ignored.append(f"{part.place}: <{part.tag}> of {of}")
