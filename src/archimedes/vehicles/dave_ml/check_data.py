"""Check data of a DAVE-ML file: cases with what goes in and what must come out."""

from __future__ import annotations

from archimedes.vehicles.dave_ml.definitions import Definitions, Shot, Signal
from archimedes.xml_elements import Element, number

__all__ = ["read_check_data"]


def read_check_data(element: Element, found: Definitions) -> None:
    """Read the check cases of a file."""
    for shot in element:
        if shot.tag == "staticShot":
            given, inside = shot.find("checkInputs"), shot.find("internalValues")
            found.shots.append(
                Shot(
                    shot.attributes.get("name", f"shot {len(found.shots) + 1}"),
                    () if given is None else _signals(given),
                    _signals(shot.need("checkOutputs"), tolerance=True),
                    () if inside is None else _signals(inside),
                    shot.place,
                )
            )


def _signals(element: Element, tolerance: bool = False) -> tuple[Signal, ...]:
    result = []
    for part in element:
        named = [p for p in part if p.tag in ("signalName", "signalID", "varID")]
        if not named:
            raise part.error("<signal> has neither <signalName> nor <varID>")
        tol = part.need("tol") if tolerance else part.find("tol")
        limit = None if tol is None else number(tol.text, tol, f"tol of {named[0].text!r}")
        if tol is not None and limit is not None and limit < 0.0:
            raise tol.error(f"tol of {named[0].text!r} is negative")
        units = part.find("signalUnits")
        result.append(
            Signal(
                named[0].text,
                named[0].tag == "signalName",
                None if units is None else units.text,
                number(part.need("signalValue").text, part, f"value of {named[0].text!r}"),
                limit,
                part.place,
            )
        )
    return tuple(result)
