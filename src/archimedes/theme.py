"""``archimedes.theme``: the themes of plots under the name that users of the original know."""

from __future__ import annotations

from archimedes.viz import THEMES, set_theme

__all__ = ["color_schemes", "set_theme"]

#: The colours of the lines of each theme.
color_schemes = {name: list(colours) for name, (colours, _) in THEMES.items()}
