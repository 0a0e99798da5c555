"""Names that object files of Linux (ELF), macOS (Mach-O) and Windows (COFF) refer to."""

from __future__ import annotations

import struct
from collections.abc import Iterator

__all__ = ["missing_symbols", "section_names"]

#: Section numbers of symbols that are defined nowhere in the file.
_UNDEFINED = 0


def missing_symbols(code: bytes) -> set[str]:
    """Return the names that a 64-bit little-endian object file needs from elsewhere."""
    read, prefix = _READERS[code[:4] if code[:4] in _READERS else code[:2]]
    return {name.removeprefix(prefix) for name in read(code) if name}


def _text(table: bytes, at: int) -> str:
    return table[at : table.index(b"\0", at)].decode()


def _elf(code: bytes) -> Iterator[str]:
    """System V ABI, chapters "Sections" and "Symbol Table"."""
    (first,) = struct.unpack_from("<Q", code, 40)
    size, count = struct.unpack_from("<HH", code, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", code, first + k * size) for k in range(count)]
    for header in headers:
        if header[1] != 2:  # SHT_SYMTAB
            continue
        names = code[headers[header[6]][4] :]
        for at in range(header[4], header[4] + header[5], 24):
            name, _, _, section = struct.unpack_from("<IBBH", code, at)
            if section == _UNDEFINED:
                yield _text(names, name)


def _mach_o(code: bytes) -> Iterator[str]:
    """``mach-o/loader.h`` and ``mach-o/nlist.h``."""
    (commands,) = struct.unpack_from("<I", code, 16)
    at = 32
    for _ in range(commands):
        kind, size = struct.unpack_from("<II", code, at)
        if kind == 2:  # LC_SYMTAB
            symbols, count, names, _ = struct.unpack_from("<4I", code, at + 8)
            for k in range(count):
                name, type_, _, _, _ = struct.unpack_from("<IBBHQ", code, symbols + 16 * k)
                if type_ & 0x0E == _UNDEFINED:
                    yield _text(code[names:], name)
        at += size


def _coff(code: bytes) -> Iterator[str]:
    """PE Format, "COFF Symbol Table"."""
    symbols, count = struct.unpack_from("<II", code, 8)
    names = code[symbols + 18 * count :]
    k = 0
    while k < count:
        at = symbols + 18 * k
        value, section, _, class_, more = struct.unpack_from("<IhHBB", code, at + 8)
        if section == _UNDEFINED and class_ == 2 and value == 0:  # IMAGE_SYM_CLASS_EXTERNAL
            zeros, offset = struct.unpack_from("<II", code, at)
            yield code[at : at + 8].rstrip(b"\0").decode() if zeros else _text(names, offset)
        k += 1 + more


#: By the first bytes of a file: what reads it, and what the format puts before C names.
_READERS = {
    b"\x7fELF": (_elf, ""),
    b"\xcf\xfa\xed\xfe": (_mach_o, "_"),
    b"\x64\x86": (_coff, ""),
}


def section_names(code: bytes) -> set[str]:
    """Return the names of the sections of an object file."""
    import llvmlite.binding as llvm

    names = (section.name() for section in llvm.ObjectFileRef.from_data(code).sections())
    return {name.decode() for name in names if name}
