"""Demonstrations to play with: each has a `page()`, a view whose model runs in the browser."""
