"""Pictures of trajectories, campaigns, modes and structures."""

from __future__ import annotations

from archimedes.viz.campaigns import plot_campaign, sensitivities
from archimedes.viz.modes import plot_modes, plot_root_locus
from archimedes.viz.plotting import plot
from archimedes.viz.structures import plot_graph, plot_sparsity
from archimedes.viz.themes import THEMES, set_theme
from archimedes.viz.trajectories import plot_trajectory
from archimedes.viz.work_precision import measure_work_precision, plot_work_precision

__all__ = [
    "THEMES",
    "measure_work_precision",
    "plot",
    "plot_campaign",
    "plot_graph",
    "plot_modes",
    "plot_root_locus",
    "plot_sparsity",
    "plot_trajectory",
    "plot_work_precision",
    "sensitivities",
    "set_theme",
]
