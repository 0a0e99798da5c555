"""C projects for microcontrollers, and proof that they compute what Python computes.

Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from archimedes.embedded.generation import codegen
    from archimedes.embedded.project import CProject
    from archimedes.embedded.qemu import EmulatedRun, run_in_qemu
    from archimedes.embedded.resource_report import ResourceReport, report
    from archimedes.embedded.tools import ToolError
    from archimedes.errors import CodegenError

_HOMES = {
    "archimedes.embedded.generation": "codegen",
    "archimedes.embedded.project": "CProject",
    "archimedes.embedded.qemu": "EmulatedRun run_in_qemu",
    "archimedes.embedded.resource_report": "ResourceReport report",
    "archimedes.embedded.tools": "ToolError",
    "archimedes.errors": "CodegenError",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}

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


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'archimedes.embedded' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value
