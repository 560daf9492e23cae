"""Signals, closed pipes, full disks and removed directories: one message line, the right exit code, no leftovers."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CROWDVEIL = [sys.executable, "-m", "simulator.cli"]
FULL = Path("/dev/full")


def check_exit(process, code, words, folder):
    """Check how a process ended: exit code, one message line, no leftovers."""
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == code, stderr
    assert "Traceback" not in stderr
    assert "Exception" not in stderr
    reported = [line for line in stderr.splitlines() if line.startswith("crowdveil: ")]
    assert len(reported) == (1 if words else 0)
    assert not words or words in reported[0]
    assert list(folder.rglob("*")) == []


def started(*arguments, cwd, **options):
    for name in ("here", "tmp"):
        (cwd / name).mkdir(exist_ok=True)
    environment = {**os.environ, "TMPDIR": str(cwd / "tmp")}
    options = {"stdout": subprocess.DEVNULL, "cwd": cwd / "here", **options}
    return subprocess.Popen([*CROWDVEIL, *arguments], env=environment, stderr=subprocess.PIPE, text=True, **options)


@contextlib.contextmanager
def signalled(number, after_s, *arguments, cwd):
    with started(*arguments, cwd=cwd) as process:
        caught = 0
        while not caught >> (signal.SIGTERM - 1) & 1:  # before that, Python itself starts
            time.sleep(0.005)
            status = Path(f"/proc/{process.pid}/status").read_text()
            caught = int(status.partition("SigCgt:")[2].split()[0], 16)
        time.sleep(after_s)
        process.send_signal(number)
        yield process


@pytest.mark.skipif(not FULL.exists(), reason="the device is Linux's")
def test_a_full_standard_output(tmp_path):
    with FULL.open("w") as full, started("--version", cwd=tmp_path, stdout=full) as process:
        check_exit(process, 2, "standard output", tmp_path / "here")


def test_a_closed_standard_output(tmp_path):
    command = ["sh", "-c", 'exec "$@" >&-', "sh", *CROWDVEIL, "--version"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        check_exit(process, 0, None, tmp_path)


def test_a_closed_pipe(tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    with started("--version", cwd=tmp_path, stdout=writing) as process:
        os.close(writing)
        check_exit(process, 1, None, tmp_path / "here")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "after_s"), [*((signal.SIGINT, after_s) for after_s in (0.0, 0.5, 2.0)), (signal.SIGTERM, 1.0)]
)
def test_signals_at_any_time(tmp_path, number, after_s):
    words = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}[number]
    endless = ("--set", "population.outside=200000", "--set", "population.answers=reports")
    endless += ("--set", "campaigns.stretch.queries=390")
    with signalled(number, after_s, "run", "highway", *endless, cwd=tmp_path) as process:
        check_exit(process, 128 + number, words, tmp_path / "here")
    assert list((tmp_path / "tmp").iterdir()) == []


SIGNALLED_IMPORT = """
import simulator.cli
def app(**_):
    try:
        raise {}
    except BaseException as error:
        raise {}("initialization failed") from error
simulator.cli.app = app
simulator.cli.main()
"""


@pytest.mark.parametrize(
    ("end", "error", "code", "message"),
    [
        ("KeyboardInterrupt", "ImportError", 130, "interrupted"),
        ("SystemExit(143)", "RuntimeError", 143, "terminated"),
        ("ValueError", "ImportError", 1, None),
    ],
)
def test_a_signal_while_a_module_is_imported(end, error, code, message):
    command = [sys.executable, "-c", SIGNALLED_IMPORT.format(end, error)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code
    assert (done.stderr == f"crowdveil: {message}\n") if message else ("ImportError" in done.stderr)


DROPPED = """
import os, time
import simulator.cli
def app(**_):
    try:
        os.kill(os.getpid(), {})
        time.sleep(5)
    except BaseException:
        pass
    try:
        time.sleep(30)
    finally:
        time.sleep(1.5)  # no third one while this cleans up
        print("clean")
simulator.cli.app = app
simulator.cli.main()
"""


@pytest.mark.parametrize(("number", "message"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")])
def test_a_signal_whose_exception_is_dropped_ends_the_command_all_the_same(number, message):
    command = [sys.executable, "-c", DROPPED.format(int(number))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "clean\n", f"crowdveil: {message}\n")


@pytest.mark.skipif("CROWDVEIL_DATA" not in os.environ, reason="needs the data set sumo")
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_sumo_ends_with_the_run(tmp_path, number):
    pytest.importorskip("sumo", reason="SUMO is an extra")
    with started("run", "bologna-sumo", cwd=tmp_path) as process:
        children, end = [], time.monotonic() + 60
        while not children and time.monotonic() < end:
            time.sleep(0.2)
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert children, "SUMO runs"
        time.sleep(0.5)
        process.send_signal(number)
        check_exit(process, 128 + number, {2: "interrupted", 15: "terminated"}[number], tmp_path / "here")
    assert not [child for child in children if Path(f"/proc/{child}").exists()]
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.slow
def test_ignored_signal_stays_ignored(tmp_path):
    """As in a background job of a shell script, or after nohup."""
    command = ["sh", "-c", 'trap "" INT HUP; exec "$@"', "sh", *CROWDVEIL, "--version"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGHUP)
        stdout, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert stdout.startswith("crowdveil ")


@pytest.mark.slow
def test_a_removed_working_directory(tmp_path):
    (tmp_path / "gone").mkdir()
    script = 'cd gone && rmdir ../gone && exec "$@"'
    command = ["sh", "-c", script, "sh", *CROWDVEIL, "run", "tiny"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        check_exit(process, 2, "no such file or directory", tmp_path)


@pytest.fixture
def full_disk(tmp_path):
    """A file system of 40 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=40k", "tmpfs", place], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("a file system can be mounted by root only")
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "tiny", "--quiet", "--out", "{}/run"),
        ("reproduce", "sp-fig3", "--out", "{}/page.html"),
        ("roads", "export", "grid20", "{}/roads.gpkg"),
    ],
    ids=" ".join,
)
def test_a_full_disk(tmp_path, full_disk, arguments):
    with started(*(word.format(full_disk) for word in arguments), cwd=tmp_path) as process:
        check_exit(process, 2, str(full_disk), full_disk)


@pytest.mark.slow
def test_template_that_does_not_fit_on_the_disk(tmp_path, full_disk):
    with contextlib.suppress(OSError):
        (full_disk / "fill").write_bytes(bytes(100_000))
    with started("scenarios", "new", f"{full_disk}/mine.toml", cwd=tmp_path) as process:
        check_exit(process, 2, "mine.toml: no space left", tmp_path / "here")
    assert [path.name for path in full_disk.iterdir()] == ["fill"]


@pytest.mark.slow
def test_two_concurrent_runs_are_both_kept(tmp_path):
    """The one that finishes last replaces nothing: it is kept under another name and reports this with exit code 2."""
    with started("run", "tiny", "--out", "mine", cwd=tmp_path) as slow:
        end = time.monotonic() + 60
        while not list((tmp_path / "here").glob(".mine.partial-*")) and time.monotonic() < end:
            time.sleep(0.001)
        slow.send_signal(signal.SIGSTOP)  # while it writes
        with started("run", "tiny", "--out", "mine", cwd=tmp_path) as fast:
            assert fast.wait(60) == 0
        slow.send_signal(signal.SIGCONT)
        _, error = slow.communicate(timeout=60)
    assert slow.returncode == 2
    assert "kept in mine-2" in error
    assert {path.parent.name for path in (tmp_path / "here").glob("*/run.json")} == {"mine", "mine-2"}
    assert len(list((tmp_path / "here").iterdir())) == 2


@pytest.mark.slow
def test_leftover_of_a_killed_run_is_removed_by_the_next(tmp_path):
    place = tmp_path / "here" / "r"
    place.mkdir(parents=True)
    (place / "run.json").write_text("earlier")
    with started("run", "tiny", "--out", "r", "--overwrite", cwd=tmp_path) as process:
        end = time.monotonic() + 60
        while not (left := list(place.parent.glob(".r.partial-*"))) and time.monotonic() < end:
            time.sleep(0.001)
        process.kill()
    assert left
    assert (place / "run.json").read_text() == "earlier"
    with started("run", "tiny", "--out", "r", cwd=tmp_path) as process:
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "it contains an earlier run" in stderr
    assert [path.name for path in place.parent.iterdir()] == ["r"]


ENDED_IN_THE_PAGE = """
import os, signal, sys, time
import simulator.pages.report
def write_report(*_):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(30)
simulator.pages.report.write_report = write_report
sys.argv = ["crowdveil", "run", "tiny", "--out", "kept", "--quiet"]
from simulator.cli import main
main()
"""


def test_a_run_that_is_ended_before_its_page_says_where_it_is_and_how_to_get_the_page(tmp_path):
    command = [sys.executable, "-c", ENDED_IN_THE_PAGE]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=200, check=False)
    assert done.returncode == 143
    note = "note: the run is kept in kept; crowdveil report kept writes its page"
    assert done.stderr.splitlines() == [note, "crowdveil: terminated"]
    assert (tmp_path / "kept" / "run.json").is_file()
    assert not (tmp_path / "kept" / "report.html").exists()
    again = [*CROWDVEIL, "report", "kept"]
    assert subprocess.run(again, capture_output=True, cwd=tmp_path, timeout=200, check=False).returncode == 0
    assert {path.name for path in tmp_path.rglob("*") if ".partial" in path.name} == set()
