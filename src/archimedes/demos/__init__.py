"""Demonstrations: each flies something, checks it, and leaves plots and a page to look at.

A demonstration is a line in the table and a module, which is imported when it is run.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from archimedes.demos.reporting import Report

__all__ = ["DEMOS", "Demo", "run_demo"]


class Demo(NamedTuple):
    """A demonstration: the module that has its `run(report)`, and what it shows.

    `live` is the module that has its `page()`, a view whose model runs in the browser.
    """

    module: str
    summary: str
    live: str = ""


DEMOS = {
    "f16": Demo(
        "f16_flight",
        "an F-16 trims and flies turns in wind, with 1,000 dispersed copies; fly it yourself",
        "interactive.f16",
    ),
    "quadrotor": Demo("quadrotor", "a quadrotor follows a figure-eight in wind and gusts"),
    "satellite": Demo(
        "satellite_slew",
        "a satellite turns to an attitude with its wheels; throw it and detumble it",
        "interactive.satellite",
    ),
    "landing": Demo(
        "rocket_landing",
        "a rocket lands on its tail, from many places; land it yourself",
        "interactive.landing",
    ),
    "orbit": Demo("two_stages", "a rocket of two stages flies to orbit; staging is an event"),
    "arm": Demo("robot_arm", "an arm draws a circle with its hand by computed torque"),
    "panda": Demo(
        "interactive.panda",
        "a Panda arm is pulled aside and comes back; drag its hand",
        "interactive.panda",
    ),
    "quadruped": Demo(
        "quadruped",
        "a quadruped is pushed and stays on its feet; push it yourself",
        "interactive.quadruped",
    ),
    "cartpole": Demo(
        "interactive.cart_pole",
        "a regulator balances a pole on a cart; balance one beside it",
        "interactive.cart_pole",
    ),
    "t-handle": Demo("t_handle", "a body spun about its middle axis flips over and over"),
}


def run_demo(
    name: str, folder: Path, runs: int | None = None, quiet: bool = False, live: bool = False
) -> Report:
    """Run a demonstration; its files go to `folder`, its text to the standard output.

    `runs` are dispersed copies (None: as many as it has by itself); `quiet` prints nothing; with
    `live`, only the page whose model runs in the browser is written.
    """
    from archimedes.demos.reporting import Report

    if name not in DEMOS:
        raise ValueError(f"there is no demo {name!r}; there are {', '.join(DEMOS)}")
    demo = DEMOS[name]
    if live and not demo.live:
        there = ", ".join(known for known, one in DEMOS.items() if one.live)
        raise ValueError(f"the demo {name!r} has no live page; there are {there}")
    report = Report(name, folder, runs, quiet)
    if not live:
        import_module(f"archimedes.demos.{demo.module}").run(report)
    if demo.live:
        report.page(import_module(f"archimedes.demos.{demo.live}").page(), f"{name}_live")
    report.close()
    return report
