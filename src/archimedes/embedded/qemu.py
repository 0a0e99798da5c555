"""Processor in the loop: generated C runs on an emulated microcontroller."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.embedded.boards import Harness, Slot, board_named, build, execute
from archimedes.embedded.c_files import source_files
from archimedes.embedded.c_model import Model
from archimedes.embedded.c_project import CProject, make_c_project
from archimedes.embedded.c_structs import Root
from archimedes.errors import CodegenError
from archimedes.graph.dtypes import I64
from archimedes.tree.content import content_key

__all__ = ["EmulatedRun", "run_in_qemu"]


@dataclass(frozen=True)
class EmulatedRun:
    """Results of calls on an emulated board, and what they cost there.

    Parameters
    ----------
    board : str
        The board.
    outputs : tuple
        Result of each call, in the form that the Python function returns. The run itself is a
        sequence of them.
    instructions : tuple of int
        Instructions of each call of ``_step``, software arithmetic included.
    stack_bytes : int
        Largest stack that a call used, 128 or more.

    Examples
    --------
    >>> from archimedes.embedded import EmulatedRun
    >>> run = EmulatedRun("cortex-m4", outputs=(0.5, 0.25), instructions=(120, 9), stack_bytes=256)
    >>> len(run), run[1], max(run.instructions)
    (2, 0.25, 120)
    """

    board: str
    outputs: tuple[Any, ...]
    instructions: tuple[int, ...]
    stack_bytes: int

    def __len__(self) -> int:
        return len(self.outputs)

    def __getitem__(self, k: int) -> Any:
        return self.outputs[k]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.outputs)

    def __str__(self) -> str:
        most = max(self.instructions, default=0)
        return (
            f"{len(self)} calls on {self.board}: at most {most} instructions and "
            f"{self.stack_bytes} bytes of stack"
        )


def _slots(root: Root, variable: str, model: Model) -> list[Slot]:
    return [
        Slot(f"{variable}.{m.access}", m.leaf.size * model.types.dtype(m.leaf.code).itemsize)
        for m in root.members
    ]


def make_harness(model: Model) -> Harness:
    """Return how a driver calls a project's code."""
    name = model.name
    words = ("in", "out", "work")
    pointers = ", ".join(f"&{name}_{word}_data" for word in words)
    return Harness(
        header=f"{name}.h",
        variables="\n".join(f"static {name}_{word}_t {name}_{word}_data;" for word in words),
        setup=f"{name}_init({pointers});",
        call=f"{name}_step({pointers});",
        inputs=_slots(model.inputs, f"{name}_in_data", model),
        outputs=_slots(model.outputs, f"{name}_out_data", model),
    )


def run_in_qemu(
    code: CProject | Callable[..., Any],
    inputs: Sequence[tuple[Any, ...]],
    *,
    board: str = "cortex-m4",
    optimize: str = "-O2",
    timeout: float = 60.0,
    **options: Any,
) -> EmulatedRun:
    """Compile code for a microcontroller, run it in QEMU, and return what it computed there.

    The results have exactly the bits of the target. It needs a cross compiler and QEMU; a
    ``ToolError`` names the packages of what is missing.

    Parameters
    ----------
    code : CProject or callable
        What :func:`codegen` returned, or a function, for which a project is generated.
    inputs : sequence of tuple
        Arguments of each call.
    board : {"cortex-m3", "cortex-m4", "cortex-m7", "riscv32", "riscv64"}, optional
        The board. Cortex-M4 has single precision in hardware, Cortex-M7 double precision.
    optimize : str, optional
        Flag of the compiler, ``"-O2"`` by default.
    timeout : float, optional
        Time in s after which the emulator is stopped.
    **options
        Options of :func:`codegen`, for a function, such as ``float_type=np.float32``.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.embedded.boards import missing_tools
    >>> def spin(w, dt):
    ...     return w + dt * np.array([w[1] * w[2], -w[0] * w[2], 0.0])
    >>> if not missing_tools(["arm-none-eabi-gcc", "qemu-system-arm"]):
    ...     run = run_in_qemu(spin, [(np.array([0.1, 0.2, 0.3]), 0.01)])
    ...     assert np.array_equal(run[0], spin(np.array([0.1, 0.2, 0.3]), 0.01))
    """
    machine = board_named(board)
    calls = _check_calls(inputs)
    project = code if isinstance(code, CProject) else make_c_project(code, calls[0], **options)
    if project is code and options:
        raise CodegenError(
            f"run_in_qemu: give {', '.join(options)} to codegen: this project is generated already"
        )
    model = project.model
    data = [pack_arguments(project, arguments, k) for k, arguments in enumerate(calls)]
    with tempfile.TemporaryDirectory(prefix="archimedes-") as folder:
        firmware = build(source_files(model), make_harness(model), machine, Path(folder), optimize)
        run = execute(firmware, data, timeout)
    outputs = tuple(unpack_results(project, block) for block in run.outputs)
    return EmulatedRun(board, outputs, tuple(run.instructions), run.stack_bytes)


def _check_calls(inputs: object) -> list[tuple[Any, ...]]:
    if not isinstance(inputs, (list, tuple)):
        problem = f"a {type(inputs).__name__}"
    elif wrong := [x for x in inputs if not isinstance(x, (list, tuple))]:
        problem = f"a list that holds a {type(wrong[0]).__name__}"
    elif inputs:
        return [tuple(arguments) for arguments in inputs]
    else:
        problem = "empty"
    raise CodegenError(
        f"run_in_qemu: inputs is {problem}: give a list with a tuple of arguments for each call, "
        "such as [(x0, u0), (x1, u1)]; one argument is [(x0,), (x1,)]"
    )


# ---- arguments as the bytes of C structs, and results from them, leaf after leaf ----------------


def pack_arguments(project: CProject, arguments: tuple[Any, ...], call: int = 0) -> bytes:
    """Return the leaves of ``<name>_in_t`` for one call, in order and without padding.

    Arguments must have the form of codegen's examples; static ones and parameters, which are part
    of the code, their values. ``call`` is named in errors.
    """
    leaves = _leaves(project, arguments, f"inputs[{call}]")
    return b"".join(leaves[member.number].tobytes() for member in project.model.inputs.members)


def _leaves(project: CProject, arguments: tuple[Any, ...], where: str) -> list[np.ndarray]:
    prepared, model = project.prepared, project.model
    try:
        values = prepared.signature.bind(arguments, {})
    except TypeError as error:
        raise CodegenError(f"{where}: {error}") from error
    for name, wanted in prepared.fixed.items():
        _check_equal(values[name], wanted, f"{where}: {name}")
    dynamic = {name: values[name] for name in prepared.arguments}
    flat, treedef = tree.flatten(tuple(dynamic.values()))
    wanted_leaves, wanted_tree = tree.flatten(tuple(prepared.arguments.values()))
    if not wanted_tree.matches(treedef):
        raise CodegenError(
            f"{where} has another structure than the arguments that the code was generated for: "
            f"{treedef} instead of {wanted_tree}"
        )
    paths = [p for name, sub in zip(dynamic, treedef.children) for p in sub.paths(name)]
    bound = {member.number for member in model.parameters.members}
    result: list[np.ndarray] = []
    for leaf, wanted, spec, path in zip(flat, wanted_leaves, prepared.recording.leaves, paths):
        if not spec.traced:
            _check_equal(leaf, wanted, f"{where}: {path}")
            continue
        if np.shape(leaf) != spec.shape:
            raise CodegenError(
                f"{where}: {path} has shape {np.shape(leaf)}, not {spec.shape} as in the code"
            )
        stored = _store(project, np.asarray(leaf), spec.code, f"{where}: {path}")
        if len(result) in bound and not np.array_equal(stored, np.asarray(wanted, stored.dtype)):
            raise CodegenError(
                f"{where}: {path} is a parameter, with the value {wanted!r} in the code: generate "
                "the code again to change it, or leave it out of parameters"
            )
        result.append(stored)
    return result


def _check_equal(value: object, wanted: object, name: str) -> None:
    """Raise where a value that is part of the code is not the one it was generated for."""
    if content_key(value) != content_key(wanted):
        raise CodegenError(f"{name} is {value!r}, but the code was generated for {wanted!r}")


def _store(project: CProject, value: np.ndarray, code: int, what: str) -> np.ndarray:
    """Return the value in the type that C stores."""
    dtype = project.model.types.dtype(code)
    if code == I64 and value.size:
        limits = np.iinfo(dtype)
        if value.min() < limits.min or value.max() > limits.max:
            raise CodegenError(f"{what} does not fit in {dtype}: leave int_type=int")
    with np.errstate(over="ignore"):
        return value.astype(dtype)


def unpack_results(project: CProject, data: bytes) -> Any:
    """Return the result tree from the leaves of ``<name>_out_t``, in order and without padding."""
    model, recording = project.model, project.prepared.recording
    types, members = model.types, model.outputs.members
    leaves = [np.zeros(leaf.shape, types.dtype(leaf.code)) for leaf in model.out_leaves]
    sent = np.frombuffer(data, [(m.path, types.dtype(m.leaf.code), m.leaf.shape) for m in members])
    for member in members:
        leaves[member.number] = sent[member.path].reshape(member.leaf.shape).copy()
    return recording.out_tree.unflatten([leaf if leaf.ndim else leaf[()] for leaf in leaves])
