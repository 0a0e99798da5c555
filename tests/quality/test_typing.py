"""The package is typed, and editors know what its functions return.

One run of mypy checks the package, and a user's model under the strictest rules: each line of
``typed_model.py`` says what should be known of it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

MODEL = Path(__file__).with_name("typed_model.py")
#: How NumPy's types are written in the model's comments.
SHORT = {
    "numpy.ndarray[tuple[Any, ...], numpy.dtype[numpy.float64]]": "ARRAY",
    "numpy.ndarray[tuple[Any, ...], numpy.dtype[Any]]": "ANY_ARRAY",
}


def _short(text: str) -> str:
    for long, short in SHORT.items():
        text = text.replace(long, short)
    return re.sub(r"\b[\w.]+\.(?=\w)", "", text)


@pytest.mark.long
def test_what_a_type_checker_sees(tmp_path):
    packages = ["-p", "archimedes", "-m", "tests.quality.typed_model"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), *packages],
        cwd=MODEL.parents[2],
        capture_output=True,
        text=True,
    )
    said: dict[int, list[str]] = {}
    for line in done.stdout.splitlines():
        assert not re.match(r"(?!.*typed_model).*: error:", line), done.stdout
        if match := re.search(r":(\d+): (note: Revealed type is \"(.*)\"|error: .*)$", line):
            said.setdefault(int(match[1]), []).append(_short(match[3] or match[2]))
    expected = {
        number: line.partition("  # ")[2]
        for number, line in enumerate(MODEL.read_text(encoding="utf-8").splitlines(), start=1)
        if "  # " in line
    }
    assert len(expected) > 20, "the model has lost its comments"
    assert set(said) == set(expected), done.stdout + done.stderr
    for number, wanted in expected.items():
        found = said[number]
        if wanted.startswith("error: "):
            assert any(text.startswith(wanted) for text in found), (number, wanted, found)
        else:
            assert found == [wanted], (number, wanted, found)


@pytest.mark.long
@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_other_systems_have_what_is_used_on_them(platform, tmp_path):
    """The types of Python's library say which system has which function."""
    options = ["--cache-dir", str(tmp_path), "--platform", platform]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "-p", "archimedes.system"],
        cwd=MODEL.parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_says_that_it_is_typed():
    import archimedes

    assert Path(archimedes.__file__).with_name("py.typed").exists()
