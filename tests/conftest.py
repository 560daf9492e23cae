"""Settings for all tests."""

import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import verification
from hypothesis import settings

# A kernel is compiled in the first example that calls it, which takes seconds in a fresh clone and is no fault of the
# example. Tests that hang are stopped by pytest's own timeout.
settings.register_profile("crowdveil", deadline=None, max_examples=50)
settings.load_profile("crowdveil")

# The readline that pytest imports sets it to 80 for the processes that it starts, and the commands wrap their output.
os.environ.pop("COLUMNS", None)

# Processes that tests start, pytest's workers among them, keep their compiled modules, beside the compiled kernels:
# without them each would compile the source again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

NOT_FIXED = re.compile(r"\\x(?:[0189][0-9a-f]|7f)| at 0x[0-9a-f]+|.{501}")
"""What shows that an id is no fixed text: bytes that are no text, the address of an object, or a very long value."""
LATE_WORKER = "CROWDVEIL_TESTS_LATE_WORKER_S"
"""Variable with the seconds by which the second of pytest's workers starts after the others."""


def pytest_addoption(parser):
    """Add the option that writes what tests compared."""
    parser.addoption("--verification", metavar="FILE", help="write how many numbers tests compared, by family")


def pytest_configure(config):
    """Let a worker start late if asked: workers that start at different times must collect the same tests."""
    file = config.getoption("--verification")
    if file and not hasattr(config, "workerinput"):
        config.pluginmanager.register(verification.Collected(Path(file).resolve()))
    if getattr(config, "workerinput", {}).get("workerid") == "gw1":
        time.sleep(float(os.environ.get(LATE_WORKER, "0")))


def pytest_runtest_teardown(item):
    """Keep with each test what it compared."""
    item.user_properties += [("compared", found) for found in verification.taken()]


def pytest_make_parametrize_id(val, argname):
    """Name bytes by their parameter: packed bytes may hold the time, and differ from version to version."""
    return argname if isinstance(val, bytes) else None


@pytest.hookimpl(tryfirst=True)  # before pytest selects tests by their markers
def pytest_collection_modifyitems(items):
    """Refuse ids that are no fixed texts, and mark all cases but the first n of a test with `fast_cases(n)` as slow."""
    not_fixed = [item.nodeid for item in items if NOT_FIXED.search(item.nodeid.partition("[")[2])]
    if not_fixed:  # pytest's workers pass no other error on
        raise ValueError(f"ids that are no fixed texts, give these cases others: {', '.join(not_fixed)}")
    cases = Counter()
    for item in items:
        marker = item.get_closest_marker("fast_cases")
        if marker is not None:
            test = item.nodeid.partition("[")[0]
            cases[test] += 1
            if cases[test] > marker.args[0]:
                item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def once(tmp_path_factory) -> Callable[[str, Callable[[Path], object]], Path]:
    """
    Return a function that gives a folder or file which is made once for all workers.

    It takes a name and a function that makes something at a path. The first test that asks makes it; those of all
    workers wait and share it. A test that changes something there works on a copy.
    """
    own = tmp_path_factory.getbasetemp()
    shared = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "shared"
    shared.mkdir(exist_ok=True)

    def made(name: str, make: Callable[[Path], object]) -> Path:
        begun, done, failed = (shared / f"{name}.{state}" for state in ("begun", "done", "failed"))
        try:
            begun.mkdir()
        except FileExistsError:
            while not done.exists():
                assert not failed.exists(), f"{name} could not be made for another test"
                time.sleep(0.1)
            return shared / name
        try:
            make(shared / name)
        except BaseException:
            failed.mkdir()
            raise
        done.mkdir()
        return shared / name

    return made


@pytest.fixture(scope="session")
def shipped_run(once) -> Callable[[str], Path]:
    """Return a function that gives the directory of a run of a shipped scenario, without a report.

    It skips where `CROWDVEIL_DATA` does not have the scenario's data.
    """
    import golden_tables  # noqa: PLC0415 - loads the simulator, which tests of documents do not need

    def directory(name: str) -> Path:
        if absent := golden_tables.missing_data(name):
            pytest.skip(f"CROWDVEIL_DATA names no folder with {absent[0]}: real data is not part of the project")
        return once(name, lambda place: golden_tables.run_scenario(name, place.parent))

    return directory


@pytest.fixture(scope="session")
def installed(once) -> Path:
    """
    Return the folder of the programs of an environment in which the built wheels are installed.

    They are the wheel of the project and that of a package with kinds of its own. All other packages come from the
    environment of the tests, and kernels are those that it has compiled.
    """
    import installation  # noqa: PLC0415 - for slow tests only

    return installation.programs(once("installed", installation.install))


@pytest.fixture
def call_in_process(monkeypatch, capfd):
    """Return a function that calls the command line in this process, ten times faster than in a new one."""
    from simulator.cli import main  # noqa: PLC0415 - loads the simulator

    def call(*arguments, cwd):
        monkeypatch.chdir(cwd)
        monkeypatch.setattr(sys, "path", sys.path.copy())
        monkeypatch.setattr(sys, "argv", ["crowdveil", *arguments])
        with pytest.raises(SystemExit) as leaving:
            main()
        printed = capfd.readouterr()
        return subprocess.CompletedProcess(arguments, leaving.value.code or 0, printed.out, printed.err)

    return call
