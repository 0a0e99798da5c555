"""From a function, example arguments and options to a recording that can be written as C."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from enum import Enum
from types import MethodType
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.checks import check_choice
from archimedes.errors import CodegenError, GraphError, StructError, TraceError, refer_to
from archimedes.function.compiled import Compiled, CompiledMethod
from archimedes.function.recording import Recording
from archimedes.function.region_bodies import trace_static_results
from archimedes.function.signatures import Signature
from archimedes.graph.dtypes import I64, code_of
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph
from archimedes.graph.regions import Host, Region, While
from archimedes.graph.regions.loop_regions import UNBOUNDED
from archimedes.symbolic.core.loop_nests import loops_from, sparse_loops
from archimedes.symbolic.core.user_frames import recording_lines

#: What ``optimize`` may be, and from how many elements on arrays are loops then (None: as
#: everywhere).
LOOPS_FROM = {"speed": None, "size": 12, "smallest": 12}


@dataclass(frozen=True)
class Options:
    """Options of :func:`codegen`, given as a dict.

    ``version``: text of the version macro. ``scratch``: "stack", or "workspace" to put arrays that
    the step needs into ``<name>_work_t``. ``cpp``: add a header-only C++ class. ``nonfinite``:
    allow nan and inf as default values. ``max_iterations``: longest loop with a condition.
    ``adaptive``: allow solvers that choose their own steps.
    ``samples``: sets of inputs that ``verify`` tries. ``discard_user_code``: overwrite files
    even if something that a user wrote is lost. ``traceability``: comments in the C code that name
    the lines of Python it comes from, see ``archimedes.embedded.report``. ``layout``: "own", or
    "original" for files and names as programs written for Archimedes 0.5 expect them.
    """

    version: str = "1.0.0"
    scratch: str = "stack"
    cpp: bool = False
    nonfinite: bool = False
    max_iterations: int = 10_000
    adaptive: bool = False
    traceability: bool = False
    samples: int = 48
    discard_user_code: bool = False
    layout: str = "own"

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[\w.+-]+", str(self.version), re.ASCII):
            raise CodegenError(f"codegen: version={self.version!r} must be letters, digits or .+-_")
        scratch, layouts = ("stack", "workspace"), ("own", "original")
        check_choice(self.scratch, "codegen: scratch", scratch, error=CodegenError)
        check_choice(self.layout, "codegen: layout", layouts, error=CodegenError)

    @classmethod
    def of(cls, options: Mapping[str, Any] | None) -> Options:
        """Read a user's dict; an unknown key is an error that names the nearest one."""
        known = [field.name for field in dataclasses.fields(cls)]
        for key in options or {}:
            if key not in known:
                near = difflib.get_close_matches(str(key), known, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {known}"
                raise CodegenError(f"codegen: options has the unknown key {key!r}; {hint}")
        return cls(**dict(options or {}))


@dataclass(frozen=True)
class Prepared:
    """A recorded function: every leaf of its result is in the graph.

    ``arguments`` are the example values of what is traced, ``fixed`` of what is not;
    ``signature`` binds other arguments in the same way. ``reference`` is the recording in float64
    of one that is partly in float32.
    """

    name: str
    recording: Recording
    arguments: dict[str, Any]
    fixed: dict[str, Any]
    return_names: tuple[str, ...] | None
    summary: str
    signature: Signature
    optimize: str
    reference: Recording | None = None


def prepare(
    compiled: Compiled,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None,
    name: str | None,
    options: Options,
    optimize: str,
    lines: bool = False,
) -> Prepared:
    """Record ``func`` on the example arguments and check that C can do all of it.

    ``optimize`` says from which size on arrays are loops. With ``lines``, or the option
    ``traceability``, the graph knows which line of Python each node comes from.
    """
    lines = lines or options.traceability
    title = name or compiled.name
    if not isinstance(args, (tuple, list)):
        raise CodegenError(
            f"codegen: args is a {type(args).__name__}: give a tuple of example arguments, "
            "such as args=(x, u); one argument is args=(x,)" + refer_to("examples")
        )
    try:
        values = compiled.signature.bind(tuple(args), dict(kwargs or {}))
        fixed = compiled.signature.fixed(values)
        dynamic = {key: value for key, value in values.items() if key not in fixed}
        _check_arguments(dynamic)
        # Lines end at the frame that enters this.
        with recording_lines() if lines else nullcontext(), _short_loops(optimize):
            recording = compiled.recording(*args, **(kwargs or {}))
        if recording.captured:
            raise CodegenError(
                f"codegen: {title}() uses values of a function that is being recorded: call "
                "codegen outside compiled functions, with plain numbers"
            )
        _check_results(recording)
        with recording_lines() if lines else nullcontext():
            recording = trace_static_results(recording)
    except (TraceError, GraphError, StructError) as error:
        raise CodegenError(f"codegen: {error}") from error
    except TypeError as error:
        if not str(error).startswith(f"{compiled.signature.name}():"):
            raise
        raise CodegenError(f"codegen: the example arguments do not fit: {error}") from error
    _check_graph(recording.blocks, title, options)
    _report_integers(recording, dynamic)
    return Prepared(
        name=title,
        recording=recording,
        arguments=dynamic,
        fixed={key: values[key] for key in values if key in fixed},
        return_names=compiled.return_names,
        summary=_summary(compiled.function),
        signature=compiled.signature,
        optimize=optimize,
    )


@contextmanager
def _short_loops(optimize: str) -> Iterator[None]:
    """Record arrays as loops from the size on that ``optimize`` asks for, sparse products too."""
    remedy = "flags of the compiler are the build's: CFLAGS"
    check_choice(optimize, "codegen: optimize", LOOPS_FROM, remedy, CodegenError)
    wide = LOOPS_FROM[optimize]
    with sparse_loops(), nullcontext() if wide is None else loops_from(wide):
        yield


def as_compiled(func: Any, argnums: Any, argnames: Any) -> Compiled:
    """Return the function as a Compiled; static arguments passed here override its own."""
    if isinstance(func, CompiledMethod):
        # The instance is a value that the method closes over, as for a method not compiled.
        method: Any = func.func
        func = MethodType(method.function, func.args[0])
    if isinstance(func, Compiled):
        if argnums is None and argnames is None:
            return func
        names, func = func.return_names, func.function
    elif callable(func):
        names = None
    else:
        raise CodegenError(
            f"codegen needs a function, got {type(func).__name__}: write arc.codegen(f, (x,))"
        )
    inner = func.func if isinstance(func, functools.partial) else func
    static = {"static_argnums": argnums, "static_argnames": argnames}
    try:
        name = getattr(inner, "__name__", None)
        return Compiled(func, return_names=names, name=name, **static)
    except ValueError as error:
        raise CodegenError(f"codegen: {error}") from error


#: Leaves that are rightly static: they choose what is recorded.
_CHOICES = (bool, str, bytes, Enum)


def _check_arguments(arguments: dict[str, Any]) -> None:
    """Raise for examples that have no shape, such as classes."""
    for name, value in arguments.items():
        leaves, treedef = tree.flatten(value)
        for leaf, path in zip(leaves, treedef.paths(name)):
            is_function = callable(leaf) and not isinstance(leaf, type)
            if is_function or isinstance(leaf, (int, float, np.ndarray, np.generic, *_CHOICES)):
                continue
            what = leaf.__name__ if isinstance(leaf, type) else f"a {type(leaf).__name__}"
            raise CodegenError(
                f"codegen: the shape of argument {path} is unknown, because its example is {what}: "
                "give an array or a number, such as np.zeros(3) or 0.0, or declare the argument "
                "static (static_argnames)"
            )


def _check_results(recording: Recording) -> None:
    for out, path in zip(recording.outs, recording.out_tree.paths("result")):
        if out.spec.traced:
            continue
        value = out.spec.value
        if not isinstance(value, (int, float, np.ndarray, np.generic)) or (
            code_of(np.asarray(value).dtype) is None
        ):
            raise CodegenError(
                f"codegen: {path} is a {type(value).__name__}, which has no form in C: return "
                "float64, float32, int64 and bool numbers and arrays only"
            )


def _report_integers(recording: Recording, arguments: dict[str, Any]) -> None:
    """Warn of examples that are Python ints but are used as floats: they become integers in C."""
    g = recording.blocks
    paths = [p for name, value in arguments.items() for p in tree.paths(value, name)]
    for path, spec, start in zip(paths, recording.leaves, recording.block_offsets()):
        if spec.code != I64 or not spec.weak:
            continue
        users = [k for k in g.live() if g.inputs[start] in g.operands(k)]
        if users and all(g.op[k] == _TO_FLOAT for k in users):
            warnings.warn(
                f"codegen: the example of argument {path} is a Python int, so that it is an "
                "int64_t in C and fractions are lost, but the function uses it as a float: give "
                "the example as a float (1.0, not 1), or as np.int64(1) if it is an integer",
                stacklevel=5,
            )


_TO_FLOAT = CODES["f64"]


def _regions(graph: Graph) -> Iterator[Region]:
    for region in graph.regions.values():
        yield region
        for body in region.bodies:
            yield from _regions(body)


def _check_graph(graph: Graph, name: str, options: Options) -> None:
    """Raise for what a target cannot do: callbacks, and loops that may run too long."""
    for region in _regions(graph):
        where = f" at\n  {region.line}\n" if region.line else " "
        if isinstance(region, Host):
            raise CodegenError(
                f"codegen: {name}() calls the Python function {region.label!r} through "
                f"arc.callback{where}which does not exist on the target: write it in NumPy, "
                "pass what it computes as an argument, or use a fixed-step method where a "
                "solver of another library is called" + refer_to("callback in C")
            )
        if isinstance(region, While) and region.adaptive and not options.adaptive:
            raise CodegenError(
                f"codegen: {name}() solves a differential equation with steps of adaptive "
                f"length{where}so that its run time on the target is not known: use a "
                "fixed step (dt=... in the solver's options, or arc.discretize), or pass "
                "options={'adaptive': True} if time does not matter" + refer_to("adaptive in C")
            )
        if isinstance(region, While) and region.limit > options.max_iterations:
            many = (
                f"a while_loop without max_steps{where}which may run forever"
                if region.limit == UNBOUNDED
                else f"a loop of up to {region.limit:,} iterations{where}which is more than the "
                f"{options.max_iterations:,} allowed on a target"
            )
            raise CodegenError(
                f"codegen: {name}() has {many}: give the loop a smaller max_steps, use arc.scan or "
                "arc.fori_loop, or pass options={'max_iterations': ...}"
            )


def _summary(function: Any) -> str:
    """Return the first paragraph of a function's docstring, as one line."""
    text = (getattr(function, "__doc__", None) or "").strip()
    return " ".join(text.split("\n\n")[0].split())
