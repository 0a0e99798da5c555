"""What an importer did with each element of a file."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Report"]


@dataclass
class Report:
    """What became of the elements of a file.

    ``load(..., strict=True)`` raises if anything is approximated or ignored.

    Parameters
    ----------
    used : dict, optional
        Number of elements of each name that are in the model.
    approximated : list of str, optional
        Elements that are approximated: "file:line: ...".
    ignored : list of str, optional
        Elements that are ignored: "file:line: ...".

    Examples
    --------
    >>> from archimedes import multibody as mb
    >>> mb.Report(used={"joint": 2}, ignored=["arm.urdf:7: <gazebo>: for a simulator"]).ignored
    ['arm.urdf:7: <gazebo>: for a simulator']
    """

    used: dict[str, int] = field(default_factory=dict)
    approximated: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)

    def __copy__(self) -> Report:
        return Report(dict(self.used), list(self.approximated), list(self.ignored))

    def use(self, tag: str) -> None:
        """Count an element that is in the model.

        Parameters
        ----------
        tag : str
            Name of the element.
        """
        self.used[tag] = self.used.get(tag, 0) + 1

    def add(self, other: Report) -> None:
        """Take over what another report says.

        Parameters
        ----------
        other : Report
            Another report.
        """
        for tag, count in other.used.items():
            self.used[tag] = self.used.get(tag, 0) + count
        self.approximated += other.approximated
        self.ignored += other.ignored

    def check(self) -> None:
        """Raise where something was left out or changed."""
        lost = [*self.approximated, *self.ignored]
        if lost:
            shown = "\n  ".join(lost[:10])
            more = f"\n  and {len(lost) - 10} more" if len(lost) > 10 else ""
            raise ValueError(
                f"strict=True: {len(lost)} elements are not in the model as they are in the "
                f"file:\n  {shown}{more}"
            )

    def __str__(self) -> str:
        counts = ", ".join(f"{n} {tag}" for tag, n in sorted(self.used.items()))
        lines = [f"used: {counts or 'nothing'}"]
        for title, entries in (("approximated", self.approximated), ("ignored", self.ignored)):
            lines += [f"{title}:"] + [f"  {entry}" for entry in entries] if entries else []
        return "\n".join(lines)
