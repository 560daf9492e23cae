"""Faults at every line of code that stores results: kills, disk errors and Ctrl-C, in forked processes."""

import argparse
import errno
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def interrupt() -> None:
    raise KeyboardInterrupt


FAULTS = (kill, fail, interrupt)


def attempt(
    work: Callable[[], object],
    *,
    traced: set[str],
    expected: tuple[type[BaseException], ...],
    step: int = 0,
    fault: Callable[[], None] | None = None,
) -> int:
    """Do some work in this process with a fault at one line of the traced files; return the number of lines."""
    steps = 0

    def trace(frame: Any, event: str, _: object) -> Any:
        nonlocal steps
        if frame.f_code.co_filename not in traced:
            return None
        if event == "line":
            steps += 1
            if steps == step:
                fault()
        return trace

    sys.settrace(trace)
    try:
        work()
    except expected:
        pass
    finally:
        sys.settrace(None)
    return steps


def forked(work: Callable[[], Any]) -> Any:
    """Return what a function returns in a forked process; None if that was killed."""
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(sending, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(sending)
    with os.fdopen(receiving) as sent:
        text = sent.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else None


def markdown(heads: str, rows: Mapping[Any, Mapping[str, int]]) -> str:
    """Return a table with a row for each case and one of their sums."""
    lines = [heads, f"|---|{'---:|' * (heads.count('|') - 2)}"]
    total = {name: sum(row[name] for row in rows.values()) for name in next(iter(rows.values()))}
    for title, row in [*((case.title, row) for case, row in rows.items()), ("**all**", total)]:
        lines.append(f"| {title} | {' | '.join(f'{number:,}' for number in row.values())} |")
    return "\n".join(lines) + "\n"


def main(about: str, heads: str, inject: Callable[[int], Mapping[Any, Mapping[str, int]]]) -> None:
    """Inject faults, and print the table."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--faults", type=int, default=1000)
    sys.stdout.write(markdown(heads, inject(parser.parse_args().faults)))
