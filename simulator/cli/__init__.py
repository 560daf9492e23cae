"""The command line: `crowdveil`. Every command is in the module of its name, which is imported when it is called."""

import atexit
import gc
import sys

from simulator.cli.termination import one_line_exit

with one_line_exit():  # Ctrl-C while these are imported
    from typer import TyperException

    from simulator.cli.commands import app, print_version

__all__ = ["app", "main"]

_GARBAGE_THRESHOLD = 100_000
"""Objects made before Python searches for garbage; with its own 700, imports spend a sixth of their time on that."""


def main() -> None:
    """Run the command line; a user's mistake ends in one message and exit code 2, a page's in 1, Ctrl-C in 130."""
    gc.set_threshold(_GARBAGE_THRESHOLD)
    atexit.register(gc.freeze)  # at the end Python searches all modules for garbage, which takes half a second
    with one_line_exit():
        try:
            if sys.argv[1:] == ["--version"]:
                print_version()  # at once: to parse options, typer imports pydantic
            else:
                sys.exit(app(prog_name="crowdveil", standalone_mode=False))
        except TyperException as error:
            from simulator.cli.usage_errors import message_of  # noqa: PLC0415 - `--help` needs no messages

            sys.stderr.write(f"crowdveil: {message_of(error)}\n")
            sys.exit(error.exit_code)
        except ValueError as error:
            from mechanisms.parameter import ParameterError  # noqa: PLC0415 - `--help` needs no messages
            from scenarios.errors import ScenarioError  # noqa: PLC0415 - as above
            from scenarios.suggestions import suggestion  # noqa: PLC0415 - as above
            from simulator.files.errors import UserError  # noqa: PLC0415 - as above

            if not isinstance(error, (ParameterError, ScenarioError, UserError)):
                raise
            hint = suggestion(getattr(error, "value", None), getattr(error, "choices", ()))
            sys.stderr.write(f"crowdveil: {error}{hint}\n")
            sys.exit(getattr(error, "exit_code", 2))
        except MemoryError as error:  # what an estimate let pass, or the user with --yes
            sys.stderr.write(f"crowdveil: not enough memory: {error}\n".replace(": \n", "\n"))
            sys.exit(2)
