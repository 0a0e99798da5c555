"""All that native code needs of Python: public functions of CPython's and NumPy's C API.

Nothing else in the package calls them, and nothing reads the memory of Python's objects. Where
``support.supported`` says no, nothing here is imported, and the same calls go through plain Python,
with the same results.
"""
