"""Shapes of vehicles, made by code: bodies with meshes, from the numbers of the models."""

from __future__ import annotations
