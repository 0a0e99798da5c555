"""C projects for microcontrollers, and proof that they compute what Python computes.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from archimedes.lazy_names import lazy_names

if TYPE_CHECKING:
    from archimedes.embedded.boards.qemu import EmulatedRun, run_in_qemu
    from archimedes.embedded.checking.resource_report import ResourceReport, report
    from archimedes.embedded.generation import codegen
    from archimedes.embedded.project import CProject
    from archimedes.embedded.tools import ToolError
    from archimedes.errors import CodegenError

_HOMES = {
    "archimedes.embedded.generation": "codegen",
    "archimedes.embedded.project": "CProject",
    "archimedes.embedded.boards.qemu": "EmulatedRun run_in_qemu",
    "archimedes.embedded.checking.resource_report": "ResourceReport report",
    "archimedes.embedded.tools": "ToolError",
    "archimedes.errors": "CodegenError",
}

__all__ = [
    "CProject",
    "CodegenError",
    "EmulatedRun",
    "ResourceReport",
    "ToolError",
    "codegen",
    "report",
    "run_in_qemu",
]

__getattr__ = lazy_names(__name__, _HOMES)
