"""Generated code compiled and loaded on this machine."""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from archimedes.backends.c import FLAGS
from archimedes.embedded.c_types.c_values import Scalars
from archimedes.embedded.c_types.struct_layout import Place, Root, Struct
from archimedes.embedded.files.header import header_text
from archimedes.embedded.files.source_file import source_text
from archimedes.embedded.model import Model
from archimedes.errors import CodegenError
from archimedes.system.c_library import library_file, unload_library
from archimedes.system.programs import find_program, run_program

__all__ = ["HostLibrary", "find_compiler"]

_CTYPES = {
    "double": ctypes.c_double,
    "float": ctypes.c_float,
    "int64_t": ctypes.c_int64,
    "int32_t": ctypes.c_int32,
    "bool": ctypes.c_bool,
}


def find_compiler() -> str:
    """Return the host's C compiler: ``$CC``, cc, gcc or clang; raise where there is none."""
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        if name and find_program(name):
            return name
    raise CodegenError(
        "codegen: verify=True compiles the code on this machine, which has no C compiler (cc, gcc "
        "or clang): install one, name it in the environment variable CC, or leave verify=False"
    )


def _mirror(struct: Struct, types: Scalars) -> type[ctypes.Structure]:
    """Return the ctypes class that lies in memory as the C struct does."""
    members: list[tuple[str, Any]] = []
    for field in struct.fields:
        if field.struct is not None:
            members.append((field.name, _mirror(field.struct, types)))
            continue
        assert field.leaf is not None
        kind: Any = _CTYPES[types.c_type(field.leaf.code)]
        for n in reversed(field.leaf.shape):
            kind = kind * n
        members.append((field.name, kind))
    return type(struct.c_name, (ctypes.Structure,), {"_fields_": members or [("unused", _BYTE)]})


_BYTE = ctypes.c_ubyte


class Block:
    """A C struct in memory with a NumPy view of each of its leaves."""

    def __init__(self, root: Root, types: Scalars) -> None:
        self.data = _mirror(root.struct, types)()
        memory = np.frombuffer(memoryview(self.data).cast("B"), dtype=np.uint8)
        #: Views in the order of the root's leaves.
        self.views = [self._view(memory, place, types) for place in root.places]
        self._paths = [place.path for place in root.places]

    def __getitem__(self, path: str) -> np.ndarray:
        """Return the view of a leaf by its name in Python, such as ``x.pos``."""
        if path not in self._paths:
            raise KeyError(f"{path!r} is not one of {self._paths}")
        return self.views[self._paths.index(path)]

    def _view(self, memory: np.ndarray, place: Place, types: Scalars) -> np.ndarray:
        dtype = types.dtype(place.leaf.code)
        kind: Any = type(self.data)
        start = 0
        for name in place.access.split("."):
            start += getattr(kind, name).offset
            kind = dict(kind._fields_)[name]
        stop = start + place.leaf.size * dtype.itemsize
        return memory[start:stop].view(dtype).reshape(place.leaf.shape)


def _remove(folder: Path, loaded: list[ctypes.CDLL]) -> None:
    """Remove the folder of a library that nobody uses any more."""
    for library in loaded:
        unload_library(library)
    shutil.rmtree(folder, ignore_errors=True)


class HostLibrary:
    """The functions of a project, and structs ``inputs`` and ``outputs`` that they work on.

    The code is compiled as C99 with the flags of the generated build files; ``flags`` come after.
    ``inputs["x.pos"]`` is a NumPy view of a member: write to it, call ``step()``, read
    ``outputs``.
    """

    def __init__(self, model: Model, flags: Sequence[str] = ()) -> None:
        compiler = find_compiler()
        self.model = model
        folder = Path(tempfile.mkdtemp(prefix="archimedes-"))
        loaded: list[ctypes.CDLL] = []
        weakref.finalize(self, _remove, folder, loaded)
        (folder / f"{model.name}.h").write_text(header_text(model), encoding="ascii", newline="\n")
        (folder / f"{model.name}.c").write_text(source_text(model), encoding="ascii", newline="\n")
        library = folder / library_file(model.name)
        command = [compiler, "-std=c99", "-O1", *FLAGS, "-fPIC", "-shared", *flags]
        done = run_program([*command, "-o", str(library), str(folder / f"{model.name}.c")])
        if done.returncode:
            raise CodegenError(
                f"codegen: {compiler} does not compile {model.name}.c on this machine:\n"
                f"{done.stderr.strip()}"
            )
        self._library = ctypes.CDLL(str(library))
        loaded.append(self._library)
        self.inputs = Block(model.inputs, model.types)
        self.outputs = Block(model.outputs, model.types)
        # Aligned for any member, and never of length zero.
        self._work = np.zeros(model.source.workspace_bytes // 8 + 1)

    def init(self) -> None:
        """Call ``<name>_init``."""
        self._call("init")

    def step(self) -> None:
        """Call ``<name>_step``."""
        self._call("step")

    def _call(self, what: str) -> None:
        function = getattr(self._library, f"{self.model.name}_{what}")
        function.restype = None
        work = ctypes.c_void_p(self._work.ctypes.data)
        function(ctypes.byref(self.inputs.data), ctypes.byref(self.outputs.data), work)

    def carry(self) -> None:
        """Call ``<name>_carry``."""
        function = getattr(self._library, f"{self.model.name}_carry")
        function.restype = None
        function(ctypes.byref(self.inputs.data), ctypes.byref(self.outputs.data))
