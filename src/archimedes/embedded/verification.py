"""Does the C code compute what Python computes? Compile and load it here, compare bit for bit."""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from archimedes.backends import interpreter
from archimedes.backends.c import FLAGS
from archimedes.backends.protocol import ArrayType
from archimedes.embedded.c_files import write_sources
from archimedes.embedded.c_model import Model
from archimedes.embedded.c_structs import Root, Scalars, Struct
from archimedes.errors import CodegenError
from archimedes.graph.dtypes import B8, I64
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import has_blocks
from archimedes.system.c_library import library_file, unload_library
from archimedes.system.programs import find_program, run_program


def find_compiler() -> str:
    """Return the host's C compiler: ``$CC``, cc, gcc or clang; raise where there is none."""
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        if name and find_program(name):
            return name
    raise CodegenError(
        "codegen: verify=True compiles the code on this machine, which has no C compiler (cc, gcc "
        "or clang): install one, name it in the environment variable CC, or leave verify=False"
    )


def struct_dtype(struct: Struct, types: Scalars) -> np.dtype:
    """Return the dtype with the memory layout of the C struct."""
    members: list[Any] = [
        (f.name, struct_dtype(f.struct, types))
        if f.struct is not None
        else (f.name, types.dtype(f.shape.code), f.shape.shape)
        for f in struct.fields
    ]
    return np.dtype(members or [("unused", np.uint8)], align=True)


def _get(data: Any, name: str) -> Any:
    return data[name]


class Block:
    """A C struct in memory with a NumPy view of each of its leaves."""

    def __init__(self, root: Root, types: Scalars) -> None:
        self.data: Any = np.zeros(1, struct_dtype(root.struct, types))
        #: Views in the order of the root's leaves.
        self.views = [
            reduce(_get, member.access.split("."), self.data).reshape(member.leaf.shape)
            for member in root.members
        ]
        self._paths = [member.path for member in root.members]

    def __getitem__(self, path: str) -> np.ndarray:
        """Return the view of a leaf by its name in Python, such as ``x.pos``."""
        if path not in self._paths:
            raise KeyError(f"{path!r} is not one of {self._paths}")
        return self.views[self._paths.index(path)]


def _remove(folder: Path, loaded: list[ctypes.CDLL]) -> None:
    """Remove the folder of a library that nobody uses any more."""
    for library in loaded:
        unload_library(library)
    shutil.rmtree(folder, ignore_errors=True)


class HostLibrary:
    """The functions of a project, and structs ``inputs`` and ``outputs`` that they work on.

    The code is compiled as C99 with the flags of the generated build files; ``flags`` come after.
    ``inputs["x.pos"]`` is a NumPy view of a member: write to it, call ``step()``, read
    ``outputs``.
    """

    def __init__(self, model: Model, flags: Sequence[str] = ()) -> None:
        compiler = find_compiler()
        self.model = model
        folder = Path(tempfile.mkdtemp(prefix="archimedes-"))
        loaded: list[ctypes.CDLL] = []
        weakref.finalize(self, _remove, folder, loaded)
        write_sources(model, folder)
        library = folder / library_file(model.name)
        command = [compiler, "-std=c99", "-O1", *FLAGS, "-fPIC", "-shared", *flags]
        done = run_program([*command, "-o", str(library), str(folder / f"{model.name}.c")])
        if done.returncode:
            raise CodegenError(
                f"codegen: {compiler} does not compile {model.name}.c:\n{done.stderr.strip()}"
            )
        self._library = ctypes.CDLL(str(library))
        loaded.append(self._library)
        self.inputs = Block(model.inputs, model.types)
        self.outputs = Block(model.outputs, model.types)
        # Aligned for any member, and never of length zero.
        self._work = np.zeros(model.source.workspace_bytes // 8 + 1)

    def init(self) -> None:
        """Call ``<name>_init``."""
        self._call("init", self._work)

    def step(self) -> None:
        """Call ``<name>_step``."""
        self._call("step", self._work)

    def carry(self) -> None:
        """Call ``<name>_carry``."""
        self._call("carry")

    def _call(self, what: str, *more: np.ndarray) -> None:
        function = getattr(self._library, f"{self.model.name}_{what}")
        function.restype = None
        blocks = (self.inputs.data, self.outputs.data, *more)
        function(*(ctypes.c_void_p(block.ctypes.data) for block in blocks))


# ---- comparison -------------------------------------------------------------------------


@dataclass(frozen=True)
class Verification:
    """How many input sets gave the same bits in C and in Python, and how many outputs each has."""

    samples: int
    outputs: int

    def __str__(self) -> str:
        return f"{self.samples} sets of inputs, {self.outputs} numbers each: same bits as Python"


#: Values where arithmetic has its special cases.
_NASTY = (0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 1e-300, 1e300, 5e-324, 1e-40, 2.0**53)


def sample_leaf(
    example: Any, leaf: ArrayType, dtype: np.dtype, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Return ``count`` random values of one leaf, (count, *shape): the example first, then values
    near it, then of all sizes, then special ones.
    """
    base = np.broadcast_to(np.asarray(example), (count, *leaf.shape))
    if leaf.code == B8:
        values = rng.integers(0, 2, base.shape).astype(bool)
    elif leaf.code == I64:
        limits = np.iinfo(dtype)
        small = base + rng.integers(-3, 4, base.shape)
        wide = rng.integers(limits.min, limits.max, base.shape, endpoint=True)
        values = np.where(rng.random(base.shape) < 0.1, wide, small)
    else:
        with np.errstate(all="ignore"):
            near = base + rng.normal(size=base.shape) * np.maximum(1.0, np.abs(base))
        sizes = 10.0 ** rng.uniform(-12.0, 12.0, base.shape) * rng.choice([-1.0, 1.0], base.shape)
        special = rng.choice(_NASTY, base.shape)
        chance = rng.random(base.shape)
        kind = np.arange(count).reshape(count, *[1] * len(leaf.shape)) % 4
        values = np.where((kind == 2) & (chance < 0.5), sizes, near)
        values = np.where((kind == 3) & (chance < 0.2), special, values)
    values = np.array(values)
    values[:1] = base[:1]
    with np.errstate(over="ignore"):
        return values.astype(dtype)


def same_bits(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return, element by element, whether values are the same bits; any nan equals any nan.

    >>> same_bits(np.array([0.0, np.nan]), np.array([-0.0, np.nan])).tolist()
    [False, True]
    """
    if a.dtype.kind != "f":
        return a == b
    bits = np.dtype(f"i{a.dtype.itemsize}")
    return (a.view(bits) == b.view(bits)) | (np.isnan(a) & np.isnan(b))


def verify_model(model: Model, samples: int = 48, seed: int = 0) -> Verification:
    """Compile on this machine, run on random inputs, compare with the interpreter's bits.

    Raises CodegenError at the first difference, with the inputs that show it.
    """
    library = HostLibrary(model)
    rng = np.random.default_rng(seed)
    library.init()
    _check_defaults(library)
    inputs = {}
    for member in model.inputs.members:
        example, dtype = model.values[member.number], model.types.dtype(member.leaf.code)
        inputs[member.number] = sample_leaf(example, member.leaf, dtype, samples, rng)
    expected = _interpret(model, inputs, samples)
    for k in range(samples):
        for view, member in zip(library.inputs.views, model.inputs.members):
            view[...] = inputs[member.number][k]
        library.step()
        for view, member in zip(library.outputs.views, model.outputs.members):
            wanted = expected[member.number][k]
            if not same_bits(view, wanted).all():
                values = [f"{m.path}={inputs[m.number][k].tolist()}" for m in model.inputs.members]
                raise CodegenError(
                    f"codegen: {member.path} is {view.tolist()} in C but {wanted.tolist()} in "
                    f"Python, for {', '.join(values)}. Check that the compiler's flags leave "
                    "floating-point arithmetic alone (no -ffast-math, contraction off)."
                )
    return Verification(samples, sum(member.leaf.size for member in model.outputs.members))


def _check_defaults(library: HostLibrary) -> None:
    model = library.model
    for view, member in zip(library.inputs.views, model.inputs.members):
        wanted = np.asarray(model.values[member.number]).astype(view.dtype).reshape(view.shape)
        if not same_bits(view, wanted).all():
            raise CodegenError(
                f"codegen: after {model.name}_init, {member.path} is {view.tolist()} instead of "
                f"{wanted.tolist()}: please report this"
            )


def _interpret(model: Model, inputs: dict[int, np.ndarray], count: int) -> dict[int, np.ndarray]:
    """Evaluate the graph on all samples; returns the output leaves by number."""
    columns: list[Any] = []
    for number, leaf in enumerate(model.leaves):
        stored = inputs.get(number)
        if stored is None:
            value = np.asarray(model.values[number]).astype(model.types.dtype(leaf.code))
            columns.extend(value.astype(model.graph_dtype(leaf.code)).ravel())
        else:
            flat = stored.astype(model.graph_dtype(leaf.code)).reshape(count, -1)
            columns.extend(np.ascontiguousarray(column) for column in flat.T)
    results = _results(model.graph, columns, count)
    outputs, numbers = {}, iter(results)
    for number, leaf in enumerate(model.out_leaves):
        block = np.empty((count, leaf.size), model.graph_dtype(leaf.code))
        for k in range(leaf.size):
            block[:, k] = next(numbers)
        outputs[number] = block.astype(model.types.dtype(leaf.code)).reshape(count, *leaf.shape)
    return outputs


def _results(graph: Graph, columns: list[Any], count: int) -> list[Any]:
    """Return each output on all samples: all at once, or one by one if there are blocks."""
    if not has_blocks(graph):
        return interpreter.run(graph, columns)
    runs = ([x[k] if np.ndim(x) else x for x in columns] for k in range(count))
    rows = [interpreter.run(graph, values) for values in runs]
    return [np.array(column) for column in zip(*rows)]
