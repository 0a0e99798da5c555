"""Native code through LLVM: scalar kernels for single calls, lane kernels for batches."""

from archimedes.backends.llvm.runtime.kernel import Kernel, Statistics, build

__all__ = ["Kernel", "Statistics", "build"]
