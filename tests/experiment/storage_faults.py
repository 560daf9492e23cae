"""Writing of a run directory, interrupted at every step.

A forked process writes a small run directory. At one line of the writing code it is killed, or receives a disk error
or Ctrl-C. Then the next process starts, and the remaining files are read.
"""

import errno
import os
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

import fault_harness
from fault_harness import FAULTS

from simulator.files import atomic_write
from simulator.results import store

HEADS = "| how it is written | faults | of these, kills | survived | runs lost | half-written | left over |"
TRACED = {__file__, store.__file__, atomic_write.__file__, shutil.__file__}
FILES = ("estimates.parquet", "folder/cells.parquet", "run.json")


class Case(NamedTuple):
    """One way to write a run over an existing one."""

    title: str
    overwrite: bool = False
    numbered: bool = False
    exchange: bool = True  # whether the system can exchange two directories in one step
    meanwhile: bool = False  # whether the earlier run appears after this one started


CASES = (
    Case("`--overwrite`, names exchanged in one step", overwrite=True),
    Case("`--overwrite`, two renames", overwrite=True, exchange=False),
    Case("next number", numbered=True),
    Case("`--out`, another run finishes meanwhile", meanwhile=True),
)


def write(folder, version):
    for name in FILES:
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        with file.open("w") as out:
            out.write(f"{name} of {version}\n")
            out.write(f"{version}\n" * 1000)


def read(folder):
    """Return the version of the run in a directory; "half" if it is not exactly one."""
    if not folder.exists():
        return None
    held = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
    for version in ("earlier", "new"):
        if held == {name: f"{name} of {version}\n" + f"{version}\n" * 1000 for name in FILES}:
            return version
    return "half"


def attempt(case, base, step, fault):
    """Write in this process with a fault at one step; return the number of steps."""

    def refuse(*_):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    def fill(staging):
        write(staging, "new")
        if case.meanwhile:
            (base / "elsewhere").rename(base / "runs" / "run")

    if not case.exchange:
        atomic_write._renameat2 = refuse
    options = {"overwrite": case.overwrite, "numbered": case.numbered}
    return fault_harness.attempt(
        partial(store.fill_directory, base / "runs" / "run", fill, **options),
        traced=TRACED,
        expected=(OSError, KeyboardInterrupt, store.DirectoryError),
        step=step,
        fault=fault,
    )


def forked(case, base, step=0, fault=None):
    """Prepare `base`, write in a forked process, and return its number of steps; None if it was killed."""
    shutil.rmtree(base, ignore_errors=True)
    (base / "runs").mkdir(parents=True)
    write(base / ("elsewhere" if case.meanwhile else "runs/run"), "earlier")
    return fault_harness.forked(partial(attempt, case, base, step, fault))


def judge(case, base):
    """Return the effects of a fault: lost, half and leftover, each 0 or 1."""
    place = base / "runs" / "run"
    before = read(place)
    due = not (base / "elsewhere").exists()  # whether an earlier run exists
    lost = due and case.exchange and before is None  # only a pair of renames may leave a gap until the next start
    atomic_write.remove_leftovers(place.parent)
    after, second = read(place), read(place.with_name("run-2"))
    allowed = {"earlier", "new"} if case.overwrite else {"earlier"} if due else {None, "new"}
    return {
        "lost": lost or after not in allowed,
        "half": "half" in {before, after, second} or second == "earlier",
        "left": not {path.name for path in place.parent.iterdir()} <= {"run", "run-2"},
    }


def inject(faults):
    """Distribute faults over the cases, kinds and steps; return a row of sums for each case."""
    rows = {}
    atomic_write._host()  # cached, so that every process takes the same steps
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "base"
        for at, case in enumerate(CASES):
            steps = forked(case, base)
            own = faults // len(CASES) + (at < faults % len(CASES))
            row = {"injected": own, "killed": 0, "survived": 0, "lost": 0, "half": 0, "left": 0}
            for number in range(own):
                # Evenly over the steps, with the kinds of fault in turn.
                row["killed"] += forked(case, base, 1 + number * steps // own, FAULTS[number % len(FAULTS)]) is None
                damage = judge(case, base)
                row["survived"] += not any(damage.values())
                for name, found in damage.items():
                    row[name] += found
            rows[case] = row
    return rows


if __name__ == "__main__":
    fault_harness.main(__doc__, HEADS, inject)
