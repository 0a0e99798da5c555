"""``python -m tests.blocks [COUNT]``: more of the random programs on blocks."""

import sys

from tests.blocks.test_random_programs import check

if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for seed in range(count):
        check(seed)
    print(f"{count} programs: values, patterns, first and second derivatives as on scalars")
