"""The traced array finds what is built on it in tables, which modules above it fill."""

from __future__ import annotations

import inspect
import subprocess
import sys

import numpy as np
import pytest

import archimedes as arc
from archimedes.checks import is_traced
from archimedes.symbolic import Trace, lift
from archimedes.symbolic.core import registry, trace, ufunc_calls
from archimedes.symbolic.core.traced_value import HOLDERS, Holder, as_traced
from archimedes.symbolic.core.ufuncs import UFUNCS

LOADED = """
import sys
import archimedes.symbolic.core.array
above = ("numpy_functions", "linalg", "recording_context", "recorded.numpy_overrides")
def loaded():
    return [n for n in above if f"archimedes.symbolic.{n}" in sys.modules]
print(loaded())
with archimedes.symbolic.Trace() as trace:
    print(loaded())
    import numpy as np
    x = archimedes.symbolic.wrap(trace.graph.add_inputs(0, 4).reshape(2, 2), 0, trace)
    np.linalg.solve(x, x)
    print(loaded())
from archimedes.symbolic.core.registry import FUNCTIONS
from archimedes.symbolic.recorded.numpy_patching import is_proxy
print(not any(map(is_proxy, FUNCTIONS)))
"""


def test_what_records_is_imported_when_the_first_recording_begins():
    run = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    before, during, after, own = run.stdout.splitlines()
    assert before == "[]"
    assert during == "['numpy_functions', 'recording_context', 'recorded.numpy_overrides']"
    assert after == "['numpy_functions', 'linalg', 'recording_context', 'recorded.numpy_overrides']"
    assert own == "True"


def test_a_function_is_added_by_a_row():
    def double(x):
        return np.packbits(x)

    with pytest.raises(arc.TraceError, match="packbits is not available"):
        arc.compile(double)(1.5)
    registry.implements(np.packbits)(lambda a: a + a)
    try:
        assert arc.compile(double)(1.5) == 3.0
    finally:
        del registry.FUNCTIONS[np.packbits]


def test_a_method_of_ufuncs_is_added_by_a_row(monkeypatch):
    assert {"reduce", "accumulate", "outer", "reduceat", "at"} <= {*ufunc_calls.UFUNC_METHODS}
    monkeypatch.setitem(ufunc_calls.UFUNC_METHODS, "outer", lambda ufunc, a, b: ufunc(a, b))
    found = arc.compile(lambda x: np.add.outer(x, x))(np.array([1.0, 2.0]))
    np.testing.assert_array_equal(found, [2.0, 4.0])


def test_a_ufunc_without_a_row_is_offered_to_those_who_adopt(monkeypatch):
    def adopt(ufunc):
        if ufunc != np.spacing:
            return False
        monkeypatch.setitem(UFUNCS, ufunc, UFUNCS[np.negative])
        return True

    with pytest.raises(arc.TraceError, match=r"np.spacing cannot be traced"):
        arc.compile(lambda x: np.spacing(x))(2.0)
    registry.ADOPTERS.append(adopt)
    try:
        assert arc.compile(lambda x: np.spacing(x))(2.0) == -2.0
    finally:
        registry.ADOPTERS.remove(adopt)


class Box:
    """Holds one value, as an array of a library might."""

    def __init__(self, value):
        self.value = value

    @property
    def holds_traced_values(self):
        return is_traced(self.value)


def test_a_class_that_holds_traced_values_says_how_it_is_treated(monkeypatch):
    rule = Holder(
        traced=lambda box: box.value if is_traced(box.value) else None,
        plain=lambda box: np.asarray(box.value),
        writable=lambda box: box.value,
    )
    monkeypatch.setitem(HOLDERS, Box, rule)

    def model(x):
        assert is_traced(Box(x)) and not is_traced([Box(1.0), 2.0])
        assert as_traced([Box(x)])[0] is x
        assert lift(Box(3.0)).constant() == 3.0
        return lift(Box(x)) + lift(Box(3.0))

    assert arc.compile(model)(2.0) == 5.0


def test_surroundings_begin_in_order_and_end_in_reverse(monkeypatch):
    seen = []
    monkeypatch.setattr(trace, "_surroundings", [])
    for k in (1, 2):
        trace.while_recording(lambda k=k: seen.append(k), lambda k=k: seen.append(-k))
    with Trace(), Trace():
        assert seen == [1, 2]
    assert seen == [1, 2, -2, -1]


def test_out_is_taken_from_where_numpy_has_it():
    arc.compile(np.sin)(1.0)  # fills the tables
    positions = {}
    for function in registry.FUNCTIONS:
        try:
            parameters = inspect.signature(function).parameters
        except ValueError:  # written in C, without a signature in older releases
            continue
        kinds = [p.kind for p in parameters.values()]
        if "out" in parameters and function.__module__ == "numpy":
            position = list(parameters).index("out")
            if kinds[position] is inspect.Parameter.POSITIONAL_OR_KEYWORD:
                positions[function.__name__] = position
    assert positions.items() <= registry._OUT_POSITIONS.items()
