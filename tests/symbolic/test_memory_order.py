"""Order in memory and views: what NumPy's functions alias and how they lay out results.

Every expression is compared with plain NumPy for arrays in C order, in F order and with permuted
axes: its elements in memory order, what writing to it changes, and whether ``ravel`` is a view.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import archimedes as arc

#: Results, whose elements are read in the order of memory.
ORDERED = (
    'x.copy("K")',
    'x.copy("A")',
    "x.copy()",
    'x.copy("F")',
    "np.copy(x)",
    'np.copy(x, order="A")',
    "np.array(x)",
    'np.array(x, order="F")',
    'np.array(x, order="C")',
    'np.asarray(x, order="F")',
    "np.ascontiguousarray(x)",
    "np.asfortranarray(x)",
    'np.require(x, requirements="F")',
    'np.require(x, requirements=["C"])',
    "x + 1",
    "x + x.copy()",
    "np.sin(x)",
    'np.add(x, 1, order="C")',
    'np.add(x, 1, order="F")',
    "x.astype(int)",
    'x.astype(int, order="C")',
    "np.zeros_like(x)",
    "np.cumsum(x, axis=0)",
    "np.cumsum(x, axis=-1)",
    "np.sort(x, axis=0)",
    "np.sort(x, axis=-1)",
    "np.clip(x, 1, 5)",
    "np.where(x > 3, x, 0)",
    "np.round(x)",
    "np.sum(x, axis=0)",
    "np.sum(x, axis=-1)",
    "np.sum(x, axis=0, keepdims=True)",
    "np.max(x, axis=0)",
    "np.mean(x, axis=-1)",
    "np.concatenate([x, x])",
    "np.concatenate([x, x], axis=-1)",
    "np.stack([x, x])",
    "np.stack([x, x], axis=-1)",
    "np.tile(x, 2)",
    "np.repeat(x, 2, axis=0)",
    "np.roll(x, 1)",
    "np.flip(x)",
    "np.diff(x, axis=0)",
    "np.nan_to_num(x)",
    "np.full_like(x, 2.0)",
    "x[[0, 0]]",
    "x[::-1]",
    "np.take(x, [0, 1], axis=0)",
    "np.take(x, [0, 1], axis=-1)",
    "np.gradient(x, axis=0)",
    "np.broadcast_to(x, (2,) + x.shape)",
    "np.moveaxis(x, 0, -1)",
    "np.delete(x, 0, axis=0)",
    "np.pad(x, 1)",
    "np.minimum(x, x.T.T)",
    "np.outer(x, x)",
    "np.argsort(x, axis=0)",
    "np.interp(x, [0.0, 5.0], [1.0, 2.0])",
    "np.insert(x, 0, 1.0, axis=0)",
    "x > 2",
    "np.trapezoid(x, axis=0)",
    'np.einsum("...->...", x)',
    "np.linalg.norm(x, axis=0)",
    "np.std(x, axis=0)",
    "np.median(x, axis=0)",
    "np.heaviside(x, 0.5)",
    "np.divmod(x, 2.0)[0]",
    "np.matmul(x, x.swapaxes(-1, -2))",
    "np.array([x, x])",
    'x.T.copy("K")',
    'x.T.copy("A")',
    "x.T + x.T",
)

#: Functions of an order.
BY_ORDER = (
    'x.ravel("K")',
    'x.ravel("A")',
    'x.ravel("C")',
    'x.ravel("F")',
    'x.reshape(-1, order="A")',
    'x.reshape(-1, order="C")',
    'x.reshape(-1, order="F")',
    'x.flatten("K")',
    'x.flatten("A")',
    'np.ravel(x, order="K")',
    'np.reshape(x, -1, order="A")',
    "np.convolve(x.ravel(), [1.0, 2.0])",
)

#: Views and copies, which are then written to.
WRITTEN = (
    "x.ravel()",
    'x.ravel("K")',
    'x.ravel("A")',
    "x.reshape(-1)",
    'x.reshape(-1, order="F")',
    'x.reshape(-1, order="A")',
    "x.T",
    "np.ascontiguousarray(x)",
    "np.ascontiguousarray(x.T)",
    "np.asfortranarray(x)",
    "np.asfortranarray(x.T)",
    'np.require(x, requirements="C")',
    'np.require(x, requirements="F")',
    'np.require(x.T, requirements=["F", "W"])',
    "np.require(x)",
    'np.require(x, dtype=float, requirements="O")',
    'np.asarray(x, order="F")',
    'np.asarray(x, order="C")',
    "np.asarray(x)",
    "np.array(x, copy=None)",
    'np.array(x, copy=None, order="F")',
    "np.array(x)",
    'np.asanyarray(x, order="A")',
    "np.atleast_2d(x)",
    "np.atleast_1d(x)",
    "np.atleast_3d(x)",
    "x[...]",
    "x[0]",
    "x[0, ...]",
    "x[(0,) * x.ndim + (...,)]",
    "np.squeeze(x)",
    "x[None]",
    "np.expand_dims(x, 0)",
    "np.diagonal(x).copy()",
    "np.swapaxes(x, 0, -1)",
    "x.astype(float, copy=False)",
    'x.astype(float, copy=False, order="F")',
    'x.astype(float, copy=False, order="C")',
    "x.view()",
    'np.einsum("...->...", x)',
    'np.einsum("i...->...i", x)',
    "np.real(x)",
    "x.real",
    "np.split(x, [1])[0]",
    "np.array_split(x, 2)[0]",
    "np.flip(x)",
    "np.rot90(x) if x.ndim > 1 else x",
    "np.transpose(x)",
    "np.rollaxis(x, -1)",
    "np.moveaxis(x, 0, -1)",
    "x.flatten()",
    "np.copy(x)",
    "np.ravel(x)",
    "np.reshape(x, x.shape[::-1])",
    "np.broadcast_arrays(x, x)[0].copy()",
    "np.nan_to_num(x, copy=False)",
    "np.clip(x, None, None)",
    "np.positive(x)",
    "+x",
    "np.asarray_chkfinite(x)",
    "x.conj()",
    "np.conj(x)",
    "x.round(3)",
    "np.lib.stride_tricks.sliding_window_view(x, (1,) * x.ndim, writeable=True)",
    "np.fliplr(x) if x.ndim > 1 else x",
    "np.vsplit(x, [1])[0] if x.ndim > 1 else x",
    "np.resize(x, x.shape)",
    "np.tril(x) if x.ndim > 1 else x",
    "np.permute_dims(x)",
    "np.matrix_transpose(x) if x.ndim > 1 else x",
    "np.astype(x, float, copy=False)",
    "np.asarray(x, copy=False)",
    "np.cumsum(x, axis=-1)",
    "x.squeeze()",
    "x.swapaxes(0, -1)",
)

#: What may be a view of the result, and is written to.
RAVELLED = (
    "x.T",
    "np.cumsum(x, axis=-1)",
    "np.cumsum(x, axis=0)",
    "np.sort(x, axis=0)",
    "np.sum(x, axis=0, keepdims=True)",
    "np.stack([x, x], axis=-1)",
    "np.diff(x, axis=0)",
    "x + 1",
    "np.outer(x, x)",
    "x[[0, 0]]",
    "np.take(x, [0, 1], axis=-1)",
    "np.where(x > 3, x, 0.0)",
    "np.gradient(x, axis=0)",
    'np.einsum("...->...", x)',
    "np.zeros_like(x)",
    "np.moveaxis(x + 1, 0, -1)",
    "np.pad(x, 1)",
    "np.concatenate([x, x], axis=-1)",
    "np.tile(x, 2)",
    "np.full_like(x, 1.0)",
    "np.roll(x, 1, axis=-1)",
)

#: Arrays made of a scalar, which is never written to.
OF_SCALARS = (
    "np.atleast_1d(x)",
    "np.atleast_2d(x)",
    "np.reshape(x, 1)",
    "np.expand_dims(x, 0)",
    "np.asarray(x)",
    "np.array(x)",
    "np.ravel(x)",
    "np.asanyarray(x)",
    "np.ascontiguousarray(x)",
    "np.squeeze(np.asarray(x))",
    "np.full(2, x)",
    "np.array([x])",
    "np.broadcast_to(x, 3).copy()",
    "np.require(x)",
    "np.copy(x)",
    "np.positive(x)",
    "np.stack([x])",
    "np.hstack([x])",
    "np.repeat(x, 2)",
    "np.tile(x, 2)",
    "np.resize(x, 2)",
    "np.atleast_3d(x)",
    "np.diag([x])",
    "np.nan_to_num(x) * np.ones(1)",
    "np.real(x) * np.ones(1)",
)

#: The same with methods of NumPy's scalars.
OF_ELEMENTS = (
    "x[None]",
    "x[..., None]",
    "x[()]",
    "x.reshape(1)",
    "x.ravel()",
    "x.flatten()",
    "x.copy()",
    "x.astype(float)",
    "x.T",
    "x.squeeze()",
    "x[...]",
    "x.view()",
    "x.real",
)

C = np.arange(12.0).reshape(3, 4) + 0.5
S = np.arange(9.0).reshape(3, 3)
T = np.arange(24.0).reshape(2, 3, 4)
ARRAYS = {
    "vector": np.arange(4.0),
    "C": C,
    "F": np.asfortranarray(C),
    "square F": np.asfortranarray(S),
    "three axes": T,
    "permuted": T.transpose(1, 2, 0).copy("K"),
}


def written(v: Any) -> Any:
    v[(0,) * v.ndim if v.ndim else ...] = -7.0
    return v


def differences(programs: dict[str, Any], argument: Any) -> list[str]:
    """Name the programs whose results differ from NumPy's; those it refuses do not count."""
    found = []
    for text, program in programs.items():
        given = argument.copy("K") if isinstance(argument, np.ndarray) else argument
        try:
            want = program(given)
        except (ValueError, TypeError, IndexError, AttributeError):
            continue
        got = arc.compile(program, backend="interpreter")(argument)
        for w, g in zip(want, got):
            if np.shape(w) != np.shape(g) or not np.allclose(w, g, rtol=1e-12):
                found.append(text)
                break
    return found


def programs_of(texts: Any, use: Any) -> dict[str, Any]:
    made = {}
    for text in texts:
        make = eval(f"lambda x: {text}", {"np": np})
        made[text] = lambda x, make=make: use(x, make)
    return made


def read(x: Any, make: Any) -> Any:
    return (make(x).ravel("K"),)


def write(x: Any, make: Any) -> Any:
    return written(make(x)), x


def write_ravelled(x: Any, make: Any) -> Any:
    made = make(x)
    return written(made.ravel()), made


def write_of_element(x: Any, make: Any) -> Any:
    element = x[1]
    made = make(element)
    if getattr(made, "ndim", 0):
        written(made)
    made += 1
    return made, element, x


# np.median of an array with permuted axes lays out its result in C order; nothing aliases it.
KNOWN = {("permuted", "np.median(x, axis=0)")}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize(
    ("texts", "use"),
    [
        (ORDERED, read),
        (BY_ORDER, lambda x, make: (make(x),)),
        (WRITTEN, write),
        (RAVELLED, write_ravelled),
    ],
    ids=["read", "by order", "write", "ravel"],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_order_and_views_are_numpys(name, texts, use) -> None:
    found = differences(programs_of(texts, use), ARRAYS[name])
    assert [text for text in found if (name, text) not in KNOWN] == []


def write_constant(make: Any, constant: np.ndarray, early: bool) -> Any:
    def program(s: Any) -> Any:
        x = np.array(constant)
        if early:
            x[(-1,) * x.ndim] = s
        made = make(x)
        made[(0,) * made.ndim if made.ndim else ...] = s
        return made, x

    return program


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("early", [False, True], ids=["numbers", "traced values"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_views_of_arrays_made_while_recording_are_numpys(name, early) -> None:
    texts = dict.fromkeys((*WRITTEN, *RAVELLED, *(f"({t}).ravel()" for t in RAVELLED)))
    programs = {
        text: write_constant(eval(f"lambda x: {text}", {"np": np}), ARRAYS[name], early)
        for text in texts
    }
    assert differences(programs, 2.5) == []


@pytest.mark.parametrize("value", [2.5, np.float64(2.5)], ids=["float", "np.float64"])
def test_scalars_are_not_written_to(value) -> None:
    assert differences(programs_of(OF_SCALARS, write), value) == []


@pytest.mark.parametrize("texts", [OF_SCALARS, OF_ELEMENTS], ids=["functions", "methods"])
def test_elements_are_not_written_to(texts) -> None:
    assert differences(programs_of(texts, write_of_element), np.arange(3.0)) == []


# ---- the issue's own ---------------------------------------------------------------------------


def ellipsis(x):
    s = x[0, ...]
    s += 1
    t = x[1]
    t += 1
    return x, s, t


def contiguous_transpose(x):
    y = np.ascontiguousarray(x.T)
    y[0, 0] = 99.0
    z = np.ascontiguousarray(x)
    z[0, 1] = 77.0
    return x, y, z


def required(x):
    y = np.require(x, requirements=["F"])
    y[0, 0] = 99.0
    z = np.require(x, requirements=["C", "W"])
    z[0, 1] = 77.0
    return x, y, z


def diagonal_view(x):
    v = np.einsum("ii->i", x)
    v += 1.0
    w = np.einsum("ij->ji", x)
    w[0, 1] = 9.0
    u = np.einsum(x, [0, 0], [0])
    u *= 2.0
    return x


def reads_in_order(x):
    return x.ravel("K"), x.reshape(-1, order="A"), x.flatten("A"), np.ravel(x, "K")


@pytest.mark.parametrize(
    "function", [ellipsis, contiguous_transpose, required, diagonal_view, reads_in_order]
)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("backend", ["interpreter", "llvm"])
def test_examples(function, order, backend) -> None:
    x = np.array(S, order=order)
    want = function(x.copy("K"))
    got = arc.compile(function, backend=backend)(x)
    for w, g in zip(arc.tree.leaves(want), arc.tree.leaves(got)):
        np.testing.assert_array_equal(g, w)
    assert x.tolist() == S.tolist()


def test_ellipsis_of_a_vector_writes_through() -> None:
    got = arc.compile(ellipsis)(np.arange(3.0))
    for w, g in zip(ellipsis(np.arange(3.0)), got):
        np.testing.assert_array_equal(g, w)


def test_order_is_part_of_a_specialisation() -> None:
    f = arc.compile(lambda x: x.ravel("K"), backend="llvm")
    c, fortran = C.copy(), np.asfortranarray(C)
    for _ in range(3):  # also once calls go straight to native code
        assert f(c).tolist() == c.ravel("K").tolist()
        assert f(fortran).tolist() == fortran.ravel("K").tolist()
        assert f(c[:, :3]).tolist() == c[:, :3].ravel("K").tolist()
        assert f(fortran[:, ::2]).tolist() == fortran[:, ::2].ravel("K").tolist()
    assert "axes [1, 0] in memory" in f.explain()


def test_order_passes_through_nested_functions_and_derivatives() -> None:
    inner = arc.compile(lambda x: x.ravel("K"))
    x = np.asfortranarray(C)
    assert arc.compile(lambda x: inner(x.T))(x).tolist() == x.T.ravel("K").tolist()
    assert arc.compile(inner)(x).tolist() == x.ravel("K").tolist()
    weights = np.arange(12.0)
    g = arc.grad(lambda x: np.sum(weights * x.ravel("K")))(x)
    assert g.tolist() == weights.reshape(4, 3).T.tolist()
