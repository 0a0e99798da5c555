"""In which order to eliminate the unknowns of a sparse system, in blocks, and what fills up.

Neighbours are gathered into blocks of ``SIZE`` unknowns, so that factorising is work on small
dense matrices; then the block with the fewest neighbours is eliminated, again and again. Sources:
A. George, J. W. H. Liu, "The evolution of the minimum degree ordering algorithm", SIAM Review 31
(1989) 1-19; for blocks of neighbours, C. Ashcraft, "Compressed graphs and the minimum degree
algorithm", SIAM J. Sci. Comput. 16 (1995) 1404-1411.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass

import numpy as np

__all__ = ["SIZE", "Elimination", "eliminated"]

#: Unknowns in a block.
SIZE = 8


@dataclass(frozen=True)
class Elimination:
    """``blocks``: the unknowns of each block, in the order of elimination; ``below``: for each the
    numbers of later blocks that its elimination touches, ascending.
    """

    blocks: list[list[int]]
    below: list[list[int]]


def _neighbours(rows: np.ndarray, columns: np.ndarray, n: int) -> list[list[int]]:
    """Return the unknowns that each is coupled to, in either direction."""
    off = rows != columns
    first, second = rows[off], columns[off]
    keys = np.concatenate([first * n + second, second * n + first])
    # Most of them are in order already, in two runs: what a stable sort is made for.
    keys.sort(kind="stable")
    keys = keys[np.append(True, keys[1:] != keys[:-1])[: len(keys)]]
    ends = (keys % n).tolist()
    starts = np.searchsorted(keys, n * np.arange(n + 1)).tolist()
    return [ends[a:b] for a, b in itertools.pairwise(starts)]


def _gathered(neighbours: list[list[int]]) -> list[list[int]]:
    """Return blocks of unknowns that are close to each other."""
    taken = [False] * len(neighbours)
    blocks: list[list[int]] = []
    loose: list[int] = []
    for start in range(len(neighbours)):
        if taken[start]:
            continue
        block, newest, links = [start], start, dict[int, int]()
        taken[start] = True
        while len(block) < SIZE:
            for k in neighbours[newest]:
                if not taken[k]:
                    links[k] = links.get(k, 0) + 1
            if not links:
                break
            # The one with the most links to the block, and the first of these.
            most = 0
            for k, count in links.items():
                if count > most or (count == most and k < newest):
                    newest, most = k, count
            del links[newest]
            taken[newest] = True
            block.append(newest)
        # Small ones share a block.
        if len(block) == SIZE:
            blocks.append(block)
        elif len(loose) + len(block) <= SIZE:
            loose += block
        else:
            blocks.append(loose)
            loose = block
    return [*blocks, loose] if loose else blocks


def eliminated(rows: np.ndarray, columns: np.ndarray, n: int) -> Elimination:
    """Return the elimination of a system (n, n) with entries at these places.

    >>> found = eliminated(np.array([0, 9]), np.array([9, 0]), 10)
    >>> found.blocks, found.below
    ([[0, 9, 1, 2, 3, 4, 5, 6], [7, 8]], [[], []])
    """
    neighbours = _neighbours(np.asarray(rows), np.asarray(columns), n)
    blocks = _gathered(neighbours)
    home = np.empty(n, dtype=np.int64)
    for number, block in enumerate(blocks):
        home[block] = number
    homes = home.tolist()
    around = [{homes[j] for i in block for j in neighbours[i]} for block in blocks]
    for number, mine in enumerate(around):
        mine.discard(number)
    order, below = _children_first(*_least_first(around))
    place = {number: k for k, number in enumerate(order)}
    return Elimination(
        [blocks[number] for number in order],
        [sorted(place[number] for number in later) for later in below],
    )


def _children_first(order: list[int], below: list[set[int]]) -> tuple[list[int], list[set[int]]]:
    """Put every node right behind those whose first later neighbour it is: the same fill.

    What follows each other then touches the same blocks, which are still in the caches.
    """
    place = {number: k for k, number in enumerate(order)}
    parent = [min((place[other] for other in later), default=-1) for later in below]
    children: list[list[int]] = [[] for _ in order]
    roots: list[int] = []
    for k, above in enumerate(parent):
        (roots if above < 0 else children[above]).append(k)
    found: list[int] = []
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        k, done = stack.pop()
        if done:
            found.append(k)
        else:
            stack.append((k, True))
            stack += [(child, False) for child in reversed(children[k])]
    return [order[k] for k in found], [below[k] for k in found]


def _least_first(around: list[set[int]]) -> tuple[list[int], list[set[int]]]:
    """Eliminate the node with the fewest neighbours again and again; these become neighbours.

    A neighbour that then has no others is the next one, whatever else there is: all such follow at
    once, without sets of their own (George and Liu call it mass elimination).
    """
    queue = [(len(mine), number) for number, mine in enumerate(around)]
    heapq.heapify(queue)
    order: list[int] = []
    below: list[set[int]] = []
    done = [False] * len(around)
    while queue:
        degree, number = heapq.heappop(queue)
        mine = around[number]
        if done[number] or degree != len(mine):
            continue
        inner: list[int] = []
        outer: list[int] = []
        for other in mine:
            theirs = around[other]
            theirs |= mine
            # It is among them itself, as is the one that goes.
            (inner if len(theirs) == degree + 1 else outer).append(other)
        gone = {number, *inner}
        for one in (number, *sorted(inner)):
            mine = mine - {one}
            done[one] = True
            order.append(one)
            below.append(mine)
        for other in outer:
            theirs = around[other]
            theirs -= gone
            theirs.discard(other)
            heapq.heappush(queue, (len(theirs), other))
    return order, below
