"""Provenance: versions, checksums and resources of a run."""

import hashlib
import os
import re
import sys
from collections.abc import Iterable, Mapping
from email.parser import HeaderParser
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scenarios import Scenario, files_of
from scenarios.references import WITH_FILES, file_names, is_outside


def package_versions(extras: Iterable[str] = ()) -> dict[str, str]:
    """Return the versions of all packages used in a run, so that it can be repeated.

    Parameters
    ----------
    extras
        Packages used in addition to those that every run needs.

    Returns
    -------
    versions
        Version of Python, then of crowdveil's requirements, of the extras and of their requirements in turn, by
        normalised name; "unknown" for modules that were not installed as a package.
    """
    return dict(_versions_with(frozenset(extras)))


@cache
def _versions_with(extras: frozenset[str]) -> dict[str, str]:
    versions: dict[str, str] = {}
    names = ["crowdveil", *sorted(extras)]
    while names:
        name = canonicalize_name(names.pop())
        if name in versions:
            continue
        try:
            installed = distribution(name)
        except PackageNotFoundError:
            versions[name] = "unknown"
            continue
        # `installed.metadata` also parses the description, which takes most of the time.
        headers = HeaderParser().parsestr(installed.read_text("METADATA") or installed.read_text("PKG-INFO") or "")
        versions[name] = headers["Version"]
        texts = headers.get_all("Requires-Dist") or ()
        needed = [Requirement(text) for text in texts if "extra ==" not in text]  # most are optional, and slow to parse
        names += [need.name for need in needed if need.marker is None or need.marker.evaluate({"extra": ""})]
    del versions["crowdveil"]
    return {"python": sys.version.split()[0], **dict(sorted(versions.items()))}


def data_checksums(scenario: Scenario, sections: Iterable[str] = WITH_FILES) -> dict[str, str]:
    """Return the sha256 of every data file that some sections of a scenario name; for a folder, of its files.

    Keys are the references. A file is read again only if its size or time of change differs.
    """
    files = [file for name in WITH_FILES if name in sections for file in files_of(getattr(scenario, name))]
    return {reference: _sha256(path, path.stat().st_size, path.stat().st_mtime_ns) for reference, path in files}


@cache
def source_sha256() -> str:
    """Return the sha256 of crowdveil's own source: the names and contents of all its Python files."""
    digest = hashlib.sha256()
    for package in ("mechanisms", "scenarios", "simulator"):
        root = Path(str(files(package)))
        for path in sorted(root.rglob("*.py")):
            content = path.read_bytes()
            digest.update(f"{package}/{path.relative_to(root).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def files_outside(scenario: Scenario, read_too: Iterable[Path] = ()) -> list[str]:
    """Return the files read that are neither in the scenario's folder nor in the data folder, links followed.

    Parameters
    ----------
    scenario
        The scenario, which names files.
    read_too
        Files that these files name.

    Returns
    -------
    list of str
        Paths relative to the scenario's folder, or absolute on another drive.
    """
    outside = [*scenario.files_outside(), *(path.resolve() for path in read_too if is_outside(path, scenario.folder))]
    folder = scenario.folder.resolve()
    same = [path.drive == folder.drive for path in outside]
    return list(dict.fromkeys(os.path.relpath(p, folder) if s else str(p) for p, s in zip(outside, same, strict=True)))


def without_paths(facts: dict[str, Any], scenario: Scenario) -> dict[str, Any]:
    """Return facts that name the files of a scenario without the absolute paths of the machine, keys included."""
    names = file_names((getattr(scenario, name) for name in WITH_FILES), scenario.folder.resolve())
    if not names:
        return facts
    longest_first = "|".join(re.escape(path) for path in sorted(names, key=len, reverse=True))
    path = re.compile(rf"(?<![\w.])(?:{longest_first})(?![\w-])")

    def named(value: Any) -> Any:
        if isinstance(value, str):
            return path.sub(lambda match: names[match[0]], value)
        if isinstance(value, Mapping):
            return {named(key): named(held) for key, held in value.items()}
        return [named(held) for held in value] if isinstance(value, tuple | list) else value

    return {key: named(value) for key, value in facts.items()}


@lru_cache(maxsize=1024)
def _sha256(path: Path, _size: int, _changed_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
