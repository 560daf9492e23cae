"""Manifest of data sets: content, owner and source of each file."""

import tomllib
from dataclasses import dataclass
from pathlib import Path


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
