"""Provenance: what a result was made with."""

import hashlib
import resource
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from scenarios import Scenario, files_of

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
    sections = (scenario.roads, scenario.cells, scenario.traffic)
    return {reference: _sha256(path) for section in sections for reference, path in files_of(section)}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def peak_memory_nbytes() -> int:
    """Return the most memory this process has held, bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)
