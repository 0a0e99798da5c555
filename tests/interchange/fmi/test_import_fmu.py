"""Imported FMUs against closed forms, against our own solvers and against FMPy."""

from __future__ import annotations

import gc
import math
from pathlib import Path

import numpy as np
import pytest

import archimedes as arc
from archimedes.interchange import FmuError
from tests.interchange.fmi import plant_fmu
from tests.optional_packages import import_or_skip

VERSIONS = ("2.0", "3.0")
G, E = 9.81, 0.7


@pytest.fixture(scope="module")
def models(plants):
    """The plant for model exchange, by version."""
    return {version: arc.import_fmu(path, trust=True) for version, path in plants.items()}


@pytest.fixture(scope="module")
def steppers(plants):
    """The plant for co-simulation, by version."""
    return {v: arc.import_fmu(path, trust=True, kind="cs") for v, path in plants.items()}


def bounce_times(h: float = 1.0, count: int = 4) -> np.ndarray:
    """Return when a ball that falls from h meets the floor."""
    fall = math.sqrt(2.0 * h / G)
    return fall * np.array([1.0 + 2.0 * sum(E**k for k in range(1, n + 1)) for n in range(count)])


def pendulum(t: float) -> np.ndarray:
    """Return angle and rate of the pendulum, from our own solver."""

    def dynamics(t, x):
        return np.stack([x[1], -G * np.sin(x[0])])

    return arc.odeint(dynamics, (0.0, t), np.array([0.5, 0.0]), rtol=1e-12, atol=1e-12)


# ---- what it says about itself -----------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_variables(models, version):
    fmu = models[version]
    assert fmu.name == "plant"
    assert fmu.inputs == ["torque"]
    assert fmu.output_names == ["angle", "h", "v", "tip", "bounces", "ticks"]
    assert fmu.state_names == ["angle", "rate", "h", "v"]
    h, length = fmu.variables["h"], fmu.variables["length"]
    assert (h.unit, h.start, h.description, h.type) == ("m", 1.0, "height", "Float64")
    assert (length.causality, length.limits) == ("parameter", (0.01, math.inf))
    assert "from the vertical" in fmu.report()
    assert f"FMI {version} ModelExchange, 1 inputs, 6 outputs, 4 states" in repr(fmu)


def test_arrays(models):
    gain = models["3.0"].variables["gain"]
    assert gain.shape == (3,)
    assert gain.start.tolist() == [1.0, 2.0, 3.0]
    tuned = models["3.0"].with_parameters({"gain": [5.0, 6.0, 7.0]})
    traj = tuned.simulate((0.0, 0.01), outputs=["gain"])
    assert traj.y["gain"][-1].tolist() == [5.0, 6.0, 7.0]
    with pytest.raises(ValueError, match=r"parameters\['gain'\] has shape \(2,\), .* \(3,\)"):
        models["3.0"].with_parameters({"gain": [5.0, 6.0]})


# ---- model exchange ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def flights(models):
    """Two seconds of the plant, by version."""
    return {version: fmu.simulate((0.0, 2.0)) for version, fmu in models.items()}


@pytest.mark.parametrize("version", VERSIONS)
def test_model_exchange(flights, version):
    traj = flights[version]
    assert traj.success
    bounces = traj.events["t"][traj.events["event"] == 0]
    np.testing.assert_allclose(bounces, bounce_times(), rtol=0.0, atol=1e-12)
    ticks = traj.events["t"][traj.events["event"] == -1]
    np.testing.assert_array_equal(ticks, np.arange(1, 9) * 0.25)
    assert (traj.y.bounces[-1], traj.y.ticks[-1]) == (4, 8)
    assert traj.y.bounces.dtype == np.int32
    np.testing.assert_allclose([traj.x.angle[-1], traj.x.rate[-1]], pendulum(2.0), atol=1e-8)
    np.testing.assert_allclose(traj.y.tip, np.sin(traj.x.angle), rtol=1e-14)
    last = bounces[-1]
    v = math.sqrt(2.0 * G) * E**4
    height = v * (2.0 - last) - 0.5 * G * (2.0 - last) ** 2
    np.testing.assert_allclose(traj.x.h[-1], height, atol=1e-9)


def test_names_and_units(flights):
    traj = flights["2.0"]
    assert traj.names == ["angle", "rate", "h", "v"]
    assert traj.units == {"angle": "rad", "rate": "rad/s", "h": "m", "v": "m/s"}
    np.testing.assert_array_equal(traj["h"], traj.x["h"])
    np.testing.assert_array_equal(traj["y.bounces"], traj.y["bounces"])
    assert "h (m)" in traj.to_csv(units=True).splitlines()[0]
    assert traj[-1].h == traj.x.h[-1]
    with pytest.raises(KeyError, match=r"'height'; there are \['angle', 'rate', 'h', 'v'\]"):
        traj.x["height"]


def test_samples_at_events_come_twice(flights):
    traj = flights["2.0"]
    at = np.flatnonzero(traj.t == traj.events["t"][1])
    assert len(at) == 2
    assert traj.y.bounces[at].tolist() == [0, 1]
    np.testing.assert_allclose(traj.x.v[at[1]], -E * traj.x.v[at[0]], rtol=1e-12)


@pytest.mark.long_cases("3.0")
@pytest.mark.parametrize("version", VERSIONS)
def test_samples_where_they_are_wanted(models, flights, version):
    times = np.array([0.0, 0.1, 0.25, 0.45, 0.46, 1.0, 2.0])
    traj = models[version].simulate((0.0, 2.0), t_eval=times)
    np.testing.assert_array_equal(traj.t, times)
    assert traj.y.ticks.tolist() == [0, 0, 1, 1, 1, 4, 8]  # at an event: after it
    assert traj.y.bounces.tolist() == [0, 0, 0, 0, 1, 1, 4]
    falls = 1.0 - 0.5 * G * times[:4] ** 2
    np.testing.assert_allclose(traj.x.h[:4], falls, atol=1e-9)


@pytest.mark.parametrize("zero", [1, 2], ids=["two values", "hysteresis"])
def test_indicators_with_jumps(zero, tmp_path):
    library = plant_fmu.compiled("2.0", tmp_path, zero)
    path = plant_fmu.write_archive(tmp_path / "p.fmu", plant_fmu.plant_entries("2.0", library))
    fmu = arc.import_fmu(path, trust=True)
    traj = fmu.simulate((0.0, 2.0))
    assert traj.y.bounces[-1] == 4
    bounces = traj.events["t"][traj.events["event"] == 0]
    np.testing.assert_allclose(bounces, bounce_times(), rtol=0.0, atol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("zero", [1, 2], ids=["two values", "hysteresis"])
def test_indicators_with_jumps_in_solve_ode(zero, tmp_path):
    library = plant_fmu.compiled("2.0", tmp_path, zero)
    path = plant_fmu.write_archive(tmp_path / "p.fmu", plant_fmu.plant_entries("2.0", library))
    fmu = arc.import_fmu(path, trust=True)
    solve = arc.solve_ode(fmu.dynamics, (0.0, 2.0), fmu.x0, events=fmu.events)
    bounces = solve.events["t"][solve.events["event"] == 0]
    np.testing.assert_allclose(bounces, bounce_times(), rtol=0.0, atol=1e-9)


def test_no_events_without_a_need(models):
    traj = models["2.0"].simulate((0.0, 0.2))
    assert len(traj.events["t"]) == 0


@pytest.mark.long_cases("tsit5|esdirk4")
@pytest.mark.parametrize("method", ["rodas5p", "esdirk4", "tsit5"])
def test_methods(models, method):
    traj = models["2.0"].simulate((0.0, 0.6), method=method, rtol=1e-7, t_eval=[0.6])
    np.testing.assert_allclose([traj.x.angle[-1], traj.x.rate[-1]], pendulum(0.6), atol=1e-5)


def test_fixed_steps(models):
    traj = models["2.0"].simulate((0.0, 0.2), method="rk4", dt=0.01)
    assert traj.stats["steps"] == 20
    np.testing.assert_allclose([traj.x.angle[-1], traj.x.rate[-1]], pendulum(0.2), atol=1e-7)


def test_a_method_with_a_loop_of_its_own(models):
    with pytest.raises(ValueError, match=r"'bdf' cannot integrate an FMU.*'rodas5p'"):
        models["2.0"].simulate((0.0, 1.0), method="bdf")


# ---- parameters and inputs ---------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_parameters(models, version):
    traj = models[version].simulate((0.0, 0.2), parameters={"g": 1.62, "h": 10.0, "label": "Moon"})
    np.testing.assert_allclose(traj.x.h[-1], 10.0 - 0.5 * 1.62 * 0.04, rtol=1e-12)
    moon = models[version].with_parameters({"g": 1.62})
    assert moon.parameters == {"g": 1.62}
    assert moon.dynamics(0.0, moon.x0).v == -1.62
    assert models[version].dynamics(0.0, moon.x0).v == -9.81


BAD_PARAMETERS = [
    ({"G": 1.0}, ValueError, "no variable 'G'; parameters are: g, length, e, fault, on, label"),
    ({"g": math.nan}, ValueError, r"parameters\['g'\] = nan must be finite"),
    ({"e": 1.5}, ValueError, r"parameters\['e'\] = 1.5 is outside its limits, 0 to 1"),
    ({"g": "much"}, TypeError, r"parameters\['g'\] = 'much' must be a number"),
    ({"g": [1.0, 2.0]}, ValueError, r"has shape \(2,\), the FMU's variable \(\)"),
    ({"fault": 0.5}, TypeError, r"parameters\['fault'\] = 0.5 is no value of the type Int32"),
    ({"fault": 2**40}, TypeError, "is no value of the type Int32"),
    ({"label": 3}, TypeError, r"parameters\['label'\] = 3 must be a text"),
]


@pytest.mark.parametrize(("values", "error", "message"), BAD_PARAMETERS)
def test_bad_parameters(models, values, error, message):
    with pytest.raises(error, match=message):
        models["2.0"].simulate((0.0, 1.0), parameters=values)


def forced(t: float, torque) -> np.ndarray:
    """Return angle and rate under a torque u(t), from our own solver."""

    def dynamics(t, x, u):
        return np.stack([x[1], -G * np.sin(x[0]) + u])

    return arc.odeint(
        dynamics, (0.0, t), np.array([0.5, 0.0]), inputs=torque, rtol=1e-11, atol=1e-12
    )


SERIES = arc.InputSeries([0.0, 0.13, 0.31], [1.0, -4.0, 2.0])
RAMP = arc.InputSeries([0.0, 0.13, 0.31], [1.0, -4.0, 2.0], hold="foh")
INPUTS = {
    "constant": (2.0, lambda t: 2.0),
    "function": (lambda t: np.sin(5.0 * t), lambda t: np.sin(5.0 * t)),
    "held": (SERIES, SERIES),
    "linear": (RAMP, RAMP),
}


@pytest.mark.long_cases("constant|linear")
@pytest.mark.parametrize("which", INPUTS)
def test_inputs_of_model_exchange(models, which):
    given, oracle = INPUTS[which]
    traj = models["2.0"].simulate((0.0, 0.4), inputs={"torque": given})
    np.testing.assert_allclose([traj.x.angle[-1], traj.x.rate[-1]], forced(0.4, oracle), atol=1e-8)
    assert len(traj.u["torque"]) == len(traj.t)


def test_samples_at_a_jump_have_the_inputs_before_and_after(models):
    traj = models["2.0"].simulate((0.0, 0.2), inputs={"torque": SERIES}, outputs=["der(rate)"])
    at = np.flatnonzero(traj.t == 0.13)
    assert traj.u["torque"][at].tolist() == [1.0, -4.0]
    jump = traj.y["der(rate)"][at]
    np.testing.assert_allclose(jump[1] - jump[0], -5.0, rtol=1e-14)


def test_one_function_for_all_inputs(models):
    traj = models["2.0"].simulate((0.0, 0.4), inputs=lambda t: {"torque": np.sin(5.0 * t)})
    expected = forced(0.4, lambda t: np.sin(5.0 * t))
    np.testing.assert_allclose([traj.x.angle[-1], traj.x.rate[-1]], expected, atol=1e-8)


BAD_INPUTS = [
    ({"force": 1.0}, ValueError, "inputs: plant has no variable 'force'; inputs are: torque"),
    ({"h": 1.0}, ValueError, r"inputs\['h'\] is a variable of the kind 'output'; inputs are: torq"),
    ({"torque": 1e3}, ValueError, r"inputs\['torque'\] = 1000.0 is outside its limits"),
    ({"torque": lambda t: math.nan}, ValueError, r"inputs\['torque'\] = nan must be finite"),
    ({"torque": {"a": 1}}, TypeError, "give a number or a function"),
    (3.0, TypeError, "inputs is a float: give values by name"),
    (lambda t: 3.0, TypeError, "inputs must return values by name"),
]


@pytest.mark.parametrize(("values", "error", "message"), BAD_INPUTS)
def test_bad_inputs(models, values, error, message):
    with pytest.raises(error, match=message):
        models["2.0"].simulate((0.0, 1.0), inputs=values)


def test_discrete_inputs(libraries, tmp_path):
    text = plant_fmu.description().replace(
        'causality="input"', 'causality="input" variability="discrete"'
    )
    entries = plant_fmu.plant_entries("2.0", libraries["2.0"], text)
    fmu = arc.import_fmu(plant_fmu.write_archive(tmp_path / "p.fmu", entries), trust=True)
    with pytest.raises(TypeError, match=r"inputs\['torque'\] is discrete.*arc.InputSeries"):
        fmu.simulate((0.0, 1.0), inputs={"torque": np.sin})
    traj = fmu.simulate((0.0, 0.4), inputs={"torque": SERIES})
    np.testing.assert_allclose([traj.x.angle[-1], traj.x.rate[-1]], forced(0.4, SERIES), atol=1e-8)


def test_structural_parameters(libraries, tmp_path):
    text = plant_fmu.description("3.0").replace(
        '<Dimension start="3"/>', '<Dimension valueReference="70"/>'
    )
    size = '<UInt64 name="n" valueReference="70" causality="structuralParameter" start="3"/>'
    text = text.replace("</ModelVariables>", f"{size}</ModelVariables>")
    entries = plant_fmu.plant_entries("3.0", libraries["3.0"], text)
    fmu = arc.import_fmu(plant_fmu.write_archive(tmp_path / "p.fmu", entries), trust=True)
    assert fmu.variables["gain"].shape == (3,)
    with pytest.raises(ValueError, match=r"parameters\['n'\] changes the sizes of arrays"):
        fmu.with_parameters({"n": 4})


def test_bad_arguments(models, steppers, plant):
    fmu = models["2.0"]
    with pytest.raises(TypeError, match="import_fmu: trust"):
        arc.import_fmu(plant, trust="no")
    with pytest.raises(ValueError, match=r"t_span = 5 must be a pair \(start, end\)"):
        fmu.simulate(5)
    with pytest.raises(ValueError, match=r"dt = 1e-12 makes 1e\+12 steps in t_span"):
        steppers["2.0"].simulate((0.0, 1.0), dt=1e-12)
    with pytest.raises(ValueError, match="simulate: dt must be positive and finite, got nan"):
        steppers["2.0"].simulate((0.0, 1.0), dt=math.nan)
    with pytest.raises(ValueError, match="goes back in time, where no FMU can follow"):
        fmu.simulate((1.0, 0.0))
    with pytest.raises(ValueError, match="plant has no variable 'nothing'"):
        fmu.simulate((0.0, 1.0), outputs=["nothing"])
    with pytest.raises(ValueError, match="'label' is a String"):
        fmu.simulate((0.0, 1.0), outputs=["label"])
    with pytest.raises(ValueError, match="which is outside t_span"):
        fmu.simulate((0.0, 1.0), t_eval=[2.0])


# ---- in solve_ode ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def solved(models):
    """The plant solved by `solve_ode` with its events, twice: with the same instance."""
    fmu = models["2.0"]
    events, x0 = fmu.events, fmu.x0
    return [arc.solve_ode(fmu.dynamics, (0.0, 1.2), x0, events=events) for _ in range(2)]


@pytest.mark.long
def test_solve_ode_with_events(solved):
    traj = solved[0]
    assert traj.success
    bounces = traj.events["t"][traj.events["event"] == 0]
    np.testing.assert_allclose(bounces, bounce_times()[:2], rtol=0.0, atol=1e-12)
    np.testing.assert_allclose([traj.x.angle[-1], traj.x.rate[-1]], pendulum(1.2), atol=1e-8)
    assert traj.units["h"] == "m"


@pytest.mark.long
def test_a_second_solve_starts_afresh(solved):
    first, second = solved
    np.testing.assert_array_equal(first.t, second.t)
    np.testing.assert_array_equal(first.x.h, second.x.h)


def test_jacobian(models):
    x = np.array([0.3, 0.1, 1.0, 0.2])
    for fmu in models.values():
        jacobian = arc.jac(lambda x, fmu=fmu: fmu.dynamics(0.0, x))(x)
        expected = np.zeros((4, 4))
        expected[0, 1] = expected[2, 3] = 1.0
        expected[1, 0] = -G * math.cos(0.3)
        np.testing.assert_allclose(jacobian, expected, rtol=1e-15)
        by_input = arc.jac(lambda u, fmu=fmu: fmu.dynamics(0.0, x, {"torque": u}))(0.5)
        np.testing.assert_array_equal(by_input, [0.0, 1.0, 0.0, 0.0])
        tip = arc.grad(lambda a, fmu=fmu: fmu.outputs(0.0, np.array([a, 0.0, 1.0, 0.0])).tip)(0.3)
        np.testing.assert_allclose(tip, math.cos(0.3), rtol=1e-15)


def test_gradient_through_a_solve(models):
    fmu = models["2.0"]

    def end(angle):
        start = np.stack([angle, 0.0, 1.0, 0.0])
        return arc.odeint(fmu.dynamics, (0.0, 0.2), start, method="rk4", dt=0.02)[0]

    def own(angle):
        def dynamics(t, x):
            return np.stack([x[1], -G * np.sin(x[0])])

        return arc.odeint(dynamics, (0.0, 0.2), np.stack([angle, 0.0]), method="rk4", dt=0.02)[0]

    np.testing.assert_allclose(arc.grad(end)(0.5), arc.grad(own)(0.5), rtol=1e-12)


def test_second_derivatives_are_refused(models):
    fmu = models["2.0"]
    with pytest.raises(arc.TraceError, match="plant: FMUs have first derivatives only"):
        arc.hess(lambda a: fmu.dynamics(0.0, np.array([a, 0.0, 1.0, 0.0]))[1])(0.3)


@pytest.mark.long
@pytest.mark.parametrize("derivative", [arc.jac, arc.grad])
def test_derivatives_through_events_are_refused(models, derivative):
    fmu = models["2.0"]

    def end(height):
        start = np.stack([0.5, 0.0, height, 0.0])
        return arc.odeint(fmu.dynamics, (0.0, 0.6), start, events=fmu.events)[2]

    with pytest.raises(arc.TraceError, match="cannot be differentiated through the events"):
        derivative(end)(1.0)


def test_without_directional_derivatives(libraries, tmp_path):
    text = plant_fmu.description(derivatives=False)
    entries = plant_fmu.plant_entries("2.0", libraries["2.0"], text)
    fmu = arc.import_fmu(plant_fmu.write_archive(tmp_path / "p.fmu", entries), trust=True)
    assert not fmu.has_derivatives
    with pytest.raises(arc.TraceError, match="plant offers no directional derivatives"):
        arc.jac(lambda x: fmu.dynamics(0.0, x))(np.ones(4))
    # Implicit methods work all the same, with differences.
    traj = fmu.simulate((0.0, 0.2), method="rodas5p", t_eval=[0.2])
    np.testing.assert_allclose([traj.x.angle[-1], traj.x.rate[-1]], pendulum(0.2), atol=1e-5)


def test_a_part_of_a_larger_model(models):
    fmu = models["2.0"]

    def dynamics(t, x):
        torque = -2.0 * x["plant"].rate + x["spring"]
        return {"plant": fmu.dynamics(t, x["plant"], {"torque": torque}), "spring": -x["spring"]}

    def own(t, x):
        return np.stack([x[1], -G * np.sin(x[0]) - 2.0 * x[1] + x[2], -x[2]])

    traj = arc.solve_ode(dynamics, (0.0, 0.2), {"plant": fmu.x0, "spring": 1.0}, t_eval=[0.2])
    expected = arc.odeint(own, (0.0, 0.2), np.array([0.5, 0.0, 1.0]))
    end = traj[-1]["plant"]
    np.testing.assert_allclose([end.angle, end.rate], expected[:2], atol=1e-8)


def test_c_code_is_refused(models):
    with pytest.raises(arc.ArchimedesError, match=r"plant\.derivatives.*"):
        arc.codegen(lambda x: models["2.0"].dynamics(0.0, x), (np.ones(4),))


BAD_CALLS = [
    (lambda fmu: fmu.dynamics(0.0, np.ones(3)), ValueError, r"x has shape \(3,\), expected \(4,\)"),
    (lambda fmu: fmu.dynamics(0.0, {"h": 1.0}), ValueError, "x has no 'angle'; it has"),
    (lambda fmu: fmu.dynamics(0.0, fmu.x0, {"push": 1.0}), ValueError, r"u\['push'\] is no real"),
    (lambda fmu: fmu.dynamics(0.0, fmu.x0, 1.0), TypeError, "u is a float: give inputs by name"),
    (lambda fmu: fmu.dynamics(0.0, fmu.x0, {"torque": 1e3}), ValueError, "outside its limits"),
    (lambda fmu: fmu.sampled(0.1), FmuError, r"for CoSimulation: import it with kind='cs'"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD_CALLS)
def test_bad_calls(models, call, error, message):
    with pytest.raises(error, match=message):
        call(models["2.0"])


# ---- co-simulation -----------------------------------------------------------------------------


def euler(end: float, torque=lambda t: 0.0, hold: float = 0.01) -> tuple[np.ndarray, int]:
    """Return the states of the plant by its own Euler steps of 1 ms, and the bounces."""
    x, bounces = np.array([0.5, 0.0, 1.0, 0.0]), 0
    for k in range(round(end / 1e-3)):
        u = torque(math.floor(k * 1e-3 / hold + 1e-9) * hold)
        x = x + 1e-3 * np.array([x[1], -G * math.sin(x[0]) + u, x[3], -G])
        if x[2] <= 0.0 and x[3] < 0.0:
            x[2], x[3], bounces = 0.0, -E * x[3], bounces + 1
    return x, bounces


@pytest.mark.parametrize("version", VERSIONS)
def test_co_simulation(steppers, version):
    traj = steppers[version].simulate((0.0, 1.0), inputs={"torque": lambda t: np.sin(5.0 * t)})
    assert traj.success
    assert len(traj.t) == 101  # the step size that the FMU suggests
    x, bounces = euler(1.0, lambda t: math.sin(5.0 * t))
    np.testing.assert_allclose([traj.x[name][-1] for name in traj.x], x, rtol=1e-12, atol=1e-15)
    assert (traj.y.bounces[-1], traj.y.ticks[-1]) == (bounces, 4)
    np.testing.assert_allclose(traj.u.torque, np.sin(5.0 * traj.t), rtol=1e-15)


def test_event_mode_of_co_simulation(libraries, tmp_path):
    """Steps end early at events, which act in event mode: between communication points."""
    text = plant_fmu.description("3.0").replace(
        "<CoSimulation ", '<CoSimulation hasEventMode="true" '
    )
    entries = plant_fmu.plant_entries("3.0", libraries["3.0"], text)
    path = plant_fmu.write_archive(tmp_path / "p.fmu", entries)
    traj = arc.import_fmu(path, trust=True, kind="cs").simulate((0.0, 1.0), dt=0.1)
    x, bounces = euler(1.0)
    assert len(traj.t) == 11
    np.testing.assert_allclose([traj.x[name][-1] for name in traj.x], x, rtol=1e-11)
    assert (traj.y.bounces[-1], traj.y.ticks.tolist()) == (
        bounces,
        [0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 4],
    )


def test_communication_points(steppers):
    fmu = steppers["2.0"]
    traj = fmu.simulate((0.0, 0.35), dt=0.1)
    np.testing.assert_allclose(traj.t, [0.0, 0.1, 0.2, 0.3, 0.35], rtol=1e-15)
    traj = fmu.simulate((0.0, 0.4), dt=0.1, t_eval=[0.0, 0.05, 0.3])
    np.testing.assert_array_equal(traj.t, [0.0, 0.05, 0.3])
    np.testing.assert_allclose(traj.x.h[1], euler(0.05)[0][2], rtol=1e-12)


def test_communication_steps_of_equal_length(libraries, tmp_path):
    text = plant_fmu.description(variable=False)
    entries = plant_fmu.plant_entries("2.0", libraries["2.0"], text)
    path = plant_fmu.write_archive(tmp_path / "p.fmu", entries)
    fmu = arc.import_fmu(path, trust=True, kind="cs")
    assert fmu.simulate((0.0, 0.3), dt=0.1).success
    with pytest.raises(ValueError, match=r"t_span ends at 0.3.*takes only steps of equal length"):
        fmu.simulate((0.0, 0.35), dt=0.1)
    with pytest.raises(ValueError, match=r"t_eval holds 0.05.*no multiple of dt"):
        fmu.simulate((0.0, 0.3), dt=0.1, t_eval=[0.05])


def test_a_sampled_part(steppers):
    """A controller of ours on a plant of theirs, which steps between the samples."""
    fmu = steppers["2.0"]
    part = fmu.sampled(0.01, inputs=lambda t, x: {"torque": x})

    def slope(t, x, plant):
        return -x + plant.angle

    traj = arc.solve_ode(slope, (0.0, 0.1), 1.0, sampled=part, method="rk4", dt=0.01)
    x, state = 1.0, np.array([0.5, 0.0])
    for _ in range(10):
        angle, torque = state[0], x
        for _ in range(10):
            state = state + 1e-3 * np.array([state[1], -G * math.sin(state[0]) + torque])
        rate = lambda x, angle=angle: -x + angle
        k1 = rate(x)
        k2 = rate(x + 0.005 * k1)
        k3 = rate(x + 0.005 * k2)
        x += 0.01 / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + rate(x + 0.01 * k3))
    np.testing.assert_allclose(traj.x[-1], x, rtol=1e-12)
    np.testing.assert_allclose(traj.u.angle[-1], state[0], rtol=1e-12)
    again = arc.solve_ode(slope, (0.0, 0.1), 1.0, sampled=part, method="rk4", dt=0.01)
    np.testing.assert_array_equal(traj.x, again.x)


def test_a_sampled_part_cannot_be_batched(steppers):
    part = steppers["2.0"].sampled(0.01, inputs=lambda t, x: {"torque": x})

    def solve():
        x0 = np.array([1.0, 2.0])
        arc.solve_ode(lambda t, x, u: -x, (0.0, 0.02), x0, sampled=part, in_axes=0)

    with pytest.raises(FmuError, match="asked twice for t = 0, with different inputs"):
        solve()


# ---- errors of the FMU -------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (1, r"GetContinuousStateDerivatives|GetDerivatives returned fmi.Error: .*pendulum broke"),
        (3, "the event does not come to an end: after 1000 rounds"),
        (4, r"returned fmi.Fatal: .*all is lost"),
    ],
)
def test_errors(models, version, fault, message):
    with pytest.raises(FmuError, match=message):
        models[version].simulate((0.0, 1.0), parameters={"fault": fault})
    assert models[version].simulate((0.0, 0.01)).success  # others go on


def test_discarded_derivatives(models):
    traj = models["2.0"].simulate((0.0, 1.0), parameters={"fault": 2})
    assert not traj.success
    assert "nan or infinite" in traj.message


def test_derivatives_that_are_nan(models):
    traj = models["2.0"].simulate((0.0, 1.0), parameters={"fault": 7})
    assert not traj.success


def test_the_end_that_the_fmu_wants(models, steppers):
    for traj in (
        models["2.0"].simulate((0.0, 1.0), parameters={"fault": 5}),
        steppers["3.0"].simulate((0.0, 1.0), parameters={"fault": 5}),
    ):
        assert traj.status == 1
        assert f"the FMU ended the simulation at t = {traj.t[-1]:.17g}" in traj.message
        assert 0.3 < traj.t[-1] < 0.5


def test_errors_of_steps(steppers):
    for fmu in steppers.values():
        with pytest.raises(FmuError, match=r"DoStep returned fmi.Error.*no step after half a"):
            fmu.simulate((0.0, 1.0), parameters={"fault": 6})
        with pytest.raises(FmuError, match=r"the step of 0.01 s at t = 0 was discarded"):
            fmu.simulate((0.0, 1.0), parameters={"fault": 2})


def test_log(plants):
    lines = []
    fmu = arc.import_fmu(plants["2.0"], trust=True, log=lambda *line: lines.append(line))
    with pytest.raises(FmuError):
        fmu.simulate((0.0, 1.0), parameters={"fault": 1})
    assert lines[0][:2] == ("Error", "logStatus")


def test_an_error_in_the_log_function(plants):
    def log(*line):
        raise KeyError("mine")

    fmu = arc.import_fmu(plants["2.0"], trust=True, log=log)
    with pytest.raises(KeyError, match="mine"):
        fmu.simulate((0.0, 1.0), parameters={"fault": 1})


# ---- instances and files -----------------------------------------------------------------------


def test_instances_are_freed(plants):
    fmu = arc.import_fmu(plants["2.0"], trust=True)
    alive = fmu._binary.library.plants_alive
    fmu.simulate((0.0, 0.1))
    assert alive() == 0
    assert fmu._binary.library.plants_ended() == 1
    with pytest.raises(FmuError):
        fmu.simulate((0.0, 0.1), parameters={"fault": 1})
    assert alive() == 0
    other = fmu.with_parameters({"g": 1.0})
    fmu.dynamics(0.0, fmu.x0), other.dynamics(0.0, fmu.x0)
    assert alive() == 2
    fmu.close()
    assert alive() == 1
    folder: Path = fmu._binary.folder
    assert folder.exists()
    del fmu, other
    gc.collect()
    assert alive() == 0
    assert not folder.exists()


def test_one_instance_only(libraries, tmp_path):
    text = plant_fmu.description().replace(
        "<ModelExchange ", '<ModelExchange canBeInstantiatedOnlyOncePerProcess="true" '
    )
    entries = plant_fmu.plant_entries("2.0", libraries["2.0"], text)
    fmu = arc.import_fmu(plant_fmu.write_archive(tmp_path / "p.fmu", entries), trust=True)
    fmu.dynamics(0.0, np.ones(4))
    with pytest.raises(FmuError, match="allows one instance in a process, and there is one"):
        fmu.simulate((0.0, 0.1))
    fmu.close()
    assert fmu.simulate((0.0, 0.1)).success


@pytest.mark.parametrize("name", ["plant", "other"])
def test_sources(tmp_path, name):
    """Without a binary for this platform the sources are compiled.

    A published Reference FMU (StateSpace 0.0.39) calls its only configuration like another model.
    """
    source = (plant_fmu.HERE / "plant.c").read_text(encoding="utf-8")
    text = plant_fmu.BUILD.replace('modelIdentifier="plant"', f'modelIdentifier="{name}"')
    build = {"sources/buildDescription.xml": text, "sources/plant.c": source}
    entries = {"modelDescription.xml": plant_fmu.description("3.0"), **build}
    fmu = arc.import_fmu(plant_fmu.write_archive(tmp_path / "p.fmu", entries), trust=True)
    assert fmu.simulate((0.0, 0.1)).success


def test_kinds(plants):
    with pytest.raises(ValueError, match=r"plant has only ModelExchange \('me'\) and CoSim"):
        arc.import_fmu(plants["2.0"], kind="se")


# ---- FMPy as the oracle ------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_fmpy_agrees(plants, models, steppers, version):
    fmpy = import_or_skip("fmpy")
    names = ["angle", "h", "bounces", "ticks"]

    def simulate(kind, **options):
        return fmpy.simulate_fmu(
            str(plants[version]), stop_time=1.3, fmi_type=kind, output=names, **options
        )

    theirs = simulate("CoSimulation", output_interval=0.01)
    ours = steppers[version].simulate((0.0, 1.3), dt=0.01)
    np.testing.assert_allclose(ours.t, theirs["time"], atol=1e-12)
    for name in names:
        np.testing.assert_allclose(ours.y[name], theirs[name], rtol=1e-9, atol=1e-12)
    theirs = simulate("ModelExchange", solver="CVode", relative_tolerance=1e-9)
    ours = models[version].simulate((0.0, 1.3), t_eval=[1.3])
    for name in names:
        np.testing.assert_allclose(ours.y[name][-1], theirs[name][-1], atol=1e-5)
