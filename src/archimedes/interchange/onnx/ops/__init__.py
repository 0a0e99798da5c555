"""The operators of ONNX in NumPy, by kind. ``table.py`` says how one is added."""
