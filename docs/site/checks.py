"""Checks of the built site: its index, its links, what it would fetch."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["broken_links", "fetched", "indexed"]


def indexed(site: Path) -> set[str]:
    """Return the names in the site's index of objects (``objects.inv``)."""
    data = (site / "objects.inv").read_bytes()
    header_end = 0
    for _ in range(4):
        header_end = data.index(b"\n", header_end) + 1
    lines = zlib.decompress(data[header_end:]).decode().splitlines()
    return {line.split(" ", 1)[0] for line in lines if " py:" in line}


class _Page(HTMLParser):
    """Anchors of a page, and what it refers to."""

    def __init__(self, text: str):
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note ids and references."""
        for name, value in attrs:
            if value and (name == "id" or (name == "name" and tag == "a")):
                self.anchors.add(value)
            elif value and name in ("href", "src"):
                self.links.append((tag, value))


def _pages(site: Path) -> dict[Path, _Page]:
    return {p: _Page(p.read_text("utf-8")) for p in sorted(site.rglob("*.html"))}


def broken_links(site: Path) -> Iterator[str]:
    """Yield the links within the site that lead nowhere, as "page -> target"."""
    pages = _pages(site)
    for path, page in pages.items():
        for _, link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            file = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
            anchor = unquote(parts.fragment)
            there = file.is_file()
            if there and anchor and file in pages:
                there = anchor in pages[file].anchors or anchor == "top"
            if not there:
                yield f"{path.relative_to(site)} -> {link}"


def fetched(site: Path) -> Iterator[str]:
    """Yield what pages would fetch from elsewhere: scripts, styles, pictures, fonts."""
    for path, page in _pages(site).items():
        for tag, link in page.links:
            if tag != "a" and urlsplit(link).netloc:
                yield f"{path.relative_to(site)}: {link}"
    for path in sorted(site.rglob("*.css")):
        for link in re.findall(r"url\(\s*[\"']?(https?:[^)\"']+)", path.read_text("utf-8")):
            yield f"{path.relative_to(site)}: {link}"
