"""`crowdveil doctor`: what is installed, which extras work, and where data and caches are."""

import json
import math
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path
from typing import Any

import typer
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from simulator.cli.common import Json, print_json, print_rows
from simulator.files.extras import own_version

app = typer.Typer(add_completion=False)

NEEDED = ""
"""In place of the name of an extra: the packages that everything needs."""
NOT_LISTED = ("all", "dev")
"""Extras that only name others, or are for work on this project."""
IMPORT = """
import importlib, json, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except Exception as error:
        print(json.dumps([name, f"{type(error).__name__}: {error}"]))
"""


@app.command()
def doctor(*, as_json: Json = False) -> None:
    """Show what is installed, which extras work, and where data and caches are; exit code 1 if what is needed fails."""
    packages = _packages()
    faults = {extra: [each["fault"] for each in its if each["fault"]] for extra, its in packages.items()}
    found: dict[str, Any] = {
        "crowdveil": own_version(),
        "python": {"version": platform.python_version(), "executable": sys.executable, "system": platform.platform()},
        "packages": packages.pop(NEEDED),
        "extras": {
            extra: {"works": not faults[extra], "install": f"pip install 'crowdveil[{extra}]'", "packages": its}
            for extra, its in packages.items()
        },
        "problems": faults[NEEDED],
    }
    if not found["problems"]:  # else what follows cannot be imported
        found |= _places()
        found["problems"] += [found["compiled_code"]["fault"]] if found["compiled_code"]["fault"] else []
    if as_json:
        print_json(found)
    else:
        print_rows(_rows(found))
    raise typer.Exit(1 if found["problems"] else 0)


def _packages() -> dict[str, list[dict[str, Any]]]:
    """Return name, version and fault of the packages of each extra; a fault is None if the package can be imported."""
    own = distribution("crowdveil")
    every = [Requirement(text) for text in own.requires or ()]
    groups = {NEEDED: [one for one in every if one.marker is None or one.marker.evaluate({"extra": NEEDED})]}
    for extra in own.metadata.get_all("Provides-Extra") or ():
        if extra not in NOT_LISTED:
            others = [one for one in every if one not in groups[NEEDED]]
            groups[extra] = [one for one in others if one.marker is None or one.marker.evaluate({"extra": extra})]
    modules: dict[str, list[str]] = {}
    for module, names in packages_distributions().items():
        for name in names:
            modules.setdefault(canonicalize_name(name), []).append(module)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        checked = pool.map(lambda its: list(_check_packages(its, modules)), groups.values())
    return dict(zip(groups, checked, strict=True))


def _check_packages(its: Sequence[Requirement], modules: Mapping[str, list[str]]) -> Iterator[dict[str, Any]]:
    """Yield name, version and fault of packages, after they were imported in a process of their own."""
    versions: dict[str, str] = {}
    for one in its:
        try:
            versions[one.name] = distribution(one.name).version
        except PackageNotFoundError:
            continue
    own = {name: name.replace("-", "_") for name in versions}  # a package may have several modules
    of = {name: min(modules[canonicalize_name(name)], key=own[name].__ne__) for name in versions}
    process = [sys.executable, "-P", "-W", "ignore", "-c", IMPORT, *of.values()]
    done = subprocess.run(process, capture_output=True, text=True, check=False)  # noqa: S603 - Python itself
    refused = dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))
    for one in its:
        version, fault = versions.get(one.name), None
        if version is None:
            fault = f"{one.name} is not installed"
        elif not one.specifier.contains(version, prereleases=True):
            fault = f"{one.name} must be {one.specifier}; got {version}"
        elif of[one.name] in refused or done.returncode:
            why = refused.get(of[one.name], f"Python ends with code {done.returncode}")
            fault = f"{one.name} {version} cannot be imported: {why}"
        yield {"name": one.name, "version": version, "fault": fault}


def _places() -> dict[str, Any]:
    """Return where compiled code, data sets and caches are, and what the machine has."""
    from mechanisms.compiled import cache_folder  # noqa: PLC0415 - may not be installed
    from simulator.cli.data import describe_data_set  # noqa: PLC0415 - as above
    from simulator.cli.open import browser_name  # noqa: PLC0415 - as above
    from simulator.datasets.manifest import VARIABLE, read_manifest  # noqa: PLC0415 - as above
    from simulator.experiment.build_cache import default_folder  # noqa: PLC0415 - as above
    from simulator.files.available_memory import available_nbytes  # noqa: PLC0415 - as above
    from simulator.studies.workers import cores  # noqa: PLC0415 - as above

    try:
        compiled: dict[str, str | None] = {"folder": str(cache_folder()), "fault": None}
    except RuntimeError as error:  # numba found no folder that can be written
        compiled = {"folder": None, "fault": f"compiled code cannot be kept: {error}"}
    named = os.environ.get(VARIABLE)
    cache = default_folder()
    sizes = [path.stat().st_size for path in cache.iterdir() if path.is_file()] if cache.is_dir() else []
    keys = ("folder", "present", "files", "changed")
    sets = [{key: row[key] for key in keys} for row in map(describe_data_set, read_manifest())]
    return {
        "compiled_code": compiled,
        "data": {VARIABLE: named, "exists": bool(named) and Path(str(named)).is_dir(), "sets": sets},
        "cache": {"folder": str(cache), "files": len(sizes), "bytes": sum(sizes)},
        "cores": cores(),
        "available_memory_bytes": available if math.isfinite(available := available_nbytes()) else None,
        "browser": browser_name(),
    }


def _rows(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the names and texts that are printed."""
    python = found["python"]
    yield "crowdveil", f"{found['crowdveil']}, Python {python['version']} ({python['executable']}), {python['system']}"
    yield "packages", ", ".join(each["fault"] or f"{each['name']} {each['version']}" for each in found["packages"])
    for extra, its in found["extras"].items():
        words = ", ".join(each["fault"] or f"{each['name']} {each['version']}" for each in its["packages"])
        yield f"[{extra}]", f"works: {words}" if its["works"] else f"{words}; {its['install']}"
    if "data" in found:
        yield from _place_rows(found)
    for problem in found["problems"]:
        yield "PROBLEM", problem


def _place_rows(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    from simulator.datasets.manifest import VARIABLE  # noqa: PLC0415 - may not be installed
    from simulator.experiment.build_cache import VARIABLE as CACHE  # noqa: PLC0415 - as above
    from simulator.files.available_memory import in_words  # noqa: PLC0415 - as above

    yield "compiled", f"code is kept in {found['compiled_code']['folder'] or 'no folder'}"
    data, cache = found["data"], found["cache"]
    where = f"{VARIABLE} = {data[VARIABLE]}" if data[VARIABLE] else f"{VARIABLE} is not set"
    yield "data", where if data["exists"] or not data[VARIABLE] else f"{where}, and there is no such folder"
    for title, states in (("complete", (True,)), ("in part", (False,))):
        names = [one["folder"] for one in data["sets"] if one["present"] and (one["present"] == one["files"]) in states]
        yield "", f"{title}: {', '.join(names) or 'none'}"
    absent = [one["folder"] for one in data["sets"] if not one["present"]]
    yield "", f"absent: {', '.join(absent) or 'none'}"
    yield "cache", f"{cache['folder']} ({CACHE}), {cache['files']:,} files, {in_words(cache['bytes'])}"
    memory = found["available_memory_bytes"]
    yield "machine", f"{found['cores']} cores, {'unknown' if memory is None else in_words(memory)} memory available"
    yield "browser", found["browser"] or "none with a display: crowdveil open prints the path alone"
