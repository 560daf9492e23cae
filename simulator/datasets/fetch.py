"""Downloads the files of a data set, complete and with the right checksum, or not at all."""

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
from simulator.datasets.errors import DatasetError
from simulator.datasets.manifest import DataFile, DataSet
from simulator.extras import import_extra
from simulator.files.atomic_write import publish, staging_directory

TIMEOUT_S = 30.0
_CHUNK_BYTES = 1 << 16
_CONVERTED_AT_MOST = 8  # times the length of the contents that a served file may have: R's files are smaller

Progress = Callable[[int], None]


class UnreachableError(DatasetError):
    """A server that cannot be reached at all, so that asking it for more files would be in vain."""


class _TooLongError(Exception):
    """A server sends more than the file has."""


def fetch_file(known: DataSet, file: DataFile, folder: Path, *, overwrite: bool, progress: Progress) -> FileCheck:
    """Get one file, unless it is there.

    It is downloaded to a folder of its own, checked, converted, compressed, and moved into place as the last thing.

    Parameters
    ----------
    known
        Its data set.
    file
        What the manifest says of it; it has an address.
    folder
        Where the data set's files belong; made if need be.
    overwrite
        Whether a file that is there but differs is replaced; one that is right is always kept.
    progress
        Told how many bytes came.

    Returns
    -------
    FileCheck
        "ok" for what is there now, its detail "kept" or "fetched"; "differs" for a file that was kept though it does.

    Raises
    ------
    DatasetError
        If it cannot be had; `UnreachableError` if the server cannot be reached. Nothing is left behind.
    """
    before = check_file(known, file, folder)
    if before.state == "ok":
        return FileCheck(known.folder, file.name, "ok", "kept")
    if before.state == "differs" and not overwrite:
        return FileCheck(known.folder, file.name, "differs", f"kept; --overwrite replaces it; {before.detail}")
    target = folder / file.name
    try:
        with staging_directory(target) as staging:
            contents = _download(known, file, staging, progress)
            if file.conversion is not None:
                contents = _converted(known, file, contents)
            ready = _compressed(contents) if file.compression == "gzip" else contents
            ready.chmod(0o644)
            publish(ready, target, replace=overwrite)
    except OSError as error:
        raise DatasetError([f"{target}: cannot be written: {error.strerror or error}"]) from None
    return FileCheck(known.folder, file.name, "ok", "fetched")


def server_of(url: str) -> str:
    """Return the host and port of an address."""
    return urlsplit(url).netloc


def _download(known: DataSet, file: DataFile, room: Path, progress: Progress) -> Path:
    """Fetch into `room` and check; whatever a server or a network does becomes one sentence."""
    pooch = import_extra("pooch", needed="fetching needs pooch", extra="data", error=DatasetError)
    import requests  # noqa: PLC0415  comes with it

    pooch.get_logger().setLevel("ERROR")  # it announces every file
    where = f"{known.folder}/{file.name}: {file.url}"
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
        return Path(pooch.retrieve(file.url, known_hash=f"sha256:{expected}", fname="got", path=room, downloader=get))
    except _TooLongError:
        raise DatasetError([f"{where} sends more than the {at_most:,} bytes that it should have"]) from None
    except requests.exceptions.HTTPError as error:
        raise DatasetError([f"{where} answered {' '.join(str(error).split())}"]) from None
    except requests.exceptions.RequestException as error:
        if answered:
            raise DatasetError([f"{where} broke off: {_root_of(error)}"]) from None
        raise UnreachableError([f"{where} cannot be reached: {_root_of(error)}"]) from None
    except ValueError as error:  # pooch: another checksum than it should have
        if "hash" not in str(error).lower():
            raise
        raise DatasetError(
            [f"{where} is not the file that the manifest describes: its sha256 is not {expected}"]
        ) from None


def _root_of(error: BaseException) -> str:
    """Return what a chain of network errors says at its start, on one line."""
    while error.args and isinstance(error.args[0], BaseException):
        error = error.args[0]
    reason = getattr(error, "reason", None)
    return " ".join(str(_root_of(reason) if isinstance(reason, BaseException) else error).split())


def _converted(known: DataSet, file: DataFile, got: Path) -> Path:
    """Write R's table as CSV, and check it."""
    try:
        pyreadr = importlib.import_module("pyreadr")  # no extra of ours: one data set is served in R's format
    except ImportError:
        raise DatasetError(
            [f"{known.folder}/{file.name}: its owner serves R's format, which needs pyreadr: pip install pyreadr"]
        ) from None
    made = got.with_name("made")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyreadr's pandas calls are its own affair
        pyreadr.read_r(os.fspath(got))[None].to_csv(made, index=False)
    found, length = digest(made, compressed=False, at_most=file.bytes)
    if found != file.sha256:
        fault = (
            f"{known.folder}/{file.name}: converted, its sha256 should be {file.sha256} and is {found} "
            f"({length:,} bytes): other versions of pyreadr or pandas may write numbers otherwise"
        )
        raise DatasetError([fault])
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
