"""All that native code needs of Python: public functions of CPython's and NumPy's C API.

Nothing outside calls them. Nothing reads the memory of an object whose type is CPython's or
NumPy's: ``thread_dispatch.py`` reads the fields of a type that it makes itself. Where
``c_api.is_supported`` says no, the same calls go through plain Python, with the same results.
"""
