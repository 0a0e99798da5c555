"""Models of Modelica's Reference FMUs, in source form, against the results that are published.

The numbers are rows of the files NAME_ref.csv of github.com/modelica/Reference-FMUs, which FMPy
computed. The C code is our own (``reference_models.c``). It includes the headers of the
standard, as the published sources do: these are the importer's. The published FMUs themselves run
in ``published_fmus.py``.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import archimedes as arc
from archimedes.interchange.fmi.source_build import HEADERS
from archimedes.system.programs import find_program
from tests.interchange.fmi.plant_fmu import HERE, write_archive
from tests.interchange.fmi.test_import_fmu import VERSIONS
from tests.optional_packages import import_or_skip

COMPILER = next(filter(find_program, ["cc", "gcc", "clang"]), None)
pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="needs a C compiler"),
    pytest.mark.long_cases("3.0"),
]

OUTPUT, INPUT = 'causality="output"', 'causality="input"'
PARAMETER = 'causality="parameter" variability="fixed"'
DISCRETE = ' variability="discrete"'
STATE, RATE = OUTPUT + ' initial="exact"', 'causality="local"'
TIME = '<Float64 name="time" valueReference="0" causality="independent"/>'
#: Variables of each model: name, type of FMI 3.0, reference, attributes, those of the type.
MODELS = {
    "Dahlquist": [
        ("x", "Float64", 1, STATE, 'start="1"'),
        ("der(x)", "Float64", 2, RATE, "derivative"),
        ("k", "Float64", 3, PARAMETER, 'start="1"'),
    ],
    "VanDerPol": [
        ("x0", "Float64", 1, STATE, 'start="2"'),
        ("x1", "Float64", 2, STATE, 'start="0"'),
        ("der(x0)", "Float64", 3, RATE, "derivative"),
        ("der(x1)", "Float64", 4, RATE, "derivative"),
        ("mu", "Float64", 5, PARAMETER, 'start="1"'),
    ],
    "BouncingBall": [
        ("h", "Float64", 1, STATE, 'start="1"'),
        ("v", "Float64", 2, STATE, 'start="0"'),
        ("der(h)", "Float64", 3, RATE, "derivative"),
        ("der(v)", "Float64", 4, RATE, "derivative"),
        ("g", "Float64", 5, PARAMETER, 'start="-9.81"'),
        ("e", "Float64", 6, PARAMETER, 'start="0.7"'),
    ],
    "Stair": [("counter", "Int32", 20, OUTPUT + DISCRETE + ' initial="exact"', 'start="1"')],
    "Feedthrough": [
        ("Float64_continuous_input", "Float64", 1, INPUT, 'start="0"'),
        ("Float64_discrete_input", "Float64", 2, INPUT + DISCRETE, 'start="0"'),
        ("Float64_continuous_output", "Float64", 3, OUTPUT, ""),
        ("Float64_discrete_output", "Float64", 4, OUTPUT + DISCRETE, ""),
        ("Int32_input", "Int32", 20, INPUT + DISCRETE, 'start="0"'),
        ("Int32_output", "Int32", 21, OUTPUT + DISCRETE, ""),
        ("Boolean_input", "Boolean", 30, INPUT + DISCRETE, 'start="false"'),
        ("Boolean_output", "Boolean", 31, OUTPUT + DISCRETE, ""),
        ("String_parameter", "String", 40, PARAMETER, "Set me!"),
    ],
    "Resource": [("y", "Int32", 20, OUTPUT + DISCRETE, "")],
}


def variable_2(row: tuple, states: list[int]) -> str:
    name, type, reference, attributes, typed = row
    old = {"Float64": "Real", "Int32": "Integer"}.get(type, type)
    if typed == "derivative":
        typed = f'derivative="{states.pop(0)}"'
    if type == "String":
        typed = f'start="{typed}"'
    return (
        f'<ScalarVariable name="{name}" valueReference="{reference}" {attributes}>'
        f"<{old} {typed}/></ScalarVariable>"
    )


def variable_3(row: tuple, states: list[int]) -> str:
    name, type, reference, attributes, typed = row
    if typed == "derivative":
        typed = f'derivative="{states.pop(0)}"'
    head = f'<{type} name="{name}" valueReference="{reference}" {attributes}'
    return f'{head}><Start value="{typed}"/></String>' if type == "String" else f"{head} {typed}/>"


def description(model: str, version: str) -> str:
    """Return the ``modelDescription.xml`` of a model."""
    rows, indicators = MODELS[model], int(model == "BouncingBall")
    outputs = [k for k, row in enumerate(rows) if OUTPUT in row[3]]
    rates = [k for k, row in enumerate(rows) if row[4] == "derivative"]
    initial = [k for k in {*outputs, *rates} if "exact" not in rows[k][3]]
    if version == "2.0":
        variables = "".join(variable_2(row, states) for states in [[1, 2]] for row in rows)
        unknowns = ["".join(f'<Unknown index="{k + 1}"/>' for k in of) for of in (outputs, rates)]
        structure = f"<Outputs>{unknowns[0]}</Outputs>"
        structure += f"<Derivatives>{unknowns[1]}</Derivatives>" if rates else ""
        calculated = "".join(f'<Unknown index="{k + 1}"/>' for k in initial)
        structure += f"<InitialUnknowns>{calculated}</InitialUnknowns>" if initial else ""
        head = f'fmiVersion="2.0" guid="{{1}}" numberOfEventIndicators="{indicators}"'
        sources = f'<SourceFiles><File name="{model}.c"/></SourceFiles>'
    else:
        variables = "".join(variable_3(row, states) for states in [[1, 2]] for row in rows)
        structure = "".join(f'<Output valueReference="{rows[k][2]}"/>' for k in outputs)
        structure += "".join(
            f'<ContinuousStateDerivative valueReference="{rows[k][2]}"/>' for k in rates
        )
        structure += "".join(f'<InitialUnknown valueReference="{rows[k][2]}"/>' for k in initial)
        if indicators:
            variables += '<Float64 name="z" valueReference="9" causality="local"/>'
            structure += '<EventIndicator valueReference="9"/>'
        variables = TIME + variables
        head, sources = 'fmiVersion="3.0" instantiationToken="{1}"', ""
    step = 'canHandleVariableCommunicationStepSize="true"'
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription modelName="{model}" {head}>
<ModelExchange modelIdentifier="{model}">{sources}</ModelExchange>
<CoSimulation modelIdentifier="{model}" {step}>{sources}</CoSimulation>
<ModelVariables>{variables}</ModelVariables><ModelStructure>{structure}</ModelStructure>
</fmiModelDescription>"""


def source_fmu(folder: Path, model: str, version: str) -> Path:
    """Write an FMU that has sources only."""
    build = f"""<?xml version="1.0" encoding="UTF-8"?><fmiBuildDescription fmiVersion="3.0">
<BuildConfiguration modelIdentifier="{model}"><SourceFileSet language="C99">
<SourceFile name="{model}.c"/></SourceFileSet></BuildConfiguration></fmiBuildDescription>"""
    code = (HERE / "reference_models.c").read_text(encoding="utf-8")
    entries = {
        "modelDescription.xml": description(model, version),
        f"sources/{model}.c": f'#define {model}\n#define FMI {version[0]}\n#include "models.c"\n',
        "sources/models.c": code,
        "resources/y.txt": "a",
    }
    entries |= {"sources/buildDescription.xml": build} if version == "3.0" else {}
    return write_archive(folder / f"{model}.fmu", entries)


def published(text: str) -> np.ndarray:
    """Return rows of a published file as columns."""
    return np.array([[float(x) for x in row.split(",")] for row in text.split()]).T


DAHLQUIST = published("0,1 0.2,0.818697 1,0.367857 2,0.135306 5,0.00673565 10,4.53932e-05")
#: With the Euler steps of its co-simulation.
VAN_DER_POL = published("""0,2,0 0.01,2,-0.02 0.02,1.9998,-0.0394 1,1.50967,-0.7809
    2.51,-0.847876,-2.69014 5,-0.874403,1.27374 7.1,1.9049,-0.490644""")[:, :-1]
BALL = published("""0,1,0 0.4,0.215193,-3.924 0.46,0.02593,3.01743 1,0.225043,-2.27997
    1.5,0.0533682,-1.91398 2,0.0423756,-0.54692 2.3,0.00493259,-0.417396
    2.45,0.00148718,0.0469654 2.48,0.000622747,0.0537409 2.51,0,0 3,0,0""")
#: When the ball meets the floor; at the last one it rests.
BOUNCES = np.array([0.451522, 1.08365, 1.52613, 1.83585, 2.05263, 2.20436, 2.31052, 2.38477])
FEEDTHROUGH = published("""0,1,0,0,0 0.4,1,0,0,0 0.6,2.8,0,0,0 0.8,2.4,0,0,0 1.2,2,1,1,1
    1.4,2,1,1,1 1.6,1,1,1,1 2,1,1,1,1""")


@pytest.fixture
def imported(tmp_path):
    def build(model: str, version: str, kind: str):
        return arc.import_fmu(source_fmu(tmp_path, model, version), trust=True, kind=kind)

    return build


@pytest.mark.parametrize("version", VERSIONS)
def test_dahlquist(imported, version):
    t, x = DAHLQUIST
    traj = imported("Dahlquist", version, "me").simulate((0.0, 10.0), t_eval=t)
    np.testing.assert_allclose(traj.y["x"], np.exp(-t), atol=1e-8)
    np.testing.assert_allclose(traj.y["x"], x, atol=4e-5)  # their tolerance
    steps = imported("Dahlquist", version, "cs").simulate((0.0, 10.0), dt=0.1)
    np.testing.assert_allclose(steps.y["x"], 0.9 ** np.arange(101.0), rtol=1e-13)


@pytest.mark.parametrize("version", VERSIONS)
def test_van_der_pol(imported, version):
    t, *x = VAN_DER_POL
    traj = imported("VanDerPol", version, "cs").simulate((0.0, 5.0), dt=0.01)
    at = np.round(t * 100.0).astype(int)
    for name, values in zip(("x0", "x1"), x):
        np.testing.assert_allclose(traj.y[name][at], values, rtol=6e-6)  # all digits
    own = arc.odeint(
        lambda t, x: np.stack([x[1], (1.0 - x[0] ** 2) * x[1] - x[0]]),
        (0.0, 5.0),
        np.array([2.0, 0.0]),
    )
    end = imported("VanDerPol", version, "me").simulate((0.0, 5.0))[-1]
    np.testing.assert_allclose([end["x0"], end["x1"]], own, atol=1e-7)


@pytest.mark.parametrize("version", VERSIONS)
def test_bouncing_ball(imported, version):
    t, h, v = BALL
    fmu = imported("BouncingBall", version, "me")
    traj = fmu.simulate((0.0, 3.0), t_eval=t)
    # The publication's own error: its bounces come earlier, ever more. Ours have the closed form.
    np.testing.assert_allclose(traj.y["h"], h, atol=1e-4)
    np.testing.assert_allclose(traj.y["v"], v, atol=1e-2)
    bounces = traj.events["t"]
    np.testing.assert_allclose(bounces[:8], BOUNCES, atol=5e-4)
    speeds = np.sqrt(2.0 * 9.81) * 0.7 ** np.arange(12.0)
    exact = speeds[0] / 9.81 + np.concatenate([[0.0], np.cumsum(2.0 * speeds[1:11] / 9.81)])
    np.testing.assert_allclose(bounces, exact, atol=1e-9)  # 11 of them: then it rests
    steps = imported("BouncingBall", version, "cs").simulate((0.0, 3.0), dt=0.01)
    assert (steps.y["h"][-1], steps.y["v"][-1]) == (0.0, 0.0)
    np.testing.assert_allclose(steps.y["h"][[40, 100]], h[[1, 3]], atol=2e-2)  # first order


@pytest.mark.parametrize("version", VERSIONS)
def test_stair(imported, version):
    traj = imported("Stair", version, "me").simulate((0.0, 10.0), t_eval=np.arange(21) / 2.0)
    assert traj.y["counter"].tolist() == [1 + k // 2 for k in range(21)]
    np.testing.assert_allclose(traj.events["t"], np.arange(1.0, 11.0), rtol=1e-15)
    steps = imported("Stair", version, "cs").simulate((0.0, 10.0), dt=0.2)
    assert steps.y["counter"][::5].tolist() == list(range(1, 12))


@pytest.mark.parametrize("kind", ["me", "cs"])
@pytest.mark.parametrize("version", VERSIONS)
def test_feedthrough(imported, version, kind):
    t, *values = FEEDTHROUGH
    jump = [0.0, 1.0]

    def ramp(t):
        return 1.0 if t < 0.5 else max(4.0 - 2.0 * t, 2.0 - (t >= 1.5))

    inputs = {
        "Float64_continuous_input": ramp,
        "Float64_discrete_input": arc.InputSeries(jump, [0.0, 1.0]),
        "Int32_input": arc.InputSeries(jump, [0, 1]),
        "Boolean_input": arc.InputSeries(jump, [False, True]),
    }  # fmt: skip
    fmu = imported("Feedthrough", version, kind)
    options = {"dt": 0.1} if kind == "cs" else {}
    if kind == "cs":  # inputs are held during a step
        values[0] = [ramp(max(x - 0.1, 0.0)) for x in t]
    traj = fmu.simulate((0.0, 2.0), inputs=inputs, t_eval=t, **options)
    names = [
        "Float64_continuous_output",
        "Float64_discrete_output",
        "Int32_output",
        "Boolean_output",
    ]
    for name, expected in zip(names, values):
        np.testing.assert_allclose(traj.y[name], expected, rtol=1e-12)
    fmu.with_parameters({"String_parameter": "ä 'b'"}).simulate((0.0, 0.1), **options)


@pytest.mark.parametrize("kind", ["me", "cs"])
@pytest.mark.parametrize("version", VERSIONS)
def test_resource(imported, version, kind):
    options = {"dt": 0.1} if kind == "cs" else {}
    traj = imported("Resource", version, kind).simulate((0.0, 0.2), **options)
    assert (traj.y["y"] == ord("a")).all()


@pytest.mark.parametrize("version", VERSIONS)
def test_fmpy_has_no_remark(tmp_path, version):
    validate_fmu = import_or_skip("fmpy.validation").validate_fmu
    for model in ("VanDerPol", "Feedthrough"):
        assert validate_fmu(str(source_fmu(tmp_path, model, version))) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_headers_declare_what_those_of_the_standard_do(version, tmp_path):
    """The standard's headers, then ours on their types: a difference does not compile."""
    number = version[0]
    theirs = Path(import_or_skip("fmpy").__file__).parent / "c-code" / f"fmi{number}Functions.h"
    lines = [
        f'#include "{theirs}"',
        *(f"#undef fmi{number}{name}" for name in ("Version", "FullName", "TypesPlatform")),
        *(
            f"#undef fmi{number}{name}"
            for name in ("True", "False", "ClockActive", "ClockInactive")
        ),
        f"#define FMI{number}_INTERFACE_H",
        f"#define FMI{number}_NAME(name) name",
        f'#include "{HEADERS}/fmi{number}Functions.h"',
    ]
    (tmp_path / "both.c").write_text("\n".join(lines), encoding="utf-8")
    flags = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-c", "-o", "both.o"]
    done = subprocess.run(
        [COMPILER, *flags, "both.c"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
