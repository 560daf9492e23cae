"""Reading scenarios, shipped or the user's own, and writing them."""

import os
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w

from scenarios.faults import Fault, ScenarioError
from scenarios.overrides import apply_overrides
from scenarios.scenario import Scenario
from scenarios.validation import validate
from scenarios.wording import suggestion

_SHIPPED_FOLDER = Path(__file__).resolve().parent
_NOT_SCENARIOS = {"manifest.toml"}


class Shipped(NamedTuple):
    """A scenario that comes with the package."""

    name: str
    path: Path
    description: str


def shipped() -> list[Shipped]:
    """Return the scenarios that come with the package, by name; data they need may be absent."""
    return [
        Shipped(name, path, tomllib.loads(path.read_text(encoding="utf-8"))["scenario"].get("description", ""))
        for name, path in _shipped_files().items()
    ]


def load(reference: str | os.PathLike[str], *, overrides: Sequence[str] = (), seed: int | None = None) -> Scenario:
    """Read and check a scenario.

    Parameters
    ----------
    reference
        Name of a shipped scenario, or a TOML file.
    overrides
        Texts ``a.b=v`` laid over the file before it is checked; see `apply_overrides`.
    seed
        In place of the scenario's own.

    Returns
    -------
    Scenario
        The scenario, with references to files made absolute.

    Raises
    ------
    ScenarioError
        If anything is wrong with it, with every fault found.
    """
    source = os.fspath(reference)
    path = _file_of(reference)
    raw = _parsed(path, source)
    faults = apply_overrides(raw, overrides)
    if seed is not None and isinstance(raw.setdefault("scenario", {}), dict):
        raw["scenario"]["seed"] = seed
    outcome = validate(raw, path.parent)
    if isinstance(outcome, Scenario) and not faults:
        return outcome
    raise ScenarioError(source, [*faults, *(outcome if isinstance(outcome, list) else [])])


def source_text(reference: str | os.PathLike[str]) -> str:
    """Return the text of a scenario file, comments and all.

    Raises
    ------
    ScenarioError
        If there is no such scenario, or its file is not valid TOML.
    """
    path = _file_of(reference)
    _parsed(path, os.fspath(reference))
    return path.read_text(encoding="utf-8-sig")


def dump(scenario: Scenario) -> str:
    """Write a scenario as resolved.

    Returns
    -------
    str
        TOML with every default filled in. Read from anywhere, it gives an equal scenario.
    """
    tables = scenario.model_dump(by_alias=True, exclude_none=True)
    # A list of no tables would come first, as a key without a section.
    return tomli_w.dumps({key: value for key, value in tables.items() if value != ()})


def _shipped_files() -> dict[str, Path]:
    files = {path.stem: path for path in _SHIPPED_FOLDER.glob("*.toml") if path.name not in _NOT_SCENARIOS}
    return dict(sorted(files.items()))


def _file_of(reference: str | os.PathLike[str]) -> Path:
    path = Path(reference)
    names = _shipped_files()
    if isinstance(reference, str) and reference in names:
        return names[reference]
    if isinstance(reference, str) and path.suffix != ".toml" and len(path.parts) < 2 and not path.is_file():
        words = (
            f"no scenario of this name is shipped{suggestion(reference, list(names))}; there are "
            f"{', '.join(names)}; a file of your own ends in .toml"
        )
        raise ScenarioError(reference, [Fault("", words, reference)])
    return path


def _parsed(path: Path, source: str) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        fault = Fault("", "there is no such file", source)
    except OSError as error:
        fault = Fault("", f"the file cannot be read: {error.strerror}", source)
    except UnicodeDecodeError as error:
        fault = Fault("", f"the file is not UTF-8 text (byte {error.start})")
    except tomllib.TOMLDecodeError as error:
        fault = Fault("", f"the file is not valid TOML: {error}")
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, brackets without end
        fault = Fault("", f"the file cannot be parsed: {error}")
    raise ScenarioError(source, [fault])
