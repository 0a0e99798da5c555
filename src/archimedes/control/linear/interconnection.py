"""Systems in series, in parallel, in loops and connected by names; systems with exact delays.

A system with delays is a system whose last inputs are its last outputs some time ago (P. Gahinet,
L. Shampine, "Software for modeling and analysis of linear systems with delays", Proc. ACC, 2004).
It combines like others: what is combined is the system inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from archimedes.checks import check_positive, is_traced
from archimedes.control.linear.delays import chain_matrices, pade_matrices
from archimedes.control.linear.state_space import (
    Choice,
    Gain,
    StateSpace,
    block_diagonal,
    check_channels,
    choose,
    ends,
    gain_system,
    is_gain,
    is_number,
    join_signals,
    read_key,
    shared_step,
)
from archimedes.control.matrix_checks import matrix, real_numbers, vector
from archimedes.tree import field, struct
from archimedes.typing import Array, Scalar

__all__ = [
    "DelaySystem",
    "append",
    "connect",
    "delay",
    "feedback",
    "lft",
    "parallel",
    "series",
    "summing_junction",
]


def as_system(value: Gain, name: str, outputs: int = 1, inputs: int = 1) -> Any:
    """Return a system in state-space form, with its delays where it has some.

    A matrix is a gain without states, and a number its multiple of the identity.
    """
    if isinstance(value, (StateSpace, DelaySystem)):
        return value
    if hasattr(value, "to_ss"):  # a transfer function
        return value.to_ss()
    is_list = isinstance(value, (list, tuple))
    kinds = (StateSpace, DelaySystem)
    if is_list and any(isinstance(s, kinds) or hasattr(s, "to_ss") for s in value):
        raise TypeError(f"{name} are given one after the other, not as a list: write *{name}")
    if not (is_gain(value) or is_list):
        raise TypeError(
            f"{name} must be a StateSpace, a TransferFunction, a matrix or a number, got "
            f"{type(value).__name__}"
        )
    numbers = real_numbers(value, name)
    D = matrix(numbers * np.eye(outputs, inputs) if np.ndim(numbers) == 0 else numbers, name)
    return gain_system(D)


def as_state_space(system: Gain, name: str) -> StateSpace:
    """Return a system in state-space form; raise where it has delays."""
    form = as_system(system, name)
    if isinstance(form, DelaySystem):
        raise TypeError(
            f"{name} has delays: replace them with {name}.pade(3) (continuous time) or "
            f"{name}.discretize(dt). Responses in time and frequency, and margins, are exact"
        )
    return form


@struct
class DelaySystem:
    """A linear system in continuous time with exact delays.

    Make one with `delay`, and combine it with others: ``feedback(plant * delay(0.2), controller)``.
    `frequency_response`, `margins`, `step_response`, `impulse_response`, `forced_response`,
    `dcgain` and the plots of these are exact. Everything else is asked of ``system.pade(3)``, or
    in discrete time, of ``system.discretize(dt)``, where delays are states.

    Parameters
    ----------
    plant : StateSpace
        The system without its delays: its last k inputs are its last k outputs some time ago.
    delays : array (k,)
        Delays in s.

    Examples
    --------
    >>> late = 2.0 * delay(0.5)
    >>> late.ninputs, late.delays, float(late.dcgain()[0, 0])
    (1, array([0.5]), 2.0)
    """

    plant: StateSpace
    delays: Array = field(units="s")

    __array_ufunc__ = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "delays", vector(self.delays, "delays"))
        check_positive(self.delays, "delays", "s")
        if self.plant.dt is not None:
            raise ValueError(
                f"a delay in continuous time cannot be combined with a system in steps of "
                f"{self.plant.dt} s: make it with delay(time, dt={self.plant.dt})"
            )

    #: Delays in seconds are those of continuous time.
    dt = None

    @property
    def nstates(self) -> int:
        """Number of states, those of delays left out."""
        return self.plant.nstates

    @property
    def ninputs(self) -> int:
        """Number of inputs."""
        return self.plant.ninputs - len(self.delays)

    @property
    def noutputs(self) -> int:
        """Number of outputs."""
        return self.plant.noutputs - len(self.delays)

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the states."""
        return self.plant.states

    @property
    def state_units(self) -> tuple[str, ...]:
        """Units of the states."""
        return self.plant.state_units

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return self.plant.inputs[: self.ninputs]

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return self.plant.outputs[: self.noutputs]

    @property
    def input_units(self) -> tuple[str, ...]:
        """Units of the inputs."""
        return self.plant.input_units[: self.ninputs]

    @property
    def output_units(self) -> tuple[str, ...]:
        """Units of the outputs."""
        return self.plant.output_units[: self.noutputs]

    def _replace_delays(self, parts: list[tuple[Array, ...]], plant: StateSpace) -> StateSpace:
        """Return the system with other systems in place of its delays."""
        chain = append(*(StateSpace(A, B, C, D, plant.dt) for A, B, C, D in parts))
        return lft(plant, chain)

    def pade(self, order: int = 3) -> StateSpace:
        """Return the system with Padé approximations of its delays.

        Parameters
        ----------
        order : int, optional
            States for each delay, 3 by default. 0 leaves the delays out.

        Examples
        --------
        >>> delay(0.5).pade(2).nstates
        2
        """
        return self._replace_delays([pade_matrices(d, order) for d in self.delays], self.plant)

    def discretize(self, dt: Scalar, method: str = "zoh") -> StateSpace:
        """Return the system in discrete time, where delays are states.

        Parameters
        ----------
        dt : float
            Length of a step in s, of which all delays must be multiples.
        method : str, optional
            Method of `discretize_linear`, ``"zoh"`` by default. What comes out of a delay inside a
            loop is discretized like an input.
        """
        return self._replace_delays(
            [chain_matrices(_count_steps(d, dt)) for d in self.delays],
            self.plant.discretize(dt, method),
        )

    def dcgain(self) -> Array:
        """Return the gain (p, m) at the frequency zero, where delays do nothing."""
        return self.pade(0).dcgain()

    def part(self, outputs: Choice = None, inputs: Choice = None) -> DelaySystem:
        """Return the system from some of its inputs to some of its outputs.

        Parameters
        ----------
        outputs : str, int or sequence, optional
            Outputs to keep, by name or number. All by default.
        inputs : str, int or sequence, optional
            Inputs to keep, by name or number. All by default.
        """
        i, j = choose(outputs, self.outputs, "outputs"), choose(inputs, self.inputs, "inputs")
        i += range(self.noutputs, self.plant.noutputs)
        j += range(self.ninputs, self.plant.ninputs)
        return replace(self, plant=self.plant.part(i, j))

    def __getitem__(self, key: tuple[Any, Any]) -> DelaySystem:
        """Return ``system[outputs, inputs]``, by name, number or slice."""
        return self.part(*read_key(key))

    def rename(self, **names: Any) -> DelaySystem:
        """Return the system with other names or units.

        Parameters
        ----------
        **names : sequence of str
            As those of `StateSpace.rename`.
        """
        every: dict[str, Any] = {}
        for name, value in names.items():
            texts = (value,) if isinstance(value, str) else tuple(value)
            if name.startswith(("input", "output")):
                texts = texts or _default_names(name, self)
                texts += getattr(self.plant, name)[len(getattr(self, name)) :]
            every[name] = texts
        return replace(self, plant=replace(self.plant, **every))

    def __neg__(self) -> DelaySystem:
        return -1.0 * self

    def __add__(self, other: Gain) -> Any:
        other = other * np.ones((self.noutputs, self.ninputs)) if is_number(other) else other
        return _delayed_sum(self, as_system(other, "gain"))

    __radd__ = __add__

    def __sub__(self, other: Gain) -> Any:
        return self + -other

    def __rsub__(self, other: Gain) -> Any:
        return -self + other

    def __mul__(self, other: Gain) -> Any:
        return _delayed_series(as_system(other, "gain", self.ninputs, self.ninputs), self)

    def __rmul__(self, other: Gain) -> Any:
        return _delayed_series(self, as_system(other, "gain", self.noutputs, self.noutputs))

    def __truediv__(self, other: Gain) -> Any:
        if not is_number(other):
            other = as_state_space(other, "the divisor").inverse()
            return self * other
        return self * (1.0 / np.asarray(other))

    def __str__(self) -> str:
        if is_traced(self.delays):
            return f"DelaySystem with {len(self.delays)} delays"
        listed = ", ".join(f"{d:g}" for d in self.delays)
        title = f"DelaySystem with delays of {listed} s between the last outputs and inputs of"
        return f"{title}\n{self.plant}"

    __repr__ = __str__


def _default_names(name: str, system: DelaySystem) -> tuple[str, ...]:
    kind, size = ("u", system.ninputs) if name.startswith("input") else ("y", system.noutputs)
    return ("",) * size if name.endswith("units") else tuple(f"{kind}[{k}]" for k in range(size))


def _count_steps(time: Scalar, dt: Scalar) -> int:
    """Return how many steps a delay takes."""
    steps = int(np.round(np.asarray(time) / dt))
    if np.abs(steps * dt - time) > 1e-6 * np.asarray(dt):
        raise ValueError(
            f"a delay of {time} s is not a multiple of dt = {dt} s: choose another dt, or use "
            "system.pade(3) first"
        )
    return steps


def delay(time: Scalar, dt: Scalar | None = None, channels: int = 1) -> Any:
    """Return a delay: the output is the input some time ago.

    Parameters
    ----------
    time : float
        Delay in s. In discrete time a multiple of `dt`.
    dt : float, optional
        Length of a step in s. None, the default, for continuous time.
    channels : int, optional
        Number of signals that are delayed, 1 by default.

    Returns
    -------
    DelaySystem or StateSpace
        In continuous time an exact delay; in discrete time a chain of states.

    Examples
    --------
    >>> from archimedes.control import frequency_response, tf
    >>> late = tf([1.0], [1.0, 1.0]) * delay(0.5)
    >>> frequency_response(late, [1.0]).phase[0, 0].round(6)  # -pi/4 - 0.5
    array([-1.285398])
    >>> delay(0.3, dt=0.1).nstates
    3
    """
    if dt is not None:
        check_positive(dt, "dt", "s")
        chain = StateSpace(*chain_matrices(_count_steps(time, dt)), dt=dt)
        return append(*[chain] * channels)
    if not is_traced(time) and time == 0.0:
        return as_system(1.0, "delay", channels, channels)
    none, eye = np.zeros((channels, channels)), np.eye(channels)
    D = np.block([[none, eye], [eye, none]])
    return DelaySystem(as_system(D, "delay"), time * np.ones(channels))


def _split_delays(system: Any) -> tuple[StateSpace, Array]:
    if isinstance(system, DelaySystem):
        return system.plant, system.delays
    return system, np.zeros(0)


def append(*systems: Gain) -> Any:
    """Return systems side by side: all inputs, all outputs, nothing connected.

    Parameters
    ----------
    *systems : StateSpace, array (p, m) or float
        The systems, in order. A matrix or number is a gain.

    Examples
    --------
    >>> lag = StateSpace([[-1.0]], [[1.0]], [[1.0]], [[0.0]])
    >>> append(lag, 2.0).D
    array([[0., 0.],
           [0., 2.]])
    """
    every = [as_system(s, "systems") for s in systems]
    plants, delays = zip(*(_split_delays(s) for s in every))
    A, B, C, D = (block_diagonal([getattr(s, k) for s in plants]) for k in "ABCD")
    count = sum(len(d) for d in delays)
    ins, outs = (_delays_last(every, plants, kind) for kind in ("ninputs", "noutputs"))
    names = {
        k: v for kind in ("state", "input", "output") for k, v in join_signals(every, kind).items()
    }
    for kind in ("input", "output"):
        names[f"{kind}s"] += tuple(f"delay[{k}]" for k in range(count))
        names[f"{kind}_units"] += ("",) * count
    both = StateSpace(A, B[:, ins], C[outs], D[outs][:, ins], shared_step(plants), **names)
    return DelaySystem(both, np.concatenate(delays)) if count else both


def _delays_last(systems: Sequence[Any], plants: Sequence[StateSpace], kind: str) -> list[int]:
    """Return the order of the channels of several plants that puts those of delays last."""
    first: list[int] = []
    last: list[int] = []
    start = 0
    for system, plant in zip(systems, plants):
        own, every = getattr(system, kind), getattr(plant, kind)
        first += range(start, start + own)
        last += range(start + own, start + every)
        start += every
    return first + last


def _join(systems: Sequence[Any], spread: Array, loop: Array, gather: Array) -> Any:
    """Return systems whose inputs are spread @ input + loop @ outputs, and gather @ outputs."""
    plant, delays = _split_delays(append(*systems))
    if k := len(delays):
        spread, gather = (block_diagonal([M, np.eye(k)]) for M in (spread, gather))
        loop = block_diagonal([loop, np.zeros((k, k))])
    closed = _close(plant, loop)
    B, C, D = closed.B @ spread, gather @ closed.C, gather @ closed.D @ spread
    plain: dict[str, Any] = dict.fromkeys(("inputs", "outputs", "input_units", "output_units"), ())
    joined = replace(closed, B=B, C=C, D=D, **plain)
    return DelaySystem(joined, delays) if k else joined


def _is_nameless_delay(system: Any) -> bool:
    """Return whether a system is a delay alone, whose signals have no names of their own."""
    if not isinstance(system, DelaySystem) or system.nstates:
        return False
    return all(getattr(system, k) == _default_names(k, system) for k in ("inputs", "outputs"))


def _delayed_ends(first: Any, last: Any) -> dict[str, Any]:
    """Return names and units of the inputs of one system and the outputs of another.

    A delay leaves signals their names.
    """
    if _is_nameless_delay(first) and first.ninputs == last.ninputs:
        first = last
    elif _is_nameless_delay(last) and first.noutputs == last.noutputs:
        last = first
    return ends(first, last)


def _delayed_series(first: Any, second: Any) -> Any:
    """Return ``second`` behind ``first``, of which one has delays."""
    check_channels(first.noutputs, second.ninputs, "series: outputs and inputs")
    m, p = first.ninputs + second.ninputs, first.noutputs + second.noutputs
    loop = np.eye(m, p, -first.ninputs)
    loop[:, first.noutputs :] = 0.0
    spread, gather = np.eye(m, first.ninputs), np.eye(second.noutputs, p, first.noutputs)
    return _join([first, second], spread, loop, gather).rename(**_delayed_ends(first, second))


def _delayed_sum(first: Any, second: Any) -> Any:
    """Return the sum of the outputs of two systems with a common input; one has delays."""
    check_channels(first.ninputs, second.ninputs, "parallel: inputs")
    check_channels(first.noutputs, second.noutputs, "parallel: outputs")
    p, m = first.noutputs, first.ninputs
    spread, gather = np.concatenate([np.eye(m)] * 2), np.concatenate([np.eye(p)] * 2, axis=1)
    both = _join([first, second], spread, np.zeros((2 * m, 2 * p)), gather)
    return both.rename(**ends(first, first))


def series(*systems: Gain) -> Any:
    """Return systems one behind the other: the first gets the input, the last gives the output.

    ``series(a, b)`` is ``b * a``.

    Parameters
    ----------
    *systems : system, array (p, m) or float
        The systems, in the order in which a signal passes them. Transfer functions alone give a
        transfer function.

    Examples
    --------
    >>> lag = StateSpace([[-1.0]], [[1.0]], [[1.0]], [[0.0]])
    >>> series(lag, lag).poles()
    array([-1., -1.])
    """
    first, *others = _as_operands(systems)
    for second in others:
        first = second * first
    return first


def parallel(*systems: Gain) -> Any:
    """Return systems with a common input whose outputs are added.

    ``parallel(a, b)`` is ``a + b``.

    Parameters
    ----------
    *systems : system, array (p, m) or float
        The systems. Inputs and outputs have the names of the first. A number is added to every
        entry. Transfer functions alone give a transfer function.

    Examples
    --------
    >>> lag = StateSpace([[-1.0]], [[1.0]], [[1.0]], [[0.0]])
    >>> parallel(lag, 1.0).dcgain()
    array([[2.]])
    """
    first, *others = _as_operands(systems)
    for second in others:
        first = first + second
    return first


def _as_operands(systems: Sequence[Gain]) -> list[Any]:
    """Return what operators take: gains are systems unless there are transfer functions."""
    if not systems:
        raise TypeError("give at least one system")
    if any(hasattr(s, "to_ss") for s in systems):
        return list(systems)
    return [as_system(s, "systems") for s in systems]


def feedback(system: Gain, controller: Gain = 1.0, sign: float = -1.0) -> Any:
    """Return the closed loop of a system with another in its feedback path.

    The input of `system` is the reference plus `sign` times the output of `controller`.

    Parameters
    ----------
    system : system, array (p, m) or float
        System in the forward path.
    controller : system, array (m, p) or float, optional
        System in the feedback path; the identity by default. Two transfer functions give a transfer
        function.
    sign : float, optional
        -1, the default, for negative feedback, 1 for positive.

    Examples
    --------
    >>> integrator = StateSpace([[0.0]], [[1.0]], [[1.0]], [[0.0]])
    >>> feedback(integrator, 2.0).poles()
    array([-2.])
    """
    for part in (system, controller):
        if hasattr(part, "to_ss") and not isinstance(controller, (StateSpace, DelaySystem)):
            forward = part.as_fraction(system)
            if forward is not None:
                return forward.feedback(controller, sign)
    G = as_system(system, "system")
    K = as_system(controller, "controller", G.ninputs, G.noutputs)
    check_channels(G.noutputs, K.ninputs, "feedback: outputs of system and inputs of controller")
    check_channels(K.noutputs, G.ninputs, "feedback: outputs of controller and inputs of system")
    n, p = G.ninputs, G.noutputs
    # Inputs (u, y) of both are (r, 0) + loop @ (y, v).
    loop = np.zeros((n + p, p + n))
    loop[:n, p:], loop[n:, :p] = sign * np.eye(n), np.eye(p)
    closed = _join([G, K], np.eye(n + p, n), loop, np.eye(p, p + n))
    return closed.rename(**ends(G, G))


def _close(system: StateSpace, loop: Array) -> StateSpace:
    """Return a system whose inputs are new ones plus ``loop`` times its outputs."""
    E = np.eye(system.ninputs) - loop @ system.D
    right = np.concatenate([loop @ system.C, np.eye(system.ninputs)], axis=1)
    try:
        u = np.linalg.solve(E, right)
    except np.linalg.LinAlgError:
        raise ValueError(
            "the loop is algebraic and has no solution: its gain at infinite frequency is one; "
            "add a lag or a delay"
        ) from None
    n = system.nstates
    return replace(
        system,
        A=system.A + system.B @ u[:, :n],
        B=system.B @ u[:, n:],
        C=system.C + system.D @ u[:, :n],
        D=system.D @ u[:, n:],
    )


def lft(plant: Gain, controller: Gain) -> Any:
    """Return the lower linear fractional transformation of a plant and a controller.

    The last inputs of the plant are the controls, and its last outputs the measurements: as many
    as the controller has outputs and inputs. It is closed with positive feedback.

    Parameters
    ----------
    plant : StateSpace
        Generalized plant, from (disturbances, controls) to (errors, measurements).
    controller : StateSpace, array or float
        Controller, from measurements to controls.

    Examples
    --------
    >>> plant = StateSpace([[0.0]], [[1.0, 1.0]], [[1.0], [1.0]], np.zeros((2, 2)))
    >>> lft(plant, -3.0).A
    array([[-3.]])
    """
    plant = as_system(plant, "plant")
    K = as_system(controller, "controller")
    w, z = plant.ninputs - K.noutputs, plant.noutputs - K.ninputs
    if w < 0 or z < 0:
        raise ValueError(
            f"lft: the controller has {K.ninputs} inputs and {K.noutputs} outputs, more than the "
            f"plant's {plant.noutputs} outputs and {plant.ninputs} inputs"
        )
    m, p = plant.ninputs + K.ninputs, plant.noutputs + K.noutputs
    loop = np.zeros((m, p))
    loop[w : plant.ninputs, plant.noutputs :] = np.eye(K.noutputs)
    loop[plant.ninputs :, z : plant.noutputs] = np.eye(K.ninputs)
    closed = _join([plant, K], np.eye(m, w), loop, np.eye(z, p))
    return closed.rename(
        inputs=plant.inputs[:w],
        outputs=plant.outputs[:z],
        input_units=plant.input_units[:w],
        output_units=plant.output_units[:z],
    )


def summing_junction(inputs: Sequence[str], output: str) -> StateSpace:
    """Return a gain that adds signals, for `connect`.

    Parameters
    ----------
    inputs : sequence of str
        Names of the signals; one that begins with ``"-"`` is subtracted.
    output : str
        Name of the sum.

    Examples
    --------
    >>> summing_junction(["r", "-y"], "e").D
    array([[ 1., -1.]])
    """
    signs = [[-1.0 if name.startswith("-") else 1.0 for name in inputs]]
    names = tuple(name.lstrip("+-") for name in inputs)
    return as_system(np.array(signs), "inputs").rename(inputs=names, outputs=(output,))


def connect(*systems: Any, inputs: Sequence[str] | str, outputs: Sequence[str] | str) -> Any:
    """Return systems connected by the names of their signals.

    An input is driven by the output of the same name. An input named in `inputs` is also driven
    from outside, and inputs of the same name share their signal.

    Parameters
    ----------
    *systems : StateSpace, TransferFunction or DelaySystem
        The systems, whose inputs and outputs have names.
    inputs : sequence of str
        Names of the inputs of the whole.
    outputs : sequence of str
        Names of the outputs of the whole.

    Examples
    --------
    >>> plant = StateSpace([[0.0]], [[1.0]], [[1.0]], [[0.0]], inputs=("u",), outputs=("y",))
    >>> gain = as_system(3.0, "gain").rename(inputs="e", outputs="u")
    >>> loop = connect(plant, gain, summing_junction(["r", "-y"], "e"), inputs=["r"], outputs=["y"])
    >>> loop.poles()
    array([-3.])
    """
    inputs = [inputs] if isinstance(inputs, str) else list(inputs)
    outputs = [outputs] if isinstance(outputs, str) else list(outputs)
    every = [as_system(s, "systems") for s in systems]
    ins = [name for s in every for name in s.inputs]
    outs = [name for s in every for name in s.outputs]
    repeated = sorted({name for name in outs if outs.count(name) > 1})
    if repeated:
        raise ValueError(f"connect: two outputs are called {repeated[0]!r}: rename one of them")
    for name in inputs:
        if name not in ins:
            raise ValueError(f"connect: no system has an input {name!r}; known inputs: {ins}")
    for name in outputs:
        if name not in outs:
            raise ValueError(f"connect: no system has an output {name!r}; known outputs: {outs}")
    loose = [name for name in ins if name not in outs and name not in inputs]
    if loose:
        raise ValueError(
            f"connect: nothing drives the input {loose[0]!r}: name it in inputs, or give an output "
            "this name"
        )
    loop = np.array([[float(i == o) for o in outs] for i in ins]).reshape(len(ins), len(outs))
    spread = np.array([[float(i == name) for name in inputs] for i in ins])
    rows = [outs.index(name) for name in outputs]
    units_in = [unit for s in every for unit in s.input_units]
    units_out = [unit for s in every for unit in s.output_units]
    joined = _join(every, spread.reshape(len(ins), len(inputs)), loop, np.eye(len(outs))[rows])
    return joined.rename(
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        input_units=tuple(units_in[ins.index(name)] for name in inputs),
        output_units=tuple(units_out[k] for k in rows),
    )
