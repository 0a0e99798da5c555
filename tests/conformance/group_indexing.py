"""Reading with indices: integers, slices, fancy and boolean, and functions that select."""

from __future__ import annotations

from .forms import EXACT, forms

__all__ = ["FORMS"]

READS = """
x[0]
x[-1]
x[1:4]
x[::-1]
x[::2]
x[3:0:-1]
x[10:]
x[:]
x[...]
x[None]
x[:, np.newaxis]
A[1]
A[1, 2]
A[-1, -2]
A[:, 0]
A[1:, :2]
A[..., 1]
A[::-1, ::2]
A[1, None]
T[1]
T[1, 2, 3]
T[:, 1]
T[..., 0]
T[0, ..., 1]
T[:, :, ::-1]
T[:, None, 1:, None]
H[1, :, 0]
H[..., 1, 0]
H[:, 1:, ::-1, 1]
H[0, 1, 1, 0]
x[[0, 2, 2]]
x[np.array([[0, 1], [3, -1]])]
A[[0, 2]]
A[[0, 2], [1, 1]]
A[:, [2, 0]]
A[[[0], [2]], [0, 1]]
A[np.ix_([0, 2], [1, 2])]
T[[0, 1], :, [2, 3]]
T[:, [0, 2], 1]
T[0, [0, 2]]
T[np.array([1, 0])[:, None], [0, 1, 2], 3]
T[..., [0, 0, 1]]
H[[1, 0], [2, 0]]
H[:, [0, 2], :, [1, 0]]
x[np.array([True, False, True, False, True])]
A[np.eye(3, dtype=bool)]
A[[True, False, True]]
T[:, [True, False, True]]
T[np.arange(24).reshape(2, 3, 4) % 3 == 0]
x[np.int64(2)]
x[slice(1, 3)]
A[(0, 1)]
x[[]]
x[()]
s[()]
A[np.tril_indices(3)]
A[np.triu_indices(3, 1)]
A[np.diag_indices(3)]
np.take(x, [1, 4])
np.take(T, [2, 0], axis=1)
np.take(x, [7, -9], mode="clip")
np.take(x, [7, 9], mode="wrap")
np.take_along_axis(M, np.array([[1], [0], [3]]), axis=1)
np.compress([True, False, True], A, axis=0)
np.extract(np.array([True, False, True, True, False]), x)
np.diagonal(T, axis1=0, axis2=1)
np.delete(x, 2)
np.delete(M, [0, 2], axis=1)
np.insert(x, 2, 9.0)
np.insert(x, [1, 3], s)
np.insert(M, 1, a, axis=1)
np.append(x, y)
np.append(A, B, axis=1)
np.append(x, 1.0)
np.trim_zeros(np.array([0.0, 1.0, 0.0])) + a[0]
np.select([b, c], [x, y], 0.5)
np.choose([0, 1, 0, 1, 1], [x, y])
np.unravel_index(5, A.shape)
np.resize(x, (2, 4))
np.lib.stride_tricks.sliding_window_view(x, 3)
# traced integer indices
x[k]
A[k, 1]
x[l]
T[:, k]
np.take(x, l)
np.take_along_axis(x, np.argsort(x), axis=0)
x[np.argmax(y)]
x[np.argsort(x)]
"""

FORMS = forms("indexing", EXACT, READS)
