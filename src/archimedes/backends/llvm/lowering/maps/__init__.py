"""Instances inside one call: in lanes, through memory or in registers; equal functions as such."""
