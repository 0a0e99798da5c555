"""Compare the bits of results with those in ``hashes.json``.

    python -m tests.bits                    compare, and print a table of what differs
    python -m tests.bits --write            write the file anew, after an algorithm has changed
    python -m tests.bits --dump x86.txt     write all numbers as well, in hex
    python -m tests.bits --against x86.txt  say which numbers differ from those of another machine
    python -m tests.bits --features=-avx512f,-avx2,-avx,-fma    native code for a lesser processor

Groups and names given behind the options choose results: ``python -m tests.bits f16 ops/sin``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from archimedes.backends.llvm.runtime import machine

from .comparison import compare


def do_without(features: str) -> None:
    """Have native code made for a processor that has fewer features than this one."""
    lesser = machine.host_target(features)
    machine._host_cpu = lambda: (lesser.cpu, lesser.features)
    machine.host_target.cache_clear()


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.bits", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("names", nargs="*", help="groups, or beginnings of names; all if none")
    parser.add_argument("--write", action="store_true", help="write hashes.json")
    parser.add_argument("--dump", type=Path, metavar="FILE", help="write all numbers, in hex")
    parser.add_argument("--against", type=Path, metavar="FILE", help="compare with such a file")
    parser.add_argument("--features", metavar="LIST", help='of LLVM: "-avx512f" does without')
    parser.add_argument("--interpreted", action="store_true", help="without native code")
    parser.add_argument("--quiet", action="store_true", help="print only what differs")
    given = parser.parse_args()
    if given.features:
        do_without(given.features)
    chosen = (given.write, given.dump, given.against, given.quiet, given.interpreted)
    return compare(given.names, *chosen)


if __name__ == "__main__":
    sys.exit(main())
