"""What turns pages, docstrings, examples and measurements into the sources of the site."""
