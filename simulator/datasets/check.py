"""Check of the files of a data set against the manifest."""

import gzip
import hashlib
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

from simulator.datasets.manifest import DataFile, DataSet, data_root, folder_of
from simulator.files.errors import InputError

State = Literal["ok", "missing", "differs", "unlisted"]
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class FileCheck:
    """The result of checking one file.

    Parameters
    ----------
    folder
        Folder of the data set.
    name
        Name of the file under the folder.
    state
        "ok"; "missing"; "differs" from the manifest, or cannot be read; "unlisted" in the manifest.
    detail
        What was expected and found, or what to do; may be empty.
    """

    folder: str
    name: str
    state: State
    detail: str = ""

    def __str__(self) -> str:
        """Write the result on one line."""
        return f"{self.folder}/{self.name}: {self.state}{f', {self.detail}' if self.detail else ''}"


def check_data_set(data_set: DataSet, root: Path | None = None) -> list[FileCheck]:
    """Check every file of a data set, and find those that the manifest does not list.

    Parameters
    ----------
    data_set
        The data set's entry in the manifest.
    root
        The folder of data sets; if None, the one that CROWDVEIL_DATA names.

    Returns
    -------
    list of FileCheck
        The listed files in the manifest's order, then the unlisted ones by name.

    Raises
    ------
    InputError
        If there is no folder of data sets.
    """
    folder = folder_of(data_set.folder, root)
    checks = [check_file(data_set, file, folder) for file in data_set.files]
    listed = set(data_set.names)
    inside = sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []
    names = [path.relative_to(folder).as_posix() for path in inside]
    unlisted = [name for name in names if name not in listed and not any(part[0] == "." for part in name.split("/"))]
    detail = "" if data_set.files else "the manifest lists no checksums for this data set"
    return checks + [FileCheck(data_set.folder, name, "unlisted", detail) for name in unlisted]


def check_file(data_set: DataSet, file: DataFile, folder: Path) -> FileCheck:
    """Compare one file with the manifest.

    Parameters
    ----------
    data_set
        The data set of the file.
    file
        The file's entry in the manifest.
    folder
        Folder of the data set's files.

    Returns
    -------
    FileCheck
        The result. Reading stops once the content is longer than the manifest states, which limits the decompression
        of a gzip file.
    """
    path = folder / file.name
    if not path.is_file():
        plain = path.with_name(path.name.removesuffix(".gz"))
        hint = "compress it with gzip" if file.compression == "gzip" and plain != path and plain.is_file() else ""
        return FileCheck(data_set.folder, file.name, "missing", f"but {plain.name} exists: {hint}" if hint else "")
    try:
        sha256, length = digest(path, compressed=file.compression == "gzip", at_most=file.bytes)
    except (OSError, EOFError, zlib.error) as error:
        reason = " ".join(str(error).split())
        return FileCheck(data_set.folder, file.name, "differs", f"it cannot be read: {reason}")
    if length > file.bytes:
        detail = f"expected {file.bytes:,} bytes of contents, found more"
    elif sha256 != file.sha256:
        detail = f"expected sha256 {file.sha256} ({file.bytes:,} bytes), found {sha256} ({length:,} bytes)"
    else:
        return FileCheck(data_set.folder, file.name, "ok")
    return FileCheck(data_set.folder, file.name, "differs", detail)


def digest(path: Path, *, compressed: bool, at_most: int) -> tuple[str, int]:
    """Return the sha256 checksum and the length of a file's contents.

    Parameters
    ----------
    path
        The file.
    compressed
        Whether the file is gzip, and the contents are the decompressed ones.
    at_most
        Number of bytes after which reading stops.

    Returns
    -------
    tuple
        The checksum in hexadecimal, and the number of bytes read.

    Raises
    ------
    OSError, EOFError, zlib.error
        If the file cannot be read, or is not a complete gzip file.
    """
    checksum = hashlib.sha256()
    length = 0
    with cast("BinaryIO", gzip.open(path, "rb")) if compressed else path.open("rb") as stream:
        while length <= at_most and (chunk := stream.read(_CHUNK_BYTES)):
            checksum.update(chunk)
            length += len(chunk)
    return checksum.hexdigest(), length


def describe_data_set(data_set: DataSet) -> dict[str, Any]:
    """Describe a data set and what of it is there, for `data list`."""
    try:
        root: Path | None = data_root()
    except InputError:
        root = None
    checks = check_data_set(data_set, root) if root is not None or data_set.folder == "samples" else []
    states = {file.name: "missing" for file in data_set.files} | {check.name: check.state for check in checks}
    count, files, fetchable = Counter(states.values()), len(data_set.files), len(data_set.fetchable)
    share = {files: "yes", 0: "no"}.get(fetchable, f"{fetchable} of {files}")
    return {
        "folder": data_set.folder,
        "title": data_set.title,
        "licence": data_set.licence,
        "owner_page": data_set.owner_page,
        "root": None if root is None else str(root),
        "files": files,
        "present": count["ok"],
        "changed": count["differs"],
        "absent": count["missing"],
        "fetchable": "shipped" if data_set.folder == "samples" else share,
        "states": {file.name: states[file.name] for file in data_set.files},
    }
