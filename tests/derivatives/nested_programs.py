"""Programs that nest transforms and regions, written once for this package and for JAX.

Each takes ``np``, ``arc`` and ``x``; with ``jax.numpy`` and ``JaxArc`` the same text is its oracle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["PROGRAMS", "JaxArc"]


class JaxArc:
    """JAX's transforms and loops under this package's names."""

    def __init__(self, jax: Any) -> None:
        self.jax = jax
        self.scan, self.cond = jax.lax.scan, jax.lax.cond
        self.vmap, self.stop_gradient = jax.vmap, jax.lax.stop_gradient
        self.fori_loop = jax.lax.fori_loop
        self.hess = jax.hessian

    def grad(self, f: Callable, argnums: int = 0) -> Callable:
        return self.jax.grad(f, argnums)

    def jac(self, f: Callable, argnums: int = 0) -> Callable:
        return self.jax.jacfwd(f, argnums)

    def jvp(self, f: Callable) -> Callable:
        return lambda x, v: self.jax.jvp(f, (x,), (v,))[1]

    def vjp(self, f: Callable) -> Callable:
        return lambda x, w: self.jax.vjp(f, x)[1](w)[0]

    def compile(self, f: Callable) -> Callable:
        return f

    def switch(self, index: Any, branches: Any, *args: Any) -> Any:
        return self.jax.lax.switch(index, branches, *args)

    def while_loop(self, cond: Callable, body: Callable, init: Any, max_steps: int = 1000) -> Any:
        return self.jax.lax.while_loop(cond, body, init)


def _field(np, v):
    """A vector field with a full Jacobian."""
    return np.stack([np.sin(v[0]) * v[1], v[1] * v[2] ** 2, np.exp(0.3 * v[0]) + v[2]])


def jac_of_scan_of_vmap(np, arc, x):
    def rollout(p):
        def body(c, s):
            return arc.vmap(lambda a: np.tanh(a * s) + 0.1 * a**2)(c), np.sum(c)

        return arc.scan(body, p, np.array([0.3, -0.8, 1.1]))[0]

    return arc.jac(rollout)(x)


def grad_of_jac(np, arc, x):
    return arc.grad(lambda v: np.sum(arc.jac(lambda u: _field(np, u))(v) ** 2))(x)


def jac_of_grad(np, arc, x):
    return arc.jac(arc.grad(lambda v: np.sum(_field(np, v) ** 2)))(x)


def jac_of_jac(np, arc, x):
    return arc.jac(arc.jac(lambda v: _field(np, v)))(x)


def jvp_of_vjp(np, arc, x):
    w = np.array([0.3, -0.5, 0.9])
    pulled = lambda v: arc.vjp(lambda u: _field(np, u))(v, w)
    return arc.jvp(pulled)(x, x**2)


def vjp_of_jvp(np, arc, x):
    v = np.array([0.3, -0.5, 0.9])
    pushed = lambda u: arc.jvp(lambda r: _field(np, r))(u, v)
    return arc.vjp(pushed)(x, np.sin(x))


def vjp_linear_in_cotangent(np, arc, x):
    return arc.jac(lambda w: arc.vjp(lambda u: _field(np, u))(x, w))(x)


def hess_through_scan(np, arc, x):
    def energy(p):
        c, ys = arc.scan(lambda c, s: (c * p[0] + np.sin(s * c), c**2), p[1], p)
        return c**2 + np.sum(ys)

    return arc.hess(energy)(x)


def hess_through_fori(np, arc, x):
    return arc.hess(lambda p: np.sum(arc.fori_loop(0, 3, lambda i, c: np.sin(c) * p + c, p)))(x)


def vmap_of_grad(np, arc, x):
    rows = np.stack([x, x**2, np.sin(x)])
    return arc.vmap(arc.grad(lambda v: np.prod(np.sin(v))))(rows)


def vmap_of_jac(np, arc, x):
    rows = np.stack([x, x**2])
    return arc.vmap(arc.jac(lambda v: _field(np, v)))(rows)


def vmap_of_hess(np, arc, x):
    rows = np.stack([x, x**2])
    return arc.vmap(arc.hess(lambda v: np.sum(_field(np, v) ** 2)))(rows)


def grad_of_vmap(np, arc, x):
    return arc.grad(lambda v: np.sum(arc.vmap(lambda s: np.sin(s) * s**2)(v)))(x)


def grad_of_vmap_of_grad(np, arc, x):
    inner = arc.vmap(arc.grad(lambda s: np.sin(s) * s**2))
    return arc.grad(lambda v: np.sum(inner(v) * v))(x)


def vmap_of_vmap_of_grad(np, arc, x):
    table = np.outer(x, x)
    return arc.vmap(arc.vmap(arc.grad(lambda s: np.exp(s) * s)))(table)


def scan_of_grad(np, arc, x):
    """Gradient descent."""
    slope = arc.grad(lambda p: np.sum((p**2 - x) ** 2))
    return arc.scan(lambda p, _: (p - 0.02 * slope(p), None), np.ones(3), length=4)[0]


def scan_of_newton(np, arc, x):
    """Newton's method with its Jacobian inside the loop body."""

    def residual(p):
        return np.stack([p[0] ** 2 + p[1] - 3.0 - 0.1 * x[0], p[0] + p[1] * p[2] - 2.0, p[2] - 1.0])

    def step(p, _):
        return p - np.linalg.solve(arc.jac(residual)(p), residual(p)), None

    return arc.scan(step, np.array([1.0, 1.5, 0.9]), length=3)[0]


def vmap_of_scan_of_grad(np, arc, x):
    def descend(start):
        slope = arc.grad(lambda p: (p**2 - start) ** 2)
        return arc.scan(lambda p, _: (p - 0.05 * slope(p), p), start, length=3)[0]

    return arc.vmap(descend)(x)


def closure_over_traced_in_grad(np, arc, x):
    y = np.sin(x)
    return arc.grad(lambda v: np.sum(v**2 * y) + v[0] * x[1])(x**2)


def perturbation_confusion(np, arc, x):
    """d/dx (x * d/dy (x + y) at y = 1) = 1, not 2 (Siskind and Pearlmutter 2005)."""
    return arc.grad(lambda s: s * arc.grad(lambda y: s + y)(1.0 * s / s))(x[0])


def nested_closures_three_deep(np, arc, x):
    f = lambda a: arc.grad(lambda b: arc.grad(lambda c: np.sin(a * b * c))(b * a))(a)
    return arc.grad(f)(x[0])


def jac_contains_jac(np, arc, x):
    def outer(v):
        return arc.jac(lambda u: _field(np, u * v))(v) @ v

    return arc.jac(outer)(x)


def third_derivative(np, arc, x):
    return arc.grad(arc.grad(arc.grad(lambda s: np.exp(np.sin(s)) * s)))(x[0])


def fourth_derivative_forward(np, arc, x):
    d = lambda f: lambda s: arc.jvp(f)(s, 1.0 * s / s)
    return d(d(d(lambda s: s**5 + 0.0 * s)))(x[0])


def grad_of_cond_of_grad(np, arc, x):
    g = arc.grad(lambda s: s**3)
    h = arc.grad(lambda s: np.sin(s))
    return arc.grad(lambda s: arc.cond(s > 0, lambda v: g(v), lambda v: h(v), s))(x[0])


def grad_of_switch(np, arc, x):
    table = [lambda v: v**2, lambda v: np.sin(v), lambda v: v**3]
    return arc.vmap(arc.grad(lambda s: arc.switch(1, table, s) + arc.switch(2, table, s)))(x)


def jac_of_while(np, arc, x):
    grow = lambda v: arc.while_loop(
        lambda c: np.sum(c**2) < 40.0, lambda c: c * 1.4 + np.sin(v), v, max_steps=99
    )
    return arc.jac(grow)(x)


def hess_of_vmap_scan(np, arc, x):
    def total(p):
        run = lambda s: arc.scan(lambda c, q: (np.tanh(c * q) + s, None), s, p)[0]
        return np.sum(arc.vmap(run)(p) ** 2)

    return arc.hess(total)(x)


def argnums_one(np, arc, x):
    return arc.grad(lambda a, b: np.sum(np.sin(a) * b**2), argnums=1)(x, x**2)


def jac_argnums_one(np, arc, x):
    return arc.jac(lambda a, b: np.outer(a, b) @ b, argnums=1)(x, np.cos(x))


def stop_gradient_inside(np, arc, x):
    return arc.grad(lambda v: np.sum(v * arc.stop_gradient(v**2)))(x)


def stop_gradient_in_scan(np, arc, x):
    body = lambda c, s: (arc.stop_gradient(c) * s + c, c)
    return arc.jac(lambda v: arc.scan(body, v[0], v)[0])(x)


def compiled_inside_grad(np, arc, x):
    f = arc.compile(lambda v: np.sin(v) * v)
    return arc.grad(lambda v: np.sum(f(f(v))))(x)


def grad_inside_compiled(np, arc, x):
    return arc.compile(lambda v: arc.grad(lambda u: np.sum(u**3))(v) * v)(x)


PROGRAMS: list[Callable[..., Any]] = [
    value
    for name, value in list(globals().items())
    if callable(value) and getattr(value, "__module__", "") == __name__ and name[0].islower()
]
