"""Operators that work element by element: arithmetic, comparisons, activations, casts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import special
from archimedes.checks import is_traced
from archimedes.interchange.onnx.ops.table import op
from archimedes.interchange.onnx.tensors import INTEGERS, dtype_of, integer_range
from archimedes.typing import Array

if TYPE_CHECKING:
    from archimedes.interchange.onnx.graphs import Node


def is_float(x: Array) -> bool:
    """Return whether an array is of floats."""
    return np.dtype(x.dtype).kind == "f"


def _divide(a: Array, b: Array) -> Any:
    if is_float(a):
        return a / b
    # Integers are divided toward zero.
    quotient = np.abs(a) // np.abs(b)
    return np.where((a < 0) != (b < 0), -quotient, quotient)


def _unsigned_shift(node: Node, a: Array, b: Array) -> Any:
    return np.left_shift(a, b) if node.get("direction") == "LEFT" else np.right_shift(a, b)


def sigmoid(x: Array) -> Any:
    """Return ``1 / (1 + exp(-x))``, whose derivatives stay finite for large negative x."""
    least = -87.0 if x.dtype == np.float32 else -700.0
    return 1.0 / (1.0 + np.exp(-np.maximum(x, least)))


def softplus(x: Array) -> Any:
    """Return ``log(1 + exp(x))``."""
    return np.logaddexp(x, np.zeros((), x.dtype))


def gelu(x: Array, approximate: str = "none") -> Any:
    """Return x times the normal distribution function of x, or its approximation by tanh."""
    if approximate == "tanh":
        return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1.0 + special.erf(x * math.sqrt(0.5)))


def _selu(node: Node, x: Array) -> Any:
    alpha = node.get("alpha", 1.67326319217681884765625)
    gamma = node.get("gamma", 1.05070102214813232421875)
    return gamma * (np.maximum(x, 0.0) + alpha * np.expm1(np.minimum(x, 0.0)))


def _celu(node: Node, x: Array) -> Any:
    alpha = node.get("alpha", 1.0)
    return np.maximum(x, 0.0) + np.minimum(alpha * np.expm1(np.minimum(x, 0.0) / alpha), 0.0)


def hard_sigmoid(x: Array, alpha: float, beta: float) -> Any:
    """Return ``alpha x + beta`` between 0 and 1."""
    return np.clip(alpha * x + beta, 0.0, 1.0)


def _shrink(node: Node, x: Array) -> Any:
    bias, limit = node.get("bias", 0.0), node.get("lambd", 0.5)
    inner = np.where(x > limit, x - bias, np.zeros((), x.dtype))
    return np.where(x < -limit, x + bias, inner).astype(x.dtype)


#: Functions of a node and one array.
_UNARY: dict[str, Callable[[Any, Any], Any]] = {
    "Abs": lambda n, x: n.wrap(np.abs(x)),
    "Acos": lambda n, x: np.arccos(x),
    "Acosh": lambda n, x: np.arccosh(x),
    "Asin": lambda n, x: np.arcsin(x),
    "Asinh": lambda n, x: np.arcsinh(x),
    "Atan": lambda n, x: np.arctan(x),
    "Atanh": lambda n, x: np.arctanh(x),
    "BitwiseNot": lambda n, x: n.wrap(~x),
    "Ceil": lambda n, x: np.ceil(x),
    "Celu": _celu,
    "Cos": lambda n, x: np.cos(x),
    "Cosh": lambda n, x: np.cosh(x),
    "Elu": lambda n, x: np.where(x > 0, x, n.get("alpha", 1.0) * np.expm1(np.minimum(x, 0.0))),
    "Erf": lambda n, x: special.erf(x),
    "Exp": lambda n, x: np.exp(x),
    "Floor": lambda n, x: np.floor(x),
    "Gelu": lambda n, x: gelu(x, n.get("approximate", "none")),
    "HardSigmoid": lambda n, x: hard_sigmoid(x, n.get("alpha", 0.2), n.get("beta", 0.5)),
    "HardSwish": lambda n, x: x * hard_sigmoid(x, 1.0 / 6.0, 0.5),
    "Identity": lambda n, x: x,
    "IsNaN": lambda n, x: np.isnan(x),
    "LeakyRelu": lambda n, x: np.where(x >= 0, x, n.get("alpha", 0.01) * x),
    "Log": lambda n, x: np.log(x),
    "Mish": lambda n, x: x * np.tanh(softplus(x)),
    "Neg": lambda n, x: n.wrap(-x),
    "Not": lambda n, x: ~x,
    "Reciprocal": lambda n, x: 1.0 / x,
    "Relu": lambda n, x: np.maximum(x, 0),
    "Round": lambda n, x: np.rint(x),  # half to even
    "Selu": _selu,
    "Shrink": _shrink,
    "Sigmoid": lambda n, x: sigmoid(x),
    "Sign": lambda n, x: np.sign(x),
    "Sin": lambda n, x: np.sin(x),
    "Sinh": lambda n, x: np.sinh(x),
    "Softplus": lambda n, x: softplus(x),
    "Softsign": lambda n, x: x / (1.0 + np.abs(x)),
    "Sqrt": lambda n, x: np.sqrt(x),
    "Swish": lambda n, x: x * sigmoid(n.get("alpha", 1.0) * x),
    "Tan": lambda n, x: np.tan(x),
    "Tanh": lambda n, x: np.tanh(x),
    "ThresholdedRelu": lambda n, x: np.where(x > n.get("alpha", 1.0), x, np.zeros((), x.dtype)),
}

#: Functions of a node and two arrays that are combined element by element.
_BINARY: dict[str, Callable[[Any, Any, Any], Any]] = {
    "Add": lambda n, a, b: n.wrap(a + b),
    "And": lambda n, a, b: a & b,
    "BitShift": lambda n, a, b: n.wrap(_unsigned_shift(n, a, b)),
    "BitwiseAnd": lambda n, a, b: a & b,
    "BitwiseOr": lambda n, a, b: a | b,
    "BitwiseXor": lambda n, a, b: a ^ b,
    "Div": lambda n, a, b: n.wrap(_divide(a, b)),
    "Equal": lambda n, a, b: a == b,
    "Greater": lambda n, a, b: a > b,
    "GreaterOrEqual": lambda n, a, b: a >= b,
    "Less": lambda n, a, b: a < b,
    "LessOrEqual": lambda n, a, b: a <= b,
    "Mod": lambda n, a, b: np.fmod(a, b) if n.get("fmod", 0) else np.mod(a, b),
    "Mul": lambda n, a, b: n.wrap(a * b),
    "Or": lambda n, a, b: a | b,
    "PRelu": lambda n, x, slope: np.where(x >= 0, x, slope * x),
    "Sub": lambda n, a, b: n.wrap(a - b),
    "Xor": lambda n, a, b: a ^ b,
}


def _enter_unary(name: str, function: Callable[[Any, Any], Any]) -> None:
    @op(name)
    def call(node: Node, x: Array) -> Any:
        return function(node, x)


def _enter_binary(name: str, function: Callable[[Any, Any, Any], Any]) -> None:
    @op(name)
    def call(node: Node, a: Array, b: Array) -> Any:
        node.limit_broadcast(a, b)
        return function(node, a, b)


for _name, _unary in _UNARY.items():
    _enter_unary(_name, _unary)
for _name, _binary in _BINARY.items():
    _enter_binary(_name, _binary)


def _several(node: Node, function: Callable[[Any, Any], Any], values: Sequence[Array]) -> Any:
    node.limit_broadcast(*values)
    return reduce(function, values)


@op("Max")
def greatest(node: Node, *values: Array) -> Any:
    """Return the greatest of several arrays, element by element."""
    return _several(node, np.maximum, values)


@op("Min")
def least(node: Node, *values: Array) -> Any:
    """Return the least of several arrays, element by element."""
    return _several(node, np.minimum, values)


@op("Sum")
def total(node: Node, *values: Array) -> Any:
    """Return the sum of several arrays, element by element."""
    return _several(node, np.add, values)


@op("Mean")
def mean(node: Node, *values: Array) -> Any:
    """Return the mean of several arrays, element by element."""
    return _several(node, np.add, values) / len(values)


@op("Pow")
def power(node: Node, x: Array, exponent: Array) -> Any:
    """Return x to a power, with the type of x."""
    node.limit_broadcast(x, exponent)
    if is_float(x):
        if not is_traced(exponent) and np.size(exponent) == 1:
            exponent = np.asarray(exponent)
            whole = float(exponent.reshape(-1)[0])
            if whole in (2.0, 3.0) and np.ndim(exponent) <= np.ndim(x):
                return x * x if whole == 2.0 else x * x * x
        return x ** exponent.astype(x.dtype)
    if is_float(exponent):
        return node.wrap(cast(x.astype(exponent.dtype) ** exponent, node.output_types[0]))
    return node.wrap(x**exponent)


@op("Clip")
def clip(node: Node, x: Array, low: Array | None = None, high: Array | None = None) -> Any:
    """Return values within limits, which are attributes before version 11."""
    if node.version < 11:
        low, high = node.get("min"), node.get("max")
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


@op("Where")
def choose(node: Node, condition: Array, a: Array, b: Array) -> Any:
    """Return elements of one array where a condition holds, and of the other elsewhere."""
    node.limit_broadcast(condition, a, b)
    return np.where(condition, a, b)


@op("IsInf")
def is_infinite(node: Node, x: Array) -> Any:
    """Return where values are infinite, of the signs that count."""
    plus = (x == np.inf) & bool(node.get("detect_positive", 1))
    return plus | ((x == -np.inf) & bool(node.get("detect_negative", 1)))


@op("Dropout")
def dropout(node: Node, x: Array, ratio: Array | None = None, training: Array | None = None) -> Any:
    """Return the values as they are, as in inference."""
    if training is not None and bool(node.concrete(training, "training_mode")):
        raise node.error("training_mode is set: export the network for inference (model.eval())")
    return (x, np.ones(np.shape(x), np.bool_))[: len(node.outputs)]


def cast(x: Array, name: str) -> Any:
    """Return values converted to an ONNX type: floats toward zero, integers modulo their width."""
    dtype = dtype_of(name, "the result")
    if dtype == np.bool_:
        return x != 0
    if dtype.kind == "f":
        return x.astype(dtype)
    if is_float(x):
        x = np.trunc(x)
    x = x.astype(np.int64)
    bits, signed = INTEGERS[name]
    if bits == 64:
        return x
    low, high = integer_range(name)
    if not is_traced(x) and (x.size == 0 or (x.min() >= low and x.max() <= high)):
        return x
    half = 2 ** (bits - 1) if signed else 0
    return ((x + half) & (2**bits - 1)) - half


@op("Cast", "CastLike")
def convert(node: Node, x: Array, like: Array | None = None) -> Any:
    """Return values of another type."""
    if node.input_types[0] == node.output_types[0]:
        return x
    return cast(x, node.output_types[0])
