"""What belongs to the structure of arguments: the order of dicts, the class of arrays."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.errors import ShapeDtypeError, TraceError


def test_dicts_keep_their_order_in_recordings() -> None:
    """The issue's own: list(d.values())."""
    f = arc.compile(lambda d: list(d.values()))
    for _ in range(2):
        assert f({"b": 1.0, "a": 2.0}) == [1.0, 2.0]
        assert f({"a": 2.0, "b": 1.0}) == [2.0, 1.0]
    assert list(arc.compile(lambda x: {"b": x, "a": 2 * x})(1.0)) == ["b", "a"]


def test_static_dicts_keep_their_order_in_recordings() -> None:
    f = arc.compile(lambda x, d: x * next(iter(d.values())), static_argnames="d")
    assert f(2.0, {"b": 3, "a": 4}) == 6.0
    assert f(2.0, {"a": 4, "b": 3}) == 8.0


def test_dicts_in_other_orders_correspond_by_key() -> None:
    f = arc.vmap(lambda d: d["a"] - d["b"], in_axes=({"a": 0, "b": None},))
    np.testing.assert_array_equal(f({"b": 1.0, "a": np.arange(3.0)}), [-1.0, 0.0, 1.0])
    trajectory = arc.odeint(
        lambda t, x: {"v": -x["x"], "x": x["v"]}, (0.0, 1.0), {"x": 1.0, "v": 0.0}, t_eval=[1.0]
    )
    assert abs(float(np.squeeze(trajectory["x"])) - np.cos(1.0)) < 1e-6
    given = {"b": np.array([0.0, 1.0]), "a": np.array([1.0, 0.0])}
    result = arc.vjp(lambda x: {"a": x, "b": 2 * x})(np.ones(2), given)
    np.testing.assert_array_equal(result, [1.0, 2.0])


def test_a_carry_in_another_order_is_an_error() -> None:
    """Later steps would see another order than the first, which no recording can show."""
    body = lambda c, _: ({"b": c["b"], "a": c["a"] + 1}, None)
    with pytest.raises(ShapeDtypeError, match="another order"):
        arc.compile(lambda x: arc.scan(body, {"a": x, "b": x}, length=3))(1.0)
    with pytest.raises(ValueError, match="another order"):
        arc.compile(
            lambda x: arc.cond(x > 0, lambda: {"a": 1.0, "b": 2.0}, lambda: {"b": 2.0, "a": 1.0})
        )(1.0)


MASKED = np.ma.array([1.0, 2.0], mask=[False, True])
MATRIX = np.array([[1.0, 2.0]]).view(np.matrix)
RECORDS = np.rec.array([(1.0, 2.0)], dtype=[("a", float), ("b", float)])
OTHER = np.ones(2).view(type("Sub", (np.ndarray,), {}))
REFUSED = {
    "masked": (MASKED, r"x\.filled"),
    "matrix": (MATRIX, "np.asarray"),
    "records": (RECORDS, "columns"),
    "structured": (np.zeros(2, dtype=[("a", float)]), "cannot be traced"),
    "a subclass": (OTHER, "np.asarray"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("through", [arc.compile, arc.vmap, arc.jac], ids=lambda f: f.__name__)
def test_subclasses_of_arrays_are_refused(name: str, through) -> None:
    value, remedy = REFUSED[name]
    f = through(lambda x: x * 2.0)
    for _ in range(8):  # with native calls too
        f(np.ones(2))
    with pytest.raises(TraceError, match=remedy) as error:
        f(value)
    assert "argument" in str(error.value)


def test_subclasses_that_a_function_closes_over_are_refused() -> None:
    for value in (MASKED, MATRIX):
        with pytest.raises(TraceError, match="test_structure_of_arguments"):
            arc.compile(lambda x, value=value: np.multiply(value, x))(np.ones(2))
    with pytest.raises(TraceError, match=r"result is a .*MaskedArray"):  # its own operator
        arc.compile(lambda x: MASKED * x)(np.ones(2))


def test_arrays_in_files_are_arrays(tmp_path) -> None:
    array = np.memmap(tmp_path / "x.bin", dtype=float, mode="w+", shape=(2,))
    array[:] = [1.0, 2.0]
    np.testing.assert_array_equal(arc.compile(lambda x: 2 * x)(array), [2.0, 4.0])
    np.testing.assert_array_equal(arc.vmap(lambda x: 2 * x)(array), [2.0, 4.0])


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: arc.vmap(np.sin, out_axes="x"), "out_axes='x'"),
        (lambda: arc.vmap(np.sin, in_axes=(0, "x")), "in_axes"),
        (lambda: arc.vmap(np.sin, out_axes=1.5), "out_axes=1.5"),
    ],
)
def test_axes_that_are_none(call, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        call()


COTANGENTS = {
    "shape": (lambda x: x**2, np.ones(3), r"shape \(3,\)"),
    "a number": (lambda x: x**2, 1.0, r"shape \(\)"),
    "text": (lambda x: x**2, "x", "numbers are needed"),
    "none": (lambda x: x**2, None, "numbers are needed"),
    "structure": (lambda x: (x, 2 * x), np.ones(2), r"TreeDef\(\(\*, \*\)\)"),
    "keys": (lambda x: {"a": x, "b": x}, {"a": np.ones(2)}, "'b'"),
}


@pytest.mark.parametrize("name", COTANGENTS)
def test_wrong_cotangents(name: str) -> None:
    function, given, text = COTANGENTS[name]
    with pytest.raises(ValueError, match=text) as error:
        arc.vjp(function)(np.ones(2), given)
    assert "cotangent" in str(error.value)


def test_wrong_tangents() -> None:
    with pytest.raises(ValueError, match=r"tangent has shape \(3,\)"):
        arc.jvp(np.sin)(np.ones(2), np.ones(3))
