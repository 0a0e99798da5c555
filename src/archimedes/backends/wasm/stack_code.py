"""From values to stack code: what stays on the stack, and which locals hold the others.

A value that is read once, in the block it is computed in, is computed where it is read and never
gets a name, unless memory or a variable that it depends on changes in between. The others get
locals; a local is used again when its value is not read any more (linear scan: Poletto and Sarkar,
"Linear scan register allocation", ACM TOPLAS 21, 1999).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple

from archimedes.backends.wasm.binary import (
    BLOCK,
    BR,
    BR_IF,
    DROP,
    ELSE,
    END,
    IF,
    LOCAL_GET,
    LOCAL_SET,
    LOCAL_TEE,
    LOOP,
    TYPES,
    unsigned,
    vector,
)
from archimedes.backends.wasm.functions import (
    PURE,
    READS,
    WRITES,
    Assignment,
    Block,
    Code,
    Function,
    Give,
    Instruction,
    Jump,
)


class _Set(NamedTuple):
    """Takes a value from the stack into its local; ``stays``: and leaves it there."""

    name: str
    stays: bool = False


class _Mark:
    """Begin and end of a loop, in stack code."""

    def __init__(self, code: bytes) -> None:
        self.code = code


_LOOP, _END_LOOP = _Mark(LOOP), _Mark(END)

#: Stack code: bytes, code with addresses, names of values that are read, and lists of such.
Rope = list[Any]


class _Tree(NamedTuple):
    """The code of a value that waits to be read."""

    code: Rope
    effect: int
    variables: frozenset[str]


_NOTHING: frozenset[str] = frozenset()


class _Uses:
    """How often values are read, and where those are that are read once."""

    def __init__(self, f: Function) -> None:
        self.count: Counter[str] = Counter()
        self.block: dict[str, int] = {}
        #: What blocks do to memory, and the variables that they assign, by identity.
        self.effects: dict[int, tuple[int, frozenset[str]]] = {}
        self.dead: set[int] = set()
        self.read = set(_arguments(f.body))
        self._scan(f.body)

    def _scan(self, body: list[Any]) -> tuple[int, frozenset[str]]:
        """Count from the end on, so that what nobody reads is not counted."""
        effect, assigned = PURE, _NOTHING
        for x in reversed(body):
            if isinstance(x, Block):
                inside = [self._scan(x.other), self._scan(x.body)]
                self.effects[id(x)] = mine = max(e for e, _ in inside), inside[0][1] | inside[1][1]
                effect, assigned = max(effect, mine[0]), assigned | mine[1]
                args: Iterable[str] = (x.test,) if x.test else ()
            elif isinstance(x, Instruction):
                if x.effect < WRITES and not any(self.count[r] for r in x.results):
                    self.dead.add(id(x))
                    continue
                effect, args = max(effect, x.effect), x.args
            elif isinstance(x, Assignment):
                args = [a for t, a in zip(x.targets, x.args) if t in self.read]
                assigned = assigned.union(x.targets)
            elif isinstance(x, Jump):
                args = (x.test,) if x.test else ()
            else:
                args = x.args
            for a in args:
                self.count[a] += 1
                self.block[a] = id(body)
        return effect, assigned


def _arguments(body: list[Any]) -> Iterator[str]:
    """Yield all that is read."""
    for x in body:
        if isinstance(x, (Block, Jump)):
            if x.test:
                yield x.test
            if isinstance(x, Block):
                yield from _arguments(x.body)
                yield from _arguments(x.other)
        else:
            yield from x.args


class _Writer:
    """Writes blocks as stack code."""

    def __init__(self, f: Function) -> None:
        self.f = f
        self.uses = _Uses(f)
        self.nesting: list[Block] = []

    def write(self, body: list[Any]) -> Rope:
        """Return the code of a block."""
        out: Rope = []
        waiting: dict[str, _Tree] = {}
        for x in body:
            if id(x) in self.uses.dead:
                continue
            if isinstance(x, Instruction):
                self._instruction(x, id(body), out, waiting)
            elif isinstance(x, Assignment):
                pairs = [(t, a) for t, a in zip(x.targets, x.args) if t in self.uses.read]
                code = self._take([a for _, a in pairs], waiting).code
                self._flush(out, waiting, PURE, frozenset(t for t, _ in pairs))
                out += [code, *(_Set(t) for t, _ in reversed(pairs))]
            elif isinstance(x, Jump):
                code = self._take([x.test] if x.test else [], waiting).code
                depth = self.nesting[::-1].index(x.block)
                out += [code, (BR_IF if x.test else BR) + unsigned(depth)]
            elif isinstance(x, Give):
                out.append(self._take(x.args, waiting).code)
            else:
                self._block(x, out, waiting)
        return out

    def _take(self, args: Sequence[str], waiting: dict[str, _Tree]) -> _Tree:
        """Return the code that puts arguments on the stack."""
        code: Rope = []
        effect, variables = PURE, _NOTHING
        for a in args:
            tree = waiting.pop(a, None)
            if tree is None:
                code.append(a)
                if a in self.f.variables:
                    variables = variables.union((a,))
                continue
            code.append(tree.code)
            effect = max(effect, tree.effect)
            variables = variables | tree.variables if tree.variables else variables
        return _Tree(code, effect, variables)

    def _flush(
        self, out: Rope, waiting: dict[str, _Tree], effect: int, assigned: frozenset[str]
    ) -> None:
        """Put values into locals that something is about to change which they depend on."""
        for name, tree in list(waiting.items()):
            if (effect == WRITES and tree.effect == READS) or tree.variables & assigned:
                out += [tree.code, _Set(name)]
                del waiting[name]

    def _instruction(
        self, x: Instruction, block: int, out: Rope, waiting: dict[str, _Tree]
    ) -> None:
        tree = self._take(x.args, waiting)
        code = [*tree.code, x.code]
        if x.effect == WRITES:
            self._flush(out, waiting, WRITES, _NOTHING)
        elif len(x.results) == 1:
            (name,) = x.results
            if self.uses.count[name] == 1 and self.uses.block[name] == block:
                waiting[name] = _Tree(code, max(tree.effect, x.effect), tree.variables)
                return
        out.append(code)
        for name in reversed(x.results):
            out.append(_Set(name) if self.uses.count[name] else DROP)

    def _block(self, x: Block, out: Rope, waiting: dict[str, _Tree]) -> None:
        test = self._take([x.test] if x.test else [], waiting).code
        self._flush(out, waiting, *self.uses.effects[id(x)])
        self.nesting.append(x)
        body, other = self.write(x.body), self.write(x.other)
        self.nesting.pop()
        if x.kind == b"if":
            if body or other:
                out += [test, IF, body, *([ELSE, other] if other else []), END]
            else:
                out += [test, DROP]
        elif x.kind == b"loop":
            out += [_LOOP, body, _END_LOOP]
        else:
            out += [BLOCK, body, END]


def _flatten(rope: Rope) -> list[Any]:
    flat: list[Any] = []
    stack = [iter(rope)]
    while stack:
        for x in stack[-1]:
            if type(x) is list:
                stack.append(iter(x))
                break
            flat.append(x)
        else:
            stack.pop()
    return flat


def _keep_on_stack(code: list[Any], f: Function) -> list[Any]:
    """Leave values on the stack that are put into a local and read at once."""
    reads = Counter(x for x in code if isinstance(x, str))
    out: list[Any] = []
    for x in code:
        last = out[-1] if out else None
        if isinstance(x, str) and isinstance(last, _Set) and last.name == x and not last.stays:
            out.pop()
            reads[x] -= 1
            if reads[x] or x in f.variables:
                out.append(_Set(x, stays=True))
        else:
            out.append(x)
    return out


class _Locals:
    """Which local holds which value."""

    def __init__(self, f: Function, code: list[Any], constants: Sequence[str]) -> None:
        self.f = f
        first, last = self._lifetimes(code)
        # Parameters have their numbers; the others get some, by type.
        self.of: dict[str, int] = {}
        groups: list[str] = []
        active: list[tuple[int, int]] = []
        free: dict[str, list[int]] = {}
        for number, name in enumerate(f.parameters):
            self.of[name] = number
            groups.append(f.kinds[name])
            heappush(active, (last.get(name, -1), number))
        for name in constants:
            self.of[name] = len(groups)
            groups.append(f.kinds[name])
        for name in sorted((x for x in first if x not in self.of), key=first.__getitem__):
            while active and active[0][0] < first[name]:
                number = heappop(active)[1]
                free.setdefault(groups[number], []).append(number)
            kind = f.kinds[name]
            if free.get(kind):
                number = free[kind].pop()
            else:
                number = len(groups)
                groups.append(kind)
            self.of[name] = number
            heappush(active, (last[name], number))
        self._sort(code, groups)

    def _lifetimes(self, code: list[Any]) -> tuple[dict[str, int], dict[str, int]]:
        """Return where values are first and last used; to the end of loops that use them again."""
        first: dict[str, int] = dict.fromkeys(self.f.parameters, -1)
        last: dict[str, int] = {}
        loops: list[tuple[int, set[str]]] = []
        for at, x in enumerate(code):
            if isinstance(x, _Mark):
                if x is _LOOP:
                    loops.append((at, set()))
                else:
                    for name in loops.pop()[1]:
                        last[name] = at
                continue
            name = x.name if isinstance(x, _Set) else x if isinstance(x, str) else ""
            if not name or name in self.f.constants:
                continue
            start = first.setdefault(name, at)
            last[name] = at
            for begin, again in loops:
                if start < begin:
                    again.add(name)
                    break
        return first, last

    def _sort(self, code: list[Any], groups: list[str]) -> None:
        """Number the locals by type, those that are used most first."""
        count = Counter(
            self.of.get(x.name if isinstance(x, _Set) else x)
            for x in code
            if isinstance(x, (str, _Set))
        )
        fixed = len(self.f.parameters)
        others = range(fixed, len(groups))
        totals: Counter[str] = Counter()
        for k in others:
            totals[groups[k]] += count[k]
        kinds = [kind for kind, _ in totals.most_common()]
        order = sorted(others, key=lambda k: (kinds.index(groups[k]), -count[k], k))
        numbers = {k: fixed + n for n, k in enumerate(order)}
        self.of = {name: numbers.get(k, k) for name, k in self.of.items()}
        self.groups = [(kind, sum(groups[k] == kind for k in others)) for kind in kinds]


def function_body(f: Function) -> bytes:
    """Return the body of a function, as it stands in the code section."""
    code = _keep_on_stack(_flatten(_Writer(f).write(f.body)), f)
    counts = Counter(x for x in code if isinstance(x, str) and x in f.constants)
    literals = {name: _encode(f.constants[name]) for name in counts}
    # A constant in a local takes two bytes at each use.
    kept = [x for x, n in counts.items() if n * len(literals[x]) > len(literals[x]) + 4 + 2 * n]
    held = _Locals(f, code, kept)
    out = bytearray()
    for name in kept:
        out += literals[name] + LOCAL_SET + unsigned(held.of[name])
    for x in code:
        if isinstance(x, bytes):
            out += x
        elif isinstance(x, str):
            known = x in literals and x not in held.of
            out += literals[x] if known else LOCAL_GET + unsigned(held.of[x])
        elif isinstance(x, _Set):
            out += (LOCAL_TEE if x.stays else LOCAL_SET) + unsigned(held.of[x.name])
        else:
            out += x.code if isinstance(x, _Mark) else x.encode()
    groups = [unsigned(n) + TYPES[kind] for kind, n in held.groups if n]
    body = vector(groups) + bytes(out) + END
    return unsigned(len(body)) + body


def _encode(code: bytes | Code) -> bytes:
    return code if isinstance(code, bytes) else code.encode()
