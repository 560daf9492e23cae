"""Program that runs SUMO's library in a child process; `SumoServer` starts it, and no module imports it.

Its arguments are SUMO's. It reads requests from its standard input and writes answers to its standard output, one JSON
value a line; a request is the name of a function of libsumo and the arguments. The first answer, to no request, is
SUMO's version, once it has read its files. Nothing listens on any port. The program ends when its input does: when its
owner closes SUMO, or has ended in whatever way.
"""

import json
import os
import sys
from operator import attrgetter


def main() -> int:
    """Run SUMO with the program's arguments and answer requests until there are no more; return the exit code."""
    with os.fdopen(os.dup(1), "w", encoding="ascii") as answers:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # libsumo prints there

        def answer(kind: str, value: object) -> None:
            answers.write(json.dumps([kind, value]) + "\n")
            answers.flush()

        # libsumo imports sumolib, and that these if it can, for what is not used here: half of all the time it takes.
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
        libsumo.close()  # which writes what its configuration asks for
    return 0


if __name__ == "__main__":
    sys.exit(main())
