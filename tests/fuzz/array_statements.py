"""The grammar's statements over whole arrays: reductions, products, sorting, writing in place."""

from __future__ import annotations

from collections.abc import Callable

from .builder import Builder, Var

__all__ = ["ARRAY_STATEMENTS"]


def axis_text(b: Builder, a: Var, tuples: bool = True) -> tuple[str, int]:
    """A random ``axis=`` argument and the number of elements that it reduces."""
    form = b.rng.random()
    if a.ndim == 0 or form < 0.3:
        return "", a.size
    if tuples and a.ndim >= 2 and form < 0.5:
        first, second = b.rng.sample(range(a.ndim), 2)
        return f"axis=({first}, {second - a.ndim})", a.shape[first] * a.shape[second]
    axis = b.rng.randrange(-a.ndim, a.ndim)
    return f"axis={axis}", a.shape[axis]


def reduction(b: Builder) -> bool:
    a = b.pick("ffib")
    if a is None:
        return False
    axis, n = axis_text(b, a)
    keep = "keepdims=True" if b.rng.random() < 0.25 else ""
    options = ", ".join(part for part in (axis, keep) if part)
    name = b.rng.choice(("sum", "sum", "mean", "prod", "max", "min", "any", "all", "var"))
    call = f"{a.name}.{name}({options})" if b.rng.random() < 0.4 else None
    call = call or f"np.{name}({', '.join(part for part in (a.name, options) if part)})"
    if name in ("any", "all"):
        return b.emit(call, [a], lip=None)
    if n == 0 and name != "sum":
        return False
    if name in ("max", "min"):
        return b.emit(call, [a], signed=False)
    few = n <= 2 and name in ("sum", "prod")
    ulps = 0.0 if (a.kind != "f" and name in ("sum", "prod")) or few else n + 4.0
    if name == "sum":
        # a sum may start from a literal zero, so the sign of a zero is open
        return b.emit(call, [a], lip=float(n), ulps=ulps, scale=n * a.mag, signed=False)
    if name == "mean":
        return b.emit(call, [a], ulps=n + 4.0, scale=a.mag, signed=False)
    if name == "var":
        return b.emit(call, [a], lip=None, ulps=2.0 * n + 8.0, scale=a.mag**2)
    return not a.vanishes_beside(a) and b.emit(call, [a], lip=None, ulps=ulps)


def cumulative(b: Builder) -> bool:
    a = b.pick("fib", min_rank=1)
    if a is None:
        return False
    axis, n = axis_text(b, a, tuples=False)
    options = f", {axis}" if axis else ""
    ulps = 0.0 if a.kind != "f" else n + 1.0
    if b.rng.random() < 0.7:
        text = f"np.cumsum({a.name}{options})"
        return b.emit(text, [a], lip=float(n), ulps=ulps, scale=n * a.mag, signed=False)
    if b.rng.random() < 0.5:
        return b.emit(f"np.diff({a.name}{options})", [a], lip=2.0) if a.kind == "f" else False
    if a.vanishes_beside(a):
        return False
    return b.emit(f"np.cumprod({a.name}{options})", [a], lip=None, ulps=ulps)


def ordering(b: Builder) -> bool:
    a = b.pick("fi", min_rank=1)
    if a is None or a.size == 0:
        return False
    axis = b.rng.randrange(-a.ndim, a.ndim)
    if b.rng.random() < 0.5:
        return b.emit(f"np.sort({a.name}, axis={axis})", [a], signed=False)
    call = b.rng.choice(
        (
            f"np.argmax({a.name}, axis={axis})",
            f"np.argmin({a.name})",
            f"np.argsort({a.name}, axis={axis}, kind='stable')",
            f"np.count_nonzero({a.name} > 0, axis={axis})",
            f"np.searchsorted(np.array([-1.0, 0.0, 0.5, 2.0]), {a.name})",
        )
    )
    return b.emit(call, [a], lip=None)


PRODUCTS_OF_ONE = (
    ("{a} @ {a}.T", 2),
    ("np.einsum('ij,kj->ik', {a}, {a})", 2),
    ("np.einsum('ij,ij->j', {a}, {a})", 2),
    ("np.einsum('...i,...i', {a}, {a})", 1),
    ("np.einsum('i,j', {a}, {a})", 1),
    ("np.inner({a}, {a})", 1),
    ("np.outer({a}, {a})", 1),
    ("{a} @ np.swapaxes({a}, -1, -2)", 3),
    ("np.einsum('bij,bkj->bik', {a}, {a})", 3),
    ("np.tensordot({a}, {a}, axes=([0], [0]))", 2),
    ("np.vdot({a}, {a})", 2),
    ("np.trace({a})", 2),
    ("np.convolve({a}, {a}[:2])", 1),
)
PRODUCTS_OF_TWO = ("{a} @ {c}", "np.dot({a}, {c})", "np.inner({a}, {c})", "np.matmul({a}, {c})")


def product(b: Builder) -> bool:
    a = b.pick("f", min_rank=1)
    if a is None or a.size == 0:
        return False
    if b.rng.random() < 0.6:
        text, rank = b.rng.choice(PRODUCTS_OF_ONE)
        c, call = a, text.format(a=a.name)
        if rank != a.ndim and "..." not in text:
            return False
    else:
        c = b.pick("f", min_rank=1)
        call = b.rng.choice(PRODUCTS_OF_TWO).format(a=a.name, c=c.name)
    if not (a.finite and c.finite) and (a.has_zero or c.has_zero):
        return False  # BLAS skips zeros, so that 0 * nan may be 0 in NumPy itself
    n = float(max(a.size, c.size))
    scale = n * a.mag * max(c.mag, 1.0)
    lip = (n * c.mag, n * a.mag)
    return b.emit(call, [a, c], lip=lip, ulps=2.0 * n, scale=scale, signed=False)


TARGETS = ("[0]", "[-1]", "[1:]", "[::2]", "[..., 0]", "[::-1]", "[..., -1:]", "[[0, -1]]", "")


def written(b: Builder) -> bool:
    """``copy``, then an assignment or an in-place operator through an index or a view."""
    a = b.pick("ffi", min_rank=1)
    if a is None or a.size == 0:
        return False
    target, name = b.rng.choice(TARGETS), b.fresh()
    shape = a.value[tuple_index(target)].shape if target else a.shape
    found = [v for v in b.vars if v.kind in ("f" if a.kind == "f" else "i") and fits(v, shape)]
    other = b.rng.choice(found) if found and b.rng.random() < 0.7 else None
    right = other.name if other else ("1.5" if a.kind == "f" else "3")
    operands = [a, other] if other else [a]
    operator = b.rng.choice(("=", "=", "+=", "-=", "*=")) if target else "+="
    lines = [f"{name} = {a.name}.copy()"]
    names = [name]
    if b.rng.random() < 0.3 and target in ("[1:]", "[::2]", "[..., 0]", "[::-1]") and a.ndim > 1:
        view = b.fresh()  # writing through a view changes the original
        lines += [
            f"{view} = {name}{target}",
            f"{view} {'+=' if operator == '=' else operator} {right}",
        ]
        names.append(view)
    elif target == "" and b.rng.random() < 0.5 and other:
        lines += [f"np.add({a.name}, {right}, out={name})"]
    else:
        lines += [f"{name}{target} {operator} {right}"]
    if other and (a.vanishes_beside(other) or other.vanishes_beside(a)):
        return False
    magnitude = other.mag if other else 3.0
    inexact = any(o.err for o in operands)
    err = sum(o.err for o in operands) * (1.0 + max(a.mag, magnitude)) * 2.0
    return b.block(lines, names, err, 2.0 if inexact else 0.0, a.mag * magnitude)


def tuple_index(target: str):
    return eval(f"__import__('numpy').s_{target}")


def fits(var: Var, shape: tuple[int, ...]) -> bool:
    """Whether ``var`` can be assigned to a place of this shape."""
    return var.ndim <= len(shape) and all(m in (1, n) for m, n in zip(var.shape[::-1], shape[::-1]))


def built(b: Builder) -> bool:
    """Item assignment into an array made in the program."""
    if b.nasty:
        return False  # literal zeros: 0 * inf is 0 by contract, unlike IEEE
    scalars = [v for v in b.vars if v.ndim == 0 and v.kind == "f" and v.value.dtype.itemsize == 8]
    a = b.pick("f", min_rank=1)
    name = b.fresh()
    if a is not None and a.ndim == 1 and b.rng.random() < 0.5:
        make = b.rng.choice(("np.zeros((2, {n}))", "np.ones((3, {n}))", "np.full((2, {n}), 0.5)"))
        lines = [f"{name} = {make.format(n=a.size)}", f"{name}[1] = {a.name}"]
        operands = [a]
    elif scalars:
        operands = b.rng.choices(scalars, k=2)
        make = b.rng.choice(
            ("np.zeros((2, 3))", "np.eye(3)", "np.ones((2, 2))", "np.zeros((2, 2))")
        )
        lines = [f"{name} = {make}"]
        lines += [f"{name}[{k}, {b.rng.randrange(2)}] = {o.name}" for k, o in enumerate(operands)]
    else:
        return False
    err = max(o.err for o in operands)
    return b.block(lines, [name], err, 1.0 if err else 0.0)


ARRAY_STATEMENTS: list[tuple[Callable[[Builder], bool], float]] = [
    (reduction, 3.0),
    (cumulative, 0.8),
    (ordering, 1.2),
    (product, 1.5),
    (written, 2.0),
    (built, 0.8),
]
