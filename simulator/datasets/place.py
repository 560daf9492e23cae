"""Where data sets lie on this machine."""

import os
from pathlib import Path

from scenarios.manifest import samples_path
from simulator.datasets.errors import DatasetError

VARIABLE = "CROWDVEIL_DATA"
SAMPLES = "samples"


def data_root() -> Path:
    """Return the folder of data sets.

    Raises
    ------
    DatasetError
        If CROWDVEIL_DATA is not set, or names no folder.
    """
    named = os.environ.get(VARIABLE)
    if not named:
        raise DatasetError([f"{VARIABLE}, which names the folder of data sets, is not set"])
    root = Path(named)
    if not root.is_dir():
        raise DatasetError([f"{VARIABLE} must name a folder; there is none at {named}"])
    return root


def folder_of(data_set: str, root: Path | None = None) -> Path:
    """Return where the files of a data set belong; the samples lie with the package.

    Parameters
    ----------
    data_set
        Its folder's name.
    root
        The folder of data sets; the one that CROWDVEIL_DATA names where it is None.

    Raises
    ------
    DatasetError
        If `root` is None, and CROWDVEIL_DATA is not set or names no folder.
    """
    if data_set == SAMPLES:
        return samples_path()
    return (data_root() if root is None else root) / data_set
