"""Regions: nodes with bodies, for what a straight line of scalars should not spell out.

Each region lists the ids it reads (``inputs``), the bodies it runs and the dtypes it returns.
Evaluation lives in the backends and derivatives in ``derivatives/regions.py``, both as tables
keyed by region class. ``Lookup`` (a constant table read at a computed index) is a plain node,
see ``Graph.lookup``; ``Implicit`` is a ``Call`` with a derivative of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from archimedes.graph.program import Graph

__all__ = ["Call", "DerivativeRule", "Host", "Map", "Region", "Scan", "Solve", "Switch", "While"]


#: (graph, ids of inputs, ids of outputs, rows of tangents or adjoints) -> rows
Pass = Callable[[Graph, np.ndarray, np.ndarray, list[list[int | None]]], Any]


class DerivativeRule(Protocol):
    """A derivative that a ``Call`` brings with it instead of differentiating its body.

    ``forward`` gets the graph to emit into, the ids of inputs and outputs, and for each direction
    one tangent id (or None for zero) per input; it returns one list of output tangents a
    direction. ``reverse`` is its transpose. A rule may have only one of them (``None`` there).
    ``pattern`` returns what each output depends on, from the sets of inputs that each input
    stands for; where it is None, every output depends on every input.
    A rule may say that some outputs are ``whole`` (a set of positions): only ``reverse`` knows
    their derivatives, of functions that use them as a whole.
    """

    name: str

    @property
    def forward(self) -> Pass | None: ...

    @property
    def reverse(self) -> Pass | None: ...

    @property
    def pattern(self) -> Callable[[list[int]], list[int]] | None: ...


def _ids(values: Sequence[int] | np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=np.int64).reshape(-1)


@dataclass(frozen=True, eq=False)
class Region:
    """Base of all regions; ``inputs`` may be any sequence of ids, kept as an array.

    ``line`` is the user's line that made it, where that is known; it serves errors only.
    """

    inputs: Any
    line: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", _ids(self.inputs))

    @property
    def kind(self) -> str:
        """Name of the region in text and tables."""
        return type(self).__name__.lower()

    @property
    def bodies(self) -> tuple[Graph, ...]:
        """The graphs it runs."""
        return ()

    @cached_property
    def has_effects(self) -> bool:
        """Whether running it may do more than compute its outputs."""
        return any(body.effects() for body in self.bodies)

    @property
    def out_dtypes(self) -> list[int]:
        """Dtype codes of its outputs."""
        raise NotImplementedError

    def settings(self) -> tuple[Any, ...]:
        """Everything but inputs and bodies that makes two regions different."""
        return ()

    def computed(self) -> tuple[Any, ...]:
        """Those of the settings that make results different."""
        return self.settings()

    def summary(self) -> str:
        """Return the settings as words, for printing."""
        return " ".join(str(s) for s in self.settings())

    def key(self, lasting: bool = False, data: bool = True) -> tuple[Any, ...]:
        """Content of the region, for sharing equal ones.

        ``lasting``: what it computes only; without ``data``: not what is in longer tables.
        """
        if not data:
            digests = [body.form_digest() for body in self.bodies]
        else:
            digests = [body.lasting_digest() if lasting else body.digest() for body in self.bodies]
        settings = self.computed() if lasting else self.settings()
        return (self.kind, self.inputs.tobytes(), tuple(digests), settings)

    def with_inputs(self, inputs: Sequence[int] | np.ndarray) -> Any:
        """Return the same region reading other ids."""
        return replace(self, inputs=_ids(inputs))


@dataclass(frozen=True, eq=False)
class Call(Region):
    """Run a body once: reuse without inlining, optionally with a derivative of its own.

    The last ``closure`` inputs are values the body closes over, of which that derivative knows
    nothing.
    """

    body: Graph
    derivative: DerivativeRule | None = None
    closure: int = 0

    @property
    def bodies(self) -> tuple[Graph, ...]:
        return (self.body,)

    @property
    def out_dtypes(self) -> list[int]:
        return self.body.output_dtypes

    def settings(self) -> tuple[Any, ...]:
        return (None if self.derivative is None else id(self.derivative),)

    def computed(self) -> tuple[Any, ...]:
        return ()

    def summary(self) -> str:
        return "" if self.derivative is None else f"with the derivative of {self.derivative.name}"


@dataclass(frozen=True, eq=False)
class Scan(Region):
    """Run a body a fixed number of times.

    Inputs: ``carry`` values, then ``length * slices`` values (step after step), then shared ones.
    Body: (carry, slice, shared) -> (carry, out). Outputs: the last carry, then all outs, step
    after step. ``reverse`` takes the steps from last to first; positions stay as they are.
    """

    body: Graph
    length: int
    carry: int
    slices: int
    reverse: bool = False

    @property
    def bodies(self) -> tuple[Graph, ...]:
        return (self.body,)

    @property
    def outs(self) -> int:
        """Number of values each step puts out besides the carry."""
        return len(self.body.outputs) - self.carry

    @property
    def out_dtypes(self) -> list[int]:
        dtypes = self.body.output_dtypes
        return dtypes[: self.carry] + dtypes[self.carry :] * self.length

    def settings(self) -> tuple[Any, ...]:
        return (self.length, self.carry, self.slices, self.reverse)

    def summary(self) -> str:
        backwards = " backwards" if self.reverse else ""
        return f"{self.length} steps{backwards}, {self.carry} carried, {self.slices} a step"

    def parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Split the inputs into carry, slices of shape (length, slices) and shared."""
        n, m = self.carry, self.length * self.slices
        stacked = self.inputs[n : n + m].reshape(self.length, self.slices)
        return self.inputs[:n], stacked, self.inputs[n + m :]


@dataclass(frozen=True, eq=False)
class While(Region):
    """Repeat a body while a condition holds, at most ``limit`` times.

    Inputs: ``carry`` values, then shared ones. Condition: (carry, shared) -> bool; body:
    (carry, shared) -> carry. Outputs: the last carry. ``adaptive`` marks the loop of a solver
    that chooses its own steps, which has no place on a target with a clock.
    """

    condition: Graph
    body: Graph
    carry: int
    limit: int
    adaptive: bool = field(default=False, kw_only=True)

    @property
    def bodies(self) -> tuple[Graph, ...]:
        return (self.condition, self.body)

    @property
    def out_dtypes(self) -> list[int]:
        return self.body.output_dtypes

    def settings(self) -> tuple[Any, ...]:
        return (self.carry, self.limit)

    def summary(self) -> str:
        return f"at most {self.limit} steps, {self.carry} carried"


@dataclass(frozen=True, eq=False)
class Switch(Region):
    """Run one of several bodies, chosen by the first input (int64, clamped to the range)."""

    branches: tuple[Graph, ...]

    @property
    def bodies(self) -> tuple[Graph, ...]:
        return self.branches

    @property
    def out_dtypes(self) -> list[int]:
        return self.branches[0].output_dtypes


@dataclass(frozen=True, eq=False)
class Map(Region):
    """Run a body for each of ``length`` instances.

    Inputs: ``length * slices`` values (instance after instance), then shared ones. Body:
    (slice, shared) -> out. Outputs: all outs, instance after instance.
    """

    body: Graph
    length: int
    slices: int

    @property
    def bodies(self) -> tuple[Graph, ...]:
        return (self.body,)

    @property
    def out_dtypes(self) -> list[int]:
        return self.body.output_dtypes * self.length

    def settings(self) -> tuple[Any, ...]:
        return (self.length, self.slices)

    def summary(self) -> str:
        return f"{self.length} instances, {self.slices} each"

    def parts(self) -> tuple[np.ndarray, np.ndarray]:
        """Split the inputs into slices of shape (length, slices) and shared."""
        m = self.length * self.slices
        return self.inputs[:m].reshape(self.length, self.slices), self.inputs[m:]


@dataclass(frozen=True, eq=False)
class Solve(Region):
    """Solve ``A X = B`` by elimination with partial pivoting: n*n values of A, then n*columns of B.

    The order of operations is part of the contract (see the interpreter): every backend gives
    the same bits. A singular matrix gives inf or nan.
    """

    size: int
    columns: int
    dtype: int

    @property
    def out_dtypes(self) -> list[int]:
        return [self.dtype] * (self.size * self.columns)

    def settings(self) -> tuple[Any, ...]:
        return (self.size, self.columns, self.dtype)

    def summary(self) -> str:
        return f"{self.size} x {self.size}, {self.columns} columns"


@dataclass(frozen=True, eq=False)
class Host(Region):
    """Call back into Python with the input values (as one flat list), get a flat list of values.

    ``derivative`` is as in ``Call``. ``label`` names the function in text and errors.
    """

    function: Callable[[list[Any]], list[Any]]
    dtypes: tuple[int, ...]
    label: str
    derivative: DerivativeRule | None = None
    #: Calls are kept apart even when equal: a host function may have effects.
    serial: object = field(default_factory=object)

    has_effects = True

    @property
    def out_dtypes(self) -> list[int]:
        return list(self.dtypes)

    def settings(self) -> tuple[Any, ...]:
        return (id(self.function), id(self.serial))

    def summary(self) -> str:
        return self.label
