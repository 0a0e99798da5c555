"""The signals of a log on common times, whatever wrote the log.

A log holds topics. A topic has times and columns: numbers that were sampled together. Each topic
has samples at times of its own, so a `Timeseries` needs resampling; what is done to the samples is
described at `read_log`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from pathlib import Path

import numpy as np

from archimedes.checks import check_hold, check_positive, check_type
from archimedes.display import brief
from archimedes.interchange.logs.topics import Topic, Topics
from archimedes.sysid import Timeseries

__all__ = ["log_topics", "read_log"]

#: The module that reads a file with this ending. Each has ``read_topics(path, names=None)``, which
#: returns the named topics, or all, and raises ValueError where the file is damaged.
READERS = {
    ".ulg": "px4",
    ".bin": "ardupilot",
    ".tlog": "mavlink",
    ".mcap": "mcap",
    ".bag": "ros_bags",
}
#: The module that reads a folder.
FOLDERS = "ros_bags"

#: Intervals longer than this many median intervals of their topic are gaps.
GAP = 10.0
#: A clock that goes back by more than this, in s, was set anew: the log holds several flights.
RESTART = 1.0
#: How many signals may be resampled: names with ranges can ask for more than anybody wants.
MOST_SIGNALS = 10_000
#: How many samples a series may have.
MOST_SAMPLES = 50_000_000


def log_topics(path: str | Path) -> Topics:
    """Return the topics of a log: names, times, columns and units.

    Parameters
    ----------
    path : path
        The log. The ending of the name says what wrote it: ``.ulg`` (PX4), ``.bin`` (ArduPilot's
        dataflash log), ``.tlog`` (telemetry in MAVLink), ``.mcap``, ``.bag`` (ROS 1). A folder is a
        bag of ROS 2.

    Returns
    -------
    Topics
        `Topic` by name. Printed, it is a table.

    Examples
    --------
    >>> import archimedes as arc
    >>> topics = arc.interchange.log_topics("flight.ulg")  # doctest: +SKIP
    >>> topics["vehicle_angular_velocity"].columns["xyz[0]"]  # doctest: +SKIP
    """
    return Topics(_read(path, None))


def read_log(
    path: str | Path,
    inputs: str | Sequence[str] = (),
    outputs: str | Sequence[str] = (),
    *,
    rate: float | None = None,
    span: tuple[float, float] | None = None,
    hold: str = "zoh",
    outputs_hold: str = "foh",
    max_gap: float | None = None,
) -> Timeseries:
    """Return signals of a log on common times, as data for identification.

    Signals are named ``"topic.column"``. ``"control[0..3]"`` is four elements, and a name without
    an index is all of them: ``"vehicle_angular_velocity.xyz"``, ``"/imu.angular_velocity"``.

    Inputs are held between their samples, as actuators are; outputs are linear between theirs. The
    times are those at which all signals are known: from the last of their first samples to the
    first of their last. Where samples of an output are missing the result is nan, which the fits of
    `archimedes.sysid` leave out.

    Parameters
    ----------
    path : path
        The log, as in `log_topics`.
    inputs : str or sequence of str, optional
        Signals that act on the system. None by default.
    outputs : str or sequence of str
        Signals that are explained.
    rate : float, optional
        Samples per second of the result. By default the times are those of the first output's
        topic, evenly spaced or not, so that its samples are left as they are.
    span : (float, float), optional
        First and last time in s. The whole log by default.
    hold : {"zoh", "foh"}, optional
        How inputs go on between their samples: held, the default, or linear. The result's `hold`.
    outputs_hold : {"zoh", "foh"}, optional
        The same for outputs: linear by default. Use ``"zoh"`` for modes, counters, and angles that
        jump by a turn.
    max_gap : float, optional
        Intervals longer than this, in s, are gaps: outputs inside are nan. By default ten times the
        median interval of the topic.

    Returns
    -------
    Timeseries
        The signals, with names and, where the log states them, units.

    Examples
    --------
    >>> import archimedes as arc
    >>> data = arc.interchange.read_log(  # doctest: +SKIP
    ...     "flight.ulg",
    ...     inputs=["actuator_motors.control[0..3]"],
    ...     outputs=["vehicle_angular_velocity.xyz"],
    ...     rate=200.0,
    ... )
    """
    check_hold(hold, "read_log: hold")
    check_hold(outputs_hold, "read_log: outputs_hold")
    if rate is not None:
        check_positive(rate, "read_log: rate", "Hz")
    if max_gap is not None:
        check_positive(max_gap, "read_log: max_gap", "s")
    asked = [[x] if isinstance(x, str) else list(x) for x in (inputs, outputs)]
    for name in asked[0] + asked[1]:
        check_type(name, "read_log: the name of a signal", str, "write 'topic.column'")
    if not asked[1]:
        raise ValueError(
            "read_log: outputs must name at least one signal, such as 'topic.column'; "
            "log_topics(path) lists them"
        )
    topics = _read_named(path, asked[0] + asked[1])
    chosen = [[pair for name in names for pair in find_signals(topics, name)] for names in asked]
    if sum(map(len, chosen)) > MOST_SIGNALS:
        raise ValueError(f"read_log: {sum(map(len, chosen))} signals: at most {MOST_SIGNALS}")
    used = {topic.name: _in_order(topic) for topic, _ in chosen[0] + chosen[1]}
    ts = _common_times(list(used.values()), used[chosen[1][0][0].name], rate, span)
    us, ys = (
        [_resample(used[topic.name], column, ts, how) for topic, column in pairs]
        for pairs, how in zip(chosen, (hold, outputs_hold))
    )
    for row, (topic, column) in zip(us, chosen[0]):
        if not np.all(np.isfinite(row)):
            at = ts[int(np.argmin(np.isfinite(row)))]
            raise ValueError(
                f"read_log: the input {topic.name}.{column} is not finite at {at:.6g} s: leave it "
                "out of inputs, or choose a span without"
            )
    for row, (topic, _) in zip(ys, chosen[1]):
        row[_in_gaps(used[topic.name].times, ts, max_gap) | np.isinf(row)] = np.nan
    names = [tuple(f"{topic.name}.{column}" for topic, column in pairs) for pairs in chosen]
    units = [tuple(topic.units.get(column, "") for topic, column in pairs) for pairs in chosen]
    return Timeseries(
        ts,
        np.array(us) if us else None,
        np.array(ys),
        inputs=names[0],
        outputs=names[1],
        hold=hold,
        input_units=units[0],
        output_units=units[1],
    )


def _read_named(path: str | Path, signals: list[str]) -> dict[str, Topic]:
    """Read the topics of signals; all topics where some are not there, for the error to say so."""
    ends = {signal[:k] for signal in signals for k, c in enumerate(signal) if c == "."}
    topics = _read(path, ends.union(signals))
    known = all(any(f"{s}.".startswith(f"{topic}.") for topic in topics) for s in signals)
    return topics if known else _read(path, None)


def _read(path: str | Path, names: Collection[str] | None) -> dict[str, Topic]:
    """Read topics by the module for this kind of file."""
    path = Path(path)
    kind = FOLDERS if path.is_dir() else READERS.get(path.suffix.lower(), "")
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    if not kind:
        what = "folder" if path.is_dir() else f"{path.suffix!r} file"
        raise ValueError(f"{path}: no reader for a {what}; there are {', '.join(READERS)}")
    module = import_module(f"archimedes.interchange.logs.{kind}")
    return module.read_topics(path, names)


# ---- names -------------------------------------------------------------------------------------

RANGE = re.compile(r"\[(\d+)\.\.(\d+)\]$")


def find_signals(topics: Mapping[str, Topic], name: str) -> list[tuple[Topic, str]]:
    """Return the topic and the columns that a name stands for.

    >>> import numpy as np
    >>> motors = Topic("motors", np.zeros(1), {f"control[{k}]": np.zeros(1) for k in range(4)})
    >>> [column for _, column in find_signals({"motors": motors}, "motors.control[1..2]")]
    ['control[1]', 'control[2]']
    """
    fitting = [t for t in topics if name == t or name.startswith(f"{t}.")]
    if not fitting:
        known = difflib.get_close_matches(name.partition(".")[0], topics, n=5, cutoff=0.4)
        hint = f"; similar: {', '.join(known)}" if known else ""
        raise ValueError(
            f"read_log: {name!r} names no topic of the log{hint}; log_topics(path) lists them"
        )
    topic = topics[max(fitting, key=len)]
    if not len(topic):
        raise ValueError(f"read_log: {name!r}: the log has no sample of {topic.name}")
    rest = name[len(topic.name) + 1 :]
    if span := RANGE.search(rest):
        first, last = int(span[1]), int(span[2])
        if last < first or last - first >= MOST_SIGNALS:
            raise ValueError(f"read_log: {name!r}: {span[0]} must go up, as in [0..3]")
        columns = [f"{rest[: span.start()]}[{k}]" for k in range(first, last + 1)]
    elif rest in topic.columns:
        columns = [rest]
    else:
        below = (f"{rest}[", f"{rest}.") if rest else ("",)
        columns = [column for column in topic.columns if column.startswith(below)]
    missing = [column for column in columns if column not in topic.columns]
    if missing or not columns:
        what = missing[0] if missing else rest
        raise ValueError(
            f"read_log: {topic.name} has no column {what!r}; it has "
            f"{brief(', '.join(topic.columns), 200)}"
        )
    return [(topic, column) for column in columns]


# ---- times -------------------------------------------------------------------------------------


def _in_order(topic: Topic) -> Topic:
    """Return a topic with increasing times: sorted, of equal times the last sample."""
    times = np.asarray(topic.times, dtype=float)
    if not np.all(np.isfinite(times)):
        raise ValueError(f"{topic.name}: sample {int(np.argmin(np.isfinite(times)))} has no time")
    steps = np.diff(times)
    if np.all(steps > 0.0):
        return topic
    if np.any(steps < -RESTART):
        k = int(np.argmax(steps < -RESTART))
        raise ValueError(
            f"{topic.name}: the clock goes back from {times[k]:.6g} to {times[k + 1]:.6g} s at "
            f"sample {k + 1}: the log holds more than one flight; split it first"
        )
    order = np.argsort(times, kind="stable")
    ts = times[order]
    order = order[np.append(ts[1:] > ts[:-1], True)]
    columns = {name: np.asarray(values)[order] for name, values in topic.columns.items()}
    return Topic(topic.name, times[order], columns, topic.units)


def _common_times(
    used: list[Topic], first: Topic, rate: float | None, span: tuple[float, float] | None
) -> np.ndarray:
    """Return the times at which all of the topics are known."""
    starts = {topic.name: float(topic.times[0]) for topic in used}
    ends = {topic.name: float(topic.times[-1]) for topic in used}
    start, end = max(starts.values()), min(ends.values())
    if start > end:
        late, early = max(starts, key=starts.__getitem__), min(ends, key=ends.__getitem__)
        raise ValueError(
            f"read_log: no common times: {early} ends at {end:.6g} s, {late} begins at "
            f"{start:.6g} s; choose other signals"
        )
    if span is not None:
        low, high = (float(t) for t in span)
        if not low < high:
            raise ValueError(f"read_log: span={span} must be two times in s that increase")
        if low > end or high < start:
            raise ValueError(
                f"read_log: span={span} is outside the log, {start:.6g} to {end:.6g} s"
            )
        start, end = max(start, low), min(end, high)
    if rate is None:
        ts = first.times[(first.times >= start) & (first.times <= end)]
    else:
        count = int(np.floor((end - start) * rate * (1.0 + 1e-12) + 1e-9)) + 1
        if count > MOST_SAMPLES:
            raise ValueError(
                f"read_log: rate={rate} Hz over {end - start:.6g} s is {count} samples, more than "
                f"{MOST_SAMPLES}; lower it, or give span="
            )
        ts = start + np.arange(count) / rate
    if len(ts) < 2:
        raise ValueError(
            f"read_log: {len(ts)} sample(s) between {start:.6g} and {end:.6g} s: two at least are "
            "needed; raise rate, or widen span"
        )
    return np.asarray(ts, dtype=float)


def _resample(topic: Topic, column: str, ts: np.ndarray, how: str) -> np.ndarray:
    """Return one column at other times within its own: held or linear, nan where it is."""
    times, values = topic.times, np.asarray(topic.columns[column], dtype=float)
    # A time that rounding puts just before a sample is at it.
    tiny = 4.0 * np.spacing(np.maximum(np.abs(ts), 1.0))
    index = np.clip(np.searchsorted(times, ts + tiny, side="right") - 1, 0, len(times) - 1)
    held = values[index]
    if how == "zoh":
        return held
    after = np.minimum(index + 1, len(times) - 1)
    gap = times[after] - times[index]
    part = np.where(gap > 0.0, (ts - times[index]) / np.where(gap > 0.0, gap, 1.0), 0.0)
    between = held + np.clip(part, 0.0, 1.0) * (values[after] - held)
    return np.where(np.abs(part) < 1e-9, held, between)  # at a sample the next may be nan


def _in_gaps(times: np.ndarray, ts: np.ndarray, max_gap: float | None) -> np.ndarray:
    """Return which of the times are inside gaps between samples."""
    if len(times) < 2:
        return np.zeros(len(ts), dtype=bool)
    steps = np.diff(times)
    limit = GAP * float(np.median(steps)) if max_gap is None else max_gap
    index = np.clip(np.searchsorted(times, ts, side="right") - 1, 0, len(steps) - 1)
    inside = (ts > times[index] + 1e-9 * limit) & (ts < times[index + 1] - 1e-9 * limit)
    return inside & (steps[index] > limit)
