"""Pipes to a program, forked children, and programs that are found, run and named."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from archimedes.system.processes import PipedProcess, call_in_forked_children, is_root
from archimedes.system.programs import browser_paths, find_browser, find_program, run_program

#: Says back what it reads, in capitals. On Windows the handles come as the last argument.
ECHO = """
import os, sys
if sys.platform == "win32":
    import msvcrt
    handles = map(int, sys.argv[-1].partition("=")[2].split(","))
    read, write = (msvcrt.open_osfhandle(h, f) for h, f in zip(handles, (os.O_RDONLY, os.O_WRONLY)))
else:
    read, write = 3, 4
while data := os.read(read, 65536):
    os.write(write, data.upper())
"""


def test_a_program_with_pipes():
    process = PipedProcess([sys.executable, "-c", ECHO], handles="--handles")
    process.send(b"abc")
    assert process.receive(30.0) == b"ABC"
    assert process.receive(0.0) is None
    long = b"x" * 300_000
    process.send(long[:60_000])
    found = b""
    while len(found) < 60_000:
        found += process.receive(30.0)
    assert found == long[:60_000].upper()
    process.end()
    assert process.receive(30.0) == b""


def test_the_end_of_a_program_is_told():
    process = PipedProcess([sys.executable, "-c", "pass"], handles="--handles")
    assert process.receive(30.0) == b""
    process.end()


def test_a_program_that_is_not_there():
    """Windows says so at once; elsewhere the launcher ends."""
    try:
        process = PipedProcess(["no-such-program-at-all"], handles="--handles")
    except OSError:
        assert sys.platform == "win32"
    else:
        assert process.receive(30.0) == b""
        process.end()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows forks no process")
def test_forked_children_call_first():
    code = (
        "import os; from archimedes.system.processes import call_in_forked_children as call\n"
        "call(lambda: print('child', flush=True))\n"
        "pid = os.fork()\n"
        "if pid: os.waitpid(pid, 0); print('parent')\n"
    )
    done = run_program([sys.executable, "-c", code])
    assert done.stdout.split() == ["child", "parent"], done.stderr


def test_roots():
    assert is_root() == (hasattr(os, "geteuid") and os.geteuid() == 0)
    assert call_in_forked_children(lambda: None) is None


def test_what_is_printed_is_read_whatever_it_is():
    code = "import sys; sys.stdout.buffer.write(b'caf\\xc3\\xa9 \\xe9\\xff'); sys.exit(3)"
    done = run_program([sys.executable, "-c", code])
    assert (done.returncode, done.stdout) == (3, "café \ufffd\ufffd")


def test_a_program_gets_no_input_and_no_more_than_its_time():
    assert run_program([sys.executable, "-c", "print(repr(input()))"]).returncode == 1
    with pytest.raises(subprocess.TimeoutExpired):
        run_program([sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.3)


def test_where_browsers_are(monkeypatch, tmp_path):
    windows = {"PROGRAMFILES": r"C:\P", "LOCALAPPDATA": r"C:\L"}
    assert browser_paths("win32", windows) == (
        r"C:\P\Google\Chrome\Application\chrome.exe",
        r"C:\L\Google\Chrome\Application\chrome.exe",
        r"C:\P\Microsoft\Edge\Application\msedge.exe",
        r"C:\L\Microsoft\Edge\Application\msedge.exe",
    )
    assert browser_paths("darwin")[1] == "/Applications/Chromium.app/Contents/MacOS/Chromium"
    assert browser_paths("linux")[0] == "chromium"
    monkeypatch.setenv("ARCHIMEDES_BROWSER", sys.executable)
    assert find_browser() == find_program(sys.executable) == sys.executable
    monkeypatch.setenv("ARCHIMEDES_BROWSER", str(tmp_path / "nothing"))
    assert find_browser() is None
