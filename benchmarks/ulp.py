"""Accuracy of the elementary functions against MPFR (and mpmath): writes docs/ulp.md.

    python -m benchmarks.ulp --samples 1000000

Half of the samples are random bit patterns over the whole range of the dtype, half lie where the
function is used or is hard. An error of n ulp is n units in the last place of the exact result.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gmpy2
import mpmath
import numpy as np

from archimedes.graph.elementary import ELEMENTARY, evaluate
from archimedes.graph.elementary.counting import count_primitives

PRECISION = 140
"""Bits of the reference results."""
LIMIT = 1.5
"""The promise, in ulp."""
REPORT = Path(__file__).resolve().parent.parent / "docs" / "ulp.md"

ORACLES: dict[str, Callable[..., Any]] = {
    "sin": gmpy2.sin,
    "cos": gmpy2.cos,
    "tan": gmpy2.tan,
    "arcsin": gmpy2.asin,
    "arccos": gmpy2.acos,
    "arctan": gmpy2.atan,
    "arctan2": gmpy2.atan2,
    "sinh": gmpy2.sinh,
    "cosh": gmpy2.cosh,
    "tanh": gmpy2.tanh,
    "arcsinh": gmpy2.asinh,
    "arccosh": gmpy2.acosh,
    "arctanh": gmpy2.atanh,
    "exp": gmpy2.exp,
    "exp2": gmpy2.exp2,
    "expm1": gmpy2.expm1,
    "log": gmpy2.log,
    "log2": gmpy2.log2,
    "log10": gmpy2.log10,
    "log1p": gmpy2.log1p,
    "pow": lambda x, y: gmpy2.mpfr(x) ** gmpy2.mpfr(y),
    "cbrt": gmpy2.cbrt,
    "hypot": gmpy2.hypot,
    "fmod": gmpy2.fmod,
}

MPMATH: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(mpmath, name)
        for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "expm1", "log", "log10")
    },
    **{f"arc{name}": getattr(mpmath, f"a{name}") for name in ("sin", "cos", "tan", "tan2")},
    **{f"arc{name}": getattr(mpmath, f"a{name}") for name in ("sinh", "cosh", "tanh")},
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "log2": lambda x: mpmath.log(x) / mpmath.log(2),
    "log1p": mpmath.log1p,
    "pow": mpmath.power,
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "hypot": mpmath.hypot,
    "fmod": lambda x, y: mpmath.sign(x) * mpmath.fmod(abs(x), abs(y)),
}


#: What a sample is drawn from: uniform (low, high), or log-uniform in magnitude with either sign.
UNIFORM: dict[str, tuple[tuple[float, float], ...]] = {
    "sin": ((-10.0, 10.0), (-1e5, 1e5), (-0.8, 0.8)),
    "cos": ((-10.0, 10.0), (-1e5, 1e5), (-0.8, 0.8)),
    "tan": ((-10.0, 10.0), (-1e5, 1e5), (-0.8, 0.8)),
    "arcsin": ((-1.0, 1.0), (0.45, 0.55), (0.99, 1.0)),
    "arccos": ((-1.0, 1.0), (0.45, 0.55), (0.99, 1.0), (-1.0, -0.99)),
    "arctan": ((-1.0, 1.0), (-10.0, 10.0), (0.45, 0.55)),
    "sinh": ((-1.0, 1.0), (-5.0, 5.0), (-712.0, 712.0)),
    "cosh": ((-1.0, 1.0), (-5.0, 5.0), (-712.0, 712.0)),
    "tanh": ((-1.0, 1.0), (-5.0, 5.0), (-22.0, 22.0)),
    "arcsinh": ((-1.0, 1.0), (-10.0, 10.0)),
    "arccosh": ((1.0, 1.1), (1.0, 10.0), (1.0, 1.0 + 1e-6)),
    "arctanh": ((-1.0, 1.0), (-0.1, 0.1), (0.99, 1.0)),
    "exp": ((-1.0, 1.0), (-746.0, 710.0), (-746.0, -700.0)),
    "exp2": ((-1.0, 1.0), (-1076.0, 1025.0), (-1076.0, -1000.0)),
    "expm1": ((-1.0, 1.0), (-5.0, 5.0), (-40.0, 710.0)),
    "log": ((0.5, 2.0), (0.0, 1e3), (0.99, 1.01)),
    "log2": ((0.5, 2.0), (0.0, 1e3), (0.99, 1.01)),
    "log10": ((0.5, 2.0), (0.0, 1e3), (0.99, 1.01)),
    "log1p": ((-1.0, 1.0), (-0.01, 0.01), (0.0, 1e3)),
    "cbrt": ((-8.0, 8.0), (1.0, 8.0)),
}
PAIRS: dict[str, tuple[tuple[float, float, float, float], ...]] = {
    "arctan2": ((-1.0, 1.0, -1.0, 1.0), (-1.0, 1.0, -1e-3, 1e-3), (0.5, 0.55, 1.0, 1.0)),
    "pow": ((0.0, 2.0, -1000.0, 1000.0), (0.0, 100.0, -50.0, 50.0), (0.99, 1.01, -7e4, 7e4)),
    "hypot": ((-1.0, 1.0, -1.0, 1.0), (-1.0, 1.0, -1e-8, 1e-8), (3.0, 5.0, 3.0, 5.0)),
    "fmod": ((-10.0, 10.0, -1.0, 1.0), (-1e9, 1e9, -1.0, 1.0)),
}
NEAR_MULTIPLES = ("sin", "cos", "tan")


def _near_multiples(n: int, rng: np.random.Generator) -> np.ndarray:
    """Floats within a few ulp of multiples of pi/2."""
    multiples = rng.integers(1, 1 << rng.integers(2, 40, n)) * (np.pi / 2)
    return multiples + rng.integers(-2, 3, n) * np.spacing(multiples)


def interesting(name: str, n: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Operands for ``n`` samples where the function is used or is hard."""
    if name in PAIRS:
        boxes = np.array(PAIRS[name])[rng.integers(len(PAIRS[name]), size=n)]
        u, v = rng.random((2, n))
        x = boxes[:, 0] + u * (boxes[:, 1] - boxes[:, 0])
        return [x, boxes[:, 2] + v * (boxes[:, 3] - boxes[:, 2])]
    spans = np.array(UNIFORM[name])[rng.integers(len(UNIFORM[name]), size=n)]
    x = spans[:, 0] + rng.random(n) * (spans[:, 1] - spans[:, 0])
    if name in NEAR_MULTIPLES:
        x[: n // 4] = _near_multiples(n // 4, rng)
    return [x]


TINY, LEAST, MOST = 2.0**-1022, 2.0**-1074, np.finfo(np.float64).max
_POSITIVE = (
    *(0.0, LEAST, 3 * LEAST, TINY - LEAST, TINY, 1e-300, 2.0**-149, 2.0**-126, 1e-30, 1e-9),
    *(2.0**-28, 0.1, 0.25, 1 / 3, 0.5, np.nextafter(0.5, 1), 2**-0.5, np.nextafter(1, 0), 1.0),
    *(np.nextafter(1, 2), 2**0.5, 1.5, np.pi / 2, 2.0, 2.5, 3.0, np.pi, 10.0, 88.7, 127.0, 128.0),
    *(709.7, 709.782712893384, 709.782712893385, 710.4758600739439, 710.475860073944, 744.0),
    *(745.1332191019411, 745.1332191019412, 746.0, 1023.0, 1024.0, 1073.5, 1074.0, 1075.0, 1e3),
    *(102900.0, 2.0**30, 2.0**52 + 1, 2.0**53, 2.0**53 + 2, 2.0**63, 1e22, 1e100, 2.0**1000),
    *(6381956970095103 * 2.0**797, 2.0**1023, MOST, np.inf),
)
EDGES: np.ndarray = np.array([*_POSITIVE, *(-x for x in _POSITIVE), np.nan])
"""Zeros, infinities, nan, subnormals, ends of ranges, halves and whole numbers."""


def edge_grid(arity: int) -> list[np.ndarray]:
    """The edge cases, or all pairs of them."""
    return [x.ravel() for x in np.meshgrid(*([EDGES] * arity))]


@dataclass(frozen=True)
class Format:
    """A binary format: bits of the significand and exponents of its range."""

    dtype: type
    integer: type
    digits: int
    least: int
    greatest: int


FORMATS = {
    "float64": Format(np.float64, np.uint64, 53, -1074, 1024),
    "float32": Format(np.float32, np.uint32, 24, -149, 128),
}


def ulp_errors(name: str, operands: Iterable[np.ndarray], result: np.ndarray) -> np.ndarray:
    """Signed errors of ``result`` in ulp of the exact value; inf where one is nan and one is not.

    An infinite result counts as the power of two where the format ends.
    """
    form = FORMATS[result.dtype.name]
    oracle, end = ORACLES[name], gmpy2.exp2(form.greatest)
    errors = np.empty(result.size)
    columns = [np.ravel(x).tolist() for x in operands]
    with gmpy2.context(precision=PRECISION):
        for n, (value, *xs) in enumerate(zip(result.ravel().tolist(), *columns, strict=True)):
            exact = oracle(*xs)
            if exact.is_nan() or value != value:
                errors[n] = 0.0 if exact.is_nan() and value != value else math.inf
            elif value == exact:
                errors[n] = 0.0
            else:
                if exact.is_infinite() or abs(exact) > end:
                    exact = gmpy2.copy_sign(end, exact)
                if math.isinf(value):
                    value = gmpy2.copy_sign(end, gmpy2.mpfr(value))
                power = max(gmpy2.get_exp(exact) - form.digits if exact else form.least, form.least)
                errors[n] = (value - exact) * gmpy2.exp2(-min(power, form.greatest - form.digits))
    return errors


def samples(name: str, n: int, rng: np.random.Generator, dtype: str) -> list[np.ndarray]:
    """Operands for ``n`` samples: half random finite bit patterns, half interesting."""
    form, arity = FORMATS[dtype], ELEMENTARY[name].arity
    top = np.iinfo(form.integer).max
    patterns = rng.integers(0, top, (arity, n - n // 2), form.integer, endpoint=True)
    wide = patterns.view(form.dtype)
    wide = np.where(np.isfinite(wide), wide, form.dtype(1.5))
    near = interesting(name, n // 2, rng)
    with np.errstate(over="ignore", under="ignore"):
        return [np.concatenate([w, x.astype(form.dtype)]) for w, x in zip(wide, near, strict=True)]


def edge_failures(name: str, dtype: str) -> list[str]:
    """Edge cases that disagree with NumPy in kind or sign, or with MPFR by more than the limit."""
    row, form = ELEMENTARY[name], FORMATS[dtype]
    with np.errstate(all="ignore"):
        operands = [x.astype(form.dtype) for x in edge_grid(row.arity)]
        result = evaluate(name, *operands)
        expected = row.ufunc(*operands)
        errors = ulp_errors(name, operands, result)
    ordinary = np.isfinite(expected) & (expected != 0) & np.isfinite(result) & (result != 0)
    same = (result == expected) & (np.signbit(result) == np.signbit(expected))
    good = np.where(
        ordinary, np.abs(errors) <= LIMIT, same | (np.isnan(result) & np.isnan(expected))
    )
    # Where the exact result lies at the end of the range, NumPy may round to the other side.
    good |= np.isfinite(errors) & (np.abs(errors) <= LIMIT) & (result != 0) & ~np.isnan(result)
    return [
        f"{name}({', '.join(repr(float(x[i])) for x in operands)}) = {result[i]}, not {expected[i]}"
        for i in np.flatnonzero(~good)
    ]


def mpmath_gap(name: str, operands: list[np.ndarray], count: int) -> float:
    """Largest relative difference of MPFR and mpmath on the first and last samples."""
    gap = 0.0
    indices = [*range(count // 2), *range(-(count // 2), 0)]
    with gmpy2.context(precision=PRECISION), mpmath.workprec(PRECISION + 40):
        for i in indices:
            exact = ORACLES[name](*(float(x[i]) for x in operands))
            if exact.is_nan() or exact.is_infinite() or exact == 0:
                continue
            other = MPMATH[name](*(mpmath.mpf(float(x[i])) for x in operands))
            top, bottom = exact.as_integer_ratio()
            gap = max(gap, float(abs(other * int(bottom) / int(top) - 1)))
    return gap


def measure(name: str, dtype: str, n: int) -> dict[str, Any]:
    """Everything the report says of one function in one dtype."""
    rng = np.random.default_rng([n, *name.encode(), *dtype.encode()])
    operands = samples(name, n, rng, dtype)
    errors = np.abs(ulp_errors(name, operands, evaluate(name, *operands)))
    worst = int(np.argmax(errors))
    return {
        "max": float(errors[worst]),
        "where": ", ".join(repr(float(x[worst])) for x in operands),
        "mean": float(errors.mean()),
        "rounded": float((errors <= 0.5).mean()),
        "samples": len(errors),
        "edges": len(edge_grid(ELEMENTARY[name].arity)[0]),
        "failures": edge_failures(name, dtype),
        "gap": mpmath_gap(name, operands, 100) if dtype == "float64" else 0.0,
    }


def report(n: int, names: list[str]) -> str:
    """The report as Markdown."""
    lines, failures, gap = [], [], 0.0
    for dtype in FORMATS:
        lines += [
            f"\n## {dtype}\n",
            "| function | max ulp | at | mean ulp | correctly rounded | samples | edge cases |"
            + (" primitives |" if dtype == "float64" else ""),
            "|---|---|---|---|---|---|---|" + ("---|" if dtype == "float64" else ""),
        ]
        for name in names:
            start = time.perf_counter()
            m = measure(name, dtype, n)
            failures += m["failures"]
            gap = max(gap, m["gap"])
            passed = m["edges"] - len(m["failures"])
            lines.append(
                f"| {name} | {m['max']:.3f} | {m['where']} | {m['mean']:.3f} "
                f"| {100 * m['rounded']:.2f} % | {m['samples']:,} | {passed} of {m['edges']} |"
                + (f" {count_primitives(name)} |" if dtype == "float64" else "")
            )
            print(lines[-1], f"({time.perf_counter() - start:.0f} s)", flush=True)
    head = [
        "# Accuracy of the elementary functions\n",
        f"Generated by `python -m benchmarks.ulp --samples {n}`.\n",
        "Errors are in units in the last place of the exact result, computed by MPFR with "
        f"{PRECISION} bits; MPFR and mpmath agree to {gap:.1e} relative on a sample of each "
        "function. Half of the samples are random bit patterns over the whole range of the dtype, "
        "half lie in the range where the function is used or is hard. Edge cases are "
        f"{len(EDGES)} zeros, infinities, nans, subnormals, ends of ranges and halves (all pairs "
        "of them for two operands), checked against NumPy in kind and sign and against MPFR in "
        "value.\n",
        "Primitives: exact operations on the ordinary path, equal ones counted once, bit moves "
        "between float64 and int64 not counted; sin and cos of one angle together take "
        f"{count_primitives('sin', 'cos')}. A loop is counted with one pass.",
    ]
    tail = ["\n## Failures\n", *(f"- {line}" for line in failures)] if failures else []
    return "\n".join([*head, *lines, *tail]) + "\n"


def main() -> None:
    """Parse the command line and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100_000, help="samples per function")
    parser.add_argument("--only", nargs="*", default=list(ELEMENTARY), help="functions to measure")
    parser.add_argument("--output", type=Path, default=REPORT)
    arguments = parser.parse_args()
    text = report(arguments.samples, arguments.only)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(text)
    print(f"wrote {arguments.output}")


if __name__ == "__main__":
    main()
