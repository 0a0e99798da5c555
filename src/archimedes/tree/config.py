"""Typed configuration of models, read from YAML or JSON and checked field by field."""

from __future__ import annotations

import collections.abc
import dataclasses
import inspect
import os
import pathlib
import reprlib
import sys
import types
import typing
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, Union, get_args, get_origin

import numpy as np

from archimedes import physical_units
from archimedes.errors import StructError, UnitsError
from archimedes.tree.config_files import find_line, read_data, write_data
from archimedes.tree.struct_methods import nearest
from archimedes.tree.structs import field, struct

__all__ = ["StructConfig", "UnionConfig"]


@typing.dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
class StructConfig:
    """Base of configurations: a subclass lists typed fields, and may define ``build()``.

    Subclasses are structs made by keyword. Values are checked against the annotations: numbers,
    text, lists, dicts, arrays (from nested lists), ``Literal``, ``X | None``, other
    configurations and structs. ``type="name"`` in the class statement names the alternative in a
    :class:`UnionConfig`; ``extra="ignore"`` drops keys that are not fields instead of raising.
    Errors give the full path: ``engine.thrust: expected a number, got 'x'``.

    Where a field has a unit, ``field(units="kg")``, a file may give another one: ``5 lbm`` or
    ``{value: 5, unit: lbm}``. The value is converted to the unit of the field. A bare number is in
    the unit of the field, SI throughout this package.

    >>> from archimedes.tree import StructConfig
    >>> class EngineConfig(StructConfig, type="turbofan"):
    ...     thrust: float
    ...     stages: int = 2
    >>> EngineConfig.from_dict({"type": "turbofan", "thrust": 120e3})
    EngineConfig(thrust=120000.0, stages=2)
    >>> from archimedes.tree import field
    >>> class TankConfig(StructConfig):
    ...     mass: float = field(units="kg")
    >>> TankConfig.from_dict({"mass": "2 t"})
    TankConfig(mass=2000.0)
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
            raise in_file(error, path) from error

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


# ---- values by their annotations ---------------------------------------------------------------
# Each kind of annotation has one reader ``read(value, hint, path)`` in a table. It returns the
# value to store or raises StructError with the full path. Nothing is guessed: an int becomes a
# float where a float is asked for, a list becomes an array or a tuple; text never becomes a number.


OWN: weakref.WeakKeyDictionary[type, dict[str, Any]] = weakref.WeakKeyDictionary()


def evaluate(cls: type, module: Mapping[str, Any], local: Mapping[str, Any]) -> dict[str, Any]:
    """Evaluate the annotations of the fields that the body of `cls` declares.

    Each class is evaluated alone, so that equal names in the modules of two classes of one family
    are not mixed up.
    """
    names = {f.name for f in dataclasses.fields(cls)}
    own = {n: a for n, a in inspect.get_annotations(cls).items() if n in names}
    inner = {n: v for n, v in vars(cls).items() if isinstance(v, type)}
    scope = {**local, cls.__name__: cls, **inner}
    holder = types.SimpleNamespace(__annotations__=own)
    return typing.get_type_hints(holder, dict(module), scope, include_extras=True)


def learn_hints(cls: type, module: Mapping[str, Any], local: Mapping[str, Any]) -> None:
    """Resolve the annotations of `cls` in the scope of its class statement, if they can be now.

    A name that is defined only later is looked up in the module at first use.
    """
    try:
        OWN[cls] = evaluate(cls, module, local)
    except NameError:
        OWN.pop(cls, None)


def field_hints(cls: type) -> dict[str, Any]:
    """Return the resolved annotation of each field of a dataclass, inherited ones included."""
    hints: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if not dataclasses.is_dataclass(base):
            continue
        if base not in OWN:
            module = vars(sys.modules[base.__module__]) if base.__module__ in sys.modules else {}
            try:
                OWN[base] = evaluate(base, module, {})
            except NameError as error:
                raise StructError(
                    f"{base.__qualname__}: the annotation {error.name!r} cannot be found; define "
                    "or import it in the module of the class"
                ) from error
        hints.update(OWN[base])
    return hints


NoneType = type(None)
Reader = Callable[[Any, Any, str], Any]


# Bounded in depth too: a small YAML file can describe an exponentially large list.
SHORT = reprlib.Repr()
SHORT.maxlevel, SHORT.maxstring, SHORT.maxother = 3, 60, 60


class FieldError(StructError):
    """A value of a configuration that does not fit: `path` is its field, `line` is in the file."""

    def __init__(self, path: str, text: str, line: int | None = None) -> None:
        super().__init__(f"{path}: {text}" if path else text)
        self.path = path
        self.line = line


def in_file(error: StructError, file: str | os.PathLike[str]) -> FieldError:
    """Return an error of a configuration with the file, and the line where it is known."""
    line = find_line(file, error.path) if isinstance(error, FieldError) else None
    hint = "" if line is None else f" (line {line})"
    return FieldError("", f"{os.fspath(file)}: {error}{hint}", line)


def fail(path: str, expected: str, value: object) -> typing.NoReturn:
    """Raise an error that says what was expected where."""
    raise FieldError(path or "the configuration", f"expected {expected}, got {SHORT.repr(value)}")


def join(path: str, name: str) -> str:
    """Return the path of a field below a path."""
    return f"{path}.{name}" if path else name


#: Values that plain types are made of, and how.
PLAIN: dict[type, tuple[Any, Callable[[Any], Any]]] = {
    float: ((int, float, np.integer, np.floating), float),
    int: ((int, np.integer), int),
    bool: (bool, bool),
    str: (str, lambda text: text),
    NoneType: (NoneType, lambda none: none),
    pathlib.Path: ((str, pathlib.PurePath), pathlib.Path),
}


def read_plain(value: object, hint: Any, path: str) -> Any:
    """Read a number, a truth value, text, null or the name of a file."""
    kinds, make = PLAIN[hint]
    # A bool is an int to Python.
    if not isinstance(value, kinds) or (isinstance(value, bool) and hint is not bool):
        fail(path, WORDS[hint], value)
    return make(value)


def read_any(value: object, hint: Any, path: str) -> Any:
    """Read anything."""
    return value


def read_literal(value: object, hint: Any, path: str) -> Any:
    """Read one of the values of a ``Literal``."""
    choices = get_args(hint)
    for choice in choices:
        if choice == value and type(choice) is type(value):
            return value
    fail(path, "one of " + ", ".join(map(repr, choices)), value)


def read_array(value: object, hint: Any, path: str) -> np.ndarray:
    """Read nested lists of numbers as a float array, or of the dtype that the annotation names."""
    dtypes = [get_args(a)[0] for a in get_args(hint) if get_origin(a) is np.dtype and get_args(a)]
    dtype = dtypes[0] if dtypes and isinstance(dtypes[0], type) else np.float64
    if not isinstance(value, (np.ndarray, list, tuple)):
        fail(path, "an array (nested lists of numbers)", value)
    if isinstance(value, np.ndarray):
        if not np.can_cast(value.dtype, dtype, "same_kind"):
            fail(path, f"an array of {np.dtype(dtype)}", value)
        return value.astype(dtype)
    check_rows(value, np.dtype(dtype).kind, path)
    return np.array(value, dtype=dtype)


ELEMENT_KINDS = {"f": float, "i": int, "u": int, "b": bool}


def check_rows(value: object, kind: str, path: str) -> tuple[int, ...]:
    """Check that nested lists are rectangular and numeric; return their shape."""
    if not isinstance(value, (list, tuple)):
        if isinstance(value, np.generic):
            value = value.item()
        if kind != "c" or not isinstance(value, complex):
            read(value, ELEMENT_KINDS.get(kind, float), path)
        return ()
    shapes = [check_rows(item, kind, f"{path}[{i}]") for i, item in enumerate(value)]
    if len(set(shapes)) > 1:
        raise FieldError(path, "the rows of an array must have equal lengths")
    return (len(value), *(shapes[0] if shapes else ()))


def read_list(value: object, hint: Any, path: str) -> list:
    """Read a list."""
    item = (get_args(hint) or (Any,))[0]
    return list(read_tuple(value, types.GenericAlias(tuple, (item, ...)), path))


def read_tuple(value: object, hint: Any, path: str) -> tuple:
    """Read a tuple of fixed or any length."""
    items = get_args(hint) or (Any, ...)
    if not isinstance(value, (list, tuple)):
        fail(path, "a list", value)
    if len(items) == 2 and items[1] is Ellipsis:
        items = (items[0],) * len(value)
    if len(items) != len(value):
        fail(path, f"a list of {len(items)}", value)
    return tuple(read(v, t, f"{path}[{i}]") for i, (v, t) in enumerate(zip(value, items)))


def read_dict(value: object, hint: Any, path: str) -> dict:
    """Read a mapping."""
    if not isinstance(value, Mapping):
        fail(path, "a mapping", value)
    key, item = get_args(hint) or (Any, Any)
    return {
        read(k, key, f"key of {path}"): read(v, item, f"{path}[{k!r}]") for k, v in value.items()
    }


def read_union(value: object, hint: Any, path: str) -> Any:
    """Read by the first alternative that fits; configurations are told apart by ``type``."""
    options = get_args(hint)
    if type(value) in options:
        return read(value, type(value), path)
    configs = {o.config_type: o for o in options if getattr(o, "config_type", None)}
    if isinstance(value, Mapping) and len(configs) > 1:
        name = value.get("type")
        if name not in configs:
            known = ", ".join(map(repr, configs))
            expected = f"one of {known}" if "type" in value else f"a 'type' (one of {known})"
            fail(join(path, "type"), expected, name)
        return from_mapping(configs[name], value, path)
    errors = []
    for option in options:
        try:
            return read(value, option, path)
        except StructError as error:
            errors.append(error)
    meant = [e for e, o in zip(errors, options) if o is not NoneType]
    if len(meant) == 1:
        raise meant[0]
    fail(path, " or ".join(dict.fromkeys(map(describe, options))), value)


def read_instance(value: object, hint: Any, path: str) -> Any:
    """Read a value of a class: an instance of it or, for a dataclass, a mapping of its fields."""
    cls = get_origin(hint) or hint
    if not isinstance(cls, type):
        raise StructError(f"{path}: a configuration cannot hold values of type {hint!r}")
    if dataclasses.is_dataclass(cls) and isinstance(value, Mapping):
        return from_mapping(cls, value, path)
    try:
        fits = isinstance(value, cls)
    except TypeError as error:
        raise StructError(f"{path}: values of type {cls.__qualname__} cannot be checked") from error
    return value if fits else fail(path, describe(hint), value)


READERS: dict[Any, Reader] = {
    **dict.fromkeys(PLAIN, read_plain),
    **dict.fromkeys((Any, object), read_any),
    Literal: read_literal,
    np.ndarray: read_array,
    **dict.fromkeys((list, collections.abc.Sequence), read_list),
    tuple: read_tuple,
    **dict.fromkeys((dict, collections.abc.Mapping), read_dict),
    **dict.fromkeys((Union, types.UnionType), read_union),
}

WORDS = {float: "a number", int: "an integer", bool: "true or false", str: "text"}
WORDS |= {NoneType: "null", list: "a list", tuple: "a list", dict: "a mapping"}
WORDS |= {np.ndarray: "an array", pathlib.Path: "a file name"}


def describe(hint: Any) -> str:
    """Return how a message calls a type."""
    hint = expand(hint)
    base = get_origin(hint) or hint
    name = getattr(base, "__qualname__", str(base))
    return WORDS.get(base) or f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def expand(hint: Any) -> Any:
    """Look through ``Annotated`` and through aliases made by Python 3.12's ``type`` statement."""
    base, arguments = get_origin(hint) or hint, get_args(hint)
    if base is typing.Annotated:
        return expand(arguments[0])
    if hasattr(base, "__value__"):
        return expand(base.__value__[arguments] if arguments else base.__value__)
    return hint


def read(value: object, hint: Any, path: str) -> Any:
    """Return `value` as the annotation `hint` asks, or raise StructError naming `path`."""
    hint = expand(hint)
    return READERS.get(get_origin(hint) or hint, read_instance)(value, hint, path)


# ---- quantities --------------------------------------------------------------------------------


def is_numeric(hint: Any) -> bool:
    """Return whether a field holds numbers and never text: ``5 kg`` can only be a quantity."""
    hint = expand(hint)
    base, arguments = get_origin(hint) or hint, get_args(hint)
    if base in (Union, types.UnionType):
        return any(map(is_numeric, arguments)) and not {str, Any, object} & {*arguments}
    if base in (list, tuple, collections.abc.Sequence):
        return bool(arguments) and all(is_numeric(a) for a in arguments if a is not Ellipsis)
    return base in (float, np.ndarray)


def in_unit(value: Any, units: str | None, path: str) -> Any:
    """Return a value with its quantities (``5 lbm``, ``{value: 5, unit: lbm}``) as numbers.

    Numbers, and what is neither a number nor a quantity, are returned as they are.

    Parameters
    ----------
    value : number, str, list or mapping
        From a file.
    units : str or None
        Unit of the field that it is for. The result is in this unit.
    path : str
        The field, for messages.
    """
    if isinstance(value, (list, tuple)):
        return type(value)(in_unit(v, units, f"{path}[{i}]") for i, v in enumerate(value))
    try:
        if isinstance(value, Mapping) and {*value} in ({"value", "unit"}, {"value", "units"}):
            text = value.get("unit", value.get("units"))
            return convert(value["value"], text, units, path)
        if isinstance(value, str):
            number, text = physical_units.parse_quantity(value)
            return convert(number, text, units, path) if text else value
    except UnitsError as error:
        if units is None or (isinstance(value, str) and not value.strip()[:1].isdigit()):
            return value  # which is read as what it is: the error says what is expected
        raise FieldError(path, f"{error}; expected {units or 'a plain number'}") from error
    return value


def convert(value: Any, text: str, units: str | None, path: str) -> Any:
    """Return numbers in the unit of their field, or raise an error that names both units."""
    if isinstance(value, (list, tuple)):
        return [convert(v, text, units, f"{path}[{i}]") for i, v in enumerate(value)]
    given = physical_units.parse_unit(text)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        fail(path, "a number before the unit", value)
    if units is None:
        raise FieldError(
            path,
            f"expected a number, got {value:g} {text}: the field has no unit; give a bare number, "
            f'or declare field(units="{text}")',
        )
    expected = physical_units.parse_unit(units)
    if given == expected:
        return float(value)
    if not given.same_dimension(expected):
        in_si = "" if str(given.si) == text else f" ({given.si} in SI)"
        wanted = f"a quantity in {units}" if units else "a plain number"
        raise FieldError(path, f"expected {wanted}, got {value:g} {text}{in_si}")
    return float(physical_units.from_si(physical_units.to_si(value, given), expected))


def check_fields(cls: type, values: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return checked constructor arguments of a dataclass from a mapping, defaults included."""
    hints = field_hints(cls)
    known = {f.name: f for f in dataclasses.fields(cls) if f.init}
    for name in values if getattr(cls, "config_extra", "forbid") == "forbid" else ():
        if name not in known:
            hint = nearest(name, known)
            raise FieldError(join(path, str(name)), f"unknown key of {cls.__qualname__}; {hint}")
    result = {}
    for name, f in known.items():
        if name in values:
            value = values[name]
        elif f.default is not dataclasses.MISSING:
            value = f.default
        elif f.default_factory is not dataclasses.MISSING:
            value = f.default_factory()
        else:
            raise FieldError(
                join(path, name), f"missing; {cls.__qualname__} needs {describe(hints[name])}"
            )
        if type(value) is not float and is_numeric(hints[name]):
            value = in_unit(value, f.metadata.get("units"), join(path, name))
        result[name] = read(value, hints[name], join(path, name))
    return result


def from_mapping(cls: type, value: object, path: str) -> Any:
    """Make a dataclass, struct or configuration from a mapping of its fields."""
    if not isinstance(value, Mapping):
        fail(path, f"a mapping of the fields of {cls.__qualname__}", value)
    values = dict(value)
    expected = getattr(cls, "config_type", None)
    if expected is not None and values.pop("type", expected) != expected:
        fail(join(path, "type"), repr(expected), value["type"])
    arguments = check_fields(cls, values, path)
    try:
        return cls(**arguments)
    except (TypeError, ValueError) as error:  # from a __post_init__ that checks further
        raise FieldError(path or cls.__qualname__, str(error)) from error


def plain_dataclass(value: Any) -> dict:
    """Return a dataclass as a dict of plain data, with its type if it has one."""
    named = {"type": value.config_type} if getattr(value, "config_type", None) else {}
    names = [f.name for f in dataclasses.fields(value) if f.init]
    return named | {name: to_plain(getattr(value, name)) for name in names}


def to_plain(value: object) -> Any:
    """Return `value` as plain data that YAML and JSON can hold: the inverse of `read`."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain_dataclass(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, Mapping):
        return {to_plain(k): to_plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(v) for v in value]
    return str(value) if isinstance(value, pathlib.PurePath) else value
