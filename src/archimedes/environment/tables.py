"""Published tables, kept as data beside the code that reads them."""

from __future__ import annotations

from importlib import resources
from tomllib import loads
from types import SimpleNamespace

import numpy as np


def read_tables(package: str, file: str) -> SimpleNamespace:
    """Return the tables of a TOML file in a package, arrays of floats by their names."""
    text = resources.files(package).joinpath(file).read_text("utf-8")
    return SimpleNamespace(**{name: np.array(x, float) for name, x in loads(text).items()})
