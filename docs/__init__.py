"""The documentation: its pages, and what makes a site of them (``python -m docs.build``)."""
