"""Values by the names that an FMU gives them: a mapping that is a node of trees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree

if TYPE_CHECKING:
    from archimedes.interchange.fmi.description_reader import FmuVariable


class NamedValues(Mapping[str, Any]):
    """Values by name, with units: states, inputs and outputs of an FMU.

    Names are those of the FMU, such as ``h``, ``der(h)`` or ``body.r[1]``. Names that Python can
    spell are attributes too. It is a node of trees: solvers, derivatives and trajectories take it
    as they take a struct.

    Parameters
    ----------
    names : sequence of str
        Names.
    values : sequence
        A number or an array for each.
    units : sequence of str, optional
        Unit of each, "" where there is none.

    Examples
    --------
    >>> x = NamedValues(["h", "der(h)"], [1.0, -2.0], ["m", "m/s"])
    >>> x.h, x["der(h)"]
    (1.0, -2.0)
    """

    __slots__ = ("_names", "_units", "_values")

    def __init__(
        self, names: Sequence[str], values: Sequence[Any], units: Sequence[str] = ()
    ) -> None:
        self._names, self._values = tuple(names), tuple(values)
        self._units = tuple(units) or ("",) * len(self._names)

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(f"{name!r}; there are {list(self._names)}")
        return self._values[self._names.index(name)]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._names:
            raise AttributeError(f"no value is called {name!r}; there are {list(self._names)}")
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *filter(str.isidentifier, self._names)]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NamedValues):
            return NotImplemented
        same = (self._names, self._units) == (other._names, other._units)
        return same and all(map(np.array_equal, self._values, other._values))

    __hash__ = None  # type: ignore[assignment]

    @property
    def units(self) -> dict[str, str]:
        """Units by name, "" where there is none."""
        return dict(zip(self._names, self._units))

    def replace(self, **values: Any) -> NamedValues:
        """Return the same with other values.

        Parameters
        ----------
        **values
            New values by name. Names that Python cannot spell go in as ``**{"der(h)": 0.0}``.
        """
        if unknown := set(values) - set(self._names):
            raise KeyError(f"{sorted(unknown)[0]!r}; there are {list(self._names)}")
        new = [values.get(name, value) for name, value in self.items()]
        return NamedValues(self._names, new, self._units)

    def __repr__(self) -> str:
        shown = (
            f"{name}={value}{f' {unit}' if unit else ''}"
            for (name, value), unit in zip(self.items(), self._units)
        )
        return f"NamedValues({', '.join(shown)})"

    @staticmethod
    def leaf_units(aux: Any) -> dict[str, str]:
        """Return the units by name, for tables and plots of trees."""
        return dict(zip(*aux))


tree.register_node(
    NamedValues,
    lambda v: (v._values, (v._names, v._units)),
    lambda aux, values: NamedValues(aux[0], values, aux[1]),
    lambda aux: [f".{name}" for name in aux[0]],
)


# ---- values of variables -----------------------------------------------------------------------


def name_values(variables: Sequence[FmuVariable], values: Sequence[Any]) -> NamedValues:
    """Return values by the names of their variables, with units."""
    return NamedValues([v.name for v in variables], values, [v.unit for v in variables])


def unpack_values(variables: Sequence[FmuVariable], flat: Any) -> NamedValues:
    """Return a vector of all numbers, or vectors (..., n), by the names of the variables."""
    values, at, axes = [], 0, np.shape(flat)[:-1]
    for variable in variables:
        part = flat[..., at : at + variable.size]
        values.append(np.reshape(part, (*axes, *variable.shape)))
        at += variable.size
    return name_values(variables, values)


def pack_values(values: Any, variables: Sequence[FmuVariable], what: str) -> Any:
    """Return values by name, or a vector as it is, as one vector of floats."""
    size = sum(variable.size for variable in variables)
    if not isinstance(values, Mapping):
        if values is None:
            return np.zeros(0)
        if np.shape(values) != (size,):
            raise ValueError(f"{what} has shape {np.shape(values)}, expected ({size},)")
        return values * 1.0
    parts = []
    for variable in variables:
        if variable.name not in values:
            raise ValueError(f"{what} has no {variable.name!r}; it has {list(values)}")
        value = values[variable.name]
        if np.shape(value) != variable.shape:
            raise ValueError(
                f"{what}[{variable.name!r}] has shape {np.shape(value)}, expected {variable.shape}"
            )
        parts.append(np.reshape(value, (-1,)) * 1.0)
    return np.concatenate([np.zeros(0), *parts])
