"""Timing: repetitions, and how a figure is written."""

import statistics
import time
from collections.abc import Callable, Sequence


def seconds(work: Callable[[], object], *, repetitions: int, warm_up: int = 1) -> list[float]:
    """Return the wall seconds of each repetition of `work`, after `warm_up` that do not count."""
    for _ in range(warm_up):
        work()
    taken = []
    for _ in range(repetitions):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return taken


def spread(values: Sequence[float], *, unit: str = "", digits: int = 2) -> str:
    """Write a median with its minimum and maximum."""
    median, low, high = statistics.median(values), min(values), max(values)
    return f"{median:.{digits}f} {unit} ({low:.{digits}f} … {high:.{digits}f})".replace("  ", " ")
