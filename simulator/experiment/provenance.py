"""Provenance: what a result was made with."""

import hashlib
import re
import resource
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from scenarios import Scenario, files_of
from scenarios.references import WITH_FILES, file_names

PACKAGES = ("geopandas", "networkx", "numba", "numpy", "pandas", "pyarrow", "pyproj", "scipy", "shapely", "simpy")


def own_version() -> str:
    """Return crowdveil's version, "unknown" where it is not installed."""
    try:
        return version("crowdveil")
    except PackageNotFoundError:
        return "unknown"


def package_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages whose numbers are in the result."""
    return {"python": sys.version.split()[0], **{name: version(name) for name in PACKAGES}}


def data_checksums(scenario: Scenario) -> dict[str, str]:
    """Return the sha256 of every data file a scenario names, by its reference; of a folder, of the files in it."""
    sections = [getattr(scenario, name) for name in WITH_FILES]
    return {reference: _sha256(path) for section in sections for reference, path in files_of(section)}


def without_paths(facts: dict[str, Any], scenario: Scenario) -> dict[str, Any]:
    """Return facts that name the files of a scenario without the absolute paths of the machine, keys included."""
    names = file_names((getattr(scenario, name) for name in WITH_FILES), scenario.folder.resolve())
    if not names:
        return facts
    longest_first = "|".join(re.escape(path) for path in sorted(names, key=len, reverse=True))
    path = re.compile(rf"(?<![\w.])(?:{longest_first})(?![\w-])")

    def named(value: Any) -> Any:
        if isinstance(value, str):
            return path.sub(lambda found: names[found[0]], value)
        if isinstance(value, Mapping):
            return {named(key): named(held) for key, held in value.items()}
        return [named(held) for held in value] if isinstance(value, tuple | list) else value

    return {key: named(value) for key, value in facts.items()}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def peak_memory_nbytes() -> int:
    """Return the most memory this process has held, bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)
