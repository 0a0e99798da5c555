"""How a kernel begins and ends: its floating-point environment, scratch memory and safepoints.

A kernel with long loops has a budget: three words on its stack, to which its frame has a pointer.

=====  ==========================================================================
bytes  what
=====  ==========================================================================
0-7    operations that are left
8-15   when Python had its last turn, in milliseconds (0: not yet)
16-19  the status: not zero from when the kernel is to end
=====  ==========================================================================

Loops subtract from the budget what they did. Where nothing is left, they call the function that the
word ``@arc_safepoint`` points to (``runtime/calls_to_python.py``). If that returns a status other
than zero, the loop ends with whatever values it has. The code behind it still runs, and the kernel
returns the status.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from archimedes.backends.llvm.calling_convention import NO_MEMORY, SAFEPOINT
from archimedes.backends.llvm.lowering.assembler import Function, Module
from archimedes.backends.llvm.lowering.memory import ALIGNMENT
from archimedes.backends.lowering.analysis import BUDGET, Safepoint
from archimedes.backends.lowering.dialect import Loop


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
    ("declare void @llvm.x86.sse.stmxcsr(ptr)", "declare void @llvm.x86.sse.ldmxcsr(ptr)"),
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
    ("declare i64 @llvm.aarch64.get.fpcr()", "declare void @llvm.aarch64.set.fpcr(i64)"),
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


# ---- safepoints: a budget of operations, and what happens where it is used up --------------------


#: Where a frame has the pointer, in bytes, and where a budget has its words.
AT_FRAME = 8
_LAST, _STATUS, _SIZE = 8, 16, 24
_LINE = f"@{SAFEPOINT} = external global ptr"


@dataclass(eq=False, repr=False)
class Run(Loop):
    """A loop between safepoints.

    ``first``: the counter it began with ("": it is but a step), ``work``: the operations for each
    that it is counted up by, ``left``: the basic block from which it was left.
    """

    first: str = ""
    work: int = 0
    left: str = ""

    def leave(self, f: Function, done: str) -> None:
        """Leave for the label behind the loop, before the step is done."""
        if self.first:
            _subtract(f, f.mul(f.sub(self.counter, self.first), self.work))
        self.left = f.block
        f.line(f"br label %{done}")


def has_safepoints(f: Function) -> bool:
    """Return whether the module of a function has safepoints."""
    return _LINE in f.module.global_lines


def declare_safepoints(f: Function) -> None:
    """Declare in a function's module that it has safepoints."""
    if not has_safepoints(f):
        f.module.global_lines.append(_LINE)


def open_budget(f: Function, frames: Sequence[str]) -> None:
    """Make the budget of a call, and store its address in the call's frames."""
    f.line(f"%budget = alloca [{_SIZE} x i8], align 8")
    f.line(f"store i64 {BUDGET}, ptr %budget, align 8")
    for at, kind in ((_LAST, "i64"), (_STATUS, "i32")):
        f.line(f"store {kind} 0, ptr {f.offset('%budget', at)}, align 8")
    for frame in frames:
        f.line(f"store ptr %budget, ptr {f.offset(frame, AT_FRAME)}, align 8")
    f.budget = "%budget"


def _subtract(f: Function, work: int | str) -> str:
    """Subtract operations from the budget; return what is left."""
    if not f.budget:
        # Functions inside a call read its address from the frame.
        f.budget = "%budget"
        f.entry.append(f"  %budget.at = getelementptr i8, ptr %frame, i64 {AT_FRAME}")
        f.entry.append("  %budget = load ptr, ptr %budget.at, align 8")
    before = f.value(f"load i64, ptr {f.budget}, align 8")
    left = f.sub(before, work)
    f.line(f"store i64 {left}, ptr {f.budget}, align 8")
    return left


def _charge(f: Function, work: int | str, leave: str) -> str:
    """Subtract operations from the budget, and go to ``leave`` if the kernel is to end.

    Return the basic block that goes there.
    """
    declare_safepoints(f)
    left = _subtract(f, work)
    ask, proceed = f.label(), f.label()
    f.fork(f.value(f"icmp slt i64 {left}, 0"), ask, proceed, rare=True)
    f.start(ask)
    function = f.value(f"load ptr, ptr @{SAFEPOINT}, align 8")
    status = f.value(f"call i32 {function}(ptr {f.budget})")
    f.fork(f.value(f"icmp ne i32 {status}, 0"), leave, proceed, rare=True)
    f.start(proceed)
    return ask


@contextmanager
def loop_with_safepoints(
    f: Function,
    start: int | str,
    stop: int | str,
    safepoint: Safepoint | None,
    carried: Sequence[tuple[str, str]] = (),
    step: int = 1,
    done: str = "",
) -> Iterator[Run]:
    """Write a loop as ``f.loop`` does, with safepoints where it has any.

    A body may ``leave`` to the label ``done``, which is behind the loop. A loop with a safepoint
    behind many steps is a loop over runs of steps: that of a run is as it is elsewhere, so that
    safepoints cost nothing there.
    """
    if safepoint is not None and not done:
        done = f.label()
    if safepoint is None or safepoint.steps == 1:
        with f.loop(start, stop, carried, step) as inner:
            loop = Run(inner.counter, inner.carried, inner.carried)
            yield loop
            inner.next = loop.next
            if safepoint is not None:
                _charge(f, safepoint.work, done)
        if done:
            f.jump(done)
        return
    length, types = safepoint.steps * step, [kind for kind, _ in carried]
    work = max(1, safepoint.work // step)
    with f.loop(start, stop, carried, step=length) as runs:
        first = runs.counter
        end = f.minimum(f.add(first, length), stop)
        with f.loop(first, end, list(zip(types, runs.carried)), step) as inner:
            loop = Run(inner.counter, inner.carried, inner.carried, first=first, work=work)
            yield loop
            inner.next = loop.next
        inside = runs.next = list(inner.carried)
        asked = _charge(f, f.mul(f.sub(end, first), work), done)
    ends = [(f.block, list(runs.carried)), (asked, inside)]
    f.jump(done)
    if loop.left:
        ends.append((loop.left, inside))
    loop.carried = [
        f.phi(kind, *((values[k], block) for block, values in ends)) for k, kind in enumerate(types)
    ]


# ---- scratch memory ------------------------------------------------------------------------------


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
        missing, fail, go = f.value("icmp eq ptr %raw, null"), f.label(), f.label()
        f.fork(missing, fail, go, rare=True)
        f.start(fail)
        f.line(f"ret i32 {NO_MEMORY}")
        f.start(go)
        f.line("%raw.int = ptrtoint ptr %raw to i64")
        aligned = f.value(f"and i64 {f.add('%raw.int', ALIGNMENT - 1)}, {-ALIGNMENT}")
        f.line(f"%frame = inttoptr i64 {aligned} to ptr")
    f.line("store i32 0, ptr %frame, align 4")
    if has_safepoints(f):
        others = [f.offset("%frame", k * own) for k in range(1, tiles)]
        open_budget(f, ["%frame", *others])


def close_frame(f: Function, size: int) -> None:
    """Free the frame and return the status."""
    status = f.value("load i32, ptr %frame, align 4")
    if f.budget:
        asked = f.value(f"load i32, ptr {f.offset(f.budget, _STATUS)}, align 8")
        status = f.value(f"or i32 {status}, {asked}")
    if size > STACK:
        f.module.declare("@arc_free", "void", "ptr")
        f.line("call void @arc_free(ptr %raw)")
    f.finish(f"ret i32 {status}")
