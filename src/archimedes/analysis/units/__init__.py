"""Units of measurement: parsed, inferred through the recorded graph, and checked.

``unit.py`` has the units and their names, ``unification.py`` solves for unknown ones,
``recording.py`` records a function with its constants and lines kept, ``propagation.py`` applies
the rule of each operation and ``region_rules.py`` those of regions, ``messages.py`` puts findings
into words and ``checking.py`` is what users call.
"""
