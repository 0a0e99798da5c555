"""Sizes of compiled code: sections, structs and stack, as the compiler and its tools tell them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from archimedes.embedded.boards import FOLDER, board_named
from archimedes.embedded.boards.firmware import FLAGS
from archimedes.embedded.files.header import header_text
from archimedes.embedded.files.source_file import source_text
from archimedes.embedded.model import Model
from archimedes.embedded.tools import ToolError, run_tool

__all__ = ["HOST", "Measured", "deepest_chain", "measure_sizes"]

#: The target that is this machine.
HOST = "host"
#: Tables that a debugger reads take no memory of a program without exceptions.
_BARE = ("-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-stack-protector")


@dataclass(frozen=True)
class Measured:
    """Sizes in bytes; ``chain`` are the functions on the deepest stack, ``library`` those called
    that are not the project's.
    """

    flash: int
    code: int
    constants: int
    static: int
    structs: Mapping[str, int]
    stack: int
    chain: tuple[str, ...]
    library: tuple[str, ...]


def measure_sizes(model: Model, board: str, optimize: str, folder: Path) -> Measured:
    """Compile a project's code for a board, or for this machine, and measure it."""
    name = model.name
    prefix, target = ("", ("-fno-pie",)) if board == HOST else _target(board)
    (folder / f"{name}.h").write_text(header_text(model), encoding="ascii", newline="\n")
    (folder / f"{name}.c").write_text(source_text(model), encoding="ascii", newline="\n")
    (folder / "sizes.c").write_text(_probe(name), encoding="ascii", newline="\n")
    purpose = f"measuring {name} on {board}"
    compiler = [f"{prefix}gcc", *target, *FLAGS, *_BARE, optimize]
    own = [f"{name}.c", "sizes.c", str(FOLDER / "memory.c")]
    run_tool([*compiler, "-fcallgraph-info=su", "-c", *own], purpose, cwd=folder)
    roots = [f"-Wl,-u,{name}_{word}" for word in _functions(model)]
    link = ["-nostdlib", "-nostartfiles", "-static", "-Wl,--gc-sections", *roots]
    link += [f"-Wl,-e,{name}_step", "-Wl,--build-id=none"]
    objects = [f"{name}.o", "memory.o", "-lgcc", "-o", "linked.elf"]
    run_tool([f"{prefix}gcc", *target, *link, *objects], purpose, cwd=folder)
    sections = _sections(prefix, f"{name}.o", purpose, folder)
    linked = _sections(prefix, "linked.elf", purpose, folder)
    graph = (folder / f"{name}.ci").read_text(encoding="utf-8")
    stack, chain, library = deepest_chain(graph, f"{name}_step")
    return Measured(
        flash=_sum(linked, ".text", ".rodata", ".srodata", ".data", ".sdata"),
        code=_sum(sections, ".text"),
        constants=_sum(sections, ".rodata", ".srodata"),
        static=_sum(sections, ".data", ".sdata", ".bss", ".sbss"),
        structs=_struct_sizes(prefix, purpose, folder),
        stack=stack,
        chain=chain,
        library=library,
    )


def _target(name: str) -> tuple[str, tuple[str, ...]]:
    board = board_named(name)
    return board.tools, board.flags


def _functions(model: Model) -> list[str]:
    return ["init", "step", *(["carry"] if model.carries else [])]


_ROLES = ("in", "out", "work")


def _probe(name: str) -> str:
    """Write a file whose arrays are as large as the structs."""
    arrays = "\n".join(
        f"extern char struct_{role}[]; char struct_{role}[sizeof({name}_{role}_t)];"
        for role in _ROLES
    )
    return f'#include "{name}.h"\n{arrays}\n'


def _struct_sizes(prefix: str, purpose: str, folder: Path) -> dict[str, int]:
    text = run_tool([f"{prefix}nm", "-S", "sizes.o"], purpose, cwd=folder).stdout
    rows = [line.split() for line in text.splitlines()]
    sizes = {row[3]: int(row[1], 16) for row in rows if len(row) == 4}
    return {role: sizes[f"struct_{role}"] for role in _ROLES}


def _sections(prefix: str, file: str, purpose: str, folder: Path) -> dict[str, int]:
    text = run_tool([f"{prefix}size", "-A", file], purpose, cwd=folder).stdout
    rows = [line.split() for line in text.splitlines()]
    return {row[0]: int(row[1]) for row in rows if len(row) == 3 and row[0].startswith(".")}


def _sum(sections: Mapping[str, int], *kinds: str) -> int:
    return sum(
        size
        for name, size in sections.items()
        if any(name == kind or name.startswith(kind + ".") for kind in kinds)
    )


# ---- stack ---------------------------------------------------------------------------------------

_NODE = re.compile(r'node: \{ title: "([^"]+)" label: "([^"]*)"')
_EDGE = re.compile(r'edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"')
_BYTES = re.compile(r"(\d+) bytes \(([\w,]+)\)")


def _sizes_in(graph: str) -> Iterator[tuple[str, int]]:
    for title, label in _NODE.findall(graph):
        found = _BYTES.search(label)
        if found is None:
            continue
        if found[2] == "dynamic":
            raise ToolError(f"the compiler cannot tell how much stack {title} uses")
        yield title, int(found[1])


def deepest_chain(graph: str, start: str) -> tuple[int, tuple[str, ...], tuple[str, ...]]:
    """Read GCC's call graph (``-fcallgraph-info=su``) and find the deepest stack below a function.

    Returns its bytes, the functions on it, and the called functions of unknown use, sorted.
    """
    sizes = dict(_sizes_in(graph))
    calls: dict[str, list[str]] = {}
    for source, to in _EDGE.findall(graph):
        calls.setdefault(source, []).append(to)
    known: dict[str, tuple[int, tuple[str, ...]]] = {}

    def depth(title: str) -> tuple[int, tuple[str, ...]]:
        if title not in known:
            below = max((depth(to) for to in calls.get(title, ())), default=(0, ()))
            chain = below[1] if below[0] else ()
            known[title] = (sizes.get(title, 0) + below[0], (title.rpartition(":")[2], *chain))
        return known[title]

    total, chain = depth(start)
    outside = {to for to in known if to not in sizes and not to.startswith("__builtin")}
    return total, chain, tuple(sorted(outside))
