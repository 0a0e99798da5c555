"""Special functions, complex results, and derivatives where formulas break down."""

from __future__ import annotations

import cmath
import math

import numpy as np
import scipy.special

import archimedes as arc
from archimedes import special
from archimedes.errors import TraceError
from tests.misuse.catalogue import entry

X = np.array([0.5, -1.5, 2.0, 0.25])
SQUARE = np.array([[0.0, 1.0], [-4.0, -0.4]])
PAIR = np.array([[1.0, 0.0], [0.0, 1.0]])


# ---- special functions ---------------------------------------------------------------------------


@entry("special functions", error=TraceError, says=["arc.special.erf"])
def erf_of_the_math_module(run):
    return run(lambda x: math.erf(x))(0.5)


@entry("special functions", error=TraceError, says=["arc.special"])
def gamma_of_the_math_module(run):
    return run(lambda x: math.gamma(x) + math.lgamma(x))(2.5)


@entry("special functions", error=TraceError, says=["np.sin(x)"])
def a_function_of_the_cmath_module(run):
    return run(lambda x: cmath.exp(x).real)(0.5)


@entry("special functions")
def ufuncs_of_scipy(run):
    return run(lambda x: (scipy.special.erf(x), scipy.special.gammaln(x), scipy.special.psi(x)))(X)


@entry("special functions")
def a_ufunc_of_scipy_with_out(run):
    def f(x):
        out = np.zeros(4)
        scipy.special.erf(x, out=out)
        return out

    return run(f)(X)


@entry("special functions")
def whole_numbers_in_gamma(run):
    return run(lambda n: special.gamma(n))(np.arange(1, 6))


@entry("special functions", error=TraceError, says=["arc.special", "arc.callback"])
def a_ufunc_without_a_program(run):
    return run(lambda x: scipy.special.j0(x))(X)


@entry("special functions")
def a_list_with_a_traced_part(run):
    return run(lambda x: special.erf([x[0], 1.0, x[1]]))(X)


@entry("special functions")
def poles_of_gamma(run):
    f = run(lambda x: (special.gamma(x), special.gammaln(x), special.digamma(x)))
    return f(np.array([0.0, -0.0, -1.0, -7.0, np.inf, np.nan]))


@entry("special functions", error=TraceError, says=["static"])
def a_traced_order(run):
    return run(lambda n: special.polygamma(n, 2.0))(1)


@entry("special functions", error=ValueError, eager_error=ValueError, says=["0 to 10"], line=False)
def an_order_that_is_no_whole_number(run):
    return run(lambda x: special.polygamma(1.5, x))(2.0)


# ---- complex results -----------------------------------------------------------------------------


@entry("complex results")
def the_power_of_a_spectrum(run):
    return run(lambda x: np.abs(np.fft.rfft(x)) ** 2)(X)


@entry("complex results")
def there_and_back(run):
    return run(lambda x: np.fft.irfft(np.fft.rfft(x), len(x)))(X)


@entry("complex results")
def a_filter_that_writes_into_a_spectrum(run):
    def f(x):
        z = np.fft.rfft(x)
        z[1:] = 0
        return np.fft.irfft(z, len(x))

    return run(f)(X)


@entry("complex results")
def a_derivative_by_a_spectrum(run):
    k = 2j * np.pi * np.fft.rfftfreq(4)
    return run(lambda x: np.fft.irfft(k * np.fft.rfft(x), 4))(X)


@entry("complex results")
def parts_of_a_spectrum(run):
    return run(lambda x: (np.real(np.fft.fft(x)), np.fft.fft(x).imag, abs(np.fft.fft(x)[1])))(X)


@entry("complex results")
def a_transform_of_whole_numbers(run):
    return run(lambda n: np.fft.rfft(n).real)(np.arange(6))


@entry("complex results", error=TraceError, says=[".real", ".imag"], line=False)
def a_spectrum_as_a_result(run):
    return run(lambda x: np.fft.rfft(x))(X)


@entry("complex results", error=TraceError, says=[".real"])
def the_exponential_of_a_spectrum(run):
    return run(lambda x: np.exp(np.fft.rfft(x)).real)(X)


@entry("complex results", error=TraceError, says=[".real"])
def a_comparison_with_a_spectrum(run):
    return run(lambda x: np.where(np.fft.rfft(x) == 0, 1.0, 2.0))(X)


@entry("complex results", error=TraceError, says=[".real"], eager_error=ValueError)
def a_spectrum_as_a_truth(run):
    return run(lambda x: 1.0 if np.fft.rfft(x) else 2.0)(X)


@entry("complex results", error=TraceError, says=[".real"])
def a_power_of_a_spectrum(run):
    return run(lambda x: (np.fft.rfft(x) ** 3).real)(X)


@entry("complex results", error=TraceError, says=["arc.callback"])
def a_transform_over_two_axes(run):
    return run(lambda x: np.fft.fft2(np.outer(x, x)).real)(X)


@entry("complex results", error=TraceError, says=["small primes"])
def a_transform_of_a_large_prime_size(run):
    return run(lambda x: np.fft.rfft(x, 10007).real)(X)


@entry("complex results")
def the_margin_of_stability(run):
    return run(lambda a: np.max(np.linalg.eigvals(a).real))(SQUARE)


@entry("complex results")
def frequencies_of_oscillation(run):
    return run(lambda a: np.max(np.abs(np.linalg.eigvals(a).imag)))(SQUARE)


@entry("complex results", error=TraceError, says=["np.linalg.eigvals(a).real"])
def vectors_of_a_general_matrix(run):
    return run(lambda a: np.linalg.eig(a)[0].real)(SQUARE)


@entry("complex results", error=TraceError, says=[".real"], line=False)
def eigenvalues_as_a_result(run):
    return run(lambda a: np.linalg.eigvals(a))(SQUARE)


@entry("complex results", error=TraceError, says=["float64"])
def a_complex_argument(run):
    return run(lambda x: (x * 1j).imag)(X)


# ---- derivatives where formulas break down -------------------------------------------------------


@entry("derivatives")
def a_tie_of_logaddexp(run):
    return run(lambda x: arc.grad(np.logaddexp)(x, x))(0.0)


@entry("derivatives")
def the_root_of_a_matrix_with_equal_values(run):
    def root(a):
        w, v = np.linalg.eigh(a)
        return (v * np.sqrt(w)) @ v.T

    return run(lambda a: arc.jac(root)(a))(PAIR)


@entry("derivatives")
def vectors_of_equal_values(run):
    return run(lambda a: np.isnan(arc.jac(lambda x: np.linalg.eigh(x)[1])(a)).any())(PAIR)


@entry("derivatives")
def a_singular_determinant(run):
    return run(lambda a: arc.grad(np.linalg.det)(a))(np.ones((5, 5)))


@entry("derivatives")
def a_remainder_whose_quotient_rounds_up(run):
    return run(lambda a, b: arc.grad(lambda x, y: x % y, argnums=1)(a, b))(1.0, 0.1)


@entry("derivatives")
def an_exponent_of_zero(run):
    return run(lambda p: arc.hess(lambda x: x[0] ** x[1])(p))(np.array([3.0, 0.0]))


@entry("derivatives")
def a_saturated_tanh(run):
    return run(lambda x: arc.grad(np.tanh)(x))(20.0)


@entry("derivatives")
def a_tiny_arctan2(run):
    return run(lambda y, x: arc.grad(np.arctan2)(y, x))(1e-200, 1e-200)


@entry("derivatives")
def a_whole_multiple(run):
    return run(lambda x: (arc.grad(lambda v: v % 2.0)(x), arc.grad(lambda v: np.modf(v)[0])(x)))(
        -4.0
    )
