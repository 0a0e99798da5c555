"""The XML files of an FMU: ``modelDescription.xml`` and ``buildDescription.xml``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from archimedes.errors import UnitsError
from archimedes.interchange.fmi.fmu_description import Description, Variable
from archimedes.physical_units import parse_unit
from archimedes.version import __version__

#: Names of the types, of variables and of elements.
_TYPES_2 = {"real": "Real", "integer": "Integer", "boolean": "Boolean"}
_TYPES_3 = {"real": "Float64", "integer": "Int64", "boolean": "Boolean"}
_TOOL = f"Archimedes {__version__}"
_CATEGORIES = {
    "logStatusError": "Errors, such as calls in a wrong state and failures of the solver",
    "logStatusDiscard": "Steps that a terminal event has cut short",
}


def model_description(description: Description, sources: bool = True) -> str:
    """Return the text of ``modelDescription.xml``; that of FMI 2 lists the sources."""
    root = _root(description)
    _add_interfaces(root, description)
    if description.version == "2.0" and sources:
        _add_source_files(root)
    _add_units(root, description)
    categories = SubElement(root, "LogCategories")
    for name, text in _CATEGORIES.items():
        SubElement(categories, "Category", name=name, description=text)
    settings = description.model.settings
    experiment = {
        "startTime": _number(settings.start_time),
        "stopTime": _number(settings.stop_time),
        "tolerance": _number(description.tolerance),
    }
    if settings.dt:
        experiment["stepSize"] = _number(settings.dt)
    SubElement(root, "DefaultExperiment", experiment)
    if description.version == "2.0":
        _add_variables_2(root, description)
        _add_structure_2(root, description)
    else:
        _add_variables_3(root, description)
        _add_structure_3(root, description)
    return _text(root)


def build_description(description: Description) -> str:
    """Return the text of ``sources/buildDescription.xml`` of FMI 3."""
    root = Element("fmiBuildDescription", fmiVersion="3.0")
    configuration = SubElement(root, "BuildConfiguration", modelIdentifier=description.identifier)
    files = SubElement(
        configuration, "SourceFileSet", language="C99", compilerOptions="-ffp-contract=off"
    )
    SubElement(files, "SourceFile", name="fmi3.c")
    SubElement(files, "PreprocessorDefinition", name="FMI3_OVERRIDE_FUNCTION_PREFIX", value="1")
    return _text(root)


def _root(d: Description) -> Element:
    root = Element("fmiModelDescription")
    root.set("fmiVersion", d.version)
    root.set("modelName", _clean(d.name))
    root.set("guid" if d.version == "2.0" else "instantiationToken", d.token)
    if d.summary:
        root.set("description", _clean(d.summary))
    root.set("generationTool", _TOOL)
    root.set("variableNamingConvention", "structured")
    if d.version == "2.0":
        root.set("numberOfEventIndicators", str(len(d.model.events)))
    return root


def _add_interfaces(root: Element, d: Description) -> None:
    if d.version == "2.0":
        common = {
            "modelIdentifier": d.identifier,
            "canNotUseMemoryManagementFunctions": "true",
            "canGetAndSetFMUstate": "true",
            "canSerializeFMUstate": "true",
            "providesDirectionalDerivative": "true",
        }
    else:
        common = {
            "modelIdentifier": d.identifier,
            "canGetAndSetFMUState": "true",
            "canSerializeFMUState": "true",
            "providesDirectionalDerivatives": "true",
            "providesAdjointDerivatives": "true",
            "providesPerElementDependencies": "true",
        }
    needs_steps = d.model.plan.project is not None
    if "me" in d.kinds:
        if d.version == "2.0":
            own = {"completedIntegratorStepNotNeeded": _truth(not needs_steps)}
        else:
            own = {"needsCompletedIntegratorStep": _truth(needs_steps)}
        SubElement(root, "ModelExchange", common | own)
    if "cs" in d.kinds:
        own = {"canHandleVariableCommunicationStepSize": "true"}
        if d.version == "3.0":
            own |= {
                "providesIntermediateUpdate": "true",
                "canReturnEarlyAfterIntermediateUpdate": "true",
            }
            if d.settings_dt:
                own["fixedInternalStepSize"] = _number(d.settings_dt)
        SubElement(root, "CoSimulation", common | own)
    if "se" in d.kinds:
        SubElement(root, "ScheduledExecution", common)


def _add_source_files(root: Element) -> None:
    for interface in list(root):
        files = SubElement(interface, "SourceFiles")
        SubElement(files, "File", name="fmi2.c")


# ---- units ------------------------------------------------------------------------------------

_ANGLE = re.compile(r"^(rad|deg)\b")


def _add_units(root: Element, d: Description) -> None:
    names = dict.fromkeys(v.units for v in d.variables if v.units)
    if not names:
        return
    definitions = SubElement(root, "UnitDefinitions")
    for name in names:
        unit = SubElement(definitions, "Unit", name=_clean(name))
        base = _base_unit(name)
        if base is not None:
            SubElement(unit, "BaseUnit", base)


def _base_unit(name: str) -> dict[str, str] | None:
    """Return a unit in base units; None where FMI cannot say it, such as a root of a metre.

    >>> _base_unit("km/h")
    {'m': '1', 's': '-1', 'factor': '0.2777777777777778'}
    """
    try:
        unit = parse_unit(name)
    except UnitsError:
        return None
    exponents = dict(zip(("kg", "m", "s", "A", "K", "mol", "cd"), unit.dims[:-1]))
    if any(int(power) != power for power in exponents.values()) or not np.isfinite(unit.scale):
        return None
    base = {base: str(int(power)) for base, power in exponents.items() if power}
    if _ANGLE.match(name):
        base["rad"] = "1"
    if unit.scale != 1.0:
        base["factor"] = _number(unit.scale)
    if unit.offset:
        base["offset"] = _number(unit.offset)
    return base


# ---- variables --------------------------------------------------------------------------------


def _common(v: Variable, name: str, reference: int) -> dict[str, str]:
    found = {"name": name, "valueReference": str(reference)}
    if v.description:
        found["description"] = _clean(v.description)
    found |= {"causality": v.causality, "variability": v.variability}
    # FMI gives these no choice.
    if v.initial is not None and v.causality != "input":
        found["initial"] = v.initial
    return found


def _limits(v: Variable) -> dict[str, str]:
    found = {}
    if v.type == "real" and v.units:
        found["unit"] = _clean(v.units)
    if v.type != "boolean":
        number = _number if v.type == "real" else lambda value: str(int(value))
        if v.minimum is not None:
            found["min"] = number(v.minimum)
        if v.maximum is not None:
            found["max"] = number(v.maximum)
    if v.nominal is not None:
        found["nominal"] = _number(v.nominal)
    return found


def _add_variables_2(root: Element, d: Description) -> None:
    variables = SubElement(root, "ModelVariables")
    for v in d.variables:
        starts = None if v.start is None else np.ravel(v.start)
        for k, name in enumerate(v.element_names):
            scalar = SubElement(variables, "ScalarVariable", _common(v, name, v.reference + k))
            attributes = _limits(v)
            if starts is not None:
                attributes["start"] = _value(starts[k], v.type)
            if v.derivative_of is not None:
                attributes["derivative"] = str(_index(v.derivative_of + k))
            SubElement(scalar, _TYPES_2[v.type], attributes)


def _add_variables_3(root: Element, d: Description) -> None:
    variables = SubElement(root, "ModelVariables")
    for v in d.variables:
        attributes = _common(v, v.name, v.reference) | _limits(v)
        if v.derivative_of is not None:
            attributes["derivative"] = str(v.derivative_of)
        if v.start is not None:
            attributes["start"] = " ".join(_value(x, v.type) for x in np.ravel(v.start))
        variable = SubElement(variables, _TYPES_3[v.type], attributes)
        for length in v.shape:
            SubElement(variable, "Dimension", start=str(length))
    for clock in d.clocks:
        attributes = {
            "name": clock.name,
            "valueReference": str(clock.reference),
            "causality": "input",
            "variability": "discrete",
            "intervalVariability": "constant",
            "intervalDecimal": _number(clock.interval),
            "shiftDecimal": _number(clock.shift),
        }
        if clock.description:
            attributes["description"] = _clean(clock.description)
        SubElement(variables, "Clock", attributes)


# ---- structure --------------------------------------------------------------------------------


def _index(reference: int) -> int:
    """Return the number of a scalar in FMI 2, from 1: value references count them too."""
    return reference + 1


def _add_structure_2(root: Element, d: Description) -> None:
    structure = SubElement(root, "ModelStructure")
    derivatives = d.of("dx")
    groups = {"Outputs": d.outputs, "Derivatives": derivatives}
    for title, unknowns in groups.items():
        if unknowns:
            group = SubElement(structure, title)
            for v in unknowns:
                for k in range(v.size):
                    known = [_index(j) for j in _knowns(d, v, [k], initial=False)]
                    SubElement(group, "Unknown", _unknown(_index(v.reference + k), known))
    initial = [v for v in (*d.outputs, *derivatives) if v.initial == "calculated"]
    if initial:
        group = SubElement(structure, "InitialUnknowns")
        for v in sorted(initial, key=lambda v: v.reference):
            for k in range(v.size):
                known = [_index(j) for j in _knowns(d, v, [k], initial=True)]
                SubElement(group, "Unknown", _unknown(_index(v.reference + k), known))


def _unknown(index: int, known: Iterable[int]) -> dict[str, str]:
    return {"index": str(index), "dependencies": " ".join(map(str, known))}


def _add_structure_3(root: Element, d: Description) -> None:
    structure = SubElement(root, "ModelStructure")
    of_element = {v.reference + k: v.reference for v in d.variables for k in range(v.size)}

    def add(title: str, v: Variable, initial: bool) -> None:
        elements = _knowns(d, v, range(v.size), initial)
        known = sorted({of_element[j] for j in elements})
        attributes = {
            "valueReference": str(v.reference),
            "dependencies": " ".join(map(str, known)),
        }
        SubElement(structure, title, attributes)

    derivatives, indicators = d.of("dx"), d.of("z")
    for v in d.outputs:
        add("Output", v, False)
    for v in derivatives:
        add("ContinuousStateDerivative", v, False)
    for v in (*d.outputs, *derivatives):
        if v.initial == "calculated":
            add("InitialUnknown", v, True)
    for v in indicators:
        add("EventIndicator", v, False)


def _knowns(d: Description, v: Variable, elements: Iterable[int], initial: bool) -> list[int]:
    """Return the references of what elements of an unknown depend on.

    During initialization these are all variables that have start values, else inputs, states
    and time.
    """
    allowed = d.knowns(initial)
    found: set[int] = set()
    for k in elements:
        at = v.offset + k
        found |= {v.reference + k} if v.bank == "x" else d.dependencies[v.bank, at]
    return sorted(found & allowed)


# ---- text -------------------------------------------------------------------------------------


def _number(value: float) -> str:
    return repr(float(value))


def _clean(text: str) -> str:
    """Return text as one line of what XML can hold."""
    return "".join(char for char in " ".join(text.split()) if char.isprintable())


def _truth(value: Any) -> str:
    return "true" if value else "false"


def _value(value: Any, kind: str) -> str:
    if kind == "boolean":
        return _truth(value)
    return str(int(value)) if kind == "integer" else _number(value)


def _text(root: Element) -> str:
    ElementTree.indent(root)
    body = ElementTree.tostring(root, encoding="unicode", xml_declaration=False)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'
