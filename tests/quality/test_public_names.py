"""The names of a package stand once, in its stub; all else follows from it."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "archimedes"
STUBS = sorted(SOURCE.rglob("__init__.pyi"))


def package_of(stub: Path) -> str:
    return ".".join(stub.parent.relative_to(SOURCE.parent).parts)


def listed(stub: Path) -> dict[str, str]:
    """Names with their modules, read as Python reads the stub."""
    statements = ast.parse(stub.read_text(encoding="utf-8")).body
    imports = [s for s in statements if isinstance(s, ast.ImportFrom)]
    return {alias.name: str(s.module) for s in imports for alias in s.names}


def test_the_packages_that_users_call_have_stubs():
    assert {package_of(s) for s in STUBS} >= {"archimedes", "archimedes.function"}


@pytest.mark.parametrize("stub", STUBS, ids=package_of)
def test_names_follow_from_the_stub(stub):
    package = importlib.import_module(package_of(stub))
    names = listed(stub)
    assert package.__all__ == sorted(names)
    assert set(names) <= set(dir(package))
    for name, module in names.items():
        inside = module == package.__name__
        home = importlib.import_module(f"{module}.{name}" if inside else module)
        # Functions are boundaries (tracebacks.py) around those of their modules.
        value = inspect.unwrap(getattr(package, name))
        assert value is (home if inside else inspect.unwrap(getattr(home, name)))


@pytest.mark.parametrize("stub", STUBS, ids=package_of)
def test_a_stub_is_a_list_of_names(stub):
    """Anything else would exist for type checkers and not when the program runs."""
    for statement in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.AnnAssign):
            assert ast.unparse(statement) == "__version__: str"
        else:
            assert isinstance(statement, ast.ImportFrom)
            assert statement.level == 0
            assert all(alias.asname == alias.name for alias in statement.names)


@pytest.mark.parametrize("stub", STUBS, ids=package_of)
def test_a_package_with_a_stub_has_no_public_names_of_its_own(stub):
    """Type checkers read the stub alone."""
    package = ast.parse(stub.with_suffix(".py").read_text(encoding="utf-8"))
    for statement in package.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            names = [alias.asname or alias.name for alias in statement.names]
            assert all(n.startswith("_") or n in ("lazy_names", "annotations") for n in names)
        elif isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            assert statement.name.startswith("_")


def test_unknown_names_are_errors():
    for package in ("archimedes", "archimedes.function"):
        with pytest.raises(AttributeError, match=f"{package}.*has no attribute 'no_such_name'"):
            _ = importlib.import_module(package).no_such_name


def test_importing_the_package_imports_nothing_else():
    code = "import sys; before = {*sys.modules}; import archimedes; print(*{*sys.modules} - before)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = ("late_binding", "lazy_names", "version")
    own = {"archimedes", *(f"archimedes.{name}" for name in modules)}
    assert own <= {*run.stdout.split()} and "numpy" not in run.stdout
    assert {m for m in run.stdout.split() if m.startswith("archimedes")} == own


def test_names_are_found_in_an_archive(tmp_path):
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        modules = ("late_binding.py", "lazy_names.py", "tracebacks.py", "version.py", "errors.py")
        for name in ("__init__.py", "__init__.pyi", *modules):
            archive.write(SOURCE / name, f"archimedes/{name}")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import archimedes as arc; "
        "print(arc.TraceError.__name__, arc.__file__)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "packed.zip")]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.startswith("TraceError") and "packed.zip" in run.stdout
