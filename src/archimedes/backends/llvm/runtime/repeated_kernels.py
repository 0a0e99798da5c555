"""Native loops that call a kernel many times: over runs of sorted items, and step after step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.backends.llvm.lowering.memory import round_up
from archimedes.backends.llvm.runtime.array_functions import ArrayFunction, Writer, array_functions
from archimedes.backends.llvm.runtime.pointers import check_pointers, data_pointer

if TYPE_CHECKING:
    from archimedes.backends.llvm.runtime.kernel import NativeKernel


#: Bytes of a float64.
ITEM = 8
#: Of rows, items, results, instances and done; and of those that change from call to call.
_DTYPES = (*[np.dtype(np.float64)] * 3, *[np.dtype(np.int64)] * 2)
_MOVING = (_DTYPES[0], *_DTYPES[3:])
#: More calls than a loop ever makes.
_FOREVER = 1 << 62


def _runs(w: Writer, *parameters: Any) -> None:
    """Go along the rows of all sequences, and call the kernel for the items of each row."""
    kernel, shared, offsets, rows, keys, items, results, instances, done, *numbers = parameters
    sequences, steps, row_bytes, total, result_bytes, inputs, room, lanes, sign = numbers
    tables, out, values = w.room("ptr", inputs), w.room("ptr", 1), w.room("i8", room)
    # What the instances of a run share lies behind its row and its items.
    with w.loop(2, inputs) as k:
        tables[k] = values.from_(offsets[k - 2])
    with w.loop(0, sequences) as s, w.loop(0, steps) as step:
        row = (s * steps + step) * row_bytes
        limit = w.array_at(w.array_at(keys).from_(row), "double")[0] * sign
        begin = done[s]
        stop = w.first_failing(begin, total, lambda k: items[k] * sign <= limit)
        with w.when(begin < stop):
            tables[0], tables[1] = w.array_at(rows).from_(row), items.from_(begin)
            out[0] = w.array_at(results).from_((instances[s] * total + begin) * result_bytes)
            with w.when(shared.equals(None), unless=True):
                w.check(shared, tables, tables.from_(2))
            # Whole tiles are quicker: what is behind the run is overwritten by the next one.
            more = stop - begin
            tiles = (more + lanes - 1) & -lanes
            count = w.select(tiles > total - begin, more, tiles)
            w.check(kernel, tables, out, 0, count)
        done[s] = stop


def _repeat(w: Writer, *parameters: Any) -> None:
    """Call the kernel until it fails, is finished, or has filled all rows."""
    kernel, reads, writes, counts, carry, most, row_bytes = parameters
    counts[1] = 0
    with w.loop(0, _FOREVER) as calls:
        w.check(kernel, reads, writes)
        # What was written of the state is read next.
        with w.loop(0, carry) as k:
            reads[k], writes[k] = writes[k], reads[k]
        full = w.byte(writes[carry + 1])
        writes[carry] = w.array_at(writes[carry]).from_(full * row_bytes)
        counts[0], counts[1] = calls + 1, counts[1] + full
        w.leave_unless(w.byte(writes[carry + 2]) > 0, 0)
        w.leave_unless(counts[1] < most, 0)


#: Pointers of the kernel and of what instances share, then arrays, then numbers.
FUNCTIONS = {"runs": ("ppIFFFFII" + "i" * 8 + "f", _runs), "repeat": ("pPPIiii", _repeat)}


@lru_cache(maxsize=1)
def _native() -> dict[str, ArrayFunction]:
    return array_functions(FUNCTIONS, Path(__file__).parent)


class Runs:
    """``kernel(row, item) -> result`` over sequences: see ``function.batching.sorted_runs``."""

    def __init__(self, kernel: NativeKernel) -> None:
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
        function, kinds = _native()["runs"].native, _DTYPES[1:3]

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
        function, first, shift = _native()["runs"].native, self.first, key * ITEM
        last = (width * ITEM, total, *self.last, sign)

        def run(rows: np.ndarray, instances: np.ndarray, done: np.ndarray) -> None:
            sequences, steps, _ = rows.shape
            sizes = (sequences * steps * width, sequences, sequences)
            start, *where = check_pointers("run", (rows, instances, done), _MOVING, sizes)
            status = function(*first, start, start + shift, *to, *where, sequences, steps, *last)
            if status:
                self.kernel.check_status(status)

        return run


def repeating(
    kernel: NativeKernel, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], carry: int
) -> Callable[[np.ndarray], tuple[int, int]]:
    """Return ``f(rows)``: how often the kernel was called, and how many rows it has filled."""
    function = _native()["repeat"].native
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
