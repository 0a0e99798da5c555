"""FMU files for tests: a plant (``plant.c``) and whatever else is wanted in its archive."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from functools import cache
from pathlib import Path

from archimedes.system.c_library import fmu_folders
from archimedes.system.cpus import architecture

HERE = Path(__file__).parent
TOKEN = "{plant-1}"

INTERFACE_2 = (
    'modelIdentifier="plant" providesDirectionalDerivative="{derivatives}" '
    'canHandleVariableCommunicationStepSize="{variable}"'
)
#: Reals of the plant: name, causality, other attributes of the variable, those of its type.
REALS = [
    (
        "angle",
        "output",
        'initial="exact" description="from the vertical"',
        'start="0.5" unit="rad"',
    ),
    ("rate", "local", 'initial="exact"', 'start="0" unit="rad/s"'),
    ("h", "output", 'initial="exact" description="height"', 'start="1" unit="m"'),
    ("v", "output", 'initial="exact"', 'start="0" unit="m/s"'),
    ("der(angle)", "local", "", 'unit="rad/s" derivative="{0}"'),
    ("der(rate)", "local", "", 'unit="rad/s2" derivative="{1}"'),
    ("der(h)", "local", "", 'unit="m/s" derivative="{2}"'),
    ("der(v)", "local", "", 'unit="m/s2" derivative="{3}"'),
    ("torque", "input", "", 'start="0" unit="rad/s2" min="-100" max="100"'),
    ("g", "parameter", 'variability="fixed"', 'start="9.81" unit="m/s2"'),
    ("length", "parameter", 'variability="fixed"', 'start="1" unit="m" min="0.01"'),
    ("e", "parameter", 'variability="fixed"', 'start="0.7" min="0" max="1"'),
    ("tip", "output", "", 'unit="m"'),
]
INTEGERS = [
    ("fault", "parameter", 'variability="fixed"', 'start="0"'),
    ("bounces", "output", 'variability="discrete"', ""),
    ("ticks", "output", 'variability="discrete"', ""),
]


def description(version: str = "2.0", derivatives: bool = True, variable: bool = True) -> str:
    """Return the ``modelDescription.xml`` of the plant."""
    flags = {"derivatives": str(derivatives).lower(), "variable": str(variable).lower()}
    return _description_2(flags) if version == "2.0" else _description_3(flags)


def _description_2(flags: dict[str, str]) -> str:
    interface = INTERFACE_2.format(**flags)
    variables = []
    for k, (name, causality, of, typed) in enumerate(REALS):
        typed = typed.format(1, 2, 3, 4)
        variables.append((name, k, causality, of, f"<Real {typed}/>"))
    for k, (name, causality, of, typed) in enumerate(INTEGERS):
        variables.append((name, 20 + k, causality, of, f"<Integer {typed}/>"))
    tunable = 'variability="fixed"'
    variables.append(("on", 30, "parameter", tunable, '<Boolean start="false"/>'))
    variables.append(("label", 40, "parameter", tunable, '<String start="none"/>'))
    text = "\n".join(
        f'<ScalarVariable name="{name}" valueReference="{reference}" causality="{causality}" '
        f"{of}>{typed}</ScalarVariable>"
        for name, reference, causality, of, typed in variables
    )
    outputs = [k + 1 for k, row in enumerate(variables) if row[2] == "output"]
    unknowns = "".join(f'<Unknown index="{k}"/>' for k in outputs)
    rates = "".join(f'<Unknown index="{k}"/>' for k in (5, 6, 7, 8))
    units = "".join(f'<Unit name="{u}"/>' for u in ("rad", "rad/s", "rad/s2", "m", "m/s", "m/s2"))
    sources = '<SourceFiles><File name="plant.c"/></SourceFiles>'
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="plant" guid="{TOKEN}" numberOfEventIndicators="1">
<ModelExchange {interface.rpartition(" ")[0]}>{sources}</ModelExchange>
<CoSimulation {interface}>{sources}</CoSimulation>
<UnitDefinitions>{units}</UnitDefinitions>
<DefaultExperiment startTime="0" stopTime="2" stepSize="0.01"/>
<ModelVariables>{text}</ModelVariables>
<ModelStructure><Outputs>{unknowns}</Outputs><Derivatives>{rates}</Derivatives>
<InitialUnknowns>{rates}</InitialUnknowns></ModelStructure>
</fmiModelDescription>"""


def _description_3(flags: dict[str, str]) -> str:
    variables = [
        '<Float64 name="time" valueReference="99" causality="independent" '
        'variability="continuous"/>'
    ]
    for k, (name, causality, of, typed) in enumerate(REALS):
        typed = typed.format(0, 1, 2, 3)
        variables.append(
            f'<Float64 name="{name}" valueReference="{k}" causality="{causality}" {of} {typed}/>'
        )
    for k, (name, causality, of, typed) in enumerate(INTEGERS):
        variables.append(
            f'<Int32 name="{name}" valueReference="{20 + k}" causality="{causality}" {of} {typed}/>'
        )
    fixed = 'causality="parameter" variability="fixed"'
    variables.append(f'<Boolean name="on" valueReference="30" {fixed} start="false"/>')
    variables.append(
        f'<String name="label" valueReference="40" {fixed}><Start value="none"/></String>'
    )
    variables.append(
        f'<Float64 name="gain" valueReference="50" {fixed} start="1 2 3">'
        '<Dimension start="3"/></Float64>'
    )
    variables.append(
        '<Float64 name="z" valueReference="60" causality="local" variability="continuous"/>'
    )
    unknowns = "".join(f'<Output valueReference="{k}"/>' for k in (0, 2, 3, 12, 21, 22))
    rates = "".join(f'<ContinuousStateDerivative valueReference="{k}"/>' for k in (4, 5, 6, 7))
    units = "".join(f'<Unit name="{u}"/>' for u in ("rad", "rad/s", "rad/s2", "m", "m/s", "m/s2"))
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0" modelName="plant" instantiationToken="{TOKEN}">
<ModelExchange modelIdentifier="plant" needsCompletedIntegratorStep="true"
 providesDirectionalDerivatives="{flags["derivatives"]}"/>
<CoSimulation modelIdentifier="plant" providesDirectionalDerivatives="{flags["derivatives"]}"
 canHandleVariableCommunicationStepSize="{flags["variable"]}"/>
<UnitDefinitions>{units}</UnitDefinitions>
<DefaultExperiment startTime="0" stopTime="2" stepSize="0.01"/>
<ModelVariables>{"".join(variables)}</ModelVariables>
<ModelStructure>{unknowns}{rates}<EventIndicator valueReference="60"/></ModelStructure>
</fmiModelDescription>"""


BUILD = """<?xml version="1.0" encoding="UTF-8"?>
<fmiBuildDescription fmiVersion="3.0"><BuildConfiguration modelIdentifier="plant">
<SourceFileSet language="C99"><SourceFile name="plant.c"/>
<PreprocessorDefinition name="FMI" value="3"/></SourceFileSet>
</BuildConfiguration></fmiBuildDescription>"""


@cache
def compiled(version: str, folder: Path, zero: int = 0) -> Path:
    """Return the shared library of the plant, compiled once in a run of the tests.

    ``zero``: which of the event indicators of ``plant.c`` it has.
    """
    library = folder / f"plant-{version}-{zero}{fmu_folders(architecture())[1]}"
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert compiler is not None
    command = [compiler, "-shared", "-fPIC", "-O1", "-w", f"-DFMI={version[0]}", f"-DZERO={zero}"]
    subprocess.run([*command, str(HERE / "plant.c"), "-o", str(library), "-lm"], check=True)
    return library


def write_archive(path: Path, entries: dict[str, bytes | str]) -> Path:
    """Write a zip archive with these entries."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return path


def plant_entries(version: str, library: Path, text: str | None = None) -> dict[str, bytes | str]:
    """Return the entries of the plant's archive, with a binary for this platform."""
    folders, suffix = fmu_folders(architecture())
    folder = folders[0] if version == "2.0" else folders[-1]
    return {
        "modelDescription.xml": text or description(version),
        f"binaries/{folder}/plant{suffix}": library.read_bytes(),
    }
