"""Certified ranges: interval and affine arithmetic on recorded programs.

``rounding.py`` intervals with directed rounding; ``forms.py`` affine forms; ``functions.py``
elementary functions; ``values.py``, ``operations.py`` and ``regions.py`` what a sweep computes
with; ``sweep.py`` a pass over a graph; ``subdivision.py`` passes over smaller and smaller boxes;
``arguments.py`` and ``bounds.py`` what users call.
"""
