"""Results against the hashes in a file, and numbers against those of another machine."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .catalogue import results
from .result import Result, bits_of, hash_of

__all__ = ["HASHES", "compare", "computed", "failures"]

HASHES = Path(__file__).with_name("hashes.json")


def computed(result: Result, interpreted: bool = False) -> dict[str, list[np.ndarray] | str]:
    """Return the numbers of a result by the way in which they were computed, or what was raised.

    ``interpreted``: native code is left out where there is another way.
    """
    found: dict[str, list[np.ndarray] | str] = {}
    slow = [way for way in result.ways if "interpreted" in way]
    for way in slow if interpreted and slow else result.ways:
        try:
            found[way] = result.numbers(way)
        except Exception as error:
            found[way] = f"{type(error).__name__}: {error}"
    return found


def failures(found: dict[str, list[np.ndarray] | str], wanted: str | None) -> dict[str, str]:
    """Return the hashes that are not as wanted, or what was raised, by way."""
    hashes = {way: x if isinstance(x, str) else hash_of(x) for way, x in found.items()}
    return {way: text for way, text in hashes.items() if text != wanted}


def compare(
    names: Sequence[str],
    write: bool = False,
    dump: Path | None = None,
    against: Path | None = None,
    quiet: bool = False,
    interpreted: bool = False,
) -> int:
    """Compare, print a table, and return how a process should exit."""
    known = json.loads(HASHES.read_text()) if HASHES.exists() else {}
    begun = time.perf_counter()
    hashes: dict[str, str] = {}
    lines: dict[str, str] = {}
    differing = ways = 0
    for result in results(names):
        start = time.perf_counter()
        found = computed(result, interpreted)
        first = next((x for x in found.values() if not isinstance(x, str)), None)
        hashes[result.name] = "" if first is None else hash_of(first)
        wrong = failures(found, hashes[result.name] if write else known.get(result.name))
        ways += len(found)
        differing += bool(wrong)
        if first is not None and (dump or against):
            lines[result.name] = text_of(first)
            lines |= {
                f"{result.name} ({way})": text_of(numbers)
                for way, numbers in found.items()
                if not isinstance(numbers, str) and hash_of(numbers) != hashes[result.name]
            }
        if wrong or not quiet:
            seconds = time.perf_counter() - start
            said = "; ".join(f"{way}: {text}" for way, text in wrong.items()) or "equal"
            print(f"{result.name:40} {hashes[result.name]:16} {seconds:6.2f} s  {said}", flush=True)
    if write:
        HASHES.write_text(json.dumps({**known, **hashes} if names else hashes, indent=1) + "\n")
    if dump:
        dump.write_text("".join(f"{name}\t{text}\n" for name, text in lines.items()))
    if against:
        report(dict(line.split("\t") for line in against.read_text().splitlines()), lines)
    gone = [] if names else sorted({*known} - {*hashes})
    if gone and not write:
        print(f"in the file, but no longer computed: {', '.join(gone)}")
    print(
        f"{len(hashes)} results in {ways} ways on {platform.machine()}, "
        f"Python {platform.python_version()}, NumPy {np.__version__}: {differing} differ, "
        f"{time.perf_counter() - begun:.0f} s"
    )
    return int(differing > 0 or (bool(gone) and not write))


def text_of(numbers: Sequence[np.ndarray]) -> str:
    """Write the bits of all numbers in hex."""
    return " ".join(
        f"{word:0{2 * b.itemsize}x}" for a in numbers for b in [bits_of(a)] for word in b.flat
    )


def report(theirs: dict[str, str], ours: dict[str, str]) -> None:
    """Print which numbers differ, and by how many units in the last place."""
    for name, text in ours.items():
        other = theirs.get(name, theirs.get(name.split(" (")[0]))
        if other is None:
            print(f"{name}: not in the other file")
            continue
        a, b = text.split(), other.split()
        places = [k for k, (x, y) in enumerate(zip(a, b)) if x != y]
        if len(a) != len(b):
            print(f"{name}: {len(a)} numbers here, {len(b)} there")
        elif places:
            print(f"{name}: {len(places)} of {len(a)} numbers differ")
            for k in places[:5]:
                ulps = abs(int(a[k], 16) - int(b[k], 16))
                print(f"    [{k}]  {shown(a[k])} here, {shown(b[k])} there: {ulps} ulp")


def shown(word: str) -> str:
    """Write a number as Python does, with its bits."""
    if len(word) not in (8, 16):
        return word
    kind = np.float64 if len(word) == 16 else np.float32
    return f"{np.array(int(word, 16), f'u{len(word) // 2}').view(kind)!r} ({word})"
