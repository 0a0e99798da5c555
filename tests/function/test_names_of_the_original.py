"""Names and options that existing users' files contain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import archimedes as arc
from archimedes import tree


def test_modules() -> None:
    from archimedes.error import ShapeDtypeError
    from archimedes.theme import color_schemes, set_theme
    from archimedes.typing import Tree

    assert issubclass(ShapeDtypeError, ValueError) and issubclass(ShapeDtypeError, arc.TraceError)
    assert issubclass(arc.StructError, ValueError)
    assert arc.theme.set_theme is set_theme is arc.set_theme
    assert set(color_schemes) >= {"light", "dark"}
    assert Tree is arc.typing.Tree
    assert arc.error.TraceError is arc.TraceError


def test_configurations() -> None:
    class Engine(arc.StructConfig):
        thrust: float

    class Loose(arc.StructConfig, extra="ignore"):
        thrust: float

    class Looser(Loose):
        power: float = 1.0

    data = {"thrust": 2.0, "colour": "red"}
    assert Engine.model_validate({"thrust": 2.0}) == Engine.from_dict({"thrust": 2.0})
    with pytest.raises(ValueError, match="colour: unknown key"):
        Engine.model_validate(data)
    assert Loose.model_validate(data) == Loose(thrust=2.0)
    assert Looser.from_dict(data).thrust == 2.0
    with pytest.raises(arc.StructError, match="extra='allow'"):

        class Wrong(arc.StructConfig, extra="allow"):
            thrust: float


def test_interpolant() -> None:
    x, y = np.linspace(0.0, 1.0, 5), np.linspace(0.0, 2.0, 4)
    data = x[:, None] ** 2 + 3.0 * y
    plain = arc.interpolant([x, y], data, method="cubic")
    named = arc.interpolant(
        [x, y],
        data.ravel(order="F"),
        method="bspline",
        arg_names=["mach", "alpha"],
        ret_name="cl",
        name="lift",
    )
    assert (named.name, named.arg_names, named.return_names) == ("lift", ("mach", "alpha"), ("cl",))
    assert named(mach=0.3, alpha=1.1) == named(0.3, alpha=1.1) == plain(0.3, 1.1)
    recorded = arc.compile(lambda m, a: named(alpha=a, mach=m))
    assert recorded(0.3, 1.1) == plain(0.3, 1.1)
    with pytest.raises(TypeError, match="by name"):
        named(0.3, beta=1.0)


def test_implicit() -> None:
    def f(x, z):
        return x**2 - z

    g = arc.implicit(f, solver="fast_newton", max_iter=20, abstol=1e-12)
    assert abs(g(x0=1.0, z=2.0) - np.sqrt(2.0)) < 1e-12
    assert g(1.0, z=2.0) == g(1.0, 2.0)
    assert abs(arc.grad(lambda z: g(x0=1.0, z=z))(2.0) - 0.5 / np.sqrt(2.0)) < 1e-12
    with pytest.raises(TypeError, match="by name"):
        g(1.0, y=2.0)


@pytest.mark.parametrize("through", [lambda f: f, arc.compile], ids=["eager", "recorded"])
def test_scan_counts(through) -> None:
    f = through(lambda x: arc.scan(lambda c, k: (c + k, c * k), x, length=4))
    total, steps = f(1.0)
    assert total == 7.0
    np.testing.assert_array_equal(steps, [0.0, 1.0, 4.0, 12.0])
    empty, none = through(lambda x: arc.scan(lambda c, k: (c + k, c * k), x, length=0))(1.0)
    assert empty == 1.0 and none.shape == (0,)
    assert arc.grad(lambda x: arc.scan(lambda c, k: (c * (k + 1), None), x, length=4)[0])(1.0) == 24


def test_registered_dataclasses() -> None:
    @dataclass
    class Link:
        mass: float
        name: str

    tree.register_dataclass(Link, meta_fields=["name"])
    assert tree.leaves(Link(1.0, "arm")) == [1.0]
    with pytest.raises(arc.StructError, match="give one"):
        tree.register_dataclass(Link, static_fields=["name"], meta_fields=["name"])


def test_names_of_arguments_and_results() -> None:
    f = arc.compile(lambda x, u=1.0: (x, u), return_names=["a", "b"])
    assert f.arg_names == ("x", "u") and f.return_names == ("a", "b")


@pytest.mark.parametrize("option", ["kind", "jit", "buffered", "sparse"])
def test_options_that_mean_nothing_are_accepted_with_a_word(option: str) -> None:
    with pytest.warns(DeprecationWarning, match=option):
        assert arc.compile(lambda x: 2 * x, **{option: True})(2.0) == 4.0
    with pytest.warns(DeprecationWarning, match=option):
        arc.odeint(lambda t, x: -x, (0.0, 1.0), 1.0, **{option: True})


def test_unknown_options_are_refused() -> None:
    with pytest.raises(TypeError, match="'colour'"):
        arc.compile(lambda x: x, colour=1)
    with pytest.raises(TypeError, match="'colour'"):
        arc.odeint(lambda t, x: -x, (0.0, 1.0), 1.0, colour=1)


def test_symbols_are_refused_with_a_way_out() -> None:
    for call in (lambda: arc.sym("y", (2,), float), lambda: arc.sym_like(np.ones(2), "y")):
        with pytest.raises(arc.TraceError, match=r"arc\.compile\(lambda y"):
            call()


def test_names_of_methods() -> None:
    from archimedes.simulate.solves.initial_value_problem import find_method

    assert find_method("cvodes") is find_method("cvode")
