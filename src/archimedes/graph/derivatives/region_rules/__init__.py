"""Derivatives of regions: one file for each kind of region."""
