"""CPU time of the command line's start as ratios to the imports it cannot avoid; exits 1 if one is above its limit.

Each command and its reference alternate in the same run. The first run of `tiny` compiles and is not counted. On Unix
it also measures how soon `run tiny` writes something to a terminal.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from timing import spread

TYPER = "import typer"
CHECKS = "import numpy, pydantic"
LIBRARIES = "import numpy, pandas, pyarrow, geopandas, numba, scipy, simpy"
FIRST_OUTPUT_S = 0.5


def _environment() -> dict[str, str]:
    """Return the environment in which Python keeps the bytecode of modules, as after an installation."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def cpu_seconds(arguments: Sequence[str], *, code: int = 0) -> float:
    """Return the CPU seconds, user and system, of one call of Python, which must end with the exit code `code`."""
    before = os.times()
    done = subprocess.run([sys.executable, *arguments], capture_output=True, check=False, env=_environment())
    after = os.times()
    if done.returncode != code:
        raise RuntimeError(f"{arguments} ended with {done.returncode}: {done.stderr.decode()}")
    return after.children_user - before.children_user + after.children_system - before.children_system


def first_output_seconds(arguments: Sequence[str]) -> float:
    """Return the wall seconds until one call of Python writes to its terminal."""
    import pty

    here, there = pty.openpty()
    start = time.perf_counter()
    with subprocess.Popen([sys.executable, *arguments], stdout=there, stderr=there, env=_environment()) as process:
        os.close(there)
        os.read(here, 1)
        taken = time.perf_counter() - start
        try:
            while os.read(here, 65536):
                pass
        except OSError:  # the process has closed the terminal
            pass
        process.wait()
    os.close(here)
    return taken


def main() -> None:
    """Measure, print the ratios, and exit with code 1 if one is above its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=7)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        faulty = Path(folder, "faulty.toml")
        faulty.write_text('[scenario]\nname = "faulty"\nduration_s = "long"\n', encoding="utf-8")
        crowdveil = ["-m", "simulator.cli"]
        tiny = [*crowdveil, "run", "tiny", "--overwrite", "--out", str(Path(folder, "tiny"))]
        cases = [
            ("--help", [*crowdveil, "--help"], 0, TYPER, 2.5),
            ("--version", [*crowdveil, "--version"], 0, TYPER, 2.5),
            ("a scenario refused", [*crowdveil, "run", str(faulty)], 2, CHECKS, 2.0),
            ("run tiny", tiny, 0, LIBRARIES, 2.5),
        ]
        above = False
        for name, arguments, code, reference, limit in cases:
            cpu_seconds(arguments, code=code)
            ours, theirs = [], []
            for _ in range(chosen.repetitions):
                theirs.append(cpu_seconds(["-c", reference]))
                ours.append(cpu_seconds(arguments, code=code))
            ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
            above = above or statistics.median(ratios) > limit
            print(f"{name:18}: {spread(ratios)} times `{reference}`, at most {limit:g}", flush=True)
            print(f"{'':18}  {spread(ours, unit='s')} against {spread(theirs, unit='s')}", flush=True)
        if sys.platform != "win32":
            waits = [first_output_seconds(tiny) for _ in range(chosen.repetitions)]
            above = above or statistics.median(waits) > FIRST_OUTPUT_S
            print(f"{'first output':18}: {spread(waits, unit='s')}, at most {FIRST_OUTPUT_S:g} s")
    sys.exit(1 if above else 0)


if __name__ == "__main__":
    main()
