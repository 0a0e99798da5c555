"""The example program of a C project, built by its Makefile for Windows."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np

import archimedes as arc

from ..c.checking import needs
from ..other_systems import WINDOWS


def model(x, n, big):
    return np.sin(x) / 3.0, n * n - 7 * n, big & (n > 3), x.astype(np.float32)


def built(folder: Path, *options: str) -> None:
    command = [needs("make"), "-s", "CFLAGS_WARN=-Wall -Wextra -pedantic -Werror", *options]
    subprocess.run(command, cwd=folder, check=True)


def test_it_prints_the_same_numbers(tmp_path: Path):
    """Integers of 64 bits and doubles to the last digit."""
    compiler = needs(WINDOWS.compiler)
    given = (np.array([1.0, 1e-300, -2e15]), np.int64(3_000_000_000), np.True_)
    for system in ("here", "windows"):
        arc.codegen(model, given, name="model", output_dir=tmp_path / system)
    built(tmp_path / "here")
    built(tmp_path / "windows", f"CC={compiler}", "AR=x86_64-w64-mingw32-ar")
    here = subprocess.run(
        ["./model_example"], cwd=tmp_path / "here", capture_output=True, text=True, check=True
    )
    there = WINDOWS.run("./model_example.exe", tmp_path / "windows")
    assert there.stdout.split() == here.stdout.split()
    assert "8999999979000000000" in here.stdout and f"{np.sin(1.0) / 3.0:.17g}" in here.stdout
