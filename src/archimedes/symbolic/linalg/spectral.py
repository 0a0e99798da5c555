"""Eigenvalues of symmetric matrices, singular values, and what is made from them.

Legend: A = V diag(w) V^T with w ascending; A = U diag(s) V^T with s descending. Derivatives are
in closed form. Where two values are equal their vectors are arbitrary and jump with the matrix.
A function that does not depend on their choice (the root of a matrix, a sum over all values) has
derivatives there all the same, which ``graph/derivatives/spectral_derivatives.py`` finds; one
that does gets nan. Each of the equal values by itself has the slope of its own vector, one of its
subgradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from archimedes.errors import explained
from archimedes.symbolic.core.dispatch import floats
from archimedes.symbolic.core.registry import implements
from archimedes.symbolic.core.trace import trace_error
from archimedes.symbolic.linalg.checks import (
    MAX_SPECTRAL,
    check_square,
    check_stacked,
    over_stack,
)
from archimedes.symbolic.linalg.jacobi import singular, symmetric_eigen
from archimedes.symbolic.linalg.matrix_calls import call
from archimedes.symbolic.linalg.matrix_rules import MatrixFunction, Spectrum
from archimedes.symbolic.linalg.vector_turns import (
    EIGEN_TURNS,
    SINGULAR_TURNS,
    eigen_push,
    singular_push,
)

__all__ = ["SINGULAR", "check_size", "singular_function", "symmetric"]

EighResult = type(np.linalg.eigh(np.eye(1)))
SVDResult = type(np.linalg.svd(np.eye(1)))


def check_size(name: str, n: int) -> None:
    """Raise unless so many columns can be recorded."""
    if n > MAX_SPECTRAL:
        raise trace_error(
            f"np.linalg.{name} of {n} columns is too large to record (at most {MAX_SPECTRAL})",
            "Wrap the call in arc.callback, or use np.linalg.solve, qr or cholesky where they do.",
        )


# ---- symmetric eigenvalues -----------------------------------------------------------------------


def _eigenvalue_push(operands: Sequence[Any], results: Sequence[Any], rows: Any) -> Any:
    v = call(_EIGEN, operands[0])[1]
    return [[np.sum(v * (da @ v), axis=0)] for (da,) in rows]


_EIGEN = MatrixFunction(
    "eigh",
    partial(symmetric_eigen, vectors=True),
    eigen_push,
    spectrum=Spectrum("eigh", 0, (1,), EIGEN_TURNS),
)
_EIGENVALUES = MatrixFunction(
    "eigvalsh",
    partial(symmetric_eigen, vectors=False),
    _eigenvalue_push,
    spectrum=Spectrum("eigh", 0),
)


def symmetric(name: str, a: Any, uplo: str) -> Any:
    """Fill one triangle from the other, as NumPy, which reads only one."""
    (a,) = floats(a)
    check_square(a)
    if uplo.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    check_size(name, a.shape[-1])
    lower = np.tri(a.shape[-1], dtype=bool)
    first = a if uplo.upper() == "L" else a.mT
    return np.where(lower, first, first.mT)


@implements(np.linalg.eigh)
def _eigh(a: Any, UPLO: str = "L") -> Any:
    a = symmetric("eigh", a, UPLO)
    return EighResult(*over_stack(partial(call, _EIGEN), (2,), a))


@implements(np.linalg.eigvalsh)
def _eigvalsh(a: Any, UPLO: str = "L") -> Any:
    a = symmetric("eigvalsh", a, UPLO)
    return over_stack(lambda x: call(_EIGENVALUES, x)[0], (2,), a)


def _untraceable(name: str, what: str, remedy: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise trace_error(
            f"np.linalg.{name} cannot be traced: {what}", explained("eigenvectors", remedy)
        )

    return refuse


implements(np.linalg.eig)(
    _untraceable(
        "eig",
        "vectors of a general matrix may be complex",
        "Use np.linalg.eigh for a symmetric matrix, np.linalg.eigvals(a).real and .imag for the "
        "values alone, or wrap the call in arc.callback.",
    )
)
implements(np.linalg.matrix_rank)(
    _untraceable(
        "matrix_rank",
        "it is a whole number that jumps, meant for decisions while recording",
        "Count what is large enough: np.sum(np.linalg.svdvals(a) > tol).",
    )
)


# ---- singular values -----------------------------------------------------------------------------


def _singular_value_push(operands: Sequence[Any], results: Sequence[Any], rows: Any) -> Any:
    u, _, vt = call(SINGULAR[False], operands[0])
    return [[np.sum(u * (da @ vt.T), axis=0)] for (da,) in rows]


def singular_function(name: str, body: Callable[..., tuple[Any, ...]], family: str) -> Any:
    """Return the function of a matrix with these factors U, s and V^T."""
    spectrum = Spectrum(family, 1, (0, 2), SINGULAR_TURNS)
    return MatrixFunction(name, body, singular_push, spectrum=spectrum)


SINGULAR = {
    full: singular_function("svd", partial(singular, vectors=True, full=full), "svd")
    for full in (False, True)
}
_SINGULAR_VALUES = MatrixFunction(
    "svdvals",
    partial(singular, vectors=False),
    _singular_value_push,
    spectrum=Spectrum("svd", 0),
)


def _svd_matrix(a: Any, full: bool) -> tuple[Any, Any, Any]:
    if a.shape[0] >= a.shape[1]:
        return call(SINGULAR[full], a)
    u, s, vt = call(SINGULAR[full], a.T)
    return vt.T, s, u.T


@implements(np.linalg.svdvals)
def _svdvals(x: Any, /) -> Any:
    (x,) = floats(x)
    check_stacked(x)
    check_size("svdvals", min(x.shape[-2:]))
    tall = x if x.shape[-2] >= x.shape[-1] else x.mT
    return over_stack(lambda a: call(_SINGULAR_VALUES, a)[0], (2,), tall)


@implements(np.linalg.svd)
def _svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    (a,) = floats(a)
    check_stacked(a)
    if hermitian:
        a = symmetric("svd", a, "L")
    if not compute_uv:
        return _svdvals(a)
    check_size("svd", min(a.shape[-2:]))
    return SVDResult(*over_stack(partial(_svd_matrix, full=bool(full_matrices)), (2,), a))
