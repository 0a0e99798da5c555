"""Graph to code, whatever the language: control flow, regions, order, cutting and storage.

``graph_lowering.py`` writes the nodes of a graph in order, ``loops.py`` and ``regions.py`` the
regions, ``copies.py`` moves values, ``parts.py`` cuts what is long. They speak to a target through
``dialect.py``: how an op, a constant, a loop, a branch, a copy, a table and a function are spelled.
Languages with variables and blocks start from ``statements.py``.

Nothing is imported here: what only counts operations (``schedule.py``) does without the rest.
"""
