"""Tests of Earth and air."""
