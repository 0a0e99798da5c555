"""A campaign in a process of its own, which kills itself without warning when told to.

Arguments: folder, runs, chunk, the name of a model, and when to die: "never", "after:K" runs, or
"rename:K", in the middle of writing the Kth file.
"""

from __future__ import annotations

import os
import signal
import sys

from archimedes.simulate import monte_carlo

from .campaign_models import MODELS


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(folder: str, n: str, chunk: str, how: str, when: str) -> None:
    kind, _, at = when.partition(":")
    if kind == "rename":
        replace, seen = os.replace, []

        def rename(source, target):
            seen.append(target)
            if len(seen) == int(at):
                with open(source, "r+b") as file:  # as if half of it had reached the disk
                    file.truncate(os.path.getsize(source) // 2)
                die()
            replace(source, target)

        os.replace = rename
    model, distributions, vectorize = MODELS[how]
    monte_carlo(
        model,
        distributions,
        int(n),
        seed=5,
        folder=folder,
        chunk=int(chunk),
        vectorize=vectorize,
        progress=lambda done, n: die() if kind == "after" and done >= int(at) else None,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
