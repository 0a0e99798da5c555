"""What generated code takes on a target: memory, stack and operations; where its lines are from.

Sections, structs and stack are measured by the compiler and its tools.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from archimedes.analysis.precision.analysis import compare, examine
from archimedes.analysis.precision.repeated_steps import repeat_steps
from archimedes.analysis.precision.report import PrecisionReport
from archimedes.analysis.ranges.bounds import Bounds, format_outward
from archimedes.checks import check_whole
from archimedes.embedded.boards import FLAGS, FOLDER, ToolError, board_named, run_tool
from archimedes.embedded.c_files import write_sources
from archimedes.embedded.c_model import Model
from archimedes.embedded.c_project import CProject, make_c_project
from archimedes.embedded.c_structs import Member, Root
from archimedes.embedded.qemu import EmulatedRun, run_in_qemu
from archimedes.embedded.traceability import LineNotes, TracedLines
from archimedes.errors import CodegenError
from archimedes.graph.dtypes import DTYPES

__all__ = ["ResourceReport", "report"]

#: The target that is this machine.
HOST = "host"
#: Tables that a debugger reads take no memory of a program without exceptions.
_BARE = ("-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-stack-protector")
#: The compiler's flags for what ``codegen`` may optimize.
FLAGS_FOR = {"speed": "-O2", "size": "-Os", "smallest": "-Os"}


@dataclass(frozen=True)
class ResourceReport:
    """What a project takes on one target.

    Parameters
    ----------
    name : str
        Name of the project.
    target : str
        The board, or "host".
    optimize : str
        Flag of the compiler.
    flash : int
        Code and constants in bytes, with the arithmetic routines of the compiler's library that
        they call.
    code : int
        Code of the project itself, in bytes.
    constants : int
        Its constants, in bytes.
    ram : int
        Static memory and one set of the structs, in bytes.
    structs : mapping
        Sizes of the structs in bytes.
    stack : int
        Stack in bytes of the deepest chain of calls from ``_step``. Functions of the compiler's
        library count nothing.
    stack_chain : tuple of str
        That chain.
    library_calls : tuple of str
        Functions of the compiler's library that are called.
    operations : mapping
        Operations of one step in the worst case, by kind: loops in full, the longest of the
        branches.
    primitives : mapping
        The same with elementary functions such as sin expanded.
    traceability : tuple of TracedLines
        Lines of Python that the lines of the C file come from.
    run : EmulatedRun, optional
        One call on the emulated board, library included.
    precision : PrecisionReport, optional
        Digits that a project of float32, or partly of it, loses at its example arguments.
    bounds : Bounds, optional
        Certified ranges of the results, of a project that was generated with ``ranges=``.

    Examples
    --------
    >>> from archimedes.embedded import ResourceReport
    >>> report = ResourceReport(
    ...     name="filter", target="cortex-m4", optimize="-O2", flash=2048, code=1800,
    ...     constants=248, ram=64, structs={"filter_state_t": 16}, stack=120,
    ...     stack_chain=("filter_step",), library_calls=(),
    ...     operations={"mul": 12, "add": 9}, primitives={"mul": 12, "add": 9}, traceability=())
    >>> report.code + report.constants == report.flash, report.stack
    (True, 120)
    """

    name: str
    target: str
    optimize: str
    flash: int
    code: int
    constants: int
    ram: int
    structs: Mapping[str, int]
    stack: int
    stack_chain: tuple[str, ...]
    library_calls: tuple[str, ...]
    operations: Mapping[str, int]
    primitives: Mapping[str, int]
    traceability: tuple[TracedLines, ...]
    run: EmulatedRun | None = None
    precision: PrecisionReport | None = None
    bounds: Bounds | None = None

    @property
    def total_operations(self) -> int:
        """Operations of one step in the worst case, elementary functions expanded."""
        return sum(self.primitives.values())

    def __str__(self) -> str:
        structs = ", ".join(f"{role} {size}" for role, size in self.structs.items())
        lines = [
            f"{self.name} on {self.target}, {self.optimize}",
            f"  flash       {self.flash} bytes: {self.code} code and {self.constants} constants of "
            f"its own, the rest from the compiler's library",
            f"  RAM         {self.ram} bytes (structs: {structs})",
            f"  stack       {self.stack} bytes: {' > '.join(self.stack_chain)}",
            f"  operations  at most {self.total_operations} a step: {_kinds(self.operations)}",
        ]
        if self.run is not None:
            lines.append(
                f"  measured    {max(self.run.instructions)} instructions, "
                f"{self.run.stack_bytes} bytes of stack with the compiler's library"
            )
        count = len(self.traceability)
        traced = f"{count} groups of lines" if count else "not recorded"
        lines.append(f"  traced      {traced}")
        if self.precision is not None:
            lines.append(f"  {self.precision.dtype:11} {_digits(self.precision)}")
        if self.bounds is not None:
            lines.append(f"  certified   {_certified(self.bounds)}")
        return "\n".join(lines)

    __repr__ = __str__

    def markdown(self) -> str:
        """Return everything as a page with tables."""
        figures = [
            ("flash", self.flash),
            ("of it own code", self.code),
            ("of it own constants", self.constants),
            ("RAM", self.ram),
            *((f"struct {role}", size) for role, size in self.structs.items()),
            ("stack", self.stack),
        ]
        if self.run is not None:
            figures.append(("stack, measured", self.run.stack_bytes))
        parts = [
            f"# {self.name} on {self.target} ({self.optimize})",
            "## Memory",
            _table(("what", "bytes"), figures),
            f"## Operations a step, worst case: {self.total_operations}",
            _table(("kind", "count"), _sorted(self.primitives)),
        ]
        if self.traceability:
            rows = [
                (f"{t.first}-{t.last}", t.where, f"`{t.text}`" if t.text else "")
                for t in self.traceability
            ]
            parts += [
                f"## Where the lines of {self.name}.c come from",
                _table((f"{self.name}.c", "Python", "statement"), rows),
            ]
        if self.precision is not None:
            parts += _precision_section(self.precision)
        if self.bounds is not None:
            parts += _bounds_section(self.bounds)
        return "\n\n".join(parts) + "\n"


def _certified(bounds: Bounds) -> str:
    """Say in a line what is proven of the results."""
    proven = sum(bounds.proofs.values())
    return f"ranges of {len(bounds.names)} results, {proven} of {len(bounds.proofs)} proofs"


def _bounds_section(bounds: Bounds) -> list[str]:
    """Return the certified ranges, what they hold for, and what is proven, as tables."""
    results = [
        (name, format_outward(low, -1), format_outward(high, 1), "yes" if nan else "no")
        for name, low, high, nan in bounds.rows()
    ]
    proofs = [(text, "proven" if holds else "not proven") for text, holds in bounds.proofs.items()]
    parts = [
        "## Certified ranges",
        "For all inputs in these ranges, the code computes results in those below, to the last "
        "bit.",
        _table(
            ("input", "from", "to"), [(n, f"{a:.17g}", f"{b:.17g}") for n, a, b in bounds.inputs]
        ),
        _table(("result", "from", "to", "may be nan"), results),
        _table(("statement", ""), proofs),
    ]
    if not bounds.findings.ok:
        rows = [(f"{f.file}:{f.line}", f.kind, f.message) for f in bounds.findings]
        parts.append(_table(("line", "not proven", "why"), rows))
    return parts


def _digits(report: PrecisionReport) -> str:
    """Say in a line what float32 costs."""
    if not report.results:
        return "no results"
    worst = max(report.results, key=lambda result: result.relative)
    text = f"{worst.digits:.1f} digits of {worst.name} are right, the worst result"
    if report.double:
        text += f"; {report.double_error:.1e} with double for {', '.join(report.double)}"
    return text


def _precision_section(report: PrecisionReport) -> list[str]:
    """Return the errors of a project of float32 as parts of a page."""
    results = [
        (r.name, f"{r.value:.9g}", f"{r.computed:.9g}", f"{r.relative:.1e}", f"{r.digits:.1f}")
        for r in report.results
    ]
    parts = [
        f"## Digits of {report.about} in {report.dtype}, at the example arguments",
        _table(("result", report.against, report.dtype, "relative error", "digits"), results),
    ]
    findings = [(f"{Path(f.file).name}:{f.line}", f.message, f"`{f.expression}`") for f in report]
    if findings:
        parts.append(_table(("line", "what is lost and what helps", "statement"), findings))
    if report.double:
        parts.append(
            f"In double: {', '.join(report.double)}. The relative error is then "
            f"{report.double_error:.1e}: `codegen(..., double={list(report.double)})`."
        )
    return parts


def _sorted(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _kinds(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in _sorted(counts))


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += [
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows
    ]
    return "\n".join(lines)


def report(
    code: CProject | Callable[..., Any],
    args: Sequence[Any] | None = None,
    *,
    board: str = "cortex-m4",
    optimize: str = "-O2",
    emulate: bool = False,
    steps: int = 1000,
    **options: Any,
) -> ResourceReport:
    """Measure what generated code takes on a target.

    Lines are traced if the project was generated with ``options={"traceability": True}``, as it is
    here for a function.

    Parameters
    ----------
    code : CProject or callable
        What :func:`codegen` returned, or a function, for which a project is generated.
    args : sequence, optional
        Example arguments of a function.
    board : str, optional
        A board of :func:`run_in_qemu`, or ``"host"`` for the compiler of this machine.
    optimize : str, optional
        Flag of the compiler, or ``"size"`` or ``"speed"`` for the flag that goes with it (a
        function is also generated that way).
    emulate : bool, optional
        Also run the example on the board. False by default.
    steps : int, optional
        Steps after which the digits of a project of float32 are counted, if it has a state; its
        other inputs keep their example values. 1000 by default.
    **options
        Options of :func:`codegen`, for a function.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.embedded.boards import missing_tools
    >>> def damped(x, v):
    ...     return x + 0.1 * v, v - 0.1 * np.sin(x)
    >>> if not missing_tools(["gcc"]):
    ...     figures = report(damped, (0.1, 0.2), board="host")
    ...     assert (figures.operations["mul"], figures.operations["sin"]) == (2, 1)
    """
    if isinstance(code, CProject):
        if args is not None or options:
            raise CodegenError(
                "report: a project already has its arguments and options: write report(project)"
            )
        project = code
    else:
        if args is None:
            raise CodegenError("report: a function needs example arguments: report(f, (x, u))")
        chosen = {"traceability": True, **dict(options.pop("options", None) or {})}
        if optimize in FLAGS_FOR:
            options["optimize"] = optimize
        project = make_c_project(code, args, options=chosen, **options)
    optimize = FLAGS_FOR.get(optimize, optimize)
    with tempfile.TemporaryDirectory(prefix="archimedes-") as folder:
        sizes = measure_sizes(project.model, board, optimize, Path(folder))
    run = None
    if emulate:
        run = run_in_qemu(project, [_example(project, board)], board=board, optimize=optimize)
    stats = project.model.source.stats
    return ResourceReport(
        name=project.name,
        target=board,
        optimize=optimize,
        **sizes,
        operations=dict(_sorted(stats.operations)),
        primitives=dict(_sorted(stats.primitives)),
        traceability=traceability_table(project),
        run=run,
        precision=_examine(project, check_whole(steps, "report: steps", 1)),
        bounds=project.bounds,
    )


def _examine(project: CProject, steps: int) -> PrecisionReport | None:
    """Return what a project of float32 loses at its example arguments, after steps of its state."""
    model, recording, about = project.model, project.prepared.recording, project.name
    reference = project.prepared.reference
    if model.types.float_type == np.float64 and reference is None:
        return None
    state = [
        (x.number, y.number)
        for a, b in model.state
        for x, y in zip(_under(model.inputs, a), _under(model.outputs, b))
    ]
    if state and steps > 1:
        recording, about = repeat_steps(recording, state, steps), f"{about} after {steps:,} steps"
        reference = None if reference is None else repeat_steps(reference, state, steps)
    samples = [
        np.asarray(value, dtype=DTYPES[leaf.code]).reshape(1, *leaf.shape)
        for value, leaf in zip(model.values, model.leaves)
    ]
    paths = {member.number: member.path for member in model.outputs.members}
    names = [paths.get(k, "") for k in range(len(model.out_leaves))]
    if reference is not None:
        return compare(about, recording, reference, samples, names)
    return examine(about, recording, samples, result_names=names)


def _under(root: Root, name: str) -> list[Member]:
    """Return the leaves of an argument or result by its name in C."""
    return [m for m in root.members if m.access == name or m.access.startswith(f"{name}.")]


def _example(project: CProject, board: str) -> tuple[Any, ...]:
    if board == HOST:
        raise CodegenError("report: emulate=True needs a board, not board='host'")
    prepared = project.prepared
    arguments, by_name = prepared.signature.unbind({**prepared.fixed, **prepared.arguments})
    if by_name:
        raise CodegenError(
            f"report: emulate=True cannot pass {', '.join(by_name)} by keyword: generate a "
            "function of positional arguments"
        )
    return arguments


# ---- measuring --------------------------------------------------------------------------


def measure_sizes(model: Model, board: str, optimize: str, folder: Path) -> dict[str, Any]:
    """Compile a project's code for a board, or for this machine; return the sizes of a report."""
    name = model.name
    prefix, target = "", ["-fno-pie"]
    if board != HOST:
        prefix, target = board_named(board).tools, list(board_named(board).flags)
    write_sources(model, folder)
    (folder / "sizes.c").write_text(_probe(name), encoding="ascii", newline="\n")
    purpose = f"measuring {name} on {board}"
    compiler = [f"{prefix}gcc", *target, *FLAGS, *_BARE, optimize]
    own = [f"{name}.c", "sizes.c", str(FOLDER / "memory.c")]
    run_tool([*compiler, "-fcallgraph-info=su", "-c", *own], purpose, cwd=folder)
    functions = ["init", "step", *(["carry"] if model.carries else [])]
    roots = [f"-Wl,-u,{name}_{word}" for word in functions]
    link = ["-nostdlib", "-nostartfiles", "-static", "-Wl,--gc-sections", *roots]
    link += [f"-Wl,-e,{name}_step", "-Wl,--build-id=none"]
    objects = [f"{name}.o", "memory.o", "-lgcc", "-o", "linked.elf"]
    run_tool([f"{prefix}gcc", *target, *link, *objects], purpose, cwd=folder)
    sections = _sections(prefix, f"{name}.o", purpose, folder)
    linked = _sections(prefix, "linked.elf", purpose, folder)
    graph = (folder / f"{name}.ci").read_text(encoding="utf-8")
    stack, chain, library = deepest_chain(graph, f"{name}_step")
    structs = _struct_sizes(prefix, purpose, folder)
    static = _sum(sections, ".data", ".sdata", ".bss", ".sbss")
    return {
        "flash": _sum(linked, ".text", ".rodata", ".srodata", ".data", ".sdata"),
        "code": _sum(sections, ".text"),
        "constants": _sum(sections, ".rodata", ".srodata"),
        "ram": static + sum(structs.values()),
        "structs": structs,
        "stack": stack,
        "stack_chain": chain,
        "library_calls": library,
    }


_ROLES = ("in", "out", "work")


def _probe(name: str) -> str:
    """Write a file whose arrays are as large as the structs."""
    arrays = "\n".join(
        f"extern char struct_{role}[]; char struct_{role}[sizeof({name}_{role}_t)];"
        for role in _ROLES
    )
    return f'#include "{name}.h"\n{arrays}\n'


def _read_rows(command: Sequence[str], purpose: str, folder: Path) -> list[list[str]]:
    """Return the words of each line that a tool prints."""
    return [line.split() for line in run_tool(command, purpose, cwd=folder).stdout.splitlines()]


def _struct_sizes(prefix: str, purpose: str, folder: Path) -> dict[str, int]:
    rows = _read_rows([f"{prefix}nm", "-S", "sizes.o"], purpose, folder)
    sizes = {row[3]: int(row[1], 16) for row in rows if len(row) == 4}
    return {role: sizes[f"struct_{role}"] for role in _ROLES}


def _sections(prefix: str, file: str, purpose: str, folder: Path) -> dict[str, int]:
    rows = _read_rows([f"{prefix}size", "-A", file], purpose, folder)
    return {row[0]: int(row[1]) for row in rows if len(row) == 3 and row[0].startswith(".")}


def _sum(sections: Mapping[str, int], *kinds: str) -> int:
    starts = tuple(f"{kind}." for kind in kinds)
    return sum(size for name, size in sections.items() if f"{name}.".startswith(starts))


# ---- stack ---------------------------------------------------------------------------------------

_NODE = re.compile(r'node: \{ title: "([^"]+)" label: "([^"]*)"')
_EDGE = re.compile(r'edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"')
_BYTES = re.compile(r"(\d+) bytes \(([\w,]+)\)")


def _sizes_in(graph: str) -> Iterator[tuple[str, int]]:
    for title, label in _NODE.findall(graph):
        size = _BYTES.search(label)
        if size is None:
            continue
        if size[2] == "dynamic":
            raise ToolError(f"the compiler cannot tell how much stack {title} uses")
        yield title, int(size[1])


def deepest_chain(graph: str, start: str) -> tuple[int, tuple[str, ...], tuple[str, ...]]:
    """Read GCC's call graph (``-fcallgraph-info=su``) and find the deepest stack below a function.

    Returns its bytes, the functions on it, and the called functions of unknown use, sorted.
    """
    sizes = dict(_sizes_in(graph))
    calls: dict[str, list[str]] = {}
    for source, to in _EDGE.findall(graph):
        calls.setdefault(source, []).append(to)
    known: dict[str, tuple[int, tuple[str, ...]]] = {}

    def depth(title: str) -> tuple[int, tuple[str, ...]]:
        if title not in known:
            below = max((depth(to) for to in calls.get(title, ())), default=(0, ()))
            chain = below[1] if below[0] else ()
            known[title] = (sizes.get(title, 0) + below[0], (title.rpartition(":")[2], *chain))
        return known[title]

    total, chain = depth(start)
    outside = {to for to in known if to not in sizes and not to.startswith("__builtin")}
    return total, chain, tuple(sorted(outside))


# ---- traceability -------------------------------------------------------------------------------


def traceability_table(project: CProject) -> tuple[TracedLines, ...]:
    """Return, in the order of the lines of ``<name>.c``, where they come from.

    Empty unless the project was generated with ``options={"traceability": True}``.
    """
    source = project.model.source
    if not source.trace:
        return ()
    c_file = project.files[project.c_file]
    offset = c_file[: c_file.index(source.text)].count("\n")
    known = LineNotes(project.prepared.recording.blocks).lines
    length = source.text.count("\n")
    starts = [line for line, _ in source.trace]
    return tuple(
        TracedLines(offset + line + 1, offset + end, known[note])
        for (line, note), end in zip(source.trace, _ends(source.text, starts, length))
    )


def _ends(text: str, starts: list[int], length: int) -> Iterator[int]:
    """Yield the last line that each note holds for: before the next one, or the function's end."""
    lines = text.split("\n")
    following = [*starts[1:], length + 1]
    for start, after in zip(starts, following):
        end = start
        while end + 1 < after and lines[end] != "}":
            end += 1
        yield end
