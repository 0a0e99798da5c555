"""The reduction of huge angles in C: the graph's program (``graph/elementary/reduction.py``) as a
loop.

What is written from the graph has its 21 products of limbs one by one, in 64 bits, which takes
twice the flash; few programs ever reduce such an angle, all that have a sine carry it.
"""

from __future__ import annotations

from archimedes.backends.c.memory import Frame
from archimedes.backends.c.routines import Routine
from archimedes.graph.dtypes import F64, I64
from archimedes.graph.elementary.reduction import LIMBS, ORDINARY
from archimedes.graph.program import Graph
from archimedes.graph.regions import Switch

__all__ = ["HUGE_ANGLES", "huge_branch", "huge_routine"]

_NAME, _TABLE = "arc_huge_angle", "arc_two_over_pi"

_LINES = [", ".join(map(str, LIMBS[k : k + 9])) for k in range(0, len(LIMBS), 9)]

#: The helpers: the digits of 2/pi, and the function.
HUGE_ANGLES: dict[str, str] = {
    _TABLE: "\n".join(
        [
            "/* 2/pi in digits of 26 bits, behind four zeros. */",
            f"static const uint32_t {_TABLE}[{len(LIMBS)}] = {{",
            ",\n".join(f"    {line}" for line in _LINES),
            "};\n",
        ]
    ),
    _NAME: """\
/* An angle of 1e5 or more as a number of right angles and a rest, reduced[0] - reduced[1]: Payne
   and Hanek's method. */
static void arc_huge_angle(double x, double *reduced, int64_t *quadrant)
{
    const uint32_t mask = 67108863U;
    const int64_t bits = arc_bits(arc_fabs(x));
    const uint64_t one = UINT64_C(1) << 52;
    const uint64_t significand = ((uint64_t)bits & (one - 1)) | one;
    const uint32_t exponent = (uint32_t)(bits >> 52) - 997U;
    const uint32_t q = (exponent * 2521U) >> 16;
    const uint32_t s = exponent - 26U * q;
    const uint64_t low = (significand & mask) << s;
    const uint64_t high = ((significand >> 26) << s) + (low >> 26);
    const uint32_t limbs[3] = {(uint32_t)low & mask, (uint32_t)high & mask, (uint32_t)(high >> 26)};
    uint32_t digits[7];
    uint64_t sum = 0;
    for (uint32_t k = 7; k-- > 0;) {
        const uint32_t *const at = &arc_two_over_pi[q + k];
        for (uint32_t j = 0; j < 3; ++j) {
            sum += (uint64_t)limbs[j] * at[j];
        }
        digits[k] = (uint32_t)sum & mask;
        sum >>= 26;
    }
    const uint32_t up = digits[1] >> 25;
    const int64_t first = (int64_t)digits[1] - (int64_t)(up << 26);
    const double top = (double)(first * 67108864 + (int64_t)digits[2]) * 2.220446049250313e-16;
    const double middle =
        (double)(int64_t)(((uint64_t)digits[3] << 26) | digits[4]) * 4.930380657631324e-32;
    const double last = (double)digits[5] * 7.346839692639297e-40;
    const double fraction = top + middle;
    const double known = fraction - top;
    const double left = middle - known;
    const double rest = left + last;
    /* The fraction times pi/2, as an exact product and what it lacks. */
    const double upper = arc_from_bits(arc_bits(fraction) & (-INT64_C(134217728)));
    const double lower = fraction - upper;
    const double product = fraction * 1.5707963267948966;
    const double p1 = upper * 1.5707963109016418;
    const double p2 = upper * 1.5893254712295857e-08;
    const double p3 = lower * 1.5707963109016418;
    const double p4 = lower * 1.5893254712295857e-08;
    const double p5 = fraction * 6.123233995736766e-17;
    const double p6 = rest * 1.5707963267948966;
    const double error = (p1 - product) + p2 + p3 + p4;
    const double tail = error + (p5 + p6);
    const double sum_high = product + tail;
    const double sum_low = tail - (sum_high - product);
    const double angle = exponent < 1050U ? sum_high : ARC_NAN;
    const int64_t turns = (int64_t)digits[0] + (int64_t)up;
    const bool negative = x < 0.0;
    reduced[0] = negative ? -angle : angle;
    reduced[1] = negative ? sum_low : -sum_low;
    quadrant[0] = negative ? -turns : turns;
}
""",
}


def huge_branch(g: Graph) -> Graph | None:
    """Return the branch of an elementary function that reduces huge angles, if it has one."""
    for region in g.regions.values():
        if isinstance(region, Switch) and ORDINARY in g.value.values():
            return max(region.branches, key=lambda body: len(body.op))
    return None


def huge_routine() -> Routine:
    """Return how the function is called."""
    return Routine(
        name=_NAME,
        inputs=[(F64, [0])],
        outputs={F64: [0, 1], I64: [2]},
        given=[],
        made=[],
        by_value=True,
        result=None,
        frame=Frame(_NAME, in_struct=False),
    )
