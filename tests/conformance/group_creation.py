"""Making, joining, splitting and rearranging arrays."""

from __future__ import annotations

from .forms import EXACT, SUMS, forms

__all__ = ["FORMS"]

CREATION = """
np.array([x[0], x[1]])
np.array([x[0], 1.0, 2])
np.array([[x[0], 0.0], [1.0, y[1]]])
np.array([[s, t], [t, s]])
np.array([x, y])
np.array([x, [1.0, 2.0, 3.0, 4.0, 5.0]])
np.array([[[s]], [[t]]])
np.array([T[0], T[1]])
np.array((s, 1.0))
np.array(s)
np.array(x)
np.array([s])
np.array([x[0] > 0, True])
np.array([i[0], i[1]])
np.array([x[:2], y[1:3]])
np.asarray([s, 2.0 * s])
np.asarray(x)
np.asanyarray(A)
np.ascontiguousarray(A.T)
np.asfortranarray(A)
np.copy(x)
np.stack([x, y])
np.stack([x, y], axis=1)
np.stack([T, U], axis=-1)
np.stack((s, t, 1.0))
np.vstack([x, y])
np.vstack([A, a])
np.hstack([x, y])
np.hstack([A, B])
np.hstack([s, x, 1.0])
np.dstack([x, y])
np.dstack([A, B])
np.column_stack([x, y])
np.column_stack([A, a])
np.concatenate([x, y])
np.concatenate([A, B], axis=1)
np.concatenate([T, U], axis=2)
np.concatenate([T, U], axis=None)
np.concatenate([H, H], axis=-2)
np.concatenate([x, [1.0]])
np.concatenate((a, np.zeros(2), d))
np.concat([x, y])
np.r_[x, y]
np.r_[x, 1.0, s]
np.c_[x, y]
np.block([[A, B], [B, A]])
np.block([a, 1.0])
np.block([[A, a[:, None]], [np.zeros((1, 3)), 1.0]])
np.tile(x, 2)
np.tile(x, (2, 1))
np.tile(A, (2, 2))
np.tile(T, (1, 2, 1))
np.repeat(x, 3)
np.repeat(A, 2, axis=1)
np.repeat(T, [1, 2], axis=0)
np.repeat(s, 4)
np.split(x[:4], 2)
np.split(x, [1, 3])
np.split(T, 2, axis=2)
np.array_split(x, 3)
np.array_split(M, 3, axis=1)
np.hsplit(M, 2)
np.vsplit(M[:2], 2)
np.dsplit(T, 2)
np.unstack(A)
np.unstack(T, axis=1)
np.eye(3) * s
np.eye(3) @ a + 0.5
np.identity(3) - A
np.diag(a)
np.diag(a, 1)
np.diag(A)
np.diag(M, -1)
np.diagflat(a)
np.diagflat(A[:2, :2], 1)
np.tril(A)
np.tril(A, -1)
np.triu(A)
np.triu(T, 1)
np.vander(a)[:, 1:]
np.vander(a, 2, increasing=True)
np.linspace(s, 2.0, 5)[[0, 4]]
np.arange(5) * x
np.arange(1.0, 6.0) + x
np.zeros(5) + x
np.ones((2, 3)) * a
np.full(3, s)
np.full((2, 2), s)
np.full((2, 3), a)
np.full_like(x, 3.0)
np.full_like(x, s)
np.zeros_like(x)
np.ones_like(T)
np.empty_like(T).shape[1] * a
np.zeros_like(x, dtype=int)
np.zeros(x.shape)
np.ones(len(x)) + x
np.meshgrid(a, d)
np.meshgrid(a, d, indexing="ij")
np.meshgrid(a, d, sparse=True)
np.indices((2, 3)) * s
np.broadcast_to(x, (3, 5))
np.broadcast_to(s, (2, 2))
np.broadcast_arrays(A, a)
np.broadcast_arrays(T, s)
np.broadcast_shapes(x.shape, (1,))
np.atleast_1d(s)
np.atleast_2d(x)
np.atleast_3d(A)
np.atleast_1d(s, x)
np.pad(x, 2)
np.pad(x, (1, 2), mode="edge")
np.pad(x, 2, mode="wrap")
np.pad(x, 2, mode="reflect")
np.pad(x, 2, mode="symmetric")
np.pad(A, ((1, 0), (0, 2)))
np.pad(x, 1, constant_values=7.0)
np.pad(T, ((0, 0), (1, 1), (0, 1)), mode="edge")
np.pad(x, 1, mode="maximum")
np.roll(x, 2)
np.roll(A, 1)
np.roll(A, -1, axis=0)
np.roll(T, (1, 2), axis=(0, 2))
np.flip(x)
np.flip(A, axis=1)
np.flip(T, (0, 2))
np.flipud(A)
np.fliplr(A)
np.rot90(A)
np.rot90(M, 3)
np.rot90(T, axes=(1, 2))
np.moveaxis(T, 0, -1)
np.moveaxis(H, [0, 1], [2, 3])
np.rollaxis(T, 2)
np.swapaxes(T, 0, 1)
np.transpose(A)
np.transpose(T, (1, 2, 0))
np.permute_dims(T, (2, 1, 0))
np.matrix_transpose(T)
np.linalg.matrix_transpose(E)
np.expand_dims(x, 0)
np.expand_dims(A, (0, 3))
np.squeeze(x[None, :, None])
np.squeeze(T[:, :1], axis=1)
np.reshape(T, (4, 6))
np.reshape(A, -1)
np.ravel(T)
np.ravel(A, order="F")
np.shape(x)[0] * x
np.size(A) + a
np.ndim(T) * a
np.kron(a, d)
np.outer(x, y)
np.sort(x)
np.sort(M)
np.sort(M, axis=0)
np.sort(T, axis=1)
np.sort(M, axis=None)
np.sort(i)
np.argsort(x)
np.argsort(M, axis=0)
np.argsort(i, kind="stable")
np.lexsort((x, i))
np.partition(x, 2)[2]
np.fromiter((value for value in [1.0, 2.0]), float) * s
np.apply_along_axis(lambda row: row[::-1], 1, M)
np.vectorize(lambda value: value * 2.0)(x)
np.fliplr(np.diag(a))
np.tril(np.outer(a, a))
np.triu(H)
np.flip(H)
np.roll(H, 1, axis=1)
np.tile(H, (1, 1, 2, 1))
np.expand_dims(H, 2)
np.broadcast_to(T, (2, 2, 3, 4))
np.repeat(H, 2, axis=2)
np.split(H, 3, axis=1)
"""

# products with literal zeros are here too: 0 * -x is 0, not -0, by contract
INEXACT = """
np.tri(3) * A
np.kron(A, np.eye(2))
np.linspace(s, t, 7)
np.linspace(a, d, 4)
np.linspace(0.0, s, 5, endpoint=False)
np.linspace(a, d, 3, axis=1)
np.vander(a)
np.vander(a, 4, increasing=True)
np.geomspace(1.0, 2.0 + s, 4)
np.logspace(0.0, s, 4)
np.pad(x, 2, mode="mean")
np.pad(x, 3, mode="linear_ramp", end_values=1.0)
np.arange(3) * s + t
"""

FORMS = [
    *forms("creation and shape", EXACT, CREATION),
    *forms("creation and shape", SUMS, INEXACT),
]
