"""Files and directories appear complete or not at all, and only leftovers of dead processes are removed."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from simulator.files import atomic_write
from simulator.files.atomic_write import publish, remove_leftovers, staging_directory, write_file

HOLDS = """
import sys, time
from pathlib import Path
from simulator.files.atomic_write import staging_directory
with staging_directory(Path(sys.argv[1])) as staging:
    (staging / "half").write_text("of a result")
    print(staging, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def writer(tmp_path):
    """Another process writing `tmp_path/run`, and its staging directory."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, tmp_path / "run"], stdout=subprocess.PIPE, text=True
    ) as process:
        yield process, tmp_path / process.stdout.readline().strip()
        process.kill()


def test_only_staging_directories_of_dead_processes_are_removed(writer, tmp_path):
    process, staging = writer
    with staging_directory(tmp_path / "other"):
        remove_leftovers(tmp_path)
        assert len(list(tmp_path.iterdir())) == 2, "both processes run"
    assert (staging / "half").is_file()
    process.kill()
    process.wait()
    remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_staging_directories_of_another_host_are_kept(writer, tmp_path):
    """Its lock may not be visible on this host, so even its unlocked directory is not removed."""
    process, staging = writer
    process.kill()
    process.wait()
    elsewhere = tmp_path / staging.name.replace(atomic_write._host(), "0123456789ab")
    staging.rename(elsewhere)
    for name in (".run.partial-abcdefgh", "run.partial-1", ".run.partial-0123456789ab"):  # not removed either
        (tmp_path / name).mkdir()
    remove_leftovers(tmp_path)
    assert len(list(tmp_path.iterdir())) == 4
    assert (elsewhere / "half").is_file()


def test_writing_works_without_file_locks_and_removes_nothing(writer, tmp_path, monkeypatch):
    process, staging = writer
    process.kill()
    process.wait()

    def refuse(*_):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    write_file(tmp_path / "page.html", lambda path: path.write_text("done"), overwrite=False)
    assert {path.name for path in tmp_path.iterdir()} == {"page.html", staging.name}


def test_interrupted_replacement_is_restored(tmp_path):
    """The state between two renames; if the name has been taken since, the next number is used."""
    for taken in (False, True):
        folder = tmp_path / str(taken)
        token = f"{atomic_write._host()}-0123456789abcdef"
        for name, version in ((".run.partial-", "new"), (".run.replaced-", "earlier")):
            (folder / f"{name}{token}").mkdir(parents=True)
            (folder / f"{name}{token}" / "run.json").write_text(version)
        if taken:
            (folder / "run").mkdir()
            (folder / "run" / "run.json").write_text("a third")
        remove_leftovers(folder)
        expected = {"run": "a third", "run-2": "earlier"} if taken else {"run": "earlier"}
        assert {path.name: (path / "run.json").read_text() for path in folder.iterdir()} == expected


@pytest.mark.parametrize("renameat2", [True, False])
def test_file_written_by_another_process_is_not_replaced(tmp_path, monkeypatch, renameat2):
    def refuse(*_):
        raise OSError(errno.EINVAL, "not on this file system")

    if not renameat2:
        monkeypatch.setattr(atomic_write, "_renameat2", refuse)
    place = tmp_path / "roads.gpkg"

    def fill(path):
        path.write_text("late")
        place.write_text("early")

    with pytest.raises(FileExistsError):
        write_file(place, fill, overwrite=False)
    assert place.read_text() == "early"
    write_file(place, fill, overwrite=True)
    assert place.read_text() == "late"
    write_file(tmp_path / "new", lambda path: path.write_text("new"), overwrite=False)
    assert {path.name for path in tmp_path.iterdir()} == {"roads.gpkg", "new"}


def test_device_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "page.html")
    with pytest.raises(FileExistsError, match="regular file"):
        write_file(tmp_path / "page.html", lambda path: path.write_text(""), overwrite=True)
    assert (tmp_path / "page.html").is_fifo()


def test_files_are_synced_before_exchange_and_removal(tmp_path, monkeypatch):
    """Checks the order of calls, since a test cannot cut the power."""
    calls = []

    def recorded(module, name):
        real = getattr(module, name)

        def call(first, *rest, **named):
            where = Path(f"/proc/self/fd/{first}").readlink() if name == "fsync" else str(first)
            calls.append((name, os.path.relpath(where, tmp_path).replace(str(staging.name), "STAGING")))
            return real(first, *rest, **named)

        monkeypatch.setattr(module, name, call)

    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "a").touch()
    with staging_directory(tmp_path / "run") as staging:
        (staging / "b").mkdir()
        (staging / "b" / "c").touch()
        for module, name in ((os, "fsync"), (atomic_write, "_renameat2"), (shutil, "rmtree")):
            recorded(module, name)
        publish(staging, tmp_path / "run", replace=True)
    assert calls[:5] == [
        ("fsync", "STAGING/b/c"),
        ("fsync", "STAGING/b"),
        ("fsync", "STAGING"),
        ("_renameat2", "STAGING"),
        ("fsync", "."),
    ]
    assert calls[-1] == ("rmtree", "STAGING")
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*"))] == ["run", "run/b", "run/b/c"]


def test_full_disk_error_names_the_target(tmp_path):
    """The message does not name the staging directory, which the user has never seen."""

    def fill(path):
        with path.open("w") as file:
            file.write("half")
        raise OSError(errno.ENOSPC, "as pyarrow words it")

    with pytest.raises(OSError, match=r"No space left on device: '.*/page\.html'$"):
        write_file(tmp_path / "page.html", fill, overwrite=False)
    assert list(tmp_path.iterdir()) == []
