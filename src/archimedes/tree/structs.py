"""The `@struct` decorator: frozen dataclasses that are nodes of trees."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, InitVar
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, Self, TypeVar, dataclass_transform, overload

import numpy as np

from archimedes.errors import StructError, refer_to
from archimedes.tracebacks import boundary
from archimedes.tree import nodes, struct_methods
from archimedes.tree.nodes import field_names, flattener_of, install_fields
from archimedes.tree.struct_methods import is_kind, nearest

__all__ = [
    "InitVar",
    "Struct",
    "field",
    "fields",
    "is_struct",
    "register_dataclass",
    "register_struct",
    "struct",
]


def copy_factory(default: object) -> Callable[[], Any] | None:
    """Return a factory of copies for a default that instances must not share, else None."""
    if isinstance(default, Field):
        return None
    if isinstance(default, np.ndarray):
        return default.copy
    mutable = type(default).__hash__ is None
    if mutable or (dataclasses.is_dataclass(default) and not isinstance(default, type)):
        return functools.partial(copy.deepcopy, default)
    return None


def own_fields(cls: type, kw_only: bool) -> dict[str, Field]:
    """Return the fields and InitVars that the body of `cls` declares, defaults included.

    `dataclasses` itself sorts the annotations, postponed ones too, on a stand-in class without
    bases and without an ``__init__``, so nothing is checked or changed yet.
    """
    annotations = inspect.get_annotations(cls)
    values = {name: cls.__dict__[name] for name in annotations if name in cls.__dict__}
    body = {name: value for name, value in values.items() if isinstance(value, Field)}
    # Without a docstring `dataclasses` would write one, which takes longest of all.
    probe = type(cls.__name__, (), {"__doc__": "-", **body, "__annotations__": dict(annotations)})
    probe.__module__ = cls.__module__
    dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(probe)
    fields: dict[str, Field] = probe.__dataclass_fields__  # type: ignore[attr-defined]
    return {name: f for name, f in fields.items() if not is_kind(f, "_FIELD_CLASSVAR")}


def fields_of_bases(cls: type) -> dict[str, Field]:
    """Return the fields and InitVars of the bases, in the order `dataclasses` gives them."""
    fields: dict[str, Field] = {}
    for base in cls.__mro__[:0:-1]:
        fields.update(base.__dict__.get("__dataclass_fields__", {}))
    return {name: f for name, f in fields.items() if not is_kind(f, "_FIELD_CLASSVAR")}


def copy_defaults(cls: type, kw_only: bool) -> None:
    """Give each instance its own copy of defaults that can be changed in place, such as arrays."""
    for written in cls.__dict__.values():
        if isinstance(written, Field) and (factory := copy_factory(written.default)):
            written.default, written.default_factory = MISSING, factory
    for name, f in own_fields(cls, kw_only).items():
        factory = copy_factory(cls.__dict__.get(name))
        if factory is not None and not is_kind(f, "_FIELD_INITVAR"):
            setattr(cls, name, dataclasses.field(default_factory=factory))


def has_default(f: Field) -> bool:
    return f.default is not MISSING or f.default_factory is not MISSING


def is_given_default(cls: type, name: str) -> bool:
    """Return whether a class, or a base of it, has a default for a field of its own body."""
    written = getattr(cls, name, MISSING)  # a base's default survives a new annotation
    if isinstance(written, Field):
        return has_default(written)
    return written is not MISSING and not isinstance(written, MemberDescriptorType)


def prepare_fields(cls: type, kw_only: bool) -> list[str]:
    """Settle the defaults and the keyword-only fields of `cls` in place.

    A field without a default that inheritance places after one with a default becomes
    keyword-only. Returns the names of inherited fields that had to be declared again for that;
    their annotations are to be removed once the dataclass is made.
    """
    copy_defaults(cls, kw_only)
    own, inherited = own_fields(cls, kw_only), fields_of_bases(cls)
    again = []
    after_inherited = after_own = False
    for name, f in {**inherited, **own}.items():
        if not f.init or f.kw_only is True:
            continue
        if name in own and (has_default(f) or is_given_default(cls, name)):
            after_own = True
            # An override keeps the place of the field it replaces.
            after_inherited = after_inherited or name in inherited
        elif name not in own and has_default(f):
            after_inherited = True
        elif after_inherited or (after_own and name not in own):
            declared = copy.copy(f)
            declared.kw_only = True
            setattr(cls, name, declared)
            if name not in own:
                again.append(name)
                cls.__annotations__[name] = f.type
    return again


T = TypeVar("T")

STRUCTS: set[type] = set()


def field(
    static: bool = False,
    *,
    units: str | None = None,
    limits: tuple[float, float] | None = None,
    metadata: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Any:
    """Describe a field of a struct.

    Parameters
    ----------
    static : bool, optional
        Make the field part of the structure of the tree, instead of its leaves. It is compared by
        content, decides which program is recorded, and is never differentiated.
    units : str, optional
        Unit, such as ``"m/s"``, for people and displays.
    limits : tuple of two floats, optional
        Least and largest value that make sense, in that unit. They are the ends of sliders in
        interactive pages; nothing is clipped to them.
    metadata : mapping, optional
        Further information that is kept with the field.
    **kwargs
        Options of `dataclasses.field`. An array given as ``default`` is copied for each instance.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.tree import field, struct
    >>> @struct
    ... class Wing:
    ...     area: float = field(units="m^2")
    ...     polar: np.ndarray = field(default=np.zeros(2))
    ...     airfoil: str = field(static=True, default="naca0012")
    >>> Wing(16.2)
    Wing(area=16.2, polar=array([0., 0.]), airfoil='naca0012')
    """
    if not isinstance(static, bool):
        raise StructError(
            f"field: static must be True or False, got {static!r}; "
            "for a default value write field(default=...)"
        )
    tags: dict[str, Any] = {"static": static} | ({} if units is None else {"units": units})
    if limits is not None:
        low, high = limits
        if not low < high:
            raise StructError(f"field: limits must be (lower, upper), got {limits!r}")
        tags["limits"] = (float(low), float(high))
    return dataclasses.field(metadata={**(metadata or {}), **tags}, **kwargs)


@overload
def struct(cls: type[T], /, **kwargs: Any) -> type[T]: ...
@overload
def struct(cls: None = None, /, **kwargs: Any) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(field_specifiers=(field, dataclasses.field), frozen_default=True)
def struct(cls: type | None = None, /, **kwargs: Any) -> Any:
    """Turn a class into a frozen dataclass whose instances are nodes of trees.

    Fields are data (leaves or further trees) unless they are declared with ``field(static=True)``.
    The class gets a method ``replace(**changes)``, equality and hash by content, and a repr;
    methods that it defines itself are kept. A field without a default that follows inherited
    defaults is keyword-only.

    Parameters
    ----------
    cls : type, optional
        The class. Without it, `struct` returns a decorator. A struct is returned as it is.
    **kwargs
        Options of `dataclasses.dataclass`.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.tree import struct
    >>> @struct
    ... class Body:
    ...     mass: float = 1.0
    ...     @struct
    ...     class State:
    ...         pos: np.ndarray
    ...         vel: np.ndarray
    >>> x = Body.State(pos=np.zeros(2), vel=np.ones(2))
    >>> x.replace(pos=np.ones(2))
    Body.State(pos=array([1., 1.]), vel=array([1., 1.]))
    """
    if cls is None:
        return functools.partial(struct, **kwargs)
    if not isinstance(cls, type):
        raise StructError(f"struct decorates a class, got {cls!r}")
    if cls in STRUCTS and not kwargs:
        return cls
    options = {"frozen": True, "order": False, "kw_only": False, **kwargs}
    add_methods(cls, options.pop("repr", True), options.pop("eq", True), options["frozen"])
    again = prepare_fields(cls, options["kw_only"])
    try:
        finished: type = dataclasses.dataclass(repr=False, eq=options["order"], **options)(cls)
    except (TypeError, ValueError) as error:
        raise StructError(
            f"struct {cls.__qualname__}: {error}. A required field after one with a default needs "
            "a default too, or field(kw_only=True)."
            if "non-default argument" in str(error)
            else f"struct {cls.__qualname__}: {error}"
        ) from error
    for name in again:
        del finished.__annotations__[name]
    if options["frozen"]:
        _explain_assignment(finished)
    install_fields(finished, *field_names(finished))
    STRUCTS.add(finished)
    return finished


@dataclass_transform(field_specifiers=(field, dataclasses.field), frozen_default=True)
class Struct:
    """Base class of structs: ``class Body(Struct)`` is the struct that the decorator would make.

    Type checkers see the methods of a base class, but not those that a decorator adds: of structs
    that inherit from `Struct` they know ``replace``.

    Parameters
    ----------
    **options
        Options of `struct`, as keywords of the class: ``class Body(Struct, kw_only=True)``.

    Examples
    --------
    >>> from archimedes.tree import Struct
    >>> class Body(Struct):
    ...     mass: float = 1.0
    >>> Body().replace(mass=2.0)
    Body(mass=2.0)
    """

    if TYPE_CHECKING:

        def replace(self, **changes: Any) -> Self:
            """Return a copy with some fields changed."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Turn a subclass into a struct."""
        super().__init_subclass__()
        if options.get("slots"):
            raise StructError(
                f"class {cls.__qualname__}(Struct, slots=True): a class with slots is made anew, "
                "which a base class cannot do. Write @struct(slots=True) above a plain class."
            )
        struct(cls, **options)


def _explain_assignment(cls: Any) -> None:
    """Let assignments to the fields of a frozen struct say what to write instead."""
    refuse = cls.__setattr__

    def assign(self: Any, name: str, value: Any) -> None:
        try:
            refuse(self, name, value)
        except dataclasses.FrozenInstanceError:
            raise dataclasses.FrozenInstanceError(
                f"cannot assign to field {name!r} of {cls.__qualname__}: structs are frozen. "
                f"Write x = x.replace({name}=...)" + refer_to("frozen")
            ) from None

    cls.__setattr__ = boundary(assign)


def add_methods(cls: type, with_repr: bool, with_eq: bool, frozen: bool) -> None:
    """Give `cls` the methods of structs, each only where it has none of its own."""
    if "replace" in inspect.get_annotations(cls):
        raise StructError(
            f"{cls.__qualname__}: a field cannot be called 'replace', because structs have a "
            "method of that name"
        )
    methods: list[tuple[str, Any, Any]] = [
        ("replace", None, struct_methods.replace),
        ("_repr_html_", None, struct_methods.struct_html),
    ]
    if with_repr:
        methods.append(("__repr__", object.__repr__, struct_methods.struct_repr))
    if with_eq and cls.__eq__ in (object.__eq__, struct_methods.struct_eq):
        methods.append(("__eq__", object.__eq__, struct_methods.struct_eq))
        methods.append(
            ("__hash__", object.__hash__, struct_methods.struct_hash if frozen else None)
        )
    for name, plain, ours in methods:
        if getattr(cls, name, None) in (plain, ours):
            setattr(cls, name, ours)


def register_struct(
    cls: type[T],
    flatten_fn: Callable[[Any], tuple[Iterable, Any]] | None = None,
    unflatten_fn: Callable[[Any, list], Any] | None = None,
) -> type[T]:
    """Make a class a struct for the functions of this package, and return it.

    Parameters
    ----------
    cls : type
        A dataclass, whose fields are static if their metadata say so (see `field`), or any other
        class, which needs the two functions.
    flatten_fn, unflatten_fn : callable, optional
        Functions as in :func:`register_node`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from archimedes import tree
    >>> @tree.register_struct
    ... @dataclass
    ... class Point:
    ...     x: float
    ...     y: float
    >>> tree.leaves(Point(1.0, 2.0))
    [1.0, 2.0]
    """
    if flatten_fn is not None and unflatten_fn is not None:
        nodes.register_node(cls, flatten_fn, unflatten_fn)
    elif flatten_fn is not None or unflatten_fn is not None:
        raise StructError("register_struct: give both flatten_fn and unflatten_fn, or neither")
    elif cls not in STRUCTS:
        register_dataclass(cls)
    STRUCTS.add(cls)
    return cls


def register_dataclass(
    cls: type[T],
    data_fields: Sequence[str] | None = None,
    static_fields: Sequence[str] | None = None,
    *,
    meta_fields: Sequence[str] | None = None,
) -> type[T]:
    """Make instances of a dataclass nodes of trees, and return the class.

    Parameters
    ----------
    cls : type
        The dataclass.
    data_fields : sequence of str, optional
        Fields that are children. By default those that are not static.
    static_fields : sequence of str, optional
        Fields that are part of the structure. By default those that are not in `data_fields`; if
        neither is given, the metadata of the fields decide.
    meta_fields : sequence of str, optional
        Another name of `static_fields`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from archimedes import tree
    >>> @dataclass
    ... class Link:
    ...     mass: float
    ...     name: str
    >>> tree.structure(tree.register_dataclass(Link, static_fields=["name"])(1.0, "arm"))
    TreeDef(Link(mass=*, name='arm'))
    """
    if meta_fields is not None and static_fields is not None:
        raise StructError(
            "register_dataclass: static_fields and meta_fields are the same: give one"
        )
    static_fields = meta_fields if static_fields is None else static_fields
    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
        raise StructError(
            f"{cls!r} is not a dataclass: decorate it with @struct or @dataclass, or give its "
            "flatten and unflatten functions to register_node"
        )
    if nodes.FLATTENERS.get(cls) is not None:
        raise StructError(f"{cls.__qualname__} is already registered")
    data, static = field_names(cls)
    known = [*data, *static]
    for name in (*(data_fields or ()), *(static_fields or ())):
        if name not in known:
            raise StructError(f"{cls.__qualname__} has no field {name!r}; {nearest(name, known)}")
    if data_fields is not None or static_fields is not None:
        named = (data_fields or (), static_fields or ())
        data = [n for n in known if n not in named[1]] if data_fields is None else list(named[0])
        static = (
            [n for n in known if n not in named[0]] if static_fields is None else list(named[1])
        )
    if sorted(data + static) != sorted(known):
        raise StructError(
            f"{cls.__qualname__}: each of the fields {known} must be data or static, once; "
            f"got data {data} and static {static}"
        )
    install_fields(cls, data, static)
    return cls


def register_subclass(cls: type) -> bool:
    """List an undecorated subclass of a struct: it has the fields of its base."""
    if dataclasses.is_dataclass(cls) and any(base in STRUCTS for base in cls.__mro__):
        register_struct(cls)
        return True
    return False


nodes.RESOLVERS.append(register_subclass)


def fields(struct: Any) -> tuple[dataclasses.Field, ...]:
    """Return the `dataclasses.Field` objects of a struct, in order.

    Parameters
    ----------
    struct : struct or type
        A struct, or its class.

    Examples
    --------
    >>> from archimedes.tree import field, fields, struct
    >>> @struct
    ... class Tank:
    ...     volume: float = field(units="m^3")
    >>> [(f.name, f.metadata["units"]) for f in fields(Tank)]
    [('volume', 'm^3')]
    """
    if not dataclasses.is_dataclass(struct):
        raise StructError(f"fields needs a struct or a dataclass, got {type(struct).__qualname__}")
    return dataclasses.fields(struct)


def is_struct(x: object) -> bool:
    """Return whether a value is a struct or the class of one.

    Parameters
    ----------
    x : object
        Any value.

    Examples
    --------
    >>> from archimedes.tree import is_struct, struct
    >>> @struct
    ... class Empty: ...
    >>> is_struct(Empty()), is_struct(Empty), is_struct({})
    (True, True, False)
    """
    cls = x if isinstance(x, type) else type(x)
    flattener_of(cls)  # lists an undecorated subclass
    return cls in STRUCTS
