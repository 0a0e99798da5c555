"""Every op on every dtype it takes, on special and ordinary values."""

from __future__ import annotations

import itertools

import numpy as np

from archimedes.graph import B8, CODES, DTYPES, I64, TABLE, Graph

from .program import Program
from .values import SPECIAL_FLOATS, SPECIAL_INTS, samples

ROWS = [op for op in TABLE if op.numpy is not None]
#: Names and dtypes of all ops.
OPS = [(op.name, dtype) for op in ROWS for dtype in op.takes]
#: The sign and the payload of a nan are outside the contract: these ops never see one.
READS_SIGN = ("copysign", "bits", "bits32")


def _specials(dtype: int) -> np.ndarray:
    values = {B8: np.array([True, False]), I64: SPECIAL_INTS}.get(dtype, SPECIAL_FLOATS)
    with np.errstate(all="ignore"):
        return values.astype(DTYPES[dtype])


def op_program(name: str, dtype: int) -> Program:
    """One op, on combinations of special values and on random ones."""
    row = next(op for op in ROWS if op.name == name)
    dtypes = [B8 if name == "select" and k == 0 else dtype for k in range(row.arity)]
    g = Graph()
    ids = [g.input(d) for d in dtypes]
    g.outputs = [g.emit(CODES[name], *ids)]
    every = list(itertools.product(*(_specials(d) for d in dtypes)))[:1500]
    rng = np.random.default_rng(7)
    columns = []
    for k, d in enumerate(dtypes):
        special = np.array([row[k] for row in every], DTYPES[d])
        columns.append(np.concatenate([special, samples(d, 203, rng)]))
    if name in READS_SIGN:
        columns[-1] = np.where(columns[-1] == columns[-1], columns[-1], columns[-1].dtype.type(1))
    return Program(f"op_{name}_{dtype}", g, columns)
