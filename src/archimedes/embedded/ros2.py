"""Packages of ROS 2: a node that subscribes to inputs, steps at a rate and publishes results.

Each argument and each result is a topic with a message of its own, whose fields are those of the
struct, with units and descriptions as comments. Messages have flat arrays: matrices go row by row,
as in C. Names follow the rules of rosidl (https://design.ros2.org/articles/
legacy_interface_definition.html).
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Container, Sequence
from typing import NamedTuple

import numpy as np

from archimedes.embedded.block_signals import Signal, find_signals
from archimedes.embedded.c_model import Model
from archimedes.embedded.c_structs import Field, Struct
from archimedes.embedded.c_text import KEYWORDS, ascii_text
from archimedes.errors import CodegenError

#: Types of messages and of parameters, by those of C.
TYPES = {"double": "float64", "float": "float32", "int64_t": "int64", "int32_t": "int32"}
PARAMETERS = {"double": "double", "float": "double", "int64_t": "int64_t", "int32_t": "int64_t"}
#: Names of topics and parameters that the node has for itself.
OWN = frozenset(("rate", "use_sim_time"))
#: Names that rosidl takes, but whose messages do not compile in C++ or load in Python.
NO_FIELDS = KEYWORDS | frozenset(keyword.kwlist)


def ros2_words(model: Model, parameters: Sequence[str]) -> dict[str, str]:
    """Return what the templates of the target need, and the messages as further files."""
    signals = find_signals(model, parameters)
    package = package_name(model.name)
    messages, inputs, outputs = _find_topics(model, parameters)
    params: list[tuple[str, Signal]] = []
    for signal in signals.parameters:
        params.append((_unique(_lower(signal.name), [name for name, _ in params]), signal))
    if clash := [name for name, _ in params if name in OWN]:
        raise CodegenError(f"codegen: the parameter {clash[0]!r} is the node's own: rename it")
    return {
        "package": package,
        "message_files": "\n".join(f'  "msg/{kind}.msg"' for kind in messages.texts),
        "includes": "\n".join(
            f'#include "{package}/msg/{header_name(kind)}.hpp"' for kind in messages.texts
        ),
        "rate_default": "100.0",
        "declare_parameters": "\n".join(_declare(name, s) for name, s in params),
        "set_parameters": "\n".join(_assign(name, s) for name, s in params),
        "subscribe": "\n".join(_subscribe(package, topic) for topic in inputs),
        "advertise": "\n".join(_advertise(package, topic) for topic in outputs),
        "publish": "\n".join(_publish(package, topic) for topic in outputs),
        "members": "\n".join(
            f"  rclcpp::{holder}<{package}::msg::{topic.kind}>::SharedPtr {topic.member};"
            for holder, topics in (("Subscription", inputs), ("Publisher", outputs))
            for topic in topics
        ),
        "converters": messages.converters(),
        "update": f"{model.name}_carry(&in_, &out_);" if model.carries else "// It keeps no state.",
        "parameter_values": "\n".join(f"    {name}: {_yaml(s)}" for name, s in params),
        "topic_list": "\n".join(
            f"| `~/{topic.name}` | {word} | `{package}/msg/{topic.kind}` |"
            for word, topics in (("subscribed", inputs), ("published", outputs))
            for topic in topics
        ),
    }


def ros2_files(model: Model, parameters: Sequence[str]) -> dict[str, str]:
    """Return the message files, by their path in the package."""
    messages, _, _ = _find_topics(model, parameters)
    return {f"msg/{kind}.msg": text for kind, text in messages.texts.items()}


class Topic(NamedTuple):
    """A topic: its name, the type of its messages, and the argument or result that it is."""

    name: str
    kind: str
    field: Field
    member: str


def _find_topics(
    model: Model, parameters: Sequence[str]
) -> tuple[Messages, list[Topic], list[Topic]]:
    """Return the messages, and the topics of inputs and results."""
    messages, used = Messages(model, package_name(model.name)), list[str]()
    inside = {*parameters, *(argument for argument, _ in model.state)}
    given = [f for f in model.inputs.struct.fields if model.inputs.members and f.size]
    given = [field for field in given if field.name not in inside]
    made = [f for f in model.outputs.struct.fields if model.outputs.members and f.size]
    sides: list[list[Topic]] = []
    for side, own, other in (("in", given, made), ("out", made, given)):
        others = {_lower(field.name) for field in other}
        topics: list[Topic] = []
        for field in own:
            name = _lower(field.name)
            used.append(_unique(f"{name}_{side}" if name in others else name, used))
            member = f"{side}_{field.name}_"
            topics.append(Topic(used[-1], messages.of(field), field, member))
        sides.append(topics)
    return messages, sides[0], sides[1]


def _unique(name: str, used: Container[str]) -> str:
    """Return a name that is not used yet."""
    base, k = name, 2
    while name in used:
        name, k = f"{base}{k}", k + 1
    return name


def package_name(name: str) -> str:
    """Return the name of the package: lower case, without double underscores.

    >>> package_name("Wing__Model")
    'wing_model_node'
    """
    return f"{_lower(name)}_node"


def _lower(name: str) -> str:
    """Return a name that rosidl takes for a field.

    >>> _lower("v_B"), _lower("M__x_"), _lower("_2a")
    ('v_b', 'm_x', 'f2a')
    """
    plain = re.sub(r"_+", "_", name.lower()).strip("_") or "f"
    return plain if plain[0].isalpha() else f"f{plain}"


def _field_name(name: str) -> str:
    """Return the name of a field of a message, which is a keyword in no language.

    >>> _field_name("J_B"), _field_name("lambda"), _field_name("class_")
    ('j_b', 'lambda_value', 'class_value')
    """
    plain = _lower(name)
    return f"{plain}_value" if plain in NO_FIELDS else plain


def header_name(kind: str) -> str:
    """Return the name of a message's header, as rosidl derives it.

    >>> header_name("F16ModelX2"), header_name("SpinBody")
    ('f16_model_x2', 'spin_body')
    """
    words = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", kind)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", words).lower()


def _camel(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in _lower(name).split("_"))


class Messages:
    """The messages of a package, each once, with what converts them from and to C structs."""

    def __init__(self, model: Model, package: str) -> None:
        self.model, self.package = model, package
        self.texts: dict[str, str] = {}
        self.kinds: dict[str, tuple[str, Struct]] = {}
        self.fields: dict[str, list[tuple[str, Field]]] = {}

    def of(self, field: Field) -> str:
        """Return the message of an argument or a result."""
        if field.struct is not None:
            return self._of_struct(field.struct)
        text = self._head(field.text or field.name) + self._line(field, "data") + "\n"
        name = f"{_camel(self.model.name)}{_camel(field.name)}"
        if self.texts.get(name) == text:
            return name  # a state goes in and comes out
        kind = _unique(name, self.texts)
        self.texts[kind] = text
        return kind

    def _of_struct(self, struct: Struct) -> str:
        if struct.c_name in self.kinds:
            return self.kinds[struct.c_name][0]
        lines: list[str] = []
        fields: list[tuple[str, Field]] = []
        used: set[str] = set()
        for field in struct.fields:
            if not field.size:
                continue
            name = _unique(_field_name(field.name), used)
            used.add(name)
            fields.append((name, field))
            lines.append(self._line(field, name))
        kind = _unique(_camel(struct.c_name.removesuffix("_t")), self.texts)
        self.kinds[struct.c_name] = kind, struct
        self.fields[kind] = fields
        self.texts[kind] = self._head(struct.origin) + "\n".join(lines) + "\n"
        return kind

    def _head(self, text: str) -> str:
        return f"# {self.model.notice}\n# {ascii_text(text)}\n"

    def _line(self, field: Field, name: str) -> str:
        if field.struct is not None:
            text = f"{self._of_struct(field.struct)} {name}"
        else:
            leaf = field.shape
            text = f"{message_type(self.model.types.c_type(leaf.code))}"
            text += f"[{leaf.size}] {name}" if leaf.shape else f" {name}"
        shape = field.leaf.shape if field.leaf is not None else ()
        notes = [
            " x ".join(map(str, shape)) + ", row by row" if len(shape) > 1 else "",
            f"[{field.units}]" if field.units else "",
            field.text,
            f"{field.name} in C" if name not in (field.name, "data") else "",
        ]
        note = " ".join(ascii_text(each).replace("\n", " ") for each in notes if each)
        return f"{text}  # {note}" if note else text

    def converters(self) -> str:
        """Return functions that copy between structs and their messages, innermost first."""
        return "\n\n".join(
            self._converter(kind, struct, side)
            for kind, struct in self.kinds.values()
            for side in ("read", "write")
        )

    def _converter(self, kind: str, struct: Struct, side: str) -> str:
        message = f"{self.package}::msg::{kind}"
        arguments = (
            f"const {message} & message, {struct.c_name} & value"
            if side == "read"
            else f"const {struct.c_name} & value, {message} & message"
        )
        body = "\n".join(
            "  " + copy_field(field, f"value.{field.name}", f"message.{name}", side)
            for name, field in self.fields[kind]
        )
        return f"[[maybe_unused]] void {side}({arguments})\n{{\n{body}\n}}"


def message_type(c_type: str) -> str:
    """Return the type of a field of a message."""
    return TYPES.get(c_type, "bool")


def copy_field(field: Field, value: str, message: str, side: str) -> str:
    """Return the statement that copies a field of a message to that of a struct, or back."""
    if field.struct is not None:
        arguments = f"{message}, {value}" if side == "read" else f"{value}, {message}"
        return f"{side}({arguments});"
    shape = field.shape.shape
    if not shape:
        return f"{value} = {message};" if side == "read" else f"{message} = {value};"
    first = f"&{value}{'[0]' * len(shape)}"
    if side == "read":
        return f"std::copy({message}.begin(), {message}.end(), {first});"
    return f"std::copy_n({first}, {field.size}, {message}.begin());"


def _subscribe(package: str, topic: Topic) -> str:
    field, kind = topic.field, f"{package}::msg::{topic.kind}"
    source = "message" if field.struct is not None else "message.data"
    return (
        f"    {topic.member} = create_subscription<{kind}>(\n"
        f'      "~/{topic.name}", 10, [this](const {kind} & message) {{\n'
        f"        {copy_field(field, f'in_.{field.name}', source, 'read')}\n      }});"
    )


def _advertise(package: str, topic: Topic) -> str:
    kind = f"{package}::msg::{topic.kind}"
    return f'    {topic.member} = create_publisher<{kind}>("~/{topic.name}", 10);'


def _publish(package: str, topic: Topic) -> str:
    target = "message" if topic.field.struct is not None else "message.data"
    copy = copy_field(topic.field, f"out_.{topic.field.name}", target, "write")
    return (
        f"    {{\n      {package}::msg::{topic.kind} message;\n      {copy}\n"
        f"      {topic.member}->publish(message);\n    }}"
    )


def _cpp_type(signal: Signal) -> str:
    one = PARAMETERS.get(signal.c_type, "bool")
    return f"std::vector<{one}>" if signal.shape else one


def _literal(value: object, c_type: str) -> str:
    if c_type == "bool":
        return "true" if value else "false"
    if c_type in ("int64_t", "int32_t"):
        return str(int(value))  # type: ignore[call-overload]
    number = float(value)  # type: ignore[arg-type]
    if not np.isfinite(number):
        raise CodegenError(f"codegen: a parameter of ROS cannot be {number} by default")
    return repr(number)


def _values(signal: Signal) -> list[str]:
    return [_literal(each, signal.c_type) for each in np.ravel(signal.value)]


def _declare(name: str, signal: Signal) -> str:
    default = "{" + ", ".join(_values(signal)) + "}" if signal.shape else _values(signal)[0]
    kind = _cpp_type(signal)
    return f'    declare_parameter<{kind}>("{name}", {kind}({default}));'


def _assign(name: str, signal: Signal) -> str:
    """Return the statements that take a parameter, or say what is wrong with it."""
    get = f"parameter.get_value<{_cpp_type(signal)}>()"
    place = f"in_.{signal.access}"
    if not signal.shape:
        cast = f"static_cast<{signal.c_type}>({get})"
        return f'    if (parameter.get_name() == "{name}") {{\n      {place} = {cast};\n    }}'
    first = f"&{place}{'[0]' * len(signal.shape)}"
    return (
        f'    if (parameter.get_name() == "{name}") {{\n'
        f"      const auto values = {get};\n"
        f"      if (values.size() != {signal.size}) {{\n"
        f'        return "{name} must have {signal.size} elements";\n      }}\n'
        f"      std::copy(values.begin(), values.end(), {first});\n    }}"
    )


def _yaml(signal: Signal) -> str:
    values = ", ".join(_values(signal))
    return f"[{values}]" if signal.shape else values
