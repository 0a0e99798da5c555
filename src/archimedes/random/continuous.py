"""Draws of real numbers: uniform, normal, exponential, multivariate normal.

Each number takes one 64-bit word. Parameters act on standard numbers by a formula, which is what
derivatives with respect to them go through. Large draws are recorded as maps over the words.

Normal numbers are quantiles, in plain NumPy, so that they have the same bits on every machine.
Source: M. J. Wichura, Algorithm AS 241: The percentage points of the normal distribution, Applied
Statistics 37(3), 1988, routine PPND16 (relative accuracy about 1e-16). Three rational functions:
one for the middle, two for the tails in r = sqrt(-log(p)).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from importlib import resources
from tomllib import loads
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import check_that
from archimedes.function import compile, vmap
from archimedes.random import arguments
from archimedes.random.arguments import Shape, as_dtype, check_key, result_shape
from archimedes.random.keys import block, in_pairs, mask, random_words, shift_right

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from archimedes.typing import Array, ArrayLike, Scalar

__all__ = ["exponential", "multivariate_normal", "normal", "uniform"]

_text = resources.files("archimedes.random").joinpath("normal_quantile.toml").read_text("utf-8")
#: Coefficients of rising powers, numerator and denominator, for each part of the range.
AS241 = loads(_text)


def _rational(part: str, x: Scalar) -> Scalar:
    above, below = (reduce(lambda value, c: value * x + c, reversed(row)) for row in AS241[part])
    return above / below


def normal_quantile(p: Scalar) -> Any:
    """Return z with P(Z <= z) = p for a standard normal Z; `p` any shape, 0 < p < 1.

    >>> float(normal_quantile(0.975).round(6))
    1.959964
    """
    q = p - 0.5
    middle = np.abs(q) <= 0.425
    near = q * _rational("centre", 0.180625 - q * q)
    # Where the middle applies, the tails see a number that they can digest.
    smaller = np.where(middle, 0.075, np.minimum(p, 1.0 - p))
    r = np.sqrt(-np.log(smaller))
    outside = np.where(r <= 5.0, _rational("tail", r - 1.6), _rational("far_tail", r - 5.0))
    return np.where(middle, near, np.where(q < 0.0, -outside, outside))


def _uniform_of(word: Array, dtype: np.dtype) -> Array:
    """Return numbers in [0, 1): the upper 53 (or 24) bits, as NumPy makes them."""
    if dtype == np.float64:
        return shift_right(word, 11) * 2.0**-53
    return shift_right(word, 40).astype(np.float32) * np.float32(2.0**-24)


#: In one step from key to numbers, by dtype.
_uniforms = {
    dtype: vmap(
        lambda key, index, dtype=dtype: _uniform_of(block(key, index), dtype),
        in_axes=(None, 0),
        name=f"uniform_{dtype}",
    )
    for dtype in (np.dtype(np.float64), np.dtype(np.float32))
}


def _smaller_share(word: Array) -> Array:
    """Return the centre of one of 2^63 cells of (0, 1/2); the sign bit is not used."""
    return ((word & mask(63)).astype(np.float64) + 0.5) * 2.0**-64


def _normal_of(word: Array) -> Array:
    # The sign bit chooses a side and the others a share of it: both tails are equally fine.
    z = normal_quantile(_smaller_share(word))
    return np.where(word < 0, z, -z)


def _exponential_of(word: Array) -> Array:
    # Again two halves, so that numbers near zero are as fine as those of the tail.
    share = _smaller_share(word)
    return np.where(word < 0, -np.log(share), -np.log1p(-share))


_normals = vmap(_normal_of, name="normal_of_words")
_exponentials = vmap(_exponential_of, name="exponential_of_words")


def _standard(
    of_words: Callable[[Array], Array], key: Array, shape: tuple[int, ...], dtype: np.dtype
) -> Array:
    """Return standard numbers made from words one by one, in the same program everywhere."""
    flat = of_words(random_words(key, shape).reshape(-1))
    return flat.reshape(shape).astype(dtype)[()]


def uniform(
    key: Array,
    shape: Shape | None = None,
    low: ArrayLike = 0.0,
    high: ArrayLike = 1.0,
    dtype: DTypeLike = np.float64,
) -> Array:
    """Return uniformly distributed numbers in [low, high).

    Standard numbers are multiples of 2^-53, in float32 of 2^-24. As in NumPy, rounding of ``low +
    (high - low) u`` may give `high` itself.

    Parameters
    ----------
    key : array (2,)
        Random key. Never use the same key for two draws that should be independent.
    shape : int or tuple of int, optional
        Shape of the result. By default the shape that the other parameters broadcast to.
    low : array_like, optional
        Lower limit, 0 by default.
    high : array_like, optional
        Upper limit, 1 by default.
    dtype : dtype, optional
        np.float64 (default) or np.float32.

    Returns
    -------
    array
        The draws. Inside a compiled function, limits in the wrong order give nan.

    Raises
    ------
    ValueError
        `low` is above `high`.

    Examples
    --------
    >>> from archimedes.random import key
    >>> uniform(key(0), 3).round(4)
    array([0.7606, 0.4356, 0.7303])
    """
    what = "arc.random.uniform"
    key, dtype = check_key(key, what), arguments.check_dtype(dtype, what)
    if type(low) is type(high) is float and (low, high) == (0.0, 1.0):
        return in_pairs(_uniforms[dtype], key, result_shape(shape, what))
    low, high = as_dtype(low, dtype), as_dtype(high, dtype)
    shape = result_shape(shape, what, low=low, high=high)
    with np.errstate(over="ignore", invalid="ignore"):
        span = high - low
    words = f"{what}: high - low must be finite and not negative"
    span = arguments.check_parameter(span, (span >= 0.0) & (span < np.inf), words)
    return low + span * in_pairs(_uniforms[dtype], key, shape)


def normal(
    key: Array,
    shape: Shape | None = None,
    mean: ArrayLike = 0.0,
    std: ArrayLike = 1.0,
    dtype: DTypeLike = np.float64,
) -> Array:
    """Return independent normally distributed numbers.

    The numbers are quantiles of uniform numbers with steps of 2^-64 in each tail, so that ``|z|``
    reaches 9.2 and the probabilities are right up to there. The numbers in float32 are those in
    float64, rounded.

    Parameters
    ----------
    key : array (2,)
        Random key. Never use the same key for two draws that should be independent.
    shape : int or tuple of int, optional
        Shape of the result. By default the shape that the other parameters broadcast to.
    mean : array_like, optional
        Mean, 0 by default.
    std : array_like, optional
        Standard deviation, 1 by default.
    dtype : dtype, optional
        np.float64 (default) or np.float32.

    Returns
    -------
    array
        The draws.

    Examples
    --------
    >>> from archimedes.random import key
    >>> normal(key(0), 3).round(4)
    array([-0.6415,  0.1622, -0.7379])
    """
    what = "arc.random.normal"
    key, dtype = check_key(key, what), arguments.check_dtype(dtype, what)
    mean, std = as_dtype(mean, dtype), as_dtype(std, dtype)
    shape = result_shape(shape, what, mean=mean, std=std)
    std = arguments.check_parameter(std, std >= 0.0, f"{what}: std must not be negative")
    return mean + std * _standard(_normals, key, shape, dtype)


def exponential(
    key: Array, shape: Shape | None = None, scale: ArrayLike = 1.0, dtype: DTypeLike = np.float64
) -> Array:
    """Return exponentially distributed numbers, which are always positive.

    Parameters
    ----------
    key : array (2,)
        Random key. Never use the same key for two draws that should be independent.
    shape : int or tuple of int, optional
        Shape of the result. By default the shape that the other parameters broadcast to.
    scale : array_like, optional
        Mean, 1 by default.
    dtype : dtype, optional
        np.float64 (default) or np.float32.

    Returns
    -------
    array
        The draws.

    Examples
    --------
    >>> from archimedes.random import key
    >>> exponential(key(0), 2, scale=10.0).round(4)
    array([13.4476,  5.7195])
    """
    what = "arc.random.exponential"
    key, dtype = check_key(key, what), arguments.check_dtype(dtype, what)
    scale = as_dtype(scale, dtype)
    shape = result_shape(shape, what, scale=scale)
    scale = arguments.check_parameter(scale, scale >= 0.0, f"{what}: scale must not be negative")
    return scale * _standard(_exponentials, key, shape, dtype)


#: Recorded also for plain numbers: LAPACK's last digits are not those of a recording.
_factor = compile(np.linalg.cholesky, name="factor")
_correlated = vmap(lambda z, mean, root: mean + root @ z, (0, None, None), name="correlated")


def _is_symmetric(matrix: Array) -> Array:
    return np.abs(matrix - matrix.T) <= 1e-12 * np.abs(matrix + matrix.T)


def multivariate_normal(key: Array, mean: ArrayLike, cov: ArrayLike, shape: Shape = ()) -> Any:
    """Return normally distributed vectors with a given covariance.

    Parameters
    ----------
    key : array (2,)
        Random key. Never use the same key for two draws that should be independent.
    mean : array_like (n,)
        Mean.
    cov : array_like (n, n)
        Covariance, symmetric and positive definite. Its lower triangle is used.
    shape : int or tuple of int, optional
        Number of vectors, a single one by default.

    Returns
    -------
    array
        Vectors ``(*shape, n)``. Inside a compiled function they are nan if the covariance is not
        positive definite.

    Raises
    ------
    ValueError
        The covariance is not symmetric or not positive definite.

    Examples
    --------
    >>> from archimedes.random import key
    >>> multivariate_normal(key(0), np.zeros(2), np.array([[2.0, 1.0], [1.0, 2.0]]), 3).shape
    (3, 2)
    """
    what = "arc.random.multivariate_normal"
    key = check_key(key, what)
    mean, cov = as_dtype(mean, np.float64), as_dtype(cov, np.float64)
    size, wanted = np.shape(mean), np.shape(cov)
    if len(size) != 1 or wanted != size * 2:
        raise ValueError(f"{what}: mean must be (n,) and cov (n, n), got {size} and {wanted}")
    shape = (*result_shape(shape, what), *size)
    check_that(_is_symmetric, cov, f"{what}: cov", "must be symmetric")
    root = _factor(cov)
    if not arguments.is_all_true(np.isfinite(root)):
        raise ValueError(
            f"{what}: cov must be positive definite, got {cov!r}; where a direction has no "
            "spread, add a little to the diagonal, or draw fewer numbers and combine them"
        )
    z = _standard(_normals, key, shape, np.dtype(np.float64))
    return _correlated(z.reshape(-1, *size), mean, root).reshape(shape)
