"""Only ``archimedes.system`` asks on which system it runs, or uses what one system alone has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "archimedes"
FILES = sorted(p for p in SOURCE.rglob("*.py") if "system" not in p.relative_to(SOURCE).parts[:1])

#: Modules of one system, and modules whose subject ``archimedes.system`` has.
MODULES = {
    *("_winapi", "ctypes.util", "ctypes.wintypes", "fcntl", "grp", "msvcrt", "nt", "platform"),
    *("posix", "pty", "pwd", "resource", "select", "selectors", "syslog", "termios", "tty"),
    *("webbrowser", "winreg", "winsound"),
}
#: Names in modules that every system has, of which some systems have no such thing or another.
NAMES = {
    "sys": "getwindowsversion platform winver",
    "os": "O_BINARY O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NOINHERIT O_NONBLOCK add_dll_directory "
    "chown execv execve fork forkpty getegid geteuid getgid getloadavg getpgid getuid kill killpg "
    "mkfifo name nice open posix_spawn register_at_fork rename replace sched_getaffinity "
    "sched_setaffinity setsid startfile sysconf uname wait4 waitpid",
    "signal": "CTRL_BREAK_EVENT CTRL_C_EVENT SIGALRM SIGHUP SIGKILL SIGQUIT SIGUSR1 SIGUSR2 alarm "
    "pause pthread_kill setitimer sigwait",
    "shutil": "which",
    "subprocess": "CREATE_NEW_PROCESS_GROUP Popen STARTUPINFO call check_call check_output run",
    "ctypes": "WINFUNCTYPE WinDLL WinError c_long c_ulong oledll windll",
    "time": "CLOCK_MONOTONIC clock_gettime clock_gettime_ns",
    "multiprocessing": "get_context set_start_method",
    "locale": "getencoding getlocale getpreferredencoding",
}
FORBIDDEN = {f"{module}.{name}" for module, names in NAMES.items() for name in names.split()}
#: Folders and files of one system, as whole texts or at their beginning.
PATHS = ("/proc", "/sys/", "/dev/", "/usr/", "/etc/", "/bin/", "/Applications", "C:\\")
#: What a file must hold to be worth parsing: one of the imports, a path, a write of text.
SUSPECT = re.compile(
    rf"import(lib|_module|__)?\b.*\b({'|'.join([*MODULES, *NAMES])})\b"
    rf"|from ({'|'.join([*MODULES, *NAMES])}) import"
    rf"|['\"]({'|'.join(map(re.escape, PATHS))})|write_text"
)


def violations(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of what belongs into ``archimedes.system``."""
    if not SUSPECT.search(text):
        return
    known: dict[str, str] = {}
    nodes = list(ast.walk(ast.parse(text)))
    yield from _text_writes(nodes)
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                known[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
                if alias.name in MODULES:
                    yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                known[alias.asname or alias.name] = full
                if node.module in MODULES or full in MODULES | FORBIDDEN:
                    yield node.lineno, full
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            full = f"{known.get(node.value.id)}.{node.attr}"
            if full in FORBIDDEN:
                yield node.lineno, full
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in ("getattr", "hasattr") and len(node.args) > 1:
                yield from _looked_up(node, known)
            elif node.func.id in ("import_module", "__import__") and node.args:
                name = node.args[0]
                if isinstance(name, ast.Constant) and name.value in MODULES:
                    yield node.lineno, name.value
        elif isinstance(node, ast.Constant) and str(node.value).startswith(PATHS):
            yield node.lineno, repr(node.value)


def _looked_up(node: ast.Call, known: dict[str, str]) -> Iterator[tuple[int, str]]:
    """Yield a name that is looked up by its text."""
    owner, name = node.args[:2]
    if isinstance(owner, ast.Name) and isinstance(name, ast.Constant):
        full = f"{known.get(owner.id)}.{name.value}"
        if full in FORBIDDEN:
            yield node.lineno, full


def _text_writes(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield what writes text without saying in which encoding and with which line endings."""
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            given = {keyword.arg for keyword in node.keywords}
            if node.func.attr == "write_text" and not {"encoding", "newline"} <= given:
                yield node.lineno, "write_text without encoding and newline"


def test_only_one_package_knows_systems():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for path in FILES
        for line, what in violations(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "text, what",
    [
        ("import fcntl", "fcntl"),
        ("def f():\n    import resource as r", "resource"),
        ("from pwd import getpwuid", "pwd.getpwuid"),
        ("import ctypes.wintypes", "ctypes.wintypes"),
        ("import os\nif os.name == 'nt':\n    pass", "os.name"),
        ("import os as system\nsystem.fork()", "os.fork"),
        ("from os import geteuid", "os.geteuid"),
        ("from sys import platform", "sys.platform"),
        ("import sys\nx = sys.platform.startswith('win')", "sys.platform"),
        ("import platform\nplatform.system()", "platform"),
        ("import os\nif hasattr(os, 'sched_getaffinity'):\n    pass", "os.sched_getaffinity"),
        ("import os\nx = getattr(os, 'O_NOFOLLOW', 0)", "os.O_NOFOLLOW"),
        ("import signal\nsignal.SIGKILL", "signal.SIGKILL"),
        ("from importlib import import_module\nimport_module('msvcrt')", "msvcrt"),
        ("from pathlib import Path\nPath('/proc/cpuinfo')", "'/proc/cpuinfo'"),
        ("open('/dev/null')", "'/dev/null'"),
        ("import ctypes\nctypes.c_long(3)", "ctypes.c_long"),
        ("p.write_text('a', encoding='utf-8')", "write_text without encoding and newline"),
    ],
)
def test_every_form_is_seen(text, what):
    assert what in {name for _, name in violations(text)}


@pytest.mark.parametrize(
    "text",
    [
        "import os\nos.environ, os.path, os.cpu_count()",
        "class A:\n    platform = name = 1\nA().platform, A.name",
        "import sys\nsys.stdout, sys.executable",
        "text = 'see /proc of Linux'",
        "import signal\nsignal.SIGINT",
        "p.write_text('a', encoding='utf-8', newline='\\n')",
    ],
)
def test_what_every_system_has_is_fine(text):
    assert list(violations(text)) == []
