"""The file of coefficients is TOML, though it is read without a TOML parser."""

from __future__ import annotations

import tomllib
from pathlib import Path

from archimedes.graph.elementary import coefficients


def test_it_is_read_as_a_toml_parser_reads_it():
    text = Path(coefficients.__file__).with_name("coefficients.toml").read_text("utf-8")
    rows = {name: coefficients.Minimax(**row) for name, row in tomllib.loads(text).items()}
    found = coefficients.polynomials()
    assert len(rows) > 10 and {k: vars(row) for k, row in rows.items()} == {
        k: vars(row) for k, row in found.items()
    }
