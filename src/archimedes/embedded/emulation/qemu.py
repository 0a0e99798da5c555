"""Processor in the loop: generated C runs on an emulated microcontroller."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archimedes.embedded.boards import board_named
from archimedes.embedded.boards.firmware import Harness, Slot, build, execute
from archimedes.embedded.c_types.struct_layout import Root
from archimedes.embedded.emulation.argument_bytes import pack_arguments, unpack_results
from archimedes.embedded.files.header import header_text
from archimedes.embedded.files.source_file import source_text
from archimedes.embedded.generation import codegen
from archimedes.embedded.model import Model
from archimedes.embedded.project import CProject
from archimedes.errors import CodegenError

__all__ = ["EmulatedRun", "harness_of", "run_in_qemu", "sources_of"]


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


def sources_of(model: Model) -> dict[str, str]:
    """Return the files that a program must be compiled with."""
    return {f"{model.name}.h": header_text(model), f"{model.name}.c": source_text(model)}


def _slots(root: Root, variable: str, model: Model) -> list[Slot]:
    return [
        Slot(f"{variable}.{p.access}", p.leaf.size * model.types.dtype(p.leaf.code).itemsize)
        for p in root.places
    ]


def harness_of(model: Model) -> Harness:
    """Say how a driver calls a project's code."""
    name = model.name
    words = ("in", "out", "work")
    given = ", ".join(f"&{name}_{word}_data" for word in words)
    return Harness(
        header=f"{name}.h",
        variables="\n".join(f"static {name}_{word}_t {name}_{word}_data;" for word in words),
        setup=f"{name}_init({given});",
        call=f"{name}_step({given});",
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
    >>> from archimedes.embedded.tools import missing_tools
    >>> def spin(w, dt):
    ...     return w + dt * np.array([w[1] * w[2], -w[0] * w[2], 0.0])
    >>> if not missing_tools(["arm-none-eabi-gcc", "qemu-system-arm"]):
    ...     run = run_in_qemu(spin, [(np.array([0.1, 0.2, 0.3]), 0.01)])
    ...     assert np.array_equal(run[0], spin(np.array([0.1, 0.2, 0.3]), 0.01))
    """
    machine = board_named(board)
    calls = _checked_calls(inputs)
    project = code if isinstance(code, CProject) else codegen(code, calls[0], **options)
    if project is code and options:
        raise CodegenError(
            f"run_in_qemu: {', '.join(options)} cannot change a project that is already generated: "
            "give it to codegen"
        )
    model = project.model
    data = [pack_arguments(project, arguments, k) for k, arguments in enumerate(calls)]
    with tempfile.TemporaryDirectory(prefix="archimedes-") as folder:
        firmware = build(sources_of(model), harness_of(model), machine, Path(folder), optimize)
        run = execute(firmware, data, timeout)
    return EmulatedRun(
        board=board,
        outputs=tuple(unpack_results(project, block) for block in run.outputs),
        instructions=tuple(run.instructions),
        stack_bytes=run.stack_bytes,
    )


def _checked_calls(inputs: Any) -> list[tuple[Any, ...]]:
    if isinstance(inputs, (list, tuple)) and inputs:
        if all(isinstance(arguments, (list, tuple)) for arguments in inputs):
            return [tuple(arguments) for arguments in inputs]
        wrong = next(x for x in inputs if not isinstance(x, (list, tuple)))
        found = f"a list that holds a {type(wrong).__name__}"
    else:
        found = "empty" if isinstance(inputs, (list, tuple)) else f"a {type(inputs).__name__}"
    raise CodegenError(
        f"run_in_qemu: inputs is {found}: give a list with a tuple of arguments for each call, "
        "such as [(x0, u0), (x1, u1)]; one argument is [(x0,), (x1,)]"
    )
