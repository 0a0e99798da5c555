"""Sine and cosine of every float by integers, against those of double rounded once.

``python -m tests.c.every_angle`` tries all 2^32 (some minutes, on one core); the quick tests take
one in some thousands.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from archimedes.backends.c.helpers import PRELUDE, library, with_dependencies

__all__ = ["differing"]

_MAIN = """
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **given)
{
    const uint64_t step = strtoull(given[count - 1], NULL, 0);
    unsigned long tried = 0, differing = 0;
    for (uint64_t bits = 0; bits < UINT64_C(0x100000000); bits += step) {
        const float x = arc_from_word((uint32_t)bits);
        double c;
        const double s = arc_sincos((double)x, &c);
        float cosine;
        const float sine = arc_sincosf(x, &cosine);
        const bool same_sine = arc_word(sine) == arc_word((float)s) || (sine != sine && s != s);
        const bool same_cosine =
            arc_word(cosine) == arc_word((float)c) || (cosine != cosine && c != c);
        tried += 1;
        differing += !(same_sine && same_cosine);
    }
    printf("%lu %lu\\n", tried, differing);
    return 0;
}
"""


def differing(step: int) -> tuple[int, int]:
    """Return how many floats were tried, one in ``step``, and how many results differ."""
    helpers = with_dependencies("arc_sincosf( arc_sincos(", library())
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "angles.c"
        source.write_text("\n".join([PRELUDE, *helpers.values(), _MAIN]), encoding="utf-8")
        compiler = shutil.which("gcc") or "cc"
        flags = ["-std=c99", "-O2", "-ffp-contract=off", "-DARC_SOFT_DOUBLE", "-Wall", "-Werror"]
        subprocess.run([compiler, *flags, source, "-o", Path(name) / "angles"], check=True)
        command = [str(Path(name) / "angles"), str(step)]
        found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    tried, wrong = map(int, found.split())
    return tried, wrong


if __name__ == "__main__":
    print("{} floats tried, {} differ".format(*differing(int(sys.argv[1]) if sys.argv[1:] else 1)))
