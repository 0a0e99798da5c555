"""The binary of an FMU: its C functions, called through ctypes.

One class speaks both versions of the interface. What a function returns as a status becomes a
:class:`FmuError` with the messages that the FMU logged. A crash inside the binary ends the process:
that is why nothing here happens without the user's consent.

FMI 2.0: fmi-standard.org, version 2.0.5; FMI 3.0: version 3.0.2.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from archimedes.errors import ArchimedesError
from archimedes.interchange.fmi.description_reader import (
    DTYPES,
    FmuDescription,
    FmuInterface,
    FmuVariable,
)
from archimedes.interchange.fmi.log_messages import formatting_logger

STATUSES = ("OK", "Warning", "Discard", "Error", "Fatal", "Pending")
OK, WARNING, DISCARD, ERROR, FATAL = range(5)
#: Messages that are kept for errors.
KEPT = 20
#: Rounds of an event after which it is said not to end.
MOST_ROUNDS = 1000

#: How log messages are passed on: (status, category, message).
Log = Callable[[str, str, str], None]

_LOGGER_2 = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p
)
_LOGGER_3 = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p)
_ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
_FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class FmuError(ArchimedesError, RuntimeError):
    """An FMU reported an error, or its binary cannot be used.

    Examples
    --------
    >>> import archimedes as arc
    >>> issubclass(FmuError, arc.ArchimedesError)
    True
    """


class _Callbacks2(ctypes.Structure):
    _fields_ = (
        ("logger", ctypes.c_void_p),
        ("allocateMemory", ctypes.c_void_p),
        ("freeMemory", ctypes.c_void_p),
        ("stepFinished", ctypes.c_void_p),
        ("componentEnvironment", ctypes.c_void_p),
    )


class _EventInfo2(ctypes.Structure):
    _fields_ = (
        ("newDiscreteStatesNeeded", ctypes.c_int),
        ("terminateSimulation", ctypes.c_int),
        ("nominalsOfContinuousStatesChanged", ctypes.c_int),
        ("valuesOfContinuousStatesChanged", ctypes.c_int),
        ("nextEventTimeDefined", ctypes.c_int),
        ("nextEventTime", ctypes.c_double),
    )


@dataclass(frozen=True)
class EventInfo:
    """What an event left: the time of the next one (inf if unknown), and whether all ends."""

    next_time: float
    terminate: bool
    states_changed: bool


def _bytes(text: str) -> bytes:
    return text.encode()


def _text(data: bytes | None) -> str:
    return "" if data is None else data.decode(errors="replace")


#: Binaries that allow one instance in a process, and have it.
_taken: set[str] = set()
_lock = threading.Lock()


class FmuBinary:
    """A loaded binary, in the folder to which its FMU was unpacked."""

    def __init__(self, description: FmuDescription, kind: str, library: Path, folder: Path) -> None:
        self.description, self.folder = description, folder
        self.kind: str = kind
        self.interface: FmuInterface = description.interfaces[kind]
        self.version_3 = description.version == "3.0"
        self.prefix = "fmi3" if self.version_3 else "fmi2"
        try:
            self.library = ctypes.CDLL(str(library))
        except OSError as error:
            raise FmuError(
                f"{description.name}: the binary {library.name} cannot be loaded here: {error}"
            ) from None

    def function(self, name: str) -> Any:
        """Return a function of the interface, without its prefix."""
        try:
            function = self.library[self.prefix + name]
        except AttributeError:
            raise FmuError(
                f"{self.description.name}: the binary has no function {self.prefix}{name}, which "
                f"its interface must have"
            ) from None
        function.restype = ctypes.c_int
        return function


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


class Access:
    """Reads and writes chosen variables, grouped by type, in few calls."""

    def __init__(self, variables: Sequence[FmuVariable], version_3: bool) -> None:
        self.variables = list(variables)
        self.version_3 = version_3
        groups: dict[str, list[int]] = {}
        for k, variable in enumerate(self.variables):
            groups.setdefault(self._type(variable), []).append(k)
        self.groups = [(name, self._group(name, places)) for name, places in groups.items()]

    def _type(self, variable: FmuVariable) -> str:
        if self.version_3:
            return "Int64" if variable.type == "Enumeration" else variable.type
        old = {"Float64": "Real", "Int32": "Integer", "Enumeration": "Integer"}
        return old.get(variable.type, variable.type)

    def _group(self, name: str, places: list[int]) -> Any:
        references = np.array([self.variables[k].reference for k in places], dtype=np.uint32)
        sizes = [self.variables[k].size for k in places]
        ends = list(itertools.accumulate(sizes, initial=0))
        dtypes = {"Real": np.float64, "Integer": np.int32, "Boolean": np.int32}
        if self.version_3:
            dtypes = {**DTYPES}
        buffer = np.zeros(ends[-1], dtype=dtypes.get(name, object))
        spans = [slice(a, b) for a, b in itertools.pairwise(ends)]
        # What each call takes, made once: these calls are most of the time of a small step.
        args = [_pointer(references), ctypes.c_size_t(len(references)), _pointer(buffer)]
        args += [ctypes.c_size_t(buffer.size)] if self.version_3 else []
        return places, references, buffer, spans, args

    def read(self, instance: FmuInstance) -> list[Any]:
        """Return the values, in the order of the variables."""
        values: list[Any] = [None] * len(self.variables)
        for name, (places, references, buffer, spans, args) in self.groups:
            if buffer.dtype == object:
                texts = instance.get_strings(name, references, len(buffer))
                for k, span in zip(places, spans):
                    values[k] = texts[span] if self.variables[k].shape else texts[span][0]
                continue
            instance.call(f"Get{name}", *args)
            for k, span in zip(places, spans):
                variable = self.variables[k]
                array = buffer[span].reshape(variable.shape)
                values[k] = array.astype(DTYPES[variable.type])
        return values

    def write(self, instance: FmuInstance, values: Sequence[Any]) -> None:
        """Set the variables to values, in their order."""
        for name, (places, references, buffer, spans, args) in self.groups:
            if buffer.dtype == object:
                texts = [t for k in places for t in np.ravel(np.array(values[k], dtype=object))]
                instance.set_strings(name, references, texts)
                continue
            for k, span in zip(places, spans):
                buffer[span] = np.ravel(values[k])
            instance.call(f"Set{name}", *args)


class FmuInstance:
    """One instance of an FMU: a model in its state. Free it with :meth:`free`.

    Parameters
    ----------
    binary : FmuBinary
        The loaded binary.
    name : str
        Name of the instance, for messages of the FMU.
    log : callable, optional
        Called with (status, category, message) for each message of the FMU.
    """

    def __init__(self, binary: FmuBinary, name: str, log: Log | None = None) -> None:
        self.binary, self.name, self.log = binary, name, log
        self.description, self.interface = binary.description, binary.interface
        self.version_3 = binary.version_3
        self.messages: list[str] = []
        self._raised: BaseException | None = None
        self.has_failed = False
        self.functions: dict[str, Any] = {}
        self.pointer = ctypes.c_void_p(self._instantiate(log is not None))
        if not self.pointer.value:
            self._release()
            raise FmuError(
                f"{self.description.name}: the binary refused to make an instance{self._said()} "
                f"(is the file's token {self.description.token!r} that of the binary?)"
            )
        self.nx = self.description.size_x
        self.nz = self.description.indicators
        self._finalizer = weakref.finalize(
            self, _free, binary.function("FreeInstance"), self.pointer, self._key, self._keep
        )

    # ---- life ----------------------------------------------------------------------------------

    def _instantiate(self, logging: bool) -> int | None:
        self._key = None
        if self.interface.only_one_instance:
            key = str(self.binary.folder) + self.interface.identifier
            with _lock:
                if key in _taken:
                    raise FmuError(
                        f"{self.description.name} allows one instance in a process, and there is "
                        "one: call close() of the other first"
                    )
                _taken.add(key)
            self._key = key
        resources = self.binary.folder / "resources"
        weak = weakref.ref(self)

        def note(status: int, category: bytes | None, message: bytes | None) -> None:
            instance = weak()
            if instance is not None:
                instance._note(status, _text(category), _text(message))

        if self.version_3:
            logger = _LOGGER_3(lambda env, status, category, text: note(status, category, text))
            #: What the binary points to, which must live as long as it does.
            self._keep: Any = [logger]
            kind = {"me": "ModelExchange", "cs": "CoSimulation"}[self.binary.kind]
            instantiate = self.binary.function(f"Instantiate{kind}")
            instantiate.restype = ctypes.c_void_p
            head: list[Any] = [_bytes(self.name), _bytes(self.description.token)]
            head += [_bytes(f"{resources}/"), ctypes.c_bool(False), ctypes.c_bool(logging)]
            if self.binary.kind == "cs":
                events = self.interface.event_mode
                # With event mode, steps may end early, at events.
                head += [ctypes.c_bool(events), ctypes.c_bool(events), None, ctypes.c_size_t(0)]
            tail = [None, logger] + ([None] if self.binary.kind == "cs" else [])
            return instantiate(*head, *tail)
        logger2 = _LOGGER_2(lambda env, name, status, category, text: note(status, category, text))
        memory, (address, keep) = _Memory(), formatting_logger(logger2)
        callbacks = _Callbacks2(
            address,
            ctypes.cast(memory.allocate, ctypes.c_void_p),
            ctypes.cast(memory.free, ctypes.c_void_p),
            None,
            ctypes.cast(logger2, ctypes.c_void_p),
        )
        self._keep = [logger2, memory, callbacks, *keep]
        instantiate = self.binary.function("Instantiate")
        instantiate.restype = ctypes.c_void_p
        return instantiate(
            _bytes(self.name),
            ctypes.c_int(0 if self.binary.kind == "me" else 1),
            _bytes(self.description.token),
            _bytes(resources.as_uri()),
            ctypes.byref(callbacks),
            ctypes.c_int(0),
            ctypes.c_int(logging),
        )

    def free(self) -> None:
        """Free the instance; nothing can be called afterwards."""
        self._finalizer()

    def _release(self) -> None:
        with _lock:
            _taken.discard(self._key or "")

    @property
    def is_alive(self) -> bool:
        """Whether it can still be called."""
        return self._finalizer.alive

    # ---- calls ---------------------------------------------------------------------------------

    def _note(self, status: int, category: str, message: str) -> None:
        name = STATUSES[status] if 0 <= status < len(STATUSES) else str(status)
        self.messages = [*self.messages[1 - KEPT :], f"[{name}] {message}"]
        if self.log is not None:
            try:
                self.log(name, category, message)
            except BaseException as error:
                self._raised = error

    def _said(self) -> str:
        return f": {' | '.join(self.messages)}" if self.messages else ""

    def call(self, name: str, *args: Any, discard: bool = False) -> int:
        """Call a function with the instance and arguments; return its status, OK or Warning.

        With `discard`, the status Discard is returned as well instead of raised.
        """
        function = self.functions.get(name)
        if function is None:
            function = self.functions[name] = self.binary.function(name)
        if not self._finalizer.alive:
            raise FmuError(f"{self.description.name}: this instance has been freed")
        if self.has_failed:
            raise FmuError(
                f"{self.description.name}: this instance has failed before{self._said()}"
            )
        status = function(self.pointer, *args)
        if self._raised is not None:
            error, self._raised = self._raised, None
            raise error
        if status in (OK, WARNING) or (status == DISCARD and discard):
            return status
        if status != DISCARD:
            self.has_failed = True
        if status == FATAL:
            # After that nothing may be called, not even to free it.
            self._finalizer.detach()
            self._release()
        word = STATUSES[status] if 0 <= status < len(STATUSES) else f"status {status}"
        prefix = self.binary.prefix
        raise FmuError(
            f"{self.description.name}: {prefix}{name} returned {prefix}{word}{self._said()}"
        )

    def get_strings(self, kind: str, references: np.ndarray, size: int) -> list[str]:
        """Return the values of String variables."""
        values = (ctypes.c_char_p * size)()
        args = [_pointer(references), ctypes.c_size_t(len(references)), values]
        self.call(f"Get{kind}", *args, *([ctypes.c_size_t(size)] if self.version_3 else []))
        return [_text(value) for value in values]

    def set_strings(self, kind: str, references: np.ndarray, texts: Sequence[str]) -> None:
        """Set String variables."""
        values = (ctypes.c_char_p * len(texts))(*[_bytes(str(text)) for text in texts])
        args = [_pointer(references), ctypes.c_size_t(len(references)), values]
        self.call(f"Set{kind}", *args, *([ctypes.c_size_t(len(texts))] if self.version_3 else []))

    # ---- initialization ------------------------------------------------------------------------

    def enter_initialization(
        self, start: float, stop: float | None, tolerance: float | None
    ) -> None:
        """Set up the experiment and enter initialization mode."""
        tolerance_args = (tolerance is not None, ctypes.c_double(tolerance or 0.0))
        times = (ctypes.c_double(start), stop is not None, ctypes.c_double(stop or 0.0))
        boolean = ctypes.c_bool if self.version_3 else ctypes.c_int
        args = [boolean(tolerance_args[0]), tolerance_args[1]]
        args += [times[0], boolean(times[1]), times[2]]
        if self.version_3:
            self.call("EnterInitializationMode", *args)
        else:
            self.call("SetupExperiment", *args)
            self.call("EnterInitializationMode")

    def exit_initialization(self) -> None:
        """Leave initialization mode."""
        self.call("ExitInitializationMode")

    def terminate(self) -> None:
        """End the simulation."""
        self.call("Terminate")

    def reset(self) -> None:
        """Go back to the state after instantiation."""
        self.call("Reset")

    # ---- model exchange ------------------------------------------------------------------------

    def set_time(self, t: float) -> None:
        """Set the time."""
        self.call("SetTime", ctypes.c_double(t))

    def set_states(self, x: np.ndarray) -> bool:
        """Set the continuous states (n,); return whether the FMU takes them."""
        if not self.nx:
            return True
        x = np.ascontiguousarray(x, dtype=np.float64)
        status = self.call(
            "SetContinuousStates", _pointer(x), ctypes.c_size_t(self.nx), discard=True
        )
        return status != DISCARD

    def states(self) -> np.ndarray:
        """Return the continuous states (n,)."""
        return self._vector("GetContinuousStates", self.nx)

    def derivatives(self) -> np.ndarray:
        """Return the derivatives of the states (n,); nan where the FMU has none."""
        name = "GetContinuousStateDerivatives" if self.version_3 else "GetDerivatives"
        return self._vector(name, self.nx)

    def indicators(self) -> np.ndarray:
        """Return the event indicators (m,); nan where the FMU has none."""
        return self._vector("GetEventIndicators", self.nz)

    def _vector(self, name: str, size: int) -> np.ndarray:
        """Return what a function computes; nan where the FMU has no values at this point."""
        values = np.zeros(size)
        if size:
            status = self.call(name, _pointer(values), ctypes.c_size_t(size), discard=True)
            if status == DISCARD:
                values[:] = np.nan
        return values

    def enter_event_mode(self) -> None:
        """Enter event mode."""
        self.call("EnterEventMode")

    def enter_continuous_time_mode(self) -> None:
        """Enter continuous-time mode."""
        self.call("EnterContinuousTimeMode")

    def update_discrete_states(self) -> EventInfo:
        """Iterate an event until the discrete states no longer change."""
        changed = False
        for _ in range(MOST_ROUNDS):
            needed, terminate, states_changed, next_time = self._update_once()
            changed |= states_changed
            if terminate or not needed:
                return EventInfo(next_time, terminate, changed)
        raise FmuError(
            f"{self.description.name}: the event does not come to an end: after {MOST_ROUNDS} "
            "rounds the FMU still asks for another"
        )

    def _update_once(self) -> tuple[bool, bool, bool, float]:
        if self.version_3:
            flags = [ctypes.c_bool() for _ in range(5)]
            time = ctypes.c_double()
            self.call("UpdateDiscreteStates", *map(ctypes.byref, flags), ctypes.byref(time))
            needed, terminate, _, states, defined = (flag.value for flag in flags)
            return needed, terminate, states, time.value if defined else np.inf
        info = _EventInfo2()
        self.call("NewDiscreteStates", ctypes.byref(info))
        return (
            bool(info.newDiscreteStatesNeeded),
            bool(info.terminateSimulation),
            bool(info.valuesOfContinuousStatesChanged),
            info.nextEventTime if info.nextEventTimeDefined else np.inf,
        )

    def completed_step(self) -> tuple[bool, bool]:
        """Say that a step is complete; return whether to enter event mode, and whether to end."""
        boolean = ctypes.c_bool if self.version_3 else ctypes.c_int
        event, end = boolean(), boolean()
        self.call("CompletedIntegratorStep", boolean(1), ctypes.byref(event), ctypes.byref(end))
        return bool(event.value), bool(end.value)

    def directional_derivative(
        self, unknowns: np.ndarray, knowns: np.ndarray, seed: np.ndarray, size: int
    ) -> np.ndarray:
        """Return the derivative of unknowns in a direction of the knowns (references)."""
        result, seed = np.zeros(size), np.ascontiguousarray(seed, dtype=np.float64)
        args: list[Any] = [_pointer(unknowns), ctypes.c_size_t(len(unknowns))]
        args += [_pointer(knowns), ctypes.c_size_t(len(knowns)), _pointer(seed)]
        if self.version_3:
            args += [ctypes.c_size_t(seed.size), _pointer(result), ctypes.c_size_t(size)]
        else:
            args.append(_pointer(result))
        self.call("GetDirectionalDerivative", *args)
        return result

    # ---- co-simulation -------------------------------------------------------------------------

    def enter_step_mode(self) -> None:
        """Enter step mode (FMI 3.0 with event mode)."""
        self.call("EnterStepMode")

    def do_step(self, t: float, h: float) -> tuple[float, bool, bool]:
        """Go from t to t + h; return the time reached, and whether an event or the end came."""
        if self.version_3:
            event, end, early = ctypes.c_bool(), ctypes.c_bool(), ctypes.c_bool()
            reached = ctypes.c_double(t + h)
            status = self.call(
                "DoStep",
                *(ctypes.c_double(t), ctypes.c_double(h), ctypes.c_bool(True)),
                *(ctypes.byref(one) for one in (event, end, early, reached)),
                discard=True,
            )
            if status == DISCARD:
                raise self._discarded(t, h, reached.value)
            return reached.value if early.value else t + h, event.value, end.value
        status = self.call(
            "DoStep", ctypes.c_double(t), ctypes.c_double(h), ctypes.c_int(1), discard=True
        )
        if status != DISCARD:
            return t + h, False, False
        # Why: the FMU wants to end (2.0, 4.2.4), or the step was too long for it.
        last, ended = ctypes.c_double(t), ctypes.c_int()
        self.call("GetRealStatus", ctypes.c_int(2), ctypes.byref(last), discard=True)
        self.call("GetBooleanStatus", ctypes.c_int(3), ctypes.byref(ended), discard=True)
        if ended.value:
            return last.value, False, True
        raise self._discarded(t, h, last.value)

    def _discarded(self, t: float, h: float, reached: float) -> FmuError:
        return FmuError(
            f"{self.description.name}: the step of {h:.6g} s at t = {t:.6g} was discarded at "
            f"t = {reached:.6g}{self._said()}: try a smaller communication step dt"
        )


class _Memory:
    """The two functions with which FMUs of version 2.0 get and return memory."""

    def __init__(self) -> None:
        self.blocks: dict[int, Any] = {}
        self.allocate = _ALLOCATE(self._allocate)
        self.free = _FREE(self._free)

    def _allocate(self, count: int, size: int) -> int | None:
        try:
            block = (ctypes.c_uint64 * max(1, -(-count * size // 8)))()
        except (MemoryError, OverflowError):
            return None
        address = ctypes.addressof(block)
        self.blocks[address] = block
        return address

    def _free(self, address: int | None) -> None:
        self.blocks.pop(address or 0, None)


def _free(function: Any, pointer: Any, key: str | None, keep: Any) -> None:
    """Free an instance; `keep` is what the binary may call while it does so."""
    function.restype = None
    function(pointer)
    with _lock:
        _taken.discard(key or "")
    del keep
