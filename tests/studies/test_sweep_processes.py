"""Sweeps and single runs in processes and on a Dask cluster: killed or repeated, they give the same values."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from simulator.studies.store import Study

pytestmark = pytest.mark.slow

VARY = ("tiny", "--vary", "mechanisms.sampling.sampling=.1,.2,.3,.45", "--vary", "population.outside=0,100,10000")
VARY = (*VARY, "--replicates", "2")
"""24 points: so many that a sweep writes several parts before it ends."""
FEW = ("tiny", "--vary", "mechanisms.sampling.sampling=.1,.45", "--vary", "population.outside=0,10000")
FEW = (*FEW, "--replicates", "3")
FEW_POINTS = 12
TWO = ("tiny", "--vary", "population.outside=0,10000")
SOURCE = Path(__file__).parents[2]
OFTEN = "import simulator.studies.sweep as sweep; sweep._FLUSH_S = .3; from simulator.cli import main; main()"
"""The command line, with a part of the results written in .3 s, not in 5 s: a sweep of some seconds has several."""


def command(*arguments):
    return [sys.executable, "-c", OFTEN, "sweep", *map(str, arguments)]


def sweep(*arguments, code=0, **options):
    done = subprocess.run(command(*arguments), capture_output=True, text=True, timeout=600, check=False, **options)
    assert done.returncode == code, done.stderr
    return done


@contextlib.contextmanager
def running(*arguments):
    process = subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def wait_until(true, what, timeout_s=300):
    end = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def parts_of(study):
    """Return how many parts of its results a sweep has written."""
    return len([*(study / "parts").glob("[0-9]*")])


def children(pid):
    """Return the processes that a process started, by the parent that each names."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[1]) == pid and b"spawn_main" in (path.parent / "cmdline").read_bytes():
                found.append(int(path.parent.name))
    return found


@pytest.fixture(scope="module")
def whole(once):
    return Study.load(once("sweep", lambda path: sweep(*VARY, "--out", path, "--workers", 1, "--quiet")))


@pytest.fixture(scope="module")
def few(once):
    return Study.load(once("sweep-few", lambda path: sweep(*FEW, "--out", path, "--workers", 1, "--quiet")))


def assert_same(path, whole):
    study = Study.load(path)
    assert study.missing == 0
    assert study.points["key"].is_unique
    for name in ("scores", "claims", "attacks"):
        assert_frame_equal(getattr(study, name), getattr(whole, name), check_exact=True)
    assert study.points["key"].tolist() == whole.points["key"].tolist()


@pytest.mark.parametrize("workers", [2, pytest.param(8, marks=pytest.mark.thorough)])
def test_values_do_not_depend_on_the_number_of_workers(tmp_path, few, workers):
    done = sweep(*FEW, "--out", tmp_path / "study", "--workers", workers)
    assert f"{FEW_POINTS} of {FEW_POINTS} points" in done.stdout
    assert_same(tmp_path / "study", few)


def test_an_interrupted_and_a_killed_sweep_go_on(tmp_path, whole):
    out = tmp_path / "study"
    more = (*VARY[:-1], "6")  # 72 points: a fast machine does not finish them before the second part is written
    for number, fatal in ((1, signal.SIGINT), (2, signal.SIGKILL)):
        with running(*more, "--out", out, "--workers", 2, "--quiet") as process:
            wait_until(lambda n=number: parts_of(out) >= n or process.poll() is not None, "no part")
            workers = children(process.pid)
            process.send_signal(fatal)
            process.wait(120)  # a busy machine takes its time
            assert process.returncode == (130 if fatal == signal.SIGINT else -signal.SIGKILL)
        # A worker ends with its parent, also where the parent could not tell it.
        wait_until(lambda w=workers: not any(Path(f"/proc/{pid}").exists() for pid in w), "workers are left over")
    assert 0 < len(Study.load(out).points) < 72
    sweep(*VARY, "--out", out, "--quiet")  # its 24 points are among them
    assert_same(out, whole)


def test_a_killed_worker_is_replaced_and_its_points_are_run_again(tmp_path, whole):
    out = tmp_path / "study"
    with running(*VARY, "--out", out, "--workers", 2) as process:
        wait_until(lambda: parts_of(out) or process.poll() is not None, "no part")
        os.kill(children(process.pid)[0], signal.SIGKILL)
        text, _ = process.communicate(timeout=600)
        assert process.returncode == 0, text
    assert_same(out, whole)


@pytest.mark.parametrize(
    ("variables", "index"), [({"SLURM_ARRAY_TASK_ID": "2"}, 2), ({"JOB_COMPLETION_INDEX": "0"}, 1)]
)
def test_an_array_job_names_its_shard(tmp_path, call_in_process, monkeypatch, variables, index):
    few = ("tiny", "--vary", "mechanisms.sampling.sampling=.1,.2,.3,.4", "--shard", "/2", "--workers", "0")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert call_in_process("sweep", *few, cwd=tmp_path).returncode == 0
    study = Study.load(tmp_path / "studies" / f"tiny-{index}-of-2")
    assert study.points["point"].tolist() == [2 * index - 1, 2 * index]


OWN = '''
import os
from dataclasses import dataclass
from mechanisms.local import NoPrivacy

@dataclass(frozen=True, kw_only=True)
class Own(NoPrivacy):
    """Exact reports, unless a value of 7 asks for trouble."""

    value: int = 1

    def toss(self, memory, *, rng):
        asked = self.value == 7 and memory.devices > 10  # a mechanism is tried with few devices before the run
        if asked and os.environ.get("TROUBLE") == "kill":
            os.kill(os.getpid(), 9)
        if asked and os.environ.get("TROUBLE") == "raise":
            raise ZeroDivisionError("trouble")
        return super().toss(memory, rng=rng)
'''


@pytest.mark.parametrize(
    ("trouble", "message"), [("kill", "its worker process was killed"), ("raise", "ZeroDivisionError: trouble")]
)
def test_one_point_that_fails_does_not_end_the_others(tmp_path, trouble, message):
    (tmp_path / "own_mechanism.py").write_text(OWN)
    arguments = ("tiny", "--set", "mechanisms=[{name='own', kind='own_mechanism:Own', value=1}]")
    arguments += ("--set", "population.answers=reports", "--vary", "mechanisms.own.value=5,6,7,8,9")
    arguments += ("--allow-plugins", "--workers", 2, "--out", "study")
    done = sweep(*arguments, code=1, cwd=tmp_path, env={**os.environ, "TROUBLE": trouble})
    assert re.search(rf"point 3 failed twice: .*{message}", re.sub(r"\s+", " ", done.stderr))
    study = Study.load(tmp_path / "study")
    assert study.points["mechanisms.own.value"].tolist() == [5, 6, 8, 9]
    assert study.failures["mechanisms.own.value"].tolist() == [7]
    assert message in study.failures["error"].iloc[0]
    sweep(*arguments, cwd=tmp_path, env={**os.environ, "TROUBLE": ""})  # runs point 3 alone
    assert Study.load(tmp_path / "study").missing == 0


def test_a_point_that_needs_too_much_memory_is_reported_and_the_others_are_kept(tmp_path):
    vary = ("tiny", "--set", "population.answers=reports", "--vary", "population.outside=10,1000000000000")
    done = sweep(*vary, "--workers", 2, "--out", tmp_path / "study", code=1)
    assert "memory needed to run this" in re.sub(r"\s+", " ", done.stderr)
    assert Study.load(tmp_path / "study").points["population.outside"].tolist() == [10]


@pytest.mark.skipif(sys.platform == "win32", reason="limits of processes are those of Unix")
def test_a_file_that_cannot_be_written_ends_the_sweep_and_what_is_finished_is_kept(tmp_path, whole):
    import resource

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (25_000, 25_000))  # bytes of one file: parts fit, and not all points

    done = subprocess.run(
        command(*VARY, "--out", tmp_path / "study", "--workers", 1, "--keep", "estimates"),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        preexec_fn=limited,
    )
    assert done.returncode == 2
    assert "file too large" in done.stderr
    assert "kept: the same command goes on" in done.stderr
    assert "Traceback" not in done.stderr
    sweep(*VARY, "--out", tmp_path / "study", "--keep", "estimates", "--quiet")
    assert_same(tmp_path / "study", whole)


def test_a_script_that_starts_workers_while_it_is_imported_is_told_so(tmp_path):
    (tmp_path / "script.py").write_text("import crowdveil as cv\ncv.sweep('tiny', {'traffic.vehicles': [5]})\n")
    done = subprocess.run(
        [sys.executable, "script.py"], capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False
    )
    assert done.returncode == 1
    assert 'a script must start them under if __name__ == "__main__":' in done.stderr


def _free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


HIDDEN = """
import sys
class Hidden:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in {"simulator", "scenarios", "mechanisms"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hidden())
"""


class Cluster:
    """A real scheduler and real workers, as processes on the loopback interface."""

    def __init__(self, folder):
        self.folder, self.address = folder, f"127.0.0.1:{_free_port()}"
        host, port = self.address.split(":")
        self.scheduler = self._start("scheduler", "--host", host, "--port", port, "--no-dashboard")
        self.workers = []

    def _start(self, *arguments, **options):
        log = (self.folder / f"{arguments[0]}.log").open("a")
        with log:
            return subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments], stdout=log, stderr=log, cwd=self.folder, **options
            )

    def add_worker(self, **options):
        arguments = ("worker", f"tcp://{self.address}", "--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1")
        self.workers.append(self._start(*arguments, **options))

    def close(self):
        for process in (*self.workers, self.scheduler):
            process.terminate()
        for process in (*self.workers, self.scheduler):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path)
    yield made
    made.close()


def test_a_dask_cluster_gives_the_same_values_also_if_a_worker_is_killed(tmp_path, whole, cluster):
    cluster.add_worker()
    cluster.add_worker()
    out = tmp_path / "study"
    with running(*VARY, "--out", out, "--scheduler", f"dask://{cluster.address}", "--quiet") as process:
        wait_until(lambda: parts_of(out) or process.poll() is not None, "no part")
        process.send_signal(signal.SIGINT)
        process.wait(60)
        assert process.returncode == 130
    with running(*VARY, "--out", out, "--scheduler", f"dask://{cluster.address}") as process:
        before = parts_of(out)
        wait_until(lambda: parts_of(out) > before or process.poll() is not None, "no further part")
        victims = children(cluster.workers[0].pid)
        for pid in victims:  # its nanny starts another
            os.kill(pid, signal.SIGKILL)
        text, _ = process.communicate(timeout=600)
        assert process.returncode == 0, text
    assert victims
    assert_same(out, whole)


def test_a_scheduler_that_is_not_there_or_is_lost_is_named(tmp_path, cluster):
    away = f"127.0.0.1:{_free_port()}"
    done = sweep(*VARY, "--out", tmp_path / "away", "--scheduler", f"dask://{away}", code=2)
    assert f"no Dask scheduler answers at tcp://{away}" in done.stderr
    cluster.add_worker()
    out = tmp_path / "study"
    with running(*VARY, "--out", out, "--scheduler", f"dask://{cluster.address}", "--quiet") as process:
        wait_until(lambda: parts_of(out) or process.poll() is not None, "no part")
        cluster.scheduler.kill()
        text, _ = process.communicate(timeout=120)
        assert process.returncode == 2, text
    assert "the connection to the cluster was lost" in text
    assert "Traceback" not in text
    assert len(Study.load(out).points) > 0


MILLIONS = ("run", "tiny", "--set", "population.answers=reports", "--set", "population.outside=2_200_000", "--quiet")
"""Three batches of each mechanism."""


def one_run(*arguments, code=0, **options):
    line = [sys.executable, "-m", "crowdveil", *map(str, arguments)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=600, check=False, **options)
    assert done.returncode == code, done.stderr
    return done


def test_one_run_has_the_same_tables_with_any_number_of_workers_and_on_a_cluster(tmp_path, cluster):
    cluster.add_worker()
    cluster.add_worker()
    places = {name: ("--workers", name) for name in ("1", "2", "8")}
    places |= {"here": (), "dask": ("--scheduler", f"dask://{cluster.address}")}
    for name, where in places.items():
        one_run(*MILLIONS, *where, "--out", tmp_path / name)
    tables = sorted(path.name for path in (tmp_path / "here").glob("*.parquet"))
    assert {"estimates.parquet", "rounds.parquet", "claims.parquet"} < {*tables}
    for name in places:
        assert sorted(path.name for path in (tmp_path / name).glob("*.parquet")) == tables
        for table in tables:
            found, expected = (pd.read_parquet(tmp_path / each / table) for each in (name, "here"))
            assert_frame_equal(found, expected, check_exact=True)


@pytest.mark.parametrize("where", ["processes", "cluster"])
def test_a_run_ends_with_one_message_if_a_worker_is_lost_again_and_again(tmp_path, cluster, where):
    (tmp_path / "own_mechanism.py").write_text(OWN)
    environment = {**os.environ, "TROUBLE": "kill", "PYTHONPATH": str(tmp_path)}
    workers = ("--workers", 2)
    if where == "cluster":
        cluster.add_worker(env=environment)
        workers = ("--scheduler", f"dask://{cluster.address}")
    arguments = ("run", "tiny", "--set", "mechanisms=[{name='own', kind='own_mechanism:Own', value=7}]", "--quiet")
    arguments += ("--set", "population.answers=reports", "--set", "population.outside=20000", "--allow-plugins")
    done = one_run(*arguments, *workers, "--out", "out", code=2, cwd=tmp_path, env=environment)
    message = "crowdveil: workers (--workers, --scheduler): a worker was lost, perhaps for lack of memory; no result is"
    assert done.stderr.strip().splitlines()[-1].startswith(message)
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_workers_without_the_package_are_named(tmp_path, cluster):
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "sitecustomize.py").write_text(HIDDEN)
    done = sweep(*VARY, "--out", tmp_path / "none", "--scheduler", f"dask://{cluster.address}", code=2)
    assert "no worker has connected" in done.stderr
    cluster.add_worker(env={**os.environ, "PYTHONPATH": str(tmp_path / "hidden")})
    done = sweep(*VARY, "--out", tmp_path / "study", "--scheduler", f"dask://{cluster.address}", code=2)
    assert re.search(r"the workers tcp://\S+ cannot import crowdveil .*install the same version there", done.stderr)


@pytest.mark.timeout(900)
def test_a_study_goes_on_without_a_worker_of_another_version_which_is_named(tmp_path, cluster):
    for name in ("simulator", "scenarios", "mechanisms"):
        shutil.copytree(SOURCE / name, tmp_path / "other" / name, ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "other" / "simulator" / "streams.py").open("a") as file:
        file.write("# another version")
    cluster.add_worker(env={**os.environ, "PYTHONPATH": str(tmp_path / "other")})
    named = r"the workers tcp://127\.0\.0\.1:\d+ have another version of crowdveil; install the same version there"
    done = sweep(*TWO, "--out", tmp_path / "none", "--scheduler", f"dask://{cluster.address}", code=2)
    assert re.search(named, done.stderr)
    assert not (tmp_path / "none" / "points.parquet").exists()
    cluster.add_worker()
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "sitecustomize.py").write_text(HIDDEN)
    cluster.add_worker(env={**os.environ, "PYTHONPATH": str(tmp_path / "hidden")})
    wait_until(lambda: (tmp_path / "worker.log").read_text().count("Registered to") == 3, "a worker is missing")
    done = sweep(*TWO, "--out", tmp_path / "study", "--scheduler", f"dask://{cluster.address}")
    assert len(re.findall(f"note: {named}", done.stderr)) == 1
    assert len(re.findall(r"note: the workers tcp://127\.0\.0\.1:\d+ cannot import crowdveil", done.stderr)) == 1
    assert len(Study.load(tmp_path / "study").points) == 2


def test_wrong_options_are_refused_before_anything_is_written(tmp_path, call_in_process):
    cases = [
        (("tiny", "--scheduler", "slurm"), "must be processes or dask://HOST:PORT; got 'slurm'"),
        (("tiny", "--shard", "4/3"), "must be I/N, whole numbers with I from 1 to N; got '4/3'"),
        (("tiny", "--shard", "/3"), "neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX is set"),
        (("tiny", "--workers", "-1"), "must be a whole number, at least 0; got -1"),
        (("tiny", "rivals"), "must be one scenario or one design"),
        (("--merge", "here"), "--merge needs the directory"),
        (("--merge", "here", "--out", "there"), "no study here"),
        (("tiny", "--vary", "traffic.vehicles=-5"), "traffic.vehicles: must be"),
    ]
    for arguments, message in cases:
        done = call_in_process("sweep", *arguments, cwd=tmp_path)
        assert done.returncode == 2
        assert message in done.stderr
        assert "Traceback" not in done.stderr
    assert [*tmp_path.iterdir()] == []


def test_the_trips_of_a_worker_are_cached_and_the_cache_changes_no_value(tmp_path, few):
    cache = tmp_path / "cache"
    environment = {**os.environ, "CROWDVEIL_CACHE": str(cache)}
    for name in ("first", "second"):  # the second finds all trips on disk
        sweep(*FEW, "--out", tmp_path / name, "--quiet", env=environment)
        assert_same(tmp_path / name, few)
        assert [path.name.partition("-")[0] for path in cache.iterdir()] == ["trips"] * 3
    for path in cache.iterdir():
        path.write_bytes(b"damaged")
    sweep(*FEW, "--out", tmp_path / "third", "--quiet", env=environment)
    assert_same(tmp_path / "third", few)
    assert isinstance(few.points["wall_s"], pd.Series)
