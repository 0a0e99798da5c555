"""Blocks: values of many elements, built, referred to, handed over and fused."""
