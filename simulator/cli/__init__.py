"""The command line: `crowdveil`. Every command is in the module of its name, which is imported when it is called."""

import atexit
import gc
import os
import signal
import sys
from contextlib import nullcontext, suppress
from io import TextIOWrapper
from types import FrameType

from typer import TyperException

from simulator.cli.commands import app, notice, print_version

__all__ = ["app", "main"]

_GARBAGE_THRESHOLD = 500_000
"""Objects made before Python searches for garbage: a run of `tiny` makes fewer, and with 100,000 spends 6 % on that."""
_SIGNALS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "the terminal was closed"}
_MESSAGES = {128 + getattr(signal, name): words for name, words in _SIGNALS.items() if hasattr(signal, name)}
"""What a command prints that a signal has ended, by its exit code; typer gives Ctrl-C the same code."""


def main() -> None:
    """Run the command line.

    A mistake of the user, or an error of the system such as a full disk, ends in one message and exit code 2; a page
    that cannot be written in 1, Ctrl-C in 130, SIGTERM in 143. A closed pipe ends it without a message.
    """
    gc.set_threshold(_GARBAGE_THRESHOLD)
    atexit.register(gc.freeze)  # at the end Python searches all modules for garbage, which takes half a second
    code: str | int | None
    try:
        _prepare()
        code, message = _run()
        sys.stdout.flush()
    except KeyboardInterrupt:  # before typer
        code, message = 130, _MESSAGES[130]
    except SystemExit as end:  # of a signal, after all clean-up
        code, message = end.code, _MESSAGES.get(end.code, "") if isinstance(end.code, int) else ""
    except OSError as error:
        code, message = _code_and_message(error)
        with suppress(OSError):  # Python would fail on the same error when it flushes the stream at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0.0)  # of `_end`
    if message:
        sys.stderr.write(f"crowdveil: {message}\n")
    sys.exit(code)


def _prepare() -> None:
    """Let signals end the process after all clean-up, and let the streams escape what their encoding lacks.

    A stream that is closed is opened on the null device, so that no file takes its descriptor.
    """
    for number in (ended - 128 for ended in _MESSAGES):
        if signal.getsignal(number) in {signal.SIG_DFL, signal.default_int_handler}:  # nohup ignores what would end it
            signal.signal(number, _end)
    for name in ("stdout", "stderr"):
        if isinstance(stream := getattr(sys, name), TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
        elif stream is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))


class _Interrupted(KeyboardInterrupt):
    """Ctrl-C. Where a compiled module meets `KeyboardInterrupt` itself, Python ends by the signal, not by a code."""


def _end(number: int, _: FrameType | None) -> None:
    """Raise the exception that ends the command, and again a second later if it was dropped, as by modules that load.

    While code below cleans up because of the exception, it is the one that is handled, and not raised again.
    """

    def again(*_: object) -> None:
        if _signal_of(sys.exception()) is None:
            _end(number, None)

    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, again)
        signal.setitimer(signal.ITIMER_REAL, 1.0, 1.0)
    raise _Interrupted if number == signal.SIGINT else SystemExit(128 + number)


def _run() -> tuple[int, str]:
    """Run a command; return its exit code, and the message that it ends with."""
    try:
        if sys.argv[1:] == ["--version"]:
            print_version()  # at once: to parse options, typer imports pydantic
            return 0, ""
        shown = sys.stderr.isatty() and "--quiet" not in sys.argv and "_CROWDVEIL_COMPLETE" not in os.environ
        with notice(" ".join(sys.argv[1:])) if shown else nullcontext():
            code = app(prog_name="crowdveil", standalone_mode=False) or 0
    except TyperException as error:
        return error.exit_code, error.format_message()
    except ValueError as error:
        from mechanisms.parameter import ParameterError  # noqa: PLC0415 - `--help` needs no messages
        from scenarios.errors import ScenarioError, suggestion  # noqa: PLC0415 - as above
        from simulator.files.errors import UserError  # noqa: PLC0415 - as above

        if not isinstance(error, (ParameterError, ScenarioError, UserError)):
            raise
        hint = suggestion(getattr(error, "value", None), getattr(error, "choices", ()))
        return getattr(error, "exit_code", 2), f"{error}{hint}"
    except MemoryError as error:  # what an estimate let pass, or the user with --yes
        return 2, f"not enough memory: {error}".removesuffix(": ")
    except Exception as error:
        if (end := _signal_of(error)) is not None:
            raise end from None
        raise
    return code, _MESSAGES.get(code, "")


def _signal_of(error: BaseException | None) -> BaseException | None:
    """Return the end by a signal that led to an error; what loads turns it into its own."""
    while error is not None and not isinstance(error, KeyboardInterrupt | SystemExit):
        error = error.__cause__ or error.__context__
    return error


def _code_and_message(error: OSError) -> tuple[int, str]:
    """Return exit code and message for an error of the system; typer and click exit with 1 and a traceback."""
    if isinstance(error, BrokenPipeError):
        return 1, ""  # as typer does
    reason = (error.strerror or str(error)).lower()
    return 2, f"{'standard output or a file' if error.filename is None else error.filename}: {reason}"
