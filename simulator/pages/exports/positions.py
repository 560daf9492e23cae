"""Positions of vehicles that a run kept, read again, and written as trips for kepler.gl."""

from functools import partial
from pathlib import Path

import numpy as np

from simulator.files.atomic_write import export_file
from simulator.files.errors import InputError
from simulator.formats.recorded import read_trace
from simulator.results.run import RunResult
from simulator.traffic.fcd import FILES, Samples, write_kepler

HOW_TO_KEEP = "a run keeps them if its scenario has a section [fcd]: crowdveil run SCENARIO --set fcd.every_s=10"


def kept_positions(directory: Path, data: RunResult) -> Samples | None:
    """Read the positions that a run kept, in any format of its section `fcd`.

    Parameters
    ----------
    directory
        The run directory.
    data
        The run.

    Returns
    -------
    Samples
        With vehicles, moments, longitudes and latitudes alone; None if the run kept none.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    section = data.scenario.fcd
    files = [directory / FILES[name] for name in ("parquet", "sumo", "kepler")]
    file = next((file for file in files if file.is_file()), None)
    if section is None or file is None:
        return None
    table = read_trace(file).frame()
    begin_s = section.from_s + (section.epoch_s(data.record.clock) if file.name == FILES["kepler"] else 0)
    table["moment"] = np.rint((table["time_s"] - begin_s) / section.every_s).astype(np.int32)
    table["vehicle"] = table["vehicle"].astype(np.int32)
    moments_s = section.from_s + section.every_s * np.arange(table["moment"].max() + 1)
    return Samples(moments_s, table[["moment", "vehicle", "lon", "lat"]])


def write_trips(data: RunResult, directory: Path, file: Path, *, overwrite: bool) -> None:
    """Write the positions that a run kept as GeoJSON for kepler.gl's layer of trips.

    Parameters
    ----------
    data, directory
        The run and its directory.
    file
        The file to write.
    overwrite
        Whether an existing file is replaced.

    Raises
    ------
    InputError
        If the run kept no positions; or the file exists and may not be replaced, or cannot be written.
    """
    samples, section = kept_positions(directory, data), data.scenario.fcd
    if samples is None or section is None:
        raise InputError([f"{directory}: this run kept no positions of its {data.record.called[1]}; {HOW_TO_KEEP}"])
    credit = "; ".join(data.attributions)
    write = partial(write_kepler, samples, epoch_s=section.epoch_s(data.record.clock), attribution=credit)
    export_file(file, write, overwrite=overwrite)
