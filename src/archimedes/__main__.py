"""``python -m archimedes``: the command line; without a command, the demonstration."""

from __future__ import annotations

from archimedes.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
