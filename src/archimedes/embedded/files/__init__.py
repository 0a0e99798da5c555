"""The files of a C project."""
