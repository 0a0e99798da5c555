"""Print the catalogue: ``python -m tests.misuse``."""

from __future__ import annotations

import sys

from tests.misuse.catalogue import BACKENDS, catalogue, check, eager_value


def main() -> int:
    """Run every entry on every backend and print what came of it."""
    failed = 0
    for item in catalogue():
        outcomes = []
        for backend in BACKENDS:
            try:
                outcomes.append(check(item, backend, eager_value(item)))
            except Exception as error:
                failed += 1
                outcomes.append(f"FAILED on {backend}: {error}")
        print(f"{item.name}: {' | '.join(dict.fromkeys(outcomes))}")
    print(f"{len(catalogue())} entries, {failed} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
