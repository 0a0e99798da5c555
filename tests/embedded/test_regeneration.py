"""Generating again: the same bytes, one value on one line, the user's own lines kept."""

from __future__ import annotations

import difflib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import archimedes as arc
from archimedes.embedded.c_files import keep_user_code, user_code

from .algorithms import CASES, Estimate

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import hashlib
import archimedes as arc
from tests.embedded.algorithms import CASES
for case in CASES.values():
    project = arc.codegen(case.function, case.args, **case.keywords)
    print(hashlib.sha256(repr(sorted(project.files.items())).encode()).hexdigest())
"""


def generate(name: str, **more):
    case = CASES[name]
    return arc.codegen(case.function, case.args, **{**case.keywords, **more})


def changed_lines(before: dict[str, str], after: dict[str, str]) -> list[str]:
    assert before.keys() == after.keys()
    lines = []
    for name in before:
        pair = before[name].splitlines(), after[name].splitlines()
        lines += [line for line in difflib.ndiff(*pair) if line[0] in "+-"]
    return lines


@pytest.mark.parametrize("name", CASES)
def test_same_bytes_again(name):
    assert generate(name).files == generate(name).files


@pytest.mark.long
def test_same_bytes_in_other_processes():
    """Hashes of strings and addresses differ from process to process; the text does not."""
    found = set()
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], cwd=ROOT, env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        found.add(done.stdout)
    assert len(found) == 1


@pytest.mark.parametrize("value", [0.5, 1e-300, -123456.789012345, 0.1 + 0.2])
def test_a_parameter_is_on_its_own_line(value):
    est, y, dt, Q, R = CASES["ekf"].args
    other = Q.copy()
    other[1, 1] = value
    before = generate("ekf")
    after = arc.codegen(CASES["ekf"].function, (est, y, dt, other, R), **CASES["ekf"].keywords)
    lines = changed_lines(before.files, after.files)
    assert len(lines) == 2 and all("0.0" in line for line in lines)
    assert before.model.digest == after.model.digest


def test_a_default_value_is_on_its_own_line():
    est, y, _, Q, R = CASES["ekf"].args
    before = generate("ekf")
    after = arc.codegen(CASES["ekf"].function, (est, y, 0.25, Q, R), **CASES["ekf"].keywords)
    assert changed_lines(before.files, after.files) == ["-     0.1 /* dt */", "+     0.25 /* dt */"]


def test_the_hash_knows_the_algorithm_and_the_structs():
    est, y, dt, Q, R = CASES["ekf"].args

    def other(est, y, dt, Q, R):
        new = CASES["ekf"].function(est, y, dt, Q, R)
        return Estimate(2.0 * new.x, new.P)

    digest = generate("ekf").model.digest
    keywords = {**CASES["ekf"].keywords, "name": "ekf_step"}
    assert arc.codegen(other, (est, y, dt, Q, R), **keywords).model.digest != digest
    assert generate("ekf", float_type=np.float32).model.digest != digest
    assert generate("ekf", return_names=("new",), state={"est": "new"}).model.digest != digest


# ---- what users write ----------------------------------------------------------------------------


def test_user_code_is_kept(tmp_path):
    generate("ekf", output_dir=tmp_path)
    main, make = tmp_path / "main.c", tmp_path / "Makefile"
    mine = "    in.dt = 0.5; /* from my timer */\n"
    marker = "    /* USER CODE BEGIN inputs */\n"
    main.write_text(main.read_text().replace(marker, marker + mine))
    make.write_text(
        make.read_text().replace("USER CODE BEGIN rules\n", "USER CODE BEGIN rules\nflash:\n")
    )
    before = main.read_text(), make.read_text()
    generate("ekf", output_dir=tmp_path)
    assert (main.read_text(), make.read_text()) == before
    generate("ekf", output_dir=tmp_path, options={"version": "2.0.0"})
    assert mine in main.read_text() and "flash:" in make.read_text()
    assert '_VERSION "2.0.0"' in (tmp_path / "ekf_step.h").read_text()


def test_user_code_that_has_no_place_is_not_lost(tmp_path):
    generate("ekf", output_dir=tmp_path)
    main = tmp_path / "main.c"
    extra = "/* USER CODE BEGIN mine */\nint x;\n/* USER CODE END mine */\n"
    main.write_text(main.read_text() + extra)
    header = (tmp_path / "ekf_step.h").read_text()
    with pytest.raises(
        arc.CodegenError, match=r"main\.c: the text in USER CODE mine would be lost"
    ):
        generate("ekf", output_dir=tmp_path, options={"version": "2"})
    assert extra in main.read_text()
    assert (tmp_path / "ekf_step.h").read_text() == header, "nothing is written if not all is"
    generate("ekf", output_dir=tmp_path, options={"discard_user_code": True})
    assert extra not in main.read_text()


def test_a_file_of_somebody_else_is_not_overwritten(tmp_path):
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    with pytest.raises(arc.CodegenError, match="exists and is not a generated file"):
        generate("ekf", output_dir=tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["main.c"]


BEGIN, END = "/* USER CODE BEGIN a */\n", "/* USER CODE END a */\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BEGIN + "x", r"main\.c:2: the end of the file where region 'a' is open"),
        (END, r"main\.c:1: USER CODE END a where no region is open"),
        (BEGIN + BEGIN, r"main\.c:2: USER CODE BEGIN a where region 'a' is open"),
        (BEGIN + END.replace(" a ", " b "), r"main\.c:2: USER CODE END b where region 'a' is open"),
        (BEGIN + END + BEGIN + END, "two regions USER CODE a"),
    ],
)
def test_broken_markers(text, message):
    with pytest.raises(arc.CodegenError, match=message):
        user_code(text, "main.c")


def test_regions_keep_their_bytes():
    new = f"head\n{BEGIN}default\n{END}tail\n"
    old = f"Generated by Archimedes\n{BEGIN}\tmine, with no newline twice\n\n{END}old tail\n"
    assert keep_user_code(new, old, "f") == new.replace(
        "default\n", "\tmine, with no newline twice\n\n"
    )
    assert keep_user_code(new, "", "f") == new
