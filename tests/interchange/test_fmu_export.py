"""Exported FMUs: what FMPy says of them, and what they compute."""

from __future__ import annotations

import ctypes
import os
import subprocess
import zipfile
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import pytest

import archimedes as arc
from archimedes import tree
from archimedes.interchange.fmi.fmu_variables import element_names, join_name
from archimedes.system.programs import find_program
from tests.optional_packages import import_or_skip

fmpy = import_or_skip("fmpy")
validate_fmu = import_or_skip("fmpy.validation").validate_fmu
COMPILERS = [name for name in ("gcc", "clang") if find_program(name)]
if not COMPILERS:
    pytest.skip("needs a C compiler", allow_module_level=True)

#: A step that is a power of two, so that all times are exact.
STEP = 1.0 / 128.0
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-ffp-contract=off"]


# ---- a pendulum -------------------------------------------------------------------------------


@arc.struct
class Rod:
    """A pendulum's rod.

    Parameters
    ----------
    length : float
        Distance from the hinge to the mass,
        along the rod.
    """

    length: float = arc.field(units="m", limits=(0.1, 10.0), default=1.2)
    damping: float = arc.field(units="1/s", default=0.1)
    count: np.int64 = np.int64(3)
    stuck: np.bool_ = np.bool_(False)


def pendulum(t, x, torque, rod):
    """Swing about a hinge."""
    rate = np.where(rod.stuck, 0.0, x[1])
    return np.array([rate, torque - 9.81 / rod.length * np.sin(x[0]) - rod.damping * x[1]])


def angle_and_energy(t, x, torque, rod):
    energy = 0.5 * (rod.length * x[1]) ** 2 - 9.81 * rod.length * np.cos(x[0])
    return {"angle": x[0], "energy": energy, "right": x[0] > 0.0, "twice": 2 * rod.count}


X0 = np.array([1.0, 0.25])


class Exported(NamedTuple):
    fmu: Any
    version: str
    folder: str
    description: Any

    @property
    def references(self) -> dict[str, int]:
        return {v.name: v.reference for v in self.fmu.variables}

    def instance(self, kind: str) -> Any:
        """Return an initialized instance of FMPy's class."""
        from fmpy.fmi2 import FMU2Model, FMU2Slave
        from fmpy.fmi3 import FMU3Model, FMU3Slave

        classes = {"2.0": (FMU2Slave, FMU2Model), "3.0": (FMU3Slave, FMU3Model)}
        made = classes[self.version][kind == "me"](
            guid=self.description.guid, unzipDirectory=self.folder,
            modelIdentifier=self.description.coSimulation.modelIdentifier, instanceName="one",
        )  # fmt: skip
        made.instantiate()
        if self.version == "2.0":
            made.setupExperiment(startTime=0.0)
        made.enterInitializationMode()
        return made


def multiply(
    function: Any, instance: Any, unknowns: list[int], knowns: list[int], seed: Any, size: int
) -> list[float]:
    """Return a product of derivatives with a seed, by a function of FMI 3."""
    u, k = (ctypes.c_uint32 * len(unknowns))(*unknowns), (ctypes.c_uint32 * len(knowns))(*knowns)
    out, given = (ctypes.c_double * size)(), (ctypes.c_double * len(seed))(*seed)
    function(instance.component, u, len(u), k, len(k), given, len(seed), out, size)
    return list(out)


def unpacked(fmu: Any, version: str, folder: Path) -> Exported:
    path = str(fmu.path)
    unzipped = fmpy.extract(path, str(folder / "unzipped"))
    return Exported(fmu, version, unzipped, fmpy.read_model_description(path))


@pytest.fixture(scope="module", params=["2.0", "3.0"])
def exported(request, tmp_path_factory) -> Exported:
    folder = tmp_path_factory.mktemp("fmu")
    fmu = arc.export_fmu(
        pendulum, folder / "pendulum.fmu", X0, inputs=0.0, parameters=Rod(),
        outputs=angle_and_energy, kind=("cs", "me"), version=request.param, dt=STEP,
    )  # fmt: skip
    return unpacked(fmu, request.param, folder)


def test_fmpy_finds_nothing_to_remark(exported):
    assert validate_fmu(str(exported.fmu.path)) == []


def test_co_simulation_has_the_bits_of_solve_ode_and_of_discretize(exported):
    result = fmpy.simulate_fmu(
        exported.folder, fmi_type="CoSimulation", stop_time=0.5, output_interval=2 * STEP,
        start_values={"u": 0.25, "p.length": 1.5},
    )  # fmt: skip
    rod = Rod(length=1.5)
    solve = arc.solve_ode(pendulum, (0.0, 0.5), X0, args=(0.25, rod), method="rk4", dt=STEP)
    step, x = arc.discretize(pendulum, STEP), X0
    for k in range(64):
        x = step(k * STEP, x, 0.25, rod)
    assert result["y.angle"].tolist() == solve.x[::2, 0].tolist()
    assert x.tolist() == solve.x[-1].tolist()
    assert result["y.right"].all() and (result["y.twice"] == 6).all()


def test_inputs_that_change_have_the_bits_of_a_held_series(exported):
    times = np.arange(9) / 16.0
    torque = np.sin(3.0 * times)
    instance, at = exported.instance("cs"), exported.references
    instance.exitInitializationMode()
    angles = []
    for t, u in zip(times[:-1], torque):
        if exported.version == "2.0":
            instance.setReal([at["u"]], [u])
        else:
            instance.setFloat64([at["u"]], [u])
        instance.doStep(t, 1.0 / 16.0)
        read = instance.getReal if exported.version == "2.0" else instance.getFloat64
        angles += read([at["y.angle"]])
    instance.freeInstance()
    series = arc.InputSeries(times, torque)
    solve = arc.solve_ode(
        pendulum, (0.0, 0.5), X0, inputs=series, args=(Rod(),), method="rk4", dt=STEP
    )
    assert angles == solve.x[8::8, 0].tolist()


def test_model_exchange_agrees_to_the_tolerance_of_the_importer(exported):
    result = fmpy.simulate_fmu(
        exported.folder, fmi_type="ModelExchange", stop_time=2.0, relative_tolerance=1e-8,
        output_interval=0.5,
    )  # fmt: skip
    exact = arc.solve_ode(
        pendulum, (0.0, 2.0), X0, args=(0.0, Rod()), t_eval=result["time"], rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(result["y.angle"], exact.x[:, 0], atol=1e-6)


def jacobian() -> np.ndarray:
    """Return the derivatives of (x', outputs) in (x, u, length, damping), by ``arc.jac``."""

    def unknowns(x, u, length, damping):
        rod = Rod(length=length, damping=damping)
        y = angle_and_energy(0.0, x, u, rod)
        rates = pendulum(0.0, x, u, rod)
        return np.concatenate([rates, np.reshape(y["angle"], 1), np.reshape(y["energy"], 1)])

    return arc.jac(unknowns, argnums=(0, 1, 2, 3), flat=True)(X0, 0.0, 1.2, 0.1)


@pytest.mark.parametrize("kind", ["cs", "me"])
def test_directional_derivatives_have_the_bits_of_jac(exported, kind):
    instance, at = exported.instance(kind), exported.references
    unknowns = ["der(x)", "y.angle", "y.energy"]
    knowns = ["x", "u", "p.length", "p.damping"]
    if exported.version == "2.0":
        rows = [at["der(x)"], at["der(x)"] + 1, at["y.angle"], at["y.energy"]]
        columns = [at["x"], at["x"] + 1, at["u"], at["p.length"], at["p.damping"]]
        found = np.array([instance.getDirectionalDerivative(rows, [k], [1.0]) for k in columns]).T
    else:
        of = [instance, [at[name] for name in unknowns], [at[name] for name in knowns]]
        forward, reverse = instance.fmi3GetDirectionalDerivative, instance.fmi3GetAdjointDerivative
        found = np.array([multiply(forward, *of, seed, 4) for seed in np.eye(5)]).T
        adjoint = np.array([multiply(reverse, *of, seed, 5) for seed in np.eye(4)])
        assert adjoint.tolist() == found.tolist()
        both = multiply(forward, *of, np.array([0.0, 2.0, -1.0, 0.0, 0.5]), 4)
        np.testing.assert_allclose(both, found @ [0.0, 2.0, -1.0, 0.0, 0.5], rtol=1e-14)
    instance.freeInstance()
    assert found.tolist() == jacobian().tolist()


def test_structs_give_units_limits_descriptions_and_start_values(exported):
    root = ElementTree.parse(Path(exported.folder) / "modelDescription.xml").getroot()
    if exported.version == "2.0":
        scalars = root.findall("ModelVariables/ScalarVariable")
        length = next(s for s in scalars if s.get("name") == "p.length")
        details = dict(length.attrib) | dict(length[0].attrib)
    else:
        details = next(v for v in root.find("ModelVariables") if v.get("name") == "p.length").attrib
    expected = {
        "unit": "m", "min": "0.1", "max": "10.0", "start": "1.2", "variability": "tunable",
        "description": "Distance from the hinge to the mass, along the rod.",
    }  # fmt: skip
    assert {name: details[name] for name in expected} == expected
    assert root.get("description") == "Swing about a hinge."
    units = {unit.get("name"): unit[0].attrib for unit in root.find("UnitDefinitions")}
    assert units["m"] == {"m": "1"} and units["1/s"] == {"s": "-1"}


def test_dependencies_follow_the_values_not_only_the_derivatives(exported):
    of = {u.variable.name: {v.name for v in u.dependencies} for u in exported.description.outputs}
    state = {"x[1]"} if exported.version == "2.0" else {"x"}
    # The sign of the angle has no derivative.
    assert of["y.right"] == of["y.angle"] == state
    assert of["y.twice"] == set()


def test_each_element_knows_what_it_depends_on(exported):
    if exported.version == "2.0":
        pytest.skip("FMI 2 has no arrays")
    instance, at = exported.instance("cs"), exported.references
    count = ctypes.c_size_t()
    instance.fmi3GetNumberOfVariableDependencies(
        instance.component, at["der(x)"], ctypes.byref(count)
    )
    sizes, references = ctypes.c_size_t * count.value, ctypes.c_uint32 * count.value
    rows, known, columns, kinds = sizes(), references(), sizes(), (ctypes.c_int * count.value)()
    instance.fmi3GetVariableDependencies(
        instance.component, at["der(x)"], rows, known, columns, kinds, count
    )
    instance.freeInstance()
    found = set(zip(rows, known, columns))
    # The rate of the angle is x[2], unless a parameter says that the rod is stuck.
    assert found == {
        (1, at["x"], 2), (2, at["x"], 1), (2, at["x"], 2), (2, at["u"], 1),
    }  # fmt: skip


@pytest.mark.long
def test_the_sources_compile_without_warnings(exported):
    source = f"{exported.folder}/sources/fmi{exported.version[0]}.c"
    for compiler in COMPILERS:
        done = subprocess.run(
            [compiler, *STRICT, "-O1", "-c", "-o", os.devnull, source],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr


# ---- names, types and mistakes, without a compiler --------------------------------------------


def test_names_of_any_tree_are_structured_names(tmp_path):
    def f(t, x, u, p):
        return {"α": u[0] - p["drag area"] * x["α"], "R": 0.0 * x["R"]}

    def outputs(t, x, u, p):
        return (x["R"] @ np.ones(2), p["it's"], x["α"] > 0.0)

    for version in ("2.0", "3.0"):
        fmu = arc.export_fmu(
            f, tmp_path / "f.fmu", {"α": 1.0, "R": np.eye(2)}, inputs=(1.0, {"gain": 2.0}),
            parameters={"drag area": 0.1, "it's": np.arange(2), "on": True, "kind": "disc"},
            outputs=outputs, version=version, platforms=(),
        )  # fmt: skip
        names = [v.name for v in fmu.variables]
        assert names[1:3] == ["x.R", "x.alpha"] and "u[2].gain" in names
        assert "p.'drag area'" in names and "p.it_s" in names and "y[1]" in names
        assert not any("on" in name or "kind" in name for name in names)
        assert validate_fmu(str(fmu.path)) == []
    assert join_name("y[1]", "[0]") == "y[1,1]"
    assert element_names("y[1]", (2,)) == ["y[1,1]", "y[1,2]"]


def test_dependencies_through_loops_over_arrays_are_those_of_the_elements(tmp_path):
    def heat(t, x):
        right, left = np.concatenate([x[1:], x[-1:]]), np.concatenate([x[:1], x[:-1]])
        return right - 2.0 * x + left

    def halted(t, x):
        return arc.stop_gradient(heat(t, x))

    x0 = np.ones(70)  # arrays of this size are recorded as loops
    for model in (heat, halted):
        fmu = arc.export_fmu(model, tmp_path / "f.fmu", x0, platforms=())
        description = fmpy.read_model_description(str(fmu.path))
        of = [{v.name for v in d.dependencies} for d in description.derivatives]
        assert {"x[34]", "x[35]", "x[36]"} <= of[34]
        assert model is halted or len(of[34]) == 3


def decay(t, x):
    return -x


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"path": "decay"}, "path='decay' must end with .fmu"),
        ({"path": "no/decay.fmu"}, "no is no folder"),
        ({"kind": "co"}, "kind='co' is not one of 'cs', 'me', 'se'"),
        ({"kind": ()}, "kind is empty"),
        ({"kind": "se"}, "exists since FMI 3.0: give version='3.0'"),
        ({"kind": "se", "version": "3.0", "dt": None, "method": "dop853"}, "needs sampled parts"),
        ({"version": "2"}, "version='2' is not one of '2.0', '3.0'"),
        ({"dt": -1.0}, "dt = -1.0 must be positive"),
        ({"dt": None}, "takes fixed steps only"),
        ({"method": "rk5"}, "method='rk5' is unknown"),
        ({"method": "cvode", "dt": None}, "a solver of another library"),
        ({"platforms": "linux"}, "platforms='linux' is not one of"),
        ({"sources": False}, "leave nothing in the FMU"),
        ({"stop_time": 0.0}, "must be less than stop_time"),
        ({"rtol": np.ones(2)}, "rtol is a ndarray: an FMU has one relative tolerance"),
        ({"inputs": 1.0}, "func is called as func(t, x, inputs), which does not fit (t, x)"),
        ({"func": 3}, "func is a int: give the model"),
        ({"func": lambda t, x: -x}, "a lambda has no name for the model"),
        ({"x0": np.array([np.nan])}, "x0 is nan or infinite"),
        ({"func": lambda t, x, p: p * x, "name": "f", "parameters": np.inf}, "parameters is nan"),
        ({"outputs": lambda t, x: {"it's": x, "it_s": x}}, "called y.it_s"),
        ({"outputs": lambda t, x: None}, "outputs returned None"),
        ({"outputs": lambda t, x: "text"}, "outputs returns a str"),
        ({"func": lambda t, x: arc.callback(np.sin, x, x), "name": "f"}, "arc.callback"),
    ],
)
def test_mistakes_are_named(tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    given = {"func": decay, "path": "decay.fmu", "x0": 1.0, "platforms": ()} | options
    with pytest.raises((ValueError, TypeError, OSError, arc.CodegenError)) as error:
        arc.export_fmu(given.pop("func"), given.pop("path"), given.pop("x0"), **given)
    assert words in str(error.value)
    assert not list(tmp_path.iterdir())


def test_an_int_that_is_used_as_a_float_is_a_warning(tmp_path):
    with pytest.warns(UserWarning, match=r"parameters\['rate'\] = 2 is a Python int"):
        arc.export_fmu(
            lambda t, x, p: p["rate"] * -x, tmp_path / "f.fmu", 1.0, parameters={"rate": 2},
            name="f", platforms=(),
        )  # fmt: skip


# ---- the models of the field ------------------------------------------------------------------


class Case(NamedTuple):
    func: Any
    x0: Any
    options: dict[str, Any]


@arc.struct
class Ball:
    height: float = arc.field(units="m", default=1.0)
    speed: float = arc.field(units="m/s", default=0.0)


def fall(t, ball, p):
    return Ball(ball.speed, -p["g"] + 0.0 * ball.height)


def bounce(t, ball, p):
    return Ball(0.0 * ball.height, -p["e"] * ball.speed)


def bouncing_ball() -> Case:
    floor = arc.Event(lambda t, ball, p: ball.height, direction=-1, reset=bounce)
    return Case(fall, Ball(), {"parameters": {"g": 9.81, "e": 0.7}, "events": floor})


def rigid_body() -> Case:
    from archimedes.spatial import Quaternion, RigidBody

    def body(t, x, p):
        force, moment = np.array([0.1 * np.sin(t), 0.0, 0.2]), np.array([0.01, 0.02, 0.0])
        return RigidBody.dynamics(t, x, RigidBody.Input(force, moment, p["m"], p["J"]))

    attitude = Quaternion([1.0, 0.0, 0.0, 0.0])
    x0 = RigidBody.State(
        np.zeros(3), attitude, np.array([1.0, 0.0, 0.0]), np.array([0.1, 2.0, 0.3])
    )
    return Case(body, x0, {"parameters": {"m": 2.0, "J": np.diag([0.1, 0.2, 0.3])}})


def f16_with_autopilot() -> Case:
    from archimedes.demos import f16_flight as demo
    from archimedes.vehicles import F16Autopilot, linearize

    steady = demo.steady()
    pilot = F16Autopilot.design(demo.plane, steady, linearize(demo.plane, steady))

    def dynamics(t, x, memory, target, p):
        return demo.aircraft(p).dynamics(t, x, memory.input)

    def update(t, x, memory, target, p):
        return pilot.step(memory, demo.aircraft(p), t, x, target, 0.0625)

    target = F16Autopilot.Target(1520.0, 0.5, 170.0)
    part = arc.Sampled(update, init=pilot.initial(), dt=0.0625)
    options = {"inputs": target, "parameters": demo.nominal(), "sampled": part}
    return Case(dynamics, steady.state, options)


def quadrotor() -> Case:
    from archimedes.vehicles import FlightState, GeometricController, load

    drone, law = load("multirotor"), GeometricController()
    start = drone.state(FlightState(0.0, 0.0, 10.0, np.zeros(3), np.zeros(3), np.zeros(3)))
    goal = np.array([3.0, 2.0, -12.0])

    def command(x, goal):
        return law.command(drone, x, goal, np.zeros(3), np.zeros(3), 0.0)

    def physics(t, x, speeds, u, p):
        return drone.replace(mass=p["mass"]).dynamics(t, x, speeds)

    # Its period is no multiple of the step of the solver.
    part = arc.Sampled(lambda t, x, m, u, p: command(x, u["goal"]), command(start, goal), dt=0.01)
    options = {"inputs": {"goal": goal}, "parameters": {"mass": 1.25}, "sampled": part}
    return Case(physics, start, options)


def robot_arm() -> Case:
    from archimedes import multibody as mb

    b = mb.Builder("arm")
    for name, parent, axis, height in (
        ("column", "world", [0, 0, 1], 0.3),
        ("upper", "column", [0, 1, 0], 0.2),
        ("lower", "upper", [0, 1, 0], 0.5),
    ):
        b.add_body(name, mass=2.0, com=[0, 0, 0.25], inertia=[0.04, 0.04, 0.004])
        b.attach(name, parent, joint=name, axis=axis, position=[0, 0, height], damping=0.2)
    arm = b.build()
    x0 = mb.State(np.array([0.1, 0.5, 1.2]), np.zeros(3))
    dynamics = lambda t, x, torques: mb.dynamics(arm, t, x, torques)
    return Case(dynamics, x0, {"inputs": np.array([1.0, -10.0, -5.0])})


MODELS = [bouncing_ball, rigid_body, f16_with_autopilot, quadrotor, robot_arm]


@pytest.mark.long
@pytest.mark.parametrize("version", ["2.0", "3.0"])
@pytest.mark.parametrize("make", MODELS)
def test_models_of_the_field_run_in_fmpy(tmp_path, make, version):
    func, x0, options = make()
    end, stride = 1.0, 8
    fmu = arc.export_fmu(
        func, tmp_path / "model.fmu", x0, kind=("cs", "me"), version=version, dt=STEP,
        stop_time=end, name="model", **options,
    )  # fmt: skip
    path = str(fmu.path)
    assert validate_fmu(path) == []
    assert compile_strictly(fmu.path, tmp_path / "sources") == ""
    given = [options[name] for name in ("inputs", "parameters") if name in options]
    solver = {name: options.get(name) for name in ("events", "sampled")} | {"args": tuple(given)}
    times = np.arange(0.0, end + STEP, stride * STEP)
    solve = arc.solve_ode(
        func, (0.0, end), x0, method="rk4", dt=STEP, t_eval=times, **solver
    )  # fmt: skip
    exact = arc.solve_ode(func, (0.0, end), x0, rtol=1e-11, atol=1e-12, t_eval=times, **solver)
    states = [v for v in fmu.variables if v.bank == "x" and v.variability == "continuous"]
    names = [n for v in states for n in (v.element_names if version == "2.0" else [v.name])]
    found = {}
    for kind in ("CoSimulation", "ModelExchange"):
        rows = fmpy.simulate_fmu(
            path, fmi_type=kind, stop_time=end, output_interval=stride * STEP, output=names,
            relative_tolerance=1e-8 if kind == "ModelExchange" else None,
        )  # fmt: skip
        last = [np.flatnonzero(np.abs(rows["time"] - t) < 1e-9)[-1] for t in times]
        columns = [np.reshape(rows[name][last], (len(times), -1)) for name in names]
        found[kind] = np.concatenate(columns, axis=1)
    assert found["CoSimulation"].tolist() == in_columns(solve.x).tolist()
    scale = np.abs(in_columns(exact.x)).max(axis=0) + 1.0
    error = np.abs(found["ModelExchange"] - in_columns(exact.x)) / scale
    assert error.max() < 1e-5
    memory = [options["sampled"].init] if "sampled" in options else []
    slope = arc.jac(func, argnums=1, flat=True)(0.0, x0, *memory, *given)
    # The FMU has the bits of one Jacobian of all unknowns; that of the rates alone may be ordered
    # in another way.
    found = state_jacobian(unpacked(fmu, version, tmp_path), states)
    np.testing.assert_allclose(found, slope, rtol=1e-14, atol=1e-15 * np.abs(slope).max())


def state_jacobian(exported: Exported, states: list[Any]) -> np.ndarray:
    """Return the derivatives of the state's rates in the state at the start, by columns."""
    instance, at = exported.instance("me"), exported.references
    rates, known = [at[f"der({v.name})"] for v in states], [at[v.name] for v in states]
    sizes = [v.size for v in states]
    if exported.version == "2.0":
        rows = [first + k for first, size in zip(rates, sizes) for k in range(size)]
        columns = [first + k for first, size in zip(known, sizes) for k in range(size)]
        found = [instance.getDirectionalDerivative(rows, [k], [1.0]) for k in columns]
    else:
        forward = instance.fmi3GetDirectionalDerivative
        found = [
            multiply(forward, instance, rates, known, seed, sum(sizes))
            for seed in np.eye(sum(sizes))
        ]
    instance.freeInstance()
    return np.array(found).T


def in_columns(states: Any) -> np.ndarray:
    """Return states over time as one matrix."""
    leaves = tree.leaves(states)
    return np.concatenate([np.reshape(leaf, (len(leaf), -1)) for leaf in leaves], axis=1)


def compile_strictly(path: Path, folder: Path) -> str:
    """Return what compilers say of the sources of an FMU."""
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    source = next((folder / "sources").glob("fmi?.c"))
    runs = [
        subprocess.run(
            [name, *STRICT, "-O1", "-c", "-o", os.devnull, source], capture_output=True, text=True
        )
        for name in COMPILERS
    ]
    return "".join(run.stderr for run in runs)


def oscillator(t, x, mu):
    return np.array([x[1], mu * (1.0 - x[0] ** 2) * x[1] - x[0]])


@pytest.mark.long
@pytest.mark.parametrize("method", ["dop853", "tsit5", "rodas5p", "esdirk4", "auto"])
def test_one_step_of_variable_steps_has_the_bits_of_solve_ode(tmp_path, method):
    x0 = np.array([2.0, 0.0])
    fmu = arc.export_fmu(
        oscillator, tmp_path / "vdp.fmu", x0, parameters=3.0, dt=None, method=method, version="3.0"
    )
    at_once = fmpy.simulate_fmu(str(fmu.path), stop_time=5.0, output_interval=5.0)
    solve = arc.solve_ode(oscillator, (0.0, 5.0), x0, args=(3.0,), method=method)
    assert at_once["x"][-1].tolist() == solve.x[-1].tolist()
    often = fmpy.simulate_fmu(str(fmu.path), stop_time=5.0, output_interval=0.1)
    np.testing.assert_allclose(often["x"][-1], solve.x[-1], atol=1e-6)


@pytest.mark.long
def test_variable_steps_begin_again_where_inputs_change(tmp_path):
    def follow(t, x, u):
        return np.array([x[1], 20.0 * (u - x[0]) - x[1]])

    fmu = arc.export_fmu(
        follow, tmp_path / "f.fmu", X0, inputs=0.0, dt=None, method="tsit5", rtol=1e-8, atol=1e-8
    )
    times = np.array([0.0, 0.5, 1.0])
    given = np.array(list(zip(times, [0.0, 5.0, -5.0])), [("time", float), ("u", float)])
    rows = fmpy.simulate_fmu(str(fmu.path), stop_time=1.5, output_interval=0.5, input=given)
    # FMPy interpolates between the rows, and the FMU holds what it was given at the start.
    held = arc.InputSeries([0.0, 0.5, 1.0], np.array([0.0, 5.0, -5.0]))
    exact = arc.solve_ode(follow, (0.0, 1.5), X0, inputs=held, t_eval=[0.5, 1.0, 1.5], rtol=1e-12)
    np.testing.assert_allclose(rows["x[1]"][1:], exact.x[:, 0], atol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("compiler", COMPILERS)
def test_hostile_callers_under_sanitizers(tmp_path, compiler):
    func, x0, options = bouncing_ball()
    fmu = arc.export_fmu(
        func, tmp_path / "ball.fmu", x0, kind=("cs", "me", "se"), version="3.0", dt=STEP,
        platforms=(), **options,
    )  # fmt: skip
    with zipfile.ZipFile(fmu.path) as archive:
        archive.extractall(tmp_path)
    at = {v.name: v.reference for v in fmu.variables}
    program, driver = tmp_path / "driver", Path(__file__).with_name("fmi3_driver.c")
    flags = [*STRICT, "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    flags += [f"-DHEIGHT={at['x.height']}", f"-DGRAVITY={at['p.g']}", f"-I{tmp_path}/sources"]
    built = subprocess.run(
        [compiler, *flags, "-DFMI3_OVERRIDE_FUNCTION_PREFIX", "-o", program, driver],
        capture_output=True, text=True,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    run = subprocess.run([program], capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (0, "0 failures\n", "")


@pytest.mark.long
def test_partitions_of_scheduled_execution(tmp_path):
    from fmpy.fmi3 import FMU3ScheduledExecution

    def plant(t, x, m, u):
        return np.array([x[1], m[0] - x[0]])

    fast = arc.Sampled(lambda t, x, m, u: u - 2.0 * x[1] + m[1], init=0.0, dt=0.01)
    slow = arc.Sampled(
        lambda t, x, m, u: m[1] + 0.1 * (u - x[0]), init=0.0, dt=0.05, offset=0.02
    )  # fmt: skip
    path = str(tmp_path / "two.fmu")
    fmu = arc.export_fmu(
        plant, path, np.array([1.0, 0.0]), inputs=0.5, sampled=[fast, slow], kind=("se", "cs"),
        version="3.0", name="two",
    )  # fmt: skip
    assert validate_fmu(path) == []
    description = fmpy.read_model_description(path)
    clocks = {v.name: v for v in description.modelVariables if v.type == "Clock"}
    instance = FMU3ScheduledExecution(
        guid=description.guid, unzipDirectory=fmpy.extract(path, str(tmp_path / "two")),
        modelIdentifier="two", instanceName="one",
    )  # fmt: skip
    instance.instantiate()
    instance.enterInitializationMode()
    instance.exitInitializationMode()
    x, m, step = np.array([1.0, 0.0]), [0.0, 0.0], arc.discretize(plant, 0.01)

    def activate(name: str, t: float) -> None:
        instance.fmi3ActivateModelPartition(instance.component, clocks[name].valueReference, t)

    for k in range(30):
        activate("clock.step", k * 0.01)
        x = step((k - 1) * 0.01, x, tuple(m), 0.5) if k else x
        activate("clock.sampled[1]", k * 0.01)
        m[0] = float(0.5 - 2.0 * x[1] + m[1])
        if k % 5 == 2:
            activate("clock.sampled[2]", k * 0.01)
            m[1] = float(m[1] + 0.1 * (0.5 - x[0]))
    at = {v.name: v.reference for v in fmu.variables}
    assert instance.getFloat64([at["x"]], 2) == x.tolist()
    instance.freeInstance()
    # Communication points between samples whose times lie beside the grid of the solver.
    rows = fmpy.simulate_fmu(
        path, fmi_type="CoSimulation", start_time=1.003, stop_time=1.503, output_interval=0.05
    )
    solve = arc.solve_ode(
        plant, (1.003, 1.503), np.array([1.0, 0.0]), args=(0.5,), sampled=[fast, slow],
        method="rk4", dt=0.01,
    )  # fmt: skip
    np.testing.assert_allclose(rows["x"][-1], solve.x[-1], atol=1e-10)


@pytest.mark.long
def test_ends_and_failures_of_a_co_simulation(tmp_path):
    def drop(t, x):
        return np.array([x[1], -9.81 + 0.0 * x[0]])

    ground = arc.Event(lambda t, x: x[0], terminal=True)
    x0 = np.array([1.0, 0.0])
    solve = arc.solve_ode(drop, (0.0, 2.0), x0, events=ground, method="rk4", dt=0.01)
    fmu = arc.export_fmu(drop, tmp_path / "drop.fmu", x0, events=ground)
    rows = fmpy.simulate_fmu(str(fmu.path), stop_time=2.0, output_interval=0.1)
    assert rows["time"][-1] == solve.t[-1] and rows["x[2]"][-1] == solve.x[-1, 1]

    def explode(t, x):
        return x**2

    fmu = arc.export_fmu(explode, tmp_path / "e.fmu", 1.0, dt=None, method="dop853")
    messages: list[str] = []
    with pytest.raises(Exception, match="status 3"):
        fmpy.simulate_fmu(
            str(fmu.path), stop_time=2.0, output_interval=0.1,
            logger=lambda *given: messages.append(given[-1].decode()),
        )  # fmt: skip
    assert "the step size became too small" in messages[-1]


@pytest.mark.long
@pytest.mark.parametrize(
    ("platform", "compiler", "member"),
    [
        ("x86_64-windows", "x86_64-w64-mingw32-gcc", "binaries/win64/decay.dll"),
        ("aarch64-linux", "aarch64-linux-gnu-gcc", "binaries/aarch64-linux/decay.so"),
    ],
)
def test_other_platforms_by_cross_compilers(tmp_path, platform, compiler, member):
    if not find_program(compiler):
        pytest.skip(f"needs {compiler}")
    fmu = arc.export_fmu(decay, tmp_path / "decay.fmu", 1.0, platforms=platform, sources=False)
    with zipfile.ZipFile(fmu.path) as archive:
        assert archive.namelist() == [member, "modelDescription.xml"]
    assert validate_fmu(str(fmu.path)) == []
