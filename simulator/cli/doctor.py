"""`crowdveil doctor`: what is installed, which extras work, and where data and caches are."""

import json
import math
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path
from typing import Any

import typer
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from crowdveil import obstacle
from simulator.cli.common import print_json, print_rows
from simulator.cli.options import Json
from simulator.files.extras import own_version

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


def doctor(*, as_json: Json = False) -> None:
    """Show what is installed, which extras work, and where data and caches are; exit code 1 if what is needed fails."""
    packages = _packages()
    needed = packages.pop(NEEDED)
    hidden = obstacle(str(Path.cwd()))  # `crowdveil` does not search this folder, but Python does
    problems = [*(each["fault"] for each in needed if each["fault"]), *filter(None, [hidden])]
    report: dict[str, Any] = {
        "crowdveil": own_version(),
        "python": f"{platform.python_version()}, {sys.executable}",
        "system": platform.platform(),
        "packages": needed,
        "extras": {
            extra: {
                "works": not any(each["fault"] for each in its),
                "install": f"pip install 'crowdveil[{extra}]'",
                "packages": its,
            }
            for extra, its in packages.items()
        },
    }
    rows = [(key, report[key]) for key in ("crowdveil", "python", "system")] + [("packages", _words(needed))]
    for extra, its in report["extras"].items():
        text = _words(its["packages"])
        rows.append((f"[{extra}]", f"works: {text}" if its["works"] else f"{text}; {its['install']}"))
    if problems in ([], [hidden]):  # else what follows cannot be imported
        for key, value, text in _places():
            report[key] = value
            rows.append((key, text))
    if as_json:
        print_json({**report, "problems": problems})
    else:
        print_rows([*rows, *(("PROBLEM", problem) for problem in problems)])
    raise typer.Exit(1 if problems else 0)


def _words(packages: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(each["fault"] or f"{each['name']} {each['version']}" for each in packages)


def _packages() -> dict[str, list[dict[str, Any]]]:
    """Return name, version and fault of the packages of each extra; a fault is None if the package can be imported."""
    crowdveil = distribution("crowdveil")
    every = [Requirement(text) for text in crowdveil.requires or ()]
    groups = {NEEDED: _required(NEEDED, every)}
    for extra in crowdveil.metadata.get_all("Provides-Extra") or ():
        if extra not in NOT_LISTED:
            groups[extra] = _required(extra, [each for each in every if each not in groups[NEEDED]])
    modules: dict[str, list[str]] = {}
    for module, names in packages_distributions().items():
        for name in names:
            modules.setdefault(canonicalize_name(name), []).append(module)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        checked = pool.map(lambda its: list(_check_packages(its, modules)), groups.values())
    return dict(zip(groups, checked, strict=True))


def _required(extra: str, requirements: Sequence[Requirement]) -> list[Requirement]:
    return [each for each in requirements if each.marker is None or each.marker.evaluate({"extra": extra})]


def _check_packages(its: Sequence[Requirement], modules: Mapping[str, list[str]]) -> Iterator[dict[str, Any]]:
    """Yield name, version and fault of packages, after they were imported in a process of their own."""
    versions: dict[str, str] = {}
    for requirement in its:
        try:
            versions[requirement.name] = distribution(requirement.name).version
        except PackageNotFoundError:
            continue
    usual = {name: name.replace("-", "_") for name in versions}  # a package may have several modules
    of = {name: min(modules.get(canonicalize_name(name), [usual[name]]), key=usual[name].__ne__) for name in versions}
    process = [sys.executable, "-P", "-W", "ignore", "-c", IMPORT, *of.values()]
    done = subprocess.run(process, capture_output=True, text=True, check=False)  # noqa: S603 - Python itself
    refused = dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))
    for requirement in its:
        version, fault = versions.get(requirement.name), None
        if version is None:
            fault = f"{requirement.name} is not installed"
        elif not requirement.specifier.contains(version, prereleases=True):
            fault = f"{requirement.name} must be {requirement.specifier}; got {version}"
        elif of[requirement.name] in refused or done.returncode:
            why = refused.get(of[requirement.name], f"Python ends with code {done.returncode}")
            fault = f"{requirement.name} {version} cannot be imported: {why}"
        yield {"name": requirement.name, "version": version, "fault": fault}


def _places() -> Iterator[tuple[str, Any, str]]:
    """Yield name, value and text of where compiled code, data sets and caches are, and of what the machine has."""
    from mechanisms.compiled import cache_folder  # noqa: PLC0415 - may not be installed
    from simulator.cli.finished_runs import browser_name  # noqa: PLC0415 - as above
    from simulator.datasets.check import describe_data_set  # noqa: PLC0415 - as above
    from simulator.datasets.manifest import VARIABLE, read_manifest  # noqa: PLC0415 - as above
    from simulator.experiment import build_cache  # noqa: PLC0415 - as above
    from simulator.files.available_memory import available_nbytes, in_words  # noqa: PLC0415 - as above
    from simulator.studies.workers import cores  # noqa: PLC0415 - as above

    folder = cache_folder()
    alone = "each process compiles the code, since no folder can be written; NUMBA_CACHE_DIR may name one"
    yield "compiled", folder and str(folder), f"code is kept in {folder}" if folder else alone
    named = os.environ.get(VARIABLE)
    exists = named is not None and Path(named).is_dir()
    where = f"{named or 'not set'}{'' if exists or not named else ', and there is no such folder'}"
    yield VARIABLE, {"folder": named, "exists": exists}, where
    sets = {
        row["folder"]: {"present": row["present"], "files": row["files"]}
        for row in map(describe_data_set, read_manifest())
    }
    texts = [f"{name} {counts['present']}/{counts['files']}" for name, counts in sets.items() if counts["files"]]
    yield "data", sets, f"files present: {', '.join(texts)}"
    cache = build_cache.default_folder()
    fault = build_cache.folder_fault(cache)
    sizes: list[int] = []
    with suppress(OSError):  # there is none, or it is another user's
        sizes = [] if fault else [path.stat().st_size for path in cache.iterdir() if path.is_file()]
    value = {"folder": str(cache), "files": len(sizes), "bytes": sum(sizes)}
    words = f"{cache} ({build_cache.VARIABLE}), {len(sizes):,} files, {in_words(sum(sizes))}"
    yield "cache", value, fault or words
    yield "cores", cores(), f"{cores()}"
    memory = available_nbytes()
    yield "memory", memory if math.isfinite(memory) else None, f"{in_words(memory)} available"
    yield "browser", browser_name(), browser_name() or "none with a display: crowdveil open prints the path alone"
