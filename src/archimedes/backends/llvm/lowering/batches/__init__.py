"""Loops over a batch: instances in lanes, their rows in tiles, results streamed to memory."""
