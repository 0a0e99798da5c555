"""``export_fmu``: a model becomes a Functional Mock-up Unit, for the tools that import them."""

from __future__ import annotations

import hashlib
import inspect
import os
import shutil
import tempfile
import uuid
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.backends.c import FLAGS
from archimedes.checks import check_choice
from archimedes.embedded.c_text import c_identifier, fill
from archimedes.errors import CodegenError
from archimedes.interchange.fmi.c_equations import equations_text, sizes_text
from archimedes.interchange.fmi.description_writer import build_description, model_description
from archimedes.interchange.fmi.fmu_description import Description, Variable
from archimedes.interchange.fmi.fmu_model import FmuModel, Settings
from archimedes.interchange.fmi.source_build import HEADERS
from archimedes.simulate.problem import argument_checks
from archimedes.simulate.solves import initial_value_problem as ivp
from archimedes.system.c_library import fmu_folders
from archimedes.system.cpus import architecture
from archimedes.system.programs import find_program, run_program

if TYPE_CHECKING:
    from archimedes.simulate.events.event import EventLike
    from archimedes.simulate.problem.inputs import Sampled
    from archimedes.typing import Tree

__all__ = ["Fmu", "export_fmu"]

_TEMPLATES = Path(__file__).with_name("templates")
_KINDS = ("cs", "me", "se")
_VERSIONS = ("2.0", "3.0")


@dataclass(frozen=True)
class _Platform:
    """A platform: its folder in FMI 2 and 3, the ending of libraries, and compilers for it."""

    folder_2: str
    folder_3: str
    ending: str
    compilers: tuple[str, ...]


#: Platforms by their names in FMI 3.
PLATFORMS = {
    row.folder_3: row
    for row in (
        _Platform("linux64", "x86_64-linux", ".so", ("x86_64-linux-gnu-gcc",)),
        _Platform("win64", "x86_64-windows", ".dll", ("x86_64-w64-mingw32-gcc",)),
        _Platform("win32", "x86-windows", ".dll", ("i686-w64-mingw32-gcc",)),
        _Platform("aarch64-linux", "aarch64-linux", ".so", ("aarch64-linux-gnu-gcc",)),
        _Platform("darwin64", "x86_64-darwin", ".dylib", ()),
        _Platform("darwin64", "aarch64-darwin", ".dylib", ()),
    )
}


@dataclass(frozen=True)
class Fmu:
    """An FMU that was exported.

    Parameters
    ----------
    path : Path
        The file.
    version : str
        Version of FMI.
    kinds : tuple of str
        Its interfaces, of "cs", "me" and "se".
    platforms : tuple of str
        Platforms that it has a binary for, by their names in FMI 3.
    variables : tuple of Variable
        Its variables.
    token : str
        What FMI 2 calls the GUID and FMI 3 the instantiation token: a digest of the sources.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import archimedes as arc
    >>> def decay(t, x):
    ...     return -x
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fmu = arc.export_fmu(decay, f"{folder}/decay.fmu", np.ones(2), platforms=())
    >>> [variable.name for variable in fmu.variables]
    ['time', 'x', 'der(x)']
    """

    path: Path
    version: str
    kinds: tuple[str, ...]
    platforms: tuple[str, ...]
    variables: tuple[Variable, ...]
    token: str

    def __repr__(self) -> str:
        where = ", ".join(self.platforms) or "sources only"
        lines = [f"FMU {self.path.name}: FMI {self.version} {'+'.join(self.kinds)} ({where})"]
        for causality in ("input", "parameter", "output"):
            names = [v.name for v in self.variables if v.causality == causality]
            if names:
                shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
                lines.append(f"  {causality}s: {shown}")
        return "\n".join(lines)


def export_fmu(
    func: Callable[..., Any],
    path: str | PathLike[str],
    x0: Tree,
    *,
    inputs: Tree = None,
    parameters: Tree = None,
    outputs: Callable[..., Any] | None = None,
    kind: str | Sequence[str] = "cs",
    version: str = "2.0",
    dt: float | None = 0.01,
    method: str = "rk4",
    name: str | None = None,
    events: EventLike | Sequence[EventLike] | None = None,
    sampled: Sampled | Sequence[Sampled] | None = None,
    rtol: float = ivp.RTOL,
    atol: Tree = ivp.ATOL,
    max_step: float = np.inf,
    project: bool = True,
    start_time: float = 0.0,
    stop_time: float = 10.0,
    description: str | None = None,
    platforms: str | Sequence[str] | None = None,
    sources: bool = True,
) -> Fmu:
    """Write the model ``dx/dt = func(t, x, ...)`` as a Functional Mock-up Unit.

    The FMU is the solve ``arc.solve_ode(func, (start, stop), x0, args=rest, ...)`` with the same
    `method`, `dt`, `events` and `sampled`; `rest` are those of `inputs` and `parameters` that are
    given. An importer sets inputs and parameters, and reads states and outputs.

    Parameters
    ----------
    func : callable
        The model, ``func(t, x, *rest)``, plain NumPy. With `sampled`, the memory of the sampled
        parts comes before `rest`, as in :func:`solve_ode`.
    path : path
        The file, ``something.fmu``.
    x0 : float, array or tree
        Start values of the states: variables ``x.<path>``.
    inputs, parameters : tree, optional
        Start values of the inputs, variables ``u.<path>``, and of the parameters, ``p.<path>``.
        Numbers and arrays become variables; text, bools of Python and static fields are fixed.
    outputs : callable, optional
        ``outputs(t, x, *rest)`` returns a tree of numbers, the variables ``y.<path>``. By default
        the states are the outputs.
    kind : {"cs", "me", "se"} or several of them, optional
        Co-simulation, with the solver inside; model exchange, for the solver of the importer;
        scheduled execution (FMI 3), where the importer activates each sampled part by its clock.
    version : {"2.0", "3.0"}, optional
        Version of FMI.
    dt : float, optional
        Step of the solver in co-simulation, in the unit of time. None: a variable step by `rtol`
        and `atol`, with a method that controls it, such as ``"dop853"``.
    method : str, optional
        Integration method of co-simulation, a key of `arc.simulate.METHODS`.
    name : str, optional
        Name of the model. By default that of `func`.
    events : callable, Event or sequence of them, optional
        Zero crossings with resets and ends, as in :func:`solve_ode`.
    sampled : Sampled or sequence of Sampled, optional
        Parts that act at sampling times of their own. ``update(t, x, memory, *rest)``.
    rtol, atol : float or tree, optional
        Tolerances of a variable step. An importer that sets a tolerance scales both.
    max_step : float, optional
        Largest variable step.
    project : bool, optional
        Keep attitudes normalized, as :func:`solve_ode` does.
    start_time, stop_time : float, optional
        Default experiment.
    description : str, optional
        One line about the model. By default the first paragraph of its docstring.
    platforms : str or sequence of str, optional
        Platforms to compile for, such as ``"x86_64-linux"``, ``"x86_64-windows"`` and
        ``"aarch64-linux"``. By default this machine. ``()``: no binary, sources only.
    sources : bool, optional
        Put the C99 sources into the file. True by default.

    Returns
    -------
    Fmu
        The file with its variables.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import archimedes as arc
    >>> def pendulum(t, x, torque, p):
    ...     angle, rate = x
    ...     return np.array([rate, torque - 9.81 / p["length"] * np.sin(angle)])
    >>> x0, p = np.array([0.5, 0.0]), {"length": 1.2}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_fmu(
    ...         pendulum, f"{folder}/p.fmu", x0, inputs=0.0, parameters=p, platforms=()
    ...     )
    FMU p.fmu: FMI 2.0 cs (sources only)
      inputs: u
      parameters: p.length
      outputs: x
    """
    file = _check_path(path)
    kinds = _check_kinds(kind, version)
    chosen = _check_platforms(platforms)
    if not chosen and not sources:
        raise ValueError("export_fmu: platforms=() and sources=False leave nothing in the FMU")
    check_choice(version, "export_fmu: version", _VERSIONS)
    if not callable(func):
        raise TypeError(
            f"export_fmu: func is a {type(func).__name__}: give the model, a function func(t, x)"
        )
    if dt is not None:
        argument_checks.check_step("dt", dt)
    if not (np.isfinite(start_time) and np.isfinite(stop_time) and start_time < stop_time):
        raise ValueError(
            f"export_fmu: start_time = {start_time} must be less than stop_time = {stop_time}"
        )
    if isinstance(rtol, bool) or not isinstance(rtol, (int, float)):
        raise TypeError(
            f"export_fmu: rtol is a {type(rtol).__name__}: an FMU has one relative tolerance, a "
            "number; give different ones by atol"
        )
    options = ivp.Options(method=method, rtol=rtol, atol=atol, max_step=max_step, project=project)
    settings = Settings(options, dt, float(start_time), float(stop_time))
    model = FmuModel(func, x0, inputs, parameters, outputs, events, sampled, settings)
    _check_call(func, model)
    if "se" in kinds:
        _check_clocks(model)
    title = name or str(getattr(func, "__name__", type(func).__name__))
    if title == "<lambda>":
        raise ValueError("export_fmu: a lambda has no name for the model: give name='...'")
    text = getattr(func, "__doc__", None) if description is None else description
    summary = " ".join((text or "").strip().split("\n\n")[0].split())
    facts = Description(model, title, c_identifier(title), kinds, version, summary)
    files = _source_files(model, facts)
    with tempfile.TemporaryDirectory(prefix="archimedes-") as temporary:
        folder = Path(temporary)
        _write_folder(folder, files, facts, sources)
        for target in chosen:
            _compile(folder, files, facts, target)
        if not sources:
            shutil.rmtree(folder / "sources")
        _zip(folder, file)
    ordered = tuple(k for k in _KINDS if k in kinds)
    return Fmu(file, version, ordered, chosen, tuple(facts.variables), facts.token)


# ---- arguments --------------------------------------------------------------------------------


def _check_path(path: str | PathLike[str]) -> Path:
    file = Path(path)
    if file.suffix != ".fmu":
        raise ValueError(f"export_fmu: path={str(path)!r} must end with .fmu")
    if not file.parent.is_dir():
        raise FileNotFoundError(f"export_fmu: path={str(path)!r}: {file.parent} is no folder")
    return file


def _check_kinds(kind: str | Sequence[str], version: str) -> frozenset[str]:
    kinds = (kind,) if isinstance(kind, str) else tuple(kind)
    if not kinds:
        raise ValueError("export_fmu: kind is empty: choose from 'cs', 'me' and 'se'")
    for one in kinds:
        check_choice(one, "export_fmu: kind", _KINDS)
    if "se" in kinds and version == "2.0":
        raise ValueError(
            "export_fmu: scheduled execution (kind='se') exists since FMI 3.0: give version='3.0'"
        )
    return frozenset(kinds)


def _check_call(func: Callable[..., Any], model: FmuModel) -> None:
    """Raise where the model does not take the arguments that it will be given."""
    try:
        signature = inspect.signature(func)
    except (TypeError, ValueError):
        return
    has = {
        "memory": bool(model.parts),
        "inputs": model.has_inputs,
        "parameters": model.has_parameters,
    }
    names = ["t", "x", *(name for name, there in has.items() if there)]
    try:
        signature.bind(*names)
    except TypeError as error:
        raise TypeError(
            f"export_fmu: func is called as func({', '.join(names)}), which does not fit "
            f"{signature}: {error}"
        ) from None


def _check_clocks(model: FmuModel) -> None:
    """Raise where scheduled execution has no clocks, or some without a period."""
    if not model.parts and not model.settings.dt:
        raise ValueError(
            "export_fmu: kind='se' needs sampled parts, or dt for the step of the state"
        )
    for k, part in enumerate(model.parts):
        if part.dt is None:
            raise ValueError(
                f"export_fmu: sampled[{k}] has times instead of a period: a clock of kind='se' "
                "needs dt=..."
            )


def _this_platform() -> str:
    """Return the name of this machine's platform in FMI 3."""
    return fmu_folders(architecture())[0][-1]


def _check_platforms(platforms: str | Sequence[str] | None) -> tuple[str, ...]:
    if platforms is None:
        return (_this_platform(),)
    names = (platforms,) if isinstance(platforms, str) else tuple(platforms)
    for name in names:
        if name != _this_platform():
            check_choice(name, "export_fmu: platforms", sorted(PLATFORMS))
    return names


# ---- files ------------------------------------------------------------------------------------


def _source_files(model: FmuModel, description: Description) -> dict[str, str]:
    """Return the C files by name; the token is a digest of them."""
    number = description.version[0]
    words = {"identifier": description.identifier}
    files = {"equations.c": equations_text(model, description)}
    for name in (f"fmi{number}.c", "component.c", "component.h"):
        files[name] = fill((_TEMPLATES / name).read_text("utf-8"), words, name)
    name = f"fmi{number}_interface.h"
    files[name] = (HEADERS / name).read_text("utf-8")
    digest = hashlib.blake2b(digest_size=16)
    for part in (*files.values(), sizes_text(model, description), model_description(description)):
        digest.update(part.encode() + b"\0")
    description.token = f"{{{uuid.UUID(bytes=digest.digest())}}}"
    files["model_sizes.h"] = sizes_text(model, description)
    return files


def _write_folder(
    folder: Path, files: dict[str, str], description: Description, sources: bool
) -> None:
    text = model_description(description, sources)
    (folder / "modelDescription.xml").write_text(text, encoding="utf-8", newline="\n")
    (folder / "sources").mkdir()
    for name, content in files.items():
        (folder / "sources" / name).write_text(content, encoding="utf-8", newline="\n")
    if description.version == "3.0":
        build = folder / "sources" / "buildDescription.xml"
        build.write_text(build_description(description), encoding="utf-8", newline="\n")


def _find_compiler(target: str) -> str:
    """Return a C compiler for a platform."""
    own = target == _this_platform()
    names = [os.environ.get("CC", ""), "cc", "gcc", "clang"] if own else []
    names += PLATFORMS[target].compilers if target in PLATFORMS else ()
    for name in names:
        if name and find_program(name):
            return name
    looked = ", ".join(name for name in names if name) or "none is known"
    raise CodegenError(
        f"export_fmu: no C compiler for {target} was found ({looked}): install one, name it in the "
        "environment variable CC, or pass platforms=() for an FMU of sources only, which the "
        "importer compiles"
    )


def _compile(folder: Path, files: dict[str, str], description: Description, target: str) -> None:
    """Compile the sources into ``binaries``."""
    compiler = _find_compiler(target)
    row = PLATFORMS.get(target, _Platform(target, target, ".so", ()))
    number = description.version[0]
    binaries = folder / "binaries" / (row.folder_2 if number == "2" else row.folder_3)
    binaries.mkdir(parents=True, exist_ok=True)
    library = binaries / f"{description.identifier}{row.ending}"
    flags = ["-std=c99", "-O1", *FLAGS, "-shared", f"-DFMI{number}_OVERRIDE_FUNCTION_PREFIX"]
    if row.ending == ".dll":
        flags += ["-static-libgcc", "-Wl,--no-insert-timestamp"]
    else:
        flags += ["-fPIC", "-fvisibility=hidden"]
    source = folder / "sources" / f"fmi{number}.c"
    done = run_program([compiler, *flags, "-o", str(library), str(source)])
    if done.returncode:
        raise CodegenError(
            f"export_fmu: {compiler} does not compile the FMU for {target}:\n{done.stderr.strip()}"
        )


def _zip(folder: Path, file: Path) -> None:
    """Write the FMU: the same content gives the same bytes."""
    temporary = file.with_name(f"{file.name}.{os.getpid()}.part")
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(p for p in folder.rglob("*") if p.is_file()):
                entry = zipfile.ZipInfo(path.relative_to(folder).as_posix())
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = (0o755 if "binaries" in path.parts else 0o644) << 16
                archive.writestr(entry, path.read_bytes())
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)
