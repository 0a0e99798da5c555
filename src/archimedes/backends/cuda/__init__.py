"""CUDA: the C dialect on a GPU, one thread per instance, with the interpreter's bits."""
