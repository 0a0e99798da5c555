"""The whole package has units that fit: nothing is found, and nothing is left out in silence."""

from __future__ import annotations

import inspect

import pytest

import archimedes as arc
from tests.analysis.package_units import (
    LEFT_OUT,
    PACKAGES,
    call_demos,
    calls_of,
    check,
    public_names,
)

#: At least so many functions of each package are checked.
LEAST = {"spatial": 150, "environment": 110, "multibody": 250, "vehicles": 90}
LEAST |= {"control.blocks": 15, "observers": 30}


@pytest.mark.long
@pytest.mark.parametrize("package", PACKAGES)
def test_units_fit(package, tmp_path, record_property):
    reports, unchecked = check(calls_of(package, tmp_path))
    record_property("checked", sorted(name for _, name in reports))
    record_property("unchecked", {name: reason for (_, name), reason in unchecked.items()})
    found = [str(finding) for report in reports.values() for finding in report]
    assert not found, "\n".join(found)
    assert len(reports) >= LEAST[package]
    if package in LEFT_OUT:
        missing = [n for n, value in public_names(package).items() if not covered(value, reports)]
        assert {*missing} <= {*LEFT_OUT[package]}, unchecked


def covered(value, reports) -> bool:
    """Return whether a function, or a method of a class, was checked."""
    try:
        value = inspect.unwrap(value)
        file, name = inspect.getsourcefile(value), value.__qualname__
    except (TypeError, AttributeError):
        return False
    start = f"{name}." if inspect.isclass(value) else name
    return any(f == file and (n == name or n.startswith(start)) for f, n in reports)


@pytest.mark.long
def test_units_of_demonstrations_fit():
    for name, function, args in call_demos():
        report = arc.check_units(function)(*args)
        assert report.ok, f"{name}:\n{report}"
