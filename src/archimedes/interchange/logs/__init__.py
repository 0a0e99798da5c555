"""Logs of autopilots and robots, read as data for identification.

The ending of a file selects a reader (`reading.READERS`). A reader is a module with one function,
``read_topics(path, names=None) -> dict[str, Topic]``: raw samples, topic by topic (`topics`). The
choice of signals, common times and resampling are the same for all (`reading`).
"""
