"""Trajectory: what a simulation returns."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from archimedes import tree
from archimedes.checks import check_hold, transpose_hint
from archimedes.errors import StructError
from archimedes.simulate.trajectory.columns import (
    PARTS,
    Column,
    LeafLabel,
    add_units,
    check_unit_names,
    label_leaves,
    tree_columns,
)

if TYPE_CHECKING:
    from archimedes.typing import ArrayLike, Tree

__all__ = ["Trajectory"]


class Trajectory:
    """States over time, with what the solver says about them.

    The index goes over the axes of `t`: ``traj[10:20]`` is a Trajectory, ``traj[-1]`` is the last
    state, and ``traj[3]`` of a batch is its fourth trajectory. ``traj["pos[0]"]`` is a column.
    ``traj(t)`` is the state at any time, if the solver kept its interpolants.

    Parameters
    ----------
    t : array (m,) or (N, m)
        Times; one row for each simulation of a batch. A simulation that ended early is filled up
        with nan, which disappears when the simulation is taken out of the batch.
    x : array or tree
        States. Every leaf has the axes of `t` in front.
    u : array or tree, optional
        Inputs, with the same leading axes.
    y : array or tree, optional
        Outputs, with the same leading axes.
    status : int or array (N,), optional
        0 or 1 if the solution succeeded, negative if it failed, as in SciPy. See `SolveInfo`.
    message : str, optional
        The status in words.
    stats : mapping, optional
        Counts of steps, evaluations and rejections.
    dense : callable, optional
        The interpolants.
    events : optional
        What happened at events: times and states, for each event.
    hold : {"zoh", "foh"} or None, optional
        How `u` goes on between the samples: held, or linear. None, the default, if that is not
        known, or if `u` was a function of time.
    units : mapping of str to str, optional
        Units of numbers that have none from ``field(units=...)``, by the name of a leaf or of a
        column: ``{"pos": "m", "u[0]": "N"}``. None by default.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.linspace(0.0, 1.0, 5)
    >>> traj = Trajectory(t, {"pos": t**2, "vel": 2 * t})
    >>> traj[-1]["vel"]
    np.float64(2.0)
    >>> traj.between(0.2, 0.8).t
    array([0.25, 0.5 , 0.75])
    """

    #: The vehicle or robot that moved, where the solver was given a method of it; else None.
    model: Any = None
    #: Units by name, of numbers whose fields have none.
    given_units: Mapping[str, str] = MappingProxyType({})

    def __init__(
        self,
        t: ArrayLike,
        x: Tree,
        *,
        u: Tree = None,
        y: Tree = None,
        status: Any = 0,
        message: str = "",
        stats: Mapping[str, Any] | None = None,
        dense: Any = None,
        events: Tree = None,
        hold: str | None = None,
        units: Mapping[str, str] | None = None,
    ) -> None:
        times: Any = t if hasattr(t, "shape") else np.asarray(t)
        self.t = times if times.dtype == np.float64 else times.astype(np.float64)
        if self.t.ndim == 0:
            raise ValueError("Trajectory: t must have shape (m,), or (N, m) for a batch, got ()")
        self.x = check_leaves(x, self.t.shape, "x")
        self.u = check_leaves(u, self.t.shape, "u")
        self.y = check_leaves(y, self.t.shape, "y")
        self.status = status
        self.message = message
        self.stats = dict(stats or {})
        self.dense = dense
        self.events = events
        if hold is not None:
            check_hold(hold, "Trajectory: hold")
        self.hold = hold
        self.given_units = check_unit_names(units, "Trajectory: units")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "given_units": dict(self.given_units)}  # views are not picklable

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, given_units=MappingProxyType(state["given_units"]))

    # ---- what it is ----------------------------------------------------------------------

    @property
    def success(self) -> Any:
        """Whether the solver reached its end (status not negative); an array for a batch."""
        good = np.asarray(self.status) >= 0
        return bool(good) if good.ndim == 0 else good

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the batch: () for one simulation, (N,) for N of them."""
        return tuple(self.t.shape[:-1])

    @property
    def columns(self) -> list[Column]:
        """Name, units and place of each number of the state."""
        return self.part_columns("x")

    def part_columns(self, part: str, prefix: bool = False) -> list[Column]:
        """Return name, units and place of each number of a part.

        Parameters
        ----------
        part : {"x", "u", "y"}
            State, inputs or outputs. Names of the last two start with their letter.
        prefix : bool, optional
            Whether the names of the state start with ``x``, too. False by default.
        """
        columns = tree_columns(getattr(self, part), self.t.ndim, part, prefix or part != "x")
        return add_units(columns, self.given_units, part)

    def part_labels(self, part: str, prefix: bool = False) -> list[LeafLabel]:
        """Return name and units of each leaf of a part.

        Parameters
        ----------
        part : {"x", "u", "y"}
            State, inputs or outputs. Names of the last two start with their letter.
        prefix : bool, optional
            Whether the names of the state start with ``x``, too. False by default.
        """
        labels = label_leaves(tree.structure(getattr(self, part)), part, prefix or part != "x")
        return add_units(labels, self.given_units, part)

    @property
    def names(self) -> list[str]:
        """Names of the numbers of the state, such as ``pos[0]`` or ``att[3]``."""
        return [column.name for column in self.columns]

    @property
    def units(self) -> dict[str, str]:
        """Units of the numbers of the state by name, "" where none was given."""
        return {column.name: column.units for column in self.columns}

    def __len__(self) -> int:
        return len(self.t)

    # ---- parts of it ---------------------------------------------------------------------

    def __call__(self, t: ArrayLike) -> Any:
        """Return the state at time `t`, a number or an array (k,), from the dense output."""
        if self.dense is None:
            raise ValueError(
                "this trajectory has no dense output, so it is known at the times .t only: ask "
                "the solver for it (dense=True), or for these times (t_eval=...)"
            )
        return self.dense(t)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return self._column(key)
        parts = check_index(key, self.t.ndim)
        x = tree.map(lambda leaf: leaf[parts], self.x)
        if len(parts) == self.t.ndim and is_number(parts[-1]):
            return x
        batch, dense = parts[: self.t.ndim - 1], self.dense
        if dense is not None and batch:  # a sequence
            dense = dense[batch[0] if len(batch) == 1 else batch]
        part = Trajectory(
            self.t[parts],
            x,
            u=tree.map(lambda leaf: leaf[parts], self.u),
            y=tree.map(lambda leaf: leaf[parts], self.y),
            status=self._of_batch(self.status, batch),
            message=self.message,
            stats={name: self._of_batch(value, batch) for name, value in self.stats.items()},
            dense=dense,
            events=tree.map(lambda leaf: self._of_batch(leaf, batch), self.events),
            hold=self.hold,
            units=self.given_units,
        )
        part.model = self.model
        return part._trim() if part.t.ndim == 1 and self.t.ndim > 1 else part

    def between(self, start: float, stop: float) -> Trajectory:
        """Return the samples with ``start <= t <= stop``, whichever way time runs.

        A batch keeps the samples at which any of its simulations is inside.

        Parameters
        ----------
        start, stop : float
            Limits of time.
        """
        low, high = min(start, stop), max(start, stop)
        inside = (self.t >= low) & (self.t <= high)
        keep = np.flatnonzero(inside.reshape(-1, self.t.shape[-1]).any(axis=0))
        return self[(slice(None),) * (self.t.ndim - 1) + (keep,)]

    @property
    def final(self) -> Any:
        """The last state; of a batch the last state of each instance."""
        last = np.maximum(np.sum(~np.isnan(self.t), axis=-1) - 1, 0)
        if not self.batch_shape:
            return self[int(last)]
        index = (*np.indices(self.batch_shape), last)
        return tree.map(lambda leaf: leaf[index], self.x)

    def _of_batch(self, value: Tree, batch: tuple[Any, ...]) -> Any:
        """Take the chosen instances of what has a batch axis; what has none is shared."""
        axes = self.batch_shape[: len(batch)]
        return value[batch] if axes and np.shape(value)[: len(axes)] == axes else value

    def _trim(self) -> Trajectory:
        """Cut the nan times off the end of an instance that has left its batch."""
        count = int(np.sum(~np.isnan(self.t)))
        part = self if count == len(self.t) else self[:count]
        if isinstance(part.events, dict) and "t" in part.events:
            # In a batch, every instance has as many entries as the one with the most events.
            there = np.flatnonzero(~np.isnan(part.events["t"]))
            own = {name: part.events[name] for name in EVENT_TABLE}
            part.events = tree.map(lambda leaf: leaf[there], own)
        return part

    def _column(self, name: str) -> Any:
        """Return a column (..., m) or a leaf (..., m, ...) of state, inputs or outputs."""
        for part in PARTS:
            value = getattr(self, part)
            leaves, treedef = tree.flatten(value)
            for prefix in (False, True) if part == "x" else (True,):
                for leaf, label in zip(leaves, label_leaves(treedef, part, prefix)):
                    if label.name == name:
                        return leaf
                for column in tree_columns(value, self.t.ndim, part, prefix):
                    if column.name == name:
                        return leaves[column.leaf][(..., *column.place)]
        raise KeyError(f"no column {name!r}; there are {self.names} (and inputs u, outputs y)")

    # ---- to and from other forms ---------------------------------------------------------

    def to_pandas(self) -> Any:
        """Return a DataFrame: a column per number, the time as index (run and time for a batch).

        ``frame.attrs["units"]`` has the units by column.
        """
        from archimedes.simulate.trajectory import exports

        return exports.to_pandas(self)

    def to_xarray(self) -> Any:
        """Return a Dataset: a variable per leaf with dimensions (run,) t and its own axes."""
        from archimedes.simulate.trajectory import exports

        return exports.to_xarray(self)

    def to_csv(self, target: Any = None, *, units: bool = False) -> str | None:
        """Write a line for each sample. The numbers can be read back exactly.

        Parameters
        ----------
        target : path or file, optional
            Where to write. Without it the text is returned.
        units : bool, optional
            Name the units in the header, as in ``pos[0] (m)``.
        """
        from archimedes.simulate.trajectory import exports

        return exports.to_csv(self, target, units)

    def to_npz(self, target: Any, *, compressed: bool = False) -> None:
        """Write everything but the interpolants to a NumPy archive, without pickles.

        Parameters
        ----------
        target : path or file
            Where to write.
        compressed : bool, optional
            Compress the archive. False by default.
        """
        from archimedes.simulate.trajectory import array_files

        array_files.write_npz(array_files.to_contents(self), target, compressed)

    def to_hdf5(self, target: Any) -> None:
        """Write everything but the interpolants to an HDF5 file.

        Parts and structs are groups, leaves are datasets with an attribute ``units``.

        Parameters
        ----------
        target : path or file
            Where to write.
        """
        from archimedes.simulate.trajectory import array_files

        array_files.write_hdf5(array_files.to_contents(self), target, "Trajectory.to_hdf5")

    def to_mat(self, target: Any) -> None:
        """Write everything but the interpolants to a MATLAB file (version 5).

        MATLAB's ``load`` gives ``t``, structs ``x``, ``u`` and ``y``, and a struct ``units`` of the
        same form.

        Parameters
        ----------
        target : path or file
            Where to write.
        """
        from archimedes.simulate.trajectory import array_files

        array_files.write_mat(array_files.to_contents(self), target, "Trajectory.to_mat")

    def to_parquet(self, target: Any) -> None:
        """Write a Parquet file: a column per number, with units, as `to_pandas` has them.

        Parameters
        ----------
        target : path or file
            Where to write.
        """
        from archimedes.simulate.trajectory import exports

        exports.to_parquet(self, target)

    def to_netcdf(self, target: Any) -> None:
        """Write a NetCDF 4 file: a variable per leaf, with units, as `to_xarray` has them.

        Parameters
        ----------
        target : path or file
            Where to write.
        """
        from archimedes.simulate.trajectory import exports

        exports.to_netcdf(self, target)

    def to_mcap(self, path: Any, *, scene: Any = None) -> Any:
        """Write an MCAP file, which Foxglove shows, and return its path.

        State, inputs and outputs are the topics ``/x``, ``/u`` and ``/y``, those of the runs of a
        batch ``/run0/x`` and so on. States with ``pos`` and ``att`` are frames on ``/tf``, in the
        axes of their world.

        Parameters
        ----------
        path : path
            Where to write.
        scene : View or Scene, optional
            What ``arc.view(...)`` returned: its bodies are the frames then, z up, and their shapes
            are on ``/scene``.

        Examples
        --------
        >>> import numpy as np
        >>> from archimedes.simulate import Trajectory
        >>> t = np.linspace(0.0, 1.0, 5)
        >>> Trajectory(t, {"height": 5 - 4.9 * t**2}).to_mcap("fall.mcap")  # doctest: +SKIP
        """
        from archimedes.simulate.trajectory import mcap_file

        return mcap_file.to_mcap(self, path, scene)

    @classmethod
    def from_pandas(
        cls, frame: Any, *, like: Tree = None, u_like: Tree = None, y_like: Tree = None
    ) -> Self:
        """Make a trajectory from a DataFrame.

        Parameters
        ----------
        frame : DataFrame
            Table with the time as its index, or in a column ``t``.
        like : tree, optional
            A state, not over time, whose structure the states get. By default that which the table
            describes, or nested dicts.
        u_like, y_like : tree, optional
            The same for inputs and outputs.
        """
        from archimedes.simulate.trajectory import reading

        return cls(**reading.read_pandas(frame, x=like, u=u_like, y=y_like))

    @classmethod
    def from_xarray(
        cls, dataset: Any, *, like: Tree = None, u_like: Tree = None, y_like: Tree = None
    ) -> Self:
        """Make a trajectory from a Dataset.

        Parameters
        ----------
        dataset : Dataset
            What `to_xarray` returned.
        like : tree, optional
            A state, not over time, whose structure the states get. By default that which the
            Dataset describes, or nested dicts.
        u_like, y_like : tree, optional
            The same for inputs and outputs.
        """
        from archimedes.simulate.trajectory import reading

        return cls(**reading.read_xarray(dataset, x=like, u=u_like, y=y_like))

    @classmethod
    def from_csv(
        cls, source: Any, *, like: Tree = None, u_like: Tree = None, y_like: Tree = None
    ) -> Self:
        """Read a trajectory from a table.

        Parameters
        ----------
        source : path or file
            Table with a header line and a column ``t``.
        like : tree, optional
            A state, not over time, whose structure the states get. By default named parts become
            nested dicts.
        u_like, y_like : tree, optional
            The same for inputs and outputs.
        """
        from archimedes.simulate.trajectory import reading

        return cls(**reading.read_csv(source, x=like, u=u_like, y=y_like))

    @classmethod
    def from_npz(
        cls, source: Any, *, like: Tree = None, u_like: Tree = None, y_like: Tree = None
    ) -> Self:
        """Read a trajectory from a NumPy archive.

        Parameters
        ----------
        source : path or file
            What `to_npz` wrote.
        like : tree, optional
            A state, not over time, whose structure the states get. By default that which the file
            describes, or nested dicts.
        u_like, y_like : tree, optional
            The same for inputs and outputs.
        """
        from archimedes.simulate.trajectory import array_files, reading

        contents = array_files.read_npz(source, "from_npz")
        likes = {"x": like, "u": u_like, "y": y_like}
        return cls(**reading.read_contents(contents, source, "from_npz", **likes))

    @classmethod
    def from_hdf5(
        cls, source: Any, *, like: Tree = None, u_like: Tree = None, y_like: Tree = None
    ) -> Self:
        """Read a trajectory from an HDF5 file.

        Parameters
        ----------
        source : path or file
            What `to_hdf5` wrote, or a dataset ``t`` and, in groups ``x``, ``u`` and ``y``, others
            with the time as their first axis.
        like : tree, optional
            A state, not over time, whose structure the states get. By default that which the file
            describes, or nested dicts.
        u_like, y_like : tree, optional
            The same for inputs and outputs.
        """
        from archimedes.simulate.trajectory import array_files, reading

        contents = array_files.read_hdf5(source, "from_hdf5")
        likes = {"x": like, "u": u_like, "y": y_like}
        return cls(**reading.read_contents(contents, source, "from_hdf5", **likes))

    @classmethod
    def from_mat(
        cls, source: Any, *, like: Tree = None, u_like: Tree = None, y_like: Tree = None
    ) -> Self:
        """Read a trajectory from a MATLAB file (version 4 to 7).

        Parameters
        ----------
        source : path or file
            What `to_mat` wrote, or variables ``t``, ``x``, ``u``, ``y``: arrays with a row per
            time, or structs of them.
        like : tree, optional
            A state, not over time, whose structure the states get. By default that which the file
            describes, or nested dicts.
        u_like, y_like : tree, optional
            The same for inputs and outputs.
        """
        from archimedes.simulate.trajectory import array_files, reading

        contents = array_files.read_mat(source, "from_mat")
        likes = {"x": like, "u": u_like, "y": y_like}
        return cls(**reading.read_contents(contents, source, "from_mat", **likes))

    @classmethod
    def from_parquet(
        cls, source: Any, *, like: Tree = None, u_like: Tree = None, y_like: Tree = None
    ) -> Self:
        """Read a trajectory from a Parquet file.

        Parameters
        ----------
        source : path or file
            What `to_parquet` wrote, or a table with a column ``t``.
        like : tree, optional
            A state, not over time, whose structure the states get. By default that which the file
            describes, or nested dicts.
        u_like, y_like : tree, optional
            The same for inputs and outputs.
        """
        from archimedes.simulate.trajectory import reading

        return cls(**reading.read_parquet(source, x=like, u=u_like, y=y_like))

    @classmethod
    def from_netcdf(
        cls, source: Any, *, like: Tree = None, u_like: Tree = None, y_like: Tree = None
    ) -> Self:
        """Read a trajectory from a NetCDF 4 file.

        Parameters
        ----------
        source : path or file
            What `to_netcdf` wrote, or variables with a dimension ``t``.
        like : tree, optional
            A state, not over time, whose structure the states get. By default that which the file
            describes, or nested dicts.
        u_like, y_like : tree, optional
            The same for inputs and outputs.
        """
        from archimedes.simulate.trajectory import reading

        return cls(**reading.read_netcdf(source, x=like, u=u_like, y=y_like))

    def __repr__(self) -> str:
        from archimedes.simulate.trajectory.showing import trajectory_text

        return trajectory_text(self)

    def report(self) -> str:
        """Return everything as text, with first, last, least and greatest value of each number.

        Angles are in degrees.
        """
        from archimedes.simulate.trajectory.showing import trajectory_report

        return trajectory_report(self)

    def _repr_html_(self) -> str:
        from archimedes.simulate.trajectory.showing import trajectory_html

        return trajectory_html(self)


def check_leaves(value: Tree, lead: tuple[int, ...], name: str) -> Any:
    """Return a tree with arrays for leaves, each with the axes of `t` in front."""
    if value is None:
        return None
    leaves, treedef = tree.flatten(value)
    arrays = [leaf if hasattr(leaf, "shape") else np.asarray(leaf) for leaf in leaves]
    for k, array in enumerate(arrays):
        if tuple(array.shape[: len(lead)]) != lead:
            raise StructError(
                f"Trajectory: t has shape {lead}, so the shape of {treedef.paths(name)[k]} must "
                f"start with it, got {tuple(array.shape)}"
                + transpose_hint(array.shape, lead[-1], treedef.paths(name)[k], 0)
            )
    return treedef.unflatten(arrays)


def is_number(part: Any) -> bool:
    return not isinstance(part, slice) and np.ndim(part) == 0


def check_index(key: Any, axes: int) -> tuple[Any, ...]:
    """Return an index over the axes of `t` as a tuple; raise for what a trajectory cannot take."""
    parts = key if isinstance(key, tuple) else (key,)
    if len(parts) > axes:
        raise IndexError(
            f"index {key!r} has {len(parts)} entries and this trajectory {axes} axes: the batch, "
            "if any, and time. Components are in the leaves of .x, or by name as in traj['pos[0]']"
        )
    parts = tuple(p if isinstance(p, slice) else np.asarray(p) for p in parts)
    arrays = [p for p in parts if not isinstance(p, slice)]
    good = all(a.ndim <= 1 and (a.dtype.kind in "iub" or not a.size) for a in arrays)
    if not good or sum(a.ndim for a in arrays) > 1:
        raise IndexError(
            f"index {key!r}: a trajectory takes whole numbers, slices and at most one list of "
            "numbers or truth values; for a span of time write traj.between(t0, t1)"
        )
    return tuple(int(p) if is_number(p) else p for p in parts)


#: The columns of the events of a solve, an entry per event.
EVENT_TABLE = ("t", "event", "x_before", "x_after")
NODE_PARTS = ("t", "x", "u", "y", "status", "stats", "events")


def take_apart(traj: Trajectory) -> tuple[list[Any], None]:
    return [getattr(traj, name) for name in NODE_PARTS], None


def assemble_trajectory(**parts: Any) -> Trajectory:
    """Return the trajectory of parts that are known to fit: nothing is checked."""
    trajectory = object.__new__(Trajectory)
    trajectory.__dict__.update({"u": None, "y": None, "hold": None, **parts})
    return trajectory


def put_together(aux: None, parts: list[Any]) -> Trajectory:
    return assemble_trajectory(**dict(zip(NODE_PARTS, parts)), message="", dense=None)


# A function may return a trajectory wherever it may return a tree. Dense output and message are
# not carried: they would make trajectories of the same form differ in structure.
tree.register_node(
    Trajectory, take_apart, put_together, lambda aux: [f".{name}" for name in NODE_PARTS]
)
