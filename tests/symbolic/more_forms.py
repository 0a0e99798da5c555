"""NumPy forms beyond the conformance table: keywords, odd shapes, nan and traced positions."""

from __future__ import annotations

import math

import numpy as np

from tests.conformance.forms import ELEMENTARY, EXACT, LINALG, SUMS, Form, forms

__all__ = ["FORMS"]

SORTING = """
np.sort(np.abs(z))
np.sort(np.abs(h))
np.sort(b)
np.sort(x[:1])
np.sort(x[:0])
np.sort(T, axis=None)
np.sort(H, axis=-2)
np.sort(i, kind="stable")
np.sort(n, kind="stable")
np.sort(x, stable=True)
np.argsort(z)
np.argsort(-z, kind="stable")
np.argsort(l // 2, stable=True)
np.argsort(J % 3, axis=1, kind="stable")
np.argsort(T, axis=None)
np.argsort(x[:1])
np.lexsort((x, l // 2, i % 2))
np.lexsort(I)
np.lexsort((x,))
np.partition(M, 1, axis=0)[1]
x[np.argpartition(x, 2)[2]]
np.argmax(z)
np.argmin(w)
np.argmax(b)
np.argmax(I == 3, axis=1)
np.argmin(n)
np.argmax(T, axis=1, keepdims=True)
np.argmax(T, keepdims=True)
np.argmax(l // 2)
np.nanargmin(Z, axis=1)
np.nanargmax(z)
np.searchsorted(np.array([-1.0, 0.0, 0.0, 2.0]), n)
np.searchsorted(np.array([-1.0, 0.0, 0.0, 2.0]), z, side="right")
np.searchsorted(np.array([-1.0, 0.0, np.nan]), z, side="right")
np.searchsorted(np.array([-1.0, 0.0, np.nan]), z)
np.searchsorted(np.array([-np.inf, 0.0, np.inf]), z)
np.searchsorted(np.array([-np.inf, 0.0, np.inf]), z, side="right")
np.searchsorted(np.sort(x), y)
np.searchsorted(np.sort(x), x, side="right")
np.searchsorted(np.sort(x), x)
np.searchsorted(np.sort(z), z)
np.searchsorted(np.sort(z), w, side="right")
np.searchsorted(x, y, sorter=np.argsort(x))
np.searchsorted(np.arange(100.0), T * 50)
np.searchsorted(np.array([1, 4, 6]), i)
np.searchsorted(np.array([1, 4, 6]), x)
np.searchsorted(np.array([], dtype=float), x)
np.searchsorted(np.array([0.5]), x)
np.sort(x).searchsorted(s)
np.digitize(x, np.array([1.0, 0.0, -1.0]))
np.digitize(x, np.array([1.0, 0.0, -1.0]), right=True)
np.digitize(x, np.sort(y))
np.digitize(x, np.sort(y)[::-1])
np.digitize(T, [0.0, 0.5])
np.digitize(s, np.array([0.0, 1.0]))
np.isin(i, j)
np.isin(x, [0.3, 1.1], invert=True)
np.isin(I, l)
"""

STATISTICS_EXACT = """
np.median(z)
np.median(i)
np.median(b * 1)
np.median(Z, axis=1)
np.median(T, axis=(0, 2), keepdims=True)
np.median(f)
np.nanmedian(z)
np.nanmedian(Z, axis=1)
np.nanmedian(Z, axis=0)
np.nanmedian(i)
np.nanmedian(Z, keepdims=True)
np.percentile(i, 50)
np.percentile(x, 100)
np.quantile(x, 0.0)
np.quantile(x, 1)
np.quantile(Z, 0.5, axis=0)
np.quantile(x, 0.3, method="lower")
np.quantile(x, 0.3, method="higher")
np.quantile(x, 0.3, method="nearest")
np.quantile(i, 0.3, method="inverted_cdf")
np.quantile(i, [0.3, 0.9], method="closest_observation")
np.nanmax(Z, axis=0)
np.nanmin(Z)
np.nanmax(Z, axis=1, keepdims=True)
np.nanmax(Z, axis=0, where=[[True, False, True]], initial=0.0)
np.nanmax(i)
np.nansum(i)
np.nanprod(i)
np.nancumsum(i)
np.nancumprod(l)
np.ptp(T, axis=(0, 1))
np.ptp(i)
np.ptp(M, axis=1, keepdims=True)
np.count_nonzero(x)
np.count_nonzero(T > 0, axis=1, keepdims=True)
np.count_nonzero(K)
np.histogram(x, np.array([-2.0, 0.0, 1.0, 3.0]))
np.histogram(x, 4, (-2.0, 2.0))
np.histogram(T, [-1.0, 0.0, 0.5, 1.0])
np.histogram(i, [-7, 0, 7])
np.sum(i, where=b)
np.sum(i, initial=2)
np.sum(I, axis=())
np.max(A[:1], axis=0)
np.sum(A[:, :0], axis=1)
np.prod(A[:0], axis=0)
np.any(A[:0], axis=0)
np.all(z)
np.any(z, where=[False, False, False, True, True, False, False])
np.logical_xor.reduce(b)
np.logical_xor.reduce(x)
np.bitwise_or.reduce(l)
np.add.accumulate(b)
np.minimum.accumulate(M, axis=1)
np.cumulative_sum(I, axis=1, include_initial=True)
np.cumulative_prod(l, include_initial=True)
np.cumulative_sum(b)
np.add.reduceat(i, [0, 3, 1])
np.maximum.reduceat(M, [0, 2], axis=1)
np.std(x[:1])
np.var(x, ddof=1, where=[True, True, False, False, True])
np.sum(b, dtype=float)
np.max(b)
np.min(K, axis=0)
"""

STATISTICS = """
np.percentile(f, 30)
np.percentile(f, [10, 60])
np.quantile(f, np.float64(0.3))
np.quantile(f, 0.3)
np.percentile(i, [25, 75])
np.percentile(T, 30, axis=(0, 2), keepdims=True)
np.quantile(M, [0.2, 0.9], axis=1)
np.quantile(M, [[0.2], [0.9]])
np.quantile(x, u[0])
np.quantile(M, np.abs(u[:3]), axis=0)
np.percentile(x, s * 100)
np.quantile(x, 0.3, method="hazen")
np.quantile(x, 0.3, method="weibull")
np.quantile(x, 0.7, method="median_unbiased")
np.quantile(x, 0.7, method="normal_unbiased")
np.quantile(x, 0.7, method="midpoint")
np.quantile(x, 0.6, method="averaged_inverted_cdf")
np.quantile(x, 0.63, method="interpolated_inverted_cdf")
np.nanquantile(Z, 0.4, axis=0)
np.nanpercentile(Z[:2], [20, 80], axis=1)
np.nanpercentile(h[3:], 30)
np.nanpercentile(x, 30)
np.nanmean(Z[:2], axis=0)
np.nanmean(Z[:2], axis=1, keepdims=True)
np.nanmean(h[3:])
np.nanmean(i)
np.nanstd(Z[:2], axis=1)
np.nanvar(Z[:2], axis=1, ddof=1)
np.nanvar(x, keepdims=True)
np.nanvar(i)
np.nansum(Z[:2])
np.nanprod(Z[:2], axis=1)
np.nancumsum(z[3:])
np.nancumprod(z[5:])
np.average(f)
np.average(i)
np.average(i, weights=l)
np.average(M, axis=1, weights=x[:4])
np.average(T, axis=(0, 1), weights=M[:2, :3])
np.average(M, axis=1, weights=x[:4], keepdims=True)
np.average(M, weights=np.abs(M))
np.average(x, returned=True)
np.average(M, axis=0, weights=a, returned=True)
np.cov(M, rowvar=False)
np.cov(M, bias=True)
np.cov(M, ddof=0)
np.cov(x)
np.cov(M, x[:4])
np.cov(M, fweights=[1, 2, 1, 3])
np.cov(M, aweights=[0.5, 1.0, 2.0, 1.5])
np.cov(M, fweights=[1, 2, 1, 3], aweights=p[:4])
np.cov(f, g)
np.corrcoef(x, y)
np.corrcoef(M, rowvar=False)
np.corrcoef(x)
np.histogram(x, [-2.0, 0.0, 1.0, 3.0], density=True)
np.histogram(x, [-2.0, 0.0, 1.0, 3.0], weights=p)
np.mean(f, where=b)
np.sum(f, initial=1.5)
np.mean(x, where=b)
np.mean(T, axis=(), keepdims=True)
np.var(x, mean=np.mean(x))
np.std(T, axis=(0, 1), correction=1)
np.std(f, where=b)
np.mean(b)
np.mean(x, dtype=np.float32)
np.prod(x, initial=2.0)
np.nanmax(M[:, :1], axis=1)
"""

CALCULUS = """
np.diff(b)
np.diff(x, 0)
np.diff(x, 5)
np.diff(M, axis=0, append=0.5)
np.diff(M, n=2, axis=1, prepend=M[:, :1])
np.diff(T, axis=-2, prepend=0.0, append=1.0)
np.ediff1d(M)
np.ediff1d(i, to_begin=[5, 6])
np.trapezoid(M, axis=0)
np.trapezoid(M, M.cumsum(axis=1), axis=1)
np.trapezoid(M, dx=s)
np.trapezoid(T, [0.0, 0.5, 2.0], axis=1)
np.trapezoid(i)
np.gradient(T)
np.gradient(T, 0.5, axis=(0, 1))
np.gradient(T, 0.5, [0.0, 0.3, 1.0], [0.0, 1.0, 2.0, 3.0])
np.gradient(M, x[:4].cumsum(), axis=1)
np.gradient(x, p.cumsum(), edge_order=2)
np.gradient(x, [0.0, 1.0, 2.0, 3.0, 4.0], edge_order=2)
np.gradient(x, s, edge_order=2)
np.gradient(i)
np.gradient(f)
np.gradient(f, 0.1)
np.unwrap(x * 5)
np.unwrap(M * 5, axis=0)
np.unwrap(x * 5, discont=4.0)
np.unwrap(x * 5, period=1.5)
np.unwrap(i, period=7)
np.unwrap(i, period=6)
np.unwrap(np.array([0.0, np.pi, 0.0]) + 0.0 * x[:3])
np.interp(x, [-1.0, 0.0, 0.3, 2.6], [0.0, 2.0, 1.0, 5.0])
np.interp(x, [0.3], [7.0])
np.interp(x, [0.3], [7.0], left=1.0, right=2.0)
np.interp(x, [-1.7, 2.6], [1.0, 2.0])
np.interp(z, [-1.0, 0.0, 1.0], [2.0, 3.0, 5.0])
np.interp(x, [-1.0, 0.3, 1.0], [np.inf, 3.0, np.inf])
np.interp(z, [-1.0, 0.0, np.inf], [2.0, 3.0, 5.0])
np.interp(x, np.arange(-3.0, 3.0, 0.01), np.sin(np.arange(-3.0, 3.0, 0.01)))
np.interp(T, np.linspace(-2, 2, 17), np.linspace(-2, 2, 17) ** 2)
np.interp(u, np.sort(x), y, left=s, right=t)
np.interp(np.array([-0.5, 0.1, 0.9]), np.sort(u), y)
np.interp(x, np.sort(u), y, period=1.3)
np.interp(x, [0.1, 0.9, 0.5], [1.0, 2.0, 3.0], period=-1.3)
np.interp(np.sort(x), np.sort(x), y)
np.interp(i, [-5, 0, 5], [1, 2, 4])
np.interp(s, [0.0, 1.0, 2.0, 3.0, 4.0], z[2:])
np.interp(f, [0.0, 1.0], [1.0, 2.0])
np.convolve(a, x)
np.convolve(x, a[:2], "same")
np.convolve(a[:2], x, "same")
np.convolve(a, x, "valid")
np.convolve(i, j)
np.convolve(x, s)
np.correlate(a, x)
np.correlate(a, x, "full")
np.correlate(x, a[:2], "same")
np.correlate(a[:2], x, "same")
np.polyval(x, i)
np.polyval(i, k)
np.polyval(f, f)
np.polyval(a, [1.0, 2.0])
np.polyint(x, 2)
np.polyint(a, k=3.0)
np.polyint(a, 2, k=[1.0, s])
np.polyder(i)
np.polyder(x, 0)
np.polyder(a, 3)
np.polyadd(x, s)
np.polysub(i, a)
np.polymul(i, j)
np.poly(a)
np.cross(M[:, :3], a)
np.cross(M[:, :3], M[:, 1:], axis=0)
np.cross(M[:, :3], a, axisa=0)
np.cross(T[:, :, :3], a, axisc=0)
np.kron(M, a)
np.kron(s, A)
np.kron(T, a)
np.outer(A, a)
np.einsum(A, [0, 1], B, [1, 2], [2, 0])
np.einsum(T, [..., 0], x[:4], [0], [...])
np.einsum("i->", x)
np.einsum("ii->", A)
np.einsum("...i,...i->...", T, U)
np.trace(A, dtype=np.float64)
np.vecdot(T, U, axis=1)
np.logspace(s, t, 4, base=2.0)
np.logspace(a, d, 3, axis=-1)
np.logspace(s, 1.0, 4, endpoint=False)
np.geomspace(s, 3.0, 4, endpoint=False)
np.geomspace(-s, -3.0, 4)
np.geomspace(p[:2], p[2:4], 3, axis=1)
np.linspace(s, t, 5, retstep=True)
np.linspace(s, t, 1)
np.linspace(s, t, 0)
np.linspace(k, 7, 4)
np.linspace(f, g, 3)
np.linspace(x, 1.0, 3, axis=-1)
np.linspace(0, s * 10, 5, dtype=int)
np.linspace(s, [1.0, 2.0], 3)
np.vander(i)
np.vander(f, 3)
np.vander(a, 0)
np.vander(a, 1)
np.pad(M, 1, mode="mean")
np.pad(M, ((1, 2), (0, 1)), mode="median", stat_length=2)
np.pad(M, 1, mode="linear_ramp", end_values=((1.0, 2.0), (3.0, 4.0)))
np.pad(i, 2, mode="mean")
np.pad(i, 2, mode="linear_ramp", end_values=3)
np.i0(x * 20)
np.i0(i)
np.sinc(i * 0.25)
np.sinc(f)
np.sinc(0.0 * x)
np.sinc(x * 1e-9)
np.float_power(f, 2)
np.float_power(p, y)
np.logaddexp.reduce(z[3:])
np.angle(x, deg=True)
np.angle(i)
np.hypot.accumulate(x)
"""

VALUES = """
np.round(x, -1)
np.round(x * 100, -1)
np.round(i * 37, -2)
np.round(i, 2)
np.round(z, 3)
np.round(h, 2)
np.round(T, 3)
round(s)
round(s, 1)
np.fix(z)
np.fix(i)
np.trunc(i)
np.nan_to_num(h)
np.nan_to_num(i)
np.nan_to_num(z, nan=s)
np.nan_to_num(z, nan=x[0], posinf=i[0])
np.isclose(z, w)
np.isclose(i, j, atol=3)
np.isclose(f, f + 1e-7)
np.isclose(x, s, rtol=0.5)
np.isclose(z, np.inf)
np.allclose(x, y)
np.allclose(z, z, equal_nan=True)
np.array_equal(x, x)
np.array_equal(x, a)
np.array_equal(i, x)
np.array_equiv(A, A[0])
np.array_equiv(a, a[None])
np.isposinf(h)
np.isneginf(z)
np.isneginf(i)
np.isreal(x)
np.iscomplex(T)
np.real_if_close(x)
np.gcd(i, 6)
np.gcd(36, l)
np.gcd(I, j[:4])
np.lcm(l, 4)
np.lcm(i, j)
np.ldexp(x, l)
np.ldexp(x, l * 1000 - 1100)
np.ldexp(1.5, -1070 - l)
np.ldexp(x, -2500)
np.ldexp(z, 3000)
np.ldexp(f, l * 40 - 150)
np.sign(n)
np.sign(f)
np.clip(i, None, 3)
np.clip(x, min=0.0)
np.clip(x, max=s)
np.clip(x, None, None)
np.clip(i, 0.5, 2)
np.clip(x, 1.0, -1.0)
np.choose(l % 3, [x, y, p])
np.choose(l, [1, 2, 3, 4, 5])
np.choose([[0, 1], [1, 0]], [s, t])
np.choose(l + 3, [x, y], mode="wrap")
np.choose(l - 2, [x, y, p], mode="clip")
np.select([x > 1], [i])
np.select([x > 1, b], [1, 2], default=9)
np.select([b], [x[:, None]], default=y)
np.piecewise(x, [x < 0], [lambda v: v * 2, 3.0])
np.piecewise(x, x < 0, [s, t])
np.piecewise(i, [i < 0], [1.7])
np.where(b[:, None], x, y[:, None])
np.where(x, 1.0, 2.0)
np.where(b, f, np.float64(1.0))
np.triu_indices_from(A)[0] + i[0]
np.tril_indices_from(A)[1] + i[0]
np.diag_indices_from(A)[0] + i[0]
np.unravel_index(l, (2, 3))
np.unravel_index(k, (2, 3), order="F")
np.ravel_multi_index((l % 2, l % 3), (2, 3))
np.ravel_multi_index((l % 2, l % 3), (2, 3), order="F")
np.lib.stride_tricks.sliding_window_view(M, (2, 2))
np.apply_along_axis(np.sum, 0, I)
np.apply_along_axis(lambda r: r[:2], 1, T)
np.apply_along_axis(lambda r: np.outer(r, r), 0, M)
np.apply_along_axis(np.sort, -1, M)
np.apply_over_axes(np.max, T, [0, 2])
np.vectorize(lambda u, v: u + 2 * v)(x, 3.0)
np.vectorize(lambda u: np.where(u > 0, u, -u))(M)
np.pad(x, (2, 0), constant_values=(s, t))
np.pad(M, ((1, 0), (0, 2)), constant_values=((1.0, 2.0), (3.0, 4.0)))
np.pad(M, 1, mode="maximum", stat_length=((1, 2), (3, 1)))
np.pad(T, 1, mode="minimum")
np.pad(i, 1, constant_values=2)
np.pad(b, 1)
np.pad(x, 3, mode="empty")[3:8]
np.bitwise_xor.reduce(i)
np.compress([0, 1, 1], M, axis=0)
np.compress([True, False, True], x)
np.take(M, [1, 7], mode="clip", axis=1)
np.take(M, k)
np.take(M, l - 2, axis=0, mode="wrap")
np.take(x, l + 3, mode="clip")
np.delete(x, [0, -1])
np.delete(M, slice(None, None, 2), axis=1)
np.insert(x, 0, [s, t])
np.insert(M, 1, s, axis=0)
np.append(x, [s, t])
np.resize(x, 7)
np.flip(T)
"""

INDEXING = """
x[l]
x[l[:, None]]
x[-l]
A[k]
A[:, k]
A[k, k - 1]
A[l % 3, l % 3]
A[l % 3, 0]
A[l % 3][:, l % 3]
A[l[:, None] % 3, l % 3]
A[None, k]
A[..., k]
A[k, ..., None]
T[k - 1, :, l % 4]
T[:, l % 3, 1:3]
T[0, l % 3, k]
T[[0, 1], k]
T[[0, 1], k, [1, 2]]
T[:, [True, False, True], l[:1]]
H[k - 2, :, l % 2, :]
H[l % 2, 1, :, k - 1]
x[[k, 0]]
np.array([1.0, 4.0, 9.0])[k] * x
x[np.array([k, 1])]
i[l]
b[l]
np.take_along_axis(M, np.argsort(M, axis=0), axis=0)
np.take_along_axis(M, np.argmax(M, axis=1, keepdims=True), axis=1)
np.take_along_axis(T, np.argsort(T, axis=1), axis=1)
np.take_along_axis(x, l, axis=None)
A.flat[[1, 2]]
A.flat[::2]
A.T.flat[1]
A.item(4)
s.item()
"""


def put_at_traced(x, k):
    x[k] = 9.0
    return x


def put_at_traced_pair(A, k, l):
    A[k, l[0]] = 7.0
    return A


def put_at_traced_array(x, l):
    x[l[:3]] = [1.0, 2.0, 3.0]
    return x


def put_at_traced_repeats(x, l):
    x[l // 2] = x.copy()
    return x


def put_row_at_traced(A, k, a):
    A[k] = a
    A[:, k - 1] += a
    return A


def put_at_traced_negative(x, k):
    x[-k] = 4.0
    return x


def put_masked_row(A, a):
    A[A[:, 0] > 0] = a
    return A


def put_masked_float32(f):
    f[f > 0] = 0.5
    return f


def put_cycles(M, a):
    np.put(M, [0, 3, 7, 11], a)
    return M


def put_clips(x):
    np.put(x, [-9, 9], [1.0, 2.0], mode="clip")
    return x


def put_along(M):
    np.put_along_axis(M, np.array([[1], [0], [3]]), 9.0, axis=1)
    return M


def place_cycles(M, a):
    np.place(M, np.arange(12).reshape(3, 4) % 2 == 0, a)
    return M


def place_traced(x):
    np.place(x, x > 0, [5.0])
    return x


def putmask_traced(x, a):
    np.putmask(x, x > 0, a)
    return x


def putmask_same(M, F):
    np.putmask(M, M > 0, F)
    return M


def fill_diagonals(A, a, N):
    np.fill_diagonal(A, a)
    np.fill_diagonal(N, 5.0, wrap=True)
    return A, N


def add_at_repeats(x, a):
    np.add.at(x, [0, 0, 3], a)
    np.subtract.at(x, np.array([1]), 2.0)
    np.negative.at(x, [2])
    return x


def add_at_pairs(A):
    np.multiply.at(A, ([0, 0], [1, 1]), 3.0)
    np.add.at(A, (slice(None), 1), 1.0)
    return A


def flat_assignment(A, a):
    A.flat[1] = 5.0
    A.flat[[2, 3]] = a[:2]
    A.flat[4:] = a
    return A


def flat_of_a_view(A, s):
    A.T.flat[1] = s
    return A


def flat_whole(M, s):
    M.flat = s
    return M


def shape_assignment(M):
    view = M.view()
    view.shape = (4, 3)
    view[0] = 1.0
    return M, view


def partition_method(x):
    x.partition(2)
    return x[2]


def nan_to_num_in_place(z):
    np.nan_to_num(z, copy=False)
    return z


def copyto_where(x, y):
    np.copyto(x, y, where=x > 0)
    return x


def out_of_functions(M, a):
    result = np.zeros((2, 4))
    np.concatenate([M[:1], M[1:2]], out=result)
    np.clip(result, -0.5, 0.5, out=result)
    np.round(result, 1, out=result)
    total = np.zeros(4)
    np.max(result, axis=0, out=total)
    np.take(M, [1], axis=0, out=result[:1])
    return result, total


def reduction_of_one_row_does_not_alias(A):
    row = A[:1].sum(axis=0)
    row[0] = 99.0
    return A, row


def clip_without_bounds_does_not_alias(x):
    y = np.clip(x, None, None)
    y[0] = 99.0
    return x


def einsum_is_writable(A, a):
    y = np.einsum("i,j->ij", a, a)
    y[0] = 0.0
    z = np.select([a > 0], [1.0])
    z[0] = 5.0
    return y, z


def whole_numbers(s, x):
    return math.floor(s), math.ceil(s), math.trunc(s), round(x[1])


def running_insertion_sort(x):
    y = x.copy()
    for stop in range(len(y) - 1, 0, -1):
        for k in range(stop):
            low, high = np.minimum(y[k], y[k + 1]), np.maximum(y[k], y[k + 1])
            y[k], y[k + 1] = low, high
    return y


PROGRAMS = [
    value
    for value in list(globals().values())
    if callable(value) and getattr(value, "__module__", "") == __name__
]

FORMS: list[Form] = [
    *forms("sorting", EXACT, SORTING),
    *forms("statistics, exact", EXACT, STATISTICS_EXACT),
    *forms("statistics", SUMS, STATISTICS),
    *forms("calculus", SUMS, CALCULUS),
    *forms("values", EXACT, VALUES),
    *forms("traced positions", EXACT, INDEXING),
    *forms("programs", EXACT, PROGRAMS),
    *forms("elementary", ELEMENTARY, "np.sinc(T)\nnp.i0(T)\nnp.sinc(u)"),
    *forms("fits", LINALG, "np.polyfit(p, x, 2)\nnp.polyfit(p, x, 1, w=y)"),
]
