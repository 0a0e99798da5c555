"""Graph to code, whatever the language: control flow, regions, order, outlining and storage.

``graph_lowering.py`` writes the nodes of a graph in order, decides which bodies are functions, and
cuts long ones into pieces. ``regions.py`` writes the regions, ``nests.py`` loops over an index
space, ``copies.py`` copies of many values. ``scope.py`` knows where values are. They speak to a
target through ``dialect.py``: how an op, a constant, a loop, a branch, a copy, a table and a
function are spelled. Languages with variables and blocks start from ``statements.py``.

Nothing is imported here: what only counts operations (``analysis.py``) does without the rest.
"""
