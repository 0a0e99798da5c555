"""The C file of a model in an FMU: its functions, and the tables that the FMI layer reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from archimedes.interchange.fmi.fmu_model import FmuModel, Kernel
from archimedes.version import __version__

_TYPES = scalars(float, int)
_CODES = {"real": F64, "integer": I64, "boolean": B8}
#: Solvers that choose their steps are loops without a known end.
_OPTIONS = Options(adaptive=True, max_iterations=2**63, nonfinite=True)


def make_kernels(model: FmuModel, description: Description) -> list[Kernel]:
    """Return the functions that the interfaces of an FMU need."""
    kinds, banks = description.kinds, model.bank_arguments
    t, x = ("data->time", model.settings.start_time), ("data->x", model.start)
    point = (t, x, *banks)
    kernels = [Kernel("derivative", model.derivative, point, ("data->dx",))]
    if model.outputs:
        names = [name for name, size in model.output_sizes.items() if size]
        results = tuple(f"data->y_{name}" for name in names)

        def outputs(t: Any, x: Any, *arrays: Any) -> Any:
            found = model._output_banks(t, x, arrays)
            return tuple(found[name] for name in names)

        outputs.written_as = model.outputs_of  # type: ignore[attr-defined]
        kernels.append(Kernel("outputs", outputs, point, results))
    if model.events:
        kernels.append(Kernel("indicators", model.indicators, point, ("data->z",)))
        if "me" in kinds:
            fired = np.zeros(len(model.events), dtype=bool)
            kernels.append(
                Kernel("sides", model.sides, point, ("sides",), "Data *data, bool *sides")
            )
            kernels.append(
                Kernel(
                    "reset",
                    model.reset,
                    (t, x, ("fired", fired), *banks),
                    ("x",),
                    "Data *data, const bool *fired, double *x",
                )
            )
    if "me" in kinds and model.plan.project is not None:
        arguments = "Data *data, double *x"
        kernels.append(Kernel("projection", model.plan.project, (x,), ("x",), arguments))
    if model.parts and "se" in kinds:
        for k in range(len(model.parts)):

            def activate(t: Any, x: Any, *arrays: Any, k: int = k) -> Any:
                return model.activate(k, t, x, *arrays)

            kernels.append(
                Kernel(f"activate_{k}", activate, point, ("x",), "Data *data, double *x")
            )
    if model.parts and kinds & {"cs", "me"}:
        kernels.append(Kernel("sample", model.sample, point, ("x",), "Data *data, double *x"))
        kernels.append(Kernel("next_sample", model.next_sample, (t,), ("&data->next_sample",)))
    if "se" in kinds:
        kernels.append(
            Kernel(
                "advance",
                model.advance,
                (t, x, ("h", 0.5), *banks),
                ("x",),
                "Data *data, double h, double *x",
            )
        )
    if "cs" in kinds:
        kernels += _solve_kernels(model)
    if description.pattern is not None and description.pattern.nnz:
        texts = ["data->x", "data->real", "data->time", f"data->x + {model.size}"]
        texts += [f"data->{name}" for name in model.bank_names if name != "real"]
        inputs = tuple(zip(texts, model.jacobian_examples, strict=True))
        kernels.append(Kernel("jacobian", model.jacobian.values, inputs, ("data->jacobian",)))
    return kernels


def _solve_kernels(model: FmuModel) -> list[Kernel]:
    form = model.run_form
    run = tuple((f"from->{name}", form.examples[name]) for name in form.names)
    to = tuple(f"to->{name}" for name in form.names)
    span = (("data->start_time", 0.0), ("end", 1.0), ("data->tolerance", 1.0))
    point = (("data->time", 0.0), ("data->x", model.start))
    banks = model.bank_arguments
    step = "Data *data, const Run *from, Run *to, double end"
    return [
        Kernel(
            "begin", model.begin_run, (*point, *span, *banks), to, "Data *data, Run *to, double end"
        ),
        Kernel("restart", model.restart_run, (*run, *span, *banks), to, step),
        Kernel("attempt", model.attempt, (*run, *span, *banks), to, step),
    ]


@dataclass(frozen=True)
class _Rendered:
    source: CSource
    wrapper: str


def render_kernel(kernel: Kernel, prefix: str, scratch: str) -> _Rendered:
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
    source = render(recording.blocks, name, inputs=inputs, outputs=outputs, scratch=scratch)
    if source.workspace_type:
        call.append("&work")
    lines = [f"    static {source.workspace_type} work;"] if source.workspace_type else []
    text = source.text.replace(f"{source.prototype}\n{{", f"static {source.prototype}\n{{")
    source = CSource(**{**vars(source), "text": text})
    indent = " " * (len(name) + 5)
    lines.append(f"    {name}(" + f",\n{indent}".join(call) + ");")
    parameters = [word.split()[-1].lstrip("*") for word in kernel.parameters.split(",")]
    unused = [word for word in parameters if not any(word in part for part in call)]
    lines = [f"    (void){word};" for word in unused] + lines
    body = "\n".join(lines)
    head = f"static void evaluate_{kernel.name}({kernel.parameters})"
    return _Rendered(source, f"{head}\n{{\n{body}\n}}\n")


def equations_text(model: FmuModel, description: Description) -> str:
    """Return ``equations.c``."""
    prefix = description.identifier
    # The functions of the FMU have names of their own.
    prefix = f"model_{prefix}" if prefix.startswith(("arc_", "evaluate_")) else prefix
    kernels = make_kernels(model, description)
    rendered = [render_kernel(kernel, prefix, "stack") for kernel in kernels]
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
        "JACOBIAN_ENTRIES": 0 if d.pattern is None else d.pattern.nnz,
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
    if d.pattern is not None and d.pattern.nnz:
        parts.append(_array("uint32_t", "jacobian_columns", d.pattern.starts, I64))
        parts.append(_array("uint32_t", "jacobian_rows", d.pattern.rows, I64))
    if d.clocks:
        rows = [
            f"    {{{clock.reference}, {_real(clock.interval)}, {_real(clock.shift)}}}"
            for clock in d.clocks
        ]
        parts.append("static const Clock clocks[] = {\n" + ",\n".join(rows) + "\n};\n")
        cases = [
            f"    case {k}: evaluate_activate_{k}(data, x); break;" for k in range(len(model.parts))
        ]
        body = "\n".join(["    switch (k) {", *cases, "    default: break;", "    }"])
        unused = "" if cases else "    (void)data;\n    (void)x;\n"
        parts.append(
            "static void evaluate_partition(Data *data, int k, double *x)\n{\n"
            + unused
            + (body if cases else "    (void)k;")
            + "\n}\n"
        )
    return "\n".join(parts)


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
    literal: Callable[[Any], str] = lambda value: _TYPES.literal(value, code)  # noqa: E731
    words = [literal(value) for value in flat]
    lines = [", ".join(words[k : k + 6]) for k in range(0, len(words), 6)]
    body = ",\n    ".join(lines)
    return f"static const {c_type} {name}[] = {{\n    {body}\n}};\n"
