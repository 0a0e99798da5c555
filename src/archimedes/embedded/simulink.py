"""S-functions for Simulink: ports, dialog parameters, sample time, and buses like the C structs.

The interface is that of C MEX S-functions, level 2, as The MathWorks documents it ("Write Level-2
MATLAB and C S-Functions"). Simulink's matrices lie in memory by columns, those of C by rows: the
S-function copies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from archimedes.embedded.block_signals import Signal, find_signals
from archimedes.embedded.c_model import Model
from archimedes.embedded.c_structs import Field
from archimedes.embedded.c_text import ascii_text
from archimedes.errors import CodegenError

#: C types: the type and its number in Simulink, and the type of elements of buses.
TYPES = {
    "double": ("real_T", "SS_DOUBLE", "double"),
    "float": ("real32_T", "SS_SINGLE", "single"),
    "int32_t": ("int32_T", "SS_INT32", "int32"),
    "bool": ("boolean_T", "SS_BOOLEAN", "boolean"),
}
KEYWORDS = frozenset(
    (
        *("break", "case", "catch", "classdef", "continue", "else", "elseif", "end", "for"),
        *("function", "global", "if", "otherwise", "parfor", "persistent", "return", "spmd"),
        *("switch", "try", "while"),
    )
)
#: Names have this many characters in MATLAB at most.
LONGEST = 63


def simulink_words(model: Model, parameters: Sequence[str]) -> dict[str, str]:
    """Return what the templates of the target need."""
    signals = find_signals(model, parameters)
    for signal in (*signals.inputs, *signals.parameters, *signals.outputs):
        _check(signal)
    _check_names(model)
    ports = [_declare("Input", k, s) for k, s in enumerate(signals.inputs)]
    ports += [_declare("Output", k, s) for k, s in enumerate(signals.outputs)]
    stop = "ssSetOperatingPointCompliance(S, DISALLOW_OPERATING_POINT);"
    return {
        "inputs": str(len(signals.inputs)),
        "outputs": str(len(signals.outputs)),
        "parameters": str(len(signals.parameters)),
        "ports": "\n".join(ports),
        "check_parameters": _join(_check_parameter, signals.parameters),
        "read_parameters": _join(_read_parameter, signals.parameters),
        "read_inputs": _join(_read_input, signals.inputs),
        "write_outputs": _join(_write_output, signals.outputs),
        "operating_point": stop if signals.states else "/* It keeps nothing. */",
        "update": f"{model.name}_carry(&b->in, &b->out);" if model.carries else "(void)b;",
        "port_list": _list_signals(signals.inputs, signals.outputs, signals.parameters),
        "parameter_texts": _cell([_value_text(s) for s in signals.parameters] + ["-1"]),
        "parameter_names": _cell([s.name for s in signals.parameters] + ["sample_time"]),
        "input_names": _cell([s.name for s in signals.inputs]),
        "output_names": _cell([s.name for s in signals.outputs]),
        "buses": "\n".join(_bus(model, k) for k in range(len(model.structs))),
        "defaults": "\n".join(
            f"defaults.{s.access} = {_value_text(s)};"
            + (f" % {ascii_text(s.units)}" * bool(s.units))
            for s in (*signals.inputs, *signals.parameters, *signals.states)
        ),
    }


def _join(write: Callable[[int, Signal], str], signals: Sequence[Signal]) -> str:
    return "\n".join(write(k, signal) for k, signal in enumerate(signals))


def _check(signal: Signal) -> None:
    if signal.c_type not in TYPES:
        raise CodegenError(
            f"codegen: {signal.access} has the type {signal.c_type}, which ports of S-functions "
            "have not: give int_type=np.int32"
        )
    if len(signal.shape) > 2:
        raise CodegenError(
            f"codegen: {signal.access} has the shape {signal.shape}, and ports are numbers, "
            "vectors or matrices: reshape it inside the function"
        )


def _check_names(model: Model) -> None:
    for struct in model.structs:
        for name in (struct.c_name, *(field.name for field in struct.fields)):
            if name in KEYWORDS or len(name) > LONGEST:
                raise CodegenError(f"codegen: {name!r} cannot be a name in MATLAB: rename it")


# ---- the S-function --------------------------------------------------------------------------


def _declare(side: str, k: int, signal: Signal) -> str:
    """Return the statements that declare a port."""
    lines = [f"    /* {side} {k + 1}: {_describe(signal)} */"]
    if len(signal.shape) == 2:
        rows, columns = signal.shape
        call = f"ssSet{side}PortMatrixDimensions(S, {k}, {rows}, {columns})"
    else:
        call = f"ssSet{side}PortVectorDimension(S, {k}, {signal.size})"
    lines.append(f"    if (!{call}) return;")
    lines.append(f"    ssSet{side}PortDataType(S, {k}, {TYPES[signal.c_type][1]});")
    if side == "Input":
        lines.append(f"    ssSetInputPortDirectFeedThrough(S, {k}, 1);")
        lines.append(f"    ssSetInputPortRequiredContiguous(S, {k}, 1);")
    return "\n".join(lines)


def _describe(signal: Signal) -> str:
    units = f" [{signal.units}]" if signal.units else ""
    text = f", {signal.text}" if signal.text else ""
    return ascii_text(f"{signal.name}{units}{text}").replace("*/", "* /")


def _elements(signal: Signal, statement: str) -> str:
    """Return loops over the elements: ``{c}`` is one in the C struct, ``{m}`` its number."""
    if not signal.shape:
        return f"    {statement.format(c=signal.access, m='0')}"
    if len(signal.shape) == 1:
        body = statement.format(c=f"{signal.access}[i]", m="i")
        return f"    for (int_T i = 0; i < {signal.size}; i++) {body}"
    rows, columns = signal.shape
    body = statement.format(c=f"{signal.access}[i][j]", m=f"i + {rows} * j")
    return (
        f"    for (int_T i = 0; i < {rows}; i++)\n"
        f"        for (int_T j = 0; j < {columns}; j++) {body}"
    )


def _read_input(k: int, signal: Signal) -> str:
    kind = TYPES[signal.c_type][0]
    value = "u[{m}] != 0" if signal.c_type == "bool" else "u[{m}]"
    loop = _elements(signal, "b->in.{c} = " + value + ";").replace("\n", "\n    ")
    return (
        f"    {{\n        const {kind} *u = (const {kind} *)ssGetInputPortSignal(S, {k});\n"
        f"    {loop}\n    }}"
    )


def _write_output(k: int, signal: Signal) -> str:
    kind = TYPES[signal.c_type][0]
    loop = _elements(signal, "y[{m}] = b->out.{c};").replace("\n", "\n    ")
    return (
        f"    {{\n        {kind} *y = ({kind} *)ssGetOutputPortSignal(S, {k});\n    {loop}\n    }}"
    )


def _check_parameter(k: int, signal: Signal) -> str:
    message = f"{signal.name} must be real, of the class double, with {signal.size} elements"
    return f'    if (!is_real(ssGetSFcnParam(S, {k}), {signal.size})) return "{message}";'


def _read_parameter(k: int, signal: Signal) -> str:
    cast = "p[{m}] != 0.0" if signal.c_type == "bool" else f"({signal.c_type})p[{{m}}]"
    loop = _elements(signal, "b->in.{c} = " + cast + ";").replace("\n", "\n    ")
    return f"    {{\n        const real_T *p = mxGetPr(ssGetSFcnParam(S, {k}));\n    {loop}\n    }}"


# ---- MATLAB ----------------------------------------------------------------------------------


def _cell(texts: Sequence[str]) -> str:
    return "{" + ", ".join("'" + text.replace("'", "''") + "'" for text in texts) + "}"


def _list_signals(*sides: Sequence[Signal]) -> str:
    heads = ("Inputs", "Outputs", "Dialog parameters (then the sample time; -1: inherited)")
    lines = []
    for head, signals in zip(heads, sides):
        lines.append(f"%   {head}:")
        lines += [
            f"%     {k + 1}  {_describe(s)}, {' x '.join(map(str, s.shape)) or 'scalar'}"
            for k, s in enumerate(signals)
        ]
    return "\n".join(lines)


def _number(value: object) -> str:
    number = float(value)  # type: ignore[arg-type]
    words = {"nan": "NaN", "inf": "Inf", "-inf": "-Inf"}
    text = repr(number)
    return words.get(text, text)


def _value_text(signal: Signal) -> str:
    """Return the default as an expression of MATLAB; a vector is a row.

    A number has enough digits to come back as the same one.
    """
    if not signal.shape:
        return _number(signal.value)
    rows = np.atleast_2d(signal.value)
    return "[" + "; ".join(" ".join(map(_number, row)) for row in rows) + "]"


def _bus(model: Model, k: int) -> str:
    struct = model.structs[k]
    if not struct.fields:
        return f"% {struct.c_name} has no elements."
    lines = [
        f"% {ascii_text(struct.origin)}",
        "bus = Simulink.Bus;",
        f"bus.HeaderFile = '{model.name}.h';",
        "bus.DataScope = 'Imported';",
        "elements = Simulink.BusElement.empty;",
    ]
    for n, field in enumerate(struct.fields, 1):
        lines += [f"elements({n}) = Simulink.BusElement;"]
        lines += [
            f"elements({n}).{name} = {text};" for name, text in _element(model, field).items()
        ]
    return "\n".join(
        [*lines, "bus.Elements = elements;", f"assignin('base', '{struct.c_name}', bus);"]
    )


def _element(model: Model, field: Field) -> Mapping[str, str]:
    """Return the properties of an element of a bus."""

    def quote(text: str) -> str:
        return "'" + ascii_text(text).replace("'", "''").replace("\n", " ") + "'"

    if field.struct is not None:
        own = {"DataType": quote(f"Bus: {field.struct.c_name}")}
    else:
        c_type, shape = model.types.c_type(field.shape.code), field.shape.shape
        own = {"DataType": quote(TYPES.get(c_type, ("", "", "int64"))[2])}
        own["Dimensions"] = f"[{' '.join(map(str, shape))}]" if shape else "1"
    if field.units:
        own["Unit"] = quote(field.units)
    return {
        "Name": quote(field.name),
        **own,
        **({"Description": quote(field.text)} if field.text else {}),
    }
