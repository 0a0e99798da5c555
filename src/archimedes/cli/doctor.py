"""Say what is installed, what is missing, and how to add it.

Examples:
    archimedes doctor
    archimedes doctor --json

It is needed most where something is broken: it imports nothing that could fail without saying so,
writes nothing, and asks each thing by itself.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from archimedes.cli.answers import answer
from archimedes.installation import install_command
from archimedes.system.cpus import cpu_count, cpu_name, operating_system
from archimedes.system.programs import find_browser, find_program, install_hint, run_program

SIGNS = {"ok": "ok", "missing": "--", "problem": "!!", "info": "  "}


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the options (there is only --json)."""


def run(options: argparse.Namespace) -> int:
    """Look at everything; the exit status is 1 where something that is needed is wrong."""
    sections = examine()
    wrong = sum(f.state == "problem" for findings in sections.values() for f in findings)
    data = {title: [f._asdict() for f in findings] for title, findings in sections.items()}
    lines = []
    for title, findings in sections.items():
        lines.append(title)
        for f in findings:
            lines.append(f"  {SIGNS[f.state]}  {f.name:<26}{f.value}")
            lines += [f"      {f.advice}"] if f.advice else []
        lines.append("")
    repair = f"{wrong} thing(s) to repair, marked !!"
    lines.append(repair if wrong else "Everything that is needed is installed.")
    answer(options, {"healthy": not wrong, "sections": data}, "\n".join(lines))
    return 1 if wrong else 0


# ---- examinations: each yields findings -----------------------------------


class Finding(NamedTuple):
    """One thing: `state` is "ok", "missing" (optional), "problem" (needed) or "info"."""

    name: str
    state: str
    value: str
    advice: str = ""


#: Packages that are needed, with the least version, as in pyproject.toml.
REQUIRED = {
    "numpy": "2.0",
    "llvmlite": "0.46",
    "scipy": "1.13",
    "pyyaml": "6.0",
    "tqdm": "4.66",
    "matplotlib": "3.8",
}
#: Optional parts: what they are for, modules each of which brings it, the extra that adds one.
OPTIONAL = (
    ("live views in a browser", ("viser",), "viewer"),
    ("tables: pandas", ("pandas",), "data"),
    ("tables: xarray", ("xarray",), "data"),
    ("Parquet files", ("pyarrow",), "data"),
    ("HDF5 and NetCDF files", ("h5netcdf",), "data"),
    ("MCAP files", ("mcap",), "logs"),
    ("ROS bags", ("rosbags",), "logs"),
    ("logs of PX4", ("pyulog",), "logs"),
    ("MAVLink, logs of ArduPilot", ("pymavlink",), "logs"),
    ("PyTorch", ("torch",), "torch"),
    ("JAX", ("jax",), "jax"),
    ("networks from ONNX files", ("onnx",), "onnx"),
    ("Gymnasium", ("gymnasium",), "gymnasium"),
    ("USD files", ("pxr",), "usd"),
    ("IPOPT", ("casadi", "ipyopt"), "optimize"),
    ("SUNDIALS", ("sksundae",), "sundials"),
    ("robots from MJCF", ("mujoco",), "robots"),
    ("robots' meshes: COLLADA", ("collada",), "robots"),
    ("meshes as convex parts", ("coacd",), "convex"),
    ("campaigns on a cluster", ("dask",), "distributed"),
    ("GPU", ("cupy",), "cuda"),
)
#: Distributions by module, where the names differ.
DISTRIBUTIONS = {"collada": "pycollada", "pxr": "usd-core", "sksundae": "scikit-sundae"}
#: Programs by purpose.
PROGRAMS = {
    "Compilers (for C code; native code in Python needs none)": (
        *("gcc", "clang", "arm-none-eabi-gcc", "riscv64-unknown-elf-gcc"),
    ),
    "Emulators and other programs": (
        *("qemu-system-arm", "qemu-system-riscv32", "chromium", "ffmpeg"),
    ),
}


def examine() -> dict[str, list[Finding]]:
    """Return all findings by section."""
    examinations: dict[str, Callable[[], Iterable[Finding]]] = {
        "System": system,
        "Packages that are needed": packages,
        "Compiling": compiling,
        "Cache of compiled code": cache,
        **{title: partial(programs, names) for title, names in PROGRAMS.items()},
        "GPU": gpu,
        "Optional parts": optional,
    }
    return {title: run_examination(title, look) for title, look in examinations.items()}


def run_examination(title: str, look: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """Return findings; where the examination itself fails, that is the finding."""
    try:
        return list(look())
    except Exception as error:
        return [Finding(title, "problem", f"{type(error).__name__}: {error}")]


def system() -> Iterator[Finding]:
    """Look at the versions of the package and of Python, and at the processor."""
    import archimedes

    python = f"{sys.version.split()[0]} ({sys.executable})"
    yield Finding("Archimedes", "ok", archimedes.__version__)
    yield Finding("Python", "ok", python)
    yield Finding("platform", "info", operating_system())
    yield Finding("processor", "info", cpu_name())
    yield Finding("vector instructions", "info", vector_instructions())
    chosen = os.environ.get("ARCHIMEDES_THREADS")
    source = f"ARCHIMEDES_THREADS={chosen}" if chosen else f"of {os.cpu_count()} processors"
    yield Finding("threads", "info", f"{cpu_count()} ({source})")


def vector_instructions() -> str:
    """Return which vector instructions LLVM finds on this processor."""
    try:
        from llvmlite import binding  # type: ignore[import-untyped]

        features = binding.get_host_cpu_features()
    except Exception as error:  # an old or broken llvmlite; the section on packages says more
        return f"unknown ({type(error).__name__})"
    known = ("avx512f", "avx2", "avx", "fma", "sse4.2", "neon", "sve")
    return ", ".join(name for name in known if features.get(name)) or "none"


def version_numbers(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version."""
    leading = re.match(r"\d+(\.\d+)*", text)
    return tuple(map(int, leading[0].split("."))) if leading else ()


def version_of(name: str) -> str | None:
    """Return the version of a distribution, None where it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def packages() -> Iterator[Finding]:
    """Look for the packages without which nothing works."""
    for name, least in REQUIRED.items():
        version = version_of(name)
        advice = f'pip install "{name}>={least}"'
        if version is None:
            yield Finding(name, "problem", "not installed", advice)
        elif version_numbers(version) < version_numbers(least):
            value = f"{version}, but {least} or newer is needed"
            yield Finding(name, "problem", value, f"{advice} --upgrade")
        else:
            yield Finding(name, "ok", version)


def compiling() -> Iterator[Finding]:
    """Record, differentiate and compile a small function."""
    try:
        import archimedes as arc

        double = arc.compile(lambda x: x * x + 1.0, backend="llvm")
        slope = arc.grad(lambda x: x * x)(3.0)
        good = float(double(2.0)) == 5.0 and float(slope) == 6.0
    except Exception as error:
        advice = "see the packages above; if they are right, please report this"
        yield Finding("native code", "problem", f"{type(error).__name__}: {error}", advice)
        return
    if good:
        yield Finding("native code", "ok", "a function was recorded, differentiated and compiled")
    else:
        yield Finding("native code", "problem", "a wrong result", "please report this")


def cache() -> Iterator[Finding]:
    """Look at the folder of compiled kernels."""
    from archimedes.backends.code_cache import LIMIT, cache_folder

    folder = cache_folder()
    if folder is None:
        advice = "unset ARCHIMEDES_CACHE, or name a folder by ARCHIMEDES_CACHE_DIR"
        yield Finding("folder", "missing", "turned off, or no home folder", advice)
        return
    yield Finding("folder", "info", str(folder))
    sizes = []
    try:
        sizes = [p.stat().st_size for p in folder.rglob("*.o") if p.is_file()]
    except OSError as error:
        yield Finding("reading it", "missing", str(error))
    total = f"{sum(sizes) / 2**20:.1f} MiB in {len(sizes)} kernels (limit {LIMIT // 2**20} MiB)"
    yield Finding("size", "info", total)
    if can_write(folder):
        yield Finding("writing to it", "ok", "possible")
    else:
        advice = (
            "kernels are compiled anew in every process: name a folder that you may write to, "
            "export ARCHIMEDES_CACHE_DIR=$PWD/archimedes-cache"
        )
        yield Finding("writing to it", "missing", "not possible", advice)


def can_write(folder: Path) -> bool:
    """Return whether files could be written in a folder, which need not exist yet."""
    there = next((f for f in (folder, *folder.parents) if f.exists()), None)
    return there is not None and there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def first_line(path: str) -> str:
    """Return what a program says about its version."""
    try:
        option = "-version" if Path(path).stem == "ffmpeg" else "--version"
        done = run_program([path, option], timeout=10)
    except (OSError, subprocess.SubprocessError) as error:
        return f"{path}, which does not start ({type(error).__name__})"
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0][:80] if lines else path


def programs(names: Iterable[str]) -> Iterator[Finding]:
    """Look for programs by their names."""
    for name in names:
        path = find_browser() if name == "chromium" else find_program(name)
        if path is not None:
            yield Finding(name, "ok", first_line(path))
        else:
            yield Finding(name, "missing", "not found", install_hint(name))


def gpu() -> Iterator[Finding]:
    """Look for a device and for CuPy."""
    query = "--query-gpu=name,driver_version,memory.total,memory.free"
    driver = ""
    if program := find_program("nvidia-smi"):
        with suppress(OSError, subprocess.SubprocessError):
            done = run_program([program, query, "--format=csv,noheader"], timeout=20)
            driver = "" if done.returncode else done.stdout.strip().partition("\n")[0]
    if not driver:
        text = "no NVIDIA GPU with a driver: everything runs on the processor"
        yield Finding("device", "missing", text)
        return
    yield Finding("device", "ok", driver)
    if is_importable("cupy"):
        text = f"{version_of('cupy') or 'installed'}; python -m tests.cuda checks it"
        yield Finding("CuPy", "ok", text)
        where = 'arrays of CuPy, PyTorch and JAX on it run there, NumPy\'s with backend="cuda"'
        yield Finding("what runs there", "ok", where)
    else:
        advice = f"{install_command('cuda')} (CUDA 13), {install_command('cuda12')} (CUDA 12)"
        yield Finding("CuPy", "missing", "not installed", advice)


def optional() -> Iterator[Finding]:
    """Look for the optional parts."""
    for purpose, modules, extra in OPTIONAL:
        names = [DISTRIBUTIONS.get(module, module) for module in modules]
        here = next((n for n, m in zip(names, modules) if is_importable(m)), None)
        if here is not None:
            yield Finding(purpose, "ok", f"{here} {version_of(here) or ''}".strip())
        else:
            value = f"{' or '.join(names)} is not installed"
            yield Finding(purpose, "missing", value, install_command(extra))


def is_importable(module: str) -> bool:
    """Return whether a module is installed, without importing it."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
