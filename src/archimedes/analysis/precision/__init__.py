"""``f.precision(...)``: where a model loses digits in float32 or float64, by the user's line.

The recorded program is run in two arithmetics side by side (``arithmetics.py``, ``execution.py``);
what its operations did to the digits is gathered by line (``statistics.py``); programs that round
only some of their lines to float32 say what each line costs the results and which of them need
double (``mixed.py``); ``diagnosis.py`` puts that into findings with advice.
"""
