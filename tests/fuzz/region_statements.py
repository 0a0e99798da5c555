"""The grammar's regions: scan, cond, switch, while_loop, fori_loop, vmap, with closures."""

from __future__ import annotations

from collections.abc import Callable

from .builder import Builder, Var
from .expressions import Leaf, expression

__all__ = ["REGION_STATEMENTS"]

EPS = 2.3e-16


class Body:
    """Writes the expressions of one region and keeps their common error constants."""

    def __init__(self, b: Builder, operands: list[Var]) -> None:
        self.b = b
        closed = [b.pick("fib"), b.pick("f")] if b.rng.random() < 0.6 else []
        self.closed = [leaf(v) for v in closed if v is not None and v.value.dtype.itemsize != 4]
        outer = [*operands, *(v for v in closed if v is not None)]
        self.err = max((v.err for v in outer), default=0.0)
        self.exact = self.err == 0.0 and b.rng.random() < 0.6
        self.mag = max([4.0, *(v.mag for v in outer)])
        self.lip, self.all_exact, self.nested = 1.0, True, 1

    def expression(self, shape: tuple[int, ...], kind: str, leaves: list[Leaf]) -> str:
        known = [*leaves, *leaves, *self.closed]
        exact = self.exact or kind == "i"
        text, lip, is_exact = expression(self.b.rng, shape, kind, known, exact, not self.b.nasty)
        self.lip, self.all_exact = max(self.lip, lip), self.all_exact and is_exact
        return text

    def step(self, shape: tuple[int, ...], kind: str, leaves: list[Leaf]) -> str:
        """The next value of carry ``c``: an expression, or a loop or branch inside the region."""
        text = self.expression(shape, kind, leaves)
        form = self.b.rng.random()
        if form < 0.2:
            self.nested = 2
            return f"arc.fori_loop(0, 2, lambda k, c: {text}, c)"
        tests = [v for v in self.b.vars if v.exact and v.size and v.kind in "fi"]
        if form < 0.4 and (self.exact or tests):
            name = "c" if self.exact else self.b.rng.choice(tests).name
            other = self.expression(shape, kind, leaves)
            return f"arc.cond({name}.ravel()[0] > 0.1, lambda c: {text}, lambda c: {other}, c)"
        return text

    def finish(self, lines: list[str], names: list[str], steps: int = 1) -> bool:
        """Appends the region; errors grow by the Lipschitz constant in each step."""
        if self.all_exact and self.err == 0.0:
            return self.b.block(lines, names)
        err = self.err
        for _ in range(steps * self.nested + 1):
            err = self.lip * err + 60.0 * EPS * self.mag
        return self.b.block(lines, names, err, 4.0, self.mag)


def leaf(v: Var) -> Leaf:
    return Leaf(v.name, v.shape, v.kind, v.exact)


def inner(body: Body, name: str, shape: tuple[int, ...], kind: str) -> Leaf:
    """A body's argument: exact only where the whole region is."""
    return Leaf(name, shape, kind, body.exact or kind != "f")


def double(b: Builder, kinds: str = "ffi", min_rank: int = 0) -> Var | None:
    """A float64 or int64 variable, as carries and branch results are."""
    v = b.pick(kinds, min_rank=min_rank)
    return v if v is not None and v.value.dtype.itemsize == 8 and v.size > 0 else None


def scan(b: Builder) -> bool:
    carry, xs = double(b), double(b, "ffi", 1)
    if carry is None or (xs is None and b.rng.random() < 0.7):
        return False
    body = Body(b, [carry] if xs is None else [carry, xs])
    f, c, y = (b.fresh() for _ in range(3))
    args = [inner(body, "c", carry.shape, carry.kind)]
    length = b.rng.randrange(1, 5)
    if xs is not None:
        args.append(inner(body, "s", xs.shape[1:], xs.kind))
        length = xs.shape[0]
    after = [inner(body, "d", carry.shape, carry.kind), *args]
    shape = b.rng.choice([carry.shape, ()])
    lines = [
        f"def {f}(c, s):",
        f"    d = {body.step(carry.shape, carry.kind, args)}",
        f"    return d, {body.expression(shape, 'f', after)}",
        f"{c}, {y} = arc.scan({f}, {carry.name}, {xs.name})"
        if xs is not None
        else f"{c}, {y} = arc.scan({f}, {carry.name}, length={length})",
    ]
    return body.finish(lines, [c, y], 2 * length)


def fori(b: Builder) -> bool:
    carry = double(b)
    if carry is None:
        return False
    body = Body(b, [carry])
    f, c = b.fresh(), b.fresh()
    args = [inner(body, "c", carry.shape, carry.kind), Leaf("i", (), "i")]
    low, high = b.rng.randrange(0, 3), b.rng.randrange(2, 5)
    lines = [
        f"def {f}(i, c):",
        f"    return {body.step(carry.shape, carry.kind, args)}",
        f"{c} = arc.fori_loop({low}, {high}, {f}, {carry.name})",
    ]
    return body.finish(lines, [c], max(high - low, 0))


def while_counted(b: Builder) -> bool:
    carry = double(b)
    if carry is None:
        return False
    body = Body(b, [carry])
    f, n, c = (b.fresh() for _ in range(3))
    args = [inner(body, "c", carry.shape, carry.kind), Leaf("n", (), "i")]
    limit, most = b.rng.randrange(0, 5), b.rng.randrange(2, 7)
    lines = [
        f"def {f}(state):",
        "    n, c = state",
        f"    return n + 1, {body.step(carry.shape, carry.kind, args)}",
        f"{n}, {c} = arc.while_loop(",
        f"    lambda state: state[0] < {limit}, {f}, (np.int64(0), {carry.name}), {most})",
    ]
    return body.finish(lines, [n, c], min(limit, most))


def while_value(b: Builder) -> bool:
    """Runs until an exact value passes a threshold."""
    start = b.pick("f", exact=True)
    if start is None or start.size == 0 or start.value.dtype.itemsize != 8:
        return False
    c = b.fresh()
    factor, shift = b.rng.choice(("1.5", "2.0", "-1.25")), b.rng.choice(("0.5", "1.0"))
    test = f"np.max(np.abs(c)) < {b.rng.choice(('3.0', '10.0', '50.0'))}"
    call = f"arc.while_loop(lambda c: {test}, lambda c: c * {factor} + {shift}, {start.name}, 99)"
    return b.block([f"{c} = {call}"], [c])


def branches(b: Builder, count: int) -> tuple[Body, list[str], list[str], Var, tuple, str] | None:
    """The functions of a cond or a switch; the same shape and dtype from each."""
    a = double(b)
    if a is None:
        return None
    body = Body(b, [a])
    shape, kind = b.rng.choice([a.shape, a.shape, ()]), a.kind
    names = [b.fresh() for _ in range(count)]
    lines = []
    for name in names:
        text = body.expression(shape, kind, [inner(body, "a", a.shape, a.kind)])
        # a branch may come out as a constant of the wrong type: pin shape and dtype
        zero = f"np.zeros({shape}{', dtype=int' if kind == 'i' else ''})"
        lines += [f"def {name}(a):", f"    return {text} + {zero}"]
    return body, lines, names, a, shape, kind


def cond(b: Builder) -> bool:
    made = branches(b, 2)
    tests = [v for v in b.vars if v.kind == "b" and v.ndim == 0 and v.exact]
    if made is None:
        return False
    body, lines, (yes, no), a, _, _ = made
    test = b.rng.choice(tests).name if tests else None
    if test is None:
        exact = b.pick("fi", exact=True)
        if exact is None or exact.size == 0:
            return False
        test = f"{exact.name}.ravel()[0] > 0.25"
    out = b.fresh()
    return body.finish([*lines, f"{out} = arc.cond({test}, {yes}, {no}, {a.name})"], [out])


def switch(b: Builder) -> bool:
    count = b.rng.randrange(2, 5)
    index = b.pick("i")
    made = branches(b, count) if index is not None and index.size else None
    if made is None:
        return False
    body, lines, names, a, _, _ = made
    out = b.fresh()
    call = f"arc.switch({index.name}.ravel()[-1], [{', '.join(names)}], {a.name})"
    return body.finish([*lines, f"{out} = {call}"], [out])


def vmap(b: Builder) -> bool:
    a = double(b, "ffi", 1)
    if a is None:
        return False
    other = b.pick("f")
    if other is not None and (other.value.dtype.itemsize != 8 or other.size == 0):
        other = None
    body = Body(b, [a] if other is None else [a, other])
    axis = b.rng.randrange(a.ndim)
    shape = a.shape[:axis] + a.shape[axis + 1 :]
    args = [inner(body, "r", shape, a.kind)]
    f, out = b.fresh(), b.fresh()
    result = b.rng.choice([shape, shape, ()])
    out_axis = f", out_axes={len(result)}" if b.rng.random() < 0.2 else ""
    if other is None:
        head, call = "r", f"arc.vmap({f}, in_axes={axis}{out_axis})({a.name})"
    else:
        args.append(inner(body, "w", other.shape, "f"))
        call = f"arc.vmap({f}, in_axes=({axis}, None){out_axis})({a.name}, {other.name})"
        head = "r, w"
    text = body.expression(result, "f", args)
    if shape and b.rng.random() < 0.3:  # a loop inside the map
        text = f"arc.fori_loop(0, 2, lambda i, c: 0.5 * (c + {text}), np.zeros({result}))"
    lines = [f"def {f}({head}):", f"    return {text}", f"{out} = {call}"]
    return body.finish(lines, [out], 2)


def vmap_twice(b: Builder) -> bool:
    a = double(b, "f", 2)
    if a is None:
        return False
    body = Body(b, [a])
    first, second = b.rng.randrange(a.ndim), b.rng.randrange(a.ndim - 1)
    rest = a.shape[:first] + a.shape[first + 1 :]
    shape = rest[:second] + rest[second + 1 :]
    f, out = b.fresh(), b.fresh()
    result = b.rng.choice([shape, ()])
    text = body.expression(result, "f", [inner(body, "r", shape, a.kind)])
    call = f"arc.vmap(arc.vmap({f}, in_axes={second}), in_axes={first})({a.name})"
    return body.finish([f"def {f}(r):", f"    return {text}", f"{out} = {call}"], [out])


REGION_STATEMENTS: list[tuple[Callable[[Builder], bool], float]] = [
    (scan, 0.7),
    (fori, 0.4),
    (while_counted, 0.4),
    (while_value, 0.2),
    (cond, 0.5),
    (switch, 0.5),
    (vmap, 0.6),
    (vmap_twice, 0.3),
]
