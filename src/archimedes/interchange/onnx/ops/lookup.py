"""Operators by name: the table with all files of this folder in it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from archimedes.interchange.onnx.ops.table import OPERATORS
from archimedes.interchange.onnx.tensors import OnnxError

#: The files that have operators.
KINDS = (
    "attention",
    "control_flow",
    "convolution",
    "elementwise",
    "linear",
    "normalization",
    "quantization",
    "recurrent",
    "reductions",
    "resizing",
    "shapes",
)


def operators() -> dict[str, Callable[..., Any]]:
    """Return all operators by name."""
    for kind in KINDS:
        import_module(f"archimedes.interchange.onnx.ops.{kind}")
    return OPERATORS


def operator(proto: Any) -> Callable[..., Any]:
    """Return the function of a node's operator."""
    table = operators()
    if proto.op_type not in table:
        raise OnnxError(
            f"from_onnx: node {proto.name!r}: operator {proto.op_type!r} is not among the "
            f'{len(table)} that are known (the page "From ONNX in ten minutes" lists them). Export '
            "the network without it, or compute this part in NumPy, before or after the network"
        )
    return table[proto.op_type]
