"""A graph of an ONNX file as a function: its nodes are called one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.errors import ArchimedesError
from archimedes.interchange.onnx.element_types import output_types
from archimedes.interchange.onnx.ops.lookup import operator
from archimedes.interchange.onnx.reading import STANDARD
from archimedes.interchange.onnx.tensors import (
    INTEGERS,
    OnnxError,
    UnknownValueError,
    check_elements,
    dtype_of,
    integer_range,
    tensor,
    type_name,
)
from archimedes.typing import Array

#: Elements that the arrays of a network that are needed at one time may have, all together.
MAX_LIVE = 2**28


class Node:
    """A node of a graph: its operator, attributes, and the ONNX types of its values.

    Parameters
    ----------
    proto : onnx.NodeProto
        The node.
    schema : onnx.defs.OpSchema
        What its operator takes and gives, in the version of the file. ``version`` is the one in
        which it last changed.
    types : mapping
        Names of ONNX types by names of values.
    graphs : mapping
        Its subgraphs by names of attributes.
    """

    def __init__(
        self, proto: Any, schema: Any, types: Mapping[str, str], graphs: Mapping[str, Graph]
    ) -> None:
        self.op, self.name = str(proto.op_type), str(proto.name)
        self.version = int(schema.since_version)
        self.inputs, self.outputs = tuple(proto.input), tuple(proto.output)
        self.input_types = tuple(types.get(name, "") for name in self.inputs)
        self.graphs = graphs
        self.label = f"node {self.name!r} ({self.op})" if self.name else f"a node {self.op}"
        inner = {name: graph.output_types for name, graph in graphs.items()}
        self.output_types = tuple(output_types(proto, self.label, types, schema, inner))
        self.attributes = {a.name: self._attribute(a) for a in proto.attribute}

    def _attribute(self, proto: Any) -> Any:
        from onnx import AttributeProto, helper

        what = f"{self.label}: attribute {proto.name!r}"
        if proto.ref_attr_name:
            raise OnnxError(f"{what} refers to the attribute of a function")
        if proto.type == AttributeProto.TENSOR:
            return tensor(proto.t, what)
        if proto.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
            return None
        value = helper.get_attribute_value(proto)
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if isinstance(value, (list, tuple)) or not isinstance(value, (int, float)):
            items = list(value)
            return [v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in items]
        return value

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of an attribute."""
        return self.attributes.get(name, default)

    def has_input(self, k: int) -> bool:
        """Return whether input ``k`` is given."""
        return k < len(self.inputs) and bool(self.inputs[k])

    def error(self, text: str) -> OnnxError:
        """Return an error that names the node."""
        return OnnxError(f"{self.label}: {text}")

    def concrete(self, value: Any, what: str) -> Array:
        """Return a value that decides on shapes, and must therefore be known."""
        if is_traced(value):
            raise UnknownValueError(
                f"{self.label}: {what} depends on values of the network's inputs, so shapes would: "
                "give the inputs that decide on shapes fixed values, "
                "from_onnx(path, constants={...})"
            )
        return np.asarray(value)

    def integers(self, value: Any, what: str) -> list[int]:
        """Return the integers of a value that decides on shapes."""
        return [int(n) for n in self.concrete(value, what).reshape(-1)]

    def axis(self, axis: int, rank: int) -> int:
        """Return an axis counted from the front, if there is one."""
        if not -rank <= axis < max(rank, 1):
            raise self.error(f"axis {axis} of an array of {rank} dimensions")
        return axis % rank if rank else 0

    def limit(self, shape: Any) -> tuple[int, ...]:
        """Return a shape, if arrays may be as large."""
        sizes = tuple(int(n) for n in shape)
        if any(n < 0 for n in sizes):
            raise self.error(f"the result would have the shape {sizes}, with a negative length")
        check_elements(sizes, f"{self.label}: the result")
        return sizes

    def limit_broadcast(self, *values: Any) -> None:
        """See that values may be combined element by element."""
        try:
            self.limit(np.broadcast_shapes(*(np.shape(v) for v in values)))
        except OnnxError:
            raise
        except ValueError:
            shapes = " and ".join(str(np.shape(v)) for v in values)
            raise self.error(f"shapes {shapes} do not fit") from None

    def wrap(self, value: Any, k: int = 0) -> Any:
        """Return integers as they are in output ``k``, whose type is narrower than int64."""
        name = self.output_types[k]
        if name not in INTEGERS or INTEGERS[name][0] == 64:
            return value
        bits, signed = INTEGERS[name]
        if not is_traced(value):
            low, high = integer_range(name)
            value = np.asarray(value)
            if value.size == 0 or (value.min() >= low and value.max() <= high):
                return value
        half = 2 ** (bits - 1) if signed else 0
        return ((value + half) & (2**bits - 1)) - half


class Graph:
    """The nodes of a graph in order, with its constants.

    Parameters
    ----------
    proto : onnx.GraphProto
        The graph, checked, with types.
    version : int
        Version of the operators.
    outer_types : mapping
        Names of ONNX types of the values around a subgraph.
    given_types : sequence of str, optional
        Types of the inputs, where a subgraph does not state them.
    """

    def __init__(
        self,
        proto: Any,
        version: int,
        outer_types: Mapping[str, str],
        given_types: Sequence[str] = (),
    ) -> None:
        self.types = {**outer_types, **dict(zip((one.name for one in proto.input), given_types))}
        for one in (*proto.output, *proto.input):
            kind = one.type.WhichOneof("value")
            if kind == "tensor_type" and one.type.tensor_type.elem_type:
                self.types[one.name] = type_name(one.type.tensor_type.elem_type)
            elif kind not in (None, "tensor_type"):
                raise OnnxError(
                    f"from_onnx: value {one.name!r} is a {kind.removesuffix('_type')}; only "
                    "arrays are known"
                )
        for one in proto.initializer:
            self.types[one.name] = type_name(one.data_type)
        self.constants = {
            t.name: tensor(t, f"from_onnx: tensor {t.name!r}") for t in proto.initializer
        }
        #: Inputs that the graph must be given: old files list constants among them too.
        self.inputs = tuple(one.name for one in proto.input if one.name not in self.constants)
        self.outputs = tuple(one.name for one in proto.output)
        self.steps = [self._step(node, version) for node in proto.node]
        self.output_types = tuple(self.types.get(name, "") for name in self.outputs)
        self._plan_deletions()

    def _step(self, proto: Any, version: int) -> tuple[Node, Callable[..., Any]]:
        from onnx.defs import SchemaError, get_schema

        try:
            schema = get_schema(proto.op_type, version, "")
        except SchemaError:
            raise OnnxError(
                f"from_onnx: operator {proto.op_type!r} does not exist in version {version} of ONNX"
            ) from None
        if proto.domain not in STANDARD:
            raise OnnxError(
                f"from_onnx: node {proto.name!r} ({proto.op_type}): operators of domain "
                f"{proto.domain!r} are not known"
            )
        given = [self.types.get(name, "") for name in proto.input]
        if proto.op_type == "Loop":
            given = ["INT64", "BOOL", *given[2:]]
        graphs = {
            a.name: Graph(a.g, version, self.types, given)
            for a in proto.attribute
            if a.HasField("g")
        }
        function = operator(proto)
        node = Node(proto, schema, self.types, graphs)
        for name, kind in zip(node.outputs, node.output_types):
            self.types[name] = kind
        for name, kind in zip(node.outputs, node.output_types):
            if name and kind:
                dtype_of(kind, f"from_onnx: {node.label}: output {name!r}")
        return node, function

    def _plan_deletions(self) -> None:
        """Find after which step each value is no longer needed."""
        last: dict[str, int] = {}
        for k, (node, _) in enumerate(self.steps):
            for name in (*node.inputs, *node.outputs, *self._captured(node)):
                last[name] = k
        self.deletions: list[list[str]] = [[] for _ in self.steps]
        for name, k in last.items():
            if name not in self.outputs and name not in self.constants:
                self.deletions[k].append(name)

    @staticmethod
    def _captured(node: Node) -> set[str]:
        names: set[str] = set()
        for graph in node.graphs.values():
            names |= set(graph.outputs)
            for inner, _ in graph.steps:
                names |= set(inner.inputs) | Graph._captured(inner)
        return names

    def __call__(self, values: Sequence[Any], outer: Mapping[str, Any] | None = None) -> list[Any]:
        """Return the outputs for values of the inputs; a subgraph also reads ``outer``."""
        known: dict[str, Any] = {**(outer or {}), **self.constants}
        known.update(zip(self.inputs, values, strict=True))
        known[""] = None
        own = set(self.inputs)
        live = sum(int(np.size(v)) for v in values)
        for (node, function), unneeded in zip(self.steps, self.deletions):
            try:
                results = self._call(node, function, known)
            except OnnxError:
                raise
            except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as error:
                if isinstance(error, ArchimedesError):
                    error.add_note(f"from_onnx: this is {node.label}")
                    raise
                raise node.error(f"cannot be computed: {error}") from error
            for name, value in zip(node.outputs, results):
                known[name] = value
                own.add(name)
                live += int(np.size(value)) if value is not None else 0
            if live > MAX_LIVE:
                raise node.error(f"the network needs arrays of {live:,} elements at one time")
            for name in unneeded:
                if name in own and name:
                    live -= int(np.size(known.pop(name)))
        return [known[name] for name in self.outputs]

    @staticmethod
    def _call(node: Node, function: Callable[..., Any], known: dict[str, Any]) -> tuple[Any, ...]:
        arguments = [known[name] for name in node.inputs]
        if node.graphs:
            results = function(node, known, *arguments)
        else:
            results = function(node, *arguments)
        if not isinstance(results, tuple):
            results = (results,)
        if len(results) < len(node.outputs):
            raise node.error(
                f"only the first {len(results)} of its {len(node.outputs)} outputs are computed"
            )
        return results
