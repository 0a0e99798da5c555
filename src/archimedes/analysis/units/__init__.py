"""Units of measurement: inferred through the recorded graph, and checked.

``physical_units.py`` has the units and their names. Here ``unification.py`` solves for unknown
ones, ``recording.py`` records a function with its constants and lines kept, ``propagation.py``
applies the rule of each operation and ``region_rules.py`` those of regions, ``messages.py`` puts
findings into words (``source.py`` finds the expressions) and ``checking.py`` is what users call.
Units come from ``declarations.py`` (structs and arguments), ``closures.py`` (structs around a
function), ``constructors.py`` (those that it makes) and ``quantity.py`` (numbers). Solvers use
``rates.py``.
"""
