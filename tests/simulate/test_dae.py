"""DAEs by Rodas5P and BDF: closed forms, published solutions, IDA; which method is for which."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pytest

import archimedes as arc
from archimedes.errors import ArchimedesError
from archimedes.function.recording_store import store
from archimedes.installation import install_command
from archimedes.simulate.dae import SMALL, InconsistentStart, residual_of, solve_dae
from archimedes.simulate.problem.state_layout import layout_of
from archimedes.simulate.solves.initial_value_problem import Problem
from archimedes.simulate.solves.kernel_runs import Instances
from archimedes.simulate.statuses import Status
from archimedes.simulate.stepping.solve_kernels import Kernels
from archimedes.simulate.stepping.trial_step import Setup

from ..optional_packages import import_or_skip
from .conftest import robertson

#: The methods of this package; IDA is the oracle.
OWN = ("rodas5p", "bdf")


@pytest.fixture(params=[*OWN, "ida"])
def method(request):
    if request.param == "ida":
        import_or_skip("sksundae")
    return request.param


def circle(t, x, xdot):
    return np.stack([xdot[0] + x[1], x[0] ** 2 + x[1] ** 2 - 1.0])


def circle_at(t):
    return np.stack([-np.sin(t), np.cos(t)], axis=-1)


def transistors(t, y, v):
    """Transistor amplifier: M is singular, but every derivative is in it (HW, eq. VI.1.14)."""
    C = 1e-6 * np.arange(1.0, 6.0)
    g = lambda u: 1e-6 * (np.exp(u / 0.026) - 1.0)
    source, supply, R = 0.1 * np.sin(200.0 * np.pi * t), 6.0, 9000.0
    first, second = g(y[1] - y[2]), g(y[4] - y[5])
    return np.stack(
        [
            C[0] * (v[1] - v[0]) + source / 1000.0 - y[0] / 1000.0,
            C[0] * (v[0] - v[1]) + supply / R - y[1] * (2.0 / R) - 0.01 * first,
            -C[1] * v[2] + first - y[2] / R,
            C[2] * (v[4] - v[3]) + supply / R - y[3] / R - 0.99 * first,
            C[2] * (v[3] - v[4]) + supply / R - y[4] * (2.0 / R) - 0.01 * second,
            -C[3] * v[5] + second - y[5] / R,
            C[4] * (v[7] - v[6]) + supply / R - y[6] / R - 0.99 * second,
            C[4] * (v[6] - v[7]) - y[7] / R,
        ]
    )


TRANSISTORS = [0.0, 3.0, 3.0, 6.0, 3.0, 3.0, 6.0, 0.0]
#: At t = 0.2: Mazzia, Magherini, Test Set for Initial Value Problem Solvers, release 2.4 (2008).
AMPLIFIED = [
    *(-0.5562145012262709e-2, 3.006522471903042, 2.849958788608128, 2.926422536206241),
    *(2.704617865010554, 2.761837778393145, 4.770927631616772, 1.236995868091548),
]


@pytest.mark.parametrize(("method", "rtol"), [("rodas5p", 1e-9), ("bdf", 1e-7)])
def test_transistor_amplifier_against_the_published_solution(method, rtol):
    """Its diodes switch: with derivatives of an earlier step, Newton's iteration looks done."""
    options = {"method": method, "rtol": rtol, "atol": 1e-2 * rtol}
    found = solve_dae(transistors, (0.0, 0.2), TRANSISTORS, **options)
    assert found.success and found.stats["method"] == method
    assert found.x[-1] == pytest.approx(AMPLIFIED, abs=1e-6)


def akzo_nobel(t, y, v):
    """A chemical process of Akzo Nobel, index 1 (Test Set for IVP Solvers, problem "chemakzo")."""
    k = {1: 18.7, 2: 0.58, 3: 0.09, 4: 0.42}
    root = np.sqrt(y[1])
    r1, r2, r3 = k[1] * y[0] ** 4 * root, k[2] * y[2] * y[3], k[2] / 34.4 * y[0] * y[4]
    r4, r5 = k[3] * y[0] * y[3] ** 2, k[4] * y[5] ** 2 * root
    inflow = 3.3 * (0.9 / 737.0 - y[1])
    return np.stack(
        [
            v[0] + 2.0 * r1 - r2 + r3 + r4,
            v[1] + 0.5 * r1 + r4 + 0.5 * r5 - inflow,
            v[2] - r1 + r2 - r3,
            v[3] + r2 - r3 + 2.0 * r4,
            v[4] - r2 + r3 - r5,
            115.83 * y[0] * y[3] - y[5],
        ]
    )


def test_akzo_nobel_against_the_published_solution(method):
    start = [0.444, 0.00123, 0.0, 0.007, 0.0, 115.83 * 0.444 * 0.007]
    found = solve_dae(akzo_nobel, (0.0, 180.0), start, method=method, rtol=1e-8, atol=1e-10)
    published = [
        *(0.1150794920661702, 0.1203831471567715e-2, 0.1611562887407974),
        *(0.3656156421249283e-3, 0.1708010885264404e-1, 0.4873531310307455e-2),
    ]
    assert found.success and found.x[-1] == pytest.approx(published, rel=1e-6)


def robertson_dae(t, y, ydot):
    rates = robertson(t, y)
    return np.stack([ydot[0] - rates[0], ydot[1] - rates[1], y[0] + y[1] + y[2] - 1.0])


def test_robertson_as_a_dae(robertson_end, method):
    options = {"method": method, "rtol": 1e-8, "atol": 1e-14}
    found = solve_dae(robertson_dae, (0.0, 1e5), [1.0, 0.0, 0.0], **options)
    assert found.success and found.stats["method"] == method
    assert found.x[-1] == pytest.approx(robertson_end, rel=1e-6)
    assert found.x.sum(axis=1) == pytest.approx(np.ones(len(found.t)), abs=1e-8)


def test_mass_matrix_of_a_semi_explicit_system(method):
    # x' = z, 0 = z - cos(t) + k x: x' = cos(t) - k x.
    def residual(t, x, xdot, k):
        mass = np.array([[1.0, 0.0], [0.0, 0.0]])
        return mass @ xdot - np.stack([x[1], np.cos(t) - k * x[0] - x[1]])

    times = np.linspace(0.0, 3.0, 7)
    options = {"method": method, "t_eval": times, "args": (2.0,), "rtol": 1e-10, "atol": 1e-12}
    found = solve_dae(residual, (0.0, 3.0), [0.0, 1.0], **options)
    exact = (2.0 * np.cos(times) + np.sin(times) - 2.0 * np.exp(-2.0 * times)) / 5.0
    assert found.x[:, 0] == pytest.approx(exact, abs=1e-7)
    assert found.x[:, 1] == pytest.approx(np.cos(times) - 2.0 * exact, abs=1e-7)


def test_equations_nonlinear_in_the_derivatives():
    def residual(t, x, xdot):
        """Its solution from 0 is sin(t), and cos(t) for the algebraic state."""
        speed = xdot[0] + np.exp(xdot[0]) - np.cos(t) - np.exp(np.cos(t)) + x[0] - np.sin(t)
        return np.stack([x[1] ** 3 - xdot[0] * x[1] ** 2, speed])

    times = np.linspace(0.0, 1.4, 15)
    options = {"rtol": 1e-9, "atol": 1e-9, "t_eval": times}
    found = solve_dae(residual, (0.0, 1.4), [0.0, 1.0], [1.0, 0.0], **options)
    assert found.stats["method"] == "bdf"
    exact = np.stack([np.sin(times), np.cos(times)], axis=1)
    assert found.x == pytest.approx(exact, abs=1e-6)
    back = solve_dae(residual, (1.4, 0.0), exact[-1], [exact[-1, 1], 0.0], rtol=1e-9, atol=1e-9)
    assert back.x[-1] == pytest.approx(exact[0], abs=1e-6)


def pendulums(count):
    """Return the residual and start of a hanging chain of index 1, its constraints stabilised.

    Accelerations and forces are algebraic states, and no equation stands in the row of its own
    unknown: dF/dxdot + c dF/dx is zero on most of its diagonal.
    """

    def residual(t, x, xdot):
        q, u, a = (x[2 * k * count : 2 * (k + 1) * count].reshape(count, 2) for k in range(3))
        force = x[6 * count :]
        top = np.zeros((1, 2))
        link, turn, bend = (part - np.concatenate([top, part[:-1]]) for part in (q, u, a))
        pull = force[:, None] * link
        motion = a - np.concatenate([pull[1:], top]) + pull + np.array([0.0, 9.81])
        constraint = (link * bend).sum(1) + (turn * turn).sum(1)
        drift = 10.0 * (link * turn).sum(1) + 12.5 * ((link * link).sum(1) - 1.0)
        speeds = xdot[: 2 * count] - u.ravel(), xdot[2 * count : 4 * count] - a.ravel()
        return np.concatenate([constraint + drift, speeds[0], motion.ravel(), speeds[1]])

    q = np.stack([np.arange(1.0, count + 1.0), np.zeros(count)], axis=1)
    return residual, np.concatenate([q.ravel(), np.zeros(5 * count)])


def test_one_pendulum_swings_as_its_equation_of_motion():
    residual, start = pendulums(1)
    options = {"rtol": 1e-9, "atol": 1e-9}
    found = solve_dae(residual, (0.0, 1.0), start, method="bdf", correct=True, **options)
    angle = arc.odeint(
        lambda t, x: np.stack([x[1], -9.81 * np.cos(x[0])]), (0.0, 1.0), [0.0, 0.0], **options
    )[0]
    assert found.x[-1, :2] == pytest.approx([np.cos(angle), np.sin(angle)], abs=1e-6)


def test_a_chain_of_pendulums_against_ida():
    import_or_skip("sksundae")
    residual, start = pendulums(6)
    options = {"rtol": 1e-8, "atol": 1e-8, "correct": True}
    ends = [
        solve_dae(residual, (0.0, 0.5), start, method=m, **options).x[-1] for m in ("bdf", "ida")
    ]
    assert len(start) > SMALL and ends[0] == pytest.approx(ends[1], abs=2e-6)


def test_heat_in_a_rod_with_algebraic_ends():
    """The end values are states with equations of their own; all rows stand upside down."""
    n = 101
    place = np.linspace(0.0, 1.0, n)

    def residual(t, x, xdot):
        inside = xdot[1:-1] - (n - 1) ** 2 * (x[2:] - 2.0 * x[1:-1] + x[:-2])
        return np.concatenate([x[-1:], inside[::-1], x[:1] - t])

    found = solve_dae(residual, (0.0, 2.0), np.zeros(n), rtol=1e-7, atol=1e-9)
    assert found.stats["method"] == "bdf" and found.stats["factorisations"] < 60
    # x = t (1 - p) - steady: a cubic, exact on the grid too; transients have decayed.
    steady = (place**3 - 3.0 * place**2 + 2.0 * place) / 6.0
    assert found.x[-1] == pytest.approx(2.0 - 2.0 * place - steady, abs=1e-6)


def test_outputs_and_dense_output():
    times = np.linspace(0.0, 1.2, 50)
    found = solve_dae(circle, (0.0, 1.2), [0.0, 1.0], t_eval=times, rtol=1e-10, atol=1e-10)
    assert found.t.tolist() == times.tolist()
    assert found.x == pytest.approx(circle_at(times), abs=1e-8)
    steps = solve_dae(circle, (0.0, 1.2), [0.0, 1.0], rtol=1e-10, atol=1e-10)
    assert steps(times) == pytest.approx(circle_at(times), abs=1e-8)
    back = solve_dae(circle, (0.0, -1.2), [0.0, 1.0], rtol=1e-10, atol=1e-10)
    assert back.x[-1] == pytest.approx(circle_at(-1.2), abs=1e-8)


def test_order_of_convergence_in_differential_and_algebraic_states():
    def residual(t, x, xdot):
        # x0 = sin(t), x1 = exp(x0 / 2) cos(t): depends on t, nonlinear in both.
        algebraic = x[1] * np.exp(-0.5 * x[0]) - np.cos(t)
        return np.stack([xdot[0] - x[1] * np.exp(-0.5 * x[0]), algebraic + algebraic**3])

    start = np.array([0.0, 1.0])
    equations = residual_of(residual, layout_of(start), ())
    plan = dataclasses.replace(equations.functions.kernels().plan, adaptive=False)
    fixed = Kernels(plan)
    errors = []
    for h in (0.05, 0.025):
        setup = Setup(0.0, 1.2, h, np.inf, np.ones(2), np.ones(2), 0)
        found = Problem(fixed, setup, Instances(1, start[None], (), alone=True), 1000).solve(
            dense=True
        )
        first = np.sin(found.t)
        exact = np.stack([first, np.exp(0.5 * first) * np.cos(found.t)], axis=1)
        errors.append(np.abs(found.x - exact).max(axis=0))
    assert (np.log2(errors[0] / errors[1]) > 4.6).all()


def test_masses_and_parameters_are_arguments_of_one_kernel():
    def residual(t, x, xdot, mass, k):
        return {"a": mass @ xdot["a"] + k * x["a"], "b": x["b"] - x["a"].sum()}

    mass = np.array([[2.0, 1.0], [0.0, 4.0]])
    start = {"a": np.array([1.0, 2.0]), "b": 3.0}
    count = []
    for factor in (1.0, 2.0):
        args = (factor * mass, 0.5)
        found = solve_dae(residual, (0.0, 1.0), start, args=args, rtol=1e-10, atol=1e-12)
        assert found.stats["method"] == "rodas5p"
        # mass x' = -k x is upper triangular: the second decays alone and drives the first.
        p, q = 0.5 / (2.0 * factor), 0.5 / (4.0 * factor)
        second = 2.0 * np.exp(-q)
        drive = 2.0 * q * 0.5 / (p - q)
        first = (1.0 - drive) * np.exp(-p) + drive * np.exp(-q)
        assert found.x["a"][-1] == pytest.approx([first, second], abs=1e-8)
        assert found.x["b"][-1] == pytest.approx(first + second, abs=1e-8)
        count.append(len(store))
    assert count[0] == count[1]


FORMS = {
    "a matrix": (lambda t, x, v: np.array([[1.0, 2.0], [0.0, 0.0]]) @ v - x, True),
    "a branch in x": (lambda t, x, v: v - np.where(x > 0.0, 1.0, 2.0) * x, True),
    "masses that depend on x": (lambda t, x, v: x * v - x, False),
    "masses that switch in time": (lambda t, x, v: np.where(t < 1.0, 1.0, 2.0) * v - x, False),
    "masses that switch in x": (lambda t, x, v: np.where(x > 0.0, 1.0, 2.0) * v - x, False),
    "a square": (lambda t, x, v: v**2 - x, False),
    "a floor": (lambda t, x, v: np.floor(v) + v - x, False),
    "a branch": (lambda t, x, v: v - np.where(v > 0.0, 1.0, 2.0) * x, False),
    "a sign": (lambda t, x, v: v - np.copysign(1.0, v) * x, False),
    "a remainder": (lambda t, x, v: np.fmod(v, 1.0) - x, False),
    "an absolute value": (lambda t, x, v: np.abs(v) - x, False),
    "a bound": (lambda t, x, v: np.maximum(v, 0.0) - x, False),
}


@pytest.mark.parametrize("name", FORMS)
def test_which_equations_have_a_mass_matrix(name):
    residual, linear = FORMS[name]
    x = np.array([1.0, 0.5])
    assert residual_of(residual, layout_of(x), ()).form(0.0, x).linear is linear


def test_choosing_the_method():
    with pytest.raises(ValueError, match="method='dop853' is not one of 'rodas5p'"):
        solve_dae(circle, (0.0, 1.0), [0.0, 1.0], method="dop853")
    with pytest.raises(ValueError, match="this residual has another form: write method='bdf'"):
        solve_dae(lambda t, x, v: x * v - x, (0.0, 1.0), [1.0, 1.0], method="rodas5p")


def test_rodas5p_and_ida_agree():
    import_or_skip("sksundae")
    both = [
        solve_dae(transistors, (0.0, 0.01), TRANSISTORS, method=m, rtol=1e-9, atol=1e-11)
        for m in ("rodas5p", "ida")
    ]
    assert [found.stats["method"] for found in both] == ["rodas5p", "ida"]
    assert both[0].x[-1] == pytest.approx(both[1].x[-1], abs=1e-6)


def test_defaults_need_no_other_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "sksundae", None)
    monkeypatch.delitem(sys.modules, "sksundae.ida", raising=False)
    other = solve_dae(lambda t, x, v: (1.0 + x) * v + x, (0.0, 1.0), [1.0], rtol=1e-9)
    assert other.stats["method"] == "bdf"
    # (1 + x) x' = -x: log(x) + x = 1 - t.
    assert np.log(other.x[-1]) + other.x[-1] == pytest.approx([0.0], abs=1e-6)
    large = solve_dae(lambda t, x, v: v + x, (0.0, 1.0), np.ones(SMALL + 1))
    assert large.stats["method"] == "bdf"
    assert large.x[-1] == pytest.approx(np.full(SMALL + 1, np.exp(-1.0)), abs=1e-6)
    with pytest.raises(ArchimedesError) as caught:
        solve_dae(circle, (0.0, 1.0), [0.0, 1.0], method="ida")
    assert install_command("sundials") in str(caught.value)
    assert "'bdf'" in str(caught.value)


def test_inconsistent_starts():
    with pytest.raises(InconsistentStart, match=r"equation 1 of the residual is 1\.25, not 0"):
        solve_dae(circle, (0.0, 1.0), [0.5, np.sqrt(2.0)])
    # No equation here is without derivatives, but a combination of two is.
    wrong = [0.5, *TRANSISTORS[1:]]
    with pytest.raises(InconsistentStart):
        solve_dae(transistors, (0.0, 0.1), wrong)
    fixed = solve_dae(circle, (0.0, 0.1), [0.6, 0.5], correct=True)
    assert fixed.x[0] == pytest.approx([0.6, 0.8], abs=1e-12)
    message = "equation 2 of the residual is 0.1, not 0, at t = 0.* correct=True"
    with pytest.raises(InconsistentStart, match=message):
        solve_dae(robertson_dae, (0.0, 1.0), [1.0, 0.0, 0.1])
    with pytest.raises(InconsistentStart, match=r"equation 0 of the residual is 0\.04, not 0"):
        solve_dae(robertson_dae, (0.0, 1.0), [1.0, 0.0, 0.0], xdot0=[0.0, 0.0, 0.0])
    assert solve_dae(robertson_dae, (0.0, 1.0), [1.0, 0.0, 0.0], xdot0=[-0.04, 0.04, 0.0]).success
    fixed = solve_dae(robertson_dae, (0.0, 1.0), [0.9, 0.0, 0.7], correct=True)
    assert fixed.x[0] == pytest.approx([0.9, 0.0, 0.1], abs=1e-12)
    with pytest.raises(InconsistentStart, match="no algebraic values near these satisfy it"):
        solve_dae(
            lambda t, x, v: np.stack([v[0] + x[0], x[1] ** 2 + 1.0]),
            (0.0, 1.0),
            [1.0, 1.0],
            correct=True,
        )


def test_wrong_shapes():
    with pytest.raises(ValueError, match="2 equations for the 3 numbers of the state"):
        solve_dae(lambda t, x, v: v[:2], (0.0, 1.0), [1.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="xdot0 must have the structure and shapes of x0"):
        solve_dae(robertson_dae, (0.0, 1.0), [1.0, 0.0, 0.0], xdot0=[0.0, 0.0])


def test_higher_index_is_named_where_a_solve_fails():
    def pendulum(t, x, xdot):
        """The length itself is prescribed: index 3."""
        weight = np.stack([0.0 * x[0], -9.81 + 0.0 * x[0]])
        motion = xdot[2:4] + x[4] * x[:2] - weight
        return np.concatenate([xdot[:2] - x[2:4], motion, np.stack([x[:2] @ x[:2] - 1.0])])

    found = solve_dae(pendulum, (0.0, 1.0), [1.0, 0.0, 0.0, 0.0, 0.0], method="bdf")
    assert found.status == Status.STEP_UNDERFLOW and "index above 1" in found.message


@pytest.mark.parametrize("method", OWN)
def test_failures_and_interrupts_keep_what_was_computed(method):
    few = solve_dae(circle, (0.0, 1.0), [0.0, 1.0], method=method, max_steps=3)
    assert few.status == Status.TOO_MANY_STEPS and 1 < len(few.t) <= 4

    def lost(t, x, xdot):
        return np.stack([xdot[0] - np.sqrt(0.5 - t), x[1] - x[0]])

    found = solve_dae(lost, (0.0, 1.0), [0.0, 0.0], method=method)
    assert found.status == Status.NON_FINITE and 0.4 < found.t[-1] <= 0.5

    def interrupt(part, t):
        raise KeyboardInterrupt

    stopped = solve_dae(circle, (0.0, 1.0), [0.0, 1.0], method=method, progress=interrupt)
    assert stopped.status == Status.INTERRUPTED


@pytest.mark.parametrize("method", OWN)
def test_structs(method):
    @arc.struct
    class State:
        angle: float
        side: np.ndarray

    def residual(t, x, xdot):
        return State(xdot.angle - 1.0, x.side - np.stack([np.cos(x.angle), np.sin(x.angle)]))

    found = solve_dae(residual, (0.0, 1.0), State(0.0, np.array([1.0, 0.0])), method=method)
    assert found.x.side[-1] == pytest.approx([np.cos(1.0), np.sin(1.0)], abs=1e-9)
