"""Checks the files of a data set against the manifest."""

import gzip
import hashlib
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, cast

from simulator.datasets.manifest import DataFile, DataSet, folder_of

State = Literal["ok", "missing", "differs", "unlisted"]
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class FileCheck:
    """One file, as found.

    Parameters
    ----------
    folder
        Its data set's.
    name
        Its name under the folder.
    state
        "ok"; "missing"; "differs" from the manifest, or cannot be read; "unlisted" in it.
    detail
        What was expected and found, or what to do; empty where nothing is to say.
    """

    folder: str
    name: str
    state: State
    detail: str = ""

    def __str__(self) -> str:
        """Say it on one line."""
        return f"{self.folder}/{self.name}: {self.state}{f', {self.detail}' if self.detail else ''}"


def check_data_set(known: DataSet, root: Path | None = None) -> list[FileCheck]:
    """Check every file of a data set, and find those that the manifest does not list.

    Parameters
    ----------
    known
        What the manifest says.
    root
        The folder of data sets; the one that CROWDVEIL_DATA names where it is None.

    Returns
    -------
    list of FileCheck
        The listed files in the manifest's order, then the unlisted ones by name.

    Raises
    ------
    DatasetError
        If there is no folder of data sets.
    """
    folder = folder_of(known.folder, root)
    checks = [check_file(known, file, folder) for file in known.files]
    listed = set(known.names)
    inside = sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []
    names = [path.relative_to(folder).as_posix() for path in inside]
    unlisted = [name for name in names if name not in listed and not any(part[0] == "." for part in name.split("/"))]
    detail = "" if known.files else "the manifest knows no checksum of this data set"
    return checks + [FileCheck(known.folder, name, "unlisted", detail) for name in unlisted]


def check_file(known: DataSet, file: DataFile, folder: Path) -> FileCheck:
    """Compare one file with the manifest.

    Parameters
    ----------
    known
        Its data set.
    file
        What the manifest says of it.
    folder
        Where the data set's files lie.

    Returns
    -------
    FileCheck
        What was found; it reads no more than the file should hold, so a gzip that unpacks to more ends early.
    """
    path = folder / file.name
    if not path.is_file():
        plain = path.with_name(path.name.removesuffix(".gz"))
        hint = "compress it with gzip" if file.compression == "gzip" and plain != path and plain.is_file() else ""
        return FileCheck(known.folder, file.name, "missing", f"but {plain.name} is there: {hint}" if hint else "")
    try:
        found, length = digest(path, compressed=file.compression == "gzip", at_most=file.bytes)
    except (OSError, EOFError, zlib.error) as error:
        said = " ".join(str(error).split())
        return FileCheck(known.folder, file.name, "differs", f"it cannot be read: {said}")
    if length > file.bytes:
        detail = f"expected {file.bytes:,} bytes of contents, found more"
    elif found != file.sha256:
        detail = f"expected sha256 {file.sha256} ({file.bytes:,} bytes), found {found} ({length:,} bytes)"
    else:
        return FileCheck(known.folder, file.name, "ok")
    return FileCheck(known.folder, file.name, "differs", detail)


def digest(path: Path, *, compressed: bool, at_most: int) -> tuple[str, int]:
    """Return sha256 and length of a file's contents.

    Parameters
    ----------
    path
        The file.
    compressed
        Whether to look inside its gzip.
    at_most
        Stop once more bytes than this were seen.

    Returns
    -------
    tuple
        The checksum in hexadecimal, and the bytes seen.

    Raises
    ------
    OSError, EOFError, zlib.error
        If it cannot be read, or is no whole gzip.
    """
    checksum = hashlib.sha256()
    length = 0
    with cast("BinaryIO", gzip.open(path, "rb")) if compressed else path.open("rb") as stream:
        while length <= at_most and (chunk := stream.read(_CHUNK_BYTES)):
            checksum.update(chunk)
            length += len(chunk)
    return checksum.hexdigest(), length
