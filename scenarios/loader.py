"""Loader and writer of scenarios, shipped or written by the user."""

import os
import re
import tomllib
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple

import tomli_w

from scenarios.errors import Fault, ScenarioError, suggestion
from scenarios.overrides import Overrides, parse_toml
from scenarios.references import WITH_FILES, Permissions, relative_to
from scenarios.scenario import Scenario

_SHIPPED_FOLDER = Path(__file__).resolve().parent
_TEMPLATE = _SHIPPED_FOLDER / "template.toml"
_SCHEMA = "schema.json"
"""The JSON Schema, which the first line of a scenario names for editors; `docs/reference_pages.py` writes it."""
_NOT_SCENARIOS = {"manifest.toml", _TEMPLATE.name}


class Shipped(NamedTuple):
    """A scenario that comes with the package."""

    name: str
    path: Path
    description: str


def shipped() -> list[Shipped]:
    """Return the scenarios that come with the package, sorted by name; data that they need may be absent."""
    return [
        Shipped(name, path, tomllib.loads(path.read_text(encoding="utf-8"))["scenario"].get("description", ""))
        for name, path in _shipped_files().items()
    ]


def load(
    reference: str | os.PathLike[str] | Scenario,
    *,
    overrides: Overrides = (),
    seed: int | None = None,
    allow_plugins: bool = False,
    untrusted: bool = False,
    files_exist: bool = True,
) -> Scenario:
    """Read and check a scenario.

    Parameters
    ----------
    reference
        Name of a shipped scenario, a TOML file, or a scenario already read.
    overrides
        Texts ``a.b=v``, or a mapping ``{"a.b": v}``, applied to the file before it is checked; see `apply_overrides`.
        Applied to a scenario already read, they give the same result as applied to its file.
    seed
        Seed in place of the scenario's own.
    allow_plugins
        Permit a run to import the classes the scenario names; reading it imports none.
    untrusted
        Refuse files outside the scenario's folder and ``CROWDVEIL_DATA``, engine ``sumo``, and, in a run, plug-ins.
        Both permissions are kept with the scenario; see `Permissions` for the environment variables.
    files_exist
        Whether a file that the scenario names must exist; False for scenarios that are not run.

    Returns
    -------
    Scenario
        The scenario, with references to files made absolute.

    Raises
    ------
    ScenarioError
        If the scenario has a fault; the error carries every fault found.
    TypeError
        If `reference` or `overrides` is of another type.
    """
    if isinstance(reference, Scenario):
        source, raw, folder = reference.name, reference.tables(), reference.folder
        allow_plugins |= reference.permissions.allow_plugins and not untrusted
        untrusted |= reference.permissions.untrusted
    else:
        path = _file_of(reference)
        source, folder = os.fspath(reference), path.parent
        raw = _parsed(path, source)
    permissions = Permissions.of(source, allow_plugins=allow_plugins, untrusted=untrusted)
    return Scenario.from_tables(
        raw, folder, overrides, source=source, seed=seed, permissions=permissions, files_exist=files_exist
    )


def source_text(reference: str | os.PathLike[str]) -> str:
    """Return the text of a scenario file, comments included.

    Raises
    ------
    ScenarioError
        If there is no such scenario, or its file is not valid TOML.
    """
    path = _file_of(reference)
    _parsed(path, os.fspath(reference))
    return path.read_text(encoding="utf-8-sig")


def template() -> dict[str, Any]:
    """Return the tables of the scenario to start from that `write_template` writes."""
    return tomllib.loads(_TEMPLATE.read_text(encoding="utf-8"))


def write_template(path: Path) -> None:
    """Write a commented scenario to start from, named after its file.

    Raises
    ------
    ScenarioError
        If the name does not end in ``.toml``, its folder does not exist, or the file exists already.
    """
    if path.suffix != ".toml":
        raise ScenarioError(str(path), [Fault("", "the name of the file must end in .toml", str(path))])
    if not path.parent.is_dir():
        raise ScenarioError(str(path), [Fault("", "there is no such folder to write it to", str(path.parent))])
    name = re.sub(r"[^A-Za-z0-9._-]", "-", path.stem).lstrip("-.") or "my-city"
    text = _TEMPLATE.read_text(encoding="utf-8").replace('"my-city"', f'"{name}"', 1)
    text = text.replace(_SCHEMA, (_SHIPPED_FOLDER / _SCHEMA).as_uri(), 1)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ScenarioError(str(path), [Fault("", "the file exists already; name another", str(path))]) from None
    except OSError as error:
        if error.filename is not None:
            raise
        path.unlink()  # the file was created, but could not be written
        raise OSError(error.errno, error.strerror, str(path)) from error


def dump(scenario: Scenario, *, folder: Path | None = None) -> str:
    """Return the TOML text of a resolved scenario.

    Parameters
    ----------
    folder
        Folder where the text will be stored. Files are named relative to it, except those that share no folder with
        it; tables and roads made in Python are copied to the folder ``data`` in it.

    Returns
    -------
    str
        TOML with every default filled in. Read from anywhere (with `folder`: from there), it gives an equal scenario.
    """
    tables = scenario.model_dump(by_alias=True, exclude_none=True)
    if folder is not None:
        tables |= {name: relative_to(tables[name], folder.resolve()) for name in WITH_FILES if tables.get(name)}
    # tomli_w would write an empty list of tables first, as a key outside every section.
    return tomli_w.dumps({key: value for key, value in tables.items() if value != ()})


def _shipped_files() -> dict[str, Path]:
    files = {path.stem: path for path in _SHIPPED_FOLDER.glob("*.toml") if path.name not in _NOT_SCENARIOS}
    return dict(sorted(files.items()))


def _file_of(reference: str | os.PathLike[str]) -> Path:
    if not isinstance(reference, str | os.PathLike):
        raise TypeError(
            "scenario must be a shipped name, the path of a file, or a Scenario (Scenario.model_validate makes one of "
            f"tables), got {type(reference).__name__}: {shorten(repr(reference), 80, placeholder=' …')}"
        )
    if isinstance(reference, str) and _is_text(reference):
        fault = "must be a shipped name or the path of a file, and this is the text of a scenario"
        raise ScenarioError(shorten(reference, 80, placeholder=" …"), [Fault("", fault)])
    path = Path(reference)
    names = _shipped_files()
    if isinstance(reference, str) and reference in names:
        return names[reference]
    if isinstance(reference, str) and path.suffix != ".toml" and len(path.parts) < 2 and not path.is_file():
        fault = (
            f"no scenario of this name is shipped{suggestion(reference, list(names))}; there are "
            f"{', '.join(names)}; a file of your own ends in .toml"
        )
        raise ScenarioError(reference, [Fault("", fault, reference)])
    return path


def _is_text(reference: str) -> bool:
    """Return whether a reference is the content of a scenario file rather than the name of one."""
    try:
        return "\n" in reference or bool(tomllib.loads(reference))
    except (ValueError, RecursionError):
        return False


def _parsed(path: Path, source: str) -> dict[str, Any]:
    try:
        return parse_toml(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        fault = Fault("", "there is no such file", source)
    except OSError as error:
        fault = Fault("", f"the file cannot be read: {error.strerror}", source)
    except UnicodeDecodeError as error:
        fault = Fault("", f"the file is not UTF-8 text (byte {error.start})")
    except tomllib.TOMLDecodeError as error:
        fault = Fault("", f"the file is not valid TOML: {error}")
    except ValueError as error:  # numbers of thousands of digits, very deeply nested tables
        fault = Fault("", f"the file cannot be parsed: {error}")
    raise ScenarioError(source, [fault])
