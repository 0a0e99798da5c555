"""NumPy's functions of lists and tuples that hold numbers given to a recorded function."""

from __future__ import annotations

import numpy as np

__all__ = ["FORMS", "KINDS", "UFUNC_FORMS"]

A = np.array
F32 = A([1.5, 2.5], np.float32)
MASK = A([True, False])


def _filled(x, y):
    z = np.zeros(2)
    np.add.at(z, [0, 1], [x, y])
    return z


#: Ufuncs look at arrays alone: a list of traced numbers is an error.
UFUNC_FORMS = {
    "sin": lambda x, y: np.sin([x, 1.0]),
    "add": lambda x, y: np.add([x, y], (1, y)) * F32,
    "maximum": lambda x, y: np.maximum([x, y], [1.0, 2.0]),
    "maximum of one list": lambda x, y: np.maximum([x, y], 1) * F32,
    "hypot": lambda x, y: np.hypot((x, y), 2.0),
    "float_power": lambda x, y: np.float_power([x, y], 2),
    "isfinite": lambda x, y: np.isfinite([x, y]),
    "add.reduce": lambda x, y: np.add.reduce([x, y]),
    "multiply.accumulate": lambda x, y: np.multiply.accumulate([x, y, 2]),
    "hypot.outer": lambda x, y: np.hypot.outer([x, y], [1.0, 2.0]),
    "np.matmul": lambda x, y: np.matmul([[x, y], [1, 2]], [x, y]),
}
FORMS = {
    # operators, and ufuncs that are given an array of the recording as well
    "add.at": _filled,
    "out": lambda x, y: np.add([x, y], 1.0, out=np.zeros(2)),
    "out in a tuple": lambda x, y: np.add([x, y], 1.0, out=(np.zeros(2),)),
    "operator": lambda x, y: A([1.0, 2.0]) * [x, y],
    "matmul": lambda x, y: np.eye(2) @ [x, y],
    # reductions
    "max": lambda x, y: np.max([x, 1.0]),
    "min": lambda x, y: np.min([x, y, 1]) * F32,
    "mean": lambda x, y: np.mean([x, y]),
    "sum": lambda x, y: np.sum([x, 1.0]) * F32,
    "sum where": lambda x, y: np.sum([x, y, 1.0], where=[True, False, True]),
    "sum of rows": lambda x, y: np.sum([[x, y], (1.0, 2.0)], axis=0) * F32,
    "prod": lambda x, y: np.prod([x, y]) * F32,
    "cumsum": lambda x, y: np.cumsum([x, y]) * F32,
    "any": lambda x, y: np.any([x > 1, y > 1]),
    "all": lambda x, y: np.all([x > 1, y > 1]),
    "count_nonzero": lambda x, y: np.count_nonzero([x > 1, y > 1]),
    "var": lambda x, y: np.var([x, y]),
    "std": lambda x, y: np.std([x, y], ddof=1),
    "median": lambda x, y: np.median([x, y, 3.0]),
    "percentile": lambda x, y: np.percentile([x, y], 30.0),
    "ptp": lambda x, y: np.ptp([x, y, 0.5]),
    "average": lambda x, y: np.average([x, y], weights=[1.0, 3.0]),
    "argmax": lambda x, y: np.argmax([x, y]),
    "diff": lambda x, y: np.diff([x, y, 1.0]) * F32,
    "trapezoid": lambda x, y: np.trapezoid([x, y]) * F32,
    "gradient": lambda x, y: np.gradient([x, y, 1.0]),
    # choosing and ordering
    "where": lambda x, y: np.where(MASK, [x, y], [1.0, 2.0]),
    "where with a list": lambda x, y: np.where([x > 1, y > 1], [x, y], 0) * F32,
    "clip": lambda x, y: np.clip([x, y], 0.0, 1.0),
    "clip between lists": lambda x, y: np.clip(1.0, [x, 0.5], [y, 2.0]),
    "select": lambda x, y: np.select([x > 1, x > 0], [x, y], 0.0),
    "select of lists": lambda x, y: np.select([MASK, ~MASK], [[x, y], [y, 2.0]]),
    "choose": lambda x, y: np.choose([0, 1], [[x, y], [y, 2.0]]),
    "piecewise": lambda x, y: np.piecewise([x, y], [MASK], [1.0, 2.0]),
    "sort": lambda x, y: np.sort([y, x]),
    "argsort": lambda x, y: np.argsort([y, x]),
    "searchsorted": lambda x, y: np.searchsorted([0.0, 1.0, 2.0], [x, y]),
    "allclose": lambda x, y: np.allclose([x, y], [x, y]),
    "array_equal": lambda x, y: np.array_equal([x, y], [x, 1]),
    "take": lambda x, y: np.take([x, y], [1, 0]) * F32,
    # stacking and shapes
    "stack": lambda x, y: np.stack([[x, y], [1.0, 2.0]]) * F32,
    "stack of tuples": lambda x, y: np.stack(((x, y), (y, x)), axis=1) * F32,
    "hstack": lambda x, y: np.hstack([x, y]) * F32,
    "vstack": lambda x, y: np.vstack([[x, y], F32]),
    "concatenate": lambda x, y: np.concatenate([[x, y], [1.0, 2.0, 3.0]])[:2] * F32,
    "column_stack": lambda x, y: np.column_stack([[x, y], [1.0, 2.0]]) * F32,
    "block": lambda x, y: np.block([[x, y], [y, x]]) * F32,
    "reshape": lambda x, y: np.reshape([x, y], (2, 1)) * F32,
    "transpose": lambda x, y: np.transpose([[x, y], [1, 2]]),
    "broadcast_to": lambda x, y: np.broadcast_to([x, y], (2, 2)) * F32,
    "repeat": lambda x, y: np.repeat([x, y], 2),
    "tile": lambda x, y: np.tile([x, y], (2, 1)),
    "flip": lambda x, y: np.flip([x, y]) * F32,
    "roll": lambda x, y: np.roll([x, y, 1], 1),
    "diag": lambda x, y: np.diag([x, y]) * F32,
    "append": lambda x, y: np.append([x], [y]) * F32,
    "pad": lambda x, y: np.pad([x, y], 1),
    "atleast_2d": lambda x, y: np.atleast_2d([x, y]) * F32,
    "shape": lambda x, y: np.zeros((*np.shape([x, y]), np.size([x, y]), np.ndim([x, y]))),
    "full": lambda x, y: np.full((2, 2), [x, y]) * F32,
    "r_": lambda x, y: np.r_[x, [y, 1.0]][:2] * F32,
    "linspace": lambda x, y: np.linspace([x, y], 5.0, 3),
    # products and linear algebra
    "dot": lambda x, y: np.dot([x, y], [1.0, 2.0]) * F32,
    "einsum": lambda x, y: np.einsum("i,i->", [x, y], [1.0, 2.0]) * F32,
    "outer": lambda x, y: np.outer([x, y], (1, y)) * F32,
    "cross": lambda x, y: np.cross([x, y, 1.0], [1.0, 2.0, 3.0])[:2] * F32,
    "inner": lambda x, y: np.inner([x, y], [x, y]) * F32,
    "vdot": lambda x, y: np.vdot([x, y], [x, y]),
    "tensordot": lambda x, y: np.tensordot([[x, y], [1, 2]], [x, y], axes=([0], [0])),
    "kron": lambda x, y: np.kron([x, y], [1, 2]),
    "trace": lambda x, y: np.trace([[x, y], [1, y]]),
    "norm": lambda x, y: np.linalg.norm([x, y]) * F32,
    "norm of a matrix": lambda x, y: np.linalg.norm([[x, 1], [0, y]], axis=0),
    "inv": lambda x, y: np.linalg.inv([[x, 1.0], [0.0, y]]),
    "det": lambda x, y: np.linalg.det([[x, 1.0], [0.0, y]]),
    "solve": lambda x, y: np.linalg.solve([[2.0, 1.0], [0.0, 1.0]], [x, y]),
    "multi_dot": lambda x, y: np.linalg.multi_dot([[x, y], [[1, 2], [3, y]], [1, x]]),
    # interpolation, polynomials
    "interp": lambda x, y: np.interp([x, y], [0.0, 1.0], [2.0, 3.0]),
    "interp of values": lambda x, y: np.interp(0.5, [0.0, 1.0], [x, y]),
    "polyval": lambda x, y: np.polyval([x, y], 2.0) * F32,
    "convolve": lambda x, y: np.convolve([x, y], [1.0, 2.0]),
    "round": lambda x, y: np.round([x, y], 1),
}
KINDS = {
    "Python floats": (0.7, 1.3),
    "Python ints": (2, 3),
    "float32 scalars": (np.float32(0.7), np.float32(1.3)),
    "float64 scalars": (np.float64(0.7), np.float64(1.3)),
    "float32 arrays without axes": (A(0.7, np.float32), A(1.3, np.float32)),
    "int64 scalars": (np.int64(2), np.int64(3)),
}
