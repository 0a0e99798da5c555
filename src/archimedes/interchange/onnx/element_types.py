"""The ONNX type of each value, from the schemas of the operators.

Shapes are not inferred: NumPy knows them when the network is called. (The inference of the ``onnx``
package reads past the end of its own lists for some damaged files, so it is not asked.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from archimedes.interchange.onnx.tensors import OnnxError, type_name

#: Attributes that say what type an output has, where they are given.
_BY_ATTRIBUTE = {
    "Cast": "to",
    "DequantizeLinear": "output_dtype",
    "EyeLike": "dtype",
    "QuantizeLinear": "output_dtype",
}


def output_types(
    proto: Any,
    label: str,
    types: Mapping[str, str],
    schema: Any,
    inner: Mapping[str, Sequence[str]],
) -> list[str]:
    """Return the types of a node's outputs; refuse inputs whose types do not fit.

    Parameters
    ----------
    proto : onnx.NodeProto
        The node.
    label : str
        What messages call it.
    types : mapping
        Names of ONNX types by names of values.
    schema : onnx.defs.OpSchema
        What its operator takes and gives.
    inner : mapping
        Types of the outputs of its subgraphs, by names of attributes.
    """
    bound = _bind(proto, label, types, schema)
    if inner:
        return _of_control_flow(proto, inner)
    only = {
        c.type_param_str: c.allowed_type_strs[0]
        for c in schema.type_constraints
        if len(c.allowed_type_strs) == 1
    }
    attributes = {a.name: a for a in proto.attribute}
    stated = attributes.get(_BY_ATTRIBUTE.get(proto.op_type, ""))
    result = []
    for k in range(len(proto.output)):
        text = schema.outputs[min(k, len(schema.outputs) - 1)].type_str
        text = only.get(text, text)
        if text.startswith("tensor("):
            result.append(text.removeprefix("tensor(").removesuffix(")").upper())
        elif stated is not None and stated.i:
            result.append(type_name(stated.i))
        elif text in bound:
            result.append(bound[text])
        else:
            result.append(_by_value(proto, label, attributes, types))
    return result


def _bind(proto: Any, label: str, types: Mapping[str, str], schema: Any) -> dict[str, str]:
    """Return the type that each of the schema's parameters stands for."""
    allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    bound: dict[str, str] = {}
    for k, name in enumerate(proto.input):
        kind = types.get(name, "")
        if not name or not kind:
            continue
        formal = schema.inputs[min(k, len(schema.inputs) - 1)]
        text = formal.type_str
        tensor = f"tensor({kind.lower()})"
        if tensor not in allowed.get(text, [text]):
            raise OnnxError(f"{label}: input {name!r} is {kind}, which the operator does not take")
        if not formal.is_homogeneous:
            continue
        if bound.setdefault(text, kind) != kind:
            raise OnnxError(
                f"{label}: input {name!r} is {kind}, but another one is {bound[text]}; "
                "they must have one type"
            )
    return bound


def _of_control_flow(proto: Any, inner: Mapping[str, Sequence[str]]) -> list[str]:
    if proto.op_type == "If":
        return list(inner["then_branch"])
    body = list(inner["body"])
    return body[1:] if proto.op_type == "Loop" else body


def _by_value(
    proto: Any, label: str, attributes: Mapping[str, Any], types: Mapping[str, str]
) -> str:
    """Return the type of an output that neither inputs nor an attribute of its own state."""
    if "value" in attributes:
        return type_name(attributes["value"].t.data_type)
    if proto.op_type == "Constant":
        given = next(iter(attributes), "")
        for word, kind in (("float", "FLOAT"), ("int", "INT64"), ("string", "STRING")):
            if word in given:
                return kind
    if proto.op_type == "ConstantOfShape":
        return "FLOAT"
    if proto.op_type == "QuantizeLinear":
        return "UINT8"
    like = {"EyeLike": 0, "LayerNormalization": 0, "DequantizeLinear": 1}.get(proto.op_type)
    if like is not None:
        return types[proto.input[like]]
    raise OnnxError(f"{label}: the type of its result is not known")
