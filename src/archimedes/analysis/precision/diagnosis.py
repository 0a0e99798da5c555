"""From errors of operations to findings: which line lost the digits, how, and what helps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

import numpy as np

from archimedes.analysis.findings import Finding
from archimedes.analysis.precision.advice import (
    advise,
    advise_absorbed,
    advise_overflow,
    is_accumulator,
)
from archimedes.analysis.precision.report import LineError
from archimedes.analysis.precision.sources import Source, inner_line
from archimedes.analysis.precision.statistics import Growth, NodeError, Statistics
from archimedes.graph.ops import OPERANDS, REGION, TABLE
from archimedes.records import record

#: An operation that multiplies errors by less is not to blame; one that multiplies them by more
#: than the second number is to blame before a sum that loses its addends.
_AMPLIFIES, _STEEP = 100.0, 1e4
#: A line counts if it brings this part of the error that is allowed, and of the error there is.
_PART, _SHARE = 0.1, 0.03
_WHOLE = ("floor", "ceil", "trunc", "rint")
_COMPARISONS = ("lt", "le", "eq", "ne")
_OPEN = ("sqrt", "log", "log2", "log10", "log1p", "arccos", "arcsin", "arccosh", "arctanh", "pow")


@record
class Diagnosis:
    """Findings, and what to say where there is nothing to find."""

    findings: list[Finding]
    notes: list[str]


def diagnose(
    statistics: Statistics,
    effects: Mapping[int, np.ndarray] | None,
    rtol: float,
    errors: np.ndarray,
    definition: tuple[str, int],
) -> Diagnosis:
    """Return findings if the errors of some results are above ``rtol``; otherwise remarks only.

    ``effects``: errors of the results by source, where it alone is in the shorter type.
    ``definition``: file and line of the function, for findings about its arguments.
    """
    by_source: dict[int, list[NodeError]] = defaultdict(list)
    for node in statistics.nodes:
        by_source[node.source].append(node)
    growth = {g.source: g for g in sorted(statistics.growth, key=_last_error)}
    listed, findings, notes = statistics.sources.listed, [], []
    failing = bool(np.any(errors > rtol))
    judge = _Judge(statistics, effects, rtol, errors)
    for number, source in enumerate(listed):
        if source.argument:
            text = judge.argument(number, source)
            if text and failing:
                file, line = definition
                findings.append(Finding(file, line, text, source.argument, "digits"))
            continue
        texts = list(judge.line(number, by_source.get(number, ()), growth.get(number)))
        if statistics.low.name == "float64":
            texts = [text.replace("in double", "with more digits") for text in texts]
        if failing:
            file, line = (source.file, source.number) if source.file else definition
            findings += [Finding(file, line, text, source.text, "digits") for text in texts]
        else:
            events = judge.events(by_source.get(number, ()))
            notes += [f"{source.where}: {text}, without effect on the results" for text in events]
    if failing and not findings:
        findings.append(judge.many(by_source, listed, definition))
    for number, accurate, computed in statistics.rounds:
        notes.append(
            f"{listed[number].where}: the loop runs {accurate} times in {statistics.high.name} and "
            f"{computed} times in {statistics.low.name}"
        )
    return Diagnosis(findings, notes)


class _Judge:
    """Says what is wrong with a line or an argument."""

    def __init__(
        self,
        statistics: Statistics,
        effects: Mapping[int, np.ndarray] | None,
        rtol: float,
        errors: np.ndarray,
    ) -> None:
        self.low, self.high = statistics.low, statistics.high
        self.effects, self.rtol = effects, rtol
        self._errors = {(n.key, n.node): n.error for n in statistics.nodes}
        self._users: dict[int, dict[int, list[int]]] = {}
        # A part of what is allowed, and of what there is.
        self.least = np.maximum(_PART * rtol, np.where(np.isfinite(errors), _SHARE * errors, 0.0))
        self.threshold = max(_PART * rtol, 30.0 * self.low.eps)

    def matters(self, source: int) -> bool:
        """Return whether a source brings a part of the error that counts, as far as is known."""
        if self.effects is None:
            return True
        return bool(np.any(self.effects.get(source, np.inf) > self.least))

    def reaches(self, node: NodeError) -> bool:
        """Return whether the error of a value goes on, and is not lost in a larger sum.

        A small difference that is scaled and added to a large number, such as the innovation of a
        filter, may have hardly any digits of its own.
        """
        g = node.graph
        if id(g) not in self._users:
            users: dict[int, list[int]] = defaultdict(list)
            for j, code in enumerate(g.op):
                for i in g.operands(j) if OPERANDS[code] or code == REGION else ():
                    users[i].append(j)
            self._users[id(g)] = users
        waiting, seen = [node.node], {node.node}
        while waiting:
            i = waiting.pop()
            if i in g.outputs:
                return True
            for j in self._users[id(g)][i]:
                name = TABLE[g.op[j]].name
                if name in ("mul", "div", "neg", "abs", "select"):
                    waiting += {j} - seen
                    seen.add(j)
                elif name not in ("add", "sub") or self._errors.get((node.key, j), 0.0) > (
                    self.threshold
                ):
                    return True
        return False

    def argument(self, number: int, source: Source) -> str:
        if self.effects is None or number not in self.effects or not self.matters(number):
            return ""
        effect = float(np.max(self.effects[number]))
        return (
            f"keeping the argument {source.argument} in {self.low.name} alone costs the results a "
            f"relative error of {effect:.1e}: subtract a reference before converting, choose a "
            "unit in which it is exact, or pass it in double"
        )

    def line(self, number: int, nodes: Sequence[NodeError], growth: Growth | None) -> Iterator[str]:
        """Yield what is wrong with one line, most important first."""
        texts = list(self.events(nodes))
        yield from texts
        sums = [n for n in nodes if n.in_loop and n.often > self.rtol and is_accumulator(n)]
        sums = [n for n in sums if n.error > self.threshold and self.matters(number)]
        ill = [n for n in nodes if n.amplification > _AMPLIFIES and n.jump > self.threshold]
        ill = [n for n in ill if self.matters(number) and self.reaches(n)]
        worst = max(sums, key=lambda n: (n.absorbed > 0.5, n.error), default=None)
        steep = max(ill, key=lambda n: n.jump, default=None)
        # A difference that grows the errors of the sum it belongs to is no cause of its own.
        is_steep = steep is not None and steep.amplification > _STEEP and steep.jump > 0.1
        if worst is not None and (worst.absorbed > 0.5 or not is_steep):
            yield self.absorbed(worst) + self.drift(growth)
        elif steep is not None:
            yield self.amplified(steep) + self.drift(growth)
        elif not texts and growth is not None and self.matters(number):
            drift = self.drift(growth)
            if drift and _last_error(growth) > self.threshold:
                yield (
                    f"the loop keeps the rounding of each step{drift}: add with compensation "
                    "(Kahan), or keep what this line carries from step to step in double"
                )

    def many(
        self,
        by_source: Mapping[int, Sequence[NodeError]],
        listed: Sequence[Source],
        definition: tuple[str, int],
    ) -> Finding:
        """Return the finding for errors that no single operation stands out for."""

        def weight(number: int) -> float:
            if self.effects is not None:
                return float(np.max(self.effects.get(number, 0.0)))
            return max((n.error for n in by_source[number]), default=0.0)

        number = max(by_source, key=weight, default=0)
        source = listed[number]
        file, line = (source.file, source.number) if source.file else definition
        nodes = by_source.get(number, ())
        largest = max((n.size for n in nodes), default=0.0)
        last = abs(nodes[-1].values[-1][0]) if nodes and nodes[-1].values else 0.0
        if 0.0 < 1e3 * last < largest:
            text = (
                f"terms of up to {largest:.3g} cancel to {last:.3g} in many steps: sum terms of "
                "one sign, such as 1/exp(x) for exp(-x), or compute it in double"
            )
            return Finding(file, line, text, source.text, "digits")
        text = (
            f"the roundings of this line add up to a relative error of {weight(number):.1e} of the "
            "results, with no operation that stands out: compute it in double, or scale and order "
            "its terms so that they are of one size"
        )
        return Finding(file, line, text, source.text, "digits")

    # ---- single events -------------------------------------------------------------------

    def events(self, nodes: Sequence[NodeError]) -> Iterator[str]:
        """Yield overflows, invalid operations and decisions that differ."""
        low, high = self.low.name, self.high.name
        flips = [n for n in nodes if n.flips and n.op in _COMPARISONS]
        if flips:
            n = max(flips, key=lambda n: n.flips)
            taken = ("not taken", "taken")
            accurate, computed = (taken[bool(x)] for x in n.values[0])
            times = f" (in {n.flips} of {n.count} executions)" if n.count > 1 else ""
            yield (
                f"the branch is {accurate} in {high} and {computed} in {low}{times}: what is "
                "compared is within its error of equal; compare with a margin, or in double"
            )
        whole = [n for n in nodes if n.flips and n.op == "truncate"]
        whole += [n for n in nodes if n.op in _WHOLE and 0.0 < n.error < np.inf]
        if whole:
            right, wrong = (int(x) for x in whole[0].values[-1])
            yield (
                f"the integer is {right} in {high} and {wrong} in {low}: round to the "
                "nearest (np.rint) before converting, or compute it in integers"
            )
        over = [n for n in nodes if n.overflows]
        if over:
            n = over[0]
            yield (
                f"{n.op} overflows in {low}, where {high} has {n.values[-1][0]:.3g}: "
                f"{advise_overflow(n)}"
            )
        invalid = [n for n in nodes if n.invalid]
        if invalid and not over:
            n = invalid[0]
            remedy = (
                "clip its argument (np.clip, np.maximum)" if n.op in _OPEN else advise(n, False)
            )
            operands = " and ".join(f"{computed:.9g}" for _, computed in n.values[:-1])
            yield f"{n.op} of {operands} is nan in {low} and not in {high}: {remedy}"
        under = [n for n in nodes if n.underflows and n.error > self.threshold]
        if under:
            value = under[0].values[-1][0]
            yield f"{under[0].op} underflows in {low}: {value:.3g}; scale the unit"

    # ---- gradual losses ------------------------------------------------------------------

    def absorbed(self, node: NodeError) -> str:
        low, remedy = self.low.name, advise_absorbed(node)
        addends = [abs(x) for x in node.last]
        sizes = f"{min(addends):.3g} to {max(addends):.3g}"
        if node.absorbed > 0.5:
            what = (
                f"{low} swallows the addend in {node.absorbed:.0%} of {node.count:,} executions "
                f"(in the end it adds {sizes}), so that the sum stands still"
            )
        else:
            what = (
                f"adds {sizes} in the end; {low} loses {100 * node.lost:.2g} % of what is added "
                f"on average, over {node.count:,} executions"
            )
        return f"{what}: {remedy}"

    def amplified(self, node: NodeError) -> str:
        where = inner_line(node.graph, node.node)
        inside = "" if where is None else f" (in {PurePath(where.file).name}:{where.number})"
        loss = min(np.log10(node.amplification), self.low.digits)
        remedy = advise(node, not node.key)
        values = [f"{accurate:.9g}" for accurate, _ in node.values]
        if node.op in ("add", "sub"):
            if (node.op == "add") == (node.values[0][0] * node.values[1][0] > 0):
                what = f"{node.op} of {values[0]} and {values[1]}{inside}"
            else:
                what = f"{values[0]} and {values[1]} cancel to {values[2]}{inside}"
        elif node.op in ("sum", "solve"):
            what = {"sum": "the terms of a sum cancel", "solve": "a linear system"}[node.op]
            what += inside
        else:
            what = f"{node.op}({', '.join(values[:-1])}) is ill-conditioned{inside}"
        return (
            f"{what}: errors before it grow {node.amplification:.1e} times ({loss:.1f} digits), to "
            f"{node.jump:.1e}: {remedy}"
        )

    def drift(self, growth: Growth | None) -> str:
        """Describe how the error of what a loop carries grows, if it does."""
        if growth is None or len(growth.steps) < 8:
            return ""
        rate, kind = growth_rate(growth)
        if not kind or _last_error(growth) < self.threshold:
            return ""
        last = int(growth.steps[-1]) + 1
        end = f"to {growth.error[-1]:.2g} after {last:,} steps"
        return f"; the error grows {kind}, by {rate:.1e} a step, {end}"


def _last_error(growth: Growth) -> float:
    return float(growth.relative[-1]) if len(growth.relative) else 0.0


def growth_rate(growth: Growth) -> tuple[float, str]:
    """Return the error that a loop adds in a step, and how it grows ("" if it does not)."""
    steps, error = growth.steps, growth.error
    last = int(steps[-1]) + 1
    rate = float(error[-1]) / last

    def around(part: float) -> float:
        """The error near a part of the way: the largest of the steps around it."""
        near = np.abs(steps - part * last) <= max(1.0, 0.05 * last)
        return float(np.max(error[near], initial=0.0))

    half, end = around(0.5), around(1.0)
    if not np.isfinite(end) or end == 0.0:
        return rate, ""
    ratio = end / half if half else np.inf
    kinds = [(1.2, ""), (1.6, "like the root of time"), (3.0, "in proportion to time")]
    kinds += [(9.0, "like a power of time"), (np.inf, "exponentially")]
    return rate, next(kind for limit, kind in kinds if ratio <= limit)


def line_errors(
    statistics: Statistics, effects: Mapping[int, np.ndarray] | None
) -> list[LineError]:
    """Return what each line did, the largest errors first."""
    by_source: dict[int, list[NodeError]] = defaultdict(list)
    for node in statistics.nodes:
        if node.op not in _COMPARISONS:
            by_source[node.source].append(node)
    rates: dict[int, float] = {}
    for growth in statistics.growth:
        rate, kind = growth_rate(growth)
        if kind:
            rates[growth.source] = max(rate, rates.get(growth.source, 0.0))
    found = []
    for number, nodes in by_source.items():
        source = statistics.sources.listed[number]
        if source.argument:
            continue
        effect = (effects or {}).get(number, np.array(np.nan))
        found.append(
            LineError(
                source.file,
                source.number,
                source.text,
                max(n.local for n in nodes),
                max(n.amplification for n in nodes),
                max(n.error for n in nodes),
                float(np.max(effect)),
                max(n.absorbed for n in nodes),
                rates.get(number, 0.0),
            )
        )
    key = {True: lambda x: -x.error, False: lambda x: (-np.nan_to_num(x.effect), -x.error)}
    return sorted(found, key=key[effects is None])
