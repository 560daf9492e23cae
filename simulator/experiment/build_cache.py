"""Cache of what takes long to make, by content: cities in memory, trips with their routes and plans in a folder too."""

import hashlib
import json
import os
import stat
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import platformdirs

from scenarios import Scenario
from scenarios.kinds import is_capable
from scenarios.overrides import plain
from simulator.files.atomic_write import write_file
from simulator.files.extras import record_extra, recorded_extras
from simulator.files.value_bytes import Classes, from_bytes, to_bytes
from simulator.results.provenance import data_checksums, package_versions, source_sha256

VARIABLE = "CROWDVEIL_CACHE"
LARGEST_NBYTES = 2 * 10**9
"""Size of the folder above which its oldest files are removed, bytes."""
_KEPT = 4
"""Values kept in memory; a worker of a study builds one city and one set of trips at a time."""

Built = TypeVar("Built")


class _Entry(NamedTuple):
    """What was built, and the optional packages used for it, which a run records."""

    value: Any
    extras: frozenset[str]


class BuildCache:
    """Values by the content of what they are built from: the last few in memory, more in a folder.

    A file holds arrays, plain values and their digest, and no code. A file that cannot be read or written, or lacks its
    digest, is as good as none: its value is built again and replaces it.

    Parameters
    ----------
    folder
        Folder of the files, used only if it is this account's own (`folder_fault`); None to keep values in memory only.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    def get(self, name: str, build: Callable[[], Built], classes: Classes | None = None) -> Built:
        """Return the value of this name, built if it is neither in memory nor in the folder.

        Parameters
        ----------
        name
            Name of the value, made of all that it depends on.
        build
            Builds it.
        classes
            The classes that it is made of (`simulator.files.value_bytes`); None to keep it in memory only.
        """
        entry = self._entries.pop(name, None) or self._read(name, classes)
        if entry is None:
            with recorded_extras() as extras:
                value = build()
            entry = _Entry(value, frozenset(extras))
            self._write(name, entry, classes)
        self._entries[name] = entry
        while len(self._entries) > _KEPT:
            self._entries.popitem(last=False)
        for package in entry.extras:
            record_extra(package)
        built: Built = entry.value
        return built

    def _read(self, name: str, classes: Classes | None) -> _Entry | None:
        if self._folder is None or classes is None or folder_fault(self._folder):
            return None
        path = self._folder / name
        with suppress(OSError, ValueError):
            entry = _Entry(*from_bytes(path.read_bytes(), name=name, classes=classes))
            path.touch()
            return entry
        return None

    def _write(self, name: str, entry: _Entry, classes: Classes | None) -> None:
        if self._folder is None or classes is None:
            return
        with suppress(OSError, TypeError):  # what is made of other classes is not kept
            content = to_bytes(tuple(entry), name=name, classes=classes)
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if folder_fault(self._folder):
                return
            write_file(self._folder / name, lambda path: path.write_bytes(content), overwrite=True)
            files = sorted((path for path in self._folder.iterdir() if path.is_file()), key=lambda p: p.stat().st_mtime)
            excess = sum(path.stat().st_size for path in files) - LARGEST_NBYTES
            for path in files:
                if excess <= 0:
                    break
                excess -= path.stat().st_size
                path.unlink(missing_ok=True)


_current: ContextVar[BuildCache | None] = ContextVar("_current", default=None)


def default_folder() -> Path:
    """Return the folder that ``CROWDVEIL_CACHE`` names, or the system's folder for caches of the user."""
    return Path(os.environ.get(VARIABLE) or platformdirs.user_cache_dir("crowdveil", appauthor=False))


def folder_fault(folder: Path) -> str:
    """Return in words why a folder is not used as a cache: another account could write there; empty if it is used."""
    if not hasattr(os, "geteuid") or not os.path.lexists(folder):
        return ""
    found = (folder.lstat(), folder.stat()) if folder.exists() else (folder.lstat(),)
    if others := {each.st_uid for each in found} - {os.geteuid()}:
        why = f"it belongs to account {others.pop()}, and this is account {os.geteuid()}"
    elif not stat.S_ISDIR(found[-1].st_mode):
        why = "it is no folder"
    elif found[-1].st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        why = "other accounts may write there; chmod go-w mends it"
    else:
        return ""
    return f"the cache in {folder} ({VARIABLE}) is not used: {why}"


@cache
def _of_process() -> BuildCache:
    return BuildCache(default_folder())


@contextmanager
def using_cache() -> Iterator[None]:
    """Let the block take cities, trips and plans from the cache of this process."""
    token = _current.set(_of_process())
    try:
        yield
    finally:
        _current.reset(token)


def cached_city(scenario: Scenario, build: Callable[[], Built]) -> Built:
    """Return the city of a scenario, built or from the memory of the cache in use.

    It depends on the recording, if there is one, and where it has SUMO's roads, on the classes of the vehicles.
    """
    by_traffic = is_capable("engine", scenario.traffic.engine, "recorded") or scenario.roads.source == "sumo"
    return _cached("city", scenario, ("roads", "cells", "traffic") if by_traffic else ("roads", "cells"), build)


def cached_trips(scenario: Scenario, build: Callable[[], Built]) -> Built:
    """Return the trips and routes of a scenario, built or from the cache in use; they depend on the seed too.

    Where the trips have dates, they depend on the date and the time zone of the run.
    """
    heading = scenario.scenario
    when = (heading.duration_s, str(heading.start), str(heading.time_zone))
    return _cached("trips", scenario, ("roads", "traffic"), build, scenario.seed, *when, classes=of_trips())


@cache
def of_trips() -> Classes:
    """Return the classes that trips are made of; importing them takes a second, which a plan need not wait for."""
    from simulator.files.messages import Note  # noqa: PLC0415
    from simulator.traffic.demand.synthetic import Demand  # noqa: PLC0415
    from simulator.traffic.routes import Routes  # noqa: PLC0415
    from simulator.traffic.trips import Trips, VehicleClasses  # noqa: PLC0415

    return {each.__name__: each for each in (Demand, Trips, Routes, VehicleClasses, Note)}


def _cached(
    what: str,
    scenario: Scenario,
    sections: tuple[str, ...],
    build: Callable[[], Built],
    *more: float | str,
    classes: Classes | None = None,
) -> Built:
    tables = [plain(getattr(scenario, name)) for name in sections]
    return cached(what, [tables, more, data_checksums(scenario, sections)], build, classes)


def cached(what: str, content: object, build: Callable[[], Built], classes: Classes | None = None) -> Built:
    """Return what is built from some content, or take it from the cache in use; without one, it is built.

    Parameters
    ----------
    what
        What is built, in a word.
    content
        Everything that it depends on beside the versions of this package and those it uses, as JSON values.
    build
        Builds it.
    classes
        The classes that it is made of, as for `BuildCache.get`.
    """
    cache = _current.get()
    if cache is None:
        return build()
    key = json.dumps([what, content, _versions()], default=str)
    return cache.get(f"{what}-{hashlib.sha256(key.encode()).hexdigest()[:40]}", build, classes)


@cache
def _versions() -> dict[str, str]:
    return {**package_versions(), "source": source_sha256()}
