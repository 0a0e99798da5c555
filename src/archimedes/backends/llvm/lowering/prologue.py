"""How a kernel begins and ends: its floating-point environment and its scratch memory."""

from __future__ import annotations

from typing import NamedTuple

from archimedes.backends.llvm.calling_convention import NO_MEMORY
from archimedes.backends.llvm.lowering.assembler import Function, Module
from archimedes.backends.llvm.lowering.memory import ALIGNMENT
from archimedes.backends.llvm.lowering.safepoints import has_safepoints, open_budget, status_of


class Register(NamedTuple):
    """A control register: its type in LLVM, the bits that matter, and their default.

    ``flushing``: their value where numbers too small to be normal count as zero.
    """

    kind: str
    mask: int
    default: int
    flushing: int
    declarations: tuple[str, ...]
    read: tuple[str, ...]
    write: tuple[str, ...]


#: MXCSR: flags (bits 0-5) say what happened and do not matter; masks of traps, rounding mode,
#: flush-to-zero (15) and denormals-are-zero (6) do. Intel SDM volume 1, 10.2.3.
_MXCSR = Register(
    "i32",
    0xFFC0,
    0x1F80,
    0x9FC0,
    (
        "declare void @llvm.x86.sse.stmxcsr(ptr)",
        "declare void @llvm.x86.sse.ldmxcsr(ptr)",
    ),
    ("call void @llvm.x86.sse.stmxcsr(ptr %place)", "%found = load i32, ptr %place, align 4"),
    ("store i32 {value}, ptr %place, align 4", "call void @llvm.x86.sse.ldmxcsr(ptr %place)"),
)
#: FPCR: all zero by default (rounding to nearest, no flushing, no traps, IEEE half precision).
#: Arm Architecture Reference Manual, C5.2.8.
_FPCR = Register(
    "i64",
    0x7FF_FF07,
    0,
    1 << 24,
    (
        "declare i64 @llvm.aarch64.get.fpcr()",
        "declare void @llvm.aarch64.set.fpcr(i64)",
    ),
    ("%found = call i64 @llvm.aarch64.get.fpcr()",),
    ("call void @llvm.aarch64.set.fpcr(i64 {value})",),
)
#: By the first part of the triple; other CPUs run kernels in the environment of the caller.
_REGISTERS = {"x86_64": _MXCSR, "aarch64": _FPCR, "arm64": _FPCR}


def add_guarded(
    module: Module, name: str, parameters: str, inner: str, flushes: bool = False
) -> None:
    """Add the function ``i32 name(parameters)``: ``inner`` in the default environment.

    ``flushes``: in one where subnormal numbers are zero, on CPUs with such a register.
    """
    register = _REGISTERS.get(module.target.triple.split("-")[0])
    call = f"call i32 @{inner}({parameters})"
    lines = [f"  %status = tail {call}", "  ret i32 %status"]
    if register is not None:
        module.declarations |= {line: line for line in register.declarations}
        wanted = register.flushing if flushes else register.default
        lines = [
            f"  %place = alloca {register.kind}, align 8",
            *("  " + line for line in register.read),
            f"  %set = and {register.kind} %found, {register.mask}",
            f"  %other = icmp ne {register.kind} %set, {wanted}",
            "  br i1 %other, label %changed, label %usual, !prof !0",
            "usual:",
            *lines,
            "changed:",
            *("  " + line.format(value=wanted) for line in register.write),
            f"  %result = {call}",
            *("  " + line.format(value="%found") for line in register.write),
            "  ret i32 %result",
        ]
    head = f"define i32 @{name}({parameters}) nounwind {{"
    module.functions.append("\n".join([head, "entry:", *lines, "}"]))


#: Larger frames come from the heap.
STACK = 32768


def open_frame(f: Function, size: int, tiles: int = 1, own: int = 0) -> None:
    """Allocate the frame and clear its status word.

    ``tiles``: how many frames of ``own`` bytes are in it, one after the other.
    """
    if size <= STACK:
        f.line(f"%frame = alloca [{size} x i8], align {ALIGNMENT}")
    else:
        f.module.declare("@arc_malloc", "ptr", "i64")
        f.line(f"%raw = call ptr @arc_malloc(i64 {size + ALIGNMENT})")
        missing = f.value("icmp eq ptr %raw, null")
        fail, go = f.label(), f.label()
        f.fork(missing, fail, go, rare=True)
        f.start(fail)
        f.line(f"ret i32 {NO_MEMORY}")
        f.start(go)
        f.line("%raw.int = ptrtoint ptr %raw to i64")
        above = f.add("%raw.int", ALIGNMENT - 1)
        aligned = f.value(f"and i64 {above}, {-ALIGNMENT}")
        f.line(f"%frame = inttoptr i64 {aligned} to ptr")
    f.line("store i32 0, ptr %frame, align 4")
    if has_safepoints(f):
        others = [f.offset("%frame", k * own) for k in range(1, tiles)]
        open_budget(f, ["%frame", *others])


def close_frame(f: Function, size: int) -> None:
    """Free the frame and return the status."""
    status = f.value("load i32, ptr %frame, align 4")
    if f.budget:
        status = f.value(f"or i32 {status}, {status_of(f)}")
    if size > STACK:
        f.module.declare("@arc_free", "void", "ptr")
        f.line("call void @arc_free(ptr %raw)")
    f.finish(f"ret i32 {status}")
