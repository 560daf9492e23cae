"""Termination: on a signal or a system error a command ends with one line of output and an exit code."""

import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

_MESSAGES = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "the terminal was closed"}
_SIGNALS = {getattr(signal, name): message for name, message in _MESSAGES.items() if hasattr(signal, name)}
_BROKEN_PIPE = 128 + 13
"""Exit code of a command that writes to a closed pipe: the code that a shell reports for SIGPIPE."""
_AGAIN_S = 0.2


@contextmanager
def one_line_exit() -> Iterator[None]:
    """On a signal or system error, end the process after all clean-up, with one line on standard error, no traceback.

    On a signal the exit code is 128 plus its number: 130 for Ctrl-C, 143 for SIGTERM. On a closed pipe the exit code
    is 141 and no line is written, as other commands do. On any other error of the system, such as a full disk, it is
    2. A signal that is ignored at the start, as in a background job, stays ignored. The previous handlers are restored
    at the end.

    Raises
    ------
    SystemExit
        In these cases. Other exceptions are passed on.
    """
    received: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        if number in _SIGNALS:
            received.append(number)
        elif sys.exc_info()[1] is not None:
            return  # cleaning up
        if sys.platform != "win32":  # once more if a library discards the exit
            signal.signal(signal.SIGALRM, stop)
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S, _AGAIN_S)
        raise SystemExit(128 + received[0])

    def report(failure: Any) -> None:
        if not received:  # else a library has discarded the exit, and it is repeated
            hook(failure)

    previous: dict[int, Any] = {}
    hook = sys.unraisablehook
    sys.unraisablehook = report
    try:
        _set_handlers(stop, previous)  # inside the block, since a signal may arrive as soon as its handler is set
        _prepare_streams()
        try:
            yield
        finally:
            _flush()
    except BaseException as error:
        if received and sys.platform != "win32":
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number in previous:
            signal.signal(number, signal.SIG_IGN)  # a second one must not cut the clean-up short
        if (atomic_write := sys.modules.get("simulator.files.atomic_write")) is not None:
            atomic_write.remove_own()
        _exit_for(error, received)
        raise
    finally:
        sys.unraisablehook = hook
        for number, handler in previous.items():
            signal.signal(number, handler)


def _set_handlers(stop: Callable[[int, FrameType | None], None], previous: dict[int, Any]) -> None:
    """Handle each signal that is not ignored by `stop`, and add the handler that it replaces to `previous`."""
    if threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                previous[number] = signal.signal(number, stop)


def _exit_for(error: BaseException, received: list[int]) -> None:
    """Exit with the code and message for a signal or an error of the system; return for any other exception."""
    code = error.code if isinstance(error, SystemExit) else None
    if received and code != 0:  # libraries may turn the exit into another exception
        _exit(128 + received[0], _SIGNALS[received[0]])
    if code == 128 + signal.SIGINT:  # typer's, where a program called Python's own handler
        _exit(code, _SIGNALS[signal.SIGINT])
    # typer and rich turn a broken pipe into an exit with code 1.
    if isinstance(error if code is None else error.__context__, BrokenPipeError):
        _exit(_BROKEN_PIPE)
    if isinstance(error, OSError):
        _exit(2, _described(error))


def _exit(code: int, message: str = "") -> NoReturn:
    if message:
        with suppress(OSError):
            sys.stderr.write(f"crowdveil: {message}\n")
    raise SystemExit(code) from None


def _described(error: OSError) -> str:
    """Describe an error: the file that it concerns, and the reason."""
    reason = (error.strerror or str(error)).lower()
    if error.filename is not None:
        return f"{error.filename}: {reason}"
    try:
        Path.cwd()
    except FileNotFoundError:
        return "the working directory has been removed; change to another"
    return f"standard output or a file: {reason}"


def _prepare_streams() -> None:
    """Let standard output and error escape the characters that their encoding lacks.

    They are opened on the null device if they are closed, so that no file takes their descriptors.
    """
    for name in ("stdout", "stderr"):
        if isinstance(stream := getattr(sys, name), io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
        elif stream is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))


def _flush() -> None:
    """Write buffered output; if that fails, discard it, so that the interpreter does not fail when it exits."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise
