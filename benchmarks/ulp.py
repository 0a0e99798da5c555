"""Accuracy of the elementary and special functions against MPFR and mpmath: writes docs/ulp.md.

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
import scipy.special

from archimedes.graph.dtypes import F64
from archimedes.graph.elementary.table import PROGRAMS, evaluate
from archimedes.graph.expand import program
from archimedes.graph.ops import REGION, TABLE
from archimedes.graph.passes import inline
from archimedes.graph.program import Graph
from archimedes.graph.regions import Switch

PRECISION = 140
"""Bits of the reference results."""
REPORT = Path(__file__).resolve().parent.parent / "docs" / "ulp.md"


@dataclass(frozen=True)
class Accuracy:
    """How the accuracy of a function is measured, and what is promised.

    ``mpfr`` and ``mpmath`` are two implementations of it in any precision. ``ranges`` are where it
    is used or is hard: (low, high), or (low, high, low, high) for two operands. ``ulps`` is the
    largest error promised for float64. ``everywhere``: the promise holds for all floats, and half
    of the samples are random bit patterns.
    """

    mpfr: Callable[..., Any]
    mpmath: Callable[..., Any]
    ranges: tuple[tuple[float, ...], ...]
    ulps: float = 1.0
    everywhere: bool = True
    near_multiples: bool = False


def _psi(n: float, x: float) -> Any:
    """The polygamma function, which MPFR does not have."""
    with mpmath.workprec(PRECISION + 60):
        return gmpy2.mpfr(mpmath.nstr(mpmath.psi(int(n), mpmath.mpf(x)), 60))


_ANGLES = ((-10.0, 10.0), (-1e5, 1e5), (-0.8, 0.8))
_LARGE = ((-1.0, 1.0), (-5.0, 5.0), (-712.0, 712.0))
_AROUND_ONE = ((0.5, 2.0), (0.0, 1e3), (0.99, 1.01))

#: Every function of the table needs a row here: ``tests/elementary/test_accuracy.py`` asks for it.
ACCURACY: dict[str, Accuracy] = {
    "sin": Accuracy(gmpy2.sin, mpmath.sin, _ANGLES, near_multiples=True),
    "cos": Accuracy(gmpy2.cos, mpmath.cos, _ANGLES, near_multiples=True),
    "tan": Accuracy(gmpy2.tan, mpmath.tan, _ANGLES, near_multiples=True),
    "arcsin": Accuracy(gmpy2.asin, mpmath.asin, ((-1.0, 1.0), (0.45, 0.55), (0.99, 1.0))),
    "arccos": Accuracy(
        gmpy2.acos, mpmath.acos, ((-1.0, 1.0), (0.45, 0.55), (0.99, 1.0), (-1.0, -0.99))
    ),
    "arctan": Accuracy(gmpy2.atan, mpmath.atan, ((-1.0, 1.0), (-10.0, 10.0), (0.45, 0.55))),
    "arctan2": Accuracy(
        gmpy2.atan2,
        mpmath.atan2,
        ((-1.0, 1.0, -1.0, 1.0), (-1.0, 1.0, -1e-3, 1e-3), (0.5, 0.55, 1.0, 1.0)),
    ),
    "sinh": Accuracy(gmpy2.sinh, mpmath.sinh, _LARGE),
    "cosh": Accuracy(gmpy2.cosh, mpmath.cosh, _LARGE),
    "tanh": Accuracy(gmpy2.tanh, mpmath.tanh, ((-1.0, 1.0), (-5.0, 5.0), (-22.0, 22.0))),
    "arcsinh": Accuracy(gmpy2.asinh, mpmath.asinh, ((-1.0, 1.0), (-10.0, 10.0))),
    "arccosh": Accuracy(gmpy2.acosh, mpmath.acosh, ((1.0, 1.1), (1.0, 10.0), (1.0, 1.0 + 1e-6))),
    "arctanh": Accuracy(gmpy2.atanh, mpmath.atanh, ((-1.0, 1.0), (-0.1, 0.1), (0.99, 1.0))),
    "exp": Accuracy(gmpy2.exp, mpmath.exp, ((-1.0, 1.0), (-746.0, 710.0), (-746.0, -700.0))),
    "exp2": Accuracy(
        gmpy2.exp2,
        lambda x: mpmath.mpf(2) ** x,
        ((-1.0, 1.0), (-1076.0, 1025.0), (-1076.0, -1000.0)),
    ),
    "exp10": Accuracy(
        gmpy2.exp10,
        lambda x: mpmath.mpf(10) ** x,
        ((-1.0, 1.0), (-324.0, 308.5), (-324.0, -300.0)),
    ),
    "expm1": Accuracy(gmpy2.expm1, mpmath.expm1, ((-1.0, 1.0), (-5.0, 5.0), (-40.0, 710.0))),
    "log": Accuracy(gmpy2.log, mpmath.log, _AROUND_ONE),
    "log2": Accuracy(gmpy2.log2, lambda x: mpmath.log(x) / mpmath.log(2), _AROUND_ONE),
    "log10": Accuracy(gmpy2.log10, mpmath.log10, _AROUND_ONE),
    "log1p": Accuracy(gmpy2.log1p, mpmath.log1p, ((-1.0, 1.0), (-0.01, 0.01), (0.0, 1e3))),
    "pow": Accuracy(
        lambda x, y: gmpy2.mpfr(x) ** gmpy2.mpfr(y),
        mpmath.power,
        ((0.0, 2.0, -1000.0, 1000.0), (0.0, 100.0, -50.0, 50.0), (0.99, 1.01, -7e4, 7e4)),
    ),
    "cbrt": Accuracy(
        gmpy2.cbrt,
        lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
        ((-8.0, 8.0), (1.0, 8.0)),
    ),
    "hypot": Accuracy(
        gmpy2.hypot,
        mpmath.hypot,
        ((-1.0, 1.0, -1.0, 1.0), (-1.0, 1.0, -1e-8, 1e-8), (3.0, 5.0, 3.0, 5.0)),
    ),
    "fmod": Accuracy(
        gmpy2.fmod,
        lambda x, y: mpmath.sign(x) * mpmath.fmod(abs(x), abs(y)),
        ((-10.0, 10.0, -1.0, 1.0), (-1e9, 1e9, -1.0, 1.0)),
        ulps=0.0,
    ),
    "erf": Accuracy(gmpy2.erf, mpmath.erf, ((-6.0, 6.0), (-1.0, 1.0), (0.8, 0.9)), ulps=1.2),
    "erfc": Accuracy(
        gmpy2.erfc, mpmath.erfc, ((-6.0, 26.5), (0.0, 1.0), (0.4, 0.9)), ulps=4.0, everywhere=False
    ),
    "gamma": Accuracy(
        gmpy2.gamma,
        mpmath.gamma,
        ((0.0, 8.0), (8.0, 170.0), (0.0, 1e-3), (-6.0, 0.0), (-160.0, -6.0)),
        ulps=4.0,
        everywhere=False,
    ),
    "gammaln": Accuracy(
        lambda x: gmpy2.lgamma(x)[0],
        mpmath.loggamma,
        ((0.0, 8.0), (8.0, 170.0), (0.0, 1e300), (1.0 - 1e-6, 1.0 + 1e-6)),
        ulps=7.0,
        everywhere=False,
    ),
    "digamma": Accuracy(
        gmpy2.digamma,
        lambda x: mpmath.psi(0, x),
        ((0.0, 8.0), (8.0, 170.0), (0.0, 1e300), (1.46162, 1.46164)),
        ulps=8.0,
        everywhere=False,
    ),
    "polygamma": Accuracy(
        _psi,
        lambda n, x: mpmath.psi(int(n), x),
        ((1.0, 1.0, 0.0, 40.0), (2.0, 2.0, 0.0, 40.0), (6.0, 6.0, 0.0, 40.0)),
        ulps=8.0,
        everywhere=False,
    ),
}


def _near_multiples(n: int, rng: np.random.Generator) -> np.ndarray:
    """Floats within a few ulp of multiples of pi/2."""
    multiples = rng.integers(1, 1 << rng.integers(2, 40, n)) * (np.pi / 2)
    return multiples + rng.integers(-2, 3, n) * np.spacing(multiples)


def interesting(name: str, n: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Operands for ``n`` samples where the function is used or is hard."""
    row = ACCURACY[name]
    boxes = np.array(row.ranges)[rng.integers(len(row.ranges), size=n)]
    low, high = boxes[:, 0::2], boxes[:, 1::2]
    columns = list((low + rng.random(low.shape) * (high - low)).T)
    if row.near_multiples:
        columns[0][: n // 4] = _near_multiples(n // 4, rng)
    return columns


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
    oracle, end = ACCURACY[name].mpfr, gmpy2.exp2(form.greatest)
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
    """Operands for ``n`` samples: half random finite bit patterns (or none), half interesting."""
    form, row = FORMATS[dtype], ACCURACY[name]
    count = n - n // 2 if row.everywhere else 0
    top = np.iinfo(form.integer).max
    patterns = rng.integers(0, top, (PROGRAMS[name].arity, count), form.integer, endpoint=True)
    anywhere = patterns.view(form.dtype)
    anywhere = np.where(np.isfinite(anywhere), anywhere, form.dtype(1.5))
    near = interesting(name, n - count, rng)
    with np.errstate(over="ignore", under="ignore"):
        return [np.concatenate([a, x.astype(form.dtype)]) for a, x in zip(anywhere, near)]


def edge_failures(name: str, dtype: str) -> list[str]:
    """Edge cases that disagree with NumPy (or SciPy) in kind or sign, or with MPFR in value."""
    row, form, limit = PROGRAMS[name], FORMATS[dtype], max(ACCURACY[name].ulps, 1.0)
    with np.errstate(all="ignore"):
        operands = [x.astype(form.dtype) for x in edge_grid(row.arity)]
        result = evaluate(name, *operands)
        expected = (row.ufunc or getattr(scipy.special, name))(*operands)
        errors = ulp_errors(name, operands, result)
    ordinary = np.isfinite(expected) & (expected != 0) & np.isfinite(result) & (result != 0)
    same = (result == expected) & (np.signbit(result) == np.signbit(expected))
    good = np.where(
        ordinary, np.abs(errors) <= limit, same | (np.isnan(result) & np.isnan(expected))
    )
    # Where the exact result lies at the end of the range, NumPy may round to the other side.
    good |= np.isfinite(errors) & (np.abs(errors) <= limit) & (result != 0) & ~np.isnan(result)
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
            exact = ACCURACY[name].mpfr(*(float(x[i]) for x in operands))
            if exact.is_nan() or exact.is_infinite() or exact == 0:
                continue
            other = ACCURACY[name].mpmath(*(mpmath.mpf(float(x[i])) for x in operands))
            top, bottom = exact.as_integer_ratio()
            gap = max(gap, float(abs(other * int(bottom) / int(top) - 1)))
    return gap


#: Not counted among the primitives: inputs, constants and moves between registers.
FREE = ("const", "input", "out", "bits", "from_bits", "i64")


def count_primitives(*names: str) -> int:
    """Number of different primitives on the ordinary path of functions of the same operands.

    Example: ``count_primitives("sin", "cos")`` counts what they share once.
    """
    g = Graph.with_inputs([F64] * max(PROGRAMS[name].arity for name in names))
    operands = list(g.inputs)
    g.outputs = [i for n in names for i in inline(g, program(n, F64), operands)]
    return _count_nodes(g)


def _count_nodes(g: Graph) -> int:
    """Count the nodes of a graph; of a branch those of its ordinary side, of a loop one pass."""
    nodes = sum(g.op[i] != REGION and TABLE[g.op[i]].name not in FREE for i in g.live())
    regions = g.regions.values()
    bodies = [b for r in regions for b in (r.bodies[:1] if isinstance(r, Switch) else r.bodies)]
    return nodes + sum(map(_count_nodes, bodies))


def measure(name: str, dtype: str, n: int) -> dict[str, Any]:
    """Everything the report says of one function in one dtype."""
    rng = np.random.default_rng([n, *name.encode(), *dtype.encode()])
    operands = samples(name, n, rng, dtype)
    errors = np.abs(ulp_errors(name, operands, evaluate(name, *operands)))
    worst, everywhere = int(np.argmax(errors)), ACCURACY[name].everywhere
    return {
        "max": float(errors[worst]),
        "where": ", ".join(repr(float(x[worst])) for x in operands),
        "mean": float(errors.mean()),
        "rounded": float((errors <= 0.5).mean()),
        "samples": len(errors),
        "edges": len(edge_grid(PROGRAMS[name].arity)[0]) if everywhere else 0,
        "failures": edge_failures(name, dtype) if everywhere else [],
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
            edges = f"{m['edges'] - len(m['failures'])} of {m['edges']}" if m["edges"] else "-"
            lines.append(
                f"| {name} | {m['max']:.3f} | {m['where']} | {m['mean']:.3f} "
                f"| {100 * m['rounded']:.2f} % | {m['samples']:,} | {edges} |"
                + (f" {count_primitives(name)} |" if dtype == "float64" else "")
            )
            print(lines[-1], f"({time.perf_counter() - start:.0f} s)", flush=True)
    head = [
        "# Accuracy of the elementary functions\n",
        f"Generated by `python -m benchmarks.ulp --samples {n}`.\n",
        "Errors are in units in the last place of the exact result, computed by MPFR with "
        f"{PRECISION} bits; MPFR and mpmath agree to {gap:.1e} relative on a sample of each "
        "function. Half of the samples are random bit patterns over the whole range of the dtype, "
        "half lie in the range where the function is used or is hard (all of them for functions "
        "whose promise does not hold everywhere). Edge cases are "
        f"{len(EDGES)} zeros, infinities, nans, subnormals, ends of ranges and halves (all pairs "
        "of them for two operands), checked against NumPy or SciPy in kind and sign and against "
        "MPFR in value.\n",
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
    parser.add_argument("--only", nargs="*", default=list(PROGRAMS), help="functions to measure")
    parser.add_argument("--output", type=Path, default=REPORT)
    arguments = parser.parse_args()
    text = report(arguments.samples, arguments.only)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(text)
    print(f"wrote {arguments.output}")


if __name__ == "__main__":
    main()
