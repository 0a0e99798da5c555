"""The tiers of a call: when a kind of call moves up, for single calls and batches alike."""

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends.interpreter import InterpretedProgram
from archimedes.backends.llvm.runtime.kernel import NativeKernel
from archimedes.function.execution import tiers
from tests.entries import needs_entries

pytestmark = needs_entries


@pytest.fixture
def seen(monkeypatch):
    """What ran, call by call."""
    ran = []

    def spy(cls, method, name):
        plain = getattr(cls, method)

        def noted(self, *args):
            ran.append(name)
            return plain(self, *args)

        monkeypatch.setattr(cls, method, noted)

    for method in ("call", "call_batch"):
        spy(InterpretedProgram, method, "interpreted")
        spy(NativeKernel, method, "kernel")
    spy(NativeKernel, "direct_entry", "entry made")
    return ran


def single(f):
    return lambda **out: f(np.arange(2.0), **out)


def batch(f):
    mapped = arc.vmap(f)
    return lambda **out: mapped(np.arange(4.0).reshape(2, 2), **out)


FORMS = [(single, (2,)), (batch, (2, 2))]


@pytest.mark.parametrize("form, shape", FORMS)
@pytest.mark.parametrize("into", [False, True])
def test_from_the_interpreter_to_the_shortcut(seen, monkeypatch, form, shape, into):
    f = arc.compile(lambda x: x * 2.0 + 1.0)
    call = form(f)
    options = {"out": np.empty(shape)} if into else {}
    wanted = 2.0 * np.arange(np.prod(shape)).reshape(shape) + 1.0
    assert call(**options).tolist() == wanted.tolist()
    instances = shape[0] if form is batch else 1
    work = len(f.graph(np.zeros(2))) * instances
    monkeypatch.setattr(tiers, "WARM_UP", 3 * work)
    for _ in range(12):
        assert call(**options).tolist() == wanted.tolist()
    entered = seen.index("entry made")
    assert seen[:3] == ["interpreted"] * 3, "up to WARM_UP operations"
    assert set(seen[3:entered]) == {"kernel"}, "then on arrays"
    assert seen[3:].count("kernel") in (tiers.FIRST_CALLS, tiers.FIRST_CALLS + 1)
    assert seen.count("entry made") == 1, "all others went through the entry, from the shortcut"


@pytest.mark.parametrize("form, shape", FORMS)
def test_a_named_backend_starts_with_its_kernel(seen, form, shape):
    call = form(arc.compile(lambda x: x * 2.0, backend="llvm"))
    call()
    assert seen == ["kernel"]


@pytest.mark.parametrize("form, shape", FORMS)
def test_what_a_shortcut_does_not_take_goes_below(seen, form, shape):
    f = arc.compile(lambda x: x * 2.0, backend="llvm")
    call = form(f)
    for _ in range(8):
        call()
    seen.clear()
    x = np.arange(float(np.prod(shape))).reshape(shape)
    other = (arc.vmap(f) if form is batch else f)(x[::-1])
    assert other.tolist() == (2.0 * x[::-1]).tolist()
    assert call().tolist() == (2.0 * x).tolist(), "and comes back"
