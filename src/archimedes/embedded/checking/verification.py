"""Does the C code compute what Python computes? Compile it here and compare bit for bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes.backends import interpreter
from archimedes.embedded.c_types.struct_layout import LeafShape
from archimedes.embedded.checking.host_library import HostLibrary
from archimedes.embedded.model import Model
from archimedes.errors import CodegenError
from archimedes.graph.dtypes import B8, I64
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import has_blocks

__all__ = ["Verification", "same_bits", "sample_leaf", "verify_model"]


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
    example: Any, leaf: LeafShape, dtype: np.dtype, count: int, rng: np.random.Generator
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
    """Tell, element by element, whether values are the same bits; any nan equals any nan.

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
    given = {}
    for place in model.inputs.places:
        dtype = model.types.dtype(place.leaf.code)
        given[place.number] = sample_leaf(
            model.values[place.number], place.leaf, dtype, samples, rng
        )
    expected = _interpret(model, given, samples)
    for k in range(samples):
        for view, place in zip(library.inputs.views, model.inputs.places):
            view[...] = given[place.number][k]
        library.step()
        for view, place in zip(library.outputs.views, model.outputs.places):
            wanted = expected[place.number][k]
            if not same_bits(view, wanted).all():
                raise _difference(model, given, k, place.path, view, wanted)
    return Verification(samples, sum(place.leaf.size for place in model.outputs.places))


def _check_defaults(library: HostLibrary) -> None:
    model = library.model
    for view, place in zip(library.inputs.views, model.inputs.places):
        wanted = np.asarray(model.values[place.number]).astype(view.dtype).reshape(view.shape)
        if not same_bits(view, wanted).all():
            raise CodegenError(
                f"codegen: after {model.name}_init, {place.path} is {view.tolist()} instead of "
                f"{wanted.tolist()}: please report this"
            )


def _interpret(model: Model, given: dict[int, np.ndarray], count: int) -> dict[int, np.ndarray]:
    """Evaluate the graph on all samples; returns the output leaves by number."""
    columns: list[Any] = []
    for number, leaf in enumerate(model.leaves):
        stored = given.get(number)
        if stored is None:
            value = np.asarray(model.values[number]).astype(model.types.dtype(leaf.code))
            columns.extend(value.astype(model.graph_dtype(leaf.code)).ravel())
        else:
            flat = stored.astype(model.graph_dtype(leaf.code)).reshape(count, -1)
            columns.extend(np.ascontiguousarray(column) for column in flat.T)
    results = _results(model.graph, columns, count)
    found, at = {}, 0
    for number, leaf in enumerate(model.out_leaves):
        block = np.empty((count, leaf.size), model.graph_dtype(leaf.code))
        for k in range(leaf.size):
            block[:, k] = results[at + k]
        at += leaf.size
        found[number] = block.astype(model.types.dtype(leaf.code)).reshape(count, *leaf.shape)
    return found


def _results(graph: Graph, columns: list[Any], count: int) -> list[Any]:
    """Return each output on all samples: at once, or one after the other where there are blocks."""
    if not has_blocks(graph):
        return interpreter.run(graph, columns)
    rows = [
        interpreter.run(graph, [x[k] if np.ndim(x) else x for x in columns]) for k in range(count)
    ]
    return [np.array(column) for column in zip(*rows)]


def _difference(
    model: Model, given: dict[int, np.ndarray], k: int, path: str, got: Any, wanted: Any
) -> CodegenError:
    inputs = ", ".join(
        f"{place.path}={given[place.number][k].tolist()}" for place in model.inputs.places
    )
    return CodegenError(
        f"codegen: {path} is {np.asarray(got).tolist()} in C but {np.asarray(wanted).tolist()} in "
        f"Python, for {inputs}. Check that the compiler's flags leave floating-point arithmetic "
        "alone (no -ffast-math, contraction off)."
    )
