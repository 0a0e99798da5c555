"""Element types of ONNX and its constants as NumPy arrays, with limits on their sizes.

Recorded arrays are float64, float32, int64 or bool. Integers of every width are therefore int64
here; the graph keeps the ONNX type of each value, and operators saturate or wrap to it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from archimedes.errors import ArchimedesError
from archimedes.typing import Array

__all__ = [
    "MAX_ELEMENTS",
    "OnnxError",
    "UnknownValueError",
    "check_elements",
    "check_tensor",
    "dtype_of",
    "integer_range",
    "tensor",
]

#: Elements that one array of a network may have.
MAX_ELEMENTS = 2**26


class OnnxError(ArchimedesError, ValueError):
    """An ONNX file is damaged, unsafe, or has something that cannot be a NumPy function.

    Examples
    --------
    >>> import archimedes as arc
    >>> try:
    ...     arc.from_onnx("no_such_file.onnx")
    ... except arc.interchange.OnnxError as error:
    ...     print(error)
    from_onnx: no_such_file.onnx: no such file
    """


class UnknownValueError(OnnxError):
    """A value decides on shapes, but is not known while the network is recorded."""


#: Bits and sign of the integer types, by the names of ``TensorProto.DataType``.
INTEGERS = {
    f"{'' if signed else 'U'}INT{bits}": (bits, signed)
    for bits in (2, 4, 8, 16, 32, 64)
    for signed in (True, False)
}
FLOATS: dict[str, np.dtype[Any]] = {"FLOAT": np.dtype(np.float32), "DOUBLE": np.dtype(np.float64)}
#: Where a tensor that has no ``raw_data`` keeps its elements.
_FIELDS = {
    "FLOAT": "float_data",
    "DOUBLE": "double_data",
    "INT64": "int64_data",
    "UINT32": "uint64_data",
    "UINT64": "uint64_data",
}
_BITS = {"FLOAT": 32, "DOUBLE": 64, "BOOL": 8} | {
    name: bits for name, (bits, _) in INTEGERS.items()
}


def type_name(code: int) -> str:
    """Return the name of an element type of ONNX, such as ``"FLOAT"``."""
    from onnx import TensorProto

    try:
        return str(TensorProto.DataType.Name(code))
    except ValueError:
        return f"element type {code}"


def dtype_of(name: str, what: str) -> np.dtype[Any]:
    """Return the dtype in which values of an ONNX type are computed; refuse types without one."""
    if name in FLOATS:
        return FLOATS[name]
    if name == "BOOL":
        return np.dtype(np.bool_)
    if name in INTEGERS:
        return np.dtype(np.int64)
    hint = ""
    if "FLOAT" in name:
        hint = "; convert the network to float32 before it is exported (model.float() in PyTorch)"
    raise OnnxError(
        f"{what} has element type {name}; float32, float64, integers and bool can be read{hint}"
    )


def integer_range(name: str) -> tuple[int, int]:
    """Return the least and the greatest value of an integer type.

    >>> integer_range("INT8"), integer_range("UINT4")
    ((-128, 127), (0, 15))
    """
    bits, signed = INTEGERS[name]
    if bits == 64:  # values are int64, whatever the sign of the type
        return (-(2**63) if signed else 0), 2**63 - 1
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)


def check_elements(shape: Any, what: str) -> None:
    """Refuse an array before it is made, if it would have too many elements."""
    elements = math.prod(int(n) for n in shape)
    if elements > MAX_ELEMENTS:
        raise OnnxError(
            f"{what} would have {elements:,} elements, of shape {tuple(map(int, shape))}; "
            f"arrays of at most {MAX_ELEMENTS:,} are computed"
        )


def check_tensor(proto: Any, what: str) -> None:
    """Refuse a constant of the file whose shape and data do not fit, or that is too large."""
    from onnx import TensorProto

    name = type_name(proto.data_type)
    dtype_of(name, what)
    shape = tuple(proto.dims)
    if any(n < 0 for n in shape):
        raise OnnxError(f"{what} has the shape {shape}, with a negative length")
    check_elements(shape, what)
    if proto.data_location == TensorProto.EXTERNAL:
        raise OnnxError(f"{what} has its data in another file, which is not allowed here")
    elements = math.prod(shape)
    bits = _BITS[name]
    if proto.HasField("raw_data"):
        there, needed, unit = len(proto.raw_data), -(-elements * bits // 8), "bytes"
    else:
        packed = 8 // bits if bits < 8 else 1
        there, needed = len(getattr(proto, _FIELDS.get(name, "int32_data"))), -(-elements // packed)
        unit = "numbers"
    if there != needed:
        raise OnnxError(f"{what} has the shape {shape} but {there} {unit}, not {needed}")


def tensor(proto: Any, what: str) -> Array:
    """Return a constant of the file as a read-only array, after checks of its size."""
    from onnx import numpy_helper

    check_tensor(proto, what)
    name = type_name(proto.data_type)
    value = np.asarray(numpy_helper.to_array(proto))
    if name == "UINT64" and value.size and value.max() > np.uint64(2**63 - 1):
        raise OnnxError(f"{what} has a uint64 above 2**63 - 1, which int64 cannot hold")
    value = np.array(value.astype(dtype_of(name, what)), order="C")
    value.flags.writeable = False
    return value
