"""Featherstone's algorithms, a file each."""
