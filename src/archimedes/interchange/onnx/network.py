"""``from_onnx``: a network from a file as a function of its inputs."""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.function import Compiled
from archimedes.interchange.onnx.graphs import Graph
from archimedes.interchange.onnx.reading import STANDARD, read_model
from archimedes.interchange.onnx.tensors import INTEGERS, OnnxError, dtype_of, integer_range
from archimedes.typing import Array

__all__ = ["Network", "from_onnx"]


class Input:
    """What the file says about an input: its name, ONNX type and shape.

    Parameters
    ----------
    proto : onnx.ValueInfoProto
        The input.
    """

    def __init__(self, proto: Any) -> None:
        from archimedes.interchange.onnx.tensors import type_name

        self.name = str(proto.name)
        kind = proto.type.tensor_type
        self.type = type_name(kind.elem_type)
        self.dtype = dtype_of(self.type, f"from_onnx: input {self.name!r}")
        #: Lengths of the axes: numbers, or names of those that may have any length.
        self.shape: tuple[int | str, ...] | None = None
        if kind.HasField("shape"):
            self.shape = tuple(
                int(d.dim_value) if d.HasField("dim_value") else d.dim_param or "?"
                for d in kind.shape.dim
            )

    def __str__(self) -> str:
        shape = "any shape" if self.shape is None else _show(self.shape)
        return f"{self.name}: {self.type.lower()} {shape}"

    def check(self, value: Any, lengths: dict[str, int]) -> Any:
        """Return an argument as an array of the right dtype, after a check of its shape."""
        if value is None or isinstance(value, (str, dict)):
            raise OnnxError(
                f"input {self.name!r} is {type(value).__name__}; the network needs an array, {self}"
            )
        x = np.asarray(value)
        kind, wanted = np.dtype(x.dtype).kind, self.dtype.kind
        if kind != wanted and not (wanted == "f" and kind in "iu"):
            raise OnnxError(
                f"input {self.name!r} is {x.dtype}; the network needs {self.type.lower()} "
                f"{'' if self.shape is None else _show(self.shape)}".rstrip()
            )
        if self.shape is not None:
            self._check_shape(np.shape(x), lengths)
        if self.type in INTEGERS and not is_traced(x) and np.size(x):
            low, high = integer_range(self.type)
            if int(np.min(x)) < low or int(np.max(x)) > high:
                raise OnnxError(
                    f"input {self.name!r} has {int(np.min(x))} to {int(np.max(x))}; "
                    f"{self.type.lower()} holds {low} to {high}"
                )
        return x if x.dtype == self.dtype else x.astype(self.dtype)

    def _check_shape(self, shape: tuple[int, ...], lengths: dict[str, int]) -> None:
        assert self.shape is not None
        fits = len(shape) == len(self.shape)
        for got, want in zip(shape, self.shape):
            if isinstance(want, str) and want != "?":
                want = lengths.setdefault(want, got)
            fits = fits and want in ("?", got)
        if not fits:
            named = {n: lengths[n] for n in self.shape if isinstance(n, str) and n in lengths}
            also = f", where {', '.join(f'{n}={v}' for n, v in named.items())}" if named else ""
            raise OnnxError(
                f"input {self.name!r} has the shape {shape}; the network needs "
                f"{_show(self.shape)}{also}"
            )


def _show(shape: tuple[int | str, ...]) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


class Network(Compiled[..., Any]):
    """A network from an ONNX file, as a compiled function of its inputs.

    :func:`from_onnx` makes it. It is used like any compiled function: called, differentiated,
    mapped over batches, bounded, written as C. Arguments have the names of the network's inputs,
    with underscores in place of what Python does not allow.

    Parameters
    ----------
    graph : Graph
        Its nodes and constants.
    inputs : list of Input
        What it is called with.
    outputs : list of str
        Names of its results, with their shapes, for the listing.
    constants : mapping
        Values of inputs that are fixed.
    name : str
        Its name.

    Examples
    --------
    >>> import archimedes as arc
    >>> issubclass(arc.interchange.Network, arc.Compiled)
    True
    """

    def __init__(
        self,
        graph: Graph,
        inputs: list[Input],
        outputs: list[str],
        constants: Mapping[str, Array],
        name: str,
    ) -> None:
        given = [one for one in inputs if one.name not in constants]

        def evaluate(*args: Any) -> Any:
            lengths: dict[str, int] = {}
            values = dict(zip((one.name for one in given), args))
            checked = [one.check({**constants, **values}[one.name], lengths) for one in inputs]
            with np.errstate(all="ignore"):
                results = [np.asarray(v) for v in graph(checked)]
            return results[0] if len(results) == 1 else tuple(results)

        names = argument_names([one.name for one in given])
        parameters = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names]
        evaluate.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        evaluate.__name__ = evaluate.__qualname__ = name
        rows = "".join(f"\n{arg} : {str(one).partition(': ')[2]}" for arg, one in zip(names, given))
        evaluate.__doc__ = (
            f"Return {', '.join(outputs)}, computed by the ONNX network {name!r}.\n\n"
            f"Parameters\n----------{rows}\n\nReturns\n-------\n" + "\n".join(outputs)
        )
        self.input_names = tuple(one.name for one in given)
        self.output_names = graph.outputs
        self._inputs, self._outputs, self._graph = given, outputs, graph
        labels = argument_names(list(graph.outputs))
        super().__init__(evaluate, name=name, return_names=labels, freeze=True)

    def __repr__(self) -> str:
        count = sum(int(v.size) for v in self._graph.constants.values())
        return (
            f"<network {self.name}({', '.join(map(str, self._inputs))}) -> "
            f"{', '.join(self._outputs)}; {len(self._graph.steps)} nodes, {count:,} weights>"
        )

    def __content__(self) -> tuple[Any, ...]:
        return super().__content__()  # which is not inherited

    def _call_slowly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        # Lists and narrow integers are taken too: recorded arrays have neither.
        return super()._call_slowly(
            tuple(map(_as_array, args)), {k: _as_array(v) for k, v in kwargs.items()}
        )


def _as_array(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and not is_traced(value):
        value = np.asarray(value)
    if not isinstance(value, (np.ndarray, np.generic)) or is_traced(value):
        return value
    if value.dtype.kind not in "iu" or value.dtype == np.int64:
        return value
    if value.dtype == np.uint64 and value.size and value.max() > np.uint64(2**63 - 1):
        raise OnnxError("a uint64 above 2**63 - 1, which int64 cannot hold")
    return value.astype(np.int64)


def argument_names(names: list[str]) -> list[str]:
    """Return names that Python allows for arguments, all different.

    >>> argument_names(["x", "onnx::MatMul.0", "x.0", "x_0", "lambda", ""])
    ['x', 'onnx__MatMul_0', 'x_0', 'x_0_', 'lambda_', 'input_']
    """
    result: list[str] = []
    for name in names:
        plain = re.sub(r"[^0-9a-zA-Z_]", "_", name) or "input_"
        plain = f"input_{plain}" if plain[0].isdigit() else plain
        while plain in result or keyword.iskeyword(plain) or plain == "out":
            plain += "_"
        result.append(plain)
    return result


def from_onnx(path: Any, *, constants: Mapping[str, Any] | None = None) -> Network:
    """Read a neural network from an ONNX file as a NumPy function of its inputs.

    The file is checked before it is used, and never run: it may come from anywhere.

    Parameters
    ----------
    path : path, bytes or onnx.ModelProto
        The file. Weights in files beside it are read too. The content of a file and a model in
        memory are also taken.
    constants : mapping, optional
        Values of inputs that stay the same, by their names in the file: inputs that decide on the
        shapes of results must be among them. None by default.

    Returns
    -------
    Network
        A compiled function of the other inputs, in the order of the file. It returns the output,
        or a tuple if there are several. Axes that the file gives a name in place of a length may
        have any length. ``input_names`` and ``output_names`` are those of the file; its docstring
        has types and shapes. float32 and float64 are computed as such; integers of every width are
        int64, with the values that ONNX defines.

    Raises
    ------
    OnnxError
        If the file is damaged, unsafe or no valid network, or has an operator that is not known.

    Examples
    --------
    >>> from onnx import TensorProto, helper, numpy_helper
    >>> w = numpy_helper.from_array(np.array([[1.0, -1.0], [2.0, 0.5]], np.float32), "w")
    >>> x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 2])
    >>> y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 2])
    >>> nodes = [helper.make_node("MatMul", ["x", "w"], ["z"]), helper.make_node("Relu", "z", "y")]
    >>> graph = helper.make_graph(nodes, "policy", [x], [y], [w])
    >>> policy = from_onnx(helper.make_model(graph))
    >>> policy
    <network policy(x: float (N, 2)) -> y: float (N, 2); 2 nodes, 4 weights>
    >>> policy(np.array([[1.0, 1.0]], np.float32))
    array([[3., 0.]], dtype=float32)
    """
    model = read_model(path)
    version = next((o.version for o in model.opset_import if o.domain in STANDARD), 0)
    graph = Graph(model.graph, version, {})
    there = {one.name: one for one in model.graph.input}
    inputs = [Input(there[name]) for name in graph.inputs]
    outputs = [str(Input(one)) for one in model.graph.output]
    fixed: dict[str, Array] = {}
    for name, value in (constants or {}).items():
        if name not in graph.inputs:
            raise ValueError(
                f"from_onnx: constants: {name!r} is not one of the inputs {list(graph.inputs)}"
            )
        fixed[name] = np.array(value)
        fixed[name].flags.writeable = False
    name = re.sub(r"\W+", "_", model.graph.name, flags=re.ASCII).strip("_")
    if not name or name[0].isdigit():
        name = "network"
    if isinstance(path, (str, Path)) and name in ("main_graph", "network", "torch_jit"):
        stem = re.sub(r"\W+", "_", Path(path).stem, flags=re.ASCII).strip("_")
        name = stem if stem and not stem[0].isdigit() else name
    return Network(graph, inputs, outputs, fixed, name[:64])
