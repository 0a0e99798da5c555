"""Random expressions of Python numbers, NumPy scalars and arrays of several dtypes.

What is compared is promotion: the type that ``isinstance`` sees, the dtype, the shape and the bits
of every expression, recorded against Python and NumPy themselves. Only exact operations occur, so
that the bits must be equal. Expressions that Python or NumPy refuse are left out, and so are
integers beyond int64 and what is an error by contract (see docs/recording.md).
"""

from __future__ import annotations

import math
import random
import warnings
from typing import Any

import numpy as np

import archimedes as arc
from archimedes.errors import TraceError

__all__ = ["check_numbers", "expressions"]

LIMIT = 2**62
REFUSED = (TypeError, ValueError, ZeroDivisionError, OverflowError, AttributeError, IndexError)

ARGUMENTS = ("x", "y", "n", "m", "s", "h", "k", "a", "b", "c", "z")
#: Python numbers beside float32 are where promotion shows.
OFTEN = (*ARGUMENTS, *"xynmxynmaahh")
LITERALS = ("2", "3", "-1", "0.5", "1.5", "True", "False", "np.float32(1.5)", "np.int64(2)")
UNARY = (
    "-{a}",
    "+{a}",
    "abs({a})",
    "round({a})",
    "round({a}, 1)",
    "math.floor(number({a}))",
    "math.trunc(number({a}))",
    "({a})**2",
    "np.abs({a})",
    "np.floor({a})",
    "np.asarray({a})",
    "np.asarray({a})[()]",
    "np.sum({a})",
    "np.round({a}, 1)",
    "np.array([{a}, 1.0])[0]",
    "np.array([{a}, 1]).tolist()[0]",
    "np.asarray({a}).item()",
    "np.zeros(2, np.result_type({a}, np.float32)) + {a}",
    "({a}).real",
    "np.negative({a})",
    "({a})[0]",
    "np.square(1.0 * {a})",
)
BINARY = (
    *("{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / {b}", "{a} // {b}", "{a} % {b}"),
    *("{a} < {b}", "{a} >= {b}", "{a} == {b}", "{a} != {b}", "{a} & {b}", "{a} | {b}", "{a} ^ {b}"),
    *("{a} << ({b} & 3)", "{a} >> ({b} & 3)", "divmod({a}, {b})[0]", "divmod({a}, {b})[1]"),
    *("np.maximum({a}, {b})", "np.add({a}, {b})", "np.multiply({a}, {b})", "np.less({a}, {b})"),
    *("np.where({a} > 1, {a}, {b})", "np.where({b}, {a}, 1.5)", "np.stack([{a}, {b}])"),
    *("sum([{a}, {b}])", "({a} > 1) + ({b} > 1)", "np.minimum({a}, {b}) * {a}"),
)


def _number(value: Any) -> Any:
    """Return an array without axes as the number it holds, for ``math`` (which asks float)."""
    return value if np.isscalar(value) else value.item()


SPACE = {"np": np, "math": math, "number": _number}


def arguments(rng: random.Random) -> dict[str, Any]:
    """Numbers, scalars and arrays; quarters, so that rounding to one digit meets ties."""
    quarter = lambda: rng.randint(-12, 12) / 4
    return {
        "x": quarter(),
        "y": quarter() + 0.3,
        "n": rng.randint(-6, 6),
        "m": rng.randint(1, 6),
        "s": np.float64(quarter()),
        "h": np.float32(quarter()),
        "k": np.int64(rng.randint(-6, 6)),
        "a": np.array([quarter(), quarter()], np.float32),
        "b": np.array([quarter(), 1.0]),
        "c": np.array([rng.randint(-6, 6), 2]),
        "z": np.array(quarter()),
    }


def _grown(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.15:
        return rng.choice(OFTEN if rng.random() < 0.8 else LITERALS)
    a = _grown(rng, depth - 1)
    if rng.random() < 0.4:
        return f"({rng.choice(UNARY).format(a=a)})"
    return f"({rng.choice(BINARY).format(a=a, b=_grown(rng, depth - 1))})"


def _value(text: str, given: dict[str, Any]) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return eval(text, {**SPACE, **given})


def _comparable(value: Any) -> bool:
    array = np.asarray(value)
    if array.dtype.kind not in "fib" or array.dtype.itemsize not in (1, 4, 8):
        return False
    if array.dtype.kind == "i":
        return array.dtype.itemsize == 8 and bool(np.all(np.abs(array) < LIMIT))
    return bool(np.all(np.isfinite(array)))


def expressions(seed: int, count: int) -> tuple[dict[str, Any], list[str], list[Any]]:
    """Return arguments, texts of expressions, and what Python and NumPy make of them."""
    rng = random.Random(seed)
    given = arguments(rng)
    texts, values = [], []
    while len(texts) < count:
        text = _grown(rng, rng.choice((1, 2, 2, 3)))
        try:
            value = _value(text, given)
            usable = any(name in text for name in ARGUMENTS) and _comparable(value)
        except REFUSED:
            continue
        if usable:
            texts.append(text)
            values.append(value)
    return given, texts, values


def _kind(value: Any) -> str:
    """The type that ``isinstance`` sees; all arrays are arrays."""
    kind = value.__class__
    array = not issubclass(kind, (int, float, np.generic))
    return "an array" if array else f"{kind.__module__}.{kind.__name__}"


def _recorded(texts: list[str], given: dict[str, Any], backend: str) -> tuple[Any, Any]:
    """Return what a recorded function makes of all expressions, and the types it saw."""
    lines = "".join(f"    v{k} = {text}\n" for k, text in enumerate(texts))
    names = "".join(f"v{k}, " for k in range(len(texts)))
    source = (
        f"def program({', '.join(ARGUMENTS)}):\n{lines}"
        f"    return ({names}), tuple(kind(v) for v in ({names}))\n"
    )
    space: dict[str, Any] = {**SPACE, "kind": _kind}
    exec(source, space)
    with np.errstate(all="ignore"):
        return arc.compile(space["program"], backend=backend)(*given.values())


def _can_be_traced(text: str, given: dict[str, Any]) -> bool:
    """Tell whether no intermediate result is of a dtype such as int8 (of two bools divided)."""
    try:
        _recorded([text], given, "interpreter")
    except TraceError as error:
        if "cannot be traced" not in str(error):
            raise
        return False
    return True


def check_numbers(seed: int, count: int = 40, backend: str = "interpreter") -> list[str]:
    """Return a line for each expression whose type, dtype, shape or bits differ when recorded."""
    given, texts, values = expressions(seed, count)
    try:
        found, kinds = _recorded(texts, given, backend)
    except TraceError:
        kept = [k for k, text in enumerate(texts) if _can_be_traced(text, given)]
        texts, values = [texts[k] for k in kept], [values[k] for k in kept]
        found, kinds = _recorded(texts, given, backend)
    reports = []
    for text, want, got, kind in zip(texts, values, found, kinds):
        a, b = np.asarray(want), np.asarray(got)
        same = a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b)
        if not same or kind != _kind(want):
            told = f"{want!r} ({_kind(want)}), recorded {got!r} ({kind})"
            reports.append(f"seed {seed}: {text} is {told}")
    return reports
