"""A catalogue of misuse: what plain Python invites, run eagerly and recorded.

Each entry gives the same value both ways, or an error that names the line and the remedy.
``python -m tests.misuse`` prints the table.
"""
