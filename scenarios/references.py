"""References to files: relative to the scenario's folder, absolute, or ``data:FOLDER/FILE``."""

import os
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, ValidationInfo

from scenarios.faults import Fault, ScenarioError
from scenarios.manifest import data_set
from scenarios.section import rule

DATA_PREFIX = "data:"
DATA_VARIABLE = "CROWDVEIL_DATA"


class _NoSuchFileError(Exception):
    """Carries the rule a reference breaks."""


def locate(reference: str) -> Path:
    """Return the file a reference means.

    Parameters
    ----------
    reference
        A path, or ``data:FOLDER/FILE`` under the folder that ``CROWDVEIL_DATA`` names.

    Returns
    -------
    Path
        An existing file.

    Raises
    ------
    ScenarioError
        If there is no such file; for a ``data:`` reference the message says where it comes from.
    """
    try:
        return _find(reference, Path())
    except _NoSuchFileError as error:
        raise ScenarioError(reference, [Fault("", str(error), reference)]) from None


def _find(reference: str, folder: Path) -> Path:
    if reference.startswith(DATA_PREFIX):
        return _find_data(reference.removeprefix(DATA_PREFIX))
    path = folder / reference
    if not _is_file(path):
        raise _NoSuchFileError(f"there is no such file (looked for {path})")
    return path


def _find_data(inside: str) -> Path:
    parts = PurePosixPath(inside).parts
    if len(parts) < 2 or ".." in parts or parts[0] == "/":
        raise _NoSuchFileError("must have the form data:FOLDER/FILE")
    root = os.environ.get(DATA_VARIABLE)
    if not root:
        raise _NoSuchFileError(
            f"needs the file {inside}, and {DATA_VARIABLE}, which names the folder of data sets, is not set. "
            f"{_origin(parts)}"
        )
    path = Path(root, *parts)
    if not _is_file(path):
        raise _NoSuchFileError(f"there is no file {inside} under {DATA_VARIABLE} = {root}. {_origin(parts)}")
    return path


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name too long, or with a null character
        return False


def _origin(parts: tuple[str, ...]) -> str:
    known = data_set(parts[0])
    if known is None:
        return f"The manifest of data sets has no folder {parts[0]}."
    name = "/".join(parts[1:])
    unlisted = "" if name in known.files else f" The manifest lists no file {name} in it."
    return (
        f"It belongs to {known.folder}, {known.title}, from {known.owner_page} "
        f"(licence: {known.licence}).{unlisted} To get it: {known.obtain}"
    )


def _resolved(reference: str, info: ValidationInfo) -> str:
    folder = (info.context or {}).get("folder", Path())
    try:
        path = _find(reference, folder)
    except _NoSuchFileError as error:
        raise rule(str(error)) from None
    return reference if reference.startswith(DATA_PREFIX) else str(path.resolve())


FileReference = Annotated[str, AfterValidator(_resolved)]
"""A reference to a file that exists: made absolute, or ``data:FOLDER/FILE`` as it is."""
