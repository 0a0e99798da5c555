"""Typed configuration of models, read from YAML or JSON and checked field by field."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self, Union, dataclass_transform, get_args

from archimedes.errors import StructError
from archimedes.tree.config_files import read_data, write_data
from archimedes.tree.config_types import check_fields, fail, from_mapping, learn_hints, to_plain
from archimedes.tree.structs import field, struct

__all__ = ["StructConfig", "UnionConfig"]


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
class StructConfig:
    """Base of configurations: a subclass lists typed fields, and may define ``build()``.

    Subclasses are structs made by keyword. Values are checked against the annotations: numbers,
    text, lists, dicts, arrays (from nested lists), ``Literal``, ``X | None``, other
    configurations and structs. ``type="name"`` in the class statement names the alternative in a
    :class:`UnionConfig`; ``extra="ignore"`` drops keys that are not fields instead of raising.
    Errors give the full path: ``engine.thrust: expected a number, got 'x'``.

    >>> from archimedes.tree import StructConfig
    >>> class EngineConfig(StructConfig, type="turbofan"):
    ...     thrust: float
    ...     stages: int = 2
    >>> EngineConfig.from_dict({"type": "turbofan", "thrust": 120e3})
    EngineConfig(thrust=120000.0, stages=2)
    """

    config_type: ClassVar[str | None] = None
    config_extra: ClassVar[str] = "forbid"

    def __init_subclass__(
        cls, type: str | None = None, extra: str | None = None, **kwargs: Any
    ) -> None:
        super().__init_subclass__(**kwargs)
        cls.config_type = type
        if extra not in (None, "forbid", "ignore"):
            raise StructError(
                f"{cls.__qualname__}: extra={extra!r} is not one of 'forbid', 'ignore'"
            )
        cls.config_extra = extra or cls.config_extra
        struct(cls, kw_only=True)
        if type is not None and "type" in cls.__dataclass_fields__:  # type: ignore[attr-defined]
            raise StructError(
                f"{cls.__qualname__}: a field cannot be called 'type' here: the file's 'type' key "
                "names the configuration"
            )
        statement = sys._getframe(1)  # names local to a function are visible only from here
        learn_hints(cls, statement.f_globals, statement.f_locals)
        fill = cls.__init__

        def __init__(self: Any, /, **values: Any) -> None:
            fill(self, **check_fields(cls, values, ""))

        cls.__init__ = __init__  # type: ignore[assignment]

    def build(self) -> Any:
        """Make the object this configuration describes; each subclass defines its own."""
        raise StructError(f"{type(self).__qualname__} does not define build()")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Make a configuration from plain data, such as a parsed file.

        Parameters
        ----------
        data : mapping
            Plain data, such as a parsed file.
        """
        return from_mapping(cls, data, "")

    @classmethod
    def model_validate(cls, data: Mapping[str, Any]) -> Self:
        """Make a configuration from plain data: another name of :meth:`from_dict`.

        Parameters
        ----------
        data : mapping
            Plain data, such as a parsed file.
        """
        return cls.from_dict(data)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data (dicts, lists, numbers, text) from which `from_dict` makes an equal."""
        return to_plain(self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a configuration from a file. Only plain data are ever loaded.

        Parameters
        ----------
        path : path
            A ``.yaml``, ``.yml`` or ``.json`` file.
        """
        data = read_data(path)
        try:
            return cls.from_dict(data)
        except StructError as error:
            raise StructError(f"{os.fspath(path)}: {error}") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write this configuration to a file.

        Parameters
        ----------
        path : path
            A ``.yaml``, ``.yml`` or ``.json`` file.
        """
        write_data(self.to_dict(), path)


if TYPE_CHECKING:
    from typing import Union as UnionConfig
else:

    class UnionConfig:
        """One of several configurations, chosen by the ``type`` key of the file.

        Written as an annotation, ``UnionConfig[A, B]`` or ``UnionConfig[A | B]``; each alternative
        has its own ``type`` name.

        >>> from archimedes.tree import StructConfig, UnionConfig
        >>> class Jet(StructConfig, type="jet"):
        ...     thrust: float
        >>> class Prop(StructConfig, type="prop"):
        ...     power: float
        >>> class Aircraft(StructConfig):
        ...     engine: UnionConfig[Jet, Prop]
        >>> Aircraft.from_dict({"engine": {"type": "prop", "power": 90e3}})
        Aircraft(engine=Prop(power=90000.0))
        """

        def __class_getitem__(cls, options: Any) -> Any:
            options = options if isinstance(options, tuple) else (options,)
            options = tuple(o for entry in options for o in get_args(entry) or (entry,))
            names = []
            for option in options:
                if not isinstance(option, type) or option is type(None):
                    continue  # a forward reference, checked when it is resolved
                if getattr(option, "config_type", None) is None:
                    fail("UnionConfig", 'StructConfig classes with a type="..." each', option)
                names.append(option.config_type)
            if len(set(names)) != len(names):
                raise StructError(f"UnionConfig: the type names must differ, got {names}")
            return Union[options]  # noqa: UP007  strings have no `|`
