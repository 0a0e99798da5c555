"""The example of docs/codegen.md runs, and its C loop compiles."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from .toolchain import needs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "codegen.md"


@needs("gcc", "make")
def test_the_example_runs(tmp_path, monkeypatch, capsys):
    text = PAGE.read_text(encoding="utf-8")
    (python,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (loop,) = re.findall(r"```c\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    page = ModuleType("codegen_page")
    monkeypatch.setitem(sys.modules, page.__name__, page)  # dataclasses look for their module
    exec(compile(python, str(PAGE), "exec"), page.__dict__)
    assert "verified: 48 sets of inputs" in capsys.readouterr().out
    folder = tmp_path / "roll_project"
    done = subprocess.run(["make", "run"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0 and "aileron = " in done.stdout, done.stderr
    drivers = (
        "double read_gyro(void);\nvoid read_accel(double *);\nvoid set_aileron(double);\n"
        "int main(void)\n{\n" + loop + "}\n"
    )
    (folder / "loop.c").write_text('#include "roll.h"\n' + drivers)
    command = ["gcc", "-std=c99", "-Wall", "-Werror", "-fsyntax-only", "loop.c"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
