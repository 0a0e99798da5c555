"""Entries of kernels see to the floating-point environment: same bits, whoever calls.

An entry reads the thread's control register. If rounding mode, flush-to-zero and masks of traps
are the default ones, which takes about a nanosecond to see, it goes on to the kernel; otherwise it
sets them, calls the kernel, and puts back what was there. The kernel is a function that is never
inlined: LLVM moves arithmetic freely within a function, as it takes the default environment for
granted, and never across such a call.
"""

from __future__ import annotations

from typing import NamedTuple

from archimedes.backends.llvm.lowering.assembler import Module

__all__ = ["add_guarded"]


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
    head = f"define i32 @{name}({parameters}) nounwind {{"
    if register is None:
        lines = [f"  %status = tail {call}", "  ret i32 %status"]
    else:
        for line in register.declarations:
            module.declarations[line] = line
        wanted = register.flushing if flushes else register.default
        lines = _guarded(register, wanted, call)
    module.functions.append("\n".join([head, "entry:", *lines, "}"]))


def _guarded(r: Register, wanted: int, call: str) -> list[str]:
    def write(value: object) -> list[str]:
        return ["  " + line.format(value=value) for line in r.write]

    return [
        f"  %place = alloca {r.kind}, align 8",
        *("  " + line for line in r.read),
        f"  %set = and {r.kind} %found, {r.mask}",
        f"  %other = icmp ne {r.kind} %set, {wanted}",
        "  br i1 %other, label %changed, label %usual, !prof !0",
        "usual:",
        f"  %status = tail {call}",
        "  ret i32 %status",
        "changed:",
        *write(wanted),
        f"  %result = {call}",
        *write("%found"),
        "  ret i32 %result",
    ]
