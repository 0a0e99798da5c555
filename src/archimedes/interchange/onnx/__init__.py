"""Neural networks from ONNX files as NumPy functions.

``network.py`` has :func:`from_onnx`; ``reading.py`` reads and checks files; ``tensors.py`` has the
element types and constants; ``graphs.py`` evaluates a graph node by node; ``ops/`` has the
operators: one function each, in files by kind.
"""
