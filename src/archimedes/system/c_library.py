"""The C library and other shared libraries: their names, their functions, and clocks.

Native code calls functions of the system by their addresses. C's ``long`` has 64 bits on 64-bit
Linux and macOS and 32 bits on Windows, where ``size_t`` and pointers have 64 nevertheless:
``int``, ``long long``, ``size_t``, ``double`` and pointers are the types to pass.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Any


def function_address(library: str, name: str) -> int:
    """Return the address of a function of a library; "" is what the process has anyway."""
    address = ctypes.cast(ctypes.CDLL(library or None)[name], ctypes.c_void_p).value
    assert address is not None
    return address


def functions_to_import(triple: str) -> dict[str, tuple[str, str]]:
    """Return what all code for a system may call: by name the library and its function.

    That is the allocator of the C library; its ``fma``, exactly rounded as the standard demands,
    which LLVM calls on a CPU without the instruction; and on Windows ``__chkstk``, which LLVM calls
    where a function takes more than a page of the stack.
    """
    windows = "windows" in triple
    c_library = "ucrtbase" if windows else ""
    names = {"arc_malloc": "malloc", "arc_free": "free", "fma": "fma", "fmaf": "fmaf"}
    functions = {name: (c_library, function) for name, function in names.items()}
    if windows:
        functions["__chkstk"] = ("ntdll", "__chkstk")
    return functions


def clock_function(triple: str) -> tuple[str, str]:
    """Return library and name of a system's function that tells the time since some moment.

    On Windows it returns milliseconds. Elsewhere it fills a ``struct timespec``, two int64.
    """
    return ("kernel32", "GetTickCount64") if "windows" in triple else ("", "clock_gettime")


def monotonic_clock(triple: str) -> int:
    """Return ``CLOCK_MONOTONIC``, the number of a clock that never goes back.

    >>> monotonic_clock("x86_64-unknown-linux-gnu"), monotonic_clock("arm64-apple-macosx")
    (1, 6)
    """
    return 6 if "apple" in triple else 1


def find_library(name: str) -> str | None:
    """Return the file of a library that the system has, or None."""
    import ctypes.util  # which loads subprocess

    return ctypes.util.find_library(name)


def cuda_folders() -> list[Path]:
    """Return where NVIDIA's installer puts CUDA."""
    named = os.environ.get("CUDA_PATH")
    return [*([Path(named)] if named else []), Path("/usr/local/cuda")]


def unload_library(library: Any) -> None:
    """Unload a library that nobody calls any more, so that its file can be deleted.

    Only Windows keeps the files of loaded libraries; elsewhere nothing is done.
    """
    if sys.platform == "win32":
        ctypes.WinDLL("kernel32").FreeLibrary(ctypes.c_void_p(library._handle))


def library_file(name: str, platform: str = sys.platform) -> str:
    """Return the file name of a shared library that a C compiler makes on this system.

    >>> library_file("model", "linux"), library_file("model", "win32")
    ('libmodel.so', 'model.dll')
    """
    if platform == "win32":
        return f"{name}.dll"
    return f"lib{name}.dylib" if platform == "darwin" else f"lib{name}.so"


def passes_lists_by_pointer(machine: str, platform: str = sys.platform) -> bool:
    """Return whether a C function gets an open list of arguments (``va_list``) by its address.

    On Linux it does; Apple's processors and Windows pass the list itself, which is a pointer.

    >>> passes_lists_by_pointer("x86_64", "linux"), passes_lists_by_pointer("arm64", "darwin")
    (True, False)
    """
    return platform == "linux" or (platform == "darwin" and machine == "x86_64")


def fmu_folders(machine: str, platform: str = sys.platform) -> tuple[list[str], str]:
    """Return the folders of an FMU with binaries for a system, and how their names end.

    The first is that of FMI 2.0, if the standard has one for the system, the last that of 3.0.
    `machine` is the architecture, as :func:`cpus.architecture` returns it.

    >>> fmu_folders("x86_64", "linux"), fmu_folders("arm64", "darwin")
    ((['linux64', 'x86_64-linux'], '.so'), (['darwin64', 'aarch64-darwin'], '.dylib'))
    """
    cpu = {"AMD64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    system, suffix = {"win32": ("windows", ".dll"), "darwin": ("darwin", ".dylib")}.get(
        platform, ("linux", ".so")
    )
    old = {"windows": "win64", "darwin": "darwin64", "linux": "linux64"}[system]
    # The binaries of darwin64 may hold code for several processors.
    has_old = cpu == "x86_64" or system == "darwin"
    return [*([old] if has_old else []), f"{cpu}-{system}"], suffix


def library_of_version(name: str, major: int, platform: str = sys.platform) -> str:
    """Return the file name of a library of CUDA, which has no other version than a major one.

    >>> library_of_version("nvrtc", 13, "linux"), library_of_version("nvrtc", 13, "win32")
    ('libnvrtc.so.13', 'nvrtc64_130_0.dll')
    """
    return f"{name}64_{major}0_0.dll" if platform == "win32" else f"lib{name}.so.{major}"
