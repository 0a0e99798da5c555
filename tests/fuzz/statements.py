"""The grammar's ordinary statements: elementwise, structural, reductions, products, in place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .builder import Builder, Var

__all__ = ["STATEMENTS"]

# exact and 1-Lipschitz | exact, any operand exact | a few ulps and 1-Lipschitz | exact operand only
EXACT_SMOOTH = ("-{a}", "np.abs({a})", "np.clip({a}, -1.5, 2.0)", "np.maximum({a}, 0.25)", "+{a}")
EXACT_STEP = (
    "np.floor({a})",
    "np.ceil({a})",
    "np.rint({a})",
    "np.trunc({a})",
    "np.sign({a})",
    "np.sqrt(np.abs({a}))",
    "np.sqrt({a})",
    "{a} % 1.5",
    "{a} // 0.75",
    "{a} % -0.7",
    "np.square({a})",
    "np.reciprocal({a})",
    "np.round({a}, 1)",
    "{a} ** 2",
    "1.0 / {a}",
    "np.fmod({a}, 1.25)",
    "np.heaviside({a}, 0.5)",
)
SMOOTH = ("np.sin({a})", "np.cos({a})", "np.tanh({a})", "np.arctan({a})", "np.arcsinh({a})")
SHARP = (
    "np.exp(np.minimum({a}, 2.0))",
    "np.log1p(np.abs({a}))",
    "np.log(np.abs({a}) + 0.125)",
    "np.cbrt({a})",
    "np.abs({a}) ** 1.5",
    "np.tan(np.clip({a}, -1.0, 1.0))",
    "np.expm1(np.clip({a}, -2.0, 2.0))",
    "np.arcsin(np.clip({a}, -1.0, 1.0))",
    "np.sinh(np.clip({a}, -2.0, 2.0))",
    "np.log2(np.abs({a}) + 1.0)",
    "np.exp2(np.clip({a}, -3.0, 3.0))",
)
PREDICATES = ("np.isnan({a})", "np.isfinite({a})", "{a} > 0.5", "np.abs({a}) < 1.0", "{a} == {a}")
INT_UNARY = (
    "-{a}",
    "abs({a})",
    "~{a}",
    "{a} & 5",
    "{a} | 2",
    "{a} ^ 3",
    "{a} << 1",
    "{a} >> 1",
    "{a} // 3",
    "{a} % 4",
    "{a} % -3",
    "{a} ** 2",
    "{a} + 7",
    "np.sign({a})",
    "np.clip({a}, -3, 4)",
    "{a} * 2 - 1",
    "{a}.astype(float)",
    "{a} / 2",
    "{a} > 1",
    "{a} * 0.5",
)
INT_BINARY = (
    "{a} + {b}",
    "{a} - {b}",
    "{a} * {b}",
    "{a} // {b}",
    "{a} % {b}",
    "{a} & {b}",
    "{a} | {b}",
    "{a} ^ {b}",
    "np.maximum({a}, {b})",
    "np.minimum({a}, {b})",
    "{a} < {b}",
    "{a} == {b}",
    "np.where({a} > {b}, {a}, {b})",
)
BOOL_BINARY = ("{a} & {b}", "{a} | {b}", "{a} ^ {b}", "np.logical_or({a}, {b})", "{a} == {b}")
BOOL_UNARY = ("~{a}", "{a}.astype(int)", "{a} * 1.5", "np.logical_not({a})", "{a} + 1", "{a} * 2")
COMPARISONS = ("{a} < {b}", "{a} >= {b}", "{a} == {b}", "{a} != {b}")
STRUCTURAL = (
    "{a}.T",
    "{a}.ravel()",
    "{a}.reshape(-1)",
    "np.flip({a})",
    "{a}[None]",
    "np.squeeze({a})",
    "{a}.copy()",
    "np.atleast_2d({a})",
)
STRUCTURAL_RANKED = (
    "{a}[::-1]",
    "{a}[0]",
    "{a}[-1]",
    "{a}[1:]",
    "{a}[:-1]",
    "{a}[::2]",
    "{a}[..., 0]",
    "{a}[..., ::-1]",
    "{a}[..., None]",
    "{a}[[0, -1]]",
    "{a}[..., [0, 0, -1]]",
    "np.roll({a}, 1)",
    "np.roll({a}, -1, axis=0)",
    "np.tile({a}, 2)",
    "np.repeat({a}, 2, axis=0)",
    "np.take({a}, [0, -1], axis=-1)",
    "np.concatenate([{a}, {a}[:1]])",
    "np.concatenate([{a}, {a}], axis=-1)",
    "np.stack([{a}, {a}], axis=1)",
    "np.vstack([{a}, {a}])",
    "np.hstack([{a}, {a}])",
    "np.swapaxes({a}, 0, -1)",
    "np.moveaxis({a}, 0, -1)",
    "np.array_split({a}, 2)[1]",
    "np.pad({a}, 1, mode='edge')",
    "np.append({a}, {a}[0])",
    "np.array([{a}[0], {a}[-1]])",
    "np.array(list({a}))[::-1]",
    "np.broadcast_to({a}, (2,) + {a}.shape)",
)
WITH_ZEROS = (
    "np.pad({a}, 1)",
    "np.tril(np.atleast_2d({a}))",
    "np.triu(np.atleast_2d({a}), 1)",
    "np.diag({a}.ravel()[:4])",
    "np.where(np.arange({a}.size).reshape({a}.shape) % 2 == 0, {a}, 0.0)",
    "np.kron(np.eye(2), {a})",
)


def unary(b: Builder) -> bool:
    a = b.pick("f")
    if a is None:
        return False
    form = b.rng.random()
    if form < 0.25:
        text = b.rng.choice(EXACT_SMOOTH).format(a=a.name)
        return b.emit(text, [a], signed="max" not in text)
    if form < 0.5:
        if b.nasty and not sign_known(a):
            return False
        return b.emit(b.rng.choice(EXACT_STEP).format(a=a.name), [a], lip=None)
    if form < 0.7:
        return b.emit(b.rng.choice(SMOOTH).format(a=a.name), [a], ulps=6.0)
    if form < 0.9:
        return b.emit(b.rng.choice(SHARP).format(a=a.name), [a], lip=None, ulps=20.0)
    return b.emit(b.rng.choice(PREDICATES).format(a=a.name), [a], lip=None)


def binary(b: Builder) -> bool:
    a = b.pick("f")
    c = b.partner(a, "fib") if a else None
    if a is None or c is None:
        return False
    if b.rng.random() < 0.5:
        a, c = c, a
    form = b.rng.choice("+-**/Mm%@hcw<ad")
    x, y = a.name, c.name
    if form in "+-":
        if a.kind == c.kind == "b":
            return False
        return b.emit(f"{x} {form} {y}", [a, c])
    if form == "*":
        if a.vanishes_beside(c) or c.vanishes_beside(a):
            return False
        return b.emit(f"{x} * {y}", [a, c], lip=(c.mag, a.mag), scale=a.mag * c.mag)
    if form in "/%d" and b.nasty and not (sign_known(c) or c.kind != "f"):
        return False  # the sign of the infinity would be open
    if form == "/":
        return b.emit(f"{x} / {y}", [a, c], lip=None)
    if form in "Mm":
        name = {"M": "np.maximum", "m": "np.minimum"}[form]
        return b.emit(f"{name}({x}, {y})", [a, c], signed=False)
    if form == "%":
        return b.emit(f"{x} {b.rng.choice(['%', '//'])} {y}", [a, c], lip=None)
    if form == "@":
        bounded = f"{x} / (1.0 + np.abs({y}))"
        return b.emit(bounded, [a, c], lip=(1.0, a.mag), ulps=3.0 if c.err or a.err else 0.0)
    if form == "h":
        return b.emit(f"np.hypot({x}, {y})", [a, c], ulps=4.0)
    if form == "c":
        if not sign_known(c) or (c.has_zero and not b.nasty) or np.isnan(c.value).any():
            return False
        return b.emit(f"np.copysign({x}, {y})", [a, c], lip=None)
    if form == "a":
        if not (sign_known(a) and sign_known(c)) or ((a.has_zero or c.has_zero) and not b.nasty):
            return False
        return b.emit(f"np.arctan2({x}, {y})", [a, c], lip=None, ulps=4.0)
    if form == "d":
        return b.emit(f"divmod({x}, {y})[{b.rng.randrange(2)}]", [a, c], lip=None)
    if form == "w":
        test = b.partner(a, "b", exact=True)
        if test is None:
            return False
        return b.emit(f"np.where({test.name}, {x}, {y})", [test, a, c], signed=False)
    return b.emit(b.rng.choice(COMPARISONS).format(a=x, b=y), [a, c], lip=None)


def sign_known(var: Var) -> bool:
    return var.signed or not var.has_zero


def integer(b: Builder) -> bool:
    a = b.pick("i")
    if a is None:
        return False
    if b.rng.random() < 0.5:
        return b.emit(b.rng.choice(INT_UNARY).format(a=a.name), [a])
    c = b.partner(a, "ib")
    return c is not None and b.emit(b.rng.choice(INT_BINARY).format(a=a.name, b=c.name), [a, c])


def boolean(b: Builder) -> bool:
    a = b.pick("b")
    if a is None:
        return False
    c = b.partner(a, "b")
    if c is not None and b.rng.random() < 0.5:
        return b.emit(b.rng.choice(BOOL_BINARY).format(a=a.name, b=c.name), [a, c])
    return b.emit(b.rng.choice(BOOL_UNARY).format(a=a.name), [a])


def cast(b: Builder) -> bool:
    a = b.pick("f")
    if a is None:
        return False
    to = b.rng.choice(("np.float32", "np.float64", "int", "bool"))
    if to == "np.float32":
        return b.emit(f"{a.name}.astype({to})", [a], ulps=1.0 if a.err else 0.0)
    if to == "int" and not a.finite:
        return False
    return b.emit(f"{a.name}.astype({to})", [a], lip=1.0 if to == "np.float64" else None)


def structural(b: Builder) -> bool:
    a = b.pick("ffib")
    if a is None:
        return False
    form = b.rng.random()
    table = STRUCTURAL if a.ndim == 0 or form < 0.2 else STRUCTURAL_RANKED
    if form > 0.9 and not b.nasty:
        table = WITH_ZEROS
    elif form > 0.8 and a.ndim >= 2:
        order = list(range(a.ndim))
        b.rng.shuffle(order)
        return b.emit(f"{a.name}.transpose({tuple(order)})", [a])
    return b.emit(b.rng.choice(table).format(a=a.name), [a])


def joined(b: Builder) -> bool:
    a = b.pick("ffib", min_rank=1)
    c = b.partner(a, "fib") if a else None
    if a is None or c is None:
        return False
    call = b.rng.choice(
        (
            "np.stack([{a}, {c}])",
            "np.concatenate([{a}, {c}])",
            "np.concatenate([{a}, {c}], axis=-1)",
            "np.stack(np.broadcast_arrays({a}, {c}), axis=-1)",
            "np.hstack([{a}, {c}])",
            # No function above makes a literal zero of 1.75, which sums would drop (decision 002).
            "np.array([{a}.ravel()[0], {c}.ravel()[-1], 1.75])",
            "np.column_stack([{a}, {c}])",
        )
    )
    return b.emit(call.format(a=a.name, c=c.name), [a, c])


STATEMENTS: list[tuple[Callable[[Builder], bool], float]] = [
    (unary, 5.0),
    (binary, 6.0),
    (integer, 2.0),
    (boolean, 1.0),
    (cast, 0.7),
    (structural, 4.0),
    (joined, 1.0),
]
