from archimedes.embedded.emulation.qemu import EmulatedRun as EmulatedRun
from archimedes.embedded.emulation.qemu import run_in_qemu as run_in_qemu
from archimedes.embedded.generation import codegen as codegen
from archimedes.embedded.project import CProject as CProject
from archimedes.embedded.reports.resource_report import ResourceReport as ResourceReport
from archimedes.embedded.reports.resource_report import report as report
from archimedes.embedded.tools import ToolError as ToolError
from archimedes.errors import CodegenError as CodegenError
