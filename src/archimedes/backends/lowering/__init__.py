"""Graph to code, whatever the language: control flow, regions, order, outlining and storage.

``graph_lowering.py`` writes the nodes of a graph in order, ``regions.py`` the regions, and
``nests.py`` loops over an index space. ``copies.py`` moves values, ``copy_elision.py`` saves
copies, ``outlining.py`` decides which bodies are functions and cuts long ones into pieces. They
speak to a target through ``dialect.py``: how an op, a constant, a loop, a branch, a copy, a table
and a function are spelled. Languages with variables and blocks start from ``statements.py``.

Nothing is imported here: what only counts operations (``analysis.py``) does without the rest.
"""
