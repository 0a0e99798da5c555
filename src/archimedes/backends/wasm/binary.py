"""The binary format of WebAssembly: numbers, opcodes and sections.

Facts from the WebAssembly Core Specification 2.0, chapter 5 (binary format) and appendix A (index
of instructions).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

HEADER = b"\0asm\x01\0\0\0"
#: Bytes of a page of memory, and the most pages that 32-bit addresses reach.
PAGE, MOST_PAGES = 65536, 65536
#: How types are written.
TYPES = {"i32": b"\x7f", "i64": b"\x7e", "f32": b"\x7d", "f64": b"\x7c", "v128": b"\x7b"}
#: Numbers of sections.
TYPE, FUNCTION, MEMORY, EXPORT, CODE, DATA = 1, 3, 5, 7, 10, 11


def unsigned(n: int) -> bytes:
    """Return a number as LEB128.

    >>> unsigned(624485).hex()
    'e58e26'
    """
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def signed(n: int) -> bytes:
    """Return a number as signed LEB128.

    >>> signed(-123456).hex()
    'c0bb78'
    """
    out = bytearray()
    while not -64 <= n < 64:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n & 127)
    return bytes(out)


def vector(items: Sequence[bytes]) -> bytes:
    """Return a sequence with its length in front."""
    return unsigned(len(items)) + b"".join(items)


def name(text: str) -> bytes:
    """Return a name."""
    data = text.encode("utf-8", "surrogatepass")
    return unsigned(len(data)) + data


def section(number: int, content: bytes) -> bytes:
    """Return a section; one without content is left out."""
    return bytes([number]) + unsigned(len(content)) + content if content else b""


# ---- instructions ------------------------------------------------------------------------------

LOCAL_GET, LOCAL_SET, LOCAL_TEE = b"\x20", b"\x21", b"\x22"
BLOCK, LOOP, IF = b"\x02\x40", b"\x03\x40", b"\x04\x40"
ELSE, END, BR, BR_IF, CALL, DROP, SELECT = (
    b"\x05",
    b"\x0b",
    b"\x0c",
    b"\x0d",
    b"\x10",
    b"\x1a",
    b"\x1b",
)
CONST = {"i32": b"\x41", "i64": b"\x42", "f32": b"\x43", "f64": b"\x44"}
MEMORY_COPY, MEMORY_FILL = b"\xfc\x0a\0\0", b"\xfc\x0b\0"


def _names(kind: str, words: str) -> list[str]:
    return [f"{kind}.{word}" for word in words.split()]


_COMPARE = "eq ne lt_s lt_u gt_s gt_u le_s le_u ge_s ge_u"
_FLOAT_COMPARE = "eq ne lt gt le ge"
_INTEGER = "clz ctz popcnt add sub mul div_s div_u rem_s rem_u and or xor shl shr_s shr_u rotl rotr"
_FLOAT = "abs neg ceil floor trunc nearest sqrt add sub mul div min max copysign"
_CONVERSIONS = [
    *_names("i32", "wrap_i64 trunc_f32_s trunc_f32_u trunc_f64_s trunc_f64_u"),
    *_names("i64", "extend_i32_s extend_i32_u trunc_f32_s trunc_f32_u trunc_f64_s trunc_f64_u"),
    *_names("f32", "convert_i32_s convert_i32_u convert_i64_s convert_i64_u demote_f64"),
    *_names("f64", "convert_i32_s convert_i32_u convert_i64_s convert_i64_u promote_f32"),
    *("i32.reinterpret_f32", "i64.reinterpret_f64", "f32.reinterpret_i32", "f64.reinterpret_i64"),
]
#: From 0x45 on, one after the other.
_NUMERIC = [
    *("i32.eqz", *_names("i32", _COMPARE), "i64.eqz", *_names("i64", _COMPARE)),
    *(*_names("f32", _FLOAT_COMPARE), *_names("f64", _FLOAT_COMPARE)),
    *(*_names("i32", _INTEGER), *_names("i64", _INTEGER)),
    *(*_names("f32", _FLOAT), *_names("f64", _FLOAT)),
    *_CONVERSIONS,
]
#: Opcodes of SIMD instructions behind their prefix: the first, a type, and those that follow.
_SIMD = """
0d i8x16 shuffle
12 i64x2 splat
13 f32x4 splat
14 f64x2 splat
1d i64x2 extract_lane replace_lane
1f f32x4 extract_lane replace_lane
21 f64x2 extract_lane replace_lane
41 f32x4 eq ne lt gt le ge
47 f64x2 eq ne lt gt le ge
4d v128 not and andnot or xor bitselect any_true
5e f32x4 demote_f64x2_zero
5f f64x2 promote_low_f32x4
67 f32x4 ceil floor trunc nearest
74 f64x2 ceil floor
7a f64x2 trunc
94 f64x2 nearest
c0 i64x2 abs neg
c7 i64x2 extend_low_i32x4_s extend_high_i32x4_s extend_low_i32x4_u
cb i64x2 shl shr_s shr_u add
d1 i64x2 sub
d5 i64x2 mul eq ne lt_s gt_s le_s ge_s
e0 f32x4 abs neg
e3 f32x4 sqrt add sub mul div min max pmin pmax
ec f64x2 abs neg
ef f64x2 sqrt add sub mul div min max pmin pmax
"""
#: Opcodes of loads and stores, and the exponents of their alignment.
_ACCESS = """
28 2 i32.load
29 3 i64.load
2a 2 f32.load
2b 3 f64.load
2d 0 i32.load8_u
36 2 i32.store
37 3 i64.store
38 2 f32.store
39 3 f64.store
3a 0 i32.store8
fd00 3 v128.load
fd09 2 v128.load32_splat
fd0a 3 v128.load64_splat
fd0b 3 v128.store
"""
MEMORY_ACCESS = {
    text: (bytes.fromhex(code), int(align))
    for code, align, text in map(str.split, _ACCESS.strip().splitlines())
}


def _operations() -> Iterator[tuple[str, tuple[bytes, str]]]:
    compares = {*_COMPARE.split(), *_FLOAT_COMPARE.split(), "eqz"}
    for k, text in enumerate(_NUMERIC, 0x45):
        kind, word = text.split(".")
        yield text, (bytes([k]), "i32" if word in compares else kind)
    for word, code in (("f32", 4), ("f64", 6)):
        yield f"i64.trunc_sat_{word}_s", (b"\xfc" + bytes([code]), "i64")
    for first, kind, *words in map(str.split, _SIMD.strip().splitlines()):
        for k, word in enumerate(words, int(first, 16)):
            result = kind.partition("x")[0] if word == "extract_lane" else "v128"
            item = b"\xfd" + unsigned(k), "i32" if word == "any_true" else result
            yield f"{kind}.{word}", item


#: Bytes and type of the result of every instruction that computes, by its name in the text format.
OPERATIONS = dict(_operations())
