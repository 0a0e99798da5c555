"""Pictures of the demonstrations: ``python -m docs.site.demo_pictures`` takes them anew.

They are kept in ``docs/_static/demos``, since taking them needs Chromium, which machines that build
the site need not have.
"""

from __future__ import annotations

import io
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from archimedes.demos import DEMOS, run_demo
from archimedes.viewer.browser import Browser
from docs.site.page_blocks import ROOT

__all__ = ["FOLDER", "demo_cards", "main", "write_live_pages"]

FOLDER = ROOT / "docs" / "_static" / "demos"
SIZE = (960, 540)
#: The link to the page whose model runs in the browser.
LIVE_LINK = """```{{raw}} html
<p><a href="_static/live/{name}.html">Open the live page: the model runs in it, move it</a></p>
```

"""
#: When each is at its best, in parts of its time.
MOMENTS = {"f16": 0.78, "landing": 0.86, "orbit": 0.6, "quadruped": 0.14}


def main(names: list[str]) -> int:
    """Run demonstrations (all, unless named) and take a picture of each page."""
    from PIL import Image

    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, Browser(*SIZE) as browser:
        for name in names or DEMOS:
            run_demo(name, Path(place, name), quiet=True)
            browser.open(Path(place, name, f"{name}.html"))
            browser.wait("window.viewer !== undefined && viewer.state().pictures > 0")
            first, last = browser.evaluate("viewer.state().span")
            browser.evaluate("viewer.theme('light')")
            moment = MOMENTS.get(name, 0.35)
            browser.evaluate(f"viewer.go({first + moment * (last - first)})")
            picture = Image.open(io.BytesIO(browser.screenshot())).convert("RGB")
            picture.save(FOLDER / f"{name}.jpg", quality=84, optimize=True)
    return 0


def write_live_pages(folder: Path) -> None:
    """Write the live pages of the demonstrations for the gallery."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, demo in DEMOS.items():
        if demo.live:
            module = import_module(f"archimedes.demos.{demo.live}")
            module.page().save(folder / f"{name}.html")


def demo_cards() -> str:
    """Return the part of the gallery that shows the demonstrations."""
    cards = "".join(
        f"### {name}\n\n{demo.summary[0].upper()}{demo.summary[1:]}: `archimedes demo {name}`.\n\n"
        f"{LIVE_LINK.format(name=name) if demo.live else ''}"
        f"![The page of the demonstration {name}.](_static/demos/{name}.jpg)\n\n"
        for name, demo in DEMOS.items()
    )
    return (
        "## Demonstrations\n\nEach takes less than a minute, checks itself, and leaves plots and "
        "a page in 3-D that opens offline ([command line](command_line.md)). Some have a live page "
        f"besides, whose model runs in the browser ([interactive pages](live_pages.md)).\n\n{cards}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
