"""Every public function, misused: the error names the argument and what to write instead."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc

X = np.array([0.5, -1.0, 2.0])
TRANSFORMS = {"grad": arc.grad, "jac": arc.jac, "hess": arc.hess, "jvp": arc.jvp, "vjp": arc.vjp}


@arc.struct
class S:
    a: np.ndarray
    b: float


# ---- arguments of the compiled function --------------------------------------------------------

BAD_LEAVES = {
    "complex": (1j, r"argument x is complex.*real and imaginary parts"),
    "complex array": (np.array([1j]), r"argument x has dtype complex128.*static_argnames"),
    "strings": (np.array(["a"]), r"argument x has dtype <U1"),
    "objects": (np.array([1, "a"], dtype=object), r"argument x has dtype object"),
    "half": (np.float16([1]), r"argument x has dtype float16.*convert it to float64"),
    "long": (np.longdouble([1]), r"argument x has dtype"),
    "uint64": (np.uint64([1]), r"argument x has dtype uint64"),
    "dates": (np.array(["2020-01-01"], dtype="datetime64[D]"), r"argument x has dtype datetime64"),
    "records": (np.zeros(2, dtype=[("a", float)]), r"argument x has dtype"),
    "big int": (2**70, r"argument x is an int outside the range of int64: pass it as a float"),
    "in a tree": ({"p": [1.0, 1j]}, r"argument x\['p'\]\[1\] is complex"),
    "in a struct": (S(np.array(["a"]), 1.0), r"argument x\.a has dtype <U1"),
}


class Unhashable:
    __hash__ = None


@pytest.mark.parametrize("name", BAD_LEAVES)
def test_arguments_that_cannot_be_traced(name):
    value, message = BAD_LEAVES[name]
    with pytest.raises(arc.TraceError, match=message):
        arc.compile(lambda x: 1.0)(value)
    with pytest.raises(arc.TraceError):
        arc.compile(lambda y: arc.compile(lambda x: y)(value))(1.0)


def test_objects_that_cannot_be_compared():
    with pytest.raises(arc.TraceError, match=r"argument x is a Unhashable.*@arc\.struct"):
        arc.compile(lambda x: 1.0)(Unhashable())
    with pytest.raises(arc.StructError, match="Unhashable"):
        arc.compile(lambda x: 1.0, static_argnames="x")(Unhashable())


@pytest.mark.parametrize("name", [*TRANSFORMS, "vmap", "compile"])
@pytest.mark.parametrize("thing", [3.0, None, "f", X])
def test_not_a_function(name, thing):
    if name == "compile" and thing is None:
        return  # compile() without a function is a decorator
    with pytest.raises(
        TypeError, match=rf"{name}: func must be a function, got \w+: write arc\.{name}"
    ):
        getattr(arc, name)(thing)


# ---- derivatives -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TRANSFORMS)
def test_argnums(name):
    d = TRANSFORMS[name]
    extra = (1.0,) if name in ("jvp", "vjp") else ()
    f = lambda x, y: x * y
    for bad in (2, -3, (0, 5)):
        with pytest.raises(
            ValueError, match=rf"{name}: argnums=-?\d is out of range.*\['x', 'y'\]"
        ):
            d(f, argnums=bad)(1.0, 2.0, *extra)
    with pytest.raises(ValueError, match=rf"{name}: argnums is empty"):
        d(f, argnums=())
    with pytest.raises(ValueError, match=rf"{name}: argnums=\(0, -2\) names 'x' twice"):
        d(f, argnums=(0, -2))(1.0, 2.0, *extra)
    with pytest.raises(TypeError, match=rf"{name}: argnums must be an int or a sequence of ints"):
        d(f, argnums="x")


@pytest.mark.parametrize("name", TRANSFORMS)
def test_static_and_missing_arguments(name):
    d = TRANSFORMS[name]
    extra = (1.0,) if name in ("jvp", "vjp") else ()
    with pytest.raises(ValueError, match=rf"{name}: argument 'n' is static.*argnums"):
        d(lambda x, n: x * n, argnums=1, static_argnames="n")(1.0, 2, *extra)
    with pytest.raises(arc.TraceError, match=rf"{name}: argument 'x' holds no numbers"):
        d(lambda x: 1.0)("text", *extra)
    with pytest.raises(arc.TraceError, match=rf"{name}: argument 'x' holds no numbers"):
        d(lambda x: 1.0)(np.array([True]), *extra)
    with pytest.raises(TypeError):
        d(lambda x, y: x)(1.0, *extra)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_results_without_derivative(name):
    d = TRANSFORMS[name]
    extra = (1.0,) if name in ("jvp", "vjp") else ()
    with pytest.raises(arc.TraceError, match=rf"{name}: result is int64.*x\.astype\(float\)"):
        d(lambda x: np.rint(x).astype(int))(1.5, *extra)
    with pytest.raises(arc.TraceError, match=rf"{name}: result is bool"):
        d(lambda x: x > 0)(1.5, *extra)
    with pytest.raises(arc.TraceError, match=rf"{name}: result\['b'\] is a str, which has no"):
        d(lambda x: {"a": x, "b": "text"})(1.5, *extra)


@pytest.mark.parametrize("name", ["grad", "hess"])
def test_results_that_are_not_scalar(name):
    message = rf"{name} needs a function with one scalar result.*np\.sum.*arc\.jac"
    for f in (lambda x: x * 2, lambda x: (x[0], x[1]), lambda x: x[:1], lambda x: None):
        with pytest.raises(arc.TraceError, match=message):
            TRANSFORMS[name](f)(X)


def test_tangents_and_cotangents():
    f = lambda s: {"y": s.a * s.b, "z": s.b}
    s = S(X, 2.0)
    with pytest.raises(TypeError, match=r"jvp\(f\)\(\*args, tangent\): give the arguments of f"):
        arc.jvp(f)(s)
    with pytest.raises(TypeError, match=r"vjp\(f\)\(\*args, cotangent\): give the arguments of f"):
        arc.vjp(f)(s)
    with pytest.raises(ValueError, match=r"tangent\.a has shape \(2,\), but \(3,\) is needed"):
        arc.jvp(f)(s, S(np.ones(2), 1.0))
    with pytest.raises(ValueError, match=r"tangent must have the structure.*S\(a=\*, b=\*\)"):
        arc.jvp(f)(s, (X, 1.0))
    with pytest.raises(ValueError, match=r"cotangent\['y'\] has shape \(\), but \(3,\) is needed"):
        arc.vjp(f)(s, {"y": 1.0, "z": 1.0})
    with pytest.raises(ValueError, match="cotangent must have the structure"):
        arc.vjp(f)(s, {"y": X})


def test_branches_on_values_inside_derivatives():
    def f(x):
        if x > 0:
            return x
        return -x

    for d in (arc.compile(f), arc.grad(f), arc.jac(f), arc.vmap(f)):
        with pytest.raises(arc.TraceError, match=r"(?s)test_misuse\.py:\d+, in f.*np\.where") as e:
            d(np.array([1.0]) if d.__name__.startswith("vmap") else 1.0)
        assert "if x > 0:" in str(e.value)


# ---- other functions ---------------------------------------------------------------------------


def test_writing_to_an_outer_array_from_an_inner_function():
    def f(x):
        y = np.zeros(3)

        def step(c, s):
            y[0] = s
            return c, s

        return arc.scan(step, 0.0, x)

    with pytest.raises(arc.TraceError, match=r"(?s)writes to the outer one's array.*Copy it first"):
        arc.compile(f)(X)


def test_loop_bounds_must_be_known():
    with pytest.raises(arc.TraceError, match=r"(?s)traced.*static"):
        arc.compile(lambda n: arc.fori_loop(0, n, lambda i, x: x, 1.0))(3)
    with pytest.raises(arc.TraceError, match=r"(?s)traced.*static"):
        arc.compile(lambda n: arc.scan(lambda c, _: (c, None), 1.0, length=n))(3)


# ---- array constructors ------------------------------------------------------------------------


def test_array_functions_plain_and_recorded():
    cases = {
        "array": lambda x: arc.array([x[0], 1.0]),
        "array dtype": lambda x: arc.array([x[0], 1.0], dtype=np.float32),
        "nested": lambda x: arc.array([[x[0], 1], [2, x[1]]]),
        "zeros": lambda x: arc.zeros((2, 3)),
        "zeros int": lambda x: arc.zeros(2, dtype=int),
        "ones": lambda x: arc.ones(2),
        "eye": lambda x: arc.eye(2, 3, 1),
        "zeros_like": lambda x: arc.zeros_like(x),
        "ones_like": lambda x: arc.ones_like(x, dtype=np.float32),
    }
    for name, f in cases.items():
        plain, recorded = f(X), arc.compile(f)(X)
        assert isinstance(plain, np.ndarray), name
        np.testing.assert_array_equal(plain, recorded)
        assert plain.dtype == recorded.dtype, name


def test_arrays_made_inside_can_be_written_to():
    def f(x):
        made = [np.zeros(3), arc.zeros(3), np.ones(3), np.full(3, 2.0), np.empty(3) * 0, x.copy()]
        made += [np.zeros_like(x), arc.array([0.0, 0.0, 0.0]), np.array([1.0, 2.0, 3.0])]
        for y in made:
            y[1] = x[0] * 7
        return [y[1] for y in made]

    assert arc.compile(f)(X) == [3.5] * 9
