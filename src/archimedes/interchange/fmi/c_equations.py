"""The C file of a model in an FMU: its functions, and the tables that the FMI layer reads."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes.backends.c import Argument, CSource, assemble, render
from archimedes.embedded.c_files import NO_CONTRACTION
from archimedes.embedded.c_structs import scalars
from archimedes.embedded.c_text import block_comment
from archimedes.embedded.preparation import Options, as_compiled, prepare
from archimedes.graph.dtypes import B8, F64, I64
from archimedes.interchange.fmi.fmu_description import Description, Variable
from archimedes.interchange.fmi.fmu_model import FmuModel
from archimedes.version import __version__

_TYPES = scalars(float, int)
_CODES = {"real": F64, "integer": I64, "boolean": B8}
#: Solvers that choose their steps are loops without a known end.
_OPTIONS = Options(adaptive=True, max_iterations=2**63, nonfinite=True)


@dataclass(frozen=True)
class Kernel:
    """A function that becomes C: its arguments with their C expressions, and those it writes to.

    ``parameters`` are those of the C function around it.
    """

    name: str
    function: Callable[..., Any]
    inputs: tuple[tuple[str, Any], ...]
    outputs: tuple[str, ...]
    parameters: str = "Data *data"


def make_kernels(model: FmuModel, description: Description) -> Iterator[Kernel]:
    """Yield the functions that the interfaces of an FMU need."""
    kinds, banks = description.kinds, model.bank_arguments
    t, x = ("data->time", model.settings.start_time), ("data->x", model.start)
    point, to_x = (t, x, *banks), "Data *data, double *x"
    yield Kernel("derivative", model.derivative, point, ("data->dx",))
    if model.outputs:
        results = tuple(f"data->y_{name}" for name in model.output_types)
        yield Kernel("outputs", model.outputs_by_type, point, results)
    if model.events:
        yield Kernel("indicators", model.indicators, point, ("data->z",))
    if model.events and "me" in kinds:
        fired = ("fired", np.zeros(len(model.events), dtype=bool))
        given = "Data *data, const bool *fired, double *x"
        yield Kernel("sides", model.sides, point, ("sides",), "Data *data, bool *sides")
        yield Kernel("reset", model.reset, (t, x, fired, *banks), ("x",), given)
    if model.plan.project is not None and "me" in kinds:
        yield Kernel("projection", model.plan.project, (x,), ("x",), to_x)
    if model.parts and kinds & {"cs", "me"}:
        yield Kernel("sample", model.sample, point, ("x",), to_x)
        yield Kernel("next_sample", model.next_sample, (t,), ("&data->next_sample",))
    if "se" in kinds:
        for k in range(len(model.parts)):
            part = functools.partial(model.activate, k)
            yield Kernel(f"activate_{k}", part, point, ("x",), to_x)
        if model.settings.dt:
            given = "Data *data, double h, double *x"
            yield Kernel("advance", model.advance, (t, x, ("h", 0.5), *banks), ("x",), given)
    if "cs" in kinds:
        yield from _solve_kernels(model)
    if description.pattern.nnz:
        texts = ["data->x", "data->real", "data->time", f"data->x + {model.size}"]
        texts += [f"data->{name}" for name in model.bank_names if name != "real"]
        inputs = tuple(zip(texts, model.jacobian_examples, strict=True))
        yield Kernel("jacobian", model.jacobian.values, inputs, ("data->jacobian",))


def _solve_kernels(model: FmuModel) -> Iterator[Kernel]:
    form = model.run_form
    run = tuple((f"from->{name}", form.examples[name]) for name in form.names)
    to = tuple(f"to->{name}" for name in form.names)
    span = (("data->start_time", 0.0), ("end", 1.0), ("data->tolerance", 1.0))
    point = (("data->time", 0.0), ("data->x", model.start))
    banks = model.bank_arguments
    given = "Data *data, const Run *from, Run *to, double end"
    begin = "Data *data, Run *to, double end"
    yield Kernel("begin", model.begin_run, (*point, *span, *banks), to, begin)
    yield Kernel("restart", model.restart_run, (*run, *span, *banks), to, given)
    yield Kernel("attempt", model.attempt, (*run, *span, *banks), to, given)


@dataclass(frozen=True)
class _Rendered:
    source: CSource
    wrapper: str


def render_kernel(kernel: Kernel, prefix: str) -> _Rendered:
    """Write a function and the one around it, which takes its arrays from the instance."""
    examples = [example for _, example in kernel.inputs]
    compiled = as_compiled(kernel.function, None, None)
    name = f"{prefix}_{kernel.name}"
    recording = prepare(compiled, examples, None, name, _OPTIONS, "speed").recording
    inputs, call = [], []
    for k, (spec, (text, _)) in enumerate(zip(recording.leaves, kernel.inputs, strict=True)):
        inputs.append(Argument(f"given{k}", spec.code, spec.shape))
        if spec.size or not spec.shape:
            call.append(text)
    outputs = []
    for k, (out, text) in enumerate(zip(recording.outs, kernel.outputs, strict=True)):
        outputs.append(Argument(f"result{k}", out.spec.code, out.shape))
        if outputs[-1].size:
            call.append(text)
    source = render(recording.blocks, name, inputs=inputs, outputs=outputs)
    text = source.text.replace(f"{source.prototype}\n{{", f"static {source.prototype}\n{{")
    indent = " " * (len(name) + 5)
    lines = [f"    {name}(" + f",\n{indent}".join(call) + ");"]
    parameters = [word.split()[-1].lstrip("*") for word in kernel.parameters.split(",")]
    unused = [word for word in parameters if not any(word in part for part in call)]
    lines = [f"    (void){word};" for word in unused] + lines
    body = "\n".join(lines)
    head = f"static void evaluate_{kernel.name}({kernel.parameters})"
    return _Rendered(dataclasses.replace(source, text=text), f"{head}\n{{\n{body}\n}}\n")


def equations_text(model: FmuModel, description: Description) -> str:
    """Return ``equations.c``."""
    prefix = description.identifier
    # The functions of the FMU have names of their own.
    prefix = f"model_{prefix}" if prefix.startswith(("arc_", "evaluate_")) else prefix
    rendered = [render_kernel(kernel, prefix) for kernel in make_kernels(model, description)]
    head = block_comment(
        [
            f"Generated by Archimedes {__version__}: the equations of {description.name} and the "
            "tables of its variables. Compile with -ffp-contract=off and without -ffast-math: "
            "results then are the same bits as in Python."
        ]
    )
    include = '#include "component.h"\n'
    parts = [
        head,
        NO_CONTRACTION,
        assemble([one.source for one in rendered], types=True, include=include),
        *(one.wrapper for one in rendered),
        _tables(model, description),
    ]
    return "\n".join(parts)


def sizes_text(model: FmuModel, description: Description) -> str:
    """Return ``model_sizes.h``: the numbers that the FMI layer is compiled for."""
    d, form = description, model.run_form if "cs" in description.kinds else None
    banks, outs = model.banks, model.output_sizes
    numbers: dict[str, Any] = {
        "STATES": model.size,
        "MEMORIES": model.memory_size,
        "REALS": banks["real"].size,
        "INTEGERS": banks["integer"].size,
        "BOOLEANS": banks["boolean"].size,
        "OUTPUT_REALS": outs.get("real", 0),
        "OUTPUT_INTEGERS": outs.get("integer", 0),
        "OUTPUT_BOOLEANS": outs.get("boolean", 0),
        "EVENTS": len(model.events),
        "SAMPLED_PARTS": len(model.parts),
        "VARIABLES": len(d.variables),
        "JACOBIAN_ENTRIES": d.pattern.nnz,
        "HAS_CO_SIMULATION": int("cs" in d.kinds),
        "HAS_MODEL_EXCHANGE": int("me" in d.kinds),
        "HAS_SCHEDULED_EXECUTION": int("se" in d.kinds),
        "HAS_PROJECTION": int(model.plan.project is not None),
        "CLOCKS": len(d.clocks),
    }
    if form is not None:
        numbers |= {f"RUN_{name.upper()}S": form.examples[name].size for name in form.examples}
        places = ("t", "x", "status", "accepted")
        numbers |= {f"RUN_{what.upper()}": form.offset(what) for what in places}
    lines = [f"#define {name} {value}" for name, value in numbers.items()]
    if not description.settings_dt:
        lines.append("#define FIXED_STEP 0.0")
    else:
        lines.append(f"#define FIXED_STEP {_real(description.settings_dt)}")
    lines.append(f"#define DEFAULT_START_TIME {_real(model.settings.start_time)}")
    lines.append(f"#define DEFAULT_STOP_TIME {_real(model.settings.stop_time)}")
    lines.append(f"#define DEFAULT_TOLERANCE {_real(description.tolerance)}")
    lines.append(f'#define MODEL_IDENTIFIER "{d.identifier}"')
    lines.append(f'#define INSTANTIATION_TOKEN "{d.token}"')
    note = block_comment([f"Generated by Archimedes {__version__}: sizes of {d.name}."])
    guard = "MODEL_SIZES_H"
    body = "\n".join(lines)
    return f"{note}\n#ifndef {guard}\n#define {guard}\n\n{body}\n\n#endif\n"


def _real(value: float) -> str:
    return _TYPES.literal(float(value), F64)


def _tables(model: FmuModel, description: Description) -> str:
    """Return the tables: variables, start values, nominal values, entries of the Jacobian."""
    d = description
    parts = [_variable_table(d.variables)]
    parts.append(_array("double", "start_x", model.start, F64))
    for name, values in model.banks.items():
        if values.size:
            c_type = _TYPES.c_type(_CODES[name])
            parts.append(_array(c_type, f"start_{name}", values, _CODES[name]))
    parts.append(_array("double", "nominals", d.nominals, F64))
    if "me" in d.kinds and model.events:
        directions = [event.direction for event in model.events]
        parts.append(_array("signed char", "event_directions", directions, I64))
        ends = [event.terminal for event in model.events]
        parts.append(_array("bool", "event_is_terminal", ends, B8))
    if d.pattern.nnz:
        parts.append(_array("uint32_t", "jacobian_columns", d.pattern.starts, I64))
        parts.append(_array("uint32_t", "jacobian_rows", d.pattern.rows, I64))
    if d.version == "3.0":
        starts, references = d.dependency_table
        parts.append(_array("uint32_t", "dependency_starts", starts, I64))
        parts.append(_array("uint32_t", "dependencies", references or [0], I64))
    if d.clocks:
        rows = [
            f"    {{{clock.reference}, {_real(clock.interval)}, {_real(clock.shift)}}}"
            for clock in d.clocks
        ]
        parts.append("static const Clock clocks[] = {\n" + ",\n".join(rows) + "\n};\n")
        parts.append(_partitions(len(model.parts)))
    return "\n".join(parts)


def _partitions(count: int) -> str:
    """Return the C function that calls the sampled part of a number."""
    cases = [f"    case {k}: evaluate_activate_{k}(data, x); break;" for k in range(count)]
    unused = [] if count else ["    (void)data;", "    (void)x;"]
    lines = [*unused, "    switch (k) {", *cases, "    default: break;", "    }"]
    head = "static void evaluate_partition(Data *data, int k, double *x)"
    return head + "\n{\n" + "\n".join(lines) + "\n}\n"


_BANKS: Mapping[str, str] = {
    "time": "TIME",
    "x": "X",
    "dx": "DX",
    "real": "REAL",
    "integer": "INTEGER",
    "boolean": "BOOLEAN",
    "y_real": "Y_REAL",
    "y_integer": "Y_INTEGER",
    "y_boolean": "Y_BOOLEAN",
    "z": "Z",
}


def _variable_table(variables: Sequence[Variable]) -> str:
    rows = [
        f"    {{{v.reference}, {v.size}, {v.offset}, BANK_{_BANKS[v.bank]}, SET_{v.rule}}}"
        + ("," if k + 1 < len(variables) else "")
        + f" /* {v.name.replace('*/', '* /')} */"
        for k, v in enumerate(variables)
    ]
    return "static const Variable variables[] = {\n" + "\n".join(rows) + "\n};\n"


def _array(c_type: str, name: str, values: Any, code: int) -> str:
    flat = np.asarray(values).ravel().tolist()
    # References and counts fit in any type; literals of their own take long for millions of them.
    words = [str(x) if c_type == "uint32_t" else _TYPES.literal(x, code) for x in flat]
    lines = [", ".join(words[k : k + 6]) for k in range(0, len(words), 6)]
    body = ",\n    ".join(lines)
    return f"static const {c_type} {name}[] = {{\n    {body}\n}};\n"
