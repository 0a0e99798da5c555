"""Native code through LLVM: scalar kernels for single calls, lane kernels for batches.

Nothing is imported here, so that ``backend.py`` makes the backend known without loading LLVM.
"""
