"""Download of the files of a data set, complete and with the right checksum, or not at all."""

import gzip
import importlib
import os
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from simulator.datasets.check import FileCheck, check_file, digest
from simulator.datasets.manifest import DataFile, DataSet
from simulator.files.atomic_write import publish, staging_directory
from simulator.files.errors import InputError
from simulator.files.extras import import_extra

TIMEOUT_S = 30.0
_CHUNK_BYTES = 1 << 16
_CONVERTED_AT_MOST = 8  # maximum ratio of a served file's length to its contents' after conversion; R's are smaller

Progress = Callable[[int], None]


class UnreachableError(InputError):
    """A server that cannot be reached at all, so that requests for more of its files would fail as well."""


class _TooLongError(Exception):
    """A server sends more bytes than the file should have."""


def fetch_file(data_set: DataSet, file: DataFile, folder: Path, *, overwrite: bool, progress: Progress) -> FileCheck:
    """Download one file, unless it exists already.

    The file is downloaded to a staging folder, checked, converted, compressed, and finally moved into place.

    Parameters
    ----------
    data_set
        The data set of the file.
    file
        The file's entry in the manifest, with an address.
    folder
        Folder of the data set's files; created if necessary.
    overwrite
        Whether an existing file that differs is replaced; a file that matches the manifest is always kept.
    progress
        Function called with the number of bytes of each piece received.

    Returns
    -------
    FileCheck
        "ok" for a file that matches now, with the detail "kept" or "fetched"; "differs" for a differing file that was
        kept.

    Raises
    ------
    InputError
        If the file cannot be downloaded; `UnreachableError` if the server cannot be reached. No partial file is left.
    """
    before = check_file(data_set, file, folder)
    if before.state == "ok":
        return FileCheck(data_set.folder, file.name, "ok", "kept")
    if before.state == "differs" and not overwrite:
        return FileCheck(data_set.folder, file.name, "differs", f"kept; --overwrite replaces it; {before.detail}")
    target = folder / file.name
    try:
        with staging_directory(target) as staging:
            contents = _download(data_set, file, staging, progress)
            if file.conversion is not None:
                contents = _converted(data_set, file, contents)
            ready = _compressed(contents) if file.compression == "gzip" else contents
            ready.chmod(0o644)
            publish(ready, target, replace=overwrite)
    except OSError as error:
        raise InputError([f"{target}: cannot be written: {error.strerror or error}"]) from None
    return FileCheck(data_set.folder, file.name, "ok", "fetched")


def import_pooch() -> Any:
    """Import pooch, which downloads files.

    Raises
    ------
    InputError
        If it is not installed.
    """
    return import_extra("pooch", needed="fetching needs pooch", extra="data")


def server_of(url: str) -> str:
    """Return the host and port of an address."""
    return urlsplit(url).netloc


def _download(data_set: DataSet, file: DataFile, scratch: Path, progress: Progress) -> Path:
    """Download into `scratch` and check; every error of a server or the network is raised as one sentence."""
    pooch = import_pooch()
    import requests  # noqa: PLC0415  comes with it

    pooch.get_logger().setLevel("ERROR")  # it logs every file
    where = f"{data_set.folder}/{file.name}: {file.url}"
    expected = file.origin_sha256 or file.sha256
    at_most = file.bytes * (_CONVERTED_AT_MOST if file.conversion else 1)

    answered = False

    def get(url: str, output_file: Any, _: object) -> None:
        nonlocal answered
        with requests.get(url, timeout=TIMEOUT_S, stream=True) as response, Path(output_file).open("wb") as out:
            answered = True
            response.raise_for_status()
            length = 0
            for chunk in response.iter_content(chunk_size=_CHUNK_BYTES):
                length += len(chunk)
                if length > at_most:
                    raise _TooLongError
                out.write(chunk)
                progress(len(chunk))

    try:
        return Path(
            pooch.retrieve(file.url, known_hash=f"sha256:{expected}", fname="got", path=scratch, downloader=get)
        )
    except _TooLongError:
        raise InputError([f"{where} sends more than the {at_most:,} bytes that the file should have"]) from None
    except requests.exceptions.HTTPError as error:
        raise InputError([f"{where} answered {' '.join(str(error).split())}"]) from None
    except requests.exceptions.RequestException as error:
        if answered:
            raise InputError([f"the download from {where} was interrupted: {_root_of(error)}"]) from None
        raise UnreachableError([f"{where} cannot be reached: {_root_of(error)}"]) from None
    except ValueError as error:  # raised by pooch if the checksum differs
        if "hash" not in str(error).lower():
            raise
        raise InputError(
            [f"{where} is not the file that the manifest describes: its sha256 is not {expected}"]
        ) from None


def _root_of(error: BaseException) -> str:
    """Return the message of the first error in a chain of network errors, on one line."""
    while error.args and isinstance(error.args[0], BaseException):
        error = error.args[0]
    reason = getattr(error, "reason", None)
    return " ".join(str(_root_of(reason) if isinstance(reason, BaseException) else error).split())


def _converted(data_set: DataSet, file: DataFile, got: Path) -> Path:
    """Convert a table in R's format to CSV, and check it."""
    try:
        pyreadr = importlib.import_module("pyreadr")  # not in an extra: only one data set is served in R's format
    except ImportError:
        raise InputError(
            [f"{data_set.folder}/{file.name}: its owner serves R's format, which needs pyreadr: pip install pyreadr"]
        ) from None
    made = got.with_name("made")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about pyreadr's own calls of pandas
        pyreadr.read_r(os.fspath(got))[None].to_csv(made, index=False)
    sha256, length = digest(made, compressed=False, at_most=file.bytes)
    if sha256 != file.sha256:
        fault = (
            f"{data_set.folder}/{file.name}: converted, its sha256 should be {file.sha256} and is {sha256} "
            f"({length:,} bytes): other versions of pyreadr or pandas may write numbers differently"
        )
        raise InputError([fault])
    return made


def _compressed(contents: Path) -> Path:
    """Compress without a time or a name, so that the same contents give the same bytes."""
    packed = contents.with_name("packed")
    with (
        contents.open("rb") as plain,
        packed.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as out,
    ):
        shutil.copyfileobj(plain, out)
    return packed
