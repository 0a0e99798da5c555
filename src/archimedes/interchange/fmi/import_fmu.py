"""``arc.import_fmu``: a Functional Mock-up Unit as a part of a model."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import check_choice, check_positive, check_type
from archimedes.interchange.fmi.co_simulation import (
    SteppedModel,
    communication_points,
    simulate_steps,
)
from archimedes.interchange.fmi.description_reader import (
    FLOATS,
    KINDS,
    FmuDescription,
    FmuVariable,
    read_description,
)
from archimedes.interchange.fmi.fmu_archive import FmuArchive
from archimedes.interchange.fmi.fmu_binary import Access, FmuBinary, FmuError, Log
from archimedes.interchange.fmi.fmu_inputs import FmuInputs, check_parameters
from archimedes.interchange.fmi.fmu_parts import SampledFmu, SharedInstance
from archimedes.interchange.fmi.model_exchange import (
    ContinuousModel,
    Recorder,
    Start,
    simulate_model,
)
from archimedes.interchange.fmi.named_values import (
    NamedValues,
    name_values,
    pack_values,
    unpack_values,
)
from archimedes.interchange.fmi.source_build import compile_sources
from archimedes.simulate import Event, Sampled, Trajectory
from archimedes.simulate.problem.argument_checks import check_span, check_times
from archimedes.simulate.solves.initial_value_problem import ATOL, RTOL, Options
from archimedes.system.c_library import fmu_folders
from archimedes.system.cpus import architecture

if TYPE_CHECKING:
    from archimedes.simulate import Method
    from archimedes.typing import ArrayLike

__all__ = ["FmuError", "FmuVariable", "ImportedFmu", "NamedValues", "import_fmu"]

#: Communication steps in a span, where neither the user nor the FMU says how long they are.
STEPS = 500
_serials = itertools.count()


def import_fmu(
    path: str | os.PathLike[str],
    trust: bool = False,
    *,
    kind: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    log: Log | None = None,
) -> ImportedFmu:
    """Read a Functional Mock-up Unit (FMI 2.0 or 3.0) and return it as a part of a model.

    Without `trust` only its description is read: nothing of the file runs. The file is checked
    first, and refused if it is damaged, contradicts itself or could do harm while it is unpacked.

    Parameters
    ----------
    path : path
        The ``.fmu`` file.
    trust : bool, optional
        Load the binary, or compile the sources if there is no binary for this platform. A binary
        can do all that you can, and a crash in it ends Python: say True only for files whose origin
        you trust. False by default.
    kind : {"me", "cs"}, optional
        Model exchange (our solvers integrate its derivatives) or co-simulation (it brings a solver
        of its own). By default model exchange if the FMU has it.
    parameters : mapping, optional
        Parameters and start values to set, by name.
    log : callable, optional
        Called as ``log(status, category, message)`` for each message of the FMU, which is then
        asked to log all it does. Without it, its messages are kept for errors only.

    Returns
    -------
    ImportedFmu
        Its variables; ``simulate((t0, t1))``; for model exchange ``x0``, ``dynamics``, ``outputs``
        and ``events`` for :func:`archimedes.solve_ode`; for co-simulation ``sampled``.

    Raises
    ------
    ValueError
        The file is not an FMU, or not one that is safe to read.
    FmuError
        The binary cannot be used here.

    Examples
    --------
    >>> import archimedes as arc
    >>> try:
    ...     arc.import_fmu("no_such_model.fmu")
    ... except FileNotFoundError as error:
    ...     print(error)
    no_such_model.fmu: no such file
    """
    check_type(trust, "import_fmu: trust", bool)
    archive = FmuArchive(path)
    description = read_description(archive)
    fmu = ImportedFmu(archive, description, _choose_kind(description, kind), parameters, log)
    if trust:
        fmu._load()
    return fmu


def _choose_kind(description: FmuDescription, kind: str | None) -> str:
    there = description.interfaces
    if kind is None:
        return next(one for one in KINDS if one in there)
    check_choice(kind, "import_fmu: kind", tuple(KINDS))
    if kind not in there:
        names = " and ".join(f"{KINDS[one]} ({one!r})" for one in there)
        raise ValueError(f"import_fmu: kind={kind!r}: {description.name} has only {names}")
    return kind


class ImportedFmu:
    """An imported FMU: its variables, and functions that solvers take.

    :func:`import_fmu` makes it. Variables have the names of the FMU; values by name are mappings
    that are nodes of trees.

    Parameters
    ----------
    archive : FmuArchive
        The file.
    description : FmuDescription
        What the file says about itself.
    kind : {"me", "cs", "se"}
        The interface to use.
    parameters : mapping, optional
        Parameters and start values to set, by name.
    log : callable, optional
        Called with (status, category, message) for each message.

    Examples
    --------
    >>> import tempfile
    >>> import archimedes as arc
    >>> def decay(t, x):
    ...     return -x
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/decay.fmu"
    ...     _ = arc.export_fmu(decay, path, 1.0, kind="me", platforms=())
    ...     fmu = arc.import_fmu(path)
    >>> fmu.state_names
    ['x']
    """

    def __init__(
        self,
        archive: FmuArchive,
        description: FmuDescription,
        kind: str,
        parameters: Mapping[str, Any] | None = None,
        log: Log | None = None,
    ) -> None:
        self.archive, self.description, self.kind, self.log = archive, description, kind, log
        self.parameters = dict(parameters or {})
        self._settings = check_parameters(description, parameters)
        self._binary: FmuBinary | None = None
        self._host: SharedInstance | None = None
        self._lock = threading.Lock()
        self._serial = next(_serials)
        variables = description.variables
        self._states = [variables[name] for name in description.states]
        self._outputs = [variables[name] for name in description.outputs]
        self._inputs = description.named("input")

    def __content__(self) -> tuple[int]:
        # It never changes for those who call it; a recording holds on to the one that it called.
        return (self._serial,)

    # ---- what it is ----------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.description.name

    @property
    def variables(self) -> dict[str, FmuVariable]:
        """Variables by name, with type, causality, unit, start value and description."""
        return dict(self.description.variables)

    @property
    def inputs(self) -> list[str]:
        """Names of the inputs."""
        return [variable.name for variable in self._inputs]

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs."""
        return list(self.description.outputs)

    @property
    def state_names(self) -> list[str]:
        """Names of the continuous states."""
        return list(self.description.states)

    @property
    def has_derivatives(self) -> bool:
        """Whether it offers directional derivatives."""
        return self.description.interfaces[self.kind].directional_derivatives

    def __repr__(self) -> str:
        d = self.description
        counts = f"{len(self._inputs)} inputs, {len(self._outputs)} outputs, {d.size_x} states"
        loaded = "" if self._binary else ", not loaded (trust=False)"
        return f"ImportedFmu({d.name}, FMI {d.version} {KINDS[self.kind]}, {counts}{loaded})"

    def report(self) -> str:
        """Return a table of the variables as text."""
        rows = [("name", "causality", "type", "start", "unit", "description")]
        for v in self.description.variables.values():
            start = "" if v.start is None else str(v.start).replace("\n", "")
            kind = v.type + (str(list(v.shape)) if v.shape else "")
            rows.append((v.name, v.causality, kind, start, v.unit, v.description))
        widths = [min(40, max(len(row[k]) for row in rows)) for k in range(5)]
        lines = ["  ".join([*map(str.ljust, row[:5], widths), row[5]]).rstrip() for row in rows]
        return "\n".join([repr(self), *lines])

    def with_parameters(self, parameters: Mapping[str, Any]) -> ImportedFmu:
        """Return the same FMU with other parameters or start values.

        Parameters
        ----------
        parameters : mapping
            New values by name. Others stay as they are.
        """
        merged = {**self.parameters, **parameters}
        fmu = ImportedFmu(self.archive, self.description, self.kind, merged, self.log)
        fmu._binary = self._binary
        return fmu

    def close(self) -> None:
        """Free the instance that `dynamics`, `outputs`, `events` and `sampled` have made."""
        if self._host is not None:
            self._host.free()

    # ---- the binary ----------------------------------------------------------------------------

    def _load(self) -> None:
        """Unpack the FMU and load its binary, compiled here if need be."""
        name, kind, archive = self.description.name, self.kind, self.archive
        if kind == "se":
            raise FmuError(
                f"{name} is for scheduled execution only, which needs a scheduler that activates "
                "its partitions: import model exchange or co-simulation FMUs"
            )
        clocks = [v.name for v in self._inputs if v.type == "Clock"]
        if clocks:
            raise FmuError(f"{name} has input clocks ({clocks[0]}), which cannot be driven here")
        folders, suffix = fmu_folders(architecture())
        identifier = self.description.interfaces[kind].identifier
        choices = [f"binaries/{folder}/{identifier}{suffix}" for folder in folders]
        if self.description.version == "3.0":
            choices.reverse()
        chosen = next((choice for choice in choices if choice in archive), None)
        if chosen is None and not archive.names("sources/"):
            there = sorted({one.split("/")[1] for one in archive.names("binaries/")})
            raise FmuError(
                f"{name} has no binary for this platform ({choices[0]}) and no sources; it has "
                f"binaries for: {', '.join(there) or 'none'}"
            )
        folder = Path(tempfile.mkdtemp(prefix="archimedes-fmu-"))
        try:
            (folder / "resources").mkdir()
            parts = ["resources/", chosen.rpartition("/")[0] + "/" if chosen else "sources/"]
            archive.extract(folder, *parts)
            if chosen is None:
                chosen = choices[0]
                compile_sources(archive, self.description, kind, folder, folder / chosen)
            binary = FmuBinary(self.description, kind, folder / chosen, folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        weakref.finalize(binary, shutil.rmtree, folder, ignore_errors=True)
        self._binary = binary

    def _loaded(self) -> FmuBinary:
        if self._binary is None:
            raise FmuError(
                f"{self.name}: nothing of an FMU runs unless you say so, because its binary can do "
                f"all that you can. If you trust its origin: arc.import_fmu({self.archive.name!r}, "
                "trust=True)"
            )
        return self._binary

    def _require(self, kind: str, what: str) -> FmuBinary:
        if self.kind != kind:
            other = KINDS[kind]
            remedy = (
                f"import it with kind={kind!r}"
                if kind in self.description.interfaces
                else f"the FMU has none ({', '.join(self.description.interfaces)} only)"
            )
            raise FmuError(f"{self.name}.{what} is for {other}: {remedy}")
        return self._loaded()

    # ---- simulation ----------------------------------------------------------------------------

    def simulate(
        self,
        t_span: Sequence[float],
        *,
        inputs: Any = None,
        parameters: Mapping[str, Any] | None = None,
        outputs: Sequence[str] | None = None,
        t_eval: ArrayLike | None = None,
        dt: float | None = None,
        method: str | Method | None = None,
        rtol: float = RTOL,
        atol: float = ATOL,
        max_step: float = np.inf,
        max_steps: int | None = None,
    ) -> Trajectory:
        """Simulate the FMU alone, each time with a new instance.

        Parameters
        ----------
        t_span : (float, float)
            Start and end time.
        inputs : mapping, InputSeries or callable, optional
            By name a number, a function of time, or an :class:`archimedes.InputSeries`; or one
            function or series that returns values by name. Co-simulation holds inputs during each
            step. Others keep the start values of the FMU.
        parameters : mapping, optional
            Parameters and start values for this simulation, by name.
        outputs : sequence of str, optional
            Names of the variables to record as ``y``; the outputs of the FMU by default.
        t_eval : array_like (m,), optional
            Times of the samples. By default model exchange has one after each step, and two at
            events; co-simulation one at each communication point.
        dt : float, optional
            Communication step; by default what the FMU suggests, or a 500th of the span. For model
            exchange, the step size of a fixed-step method.
        method : str, optional
            Integration method for model exchange, as in :func:`archimedes.solve_ode`.
        rtol, atol : float, optional
            Tolerances for model exchange; `atol` is multiplied by the nominal values of the states.
        max_step : float, optional
            Largest step for model exchange.
        max_steps : int, optional
            Largest number of steps for model exchange.

        Returns
        -------
        Trajectory
            States ``x``, inputs ``u`` and outputs ``y`` by their names, as in ``traj.y["h"]``.
            ``events`` has the events of model exchange; number -1 is an event in time.

        Raises
        ------
        FmuError
            The FMU reported an error; with its own messages.
        """
        binary = self._loaded()
        if np.shape(t_span) != (2,):
            raise ValueError(f"t_span = {t_span!r} must be a pair (start, end)")
        start, end = check_span(t_span, None)
        if end < start:
            raise ValueError(
                f"t_span = ({start}, {end}) goes back in time, where no FMU can follow"
            )
        times = None if t_eval is None else check_times(t_eval, start, end)
        settings = check_parameters(self.description, {**self.parameters, **(parameters or {})})
        given = FmuInputs(self.description, inputs, start)
        numbers = [v for v in self._outputs if v.is_number]
        chosen = numbers if outputs is None else self._chosen(outputs)
        y, u = Access(chosen, binary.version_3), given.variables
        if self.kind == "me":
            begun = Start(settings, start, end, rtol, self.log)
            model = ContinuousModel(binary, begun, u)

            def read(t: float, x: np.ndarray, values: list[Any]) -> list[Any]:
                return model.read(y, t, x, values)

            given.check_discrete()
            nominal = [np.full(v.size, v.nominal) for v in self._states]
            scaled = atol * np.concatenate([*nominal, np.ones(0 if nominal else 1)])
            options = Options(
                method, rtol=rtol, atol=scaled, dt=dt, max_step=max_step, max_steps=max_steps
            )
            recorder = Recorder(read, given.at, times)
            jacobian = self._jacobian(model) if self.has_derivatives else None
            try:
                span = (start, end)
                outcome = simulate_model(model, given, span, recorder, options, jacobian)
                model.end()
            finally:
                model.free()
        else:
            stepped = SteppedModel(binary, Start(settings, start, end, None, self.log), u)
            recorder = Recorder(lambda t, x, u: stepped.read(y), given.at, times)
            interface = self.description.interfaces["cs"]
            step = dt or interface.step or self.description.experiment.get("stepSize")
            step = (end - start) / STEPS if step is None else min(step, end - start)
            check_positive(step, "simulate: dt")
            points = communication_points(
                start, end, step, times, interface.variable_steps, self.name
            )
            states = Access(self._states, binary.version_3)
            try:
                outcome = simulate_steps(stepped, given, start, points, recorder, states)
                stepped.end()
            finally:
                stepped.free()
        return self._trajectory(recorder, outcome, u, chosen)

    def _chosen(self, names: Sequence[str]) -> list[FmuVariable]:
        if isinstance(names, str):
            names = [names]
        for name in names:
            if name not in self.description.variables:
                raise ValueError(f"outputs: {self.name} has no variable {name!r}")
            if not self.description.variables[name].is_number:
                raise ValueError(f"outputs: {name!r} is a {self.description.variables[name].type}")
        return [self.description.variables[name] for name in names]

    def _trajectory(
        self, recorder: Recorder, outcome: Any, u: list[FmuVariable], y: list[FmuVariable]
    ) -> Trajectory:
        t = np.array(recorder.t)

        def columns(variables: list[FmuVariable], rows: list[list[Any]]) -> NamedValues | None:
            if not variables:
                return None
            stacked = [
                np.stack([row[k] for row in rows]) if rows else np.zeros((0, *variable.shape))
                for k, variable in enumerate(variables)
            ]
            return name_values(variables, stacked)

        happened = outcome.events
        events = None
        if self.kind == "me":
            size = (len(happened), self.description.size_x)
            before, after = (np.array([e[k] for e in happened]).reshape(size) for k in (2, 3))
            events = {
                "t": np.array([event[0] for event in happened]),
                "event": np.array([event[1] for event in happened], dtype=np.int64),
                "x_before": unpack_values(self._states, before),
                "x_after": unpack_values(self._states, after),
            }
        return Trajectory(
            t,
            unpack_values(
                self._states, np.array(recorder.x).reshape(len(t), self.description.size_x)
            ),
            u=columns(u, recorder.u),
            y=columns(y, recorder.y),
            status=outcome.status,
            message=outcome.message,
            stats={"steps": outcome.steps, "rejected": outcome.rejected},
            events=events,
        )

    def _jacobian(self, model: ContinuousModel) -> Callable[..., np.ndarray]:
        knowns, unknowns = self._references(self.description.states), self._derivatives()
        n = self.description.size_x

        def jacobian(t: float, x: np.ndarray, u: Sequence[Any]) -> np.ndarray:
            columns = [model.tangent(unknowns, knowns, (t, x, u), e, n) for e in np.eye(n)]
            return np.stack(columns, axis=1)

        return jacobian

    def _references(self, names: Sequence[str]) -> np.ndarray:
        return np.array([self.description.variables[n].reference for n in names], dtype=np.uint32)

    def _derivatives(self) -> np.ndarray:
        return self._references(self.description.derivatives)

    # ---- model exchange in solve_ode -----------------------------------------------------------

    @property
    def x0(self) -> NamedValues:
        """States at the start, as the FMU has initialized them with its parameters."""
        binary = self._require("me", "x0")
        model = ContinuousModel(binary, self._start(), [])
        try:
            return unpack_values(self._states, model.begin(self._start().t0, []))
        finally:
            model.free()

    def _start(self) -> Start:
        t0 = self.description.experiment.get("startTime", 0.0)
        return Start(self._settings, t0, None, None, self.log)

    def _shared(self) -> SharedInstance:
        """Return the instance behind `dynamics`, `outputs` and `events`."""
        binary = self._require("me", "dynamics")
        with self._lock:
            if self._host is None:
                self._host = SharedInstance(self, binary)
            return self._host

    def dynamics(self, t: Any, x: Any, u: Mapping[str, Any] | None = None) -> Any:
        """Return the derivative of the states, for :func:`archimedes.solve_ode`.

        It can be part of a larger model. If the FMU offers directional derivatives it has first
        derivatives in `x` and `u`; those in `t` are differences. It cannot go into C code or to a
        GPU, because the binary runs here.

        Parameters
        ----------
        t : float
            Time.
        x : NamedValues or array (n,)
            States, structured as `x0`, or as one vector.
        u : mapping, optional
            Continuous inputs by name; others keep the start values of the FMU.

        Returns
        -------
        NamedValues or array (n,)
            Derivatives, in the structure of `x`.
        """
        host = self._shared()
        flat = pack_values(x, self._states, "x")
        values = pack_values(u, self._chosen_inputs(u), "u")
        names = tuple(u or ())
        slope = host.call("derivatives", names, t, flat, values)
        return host.like(x, slope)

    def outputs(self, t: Any, x: Any, u: Mapping[str, Any] | None = None) -> NamedValues:
        """Return the outputs at a time and state, as numbers by name.

        Parameters
        ----------
        t : float
            Time.
        x : NamedValues or array (n,)
            States, structured as `x0`, or as one vector.
        u : mapping, optional
            Continuous inputs by name.
        """
        host = self._shared()
        values = pack_values(u, self._chosen_inputs(u), "u")
        result = host.call("outputs", tuple(u or ()), t, pack_values(x, self._states, "x"), values)
        return unpack_values(host.y, result)

    def _chosen_inputs(self, u: Mapping[str, Any] | None) -> list[FmuVariable]:
        if u is not None and not isinstance(u, Mapping):
            raise TypeError(f"u is a {type(u).__name__}: give inputs by name, {{'force': 1.0}}")
        for name in u or ():
            variable = self.description.variables.get(name)
            if variable is None or variable.causality != "input" or variable.type not in FLOATS:
                names = [v.name for v in self._inputs if v.type in FLOATS]
                raise ValueError(
                    f"u[{name!r}] is no real input of {self.name}; there are: "
                    f"{', '.join(names) or 'none'}"
                )
        return [self.description.variables[name] for name in u or ()]

    @property
    def events(self) -> list[Event]:
        """Events of the FMU for :func:`archimedes.solve_ode`: of the state, and of time.

        They hold for a model whose state is that of the FMU. The instance keeps discrete states,
        so that one solve runs at a time; where a solve goes back to an earlier time, the events
        before that time are repeated and later ones forgotten.
        """
        host = self._shared()
        return host.events()

    # ---- co-simulation in solve_ode ------------------------------------------------------------

    def sampled(
        self, dt: float | None = None, inputs: Callable[..., Mapping[str, Any]] | None = None
    ) -> Sampled:
        """Return the FMU as a sampled part of a model, for :func:`archimedes.solve_ode`.

        At each sampling time the FMU goes on to that time with the inputs of the sampling time
        before, then takes its new inputs. Its memory are the outputs at that time.

        Parameters
        ----------
        dt : float, optional
            Sampling period; by default the step size that the FMU suggests.
        inputs : callable, optional
            Function ``inputs(t, x, *args)`` that returns inputs by name.
        """
        binary = self._require("cs", "sampled")
        step = dt or self.description.interfaces["cs"].step
        step = step or self.description.experiment.get("stepSize")
        if step is None:
            raise ValueError(f"{self.name}.sampled: the FMU suggests no step size: give dt")
        return SampledFmu(self, binary, inputs).part(float(step))
