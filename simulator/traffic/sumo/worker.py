"""Program that runs SUMO's library in a child process; `SumoServer` starts it, and no module imports it.

Its arguments are SUMO's. It reads requests from its standard input and writes answers to its standard output, one JSON
value per line. A request is the name of a function of libsumo and its arguments. The first answer, without a request,
is SUMO's version, once SUMO has read its files. The program listens on no port. It ends when its input ends: when the
parent process closes SUMO, or has ended for any reason.
"""

import json
import os
import sys
from operator import attrgetter


def main() -> int:
    """Run SUMO with the program's arguments and answer requests until there are no more; return the exit code."""
    with os.fdopen(os.dup(1), "w", encoding="ascii") as answers:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # libsumo prints to it

        def answer(kind: str, value: object) -> None:
            answers.write(json.dumps([kind, value]) + "\n")
            answers.flush()

        # libsumo imports sumolib, which imports these if available. They are not used here, and cost half of the start
        # time.
        sys.modules.update(dict.fromkeys(("numpy", "pyproj")))  # type: ignore[arg-type]  # None forbids the import
        try:
            import libsumo  # noqa: PLC0415 - may lack a library of the system
        except ImportError as error:
            sys.stderr.write(f"Error: {error}\n")
            return 1
        try:
            answer("answer", libsumo.start(["sumo", *sys.argv[1:]])[1])
        except libsumo.TraCIException as error:
            sys.stderr.write(f"Error: {error}\n")
            return 1
        for line in sys.stdin:
            name, arguments = json.loads(line)
            try:
                answer("answer", attrgetter(name)(libsumo)(*arguments))
            except (libsumo.TraCIException, libsumo.FatalTraCIError) as error:
                answer("error", str(error))
        libsumo.close()  # this writes the outputs of its configuration
    return 0


if __name__ == "__main__":
    sys.exit(main())
