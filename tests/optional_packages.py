"""Packages that tests compare with, and that are not installed everywhere.

Without such a package a test is skipped and says which one it needs. With
``ARCHIMEDES_REQUIRE_TOOLS=1``, as in ``.ci/run``, it fails where the extra ``test`` asks for the
package on this platform: where no wheel exists, a marker in ``pyproject.toml`` leaves it out.
"""

from __future__ import annotations

import os
import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import pytest
from packaging.requirements import Requirement

REQUIRED = os.environ.get("ARCHIMEDES_REQUIRE_TOOLS", "0") not in ("", "0")
#: Packages by module, where the names differ.
PACKAGES = {
    "collada": "pycollada",
    "distributed": "dask",
    "PIL.Image": "pillow",
    "erfa": "pyerfa",
    "pinocchio": "pin",
    "pxr": "usd-core",
    "sksundae": "scikit-sundae",
}


@cache
def tested_packages() -> frozenset[str]:
    """Return the packages that the extra ``test`` installs on this platform."""
    text = (Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    every = map(Requirement, tomllib.loads(text)["project"]["optional-dependencies"]["test"])
    return frozenset(one.name for one in every if one.marker is None or one.marker.evaluate())


def import_or_skip(module: str) -> ModuleType:
    """Import a module; where its package is not installed, skip the test or the whole file."""
    try:
        return import_module(module)
    except ImportError as error:
        top = module.partition(".")[0]
        skip_without(PACKAGES.get(top, top), error)


def skip_without(package: str, error: Exception, what: str = "") -> NoReturn:
    """Skip for want of ``what`` a package brings, or raise ``error`` where it should be here."""
    if REQUIRED and package in tested_packages():
        raise error
    pytest.skip(f"needs {what or package}, which is not installed", allow_module_level=True)
