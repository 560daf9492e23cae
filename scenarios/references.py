"""What a scenario may use: permissions, and files relative to its folder, absolute, or ``data:FOLDER/FILE``.

Tables and roads made in Python are kept as files in a temporary folder, from which a run reads them as any others. A
manifest states content, owner and source of each data set.
"""

import hashlib
import os
import shutil
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ValidationInfo

from scenarios.errors import Fault, ScenarioError
from scenarios.field_types import rule

ALLOW_VARIABLE = "CROWDVEIL_ALLOW_PLUGINS"
UNTRUSTED_VARIABLE = "CROWDVEIL_UNTRUSTED"
PLUGIN_REFUSAL = (
    "a class that a scenario names is imported only with permission: --allow-plugins "
    f"(Python: allow_plugins=True; environment: {ALLOW_VARIABLE}=1)"
)


@dataclass(frozen=True)
class Permissions:
    """Permissions of a scenario.

    Attributes
    ----------
    allow_plugins
        Import the classes that the scenario names as ``package.module:Class``.
    untrusted
        Refuse plug-ins, files outside the scenario's folder and ``CROWDVEIL_DATA``, and engine ``sumo``.
    """

    allow_plugins: bool = False
    untrusted: bool = False

    @classmethod
    def of(cls, source: str, *, allow_plugins: bool = False, untrusted: bool = False) -> "Permissions":
        """Return the permissions given, combined with the permissions of the environment variables.

        Parameters
        ----------
        source
            Name of the scenario, for the error message.
        allow_plugins, untrusted
            As given by the user; ``CROWDVEIL_ALLOW_PLUGINS=1`` and ``CROWDVEIL_UNTRUSTED=1`` have the same effect.

        Raises
        ------
        ScenarioError
            If `allow_plugins` is given together with `untrusted` or its environment variable.
        """
        untrusted = untrusted or os.environ.get(UNTRUSTED_VARIABLE, "0") not in {"", "0"}
        if allow_plugins and untrusted:
            rule = f"--allow-plugins and --untrusted (or {UNTRUSTED_VARIABLE}=1) contradict each other: give one"
            raise ScenarioError(source, [Fault("", rule)])
        allow_plugins = allow_plugins or os.environ.get(ALLOW_VARIABLE) == "1"
        return cls(allow_plugins and not untrusted, untrusted)


def trusted_only(reason: str) -> AfterValidator:
    """Return a validator that refuses a value if the scenario is untrusted; `reason` ends the message."""

    def check(value: str, info: ValidationInfo) -> str:
        if permissions_of(info).untrusted:
            raise rule(f"is refused with --untrusted ({UNTRUSTED_VARIABLE}=1): {reason}")
        return value

    return AfterValidator(check)


def permissions_of(info: ValidationInfo) -> Permissions:
    """Return the permissions of the scenario that is being validated."""
    permissions: Permissions = (info.context or {}).get("permissions", Permissions())
    return permissions


DATA_PREFIX = "data:"
DATA_VARIABLE = "CROWDVEIL_DATA"

WITH_FILES = ("roads", "cells", "traffic", "detectors", "counts")
"""Sections that may name files."""

Kind = Literal["file", "folder"]


class Reference(str):
    """A checked reference to a file or folder; the type distinguishes it from any other text of a section."""

    __slots__ = ()


_REFUSED = f"must not lead outside the scenario's folder and {DATA_VARIABLE}: it is refused with --untrusted"


class _NoSuchFileError(Exception):
    """Carries the rule that a reference breaks, and the source of the data set that it belongs to."""

    def __init__(self, rule: str, origin: str = "") -> None:
        self.words, self.origin = rule, origin
        super().__init__(f"{rule}. {origin}" if origin else rule)


def locate(reference: str, *kinds: Kind) -> Path:
    """Return the file, or the folder, that a reference points to.

    Parameters
    ----------
    reference
        A path, or ``data:FOLDER/FILE`` under the folder that ``CROWDVEIL_DATA`` names.
    *kinds
        "file" or "folder", or both in the order in which they are tried. Default: "file".

    Returns
    -------
    Path
        An existing file or folder.

    Raises
    ------
    ScenarioError
        If there is no such file; for a ``data:`` reference the message states where to get it.
    """
    try:
        return _find(reference, Path(), kinds or ("file",))
    except _NoSuchFileError as error:
        raise ScenarioError(reference, [Fault("", str(error), reference)]) from None


def files_of(value: Any) -> Iterator[tuple[str, Path]]:
    """Iterate over the files that a checked section names, at any depth; for a folder, the files directly in it.

    Parameters
    ----------
    value
        A section, or any value of a field of a section; text is used only if it is a checked reference.

    Yields
    ------
    tuple
        The reference and the file. A reference is an absolute path, or ``data:FOLDER/FILE`` unchanged.
    """
    if isinstance(value, Reference):
        path = locate(value, "folder", "file")
        if path.is_dir():
            yield from ((f"{value}/{inside.name}", inside) for inside in sorted(path.iterdir()) if inside.is_file())
        else:
            yield value, path
    elif isinstance(value, BaseModel):
        for _, held in value:
            yield from files_of(held)
    elif isinstance(value, tuple | list):
        for held in value:
            yield from files_of(held)


def is_outside(path: Path, folder: Path) -> bool:
    """Return whether a path is outside the scenario's folder, the data folder and the samples, by name or by link."""
    data = os.environ.get(DATA_VARIABLE)
    roots = [root.absolute() for root in (folder, samples_path(), *([Path(data)] if data else []))]
    if is_in_memory(path):
        return False
    real = [os.path.realpath(root) for root in roots]
    # The name is checked first: on Windows, merely accessing a network path logs on to its server.
    named = Path(os.path.normpath(path.absolute()))
    try:
        return not (
            any(named.is_relative_to(root) for root in (*map(os.path.normpath, roots), *real))
            and any(Path(os.path.realpath(path)).is_relative_to(root) for root in real)
        )
    except ValueError:  # a null character: there is no such file
        return False


def relative_to(value: Any, folder: Path) -> Any:
    """Return a dumped section with its absolute references made relative to `folder`, where they share a folder.

    Tables made in Python are copied to `folder` first.
    """
    if isinstance(value, dict):
        return {key: relative_to(held, folder) for key, held in value.items()}
    if isinstance(value, tuple | list):
        return [relative_to(held, folder) for held in value]
    path = Path(value) if isinstance(value, str) else None
    if path is not None and is_in_memory(path):
        return copy_beside(path, folder)
    if path is None or not path.is_absolute() or not path.exists() or path.parts[:2] != folder.parts[:2]:
        return value
    return os.path.relpath(path, folder)


def file_names(sections: Iterable[Any], folder: Path) -> dict[str, str]:
    """Return the names, for a report, of the files of checked sections and of their folders, by absolute path.

    A file is named by its reference if that is `data:…`. Otherwise it is named relative to `folder` if it is there,
    else by as many of its last path parts as make the name unique.
    """
    names: dict[str, str] = {}
    for reference, path in (file for section in sections for file in files_of(section)):
        if reference.startswith(DATA_PREFIX):
            name = reference
        elif path.is_relative_to(folder):
            name = str(path.relative_to(folder))
        else:
            tails = ("/".join(path.parts[-length:]) for length in range(1, len(path.parts) + 1))
            name = next(tail for tail in tails if tail not in names.values())
        names[str(path)] = name
    folders = {str(Path(path).parent): str(PurePosixPath(name).parent) for path, name in names.items()}
    folders.pop(folder.anchor, None)
    return {**folders, **names}


def _find(reference: str, folder: Path, kinds: Sequence[Kind], *, untrusted: bool = False) -> Path:
    """Return the file or folder that a reference points to, of the first kind that exists."""
    for what in kinds:
        try:
            return _find_kind(reference, folder, what, untrusted=untrusted)
        except _NoSuchFileError as error:
            missing = error
            if error.words == _REFUSED:
                break
    raise missing


def _find_kind(reference: str, folder: Path, what: Kind, *, untrusted: bool) -> Path:
    if reference.startswith(DATA_PREFIX):
        path = _find_data(reference.removeprefix(DATA_PREFIX), what)
    else:
        path = folder / reference
    if untrusted and is_outside(path, folder):
        raise _NoSuchFileError(_REFUSED)
    if not _is_there(path, what):
        raise _NoSuchFileError(f"there is no such {what} (looked for {path})")
    if untrusted and what == "folder" and any(is_outside(inside, folder) for inside in path.iterdir()):
        raise _NoSuchFileError(_REFUSED)
    return path


def _find_data(inside: str, what: Kind) -> Path:
    parts = PurePosixPath(inside).parts
    shortest = 2 if what == "file" else 1
    if len(parts) < shortest or ".." in Path(*parts).parts or Path(inside).anchor:
        raise _NoSuchFileError(f"must have the form data:FOLDER{'/FILE' if what == 'file' else ''}")
    if parts[0] == "samples" and _is_there(sample := samples_path().joinpath(*parts[1:]), what):
        return sample  # the samples come with the package
    if not (root := os.environ.get(DATA_VARIABLE)):
        rule = f"needs the {what} {inside}, and {DATA_VARIABLE}, which names the folder of data sets, is not set"
        raise _NoSuchFileError(rule, _origin(parts))
    path = Path(root, *parts)
    if not _is_there(path, what):
        raise _NoSuchFileError(f"there is no {what} {inside} under {DATA_VARIABLE} = {root}", _origin(parts))
    return path


def _is_there(path: Path, what: Kind) -> bool:
    try:
        return path.is_file() if what == "file" else path.is_dir()
    except (OSError, ValueError):  # a name too long, or with a null character
        return False


def _origin(parts: tuple[str, ...]) -> str:
    if (entry := data_set(parts[0])) is None:
        return f"The manifest of data sets has no folder {parts[0]}."
    name = "/".join(parts[1:])
    listed = any(file == name or file.startswith(f"{name}/") for file in entry.files)
    unlisted = "" if listed else f" The manifest lists no file {name} in it."
    return (
        f"It belongs to {entry.folder}, {entry.title}, from {entry.owner_page} "
        f"(licence: {entry.licence}).{unlisted} To get it: {entry.obtain}"
    )


def _existing(*kinds: Kind) -> AfterValidator:
    """Return a validator of references to files or folders that exist."""
    return AfterValidator(lambda reference, info: _resolved(reference, info, *kinds))


def _resolved(reference: str, info: ValidationInfo, *kinds: Kind) -> str:
    context = info.context or {}
    try:
        path = _find(reference, context.get("folder", Path()), kinds, untrusted=permissions_of(info).untrusted)
    except _NoSuchFileError as missing:
        if not context.get("files_exist", True):
            return Reference(reference)
        # Of several missing files of one data set, only the first message states where to get it.
        explained: set[str] = context.get("explained", set())
        text = missing.words if missing.origin in explained else str(missing)
        explained.add(missing.origin)
        raise rule(text) from None
    return Reference(reference if reference.startswith(DATA_PREFIX) else path.resolve())


FileReference = Annotated[str, _existing("file")]
"""A reference to an existing file: made absolute, or ``data:FOLDER/FILE`` unchanged."""

FileOrFolderReference = Annotated[str, _existing("folder", "file")]
"""A reference to an existing file or folder: made absolute, or ``data:…`` unchanged."""

FolderReference = Annotated[str, _existing("folder")]
"""A reference to an existing folder: made absolute, or ``data:FOLDER`` and paths under it unchanged."""


@dataclass(frozen=True)
class ManifestEntry:
    """One folder under ``CROWDVEIL_DATA``."""

    folder: str
    title: str
    owner_page: str
    licence: str
    attribution: str
    obtain: str
    files: tuple[str, ...]


def manifest_path() -> Path:
    """Return the path of the manifest: beside this module once installed, else in the repository's ``data`` folder."""
    return _shipped("manifest.toml")


def samples_path() -> Path:
    """Return the folder of the samples made for this project, to which ``data:samples`` refers."""
    return _shipped("samples")


def _shipped(name: str) -> Path:
    here = Path(__file__).resolve().parent
    packaged = here / name
    return packaged if packaged.exists() else here.parent / "data" / name


def data_set(folder: str) -> ManifestEntry | None:
    """Return the manifest's entry of `folder`, or ``None`` if it has none."""
    tables = tomllib.loads(manifest_path().read_text(encoding="utf-8")).get("dataset", [])
    for table in tables:
        if table["folder"] == folder:
            obtain = " ".join(table["obtain"].split())
            files = tuple(file["name"] for file in table.get("files", ()))
            texts = {key: table[key] for key in ("title", "owner_page", "licence", "attribution")}
            return ManifestEntry(folder=folder, **texts, obtain=obtain, files=files)
    return None


DATA = "data"
"""Folder beside a written scenario that holds the copies of its tables."""


@cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="crowdveil-", ignore_cleanup_errors=True)


def memory_folder() -> Path:
    """Return the folder of tables made in Python; it is removed when the process ends."""
    return Path(_temporary().name).resolve()


def is_in_memory(path: Path) -> bool:
    """Return whether a path is in the folder of tables made in Python."""
    return _temporary.cache_info().currsize > 0 and path.is_relative_to(memory_folder())


def is_table(value: object) -> bool:
    """Return whether a value is a table: a DataFrame, a GeoDataFrame or a GeoSeries."""
    return hasattr(value, "to_parquet") or hasattr(value, "total_bounds")


def store(table: Any) -> str:
    """Write a table to a Parquet file, without its index, and return the file's path; equal tables share a file.

    Raises
    ------
    ValueError
        If Parquet cannot hold the table, for example because a column has values of several types.
    """
    partial = memory_folder() / "partial.parquet"
    table = table if hasattr(table, "to_parquet") else table.to_frame("geometry")
    table.to_parquet(partial, index=False)
    name = hashlib.sha256(partial.read_bytes()).hexdigest()[:12]
    return str(partial.replace(memory_folder() / f"table-{name}.parquet"))


def new_folder(name: str) -> Path:
    """Return a new empty folder of this name for data that consist of several files."""
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=memory_folder()))


def copy_beside(path: Path, folder: Path) -> str:
    """Copy a file or folder of `memory_folder` to the folder `data` in `folder`, and return its path from there."""
    target = folder / DATA / path.relative_to(memory_folder())
    target.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        shutil.copytree(path, target, dirs_exist_ok=True)
    else:
        shutil.copyfile(path, target)
    return target.relative_to(folder).as_posix()
