"""Time over achieved error, as a picture."""

from __future__ import annotations

from pathlib import Path

from benchmarks.simulations import TOOLS, Points

__all__ = ["PICTURE", "draw"]

PICTURE = Path(__file__).with_name("work_precision.png")


def draw(points: Points, file: Path = PICTURE) -> None:
    """Write a picture with a panel for each problem: further left is quicker."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    names = list(dict.fromkeys(name for name, _, _ in points))
    figure, axes = plt.subplots(2, -(-len(names) // 2), figsize=(15.0, 11.0), layout="constrained")
    for name, axis in zip(names, axes.flat):
        used: dict[str, int] = {}
        for (problem, tool, method), own in points.items():
            if problem != name:
                continue
            color = f"C{TOOLS.index(tool)}"
            style = ("-", "--", ":", "-.")[used.setdefault(tool, 0) % 4]
            used[tool] += 1
            seconds, errors = [1e3 * s for _, _, s in own], [e for _, e, _ in own]
            axis.loglog(seconds, errors, style, marker=".", color=color, label=f"{tool} {method}")
        axis.set(title=name, xlabel="time in ms", ylabel="largest relative error")
        axis.legend(fontsize=7, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.14))
        axis.grid(alpha=0.3)
    figure.savefig(file, dpi=90)
    plt.close(figure)
