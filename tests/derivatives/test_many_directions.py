"""Jacobians of long programs: directions are steps of one loop, not code of their own."""

import numpy as np
import pytest
from scipy.linalg import expm

import archimedes as arc
from archimedes.backends.interpreter import evaluate
from archimedes.graph.derivatives import jacobian_graphs
from archimedes.graph.regions import Scan

from ..c.checking import needs

pytestmark = pytest.mark.usefixtures("compiled_once")


@pytest.fixture(autouse=True)
def shorter(monkeypatch):
    """Loops that are compiled in no time count as long ones."""
    monkeypatch.setattr(jacobian_graphs, "LONG_LOOPS", 4_000)


def looped(x):
    """Some steps of a map with a long body."""

    def body(x, _):
        for k in range(1, 40):
            x = 0.99 * x + 0.02 * np.roll(x, k) * (0.5 - x * x)
        return x, None

    return arc.scan(body, x, length=5)[0]


def nodes(graph):
    return len(graph) + sum(nodes(b) for r in graph.regions.values() for b in r.bodies)


def over_directions(graph):
    """Tell whether directions are the steps of a loop, which carries nothing."""
    return any(isinstance(r, Scan) and r.stacked and not r.carry for r in graph.regions.values())


def as_code(function, *args, monkeypatch):
    """Return a Jacobian all of whose directions are unrolled."""
    with monkeypatch.context() as patched:
        patched.setattr(jacobian_graphs, "LONG_LOOPS", 10**12)
        patched.setattr(jacobian_graphs, "LONG", 10**12)
        return arc.jac(function)(*args)


def test_bits_and_values(monkeypatch):
    x = np.linspace(-1.0, 1.0, 6)
    jac = arc.jac(looped)
    assert over_directions(jac.graph(x))
    found = jac(x)
    np.testing.assert_allclose(found, as_code(looped, x, monkeypatch=monkeypatch), rtol=1e-13)
    along = [arc.jvp(looped)(x, e) for e in np.eye(6)]
    np.testing.assert_array_equal(found, np.stack(along, axis=1))
    for backend in ("interpreter", "llvm"):
        again = arc.compile(lambda x: arc.jac(looped)(x), backend=backend)(x)
        assert again.tobytes() == found.tobytes()


def test_code_does_not_grow_with_directions():
    few, many = (nodes(arc.jac(looped).graph(np.ones(n))) for n in (6, 12))
    # The loop itself is over all states.
    assert many < 2.5 * few


def test_few_directions_and_short_loops_are_written_out():
    def short(x):
        return arc.scan(lambda x, _: (np.sin(x), None), x, length=3)[0]

    for function, x in ((short, np.ones(6)), (looped, np.ones(2))):
        assert not over_directions(arc.jac(function).graph(x))


@pytest.mark.long
def test_second_derivatives_and_other_arguments():
    x, p = np.linspace(-1.0, 1.0, 6), np.array([0.5, 2.0])

    def cost(x, p):
        return np.sum(looped(x * p[0]) ** 2) * p[1]

    hess = arc.hess(cost)(x, p)
    np.testing.assert_allclose(hess, hess.T, rtol=1e-9, atol=1e-12)
    step = 1e-6 * np.eye(6)
    grad = arc.grad(cost)
    by_hand = [(grad(x + d, p) - grad(x - d, p)) / 2e-6 for d in step]
    np.testing.assert_allclose(hess, by_hand, rtol=1e-6, atol=1e-7)


@pytest.mark.long_cases("*64")
@pytest.mark.parametrize("n", [6, 64])
def test_whole_initial_state_of_a_solve(n):
    A = -2.0 * np.eye(n) + np.eye(n, k=1) + 0.5 * np.eye(n, k=-1)

    def end(x):
        return arc.odeint(lambda t, x: A @ x, (0.0, 1.0), x, rtol=1e-8, atol=1e-10)

    x = np.linspace(0.0, 1.0, n)
    jac = arc.jac(end)
    assert over_directions(jac.graph(x))
    np.testing.assert_allclose(jac(x), expm(A), rtol=1e-6, atol=1e-9)


@pytest.mark.long
def test_float32_and_mixed_arguments():
    x = np.linspace(-1.0, 1.0, 6).astype(np.float32)
    found = arc.jac(looped)(x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, arc.jac(looped)(x.astype(float)), rtol=2e-4, atol=2e-5)
    mixed = arc.jac(lambda x: looped(x).astype(np.float32))
    assert over_directions(mixed.graph(x.astype(float)))
    np.testing.assert_allclose(mixed(x.astype(float)), found, rtol=2e-4, atol=2e-5)


@pytest.mark.long
def test_batches_of_such_jacobians():
    xs = np.linspace(-1.0, 1.0, 30).reshape(5, 6)
    found = arc.vmap(arc.jac(looped))(xs)
    np.testing.assert_array_equal(found, [arc.jac(looped)(x) for x in xs])


def written(x):
    """Products of all pairs, unrolled."""
    return sum(np.sin(x[i] * x[j]) * x[i] for i in range(len(x)) for j in range(len(x)))


def rounds(x):
    """Something whose every node depends on all unknowns, and no loop."""
    for _ in range(3):
        x = np.tanh(x + 0.1 * np.sum(x) + 0.2 * np.roll(x, 1))
    return np.sum(x**2)


@pytest.mark.long
@pytest.mark.parametrize("sparse", [False, True])
def test_long_programs_without_loops(sparse, monkeypatch):
    """The code of a Hessian is a few times that of the gradient, however many unknowns."""
    x = np.linspace(0.2, 1.0, 20)
    code = arc.hess(rounds)
    assert not over_directions(code.graph(x))
    monkeypatch.setattr(jacobian_graphs, "LONG", 2_000)
    hess = arc.hess(rounds, sparse=sparse)
    graph = (hess.values if sparse else hess).graph(x)
    assert over_directions(graph)
    assert nodes(graph) < 5 * nodes(arc.grad(rounds).graph(x)) + 2 * x.size**2
    found = hess(x).toarray() if sparse else hess(x)
    np.testing.assert_allclose(found, code(x), rtol=1e-12, atol=1e-13)


def test_long_programs_with_few_directions_for_each_node_are_written_out():
    x = np.linspace(0.2, 1.0, 30)
    graph = arc.hess(written).graph(x)
    assert not over_directions(graph)
    assert nodes(graph) < 5 * nodes(arc.grad(written).graph(x))


@pytest.mark.long_cases("*200")
@pytest.mark.parametrize("n", [90, 200])
def test_hessians_of_scans_over_the_unknowns(n):
    def steps(u):
        return np.sum(arc.scan(lambda c, a: (np.sin(c) * a + c, c), 1.0, u)[1] ** 2)

    x = np.linspace(0.1, 0.9, n)
    hess = arc.hess(steps)
    assert nodes(hess.recording(x).blocks) < 15 * n
    columns = [0, n // 2, n - 1]
    h, slope = 1e-6, arc.grad(steps)
    differences = [(slope(x + h * e) - slope(x - h * e)) / (2 * h) for e in np.eye(n)[columns]]
    np.testing.assert_allclose(hess(x)[columns], differences, rtol=1e-5, atol=1e-6)


def test_the_interpreter_takes_directions_side_by_side():
    """As it would one after the other, and as code does."""
    x = np.linspace(-1.0, 1.0, 6)
    graph = arc.jac(looped).graph(x)
    (region,) = (r for r in graph.regions.values() if isinstance(r, Scan) and not r.carry)
    rng = np.random.default_rng(3)
    shared = [rng.standard_normal() for _ in region.body.inputs[1:]]
    calls = []

    def counted(body, values):
        calls.append(body)
        return evaluate(body, values)

    found = region.evaluate([np.arange(6), *shared], counted)
    assert len(calls) == 1
    for k in range(6):
        one = evaluate(region.body, [np.int64(k), *map(np.float64, shared)])
        assert [out[k] for out in found] == one


@pytest.mark.long
def test_as_c(tmp_path):
    """With the interpreter's bits."""
    needs("gcc")
    x = np.linspace(-1.0, 1.0, 6)
    arc.codegen(arc.jac(looped), (x,), name="looped", output_dir=tmp_path, verify=True)
