"""Writes DAVE-ML files for the tests: small ones, and the aerodynamics of the F-16."""

from __future__ import annotations

import numpy as np

from archimedes.vehicles.f16.f16 import TABLES as T

DAVE = "http://daveml.org/2010/DAVEML"
MATHML = "http://www.w3.org/1998/Math/MathML"
DOCTYPE = (
    '<!DOCTYPE DAVEfunc PUBLIC "-//AIAA//DTD for Flight Dynamic Models - Functions 2.0//EN"\n'
    '  "http://www.daveml.org/DTDs/2p0/DAVEfunc.dtd">\n'
)


def document(*parts, doctype=DOCTYPE, namespace=True, header='<fileHeader name="a model"/>'):
    space = f' xmlns="{DAVE}"' if namespace else ""
    inside = "\n".join([header, *parts])
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n{doctype}<DAVEfunc{space}>\n{inside}\n</DAVEfunc>'
    )


def math(expression):
    """("plus", "x", 2.0) as MathML; {"if": [(value, condition), ...], "else": value} too.

    ("<apply>", expression) puts an expression into an <apply> of its own, as NASA's files do.
    """
    if isinstance(expression, str):
        return expression if expression.startswith("<") else f"<ci>{expression}</ci>"
    if isinstance(expression, dict):
        pieces = "".join(f"<piece>{math(v)}{math(c)}</piece>" for v, c in expression["if"])
        last = expression.get("else")
        rest = "" if last is None else f"<otherwise>{math(last)}</otherwise>"
        return f"<piecewise>{pieces}{rest}</piecewise>"
    if isinstance(expression, tuple):
        head, *arguments = expression
        if head == "<apply>":
            return f"<apply>{math(*arguments)}</apply>"
        head = head if head.startswith("<") else f"<{head}/>"
        return f"<apply>{head}{''.join(map(math, arguments))}</apply>"
    return f"<cn>{expression!r}</cn>"


def variable(key, expression=None, marks="", inside="", name=None, units="nd", **attributes):
    told = "".join(f' {k}="{v}"' for k, v in attributes.items())
    if expression is not None:
        space = f' xmlns="{MATHML}"'
        inside += f"<calculation><math{space}>{math(expression)}</math></calculation>"
    inside += "".join(f"<is{mark}/>" for mark in marks.split())
    told = f'name="{name or key}" varID="{key}" units="{units}"{told}'
    return f"<variableDef {told}>{inside}</variableDef>"


def listed(values):
    return ", ".join(repr(float(v)) for v in np.ravel(values))


def breakpoints(key, values):
    return f'<breakpointDef bpID="{key}"><bpVals>{listed(values)}</bpVals></breakpointDef>'


def gridded(axes, values, attributes=""):
    references = "".join(f'<bpRef bpID="{key}"/>' for key in axes)
    return (
        f"<griddedTableDef {attributes}><breakpointRefs>{references}</breakpointRefs>"
        f"<dataTable>{listed(values)}</dataTable></griddedTableDef>"
    )


def function(output, inputs, table):
    """`inputs` are (varID, attributes) pairs."""
    references = "".join(f'<independentVarRef varID="{k}" {more}/>' for k, more in inputs)
    return (
        f'<function name="{output} table">{references}<dependentVarRef varID="{output}"/>'
        f"<functionDefn>{table}</functionDefn></function>"
    )


def signal(name, value, tol=None, units=None, kind="signalName"):
    told = "" if units is None else f"<signalUnits>{units}</signalUnits>"
    limit = "" if tol is None else f"<tol>{tol}</tol>"
    return (
        f"<signal><{kind}>{name}</{kind}>{told}<signalValue>{value!r}</signalValue>{limit}</signal>"
    )


def shot(name, inputs, outputs, internal=()):
    between = f"<internalValues>{''.join(internal)}</internalValues>" if internal else ""
    return (
        f'<staticShot name="{name}"><checkInputs>{"".join(inputs)}</checkInputs>{between}'
        f"<checkOutputs>{''.join(outputs)}</checkOutputs></staticShot>"
    )


ALPHA, BETA, ABSOLUTE, ELEVATOR = (
    ("alpha", "ALPHA"),
    ("beta", "BETA"),
    ("size", "SIDE"),
    ("el", "EL"),
)
#: Table -> its independent variables and their breakpoints, the slowest first.
F16_TABLES = {
    "CX": (ELEVATOR, ALPHA),
    "CM": (ELEVATOR, ALPHA),
    "CL": (ABSOLUTE, ALPHA),
    "CN": (ABSOLUTE, ALPHA),
    **dict.fromkeys(("CL_AILERON", "CL_RUDDER", "CN_AILERON", "CN_RUDDER"), (BETA, ALPHA)),
    **dict.fromkeys(
        ["CZ", "CX_Q", "CZ_Q", "CM_Q", "CY_R", "CL_R", "CN_R", "CY_P", "CL_P", "CN_P"], (ALPHA,)
    ),
}


def f16_file():
    """The formulas of Stevens, Lewis and Johnson, appendix A.4, with the published tables."""
    inputs = {"V": "m_s", "alpha": "deg", "beta": "deg", "p": "rad_s", "q": "rad_s", "r": "rad_s"}
    inputs |= {"el": "deg", "ail": "deg", "rdr": "deg"}

    def rate(coefficient, *rates):
        return [("times", f"{k}hat", f"{coefficient}_{k.upper()}") for k in rates]

    def lateral(name):
        turned = ("times", "side", name)
        surfaces = [("times", "da", f"{name}_AILERON"), ("times", "dr", f"{name}_RUDDER")]
        return ("plus", turned, *surfaces, *rate(name, "r", "p"))

    broken = ("times", ("divide", "beta", 180.0), "<pi/>")
    formulas = {
        "size": ("abs", "beta"),
        "side": {"if": [(("minus", 1.0), ("lt", "beta", 0.0))], "else": 1.0},
        "da": ("divide", "ail", 20.0),
        "dr": ("divide", "rdr", 30.0),
        "phat": ("times", "b", ("divide", "p", ("times", 2.0, "V"))),
        "qhat": ("times", "c", ("divide", "q", ("times", 2.0, "V"))),
        "rhat": ("times", "b", ("divide", "r", ("times", 2.0, "V"))),
        "arm": ("minus", "ref", "xcg"),
        "cx": ("plus", "CX", *rate("CX", "q")),
        "cy": (
            "plus",
            ("times", -0.02, "beta"),
            ("times", 0.021, "da"),
            ("times", 0.086, "dr"),
            *rate("CY", "r", "p"),
        ),
        "cz": (
            "plus",
            ("times", "CZ", ("minus", 1.0, ("power", broken, 2.0))),
            ("times", -0.19, ("divide", "el", 25.0)),
            *rate("CZ", "q"),
        ),
        "cl": lateral("CL"),
        "cm": ("plus", "CM", *rate("CM", "q"), ("times", "cz", "arm")),
        "cn": (
            "minus",
            lateral("CN"),
            ("divide", ("times", ("times", "cy", "arm"), "c"), "b"),
        ),
    }
    constants = {"b": 9.144, "c": 3.450336, "ref": 0.35, "xcg": 0.3}
    results = ("cx", "cy", "cz", "cl", "cm", "cn")
    return document(
        *(variable(k, units=u, marks="Input") for k, u in inputs.items()),
        *(variable(k, initialValue=v) for k, v in constants.items()),
        *(variable(k) for k in F16_TABLES),
        *(variable(k, e, "Output" if k in results else "") for k, e in formulas.items()),
        breakpoints("ALPHA", T.ALPHA),
        breakpoints("BETA", T.BETA),
        breakpoints("SIDE", T.SIDESLIP),
        breakpoints("EL", T.ELEVATOR),
        *(
            function(
                key,
                [(name, 'extrapolate="both"') for name, _ in axes],
                gridded([points for _, points in axes], getattr(T, key)),
            )
            for key, axes in F16_TABLES.items()
        ),
    )


def engine_file():
    """The F-16's engine in the structure of NASA's F16_prop.dml, the pieces in an <apply>.

    The thrusts at the corners of the tables are those printed by Stevens, Lewis and Johnson; the
    last one is interpolated by hand, linearly in Mach number and altitude.
    """
    inputs = {"PWR": "powerLeverAngle", "ALT": "altitudeMSL", "RMACH": "mach"}
    tables = {"T_IDLE": T.IDLE, "T_MIL": T.MILITARY, "T_MAX": T.MAXIMUM}

    def between(low, high, fraction):
        return ("plus", low, ("times", fraction, ("minus", high, low)))

    dry = between("T_IDLE", "T_MIL", ("divide", "PWR", "MIL_PWR"))
    above = ("divide", ("minus", "PWR", "MIL_PWR"), ("minus", 100.0, "MIL_PWR"))
    thrust = {"if": [(dry, ("lt", "PWR", "MIL_PWR"))], "else": between("T_MIL", "T_MAX", above)}
    cases = {
        "idle, standing": ((0.0, 0.0, 0.0), 1060.0),
        "dry, standing": ((50.0, 0.0, 0.0), 12680.0),
        "burning, standing": ((100.0, 0.0, 0.0), 20000.0),
        "idle, high and fast": ((0.0, 50000.0, 1.0), 700.0),
        "half dry, between": ((25.0, 5000.0, 0.3), 0.5 * (286.25 + 10938.0)),
        "half burning": ((75.0, 0.0, 0.2), 0.5 * (12680.0 + 21420.0)),
    }
    shots = (
        shot(
            name,
            [signal(inputs[k], v) for k, v in zip(inputs, at)],
            [signal("thrustBodyForce_X", force, 1e-5, "lbf")],
        )
        for name, (at, force) in cases.items()
    )
    return document(
        *(variable(k, name=name, marks="Input", initialValue=0.0) for k, name in inputs.items()),
        variable("MIL_PWR", name="milPwr", initialValue=50.0),
        *(variable(k, units="lb", initialValue=0.0) for k in tables),
        variable(
            "FEX", ("<apply>", thrust), "Output StdAIAA", name="thrustBodyForce_X", units="lbf"
        ),
        breakpoints("ALT_PTS", T.ALTITUDE),
        breakpoints("MACH_PTS", T.MACH),
        *(
            function(
                key,
                [("RMACH", 'min="0.0" max="1.0"'), ("ALT", 'min="0.0" max="50000"')],
                gridded(["MACH_PTS", "ALT_PTS"], values),
            )
            for key, values in tables.items()
        ),
        f"<checkData>{''.join(shots)}</checkData>",
    )


def two_stage_file():
    """Thrust and mass flow of a rocket of two stages, as in NASA's twostage_prop.dml."""
    first, second = (("gt", flag, 0.0) for flag in ("stg1firing", "stg2firing"))

    def chosen(of_first, of_second, rest):
        return ("<apply>", {"if": [(of_first, first), (of_second, second)], "else": rest})

    flow = ("divide", "thrust", ("times", "isp", 9.8066))
    return document(
        variable("stg1firing", marks="Input"),
        variable("stg2firing", marks="Input", initialValue=0.0),
        variable("F1", units="N", initialValue=17000000),
        variable("F2", units="N", initialValue=5000000),
        variable("isp", chosen(360.0, 390.0, 0.001), "Output StdAIAA", units="sec"),
        variable("thrust", chosen("F1", "F2", 0.0), "Output StdAIAA", units="N"),
        variable(
            "mdot",
            ("<apply>", {"if": [(flow, ("gt", "thrust", 0.0))], "else": 0.0}),
            "Output",
            units="kg_s",
        ),
    )
