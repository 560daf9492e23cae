"""Manifest of data sets: files, owners, checksums and download, and the folder they are in."""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from scenarios.errors import suggestion
from scenarios.overrides import parse_toml
from scenarios.references import manifest_path, samples_path
from simulator.files.errors import InputError

_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


def _inside(name: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or str(path) != name or "\\" in name:
        raise ValueError("must be a path under the data set's folder, with / between its parts and no ..")
    return name


def _address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise ValueError("must be an https address")
    return url


Words = Annotated[str, Field(min_length=1)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
FileName = Annotated[str, Field(min_length=1), AfterValidator(_inside)]


def _check_distinct(names: list[str], rule: str) -> None:
    """Raise `ValueError` with the rule and the names that are repeated."""
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{rule}; repeated are {', '.join(twice)}")


class DataFile(BaseModel):
    """One file of a data set.

    Checksum and length are of the contents before the file is compressed after download. A file whose name ends in
    ``.gz`` with compression "none" is served in that form by its owner.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: FileName
    """Name under the data set's folder."""
    origin_path: Words
    """Path at the origin."""
    origin: Words | None = None
    """Origin of this file, if it differs from the data set's."""
    licence: Words | None = None
    """Licence of this file, if it differs from the data set's."""
    url: Annotated[str, AfterValidator(_address)] | None = None
    """Address from which the file is downloaded; None if it must be obtained by hand."""
    compression: Literal["gzip", "none"]
    """Whether the file is compressed after download."""
    conversion: Literal["rds_to_csv"] | None = None
    """Conversion after download, before compression."""
    origin_sha256: Sha256 | None = None
    """Checksum of the served file, if it is converted."""
    sha256: Sha256
    """Checksum of the contents."""
    bytes: Annotated[int, Field(gt=0)]
    """Length of the contents."""
    rows: Annotated[int, Field(ge=0)] | None = None
    """Number of rows without the header, or of the records that `about` names; None if the file has none."""
    format: Words | None = None
    """Row of the table in docs/reference/data.md on how to read the file; None if the file is for other programs."""
    about: Words
    """Description of the content."""

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.compression == "gzip" and not self.name.endswith(".gz"):
            raise ValueError('the name of a file that is compressed ("gzip") must end in .gz')
        if (self.conversion is None) != (self.origin_sha256 is None):
            raise ValueError("origin_sha256 is for files with a conversion, and needed there")
        return self


class DataSet(BaseModel):
    """One folder of files, with its licence."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    folder: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_]*$")]
    """Folder under the one that CROWDVEIL_DATA names."""
    title: Words
    """Short description."""
    owner_page: Literal["none"] | Annotated[str, AfterValidator(_address)]
    """Page on which the owner publishes the data set; "none" for one made for this project."""
    origin: Words
    """The exact version that was used here."""
    licence: Words
    """Licence of the data set."""
    citation: Words
    """Citation of the data set."""
    attribution: Words
    """Credit to put under a figure made with the data set."""
    obtain: Words
    """How to get the data set, step by step."""
    defects: Annotated[tuple[Words, ...], Field(strict=False, min_length=1)]
    """Known defects and pitfalls."""
    files: Annotated[tuple[DataFile, ...], Field(strict=False)] = ()
    """The files; empty for a data set whose files are not listed and not checked."""

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        _check_distinct(self.names, "a file must be listed only once")
        return self

    @property
    def fetchable(self) -> tuple[DataFile, ...]:
        """The files that have an address."""
        return tuple(file for file in self.files if file.url is not None)

    @property
    def how_to_obtain(self) -> str:
        """How to get the data set, on one line."""
        return " ".join(self.obtain.split())

    def file(self, name: str) -> DataFile:
        """Return the file of this name.

        Raises
        ------
        InputError
            If there is none; the message names the closest match.
        """
        if name not in self.names:
            raise InputError([f"{self.folder}: there is no file {name!r} in it{_known(name, self.names)}"])
        return self.files[self.names.index(name)]

    @property
    def names(self) -> list[str]:
        """Names of the files."""
        return [file.name for file in self.files]


class Manifest(BaseModel):
    """Every known data set."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    dataset: Annotated[tuple[DataSet, ...], Field(strict=False)]
    """The data sets, in the order of the file."""

    @model_validator(mode="after")
    def _folders_differ(self) -> Self:
        _check_distinct([data_set.folder for data_set in self.dataset], "a folder must be described only once")
        return self

    def __iter__(self) -> Iterator[DataSet]:  # type: ignore[override]  # iterates over data sets, not over fields
        """Iterate over the data sets."""
        return iter(self.dataset)

    def data_set(self, folder: str) -> DataSet:
        """Return the data set of this folder.

        Raises
        ------
        InputError
            If there is none; the message names the closest match.
        """
        folders = [data_set.folder for data_set in self.dataset]
        if folder not in folders:
            raise InputError([f"there is no data set {folder!r}{_known(folder, folders)}"])
        return self.dataset[folders.index(folder)]


def read_manifest(path: Path | None = None) -> Manifest:
    """Read and check a manifest.

    Parameters
    ----------
    path
        A TOML file; the project's own manifest if None.

    Returns
    -------
    Manifest
        The checked manifest.

    Raises
    ------
    InputError
        If the file is not a valid manifest; every fault is listed with its place.
    """
    path = manifest_path() if path is None else path
    try:
        return Manifest.model_validate(parse_toml(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        raise InputError(
            f"{path}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()
        ) from None
    except (OSError, ValueError) as error:
        raise InputError([f"{path}: cannot be read as a manifest: {error}"]) from None


def _known(name: str, names: list[str]) -> str:
    return suggestion(name, names) or f"; there are {', '.join(names) or 'none'}"


VARIABLE = "CROWDVEIL_DATA"
SAMPLES = "samples"


def data_root() -> Path:
    """Return the folder of data sets.

    Raises
    ------
    InputError
        If CROWDVEIL_DATA is not set, or names no folder.
    """
    if not (named := os.environ.get(VARIABLE)):
        raise InputError([f"{VARIABLE}, which names the folder of data sets, is not set"])
    root = Path(named)
    if not root.is_dir():
        raise InputError([f"{VARIABLE} must name a folder; there is none at {named}"])
    return root


def folder_of(data_set: str, root: Path | None = None) -> Path:
    """Return the folder of a data set's files; the samples are in the package.

    Parameters
    ----------
    data_set
        Name of the data set's folder.
    root
        The folder of data sets; if None, the one that CROWDVEIL_DATA names.

    Raises
    ------
    InputError
        If `root` is None, and CROWDVEIL_DATA is not set or names no folder.
    """
    if data_set == SAMPLES:
        return samples_path()
    return (data_root() if root is None else root) / data_set
