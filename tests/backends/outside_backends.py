"""Two backends from outside the package: one on NumPy's arrays, one with a "device" of its own.

Nothing in ``src`` knows of them. Importing this file makes them known.
"""

from __future__ import annotations

import numpy as np

from archimedes.backends.array_kinds import Arrays
from archimedes.backends.interpreter import run
from archimedes.backends.leaves import put_values, values_in
from archimedes.backends.protocol import Backend, Figures, GroupSizes, Kernel
from archimedes.backends.registry import register
from archimedes.graph.dtypes import DTYPES


class ToyKernel(Kernel):
    """Runs the graph instance by instance and keeps a diary."""

    sources = ("toy",)

    def __init__(self, program, diary):
        self.program, self.diary = program, diary

    def call(self, inputs, outputs):
        self.diary.append("call")
        self._compute(inputs, outputs)

    def call_batch(self, inputs, batched, outputs, count, threads=None):
        self.diary.append(f"batch of {count}")
        for k in range(count):
            rows = [x[k] if many else x for x, many in zip(inputs, batched)]
            self._compute(rows, [out[k : k + 1] for out in outputs])

    def _compute(self, inputs, outputs):
        graph = self.program.graph
        results = run(graph, values_in(inputs, graph.input_dtypes))
        put_values(results, graph.output_dtypes, outputs)

    def source(self, kind):
        return f"toy {len(self.program.graph)}"

    def figures(self):
        return Figures(operations=len(self.program.graph), notes=("2 fingers",))


class Toy(Backend):
    name = "toy"
    sizes = GroupSizes(group=3, keeping=2, shares=1, least=1)

    def __init__(self):
        self.diary = []

    def build(self, program):
        self.diary.append("build")
        return ToyKernel(program, self.diary)


# ---- a device ---------------------------------------------------------------------------------


class FarArray:
    """An array that lies elsewhere: NumPy cannot look into it."""

    def __init__(self, held):
        self.held = np.array(held)
        self.shape, self.dtype, self.ndim = self.held.shape, self.held.dtype, self.held.ndim

    def __array__(self, *args, **kwargs):
        raise TypeError("this array lies elsewhere")

    def __getitem__(self, k):
        return FarArray(self.held[k])

    def get(self):
        return self.held.copy()


class FarArrays(Arrays):
    kind = "far"
    remedy = "move them with FarArray(x) or x.get()"

    def owns(self, value):
        return isinstance(value, FarArray)

    def describe(self, array):
        return array.shape, array.dtype

    def take(self, value, code, shape):
        held = value.held if isinstance(value, FarArray) else value
        return FarArray(np.ascontiguousarray(held, DTYPES[code]).reshape(shape))

    def empty(self, code, shape):
        return FarArray(np.empty(shape, DTYPES[code]))

    def to_host(self, array):
        return array.get()

    def move_axis(self, array, source, destination):
        return FarArray(np.moveaxis(array.held, source, destination))

    def copy_into(self, value, place):
        place.held[...] = value.held if isinstance(value, FarArray) else value

    def is_plain(self, array):
        return array.held.flags.c_contiguous

    def may_overlap(self, a, b):
        return np.may_share_memory(a.held, b.held)


class FarKernel(ToyKernel):
    def call(self, inputs, outputs):
        super().call([x.held for x in inputs], [x.held for x in outputs])

    def call_batch(self, inputs, batched, outputs, count, threads=None):
        near = [[x.held for x in arrays] for arrays in (inputs, outputs)]
        super().call_batch(near[0], batched, near[1], count, threads)


class Far(Toy):
    name = "far"
    arrays = FarArrays()

    def build(self, program):
        self.diary.append("build")
        return FarKernel(program, self.diary)


TOY, FAR = register(Toy()), register(Far())
