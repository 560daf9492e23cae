"""The cache of trips and plans: it runs no code, refuses folders of others, and builds damaged entries again."""

import dataclasses
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from mechanisms import planning
from mechanisms.planning import Plan, Planning, Target
from mechanisms.privacy.claim import Claim, ListedDelta
from simulator.experiment import build_cache
from simulator.experiment.build_cache import BuildCache, folder_fault
from simulator.experiment.run import run_scenario
from simulator.files.value_bytes import from_bytes, to_bytes

PLANS = {each.__name__: each for each in (Planning, Plan, Claim, ListedDelta, Target)}
FLIPPED_BITS = 200

root = pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="only root can give a folder away")
posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has no accounts of this kind")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of this process's cache."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(build_cache, "_of_process", lambda: BuildCache(folder))
    return folder


def estimates(seed=1):
    """Run `tiny` with the cache, as a point of a study does."""
    return run_scenario("tiny", seed=seed, cached=True).estimates


def parts_of(value):
    """The arrays and plain values that a value is made of, in order."""
    if dataclasses.is_dataclass(value):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    if isinstance(value, list | tuple):
        return [part for each in value for part in parts_of(each)]
    return [(value.dtype.str, value.tolist())] if isinstance(value, np.ndarray) else [repr(value)]


def entry_of_trips(folder):
    estimates()
    (path,) = folder.iterdir()
    held = from_bytes(path.read_bytes(), name=path.name, classes=build_cache.of_trips())
    return path, held[0], build_cache.of_trips()


def entry_of_plans(folder):
    found = planning.plan(Target(cells=4, population=400, epsilon=1.0), ["oue"])
    BuildCache(folder).get("plan", lambda: found, PLANS)
    return (
        folder / "plan",
        dataclasses.replace(found, plans=[dataclasses.replace(one, mechanism=None) for one in found.plans]),
        PLANS,
    )


@pytest.mark.parametrize("entry", [entry_of_trips, entry_of_plans])
def test_an_entry_with_any_flipped_bit_is_built_again_and_replaced(folder, entry):
    path, value, classes = entry(folder)
    whole, wanted, built = path.read_bytes(), parts_of(value), []

    def build():
        built.append(path.name)
        return value

    for bit in np.random.default_rng(5).choice(len(whole) * 8, FLIPPED_BITS, replace=False).tolist():
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        again = BuildCache(folder).get(path.name, build, classes)
        assert parts_of(again) == wanted
        assert from_bytes(path.read_bytes(), name=path.name, classes=classes)[0] is not None
    assert parts_of(BuildCache(folder).get(path.name, build, classes)) == wanted
    assert len(built) == FLIPPED_BITS


def test_a_run_with_damaged_entries_has_the_same_numbers(folder):
    wanted = estimates()
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    for damaged in (whole[:50], b"", whole[:-1] + bytes([whole[-1] ^ 1]), whole[:400] + b"9" + whole[401:]):
        path.write_bytes(damaged)
        assert estimates().equals(wanted)
        assert path.read_bytes() == whole
    other = estimates(seed=2)
    assert not other.equals(wanted)
    (second,) = {*folder.iterdir()} - {path}
    second.write_bytes(whole)  # a whole entry, of another seed
    assert estimates(seed=2).equals(other)


class Hostile:
    """An object that makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_no_entry_runs_code(folder, tmp_path):
    wanted = estimates()
    (path,) = folder.iterdir()
    path.write_bytes(pickle.dumps(Hostile(tmp_path / "ran")))
    assert estimates().equals(wanted)
    assert not (tmp_path / "ran").exists()
    with pytest.raises(TypeError, match="Hostile is none of"):
        to_bytes(Hostile(tmp_path / "ran"), name="x", classes={})
    with pytest.raises(TypeError, match="ndarray is none of"):
        to_bytes(np.array([Hostile(tmp_path / "ran")]), name="x", classes={})


@posix
def test_the_folder_is_made_for_its_owner_alone(folder):
    estimates()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert folder_fault(folder) == ""


@root
@pytest.mark.parametrize("linked", [False, True])
def test_a_folder_that_another_account_made_first_is_neither_read_nor_written(folder, tmp_path, linked):
    made = tmp_path / "theirs" if linked else folder
    made.mkdir()
    (made / "planted").write_bytes(b"x")
    if linked:
        folder.symlink_to(made)
        os.chown(folder, 65534, 65534, follow_symlinks=False)
    else:
        os.chown(made, 65534, 65534)
    estimates()
    assert [path.name for path in made.iterdir()] == ["planted"]
    assert "belongs to account 65534" in folder_fault(folder)


@posix
def test_a_folder_where_others_may_write_is_not_used(folder):
    folder.mkdir()
    folder.chmod(0o777)
    estimates()
    assert [*folder.iterdir()] == []
    assert f"the cache in {folder} (CROWDVEIL_CACHE) is not used: other accounts may write" in folder_fault(folder)
    folder.chmod(0o755)
    estimates()
    assert len([*folder.iterdir()]) == 1
