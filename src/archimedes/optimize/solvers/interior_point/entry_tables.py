"""Where the entries of a block's derivatives are, in tables: nothing is listed entry by entry."""

from __future__ import annotations

import numpy as np

from archimedes.optimize.problems.blocks import BlockPatterns

__all__ = ["EntryTable"]


class EntryTable:
    """The patterns of a block as native functions take them (``place_loops.py``)."""

    def __init__(self, patterns: BlockPatterns) -> None:
        first, second, block = patterns.first, patterns.second, patterns.block
        arrays = (block.rows, block.index, first.rows, first.columns, second.rows, second.columns)
        self._arrays = [np.ascontiguousarray(a, dtype=np.int64) for a in arrays]
        rows, index, *local = self._arrays
        self.first, self.second = (rows, index, *local[:2]), (index, *local[2:])
        places, ny, nz = block.places, block.rows.shape[1], block.index.shape[1]
        self.first_sizes, self.second_sizes = (places, ny, nz, first.nnz), (places, nz, second.nnz)
        # In one piece, so that the system can give memory in large pages.
        count = places * first.nnz
        room = np.empty(count + places * second.nnz, dtype=np.int64)
        #: Where each entry of the slopes is among those of A, and each of the curvatures in H.
        self.slots, self.places = room[:count], room[count:]

    def _at(self, entries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return rows and unknowns of entries, -1 being the row of the objective."""
        rows, index, above, left = self._arrays[:4]
        k, e = np.divmod(entries, above.size)
        return rows[k, above[e]], index[k, left[e]]

    def places_in_rows(self, place: np.ndarray, n: int) -> np.ndarray:
        """Return a number for each place in A that an entry belongs to, -1 for none."""
        rows, unknowns = self._at(np.arange(self.slots.size))
        columns = place[unknowns]
        return np.where((rows < 0) | (columns < 0), -1, rows * n + columns)

    def dropped(self, slot: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return rows, unknowns and numbers of the entries of constraints with this slot."""
        found = np.flatnonzero(self.slots == slot)
        rows, unknowns = self._at(found)
        kept = rows >= 0
        return rows[kept], unknowns[kept], found[kept]
