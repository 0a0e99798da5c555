"""erf, erfc, gamma, the logarithm of its size, digamma and polygamma.

Near zero ``erf(x) = x + x P(x**2)``; elsewhere ``erfc(x) = exp(-x**2) R(x)`` with the square as a
pair, and R a polynomial in ``t = (x - 3)/(x + 3)`` over ``1 + 2 x``.

gamma: up to 5 the argument is moved to ``2 + s`` with ``|s| <= 1/2``, where ``log gamma = s P(s)``;
the factors passed on the way are multiplied. Beyond, Stirling's formula with its exponent as a pair
(Abramowitz and Stegun 6.1.40, 6.1.15, 6.1.17, 6.3.5, 6.3.7, 6.3.18, 6.4.6, 6.4.7, 6.4.11).

Legend: ``k`` how far the argument is moved, ``s`` what is left, ``up`` and ``down`` the factors
that multiply and divide; ``r`` distance from the nearest integer.
"""

from __future__ import annotations

from math import factorial

from archimedes.graph.elementary.coefficients import polynomials
from archimedes.graph.elementary.exponential import exp, exp_of_pair, log
from archimedes.graph.elementary.pairs import fast_two_sum, polynomial, two_product, two_sum
from archimedes.graph.elementary.power import log_pair, pow
from archimedes.graph.elementary.primitives import INF, NAN, Primitives, Value
from archimedes.graph.elementary.trigonometric import cos, sin

NEAR = 0.848
"""erf by its own polynomial up to here: x**2 < 0.72."""
NEAR_TAIL = 0.46
"""erfc by its own formula from here, where 1 - erf would lose digits."""
LARGEST = 28.0
"""erfc is zero before this."""


def _near(p: Primitives, x: Value) -> Value:
    """erf(x) for |x| up to NEAR."""
    z = x * x
    return x + x * polynomial(z, z * z, polynomials()["erf"].c)


def _tail(p: Primitives, size: Value) -> Value:
    """erfc(size) for sizes from NEAR_TAIL."""
    u = p.where(size < LARGEST, p.where(size < NEAR_TAIL, 1.0, size), LARGEST)
    high, low = two_product(p, u, u)
    t = (u - 3.0) / (u + 3.0)
    size = exp_of_pair(p, -high, -low)
    return size * (polynomial(t, t * t, polynomials()["erfcx"].c) / (1.0 + 2.0 * u))


def erf(p: Primitives, x: Value) -> Value:
    """Error function."""
    size = p.abs(x)
    far = size > NEAR
    y = p.where(far, p.copysign(1.0 - _tail(p, size), x), _near(p, p.where(far, 0.0, x)))
    return p.where(x == 0.0, x, y)


def erfc(p: Primitives, x: Value) -> Value:
    """Complement of the error function: 1 - erf(x), accurate where that is small."""
    size = p.abs(x)
    tail = _tail(p, size)
    far = size > NEAR
    near = 1.0 - _near(p, p.where(far, 0.0, x))
    y = p.where(far, 2.0 - tail, near)
    return p.where(x > NEAR_TAIL, tail, y)


PI = 3.141592653589793
LARGE = 5.0
"""Stirling's formula from here."""
LOG_LIMIT = 2.5563481638716906e305
"""gammaln is infinite beyond."""
HALF_LOG_2PI = (float.fromhex("0x1.d67f1c864beb5p-1"), float.fromhex("-0x1.65b5a1b7ff5dfp-55"))
"""log(2 pi) / 2 as a pair."""
ROOT = (float.fromhex("0x1.762d86356be3fp+0"), float.fromhex("0x1.b86a722197829p-54"))
"""The positive zero of digamma as a pair."""


def _reduce_gamma(p: Primitives, x: Value) -> tuple[Value, ...]:
    """``(s P(s), k, up, down)`` for x from -1/2 to 5."""
    k = p.rint(x - 2.0)
    s = x - (2.0 + k)
    up = p.where(k > 0.0, x - 1.0, 1.0)
    up = up * p.where(k > 1.0, x - 2.0, 1.0) * p.where(k > 2.0, x - 3.0, 1.0)
    down = p.where(k < 0.0, x, 1.0) * p.where(k < -1.0, 1.0 + x, 1.0)
    return s * polynomial(s, s * s, polynomials()["log_gamma"].c), k, up, down


def _stirling(p: Primitives, x: Value) -> tuple[Value, Value]:
    """log gamma(x) as a pair, for x from 5."""
    lh, ll = log_pair(p, x)
    half = x - 0.5
    h, low = two_product(p, half, lh)
    low = low + half * ll
    h, e1 = two_sum(h, -x)
    h, e2 = two_sum(h, HALF_LOG_2PI[0])
    inverse = 1.0 / x
    z = inverse * inverse
    series = inverse * polynomial(z, z * z, polynomials()["stirling"].c)
    return fast_two_sum(h, ((low + e1) + (e2 + HALF_LOG_2PI[1])) + series)


def _sin_pi(p: Primitives, x: Value) -> tuple[Value, Value]:
    """``(sin(pi x), r)`` with the sign, for any x; r is x minus the nearest integer."""
    whole = p.rint(x)
    r = x - whole
    half = 0.5 * whole
    odd = p.floor(half) != half
    size = sin(p, PI * r)
    return p.where(odd, -size, size), r


def gamma(p: Primitives, x: Value) -> Value:
    """Gamma function."""
    size = p.abs(x)
    mirrored = x < -0.5
    a = p.where(mirrored, size, x)
    large = a >= LARGE
    log_near, _, up, down = _reduce_gamma(p, p.where(large, 2.0, a))
    near = exp(p, log_near) * up / down
    h, low = _stirling(p, p.where(large, p.where(a > 172.0, 172.0, a), LARGE))
    y = p.where(large, exp_of_pair(p, h, low), near)
    sine = _sin_pi(p, p.where(size < INF, size, 0.5))[0]
    y = p.where(mirrored, -(PI / (size * sine)) / y, y)
    pole = mirrored & (p.floor(x) == x)
    return p.where(pole | (x != x), NAN, y)


def gammaln(p: Primitives, x: Value) -> Value:
    """Logarithm of the size of the gamma function."""
    size = p.abs(x)
    mirrored = x < -0.5
    a = p.where(mirrored, size, x)
    large = a >= LARGE
    log_near, k, up, down = _reduce_gamma(p, p.where(large, 2.0, a))
    factor = log(p, p.abs(p.where(k > 0.0, up, down)))
    near = log_near + p.where(k > 0.0, factor, -factor)
    limited = p.where(a > LOG_LIMIT, LARGE, a)
    h, low = _stirling(p, p.where(large, limited, LARGE))
    y = p.where(large, h + low, near)
    y = p.where(a > LOG_LIMIT, INF, y)
    sine = _sin_pi(p, p.where(size < INF, size, 0.5))[0]
    y = p.where(mirrored, -log(p, size * (p.abs(sine) / PI)) - y, y)
    y = p.where(mirrored & (p.floor(x) == x), INF, y)
    return p.where(x == -INF, -INF, p.where(x != x, NAN, y))


def digamma(p: Primitives, x: Value) -> Value:
    """Derivative of the logarithm of the gamma function."""
    mirrored = x < 0.0
    a = p.where(mirrored, 1.0 - x, x)
    large = a >= 6.0
    u = p.where(large, 1.0, a)
    # Below 1 the argument is moved up by one, above 2 down; the difference from the root is exact.
    k = p.where(u < 1.0, -1.0, p.floor(u) - 1.0)
    s = u - (1.5 + k)
    y = polynomial(s, s * s, polynomials()["digamma_root"].c) * ((u - (ROOT[0] + k)) - ROOT[1])
    y = p.where(k < 0.0, y - 1.0 / u, y)
    for j in (1.0, 2.0, 3.0, 4.0):
        y = p.where(k >= j, y + 1.0 / (u - j), y)
    v = p.where(large, a, 6.0)
    z = 1.0 / (v * v)
    far = log(p, v) - (0.5 / v + z * polynomial(z, z * z, polynomials()["digamma_large"].c))
    y = p.where(large, p.where(a < INF, far, INF), y)
    turn = p.where(mirrored & (x > -INF), x, 0.25)
    angle = PI * (turn - p.rint(turn))
    y = p.where(mirrored, y - PI * (cos(p, angle) / sin(p, angle)), y)
    pole = mirrored & (p.floor(x) == x)
    return p.where(pole | (x != x), NAN, y)


FACTORIALS = tuple(float(factorial(n)) for n in range(11))
ORDERS = float(len(FACTORIALS) - 1)
"""Highest order of polygamma."""
_BERNOULLI = "1/6 -1/30 1/42 -1/30 5/66 -691/2730 7/6 -3617/510 43867/798 -174611/330"
_PAIRS = [map(int, b.split("/")) for b in _BERNOULLI.split()]
ASYMPTOTIC = tuple(n / (d * factorial(2 * k)) for k, (n, d) in enumerate(_PAIRS, 1))
"""Bernoulli numbers B_2k / (2k)!."""


def polygamma(p: Primitives, n: Value, x: Value) -> Value:
    """Derivative of digamma of order n, a whole number from 1 to 10; below zero up to 2."""
    mirrored = x <= 0.0
    a = p.where(mirrored, 1.0 - x, x)
    start = p.where(a < 25.0, a, 25.0)

    def is_unfinished(u: Value, total: Value, order: Value) -> Value:
        return u < 25.0

    def step(u: Value, total: Value, order: Value) -> tuple[Value, ...]:
        return u + 1.0, total + pow(p, u, -1.0 - order), order

    reached, total, _ = p.loop(is_unfinished, step, (start, start - start, n), 26)
    v = p.where(a < 25.0, reached, a)
    inverse = 1.0 / v
    z = inverse * inverse
    term = n * (n + 1.0) * z
    series = ASYMPTOTIC[0] * term
    for j, coefficient in enumerate(ASYMPTOTIC[1:], 1):
        term = term * ((n + 2.0 * j) * (n + (2.0 * j + 1.0))) * z
        series = series + coefficient * term
    index = p.to_int(p.where((n >= 1.0) & (n <= ORDERS), n, 1.0))
    # n! ((1/n + 1/(2 v)) / v**n + ... + sum 1 / (x + j)**(n+1)), of sign (-1)**(n+1)
    tail = pow(p, v, -n) * ((1.0 + 0.5 * n * inverse) + series) / n
    y = p.lookup(FACTORIALS, index) * (tail + total)
    half = 0.5 * n
    y = p.where(p.floor(half) == half, -y, y)
    sine, r = _sin_pi(p, p.where(x > -INF, x, 0.5))
    ratio = PI / sine
    second = y - 2.0 * ratio * ratio * (ratio * cos(p, PI * r) * p.copysign(1.0, sine * r))
    first = ratio * ratio - y
    y = p.where(mirrored, p.where(n == 1.0, first, p.where(n == 2.0, second, NAN)), y)
    y = p.where(mirrored & (p.floor(x) == x), p.where(n == 1.0, INF, NAN), y)
    return p.where((n >= 1.0) & (n <= ORDERS) & (p.floor(n) == n), y, NAN)
