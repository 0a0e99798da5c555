"""NVRTC, NVIDIA's compiler as a library: CUDA C in, machine code of one architecture out.

It needs no GPU. The library is found in the wheels that bring it, or where the system has it.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from archimedes.backends.cuda.device_text import OPTIONS
from archimedes.errors import DeviceError
from archimedes.installation import install_command
from archimedes.system.c_library import cuda_folders, versioned_library

__all__ = ["Resources", "compile_cubin", "find_nvrtc", "resources", "version"]

#: Major versions of CUDA that are looked for, and the folders of their wheels in ``nvidia``.
_MAJORS = {13: "cu13", 12: "cuda_nvrtc"}


def _candidates(major: int) -> Iterator[str]:
    name = versioned_library("nvrtc", major)
    yield name
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for inner in ("bin", "lib"):
            path = Path(folder) / _MAJORS[major] / inner / name
            if path.exists():
                yield str(path)
    for root in cuda_folders():
        for inner in ("lib64", "bin"):
            if (root / inner / name).exists():
                yield str(root / inner / name)


@lru_cache(maxsize=4)
def find_nvrtc(major: int | None = None) -> Any:
    """Return the library, of this major version of CUDA or of any, or None."""
    for one in (major,) if major is not None else tuple(_MAJORS):
        for candidate in _candidates(one):
            try:
                return ctypes.CDLL(candidate)
            except OSError:
                continue
    return None


def _library(major: int | None) -> Any:
    found = find_nvrtc(major)
    if found is None:
        wanted = f" of CUDA {major}" if major is not None else ""
        raise DeviceError(
            f"NVRTC{wanted}, which compiles for GPUs, was not found: install CuPy with it, "
            f"{install_command('cuda')} (CUDA 13) or {install_command('cuda12')} (CUDA 12)."
        )
    return found


def version(major: int | None = None) -> tuple[int, int]:
    """Return the version of the library."""
    numbers = ctypes.c_int(), ctypes.c_int()
    _library(major).nvrtcVersion(*map(ctypes.byref, numbers))
    return numbers[0].value, numbers[1].value


def compile_cubin(text: str, architecture: str, major: int | None = None) -> bytes:
    """Compile CUDA C for an architecture such as "sm_90"."""
    return _compiled(text, architecture, major, OPTIONS)[0]


class Resources(NamedTuple):
    """What a thread of a kernel takes: registers, bytes of its stack, bytes stored for lack of
    registers.
    """

    registers: int
    stack: int
    spilled: int


def resources(text: str, architecture: str, major: int | None = None) -> Resources:
    """Compile a file with one kernel and return what it takes."""
    log = _compiled(text, architecture, major, (*OPTIONS, "--ptxas-options=-v"))[1]

    def most(pattern: str) -> int:
        return max((int(x) for x in re.findall(pattern, log)), default=0)

    return Resources(
        most(r"Used (\d+) registers"),
        most(r"(\d+) bytes (?:stack frame|cumulative stack size)"),
        most(r"(\d+) bytes spill stores"),
    )


def _compiled(
    text: str, architecture: str, major: int | None, options: Sequence[str]
) -> tuple[bytes, str]:
    """Return machine code and what the compiler said."""
    library, handle = _library(major), ctypes.c_void_p()
    made = library.nvrtcCreateProgram(
        ctypes.byref(handle), text.encode(), b"archimedes.cu", 0, None, None
    )
    _check(library, made)
    try:
        given = [x.encode() for x in (f"--gpu-architecture={architecture}", *options)]
        array = (ctypes.c_char_p * len(given))(*given)
        status = library.nvrtcCompileProgram(handle, len(given), array)
        log = _bytes(library, handle, "ProgramLog").rstrip(b"\0").decode(errors="replace")
        if status:
            raise DeviceError(
                f"NVRTC does not compile the kernel for {architecture}:\n{log[:4000]}"
            )
        return _bytes(library, handle, "CUBIN"), log
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(handle))


def _bytes(library: Any, handle: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _check(library, getattr(library, f"nvrtcGet{what}Size")(handle, ctypes.byref(size)))
    content = ctypes.create_string_buffer(size.value)
    _check(library, getattr(library, f"nvrtcGet{what}")(handle, content))
    return content.raw


def _check(library: Any, status: int) -> None:
    if status:
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise DeviceError(f"NVRTC: {library.nvrtcGetErrorString(status).decode()}")
