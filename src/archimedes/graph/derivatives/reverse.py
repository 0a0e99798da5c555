"""The reverse sweep of automatic differentiation: a program, and the way back over its adjoints.

An adjoint of a node is a dict ``{direction: id}``; a direction that is missing is zero, so that
structural zeros cost nothing. Directions are small ints chosen by the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from archimedes.graph.blocks.building import add_values, one_hot, pack
from archimedes.graph.derivatives.gauge import inline_gauge_dependent
from archimedes.graph.derivatives.rules import IS_SMOOTH, LINEAR, PARTIALS
from archimedes.graph.dtypes import is_float, item_type, length_of
from archimedes.graph.formulas import Emit
from archimedes.graph.ops import ARITY, CODES, ELEMENT, INPUT, LOOKUP, OUT, REGION, TABLE
from archimedes.graph.passes import Outputs, Transformer
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import Directions, Region, Tangents, Wanted
from archimedes.graph.regions.block_regions import Affine, Move

#: Derivative rules of ops by code, None where an op has none.
PARTIAL_RULES = tuple(PARTIALS.get(op.name) for op in TABLE)
LINEAR_RULES = tuple(LINEAR.get(op.name) for op in TABLE)
_MUL = CODES["mul"]


def add_term(g: Graph, into: Directions, direction: int, term: int) -> None:
    """Add a term to the tangent or adjoint along one direction; a literal zero adds nothing."""
    if g.value.get(term) == 0:
        return
    old = into.get(direction)
    into[direction] = term if old is None else add_values(g, old, term)


def _add_terms(g: Graph, into: Directions, terms: Directions) -> None:
    for d, term in terms.items():
        add_term(g, into, d, term)


def partial_of(g: Graph, code: int, k: int, out: int, ids: Sequence[int]) -> int:
    """Emit the partial derivative of an op by its operand k."""
    partials = PARTIAL_RULES[code]
    assert partials is not None
    return partials[k](Emit(g, g.dtype[out]), out, ids[0], ids[1] if len(ids) > 1 else -1)


def reverse_sweep(
    dst: Graph,
    src: Graph,
    inputs: Sequence[int],
    seeds: Sequence[Directions] | Callable[[list[int]], Sequence[Directions]],
    wanted: Sequence[bool] | None = None,
) -> tuple[list[int], Tangents]:
    """Copy ``src`` into ``dst`` together with adjoints of its inputs.

    ``seeds`` are the adjoints of the outputs, or a function of the outputs' ids that gives them.
    ``wanted`` marks the inputs whose adjoints are asked for (default: all of float type).
    Returns the ids of the outputs and the adjoints of the inputs.
    """
    src = inline_gauge_dependent(src)
    live = src.live()
    active = _active(src, live, wanted)
    _narrow(src, live, active, None if callable(seeds) else seeds)
    sweep = _Reverse(dst, src, inputs, live, active)
    sweep.copy(live)
    out_ids = sweep.outputs()
    for i, seed in zip(src.outputs, seeds(out_ids) if callable(seeds) else seeds):
        sweep.give(i, seed)
    return out_ids, sweep.go_back()


def reverse_by_rows(
    dst: Graph, src: Graph, inputs: Sequence[int], seeds: Sequence[Directions], wanted: Wanted
) -> list[Directions]:
    """Return the adjoints of inputs from the gradient of each output by itself.

    For a body whose outputs are used elsewhere: each must then have a derivative of its own.
    """
    ones: list[Directions] = [
        {k: dst.const(1.0, dtype)} if seed else {}
        for k, (seed, dtype) in enumerate(zip(seeds, src.output_dtypes))
    ]
    _, gradients = reverse_sweep(dst, src, inputs, ones, wanted)
    adjoints: list[Directions] = [{} for _ in gradients]
    for adjoint, gradient in zip(adjoints, gradients):
        for k, partial in gradient.items():
            for d, bar in seeds[k].items():
                add_term(dst, adjoint, d, dst.emit(_MUL, partial, bar))
    return adjoints


class _Reverse(Transformer):
    """A program that is being copied, then walked back with adjoints.

    ``active`` marks the nodes of ``src`` that adjoints pass through, ``saved`` is what regions kept
    for the way back.
    """

    def __init__(
        self, dst: Graph, src: Graph, inputs: Sequence[int], live: list[int], active: bytearray
    ) -> None:
        super().__init__(dst, src, inputs)
        self.live, self.active = live, active
        self.saved: dict[int, Any] = {}
        self.adjoints: dict[int, Directions] = {}
        self.of_regions: dict[int, dict[int, Directions]] = {}
        #: Adjoints of elements at constant indices, by block and index: put together once.
        self.of_elements: dict[int, dict[int, Directions]] = {}

    def region(self, i: int, region: Region) -> Outputs:
        if not self.active[i]:
            return super().region(i, region)
        outs, self.saved[i] = self.relink(region).record(self.dst)
        return outs.tolist()

    def give(self, i: int, adjoint: Directions) -> None:
        """Add to the adjoint of a node that is active."""
        if adjoint and self.active[i]:
            _add_terms(self.dst, self.adjoints.setdefault(i, {}), adjoint)

    def go_back(self) -> list[Directions]:
        """Propagate adjoints from the outputs to the inputs, and return those."""
        src, active, adjoints = self.src, self.active, self.adjoints
        for i in reversed(self.live):
            if not active[i]:
                continue
            code = src.op[i]
            if code == REGION:
                self._through_region(i)
                continue
            if i in self.of_elements:
                self._gather_elements(i)
            adjoint = adjoints.get(i)
            if not adjoint or code == INPUT:
                continue
            if code == ELEMENT:
                self._through_element(i, adjoint)
            elif code == OUT:
                self.of_regions.setdefault(src.a[i], {})[src.b[i]] = adjoint
            else:
                self._through_op(i, code, adjoint)
        return [adjoints.get(i, {}) if active[i] else {} for i in src.inputs]

    def _through_region(self, i: int) -> None:
        mine = self.of_regions.pop(i, None)
        if mine is None:
            return
        region = self.src.regions[i]
        reads = region.inputs.tolist()
        adjoints = [mine.get(k, {}) for k in range(len(region.out_dtypes))]
        wanted = [bool(self.active[j]) for j in reads]
        back = self.relink(region).pull_back(self.dst, adjoints, self.saved[i], wanted)
        for j, adjoint in zip(reads, back):
            self.give(j, adjoint)

    def _through_element(self, i: int, adjoint: Directions) -> None:
        """Give the adjoint of an element to its block."""
        src, dst = self.src, self.dst
        block, index = src.a[i], self.to[src.b[i]]
        at = dst.value.get(index)
        if at is not None:
            mine = self.of_elements.setdefault(block, {})
            _add_terms(dst, mine.setdefault(at, {}), adjoint)
            return
        length = length_of(src.dtype[block])
        self.give(block, {d: one_hot(dst, length, index, bar) for d, bar in adjoint.items()})

    def _gather_elements(self, block: int) -> None:
        """Pack the adjoints of elements into one adjoint of their block."""
        dst, kind = self.dst, self.src.dtype[block]
        elements = self.of_elements.pop(block)
        for d in sorted({d for adjoint in elements.values() for d in adjoint}):
            mine = {at: adjoint[d] for at, adjoint in sorted(elements.items()) if d in adjoint}
            moves = [Move(k, (), Affine(at, ()), None) for k, at in enumerate(mine)]
            whole = pack(dst, length_of(kind), item_type(kind), list(mine.values()), moves)
            self.give(block, {d: whole})

    def _through_op(self, i: int, code: int, adjoint: Directions) -> None:
        g, src, to, active = self.dst, self.src, self.to, self.active
        sources = (src.a[i], src.b[i], src.c[i])[: ARITY[code]]
        ids = tuple([to[j] for j in sources])
        linear = LINEAR_RULES[code]
        if linear is not None:
            for d, bar in adjoint.items():
                for j, term in zip(sources, linear[1](g, ids, bar)):
                    if term is not None:
                        self.give(j, {d: term})
        elif PARTIAL_RULES[code] is not None:
            for k, j in enumerate(sources):
                if active[j]:
                    partial = partial_of(g, code, k, to[i], ids)
                    into = self.adjoints.setdefault(j, {})
                    for d, bar in adjoint.items():
                        add_term(g, into, d, g.emit(_MUL, partial, bar))


def _narrow(
    src: Graph, live: list[int], active: bytearray, seeds: Sequence[Directions] | None
) -> None:
    """Unmark nodes that no adjoint will reach (if ``seeds`` is None, any output may have one).

    What is only compared, or stopped, need not be recorded for a way back.
    """
    reached = bytearray(len(src.op))
    for k, i in enumerate(src.outputs):
        if active[i] and (seeds is None or seeds[k]):
            reached[i] = 1
    for i in reversed(live):
        if not (active[i] and reached[i]):
            active[i] = 0
            continue
        code = src.op[i]
        if code == OUT:
            reached[src.a[i]] = 1
        elif code in (REGION, ELEMENT) or IS_SMOOTH[code]:
            for j in src.operands(i):
                reached[j] = 1


def _active(src: Graph, live: list[int], wanted: Sequence[bool] | None) -> bytearray:
    """Mark the nodes through which a wanted input can influence something."""
    active = bytearray(len(src.op))
    for i in live:
        code = src.op[i]
        if code == INPUT:
            active[i] = is_float(src.dtype[i]) and (wanted is None or wanted[src.a[i]])
        elif code == REGION:
            active[i] = any(active[j] for j in src.regions[i].inputs.tolist())
        elif ARITY[code] and code != LOOKUP and is_float(src.dtype[i]):
            passes = code in (OUT, ELEMENT) or IS_SMOOTH[code]
            active[i] = passes and any(active[j] for j in src.operands(i))
    return active
