"""Blocks of controllers: structs with ``step(state, input) -> (state, output)``."""
