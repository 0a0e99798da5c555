"""Models in DAVE-ML (ANSI/AIAA S-119-2011), the XML exchange format of flight simulation."""

from __future__ import annotations

from archimedes.vehicles.dave_ml.dave_model import DaveModel, read
from archimedes.vehicles.dave_ml.dave_report import CheckReport, CheckRow, ImportReport

__all__ = ["CheckReport", "CheckRow", "DaveModel", "ImportReport", "read"]
