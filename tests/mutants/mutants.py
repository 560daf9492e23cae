"""Mutants: plant one fault at a time in a copy of the source, run the tests that execute its line, record what fails.

    .venv/bin/python tests/mutants/mutants.py recheck --count 20     killed mutants by their recorded tests alone
    .venv/bin/python tests/mutants/mutants.py cover                  the fast tests, with the lines that each executes
    .venv/bin/python tests/mutants/mutants.py run                    all listed mutants that have no outcome yet
    .venv/bin/python tests/mutants/mutants.py run --again --only mechanisms/privacy
    .venv/bin/python tests/mutants/mutants.py try simulator/streams.py --count 20
    .venv/bin/python tests/mutants/mutants.py show                   what survived, and why

The lists are `planted.py`, faults in privacy claims, and `sampled.json`, which `sample` has drawn. `killed.json`
holds for each mutant whether a test fails (killed) or none (survived), and the test, or why it may survive: a
sentence that is written by hand, and without which `test_planted.py` fails. A test is removed only if the set of
killed mutants stays the same: after `run --again`, `git diff` of `killed.json` shows no new survivor. That run tries
the recorded test first, so most mutants take seconds. It can be interrupted; it writes after each mutant. `recheck`
draws from the killed mutants by `--seed`, for which continuous integration gives the name of the commit, and fails if
one of them passes its test.
"""

import argparse
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from zlib import crc32

from planted import PACKAGES, PLANTED, ROOT, place_of, source_files
from sampling import Mutant, changed_source, find, places, sample

HERE = Path(__file__).parent
SAMPLED, OUTCOMES = HERE / "sampled.json", HERE / "killed.json"
COUNT, SEED = 300, 30
BUDGET_S, MOST_TESTS = 15.0, 250
"""Recorded time and number of the tests that are run against a mutant."""
RECHECK_CPU_S = 300
FOLDERS = sorted({path.parent.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")} - {"tests"})
IGNORED = {".git", ".venv", "build"}


def pytest(python: str, folder: Path, tests: list[str], *options: str, cpu_s: int = 0, **environment: str) -> tuple:
    """Run tests in a folder; return the exit code and the output, code −1 where the time is used up."""

    def limit() -> None:
        import resource  # not on Windows, where nothing limits the time

        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))

    command = [python, "-m", "pytest", "-n", "0", "--dist", "no", "-q", "-p", "no:cacheprovider", *options, *tests]
    values = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    given = {"preexec_fn": limit} if cpu_s and os.name == "posix" else {}
    try:
        done = subprocess.run(
            command, cwd=folder, env=values, capture_output=True, text=True, check=False, timeout=1800, **given
        )
    except subprocess.TimeoutExpired:
        return -1, ""
    return (-1 if done.returncode < 0 else done.returncode), done.stdout


def copy_of_source(target: Path) -> Path:
    """Copy the project into a folder and compile its modules, so that only the changed one is compiled each time."""
    for path in ROOT.iterdir():
        if path.is_dir() and path.name not in IGNORED:
            shutil.copytree(path, target / path.name, dirs_exist_ok=True)
        elif path.is_file():
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)
    subprocess.run([sys.executable, "-m", "compileall", "-q", *PACKAGES], cwd=target, check=True)
    return target


def cover(options: argparse.Namespace) -> None:
    """Run the fast tests of each folder with coverage by test; results go into the folder `--work`."""
    work = Path(options.work).resolve()
    tree = copy_of_source(work / "tree")
    (work / "coverage").mkdir(exist_ok=True)
    settings = work / "settings.toml"
    settings.write_text("[tool.coverage.run]\nsource = ['simulator', 'mechanisms', 'scenarios']\n", encoding="utf-8")
    for folder in options.folders or FOLDERS:
        data = work / "coverage" / folder.replace("/", "_")
        given = ["--cov", f"--cov-config={settings}", "--cov-context=test", "--cov-report=", f"--junitxml={data}.xml"]
        code, _ = pytest(options.python, tree, [folder], *given, COVERAGE_FILE=str(data))
        print(f"{folder}: pytest ended with {code}", flush=True)


class Covered:
    """Which tests execute a line, and how long they take."""

    def __init__(self, work: Path) -> None:
        """Read what `cover` wrote."""
        self.seconds: dict[str, float] = {}
        self.tests: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for report in sorted((work / "coverage").glob("*.xml")):
            self._read_times(report)
            self._read_lines(report.with_suffix(""))
        self.text = {path: path.read_text(encoding="utf-8") for path in source_files(ROOT)}

    def _read_times(self, report: Path) -> None:
        for case in ET.parse(report).getroot().iter("testcase"):  # noqa: S314 - pytest wrote it
            if any(child.tag in {"failure", "error", "skipped"} for child in case):
                continue
            module, _, classes = case.get("classname").partition(".Test")
            file = f"{module.replace('.', '/')}.py"
            test = [file, *(f"Test{classes}".split(".") if classes else []), case.get("name")]
            self.seconds["::".join(test)] = float(case.get("time"))

    def _read_lines(self, data: Path) -> None:
        from coverage import CoverageData  # noqa: PLC0415

        coverage = CoverageData(str(data))
        coverage.read()
        for file in coverage.measured_files():
            name = re.search(r"/((?:simulator|mechanisms|scenarios)/.*)", file.replace("\\", "/")).group(1)
            for line, contexts in coverage.contexts_by_lineno(file).items():
                tests = {context.rpartition("|")[0] for context in contexts if context}
                self.tests[name][line] |= {test for test in tests if test in self.seconds}

    def of_lines(self, file: str, first: int, last: int) -> set[str]:
        """Return the tests that execute a statement."""
        return set().union(*(self.tests[file].get(line, set()) for line in range(first, last + 1)))

    def of_callers(self, function: str, depth: int = 3) -> set[str]:
        """Return the tests that execute a call of a function; for compiled ones, which are not traced."""
        tests: set[str] = set()
        call = re.compile(rf"(?<!def )\b{re.escape(function)}\(")
        for path, text in self.text.items():
            for match in call.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                covered = self.of_lines(path.relative_to(ROOT).as_posix(), line, line)
                outer = re.findall(r"(?m)^ *def (\w+)", text[: match.start()])
                tests |= covered or (self.of_callers(outer[-1], depth - 1) if outer and depth else set())
        return tests

    def chosen(self, mutant: Mutant) -> list[str]:
        """Return the tests to run against a mutant: the first of each function before the second, quick ones first."""
        tests = self.of_lines(mutant.file, mutant.first, mutant.last)
        if not tests and is_compiled(mutant):
            tests = self.of_callers(mutant.function)
        own = own_tests(mutant)
        by_function: dict[str, list[str]] = defaultdict(list)
        for test in sorted(tests, key=lambda test: (self.seconds[test], test)):
            by_function[test.partition("[")[0]].append(test)
        ranked = sorted(
            (rank, not test.startswith(own), self.seconds[test], test)
            for cases in by_function.values()
            for rank, test in enumerate(cases)
        )
        kept, spent = [], 0.0
        for _, _, seconds, test in ranked:
            if len(kept) < MOST_TESTS and (not kept or spent + seconds <= BUDGET_S):
                kept.append(test)
                spent += seconds
        return kept

    def fallback(self, mutant: Mutant) -> list[str]:
        """Return test files that name the function or the module, for lines that no covered test executes.

        Those are lines that run in another process, and all where a folder of tests was not covered.
        """
        module, name = mutant.file.removesuffix(".py"), mutant.function.partition(".")[0]
        exported = re.findall(r"(?m)^(?:def|class) ([A-Za-z]\w*)", (ROOT / mutant.file).read_text(encoding="utf-8"))
        command = module.rpartition("/")[2].removeprefix("_")
        words = [rf"\b{name}\b", rf"\b{re.escape(module.replace('/', '.'))}\b"]
        words += [rf"\b(?:{'|'.join(exported)})\b"] if exported else []
        words += [rf'crowdveil\("{command}"'] if mutant.file.startswith("simulator/cli") else []
        times: dict[str, float] = defaultdict(float)
        for test, seconds in self.seconds.items():
            times[test.partition("::")[0]] += seconds
        ranked = []
        for path in (ROOT / "tests").rglob("test_*.py"):
            text, file = path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()
            rank = next((i for i, word in enumerate(words) if re.search(word, text)), None)
            if rank is not None:
                ranked.append((not file.startswith(own_tests(mutant)), rank, times.get(file, BUDGET_S / 2), file))
        kept, spent = [], 0.0
        for *_, seconds, file in sorted(ranked):
            if not kept or spent + seconds <= 2 * BUDGET_S:
                kept.append(file)
                spent += seconds
        return kept


def own_tests(mutant: Mutant) -> str:
    """Return the folder of the tests of a mutant's package."""
    parts = mutant.file.split("/")
    return f"tests/{parts[0] if parts[0] != 'simulator' else parts[1]}/"


def is_compiled(mutant: Mutant) -> bool:
    """Return whether a mutant is in a function that numba compiles."""
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    return re.search(rf"@compiled\w*\ndef {re.escape(mutant.function)}\(", text) is not None


class Worker:
    """A copy of the project in which mutants are tried one after another."""

    def __init__(self, folder: Path, python: str) -> None:
        """Copy the project."""
        self.folder, self.python = copy_of_source(folder), python

    def check(self) -> None:
        """Check that the tests of the copy can be collected; else every mutant would seem to be killed.

        Raises
        ------
        RuntimeError
            If pytest cannot collect them.
        """
        code, output = pytest(self.python, self.folder, ["tests"], "--collect-only")
        if code:
            raise RuntimeError(f"the tests of the copy cannot be collected: {output[-2000:]}")

    def fails(self, mutant: Mutant, text: str, tests: list[str], cpu_s: int) -> str | None:
        """Return the test that fails with a changed file, or None if all pass."""
        path = self.folder / mutant.file
        original, times = path.read_bytes(), path.stat()
        try:
            path.write_text(text, encoding="utf-8")
            with tempfile.TemporaryDirectory() as kernels:
                # Kernels that call a changed one in another file are not compiled again unless the cache is empty.
                fresh = {"NUMBA_CACHE_DIR": kernels} if is_compiled(mutant) else {}
                code, output = pytest(self.python, self.folder, tests, "-x", "--tb=no", cpu_s=cpu_s, **fresh)
        finally:
            path.write_bytes(original)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        if code == -1:
            return "the time is used up"
        failed = re.search(r"(?m)^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output)
        if code in {1, 2, 3} or (code == 4 and "not found" not in output):
            return failed.group(1) if failed else "pytest ends with an error"
        if code == 4:
            missing = set(re.findall(r"not found: \S*?(tests/.*)", output))
            left = [test for test in tests if test not in missing]
            return self.fails(mutant, text, left, cpu_s) if left and len(left) < len(tests) else None
        return None


def listed() -> dict[str, Mutant | str]:
    """Return all mutants by name; a planted fault is a name only."""
    planted: dict[str, Mutant | str] = {f"planted:{name}": name for name in PLANTED}
    mutants = dict(planted)
    for entry in json.loads(SAMPLED.read_text(encoding="utf-8")):
        mutant = Mutant(**entry)
        mutants[mutant.name] = mutant
    # In an order that mixes the packages, so that a part of the run tells something about all of them.
    order = sorted(mutants, key=lambda name: (name not in planted, crc32(name.encode())))
    return {name: mutants[name] for name in order}


def prepared(mutant: Mutant | str) -> tuple[Mutant, str] | None:
    """Return a mutant as it stands in the source now, and the changed text; None where its line is gone."""
    if isinstance(mutant, Mutant):
        present = find(ROOT, mutant)
        return None if present is None else (present, changed_source(ROOT, present))
    fault = PLANTED[mutant]
    path = place_of(fault, ROOT)
    text = path.read_text(encoding="utf-8")
    before = text[: text.index(fault.old)].count("\n") + 1
    line = before + len(fault.old) - len(fault.old.lstrip("\n"))
    function = (re.findall(r"(?m)^ *def (\w+)", "\n".join(text.splitlines()[:line])) or [""])[-1]
    last = line + fault.old.strip().count("\n")
    place = Mutant(path.relative_to(ROOT).as_posix(), function, "planted", 0, fault.old, -1, line, last)
    return place, text.replace(fault.old, fault.new)


def outcome_of(mutant: Mutant | str, before: dict, covered: Covered, worker: Worker) -> dict:
    """Try one mutant and return its outcome."""
    there = prepared(mutant)
    if there is None:
        return {"outcome": "gone"}
    place, text = there
    recorded = before.get("by", "")
    if recorded.startswith("tests/") and (ROOT / recorded.partition("::")[0]).exists():
        by = worker.fails(place, text, [recorded], 120)
        if by is not None:
            return {"outcome": "killed", "by": recorded if by.startswith("tests/") else by}
    tests = covered.chosen(place) or covered.fallback(place)
    # Why it may survive is written by hand.
    survived = {"outcome": "survived", "tests": len(tests), **{key: before[key] for key in ("why",) if key in before}}
    if not tests:
        return survived
    seconds = sum(covered.seconds.get(test, 0.0) for test in tests)
    by = worker.fails(place, text, tests, int(60 + 3 * seconds))
    return survived if by is None else {"outcome": "killed", "by": by}


def write_outcomes(outcomes: dict[str, dict]) -> None:
    """Write the outcomes, a mutant a line."""
    lines = [f"{json.dumps(name)}: {json.dumps(outcomes[name], ensure_ascii=False)}" for name in sorted(outcomes)]
    new = OUTCOMES.with_suffix(".new")
    new.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    new.replace(OUTCOMES)


def each_in_a_worker(
    names: Iterable[str], attempt: Callable[[str, Worker], None], options: argparse.Namespace, *, collect: bool
) -> None:
    """Call `attempt` for each name with a free worker, several at a time; with `collect` after the workers' check."""
    workers: queue.SimpleQueue[Worker] = queue.SimpleQueue()

    def work(name: str) -> None:
        worker = workers.get()
        try:
            attempt(name, worker)
        finally:
            workers.put(worker)

    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(options.jobs) as pool:
        for number in range(options.jobs):
            worker = Worker(Path(temporary) / str(number), options.python)
            if collect and number == 0:
                worker.check()
            workers.put(worker)
        list(pool.map(work, names))


def tried(mutants: dict[str, Mutant | str], options: argparse.Namespace, *, keep: bool) -> dict[str, dict]:
    """Try mutants, several at a time, and return their outcomes; with `keep` they are written after each."""
    outcomes = json.loads(OUTCOMES.read_text(encoding="utf-8")) if OUTCOMES.exists() else {}
    covered, lock, results = Covered(Path(options.work)), threading.Lock(), {}

    def attempt(name: str, worker: Worker) -> None:
        outcome = outcome_of(mutants[name], outcomes.get(name, {}), covered, worker)
        with lock:
            results[name] = outcome
            print(f"{len(results)}/{len(mutants)} {outcome['outcome']}: {name} {outcome.get('by', '')}", flush=True)
            if keep:
                outcomes[name] = outcome
                write_outcomes(outcomes)

    each_in_a_worker(mutants, attempt, options, collect=True)
    return results


def recheck(options: argparse.Namespace) -> int:
    """Try some of the killed mutants with the recorded test of each; return 1 if one passes it."""
    outcomes, mutants = json.loads(OUTCOMES.read_text(encoding="utf-8")), listed()
    named = [name for name in mutants if outcomes.get(name, {}).get("by", "").startswith("tests/")]
    chosen = sorted(named, key=lambda name: crc32(f"{options.seed} {name}".encode()))[: options.count]
    outlived: list[str] = []

    def attempt(name: str, worker: Worker) -> None:
        there, by = prepared(mutants[name]), outcomes[name]["by"]
        killed = there is not None and worker.fails(*there, [by], RECHECK_CPU_S)
        print(f"{'killed' if killed else 'NOT KILLED'}: {name} {by}", flush=True)
        outlived.extend([] if killed else [name])

    each_in_a_worker(chosen, attempt, options, collect=False)
    return int(bool(outlived))


def main() -> int:
    """Do what the first argument says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["sample", "recheck", "cover", "run", "try", "show"])
    parser.add_argument("file", nargs="?", help="file whose mutants are tried")
    parser.add_argument("--work", default=str(ROOT / "build" / "mutants"), help="folder of what `cover` writes")
    parser.add_argument("--python", default=sys.executable, help="Python that runs the tests")
    parser.add_argument("--folders", nargs="*", help="test folders to cover, by default all")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[""], help="mutants whose name contains one of these")
    parser.add_argument("--again", action="store_true", help="also mutants that have an outcome")
    parser.add_argument("--survived", action="store_true", help="also survivors, after more is covered")
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", default="", help="text by which `recheck` draws")
    options = parser.parse_args()
    if options.what == "sample":
        fields = ("file", "function", "operator", "number", "line")
        drawn = [{field: getattr(mutant, field) for field in fields} for mutant in sample(ROOT, options.count, SEED)]
        lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in drawn)
        SAMPLED.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    elif options.what == "recheck":
        return recheck(options)
    elif options.what == "cover":
        cover(options)
    elif options.what == "try":
        every = list(places(ROOT, ROOT / options.file))
        chosen = every[:: max(1, len(every) // options.count)]
        results = tried({mutant.name: mutant for mutant in chosen}, options, keep=False)
        return int(any(outcome["outcome"] == "survived" for outcome in results.values()))
    else:
        outcomes = json.loads(OUTCOMES.read_text(encoding="utf-8")) if OUTCOMES.exists() else {}
        if options.what == "run":
            mutants = {name: mutant for name, mutant in listed().items() if any(part in name for part in options.only)}
            due = {"survived"} if options.survived else set()
            left = {
                name: mutant
                for name, mutant in mutants.items()
                if options.again or name not in outcomes or outcomes[name]["outcome"] in due
            }
            tried(left, options, keep=True)
        else:
            left = [name for name in sorted(outcomes) if outcomes[name]["outcome"] != "killed"]
            print("\n".join(f"{name}: {outcomes[name].get('why', 'not explained')}" for name in left))
            print(f"{sum(o['outcome'] == 'killed' for o in outcomes.values())} of {len(outcomes)} mutants are killed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
