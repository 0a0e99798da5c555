"""Plain arrays and NumPy's names while a recording is under way."""
