"""Solves, one or many: prepared, driven, collected."""
