"""What ``pyproject.toml`` says about the project, and its version."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from tests.checkout import ROOT

__all__ = ["read_project", "read_settings", "version"]


def read_settings() -> dict[str, Any]:
    """Return all of ``pyproject.toml``."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def read_project() -> dict[str, Any]:
    """Return its table ``[project]``."""
    return read_settings()["project"]


def version() -> str:
    """Return the version, from the one file that states it."""
    path = ROOT / read_settings()["tool"]["hatch"]["version"]["path"]
    (found,) = re.findall(r'^__version__ = "(.+)"$', path.read_text("utf-8"), re.MULTILINE)
    return found
