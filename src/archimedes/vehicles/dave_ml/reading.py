"""Reads the elements of a DAVE-ML file.

Names and rules are those of ANSI/AIAA S-119-2011 and of the DAVE-ML 2.0 reference.
"""

from __future__ import annotations

from collections.abc import Callable

from archimedes.vehicles.dave_ml.attributes import increasing, new_key, optional_number, range_of
from archimedes.vehicles.dave_ml.check_data import read_check_data
from archimedes.vehicles.dave_ml.definitions import Definitions, Variable
from archimedes.vehicles.dave_ml.expressions import Apply, Piecewise
from archimedes.vehicles.dave_ml.functions import read_function
from archimedes.vehicles.dave_ml.mathml import parse
from archimedes.vehicles.dave_ml.table_elements import TABLES
from archimedes.xml_elements import Element, numbers

__all__ = ["read_definitions"]

#: Elements with a meaning here, and the elements that are read inside them.
READ = {
    "DAVEfunc": "fileHeader variableDef breakpointDef griddedTableDef ungriddedTableDef function "
    "checkData",
    "fileHeader": "",
    "variableDef": "calculation isInput isControl isDisturbance isState isStateDeriv isOutput",
    "calculation": "math",
    "breakpointDef": "bpVals",
    "griddedTableDef": "breakpointRefs dataTable",
    "griddedTable": "breakpointRefs dataTable",
    "breakpointRefs": "bpRef",
    "ungriddedTableDef": "dataPoint",
    "ungriddedTable": "dataPoint",
    "function": "independentVarPts dependentVarPts independentVarRef dependentVarRef functionDefn",
    "functionDefn": TABLES,
    "checkData": "staticShot",
    "staticShot": "checkInputs internalValues checkOutputs",
    "checkInputs": "signal",
    "internalValues": "signal",
    "checkOutputs": "signal",
    "signal": "signalName signalID varID signalUnits signalValue tol",
}
#: Elements that do not change what a model computes.
IGNORED = {"description", "provenance", "provenanceRef", "uncertainty", "isStdAIAA"}
IGNORED |= {"confidenceBound", "author", "creationDate", "fileCreationDate", "fileVersion"}
IGNORED |= {"reference", "modificationRecord", "extraDocRef", "documentRef", "address"}
IGNORED |= {"fileCreationInfo", "classification", "dataAssumptions"}


def read_definitions(root: Element) -> Definitions:
    """Read the elements of a DAVEfunc file."""
    if root.tag != "DAVEfunc":
        raise root.error(f"a DAVE-ML model starts with <DAVEfunc>, this file with <{root.tag}>")
    found = Definitions()
    _survey(root, found)
    header = root.find("fileHeader")
    found.name = "" if header is None else header.attributes.get("name", "")
    readers: dict[str, Callable[[Element, Definitions], None]] = {
        "variableDef": _variable,
        "breakpointDef": _breakpoints,
        "griddedTableDef": _table,
        "ungriddedTableDef": _table,
        "function": read_function,
        "checkData": read_check_data,
    }
    for tag, reader in readers.items():
        for element in root:
            if element.tag == tag:
                reader(element, found)
    if not found.variables:
        raise root.error("the model defines no variable")
    return found


def _survey(element: Element, found: Definitions) -> None:
    """Count what is ignored; refuse what is unknown, since it may matter."""
    read = READ.get(element.tag, "").split()
    for part in element:
        if part.tag in read:
            if part.tag != "math":
                _survey(part, found)
        elif part.tag in IGNORED or part.tag.startswith("{"):
            found.ignored[part.tag] += 1
        else:
            raise part.error(
                f"<{part.tag}> in <{element.tag}> is not known from ANSI/AIAA S-119-2011; remove "
                "it if the model does not depend on it"
            )


def _variable(element: Element, found: Definitions) -> None:
    key = new_key(element.get("varID"), found.variables, element, "varID")
    calculation, told = element.find("calculation"), element.attributes
    source = None if calculation is None else parse(calculation.need("math"))
    roles = frozenset(part.tag for part in element if part.tag.startswith("is"))
    if source is not None and roles & {"isInput", "isControl", "isDisturbance"}:
        raise element.error(f"variable {key!r} is an input and has a calculation; it can be one")
    for part in () if source is None else source.walk():
        if isinstance(part, Piecewise) and part.otherwise is None:
            found.approximated.append(f"{key}: nan where no piece applies, <otherwise> is missing")
        if isinstance(part, Apply) and part.operation == "quotient":
            found.approximated.append(
                f"{key}: <quotient> is the whole number of MathML, where some tools divide"
            )
    description = element.find("description")
    found.variables[key] = Variable(
        key,
        told.get("name", key).strip(),
        told.get("units", "").strip(),
        optional_number(element, "initialValue", None),
        *range_of(element, "minValue", "maxValue"),
        roles,
        told.get("sign", ""),
        told.get("axisSystem", ""),
        "" if description is None else " ".join(description.text.split()),
        element.place,
        source,
    )


def _breakpoints(element: Element, found: Definitions) -> None:
    key = new_key(element.get("bpID"), found.breakpoints, element, "bpID")
    points = numbers(element.need("bpVals"), f"breakpoints {key!r}")
    found.breakpoints[key] = increasing(points, element, f"breakpoints {key!r}")


def _table(element: Element, found: Definitions) -> None:
    key = element.attributes.get("gtID") or element.attributes.get("utID")
    if not key:
        raise element.error(f"<{element.tag}> has no attribute gtID or utID")
    found.tables[new_key(key, found.tables, element, "table")] = element
