"""A model that runs inside a page: its state is stepped there, by the program recorded here.

State and controls are each one row of doubles, so that a page moves numbers and knows no structs.
Three functions are recorded: ``step`` (sampled parts that are due act, then one step of fixed
length), ``advance`` (likewise, but an adaptive solver up to a time) and ``show`` (the poses of all
bodies, the vectors of all arrows, the lines of all charts).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.checks import as_array, check_callable, check_positive, check_type, check_whole
from archimedes.display import Readable, for_reading
from archimedes.function import compile, cond
from archimedes.simulate import Event, Sampled, Trajectory, discretize, odeint
from archimedes.simulate.problem.inputs import check_sampled
from archimedes.simulate.trajectory.columns import (
    Column,
    component_names,
    label_leaves,
    tree_columns,
)
from archimedes.spatial import RigidBody
from archimedes.typing import Array, Scalar, Tree
from archimedes.viewer.actors import Flight, Placing, add_actor
from archimedes.viewer.controls import Control, choose_controls
from archimedes.viewer.pulls import Pull
from archimedes.viewer.scene import RECORDING, Chart, Scene

__all__ = ["Simulator"]

#: Whole numbers travel as two doubles, each of which holds half their bits exactly.
HALF = 2.0**32
#: Charts of a state that nobody has chosen from, and lines in one of them.
MOST_CHARTS, MOST_LINES = 6, 7


class Row:
    """A tree as one row of doubles, and back."""

    def __init__(self, value: Tree, root: str, prefix: bool = False) -> None:
        leaves, self.treedef = tree.flatten(value)
        self.arrays = [np.asarray(leaf) for leaf in leaves]
        self.names = [f"{root}{path}" for path in tree.paths(value)]
        for array, name in zip(self.arrays, self.names, strict=True):
            if array.dtype.kind not in "fiub":
                raise TypeError(f"{name} must hold real numbers, got {array.dtype}")
        sizes = [a.size * (2 if a.dtype.kind in "iu" else 1) for a in self.arrays]
        self.starts = [0, *np.cumsum(sizes).tolist()]
        self.bools: set[int] = set()
        self.columns: dict[str, tuple[int, Column]] = {}
        for column in tree_columns(value, 0, root, prefix):
            array = self.arrays[column.leaf]
            if array.dtype.kind in "fb":
                place = int(np.ravel_multi_index(column.place, array.shape)) if array.shape else 0
                self.columns[column.name] = (self.starts[column.leaf] + place, column)
                if array.dtype.kind == "b":
                    self.bools.add(self.starts[column.leaf] + place)

    @property
    def size(self) -> int:
        """Count of doubles."""
        return int(self.starts[-1])

    def pack(self, value: Tree) -> Any:
        """Return a tree of this structure as a row."""
        parts = [np.zeros(0)]
        leaves = tree.leaves(value)
        if len(leaves) != len(self.arrays):
            raise ValueError(f"a step must return {len(self.arrays)} leaves, got {len(leaves)}")
        for leaf, array, name in zip(leaves, self.arrays, self.names):
            if np.shape(leaf) != array.shape:
                raise ValueError(f"{name} has shape {array.shape}, then {np.shape(leaf)}")
            flat = np.reshape(leaf, (array.size,))
            if array.dtype.kind in "iub" and flat.dtype.kind == "f":
                raise TypeError(
                    f"{name} is {array.dtype} at the start and {flat.dtype} after a step: start "
                    "with a float, 1.0 instead of 1"
                )
            if array.dtype.kind in "iu":
                upper = flat // int(HALF)
                parts += [upper.astype(float), (flat - upper * int(HALF)).astype(float)]
            else:
                parts.append(flat.astype(float))
        return np.concatenate(parts)

    def unpack(self, row: Any) -> Any:
        """Return a row as a tree."""
        leaves = []
        for array, start, end in zip(self.arrays, self.starts, self.starts[1:]):
            if array.dtype.kind in "iu":
                middle = start + array.size
                upper, lower = row[start:middle].astype(int), row[middle:end].astype(int)
                flat = upper * int(HALF) + lower
            elif array.dtype.kind == "b":
                flat = row[start:end] != 0.0
            else:
                flat = row[start:end].astype(array.dtype)
            leaves.append(np.reshape(flat, array.shape))
        return tree.unflatten(self.treedef, leaves)


def as_floats(value: Tree) -> Any:
    """Return a tree with floats in place of whole numbers."""
    return tree.map(lambda leaf: leaf * 1.0 if np.asarray(leaf).dtype.kind in "iu" else leaf, value)


class Simulator(Readable):
    """A model for an interactive page: what is stepped, what moves it, what is shown of it.

    `view` makes one from a vehicle, a robot or a function. Make one yourself for a model with
    sampled controllers, events or its own steps.

    Parameters
    ----------
    func : callable
        The model ``func(t, x, *args)``, which returns dx/dt, or with `discrete` the state after
        `dt`. Its further arguments are the memory of `sampled`, then `inputs`, then `parameters`:
        those of them that are given.
    x0 : tree
        State at the start.
    inputs : tree, optional
        Inputs at the start: what a reader moves all the time. A `Pull` among them lets bodies be
        dragged.
    parameters : tree, optional
        Parameters and gains at the start. Whole numbers among inputs and parameters become floats,
        since sliders move them.
    controls : mapping, optional
        By the name of a number in `inputs` or `parameters`: ``(low, high)`` for a slider, True for
        a switch, or a `Control`. By default each of the first numbers has a slider, over the
        ``limits`` of its field or from 0 to twice its value.
    sampled : Sampled or sequence of Sampled, optional
        Digital controllers, as in `solve_ode`. Their periods must be multiples of `dt`.
    discrete : bool, optional
        Whether `func` is itself a step of the length `dt`. False by default.
    dt : float, optional
        Length of a step in s, 0.01 by default.
    t_end : float, optional
        Time in s up to which "run to the end" runs.
    method : str, optional
        Method of the fixed steps, ``"rk4"`` by default.
    events : mapping of str to Event, optional
        Events by name, noticed after the step in which they happen. A terminal one stops the model
        and its name is shown.
    outputs : callable, optional
        ``outputs(t, x, *args)``: a struct or dict of numbers to draw as charts, with the units of
        its fields. A dict within a dict is one chart, whose lines have the names in it.
    charts : sequence of str, optional
        Titles of the charts to show. By default all.
    actor : vehicle, robot or False, optional
        What is drawn, False for nothing. By default what `func` is a method of; for a state with
        ``pos`` and ``att`` a block; otherwise there are charts alone.
    applied : callable, optional
        ``applied(t, x, *args)``: the inputs of the actor that its surfaces and arrows show. By
        default `inputs`, if they are of its kind.
    copies : mapping, optional
        Dispersed copies that run along: ``{"x0": tree, "parameters": tree}``, one or both, with a
        leading axis.
    offset : array (3,), optional
        Shift in m of what is drawn, to put models side by side.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.viewer import Simulator
    >>> def swing(t, x, u, p):
    ...     return np.stack([x[1], u["torque"] - p["gravity"] * np.sin(x[0])])
    >>> pendulum = Simulator(swing, np.array([1.0, 0.0]), inputs={"torque": 0.0},
    ...                      parameters={"gravity": 9.81}, controls={"torque": (-5.0, 5.0)})
    >>> pendulum.run(100).round(6)
    array([-0.980067, -0.571804])
    >>> pendulum.run(100, torque=2.0).round(6)
    array([-0.533606, -0.396537])
    """

    def __init__(
        self,
        func: Callable[..., Any],
        x0: Tree,
        *,
        inputs: Tree = None,
        parameters: Tree = None,
        controls: Mapping[str, Any] | None = None,
        sampled: Sampled | Sequence[Sampled] | None = None,
        discrete: bool = False,
        dt: float = 0.01,
        t_end: float = 60.0,
        method: str = "rk4",
        events: Mapping[str, Event] | None = None,
        outputs: Callable[..., Any] | None = None,
        charts: Sequence[str] | None = None,
        actor: Any = None,
        applied: Callable[..., Any] | None = None,
        copies: Mapping[str, Any] | None = None,
        offset: Any = (0.0, 0.0, 0.0),
    ) -> None:
        check_callable(func, "Simulator: func", "func(t, x, *args)")
        check_positive(dt, "Simulator: dt", "s")
        check_positive(t_end, "Simulator: t_end", "s")
        inputs, parameters = as_floats(inputs), as_floats(parameters)
        x0 = x0 if discrete else as_floats(x0)
        self.func, self.x0, self.discrete, self.method = func, x0, discrete, method
        self.dt, self.t_end = float(dt), float(t_end)
        self.inputs, self.parameters = inputs, parameters
        self.several = sampled is not None and not isinstance(sampled, Sampled)
        self.sampled = () if sampled is None else check_sampled(sampled)
        for k, part in enumerate(self.sampled):
            ratio = (part.dt or 0.0) / self.dt
            if part.dt is None or abs(ratio - round(ratio)) > 1e-9 or ratio < 1.0 - 1e-9:
                raise ValueError(
                    f"Simulator: sampled[{k}] has dt = {part.dt}, which is no multiple of the "
                    f"step dt = {self.dt}: the page runs in steps of one length"
                )
        self.memory = tuple(part.init for part in self.sampled)
        self.args = tuple(arg for arg in (inputs, parameters) if arg is not None)
        self.events = dict(events or {})
        for name, event in self.events.items():
            check_type(event, f"Simulator: events[{name!r}]", Event, "write arc.Event(fn)")
        self.outputs, self.charts, self.applied = outputs, charts, applied
        self.actor = (actor_of(func, x0) if actor is None else actor) or None
        self.offset = as_array(offset, "Simulator: offset")
        self.state = Row((x0, self.memory), "x")
        self.state_names = self._state_names()
        self.control_row = Row(self.args, "args")
        self.pull = self._find_pull()
        self.columns, self.pull_columns = self._control_columns()
        values = np.asarray(self.control_row.pack(self.args))
        self.controls: dict[str, tuple[int, Control]] = choose_controls(
            controls, self.columns, values, self.control_row.bools
        )
        self.copies = self._pack_copies(dict(copies or {}))
        self.placing: Placing | None = None
        self._step = compile(self.step, name="step")

    # ---- what is recorded ----------------------------------------------------------------

    def step(self, t: Scalar, s: Array, c: Array) -> tuple[Any, Any]:
        """Return the row of the state after a step, and which events fired.

        Parameters
        ----------
        t : float
            Time in s.
        s : array (n,)
            Row of the state.
        c : array (m,)
            Row of the controls.
        """
        x, memory, given = self._act(t, s, c)
        if self.discrete:
            new = self.func(t, x, *given)
        else:
            new = discretize(self._dynamics, self.dt, self.method)(t, x, *given)
        return self._finish(t, x, t + self.dt, new, memory, given)

    def advance(self, t: Scalar, t_next: Scalar, s: Array, c: Array) -> tuple[Any, Any]:
        """Return the row of the state at a later time by an adaptive solver, and events.

        Parameters
        ----------
        t : float
            Time in s.
        t_next : float
            Time in s up to which no sampled part is due.
        s : array (n,)
            Row of the state.
        c : array (m,)
            Row of the controls.
        """
        x, memory, given = self._act(t, s, c)
        new = odeint(self._dynamics, (t, t_next), x, args=given)
        return self._finish(t, x, t_next, new, memory, given)

    def show(self, t: Scalar, s: Array, c: Array) -> Any:
        """Return what is seen: poses (7 each) of bodies, arrows (3 each), lines of charts.

        Parameters
        ----------
        t : float
            Time in s.
        s : array (n,)
            Row of the state.
        c : array (m,)
            Row of the controls.
        """
        (x, memory), args = self.state.unpack(s), self.control_row.unpack(c)
        scene = Scene()
        token = RECORDING.set(True)
        try:
            self._draw(scene, "model", t, x, (*self._held(memory), *args))
        finally:
            RECORDING.reset(token)
        parts = [np.zeros(0)]
        for body in scene.bodies:
            parts += [body.position[0], body.attitude[0]]
        parts += [arrow.values[0] for arrow in scene.arrows]
        parts += [chart.values[:, 0] for chart in scene.charts]
        return np.concatenate([as_array(part) for part in parts])

    def _dynamics(self, t: Scalar, x: Tree, *given: Any) -> Any:
        return self.func(t, x, *given)

    def _held(self, memory: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the memory as the model takes it: of one part its own, of several the tuple."""
        if not self.sampled:
            return ()
        return (memory,) if self.several else memory

    def _act(self, t: Scalar, s: Array, c: Array) -> tuple[Any, Any, Any]:
        """Return state, memory after what is due has acted, and all arguments of the model."""
        (x, memory), args = self.state.unpack(s), self.control_row.unpack(c)
        for k, part in enumerate(self.sampled):
            seen = memory if self.several else memory[0]
            act = lambda t, x, seen, args, k=k, part=part: part.act(k, t, x, seen, args)  # noqa: E731
            keep = lambda t, x, seen, args, k=k: seen[k] if self.several else seen  # noqa: E731
            memory = tree.map(lambda leaf: leaf, memory)
            new = cond(part.due(as_array(t)), act, keep, t, x, seen, args)
            memory = (*memory[:k], new, *memory[k + 1 :])
        return x, memory, (*self._held(memory), *args)

    def _finish(self, t: Scalar, x: Tree, t1: Scalar, new: Tree, memory: Any, given: Any) -> Any:
        """Apply events between two states; return the row, and 1.0 for each event that fired."""
        fired = []
        for event in self.events.values():
            before, after = event.fn(t, x, *given), event.fn(t1, new, *given)
            up, down = (before < 0.0) & (after >= 0.0), (before > 0.0) & (after <= 0.0)
            happened = {1: up, -1: down, 0: up | down}[int(np.sign(event.direction))]
            if event.reset is not None:
                after_reset = event.reset(t1, new, *given)
                new = tree.map(lambda a, b, h=happened: np.where(h, a, b), after_reset, new)
            fired.append(np.where(happened, 1.0, 0.0))
        return self.state.pack((new, memory)), np.stack(fired or [0.0 * as_array(t)])

    # ---- what is drawn -------------------------------------------------------------------

    def _draw(self, scene: Scene, name: str, t: Scalar, x: Tree, given: Any) -> None:
        """Add bodies, arrows and charts of one state to a scene."""
        lead = lambda value: tree.map(lambda leaf: np.asarray(leaf)[None], value)  # noqa: E731
        times = np.asarray(as_array(t))[None]
        first, earlier = len(scene.charts), len(scene.bodies)
        if self.actor is not None:
            u = None
            if self.applied is not None:
                u = self.applied(t, x, *given)
            elif isinstance(self.inputs, getattr(type(self.actor), "Input", ())):
                u = given[len(self._held(self.memory))]
            flight = Flight(Trajectory(times, lead(x)), lead(u), None, name, placing=self.placing)
            add_actor(self.actor, scene, flight)
            self.placing = flight.placing
            for body in scene.bodies[earlier:]:
                if body.parent is None:
                    body.position = body.position + self.offset
        elif self.outputs is None:
            scene.charts += charts_of(x, times, "x")[:MOST_CHARTS]
        if self.outputs is not None:
            scene.charts += charts_of(self.outputs(t, x, *given), times, "y")
        if self.charts is not None:
            known = {chart.title: chart for chart in scene.charts[first:]}
            wanted = [title.replace("_", " ") for title in self.charts]
            if missing := [title for title in wanted if title not in known]:
                raise ValueError(f"charts: there is no {missing[0]!r}; there are {list(known)}")
            scene.charts[first:] = [known[title] for title in wanted]

    def add_to_scene(self, scene: Scene, name: str) -> None:
        """Add what is drawn of the state at the start.

        Parameters
        ----------
        scene : Scene
            The scene to add to.
        name : str
            Name of the model.
        """
        self._draw(scene, name, 0.0, self.x0, (*self._held(self.memory), *self.args))

    # ---- the same in Python --------------------------------------------------------------

    def rows(self, values: Mapping[str, Any] | None = None) -> tuple[Array, Array]:
        """Return the rows of the state at the start and of the controls.

        Parameters
        ----------
        values : mapping, optional
            Values of controls by name.
        """
        s = np.asarray(self.state.pack((self.x0, self.memory)), dtype=float)
        c = np.asarray(self.control_row.pack(self.args), dtype=float)
        for name, value in (values or {}).items():
            if name not in self.controls:
                raise ValueError(f"there is no control {name!r}; there are {list(self.controls)}")
            c[self.controls[name][0]] = float(value)
        return s, c

    def run(self, steps: int, **values: float) -> Any:
        """Return the state after some steps, bit for bit the one that a page reaches.

        Parameters
        ----------
        steps : int
            Number of steps of the length `dt`.
        **values
            Values of controls by name. Others keep their first value.
        """
        s, c = self.rows(values)
        for k in range(check_whole(steps, "run: steps", 0)):
            s = self._step(k * self.dt, s, c)[0]
        return self.state.unpack(s)[0]

    # ---- preparation ---------------------------------------------------------------------

    def _state_names(self) -> list[str]:
        """Return the name of each double of the state."""
        names = [""] * self.state.size
        for name, (k, _) in self.state.columns.items():
            # The tree is the pair of state and memories.
            names[k] = name.removeprefix("x[0]").removeprefix("x").lstrip(".") or "x"
        rename = {f"[{k}]": f"x[{k}]" for k in range(self.state.size)}
        return [rename.get(name, name) for name in names]

    def _control_columns(self) -> tuple[dict[str, tuple[int, Column]], dict[str, int]]:
        """Return what can be moved by name, and the places of the numbers of a pull.

        A parameter called as an input is ``parameters.name``.
        """
        found: dict[str, tuple[int, Column]] = {}
        held: dict[str, int] = {}
        start = 0
        named = (("inputs", "u", self.inputs), ("parameters", "p", self.parameters))
        for what, root, value in named:
            if value is None:
                continue
            row = Row(value, root)
            for name, (k, column) in row.columns.items():
                if what == "inputs" and self.pull and name.startswith(self.pull[0]):
                    held[name.removeprefix(self.pull[0])] = start + k
                else:
                    found[f"{what}.{name}" if name in found else name] = (start + k, column)
            start += row.size
        return found, held

    def _find_pull(self) -> tuple[str, Pull] | None:
        """Return the pull among the inputs with its path."""
        if isinstance(self.inputs, Pull):
            return "", self.inputs
        if isinstance(self.inputs, Mapping):
            items = dict(self.inputs)
        else:
            items = {name: getattr(self.inputs, name) for name in vars(self.inputs or object)}
        for name, value in items.items():
            if isinstance(value, Pull):
                return f"{name}.", value
        return None

    def _pack_copies(self, copies: dict[str, Any]) -> tuple[Array, Array] | None:
        """Return the rows of the copies' states (n, ...) and controls (n, ...)."""
        if not copies:
            return None
        if unknown := [name for name in copies if name not in ("x0", "parameters")]:
            raise ValueError(f"Simulator: copies has no {unknown[0]!r}; give x0 and parameters")
        counts = {len(leaf) for leaf in tree.leaves(copies)}
        if len(counts) != 1:
            raise ValueError(f"Simulator: copies have different counts: {sorted(counts)}")
        states, rows = [], []
        for k in range(counts.pop()):
            one = tree.map(lambda leaf, k=k: np.asarray(leaf)[k], copies)
            args = [arg for arg in (self.inputs,) if arg is not None]
            if self.parameters is not None:
                args.append(one.get("parameters", self.parameters))
            states.append(self.state.pack((one.get("x0", self.x0), self.memory)))
            rows.append(self.control_row.pack(tuple(args)))
        return np.array(states), np.array(rows)

    def __repr__(self) -> str:
        return f"Simulator({getattr(self.func, '__qualname__', 'model')}, dt={self.dt:g} s)"


def actor_of(func: Callable[..., Any], x0: Tree) -> Any:
    """Return what is drawn: what `func` is a method of, a block, or nothing."""
    owner = getattr(func, "__self__", None)
    motion = getattr(x0, "motion", x0)
    if owner is not None and (hasattr(owner, "add_to_scene") or hasattr(motion, "pos")):
        return owner
    return RigidBody() if hasattr(motion, "pos") and hasattr(motion, "att") else None


class Lines(NamedTuple):
    """A chart before it is drawn: its title, the unit of its numbers, and its lines by label."""

    title: str
    units: str
    lines: list[tuple[str, Any]]


def lines_of(value: Tree, root: str) -> list[Lines]:
    """Return the charts of a tree: one for each leaf, with the units of the structs.

    The entries of a dict are charts in the order in which they were written; an entry that is a
    dict of arrays is one chart, whose lines have the names in it.
    """
    if isinstance(value, Mapping):
        charts: list[Lines] = []
        for name, entry in value.items():
            title = str(name).replace("_", " ")
            if isinstance(entry, Mapping):
                charts.append(Lines(title, "", [(str(k), v) for k, v in entry.items()]))
            elif len(tree.leaves(entry)) == 1 and tree.leaves(entry)[0] is entry:
                charts.append(Lines(title, "", [("", entry)]))
            else:
                inner = lines_of(entry, "")
                charts += [c._replace(title=f"{title} {c.title}".strip()) for c in inner]
        return charts
    labels = label_leaves(tree.structure(value), root, prefix=False)
    return [
        Lines(label.name.replace("_", " ").lstrip("."), label.units, [("", leaf)])
        for leaf, label in zip(tree.leaves(value), labels, strict=True)
    ]


def charts_of(value: Tree, times: Array, root: str) -> list[Chart]:
    """Return the charts of a tree of one sample."""
    charts = []
    for title, units, lines in lines_of(value, root):
        labels: list[str] = []
        parts = []
        for label, leaf in lines:
            labels += [f"{label}{part}" for part in component_names("", np.shape(leaf))]
            parts.append(np.reshape(as_array(leaf), (-1, 1)))
        shown, unit = for_reading(np.concatenate(parts)[:MOST_LINES], units)
        charts.append(Chart(title, times, shown, labels[:MOST_LINES], unit))
    return charts
