"""Text in C: names from names in Python, comments, and templates.

Names are stable, ASCII and never reserved, and each change is reported. Comments are ASCII, one
line, and hold nothing that would end them. Templates fill in ``@{word}``; ``@@{`` stands for
``@{``, and other signs mean themselves, so that Makefiles and CMake files need no escapes.
"""

from __future__ import annotations

import re
import string
import textwrap
import unicodedata
from collections.abc import Mapping
from pathlib import Path

from archimedes.errors import CodegenError

#: Folder with one folder of templates per target, and one of code that all projects share.
TEMPLATES = Path(__file__).parent / "templates"
_KEYWORDS = """
auto break case char const continue default do double else enum extern float for goto if inline
int long register restrict return short signed sizeof static struct switch typedef union unsigned
void volatile while alignas alignof bool constexpr false nullptr static_assert
thread_local true typeof typeof_unqual and and_eq asm bitand bitor catch char8_t char16_t char32_t
class co_await co_return co_yield compl concept const_cast consteval constinit decltype delete
dynamic_cast explicit export friend mutable namespace new noexcept not not_eq operator or or_eq
private protected public reinterpret_cast requires static_cast template this throw try typeid
typename using virtual wchar_t xor xor_eq
"""
#: Macros and types that common headers define: the C library's, Arduino's, CMSIS's.
_DEFINED = """
NULL INFINITY NAN HUGE_VAL I complex imaginary errno assert offsetof size_t ptrdiff_t near far
int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t
stdin stdout stderr unix linux i386 arm
PI HALF_PI TWO_PI DEG_TO_RAD RAD_TO_DEG EULER HIGH LOW INPUT OUTPUT INPUT_PULLUP SERIAL DISPLAY
CHANGE FALLING RISING DEFAULT INTERNAL EXTERNAL LSBFIRST MSBFIRST F word bit byte boolean
bitRead bitSet bitClear bitWrite min max abs round radians degrees sq constrain interrupts
"""
#: Keywords of C99 to C23 and of C++20.
KEYWORDS = frozenset(_KEYWORDS.split())
#: Spellings that mean something in C99 to C23, in C++17, or in headers an embedded project uses.
RESERVED = KEYWORDS | frozenset(_DEFINED.split())
#: Arduino's binary.h defines B0 to B11111111.
_BINARY_MACRO = re.compile(r"B[01]{1,8}\Z")
_GREEK = re.compile(r"GREEK (SMALL|CAPITAL) LETTER (?:FINAL )?([A-Z]+)")


def _ascii(char: str) -> str:
    """Spell one character: Greek letters by name, accents dropped, others by their number."""
    if char.isascii():
        return char if char.isalnum() else "_"
    plain = unicodedata.normalize("NFKD", char.replace("ß", "ss"))
    greek = _GREEK.match(unicodedata.name(plain[0], ""))
    if greek:
        word = "lambda" if greek[2] == "LAMDA" else greek[2].lower()
        return word if greek[1] == "SMALL" else word.capitalize()
    letters = "".join(c for c in plain if c.isascii() and c.isalnum())
    return letters or f"u{ord(char):04x}"


def c_identifier(name: str, extra: frozenset[str] = frozenset()) -> str:
    """Return the C identifier for a Python name or dict key; ``extra`` are taken spellings.

    >>> [c_identifier(name) for name in ("x", "double", "ω_B", "2nd gain", "_hidden")]
    ['x', 'double_', 'omega_B', 'n2nd_gain', 'hidden']
    """
    spelled = "".join(_ascii(char) for char in name)
    # Double underscores belong to C++, leading ones to the C implementation.
    spelled = re.sub("_+", "_", spelled).lstrip("_")
    if not name.endswith("_"):
        spelled = spelled.rstrip("_")  # "args[0]" is args_0
    spelled = spelled or "value"
    if spelled[0].isdigit():
        spelled = "n" + spelled
    if spelled in RESERVED or spelled in extra or _BINARY_MACRO.match(spelled):
        spelled += "_"
    return spelled


def snake_case(name: str) -> str:
    """Return a class name as C types are named.

    >>> snake_case("RigidBody.State"), snake_case("PIDGains")
    ('rigid_body_state', 'pid_gains')
    """
    text = "_".join(c_identifier(part) for part in name.split("."))
    text = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", text)
    text = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", text)
    return re.sub("_+", "_", text).strip("_").lower()


class Renames:
    """The names of one project: spells them, refuses two for one, keeps a list of changes."""

    def __init__(self) -> None:
        #: Python path to C name, for each name that could not be kept.
        self.changed: dict[str, str] = {}

    def members(self, names: list[str], paths: list[str], where: str) -> list[str]:
        """Return the C names of the members of one struct; a clash is an error."""
        taken: dict[str, str] = {}
        result = []
        for name, path in zip(names, paths):
            spelled = self.one(name, path)
            if spelled in taken:
                raise CodegenError(
                    f"{where}: {taken[spelled]} and {path} are both {spelled!r} in C: rename one"
                )
            taken[spelled] = path
            result.append(spelled)
        return result

    def one(self, name: str, path: str, extra: frozenset[str] = frozenset()) -> str:
        """Return the C name for one Python name, noting a change."""
        spelled = c_identifier(name, extra)
        if spelled != name:
            self.changed[path] = spelled
        return spelled


# ---- comments ---------------------------------------------------------------------------

_SIGNS = {"·": "*", "×": "x", "°": "deg", "–": "-", "—": "-", "−": "-", "’": "'", "‘": "'"}
_SIGNS |= {"“": '"', "”": '"', "…": "...", "µ": "u", "Ω": "Ohm", "√": "sqrt", "∞": "inf"}


def _spell(char: str) -> str:
    if char.isascii():
        return char
    if char in _SIGNS:
        return _SIGNS[char]
    plain = unicodedata.normalize("NFKD", char)
    if "SUPERSCRIPT" in unicodedata.name(char, ""):
        return "^" + plain.replace("−", "-")
    return c_identifier(char) if char.isalpha() else plain if plain.isascii() else "?"


def ascii_text(text: str) -> str:
    """Return text that can stand in a comment of any compiler.

    >>> ascii_text("kg·m²,  angle α */ in °")
    'kg*m^2, angle alpha * / in deg'
    """
    spelled = "".join(_spell(char) for char in " ".join(text.split()))
    spelled = spelled.replace("^-^", "^-").replace("*/", "* /").replace("/*", "/ *")
    return re.sub(r"\?(?=\?)", "? ", spelled)  # no trigraphs


def block_comment(paragraphs: list[str], width: int = 96) -> str:
    """Return paragraphs as one comment, wrapped; a paragraph may hold lines of its own."""
    lines: list[str] = []
    for paragraph in paragraphs:
        lines += [""] if lines else []
        for line in paragraph.split("\n"):
            text = ascii_text(line)
            lines += textwrap.wrap(text, width - 3) or [""]
    first, *rest = lines
    return "\n".join([f"/* {first}", *(f" * {line}".rstrip() for line in rest), " */"])


def shape_text(shape: tuple[int, ...]) -> str:
    """Return a shape in words: nothing for a number.

    >>> shape_text((3, 4)), shape_text(())
    ('(3 x 4)', '')
    """
    return f"({' x '.join(str(n) for n in shape)})" if shape else ""


# ---- templates --------------------------------------------------------------------------


class _Template(string.Template):
    delimiter = "@"
    pattern = r"""
        @(?:
            (?P<escaped>@(?=\{)) |
            \{(?P<braced>[A-Za-z_]+)\} |
            (?P<named>(?!)) |
            (?P<invalid>(?!))
        )
    """  # type: ignore[assignment]  # a string here, a pattern on the finished class


def fill(text: str, words: Mapping[str, str], file: str) -> str:
    """Fill in a template; ``file`` names it in errors.

    >>> fill("$(CC) @{name}.c -o @{name} @@{kept}", {"name": "ekf"}, "Makefile.in")
    '$(CC) ekf.c -o ekf @{kept}'
    """
    try:
        return _Template(text).substitute(words)
    except KeyError as error:
        word = error.args[0]
        line = text[: text.index("@{" + word + "}")].count("\n") + 1
        raise CodegenError(
            f"{file}:{line}: the template asks for @{{{word}}}, which does not exist: it can use "
            f"{', '.join('@{' + known + '}' for known in sorted(words))}"
        ) from None


def fill_template(file: str, /, **words: str) -> str:
    """Fill in a template of the folder ``templates/code``."""
    path = TEMPLATES / "code" / file
    return fill(path.read_text("utf-8"), words, str(path))
