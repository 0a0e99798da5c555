"""Minimax polynomials of the elementary programs.

Each was fitted with Remez' exchange algorithm in 70-digit arithmetic to the function named in its
row, with the weight that makes the error relative to the final result; the leading coefficients
were rounded to float64 first and the others refitted. ``bound`` holds for the rounded coefficients
and is checked against mpmath by the tests.
"""

from __future__ import annotations

from archimedes.lazy_dataclasses import lazy_dataclass

__all__ = [
    "ARCSIN",
    "ARCTAN",
    "CBRT",
    "COS",
    "EXP",
    "EXPM1",
    "LOG",
    "LOG1P",
    "SIN",
    "TANH",
    "Minimax",
]


@lazy_dataclass(frozen=True)
class Minimax:
    """A polynomial ``sum(c[i] x**i)`` close to ``target(x)`` on ``interval``, or a quotient.

    ``over`` are the coefficients of the polynomial below, where there is one.

    ``bound`` is the largest ``|weight(x) * (polynomial - target)|``; ``target`` and ``weight``
    are formulas in ``x`` that mpmath can evaluate.

    Example: ``COS.c[0]`` is close to 1/24.
    """

    target: str
    weight: str
    interval: tuple[float, float]
    bound: float
    c: tuple[float, ...]
    over: tuple[float, ...] = (1.0,)


EXP = Minimax(
    target="(expm1(x) - x)/x**2",
    weight="x**2/exp(x)",
    interval=(-0.34674, 0.34674),
    bound=2.0**-57.6,
    c=(
        0.5000000000000011,
        0.1666666666666665,
        0.04166666666653432,
        0.008333333333387522,
        0.0013888888941775441,
        0.00019841269679404485,
        2.480149531696244e-05,
        2.755746688620589e-06,
        2.76294229730733e-07,
        2.503008116681699e-08,
    ),
)
"""Tail of the exponential, ``|x| <= ln(2)/2``."""

EXPM1 = Minimax(
    target="(expm1(x) - x)/x**2",
    weight="x**2/expm1(x)",
    interval=(-0.34674, 0.34674),
    bound=2.0**-60.0,
    c=(
        0.5,
        0.16666666666666677,
        0.04166666666666651,
        0.008333333333321653,
        0.0013888888888962565,
        0.00019841269886076014,
        2.4801587172286235e-05,
        2.7557244251849705e-06,
        2.7557402735255335e-07,
        2.5109025218065226e-08,
        2.087534057019392e-09,
    ),
)
"""The same with an error relative to expm1, for functions that vanish at zero."""

SIN = Minimax(
    target="(sin(sqrt(x)) - sqrt(x))/sqrt(x)**3",
    weight="x",
    interval=(1e-12, 0.6174),
    bound=2.0**-57.9,
    c=(
        -0.16666666666666632,
        0.008333333333322472,
        -0.0001984126982983572,
        2.755731369736586e-06,
        -2.5050758495181807e-08,
        1.5896796763347028e-10,
    ),
)
"""Tail of the sine in the squared argument, argument up to pi/4."""

COS = Minimax(
    target="(cos(sqrt(x)) - 1 + x/2)/x**2",
    weight="x**2",
    interval=(1e-12, 0.6174),
    bound=2.0**-63.8,
    c=(
        0.0416666666666666,
        -0.0013888888888874457,
        2.4801587289653458e-05,
        -2.7557314394102543e-07,
        2.0875728149685315e-09,
        -1.1359867310740032e-11,
    ),
)
"""Tail of the cosine in the squared argument, argument up to pi/4."""

LOG = Minimax(
    target="(log1p(sqrt(x)) - log1p(-sqrt(x)) - 2*sqrt(x))/sqrt(x)**3",
    weight="x/2",
    interval=(1e-12, 0.02949),
    bound=2.0**-59.4,
    c=(
        0.6666666666666735,
        0.39999999999408686,
        0.28571428743934413,
        0.22222198395689946,
        0.18183574423988402,
        0.15313771666312068,
        0.14798932127541103,
    ),
)
"""Tail of ``log((1+s)/(1-s))`` in ``x = s**2``, ``s`` up to ``3 - 2 sqrt(2)``."""

LOG1P = Minimax(
    target="(log1p(x) - x + x**2/2)/x**3",
    weight="x**2",
    interval=(-0.0079, 0.0079),
    bound=2.0**-69.4,
    c=(
        0.3333333333333333,
        -0.2500000000000061,
        0.20000000000001794,
        -0.1666666661578409,
        0.14285714203365804,
        -0.1250127947707472,
        0.11112584905760593,
    ),
)
"""Tail of the logarithm near 1, for the double-double logarithm of pow."""

ARCTAN = Minimax(
    target="(atan(sqrt(x)) - sqrt(x))/sqrt(x)**3",
    weight="x",
    interval=(1e-12, 0.2501),
    bound=2.0**-57.8,
    c=(
        -0.33333333333332993,
        0.19999999999905557,
        -0.14285714276576714,
        0.11111110667112925,
        -0.09090896415614147,
        0.07692076374147461,
        -0.06663833882294865,
        0.05858445287465119,
        -0.051226131349780414,
        0.04188100716713035,
        -0.027459034719881648,
        0.010132734841609847,
    ),
)
"""Tail of the arctangent in the squared argument, argument up to 1/2."""

ARCSIN = Minimax(
    target="(asin(sqrt(x)) - sqrt(x))/sqrt(x)**3",
    weight="x",
    interval=(1e-12, 0.2501),
    bound=2.0**-59.4,
    c=(
        0.16666666666666763,
        0.0749999999997012,
        0.04464285717527047,
        0.030381942675914375,
        0.022372215890135334,
        0.01735159575680035,
        0.013981015691532369,
        0.011397314847263033,
        0.010789205630192759,
        0.003672600343975106,
        0.021789680957046847,
        -0.021115406817018543,
        0.032701371707082864,
    ),
)
"""Tail of the arcsine in the squared argument, argument up to 1/2."""

CBRT = Minimax(
    target="cbrt(x)",
    weight="1/cbrt(x)",
    interval=(1.0, 8.0),
    bound=2.0**-7.5,
    c=(0.6816775374971663, 0.36453449814478994, -0.04331140408093904, 0.002313289414993425),
)
"""First guess of the cube root of a significand."""

TANH = Minimax(
    target="(tanh(sqrt(x)) - sqrt(x))/sqrt(x)**3",
    weight="sqrt(x)**3/tanh(sqrt(x))",
    interval=(1e-12, 0.36),
    bound=2.0**-60.7,
    c=(-1613.9038016499362, -99.24976022905375, -0.9643843017852909),
    over=(4841.711404949809, 2234.4338426670656, 112.7705577427694, 1.0),
)
"""Tail of the hyperbolic tangent in the squared argument, argument up to 0.6.

The first coefficients are -1 to 3 without rounding; below, the last one is 1."""
