from archimedes.embedded.boards import ToolError as ToolError
from archimedes.embedded.c_project import CProject as CProject
from archimedes.embedded.c_project import codegen as codegen
from archimedes.embedded.qemu import EmulatedRun as EmulatedRun
from archimedes.embedded.qemu import run_in_qemu as run_in_qemu
from archimedes.embedded.resource_report import ResourceReport as ResourceReport
from archimedes.embedded.resource_report import report as report
from archimedes.errors import CodegenError as CodegenError
