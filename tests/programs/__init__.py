"""One catalogue of programs for every backend: all ops, all regions, alone and nested.

``catalogue.py`` lists them; ``random_graphs.py`` makes more. A program added here runs interpreted,
as scalar and lane kernels, as C and through the toy backend (``tests/backends``, ``tests/c``).
"""
