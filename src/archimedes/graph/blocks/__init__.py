"""Blocks, which are values of many elements: building, referencing, converting, fusing them."""
