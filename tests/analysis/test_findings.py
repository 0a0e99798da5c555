"""Reports of findings: order, text, JSON."""

from __future__ import annotations

from archimedes.analysis.findings import Finding, Report


def test_findings_come_in_the_order_of_their_lines_and_once():
    late, early = Finding("a.py", 9, "late", "x + v", "units"), Finding("a.py", 2, "early")
    report = Report([late, early, late])
    assert not report.ok and report == [early, late]
    assert str(report).splitlines() == ["a.py:2: early", "a.py:9: units: late", "    x + v"]
    assert report.as_json()[1]["line"] == 9


def test_an_empty_report_says_what_was_checked():
    assert str(Report()) == "nothing to report" and Report().ok
