"""The order in which variables are computed: each after those it reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from archimedes.vehicles.dave_ml.definitions import Variable

__all__ = ["in_order"]


def in_order(
    variables: Mapping[str, Variable], wanted: Iterable[str] | None = None
) -> tuple[str, ...]:
    """Return the wanted variables (all by default) and those they need, needed ones first.

    Raises ValueError for names that are not defined and for variables that depend on themselves.
    """
    done: dict[str, None] = {}
    for start in variables if wanted is None else wanted:
        # Depth first, without recursion: chains of variables may be long.
        path: dict[str, list[str]] = {start: _reads(variables, start)}
        while path:
            key, rest = next(reversed(path.items()))
            if key in done or not rest:
                del path[key]
                done[key] = None
                continue
            following = rest.pop()
            if following in path:
                keys = list(path)
                circle = [*keys[keys.index(following) :], following]
                raise ValueError(
                    f"{variables[following].place}: variables depend on themselves: "
                    f"{' <- '.join(circle)}"
                )
            if following not in done:
                path[following] = _reads(variables, following)
    return tuple(done)


def _reads(variables: Mapping[str, Variable], key: str) -> list[str]:
    reads = variables[key].reads
    for name, place in reads.items():
        if name not in variables:
            raise ValueError(
                f"{place}: variable {key!r} reads {name!r}, which no variableDef defines"
            )
    return list(reversed(reads))
