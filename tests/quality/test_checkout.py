"""A run of the tests that leaves something in the checkout is noticed."""

from __future__ import annotations

import subprocess

from tests.checkout import untracked_files


def test_new_files_are_seen_and_ignored_ones_are_not(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("*.pyc\n")
    before = untracked_files(tmp_path)
    (tmp_path / "a.pyc").write_text("")
    (tmp_path / "MUJOCO_LOG.TXT").write_text("")
    assert untracked_files(tmp_path) - before == {"MUJOCO_LOG.TXT"}


def test_without_a_checkout_nothing_is_said(tmp_path):
    assert untracked_files(tmp_path / "none") == frozenset()
