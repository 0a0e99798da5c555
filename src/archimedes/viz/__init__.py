"""Pictures of trajectories."""

from __future__ import annotations

from archimedes.viz.plotting import plot
from archimedes.viz.themes import THEMES, set_theme

__all__ = ["THEMES", "plot", "set_theme"]
