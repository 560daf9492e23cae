"""Writing of studies interrupted at every step: `python tests/studies/study_faults.py`.

A forked process runs a command of studies, whose runs were computed before. At one line of the code that stores
results it is killed, or receives a disk error or Ctrl-C. Then the directory is read, the command is given again, and
the directory is read once more: no point of this or an earlier command may be lost, changed or computed again.
"""

import shutil
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

import fault_harness
from fault_harness import FAULTS, forked

from simulator.files import atomic_write
from simulator.files.errors import InputError
from simulator.studies import store, sweep
from simulator.studies.design import design_of
from simulator.studies.evaluate import Evaluation
from simulator.studies.store import Study, StudyDirectory
from simulator.studies.sweep import Sweep, merge
from simulator.studies.tables import Goal
from simulator.studies.workers import Workers

HEADS = "| command | faults | of these, kills | survived | lost | changed | computed again | blocked | left over |"
TRACED = {store.__file__, sweep.__file__, atomic_write.__file__, shutil.__file__}
VALUES = {"one": [0.1, 0.2, 0.3], "other": [0.1, 0.2, 0.4]}


class Known:
    """Executor that gives results computed before, and records which were asked for."""

    results: dict = {}  # noqa: RUF012 - of all
    asked: list = []  # noqa: RUF012 - of all

    def submit(self, call, point):
        future = Future()
        if point.key not in self.results:
            self.results[point.key] = call(point)
        self.asked.append(point.key)
        future.set_result(self.results[point.key])
        return future


def known_workers():
    return nullcontext(Workers(Known(), lambda: 1, "results computed before"))


DESIGNS = {}


def sweep_of(name, path, **options):
    """Return the work of a design; made once, since the fault is not to be in it."""
    if name not in DESIGNS:
        DESIGNS[name] = design_of("tiny", {"mechanisms.sampling.sampling": VALUES[name]}, replicates=1)
    return Sweep(DESIGNS[name], StudyDirectory(path), start=known_workers, **options)


def run(work, until=None):
    with work.opened():
        outcomes = work.outcomes()
        for number, _ in enumerate(outcomes, start=1):
            if number == until:
                outcomes.close()


def evaluation(base, epsilon):
    work = Evaluation(
        Goal(epsilon=epsilon),
        ["tiny"],
        ["randomized_response"],
        directory=base / "study",
        replicates=1,
        running={"start": known_workers},
    )
    for stage in work.stages():
        run(stage)
    work.write()


class Case(NamedTuple):
    """A command, the commands before it, and the studies in which they keep their results."""

    title: str
    command: Callable[[Path], object]
    before: tuple[Callable[[Path], object], ...] = ()
    folders: tuple[str, ...] = ("study",)
    parts: int = 4  # of the faults


def one(base):
    run(sweep_of("one", base / "study"))


def other(base):
    run(sweep_of("other", base / "study"))


def begun(base):
    run(sweep_of("one", base / "study"), until=2)


def shards(base):
    for index in (1, 2):
        run(sweep_of("one", base / str(index), shard=(index, 2)))


def merged(base):
    merge([base / "1", base / "2"], base / "study")


def evaluated(epsilon):
    return lambda base: evaluation(base, epsilon)


CASES = (
    Case("`sweep`, a new directory", one),
    Case("`sweep`, goes on", one, (begun,)),
    Case("`sweep`, other values", other, (one,)),
    Case("`sweep`, values of before, in `earlier`", one, (one, other)),
    Case("`sweep --merge`, a new directory", merged, (shards,)),
    Case("`sweep --merge`, one with other values", merged, (other, shards)),
    Case(
        "`evaluate`, another target",
        evaluated(2.0),
        (evaluated(1.0),),
        ("study/probe", "study/runs"),
        parts=1,
    ),
)


def attempt(case, base, step, fault):
    """Give the command in this process with a fault at one step; return the number of steps."""
    return fault_harness.attempt(
        partial(case.command, base),
        traced=TRACED,
        expected=(OSError, KeyboardInterrupt, InputError),
        step=step,
        fault=fault,
    )


def held(case, base):
    """Return the finished points of each study that there is."""
    there = [name for name in case.folders if (base / name).is_dir()]
    return {name: StudyDirectory(base / name).finished() for name in there}


def changed(path, keys):
    """Return whether a table of a study has not exactly the rows that the runs of these points gave."""
    tables = StudyDirectory(path).results(keys)
    for key in keys:
        for name, expected in Known.results[key].tables.items():
            rows = tables[name].loc[tables[name]["key"] == key, list(expected)]
            # As objects: a column of several runs may have another type than that of one.
            found, wanted = rows.to_numpy(object), expected.to_numpy(object)
            given = expected.notna().to_numpy()
            if found.shape != wanted.shape or (rows.notna().to_numpy() != given).any():
                return True
            if (found[given] != wanted[given]).any():
                return True
    return False


def judge(case, base, before):
    """Return the effects of a fault: points lost, changed or computed again, and files left over, each 0 or 1."""
    found = held(case, base)
    Known.asked.clear()
    try:
        case.command(base)
        blocked = False
    except (InputError, OSError):
        blocked = True
    again = set().union(*found.values()).intersection(Known.asked)
    after = held(case, base)
    missing = sum(Study.load(base / name).missing for name in case.folders)
    lost = [
        name
        for earlier, later in ((before, found), (before, after), (found, after))
        for name, keys in earlier.items()
        if keys - later.get(name, set())
    ]
    return {
        "lost": int(bool(lost) or missing > 0),
        "changed": int(any(changed(base / name, keys) for name, keys in after.items())),
        "again": int(bool(again)),
        "blocked": int(blocked),
        "left": int(any(atomic_write.is_staging_name(path.name) for path in base.rglob(".*"))),
    }


def inject(faults, cases=CASES):
    """Distribute faults over the cases, kinds and steps; return a row of sums for each case."""
    rows = {}
    atomic_write._host()  # cached, so that every process takes the same steps
    store._MOST_PARTS, sweep._FLUSH_S = 2, -1.0  # every point is a part, and parts are joined
    with tempfile.TemporaryDirectory() as folder:
        prepared, base = Path(folder) / "prepared", Path(folder) / "base"
        done, of = 0, sum(case.parts for case in cases)
        for case in cases:
            prepared.mkdir()
            for command in case.before:
                command(prepared)
            before = held(case, prepared)
            shutil.copytree(prepared, base)
            case.command(base)  # every run is computed
            shutil.rmtree(base)
            shutil.copytree(prepared, base)
            steps = forked(partial(attempt, case, base, 0, None))
            own = faults * (done + case.parts) // of - faults * done // of
            done += case.parts
            row = {"injected": own, "killed": 0, "survived": 0}
            row |= {"lost": 0, "changed": 0, "again": 0, "blocked": 0, "left": 0}
            for number in range(own):
                shutil.rmtree(base)
                shutil.copytree(prepared, base)
                # Evenly over the steps, with the kinds of fault in turn.
                step, fault = 1 + number * steps // own, FAULTS[number % len(FAULTS)]
                killed = forked(partial(attempt, case, base, step, fault)) is None
                row["killed"] += killed
                damage = judge(case, base, before)
                row["survived"] += not any(damage.values())
                for name, number_of in damage.items():
                    row[name] += number_of
            rows[case] = row
            shutil.rmtree(prepared)
            shutil.rmtree(base)
    return rows


if __name__ == "__main__":
    fault_harness.main(__doc__, HEADS, inject)
