"""Runs pages and examples, and keeps what they print and draw."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import runpy
import shutil
import sys
import tempfile
import types
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from docs.site.page_blocks import ROOT, Block, blocks_of, missing
from docs.site.pictures import PICTURES
from docs.site.unit_checks import units_checked

__all__ = ["Output", "run_blocks", "run_example", "run_file"]


@dataclass
class Output:
    """What a block printed, drew (PNG files) and saved (pages in 3-D); or what it lacked."""

    text: str = ""
    pictures: list[str] = field(default_factory=list)
    scenes: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def run_blocks(page: Path, pictures: Path | None = None) -> list[Output]:
    """Run the blocks of a page as one module, in the current folder; check the units of models."""
    with units_checked(page):
        return _run_blocks(page, pictures)


def _run_blocks(page: Path, pictures: Path | None) -> list[Output]:
    module = types.ModuleType("page")
    sys.modules["page"] = module
    outputs = []
    for number, block in enumerate(blocks_of(page.read_text("utf-8"))):
        if absent := missing(block.needs):
            _insist(page, block, absent)
            outputs.append(Output(skipped=absent))
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            _run(block, str(page), module.__dict__)
        if block.interactive and "WebAssembly" not in _saved_text():
            raise AssertionError(f"{page}:{block.line}: the block saves no interactive page")
        drawn = _open_figures(f"{page.stem}_{number}", pictures)
        scenes = _saved_pages(f"{page.stem}_{number}", pictures)
        outputs.append(Output(printed.getvalue(), drawn, scenes))
    return outputs


def run_example(script: Path, pictures: Path | None = None) -> list[Output]:
    """Run a script of ``examples/``; draw what ``pictures.py`` has for it."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), units_checked(script):
        names = runpy.run_path(str(script), run_name="__main__")
    drawn: list[str] = []
    if pictures is not None and script.stem in PICTURES:
        try:
            figure = PICTURES[script.stem](types.SimpleNamespace(**names))
        except AttributeError as error:
            error.add_note(f"docs/site/pictures.py draws {script.name} from its variables")
            raise
        drawn = [_saved(figure, f"example_{script.stem}", pictures)]
    return [Output(printed.getvalue(), drawn)]


def run_file(path: Path, pictures: Path) -> list[dict[str, Any]]:
    """Run a page or example in a folder of its own, in a process of its own."""
    os.environ["MPLBACKEND"] = "agg"
    pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        warnings.simplefilter("error")
        run = run_example if path.suffix == ".py" else run_blocks
        return [asdict(output) for output in run(path, pictures)]


def _run(block: Block, file: str, names: dict[str, Any]) -> None:
    """Run a block; print the value of its last line, as Python does, unless it draws."""
    # Blank lines in front keep the line numbers of the page in tracebacks.
    tree = ast.parse("\n" * (block.line - 1) + block.code, file)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    try:
        exec(compile(tree, file, "exec", dont_inherit=True), names)
        if last is not None:
            mode = "exec" if _draws() else "single"  # of what draws the picture is shown
            shown = ast.Module([last], []) if mode == "exec" else ast.Interactive([last])
            exec(compile(shown, file, mode, dont_inherit=True), names)
    except Exception as error:
        if not block.raises:
            raise
        print(f"{type(error).__name__}: {_without_places(str(error), file)}")
        return
    if block.raises:
        raise AssertionError(f"{file}:{block.line}: the block should end in an error")


def _draws() -> bool:
    """Return whether a block has opened a figure."""
    return "matplotlib.pyplot" in sys.modules and bool(
        sys.modules["matplotlib.pyplot"].get_fignums()
    )


def _without_places(message: str, file: str) -> str:
    """Name the page as a reader knows it."""
    return message.replace(file, Path(file).name).replace(str(ROOT) + os.sep, "")


def _insist(page: Path, block: Block, absent: list[str]) -> None:
    """Refuse to leave out a block for want of a program, where all are said to be here."""
    programs = [n for n in absent if "-" in n or n in ("gcc", "clang", "make")]
    if programs and os.environ.get("ARCHIMEDES_REQUIRE_TOOLS") == "1":
        raise RuntimeError(f"{page}:{block.line} needs {', '.join(programs)}: .ci/install-tools")


def _open_figures(name: str, folder: Path | None) -> list[str]:
    """Save and close the figures that a block left open."""
    from matplotlib import pyplot

    figures = [pyplot.figure(n) for n in pyplot.get_fignums()]
    names = (
        [_saved(f, f"{name}_{k}", folder) for k, f in enumerate(figures)]
        if folder is not None
        else []
    )
    pyplot.close("all")
    return names


def _saved_text() -> str:
    """Return the text of the pages in the current folder."""
    return "".join(page.read_text("utf-8") for page in Path().glob("*.html"))


def _saved_pages(name: str, folder: Path | None) -> list[str]:
    """Take over the pages that a block saved in the current folder."""
    if folder is None:
        return []
    names = []
    for k, page in enumerate(sorted(Path().glob("*.html"))):
        names.append(f"{name}_{k}.html")
        shutil.move(page, folder / names[-1])
    return names


def _saved(figure: Any, name: str, folder: Path) -> str:
    """Save a figure as PNG, without the date, and return its name."""
    figure.savefig(folder / f"{name}.png", dpi=110, metadata={"Software": None})
    return f"{name}.png"
