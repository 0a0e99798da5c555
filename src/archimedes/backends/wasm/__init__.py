"""WebAssembly: a graph in, a binary module out, with the interpreter's bits and without tools.

``binary.py`` has the numbers, opcodes and sections of the format, ``functions.py`` functions being
written, ``stack_code.py`` their way to stack code and locals. ``operations.py`` spells the exact
ops and ``programs.py`` what is made of them; ``wasm_dialect.py`` is the dialect of the lowering.
``lane_operations.py`` and ``lane_dialect.py`` are the same for two instances in SIMD lanes.
``module.py`` puts functions, tables and memory together, ``batches.py`` writes batches.
"""
