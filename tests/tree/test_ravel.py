import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from archimedes import tree
from archimedes.errors import StructError
from archimedes.tree import field, struct


@struct
class State:
    pos: np.ndarray
    mass: float = 1.0
    name: str = field(static=True, default="a")


def test_order_shapes_and_types():
    x = {"b": State(np.arange(6.0).reshape(2, 3)), "a": [7, np.array(8.0), np.float32(9)]}
    vector, unravel = tree.ravel(x)
    assert vector.dtype == np.float64
    assert vector.tolist() == [7, 8, 9, 0, 1, 2, 3, 4, 5, 1]
    y = unravel(vector + 1)
    np.testing.assert_array_equal(y["b"].pos, np.arange(1.0, 7.0).reshape(2, 3))
    assert y["a"] == [8.0, np.array(9.0), np.float32(10)]
    types = [type(v) for v in (*y["a"], y["b"].mass)]
    assert types == [np.float64, np.ndarray, np.float32, np.float64]
    assert unravel.slices == [slice(0, 1), slice(1, 2), slice(2, 3), slice(3, 9), slice(9, 10)]


@pytest.mark.parametrize(
    "leaves, dtype",
    [
        ([np.zeros(2, np.float32), np.float32(1)], np.float32),
        ([1, 2], np.int64),
        ([True, np.array([False])], np.bool_),
        ([np.zeros(2, np.int32), np.zeros(2, np.int64)], np.float64),
        ([np.zeros(2, np.float32), 1.0], np.float64),
        ([1j, 2.0], np.complex128),
        ([True, 2.5], np.float64),
        ([], np.float64),
    ],
)
def test_dtype_of_the_vector(leaves, dtype):
    assert tree.ravel(leaves)[0].dtype == dtype


def test_dtypes_are_restored():
    x = [np.array([1, 2], np.int32), np.array([True]), np.ones(2, np.float32)]
    vector, unravel = tree.ravel(x)
    assert vector.dtype == np.float64
    assert [a.dtype for a in unravel(vector)] == [a.dtype for a in x]


def test_python_numbers_among_arrays_do_not_truncate():
    vector, unravel = tree.ravel({"x": 0, "v": np.ones(2)})
    assert unravel(vector + 0.5)["x"] == 0.5


finite = hnp.arrays(np.float64, hnp.array_shapes(min_dims=0, max_dims=3, max_side=3))


@given(st.lists(finite, max_size=4))
def test_round_trip(arrays):
    vector, unravel = tree.ravel(arrays)
    assert vector.shape == (sum(a.size for a in arrays),)
    for a, b in zip(unravel(vector), arrays, strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.shape == b.shape


def test_unravel_pickles_and_prints():
    vector, unravel = tree.ravel(State(np.zeros(2)))
    assert pickle.loads(pickle.dumps(unravel))(vector) == State(np.zeros(2))
    assert repr(unravel) == "Unravel(TreeDef(State(pos=*, mass=*, name='a')), size=3)"
    assert unravel([1, 2, 3]) == State(np.array([1.0, 2.0]), 3.0)


def test_errors():
    _, unravel = tree.ravel(State(np.zeros(2)))
    for shape in [(2,), (4,), (3, 1), ()]:
        with pytest.raises(StructError, match=r"needs a vector of shape \(3,\), got shape"):
            unravel(np.zeros(shape))
    with pytest.raises(StructError, match=r"leaf mass is not a number.*type str.*static"):
        tree.ravel(State(np.zeros(2), "heavy"))
    with pytest.raises(StructError, match=r"leaf \[0\] .* type object"):
        tree.ravel([object()])
    with pytest.raises(StructError, match=r"was ravelled as int64.*make the leaves"):
        tree.ravel([1, 2])[1](np.array([0.5, 1.5]))


class Wrapped:
    """An array-like that accepts only dispatched NumPy calls, indexing and astype."""

    def __init__(self, value):
        self.value = value
        self.dtype, self.shape = value.dtype, value.shape

    def __array_function__(self, func, types, args, kwargs):
        def unwrap(x):
            if isinstance(x, (list, tuple)):
                return type(x)(map(unwrap, x))
            return x.value if isinstance(x, Wrapped) else x

        return Wrapped(func(*unwrap(args), **unwrap(kwargs or {}) or {}))

    def __array__(self, dtype=None, copy=None):
        raise TypeError("must not be converted")

    def __getitem__(self, key):
        return Wrapped(np.asarray(self.value[key]))

    def astype(self, dtype):
        return Wrapped(self.value.astype(dtype))


def test_array_likes_flow_through():
    x = State(Wrapped(np.arange(4.0).reshape(2, 2)), 5.0)
    vector, unravel = tree.ravel(x)
    assert isinstance(vector, Wrapped)
    assert vector.value.tolist() == [0, 1, 2, 3, 5]
    back = unravel(Wrapped(2 * vector.value))
    assert back.pos.value.tolist() == [[0, 2], [4, 6]]
    assert back.mass.value == 10.0
    ints, unravel = tree.ravel([Wrapped(np.arange(2)), 0.5])
    assert ints.dtype == np.float64
    assert unravel(ints)[0].dtype == np.int64


def test_unravel_functions_of_equal_structures_are_equal():
    """The issue's own."""
    _, first = tree.ravel({"a": np.zeros(2), "b": 1.0})
    _, second = tree.ravel({"a": np.ones(2), "b": 2.0})
    assert first == second and hash(first) == hash(second)
    for other in ({"a": np.zeros(3), "b": 1.0}, {"a": np.zeros(2), "c": 1.0}, [np.zeros(2)]):
        assert first != tree.ravel(other)[1]
    assert first != tree.ravel({"a": np.zeros(2), "b": np.int64(1)})[1]
    assert first != "unravel"
