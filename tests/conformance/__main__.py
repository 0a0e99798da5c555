"""``python -m tests.conformance``: the conformance table by group, and what does not agree."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict

from .compare import AGREE, CRASHED, TRACE_ERROR, WRONG, outcome
from .table import EXPECTED_TRACE_ERRORS, FORMS
from .untraceable import UNTRACEABLE

KINDS = (AGREE, TRACE_ERROR, WRONG, CRASHED)


def main() -> int:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    failures = []
    for form in [*FORMS, *UNTRACEABLE]:
        kind, detail = outcome(form)
        counts[form.group][kind] += 1
        must_raise = form in UNTRACEABLE or form.name in EXPECTED_TRACE_ERRORS
        if kind != (TRACE_ERROR if must_raise else AGREE):
            failures.append(f"{kind:10}  {form.group:26}  {form.name}\n    {detail}")
    print("\n".join(failures))
    print(f"{'group':28}{'forms':>8}" + "".join(f"{kind:>12}" for kind in KINDS))
    for group, count in counts.items():
        print(f"{group:28}{count.total():8}" + "".join(f"{count[kind]:12}" for kind in KINDS))
    total = sum(counts.values(), Counter())
    print(f"{'all':28}{total.total():8}" + "".join(f"{total[kind]:12}" for kind in KINDS))
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
