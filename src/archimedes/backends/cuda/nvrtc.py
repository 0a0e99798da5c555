"""NVRTC, NVIDIA's compiler as a library: CUDA C in, machine code of one architecture out.

It needs no GPU. The library is found in the wheels that bring it, or where the system has it.
``compile_kernels`` keeps the machine code on disk.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from archimedes.backends import code_cache
from archimedes.backends.cuda.cuda_c import OPTIONS
from archimedes.backends.cuda.device import architecture, compiler_major, toolkit
from archimedes.backends.cuda.kernel_text import KernelText, assemble_file
from archimedes.errors import DeviceError
from archimedes.installation import install_command
from archimedes.system.c_library import cuda_folders, library_of_version

#: Major versions of CUDA that are looked for, and the folders of their wheels in ``nvidia``.
_MAJORS = {13: "cu13", 12: "cuda_nvrtc"}


def _candidates(major: int) -> Iterator[str]:
    name = library_of_version("nvrtc", major)
    yield name
    spec = importlib.util.find_spec("nvidia")
    wheels = (spec.submodule_search_locations or ()) if spec else ()
    folders = [Path(x) / _MAJORS[major] / inner for x in wheels for inner in ("bin", "lib")]
    folders += [root / inner for root in cuda_folders() for inner in ("lib64", "bin")]
    yield from (str(folder / name) for folder in folders if (folder / name).exists())


@lru_cache(maxsize=4)
def find_nvrtc(major: int | None = None) -> Any:
    """Return the library, of this major version of CUDA or of any, or None."""
    majors = _MAJORS if major is None else (major,)
    for candidate in (path for one in majors for path in _candidates(one)):
        with suppress(OSError):
            return ctypes.CDLL(candidate)
    return None


def _library(major: int | None) -> Any:
    library = find_nvrtc(major)
    if library is None:
        wanted = f" of CUDA {major}" if major is not None else ""
        raise DeviceError(
            f"NVRTC{wanted}, which compiles for GPUs, was not found: install CuPy with it, "
            f"{install_command('cuda')} (CUDA 13) or {install_command('cuda12')} (CUDA 12)."
        )
    return library


def compile_cubin(text: str, target: str, major: int | None = None) -> bytes:
    """Compile CUDA C for an architecture such as "sm_90"."""
    return compile_text(text, target, major, OPTIONS)[0]


def compile_text(
    text: str, target: str, major: int | None, options: Sequence[str]
) -> tuple[bytes, str]:
    """Return machine code and what the compiler said."""
    library, handle = _library(major), ctypes.c_void_p()
    name = b"archimedes.cu"
    create = library.nvrtcCreateProgram
    _check(library, create(ctypes.byref(handle), text.encode(), name, 0, None, None))
    try:
        flags = [x.encode() for x in (f"--gpu-architecture={target}", *options)]
        array = (ctypes.c_char_p * len(flags))(*flags)
        status = library.nvrtcCompileProgram(handle, len(flags), array)
        log = _bytes(library, handle, "ProgramLog").rstrip(b"\0").decode(errors="replace")
        if status:
            raise DeviceError(f"NVRTC could not compile the kernel for {target}:\n{log[:4000]}")
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


class MachineCode(NamedTuple):
    """Machine code; ``kernels`` and ``far`` are those of :class:`KernelText`."""

    kernels: tuple[tuple[str, int], ...]
    far: int
    cubin: bytes

    def to_bytes(self) -> bytes:
        """Return it as the content of a file."""
        return json.dumps([self.kernels, self.far]).encode() + b"\n" + self.cubin

    @classmethod
    def from_bytes(cls, content: bytes) -> MachineCode:
        """Read what ``to_bytes`` returned."""
        head, _, cubin = content.partition(b"\n")
        kernels, far = json.loads(head)
        return cls(tuple((name, shared) for name, shared in kernels), far, cubin)


def compile_kernels(
    parts: Sequence[object], write: Callable[[], KernelText]
) -> tuple[MachineCode, bool]:
    """Return machine code for the current device, and whether it came from the disk.

    ``parts`` describe all that the kernels depend on besides the device and our own sources.
    """
    backends = Path(__file__).parent.parent
    sources = [code_cache.sources_digest(backends / name) for name in ("cuda", "c")]
    key = code_cache.cache_key(*parts, architecture(), toolkit(), OPTIONS, *sources)
    content = code_cache.read(key)
    if content is not None:
        return MachineCode.from_bytes(content), True
    text = write()
    cubin = compile_cubin(assemble_file([text]), architecture(), compiler_major())
    code = MachineCode(text.kernels, text.far, cubin)
    code_cache.write(key, code.to_bytes())
    return code, False
