"""Loops, branches and callbacks inside recorded functions."""
