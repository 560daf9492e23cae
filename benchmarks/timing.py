"""Timing of repetitions, and formatting of the measured values."""

import statistics
import time
from collections.abc import Callable, Sequence


def seconds(work: Callable[[], object], *, repetitions: int, warm_up: int = 1) -> list[float]:
    """Return the wall time in seconds of each repetition of `work`, after `warm_up` repetitions that are not timed."""
    for _ in range(warm_up):
        work()
    taken = []
    for _ in range(repetitions):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return taken


def spread(values: Sequence[float], *, unit: str = "", digits: int = 2) -> str:
    """Format a median with its minimum and maximum."""
    median, low, high = statistics.median(values), min(values), max(values)
    return f"{median:.{digits}f} {unit} ({low:.{digits}f} … {high:.{digits}f})".replace("  ", " ")
