"""Graphs to LLVM text."""
