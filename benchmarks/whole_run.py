"""`crowdveil run SCENARIO` as a whole process: the first start, which compiles, and the ones after it."""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from timing import seconds, spread


def main() -> None:
    """Measure the runs and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenario", nargs="?", default="manhattan")
    parser.add_argument("--repetitions", type=int, default=5)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(Path(folder, "cache"))}
        command = [sys.executable, "-m", "simulator.cli", "run", chosen.scenario, "--quiet", "--overwrite"]
        command += ["--out", str(Path(folder, "run"))]

        def run() -> None:
            subprocess.run(command, env=environment, check=True)

        first = seconds(run, repetitions=1, warm_up=0)
        later = seconds(run, repetitions=chosen.repetitions, warm_up=0)
    print(f"first start : {spread(first, unit='s')}")
    print(f"later starts: {spread(later, unit='s')}")
    print(f"ratio       : {spread([first[0] / taken for taken in later])}")


if __name__ == "__main__":
    main()
