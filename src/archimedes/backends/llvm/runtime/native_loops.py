"""Native loops that call a kernel many times: over runs of sorted items, and step after step."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.backends.llvm.lowering.assembler import Function, Module
from archimedes.backends.llvm.lowering.memory import ALIGNMENT, Spelling, round_up
from archimedes.backends.llvm.lowering.prologue import add_guarded
from archimedes.backends.llvm.runtime.machine import NativeCode, Target, host_target
from archimedes.backends.llvm.runtime.pointers import check_pointers, data_pointer

if TYPE_CHECKING:
    from archimedes.backends.llvm.runtime.kernel import Kernel


RUNS = "arc_runs"
#: Parameters of the native function: pointers and numbers, in this order.
POINTERS = "kernel shared offsets rows keys items results places done"
NUMBERS = "sequences steps row_bytes total result_bytes inputs room lanes"

#: Bytes of a float64.
ITEM = 8
#: Of rows, items, results, instances and done; and of those that change from call to call.
_DTYPES = (*[np.dtype(np.float64)] * 3, *[np.dtype(np.int64)] * 2)
_MOVING = (_DTYPES[0], *_DTYPES[3:])


def _further(f: Function, base: str, index: str, size: str) -> str:
    """Return the address of item ``index`` of an array of items of a size in bytes."""
    offset = f.mul(index, size)
    return f.offset(base, offset)


def _tables(f: Function) -> None:
    """Make the tables of pointers; what a run's instances share lies behind row and items."""
    f.line("%in = alloca ptr, i64 %inputs, align 8")
    f.line("%out = alloca ptr, align 8")
    f.line(f"%values = alloca i8, i64 %room, align {ALIGNMENT}")
    f.line("%following = getelementptr i8, ptr %in, i64 16")
    f.line("%most = sub i64 %lanes, 1")
    f.line("%whole = sub i64 0, %lanes")
    with f.loop(2, "%inputs") as loop:
        number = f.sub(loop.counter, 2)
        offset = f.load_item("i64", "%offsets", number)
        at = f.offset("%values", offset)
        f.line(f"store ptr {at}, ptr {_further(f, '%in', loop.counter, '8')}, align 8")


def _search(f: Function, row: str, done: str) -> str:
    """Return how many items lie up to the key of a row, ``done`` of which are known to."""
    key = f.value(f"load double, ptr {_further(f, '%keys', row, '%row_bytes')}, align 8")
    limit, end = f.value(f"fmul double {key}, %sign"), f.label()
    with f.loop(done, "%total") as search:
        item = f.load_item("double", "%items", search.counter)
        signed, more = f.value(f"fmul double {item}, %sign"), f.label()
        f.fork(f.value(f"fcmp ole double {signed}, {limit}"), more, end)
        f.start(more)
    f.jump(end)
    return search.counter


def _compute(f: Function, row: str, results: str, done: str, stop: str) -> str:
    """Call the kernel for the items from done to stop, all of one row; return its status."""
    second = f.value("getelementptr i8, ptr %in, i64 8")
    f.line(f"store ptr {_further(f, '%rows', row, '%row_bytes')}, ptr %in, align 8")
    f.line(f"store ptr {_further(f, '%items', done, '8')}, ptr {second}, align 8")
    f.line(f"store ptr {_further(f, results, done, '%result_bytes')}, ptr %out, align 8")
    before, share, run = f.block, f.label(), f.label()
    f.fork(f.value("icmp eq ptr %shared, null"), run, share)
    f.start(share)
    shared = f.value("call i32 %shared(ptr %in, ptr %following)")
    f.jump(run)
    failed = f.phi("i32", ("0", before), (shared, share))
    # Whole tiles are quicker: what is behind the run is overwritten by the next one.
    more = f.sub(stop, done)
    grown = f.add(more, "%most")
    tiles = f.value(f"and i64 {grown}, %whole")
    left = f.sub("%total", done)
    fits = f.value(f"icmp sle i64 {tiles}, {left}")
    count = f.value(f"select i1 {fits}, i64 {tiles}, i64 {more}")
    status = f.value(f"call i32 %kernel(ptr %in, ptr %out, i64 0, i64 {count})")
    return f.value(f"or i32 {failed}, {status}")


def _rows(f: Function, sequence: str, status: str) -> str:
    """Go along the rows of a sequence; return the status."""
    location = f.load_item("i64", "%places", sequence)
    results = _further(f, "%results", f.mul(location, "%total"), "%result_bytes")
    first = f.mul(sequence, "%steps")
    state = [("i64", f.load_item("i64", "%done", sequence)), ("i32", status)]
    with f.loop(0, "%steps", state) as step:
        done, status = step.carried
        row = f.add(first, step.counter)
        stop = _search(f, row, done)
        before, some, after = f.block, f.label(), f.label()
        f.fork(f.value(f"icmp sgt i64 {stop}, {done}"), some, after)
        f.start(some)
        both = f.value(f"or i32 {_compute(f, row, results, done, stop)}, {status}")
        last = f.block
        f.jump(after)
        step.next = [stop, f.phi("i32", (status, before), (both, last))]
    done, status = step.carried
    f.line(f"store i64 {done}, ptr {_further(f, '%done', sequence, '8')}, align 8")
    return status


def runs_text(target: Target) -> str:
    """Write the loop over sequences and rows, for all kernels."""
    module = Module(Spelling(1), target)
    parameters = [f"ptr %{x}" for x in POINTERS.split()] + [f"i64 %{x}" for x in NUMBERS.split()]
    signature = f"{', '.join(parameters)}, double %sign"
    f = Function(module, f"define internal i32 @run({signature}) noinline")
    _tables(f)
    with f.loop(0, "%sequences", [("i32", "0")]) as sequence:
        sequence.next = [_rows(f, sequence.counter, sequence.carried[0])]
    f.finish(f"ret i32 {sequence.carried[0]}")
    add_guarded(module, RUNS, signature, "run")
    return module.text()


@lru_cache(maxsize=1)
def _native_runs() -> Any:
    target = host_target(None)
    code = NativeCode(target.compile(runs_text(target)), RUNS)
    numbers = [ctypes.c_int64] * len(NUMBERS.split())
    pointers = [ctypes.c_void_p] * len(POINTERS.split())
    return code.function(*pointers, *numbers, ctypes.c_double)


class Runs:
    """``kernel(row, item) -> result`` over sequences: see ``function.batching.sorted_runs``."""

    def __init__(self, kernel: Kernel) -> None:
        batched = (False, True)
        address, shared, sizes = kernel.batch_addresses(batched)
        self.kernel = kernel  # holds the code
        self.width, self.size = kernel.inputs[0].size, kernel.outputs[0].size
        self.offsets = np.cumsum([0, *map(round_up, sizes)], dtype=np.int64)
        #: The first arguments of the native function, and its last but one, of all calls.
        self.first = (address, shared or None, data_pointer(self.offsets))
        room, lanes = int(self.offsets[-1]) + 1, kernel.lanes_of(batched)
        self.last = (self.size * ITEM, 1 + len(self.offsets), room, lanes)

    def along(
        self, key: int, rows: np.ndarray, done: np.ndarray
    ) -> Callable[[int, np.ndarray, float, np.ndarray], None]:
        """Return ``f(steps, items, sign, results)`` for one sequence, in memory that stays.

        Its rows are the first ``steps`` of ``rows`` (s, width); ``done`` (1,) is moved on, and
        results (m, n) of items (m,) are filled in.
        """
        instances, size, row_bytes = np.zeros(1, np.int64), self.size, self.width * ITEM
        arrays = (rows, instances, done)
        start, *where = check_pointers("run", arrays, _MOVING, (rows.size, 1, 1))
        first, last = (*self.first, start, start + key * ITEM), self.last
        function, kinds = _native_runs(), _DTYPES[1:3]

        def run(
            steps: int, items: np.ndarray, sign: float, results: np.ndarray, _: object = arrays
        ) -> None:
            total = len(items)
            to = check_pointers("run", (items, results), kinds, (total, total * size))
            status = function(*first, *to, *where, 1, steps, row_bytes, total, *last, sign)
            if status:
                self.kernel.check_status(status)

        return run

    def bound(
        self, key: int, items: np.ndarray, sign: float, results: np.ndarray
    ) -> Callable[[np.ndarray, np.ndarray, np.ndarray], None]:
        """Return ``f(rows, instances, done)``: the results of items that have a row.

        Each sequence of rows belongs to one of the instances of ``results``. What stays the same
        from call to call is checked here, once.
        """
        width, (instances, total, _) = self.width, results.shape
        sizes = (total, instances * total * self.size)
        to = check_pointers("run", (items, results), _DTYPES[1:3], sizes)
        function, first, shift = _native_runs(), self.first, key * ITEM
        last = (width * ITEM, total, *self.last, sign)

        def run(rows: np.ndarray, instances: np.ndarray, done: np.ndarray) -> None:
            sequences, steps, _ = rows.shape
            sizes = (sequences * steps * width, sequences, sequences)
            start, *where = check_pointers("run", (rows, instances, done), _MOVING, sizes)
            status = function(*first, start, start + shift, *to, *where, sequences, steps, *last)
            if status:
                self.kernel.check_status(status)

        return run


REPEAT = "arc_repeat"
PARAMETERS = "ptr %kernel, ptr %in, ptr %out, ptr %counts, i64 %carry, i64 %most, i64 %row_bytes"


def _flag(f: Function, behind: int) -> str:
    """Load the flag whose address is that many entries behind those of the state."""
    flag = f.load_item("ptr", "%out", f.add("%carry", behind))
    return f.value(f"load i8, ptr {flag}, align 1")


def _swap(f: Function) -> None:
    """Swap the buffers of the state: what was written is read next."""
    with f.loop(0, "%carry") as loop:
        a, b = f.item("ptr", "%in", loop.counter), f.item("ptr", "%out", loop.counter)
        x, y = (f.value(f"load ptr, ptr {at}, align 8") for at in (a, b))
        f.line(f"store ptr {y}, ptr {a}, align 8")
        f.line(f"store ptr {x}, ptr {b}, align 8")


def _write_repeat(f: Function) -> None:
    """Write the loop; it ends where the kernel fails, does not go on, or has filled all rows."""
    head, fine, more, fail = (f.label() for _ in range(4))
    before = f.block
    f.jump(head)
    at = len(f.lines)
    calls, filled = f.value(""), f.value("")
    status = f.value("call i32 %kernel(ptr %in, ptr %out)")
    f.fork(f.value(f"icmp eq i32 {status}, 0"), fine, fail)
    f.start(fine)
    _swap(f)
    full_row = f.value(f"zext i8 {_flag(f, 1)} to i64")
    row = f.item("ptr", "%out", "%carry")
    address = f.value(f"load ptr, ptr {row}, align 8")
    following = f.offset(address, f.mul(full_row, "%row_bytes"))
    f.line(f"store ptr {following}, ptr {row}, align 8")
    called, full = f.add(calls, 1), f.add(filled, full_row)
    going = f.value(f"icmp ne i8 {_flag(f, 2)}, 0")
    room = f.value(f"icmp slt i64 {full}, %most")
    last = f.block
    f.fork(f.value(f"and i1 {going}, {room}"), head, more)
    for k, (name, new) in enumerate(((calls, called), (filled, full))):
        f.lines[at + k] = f"  {name} = phi i64 [0, %{before}], [{new}, %{last}]"
    f.start(more)
    second = f.item("i64", "%counts", 1)
    f.line(f"store i64 {called}, ptr %counts, align 8")
    f.line(f"store i64 {full}, ptr {second}, align 8")
    f.line("ret i32 0")
    f.start(fail)
    f.finish(f"ret i32 {status}")


def repeat_text(target: Target) -> str:
    """Write the loop, for all kernels."""
    module = Module(Spelling(1), target)
    f = Function(module, f"define internal i32 @run({PARAMETERS}) noinline")
    _write_repeat(f)
    add_guarded(module, REPEAT, PARAMETERS, "run")
    return module.text()


@lru_cache(maxsize=1)
def _native_repeat() -> Any:
    target = host_target(None)
    code = NativeCode(target.compile(repeat_text(target)), REPEAT)
    kinds = [ctypes.c_void_p] * 4 + [ctypes.c_int64] * 3
    return code.function(*kinds)


def repeating(
    kernel: Kernel, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], carry: int
) -> Callable[[np.ndarray], tuple[int, int]]:
    """Return ``f(rows)``: how often the kernel was called, and how many rows it has filled."""
    function = _native_repeat()
    read = np.array([*map(data_pointer, inputs)], np.uint64)
    state, flags = ([*map(data_pointer, some)] for some in (outputs[:carry], outputs[carry:]))
    written = np.array([*state, 0, *flags], np.uint64)
    # Those that native code changes.
    reads, writes, counts = read.copy(), written.copy(), np.zeros(2, np.int64)
    tables = [*map(data_pointer, (reads, writes, counts))]
    # Held: the memory that pointers lead to.
    held = (kernel, inputs, outputs)

    def run(rows: np.ndarray, _: object = held) -> tuple[int, int]:
        reads[:], writes[:] = read, written
        writes[carry] = data_pointer(rows)
        status = function(kernel.address, *tables, carry, len(rows), rows.strides[0])
        if status:
            kernel.check_status(status)
        calls, filled = counts.tolist()
        return calls, filled

    return run
