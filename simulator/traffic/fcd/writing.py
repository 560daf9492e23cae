"""Writing: floating-car data in the formats of other tools."""

import gzip
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from simulator.traffic.fcd.samples import Samples

FILES: Mapping[str, str] = {"sumo": "fcd.xml.gz", "kepler": "trips.geojson", "parquet": "fcd.parquet"}
"""File by format."""

DIGITS = 8
"""Of degrees in text: about a millimetre."""

_BLOCK = 100_000


def write_samples(samples: Samples, directory: Path, *, formats: Sequence[str], epoch_s: int) -> None:
    """Write a file for each format into a directory.

    Parameters
    ----------
    samples
        Where vehicles were.
    directory
        Where `FILES` go.
    formats
        Keys of `FILES`.
    epoch_s
        For kepler.gl: second 0 of the run in seconds since 1970.
    """
    writers: Mapping[str, Callable[[Path], None]] = {
        "sumo": lambda file: write_sumo(samples, file),
        "kepler": lambda file: write_kepler(samples, file, epoch_s=epoch_s),
        "parquet": lambda file: samples.frame().to_parquet(file, index=False),
    }
    for name in formats:
        writers[name](directory / FILES[name])


def write_sumo(samples: Samples, file: Path) -> None:
    """Write as ``sumo --fcd-output --fcd-output.geo``; lanes are LINK_0, as this simulator knows no lanes."""
    bounds = np.searchsorted(samples.moment, np.arange(len(samples.moments_s) + 1))
    # No moment in the header, so that a run written twice gives the same bytes.
    with file.open("wb") as raw, gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed:
        text = io.TextIOWrapper(packed, encoding="utf-8", newline="\n")
        text.write(
            '<?xml version="1.0" encoding="UTF-8"?>\n<fcd-export xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
            'xsi:noNamespaceSchemaLocation="http://sumo.dlr.de/xsd/fcd_file.xsd">\n'
        )
        for moment, time_s in enumerate(samples.moments_s.tolist()):
            text.write(f'    <timestep time="{_seconds(time_s)}">\n')
            text.writelines(_vehicles(samples, slice(int(bounds[moment]), int(bounds[moment + 1]))))
            text.write("    </timestep>\n")
        text.write("</fcd-export>\n")
        text.flush()
        text.detach()


def write_kepler(samples: Samples, file: Path, *, epoch_s: int) -> None:
    """Write GeoJSON lines of [lon, lat, 0, seconds since 1970]: one a vehicle, another after each time it was gone.

    A vehicle that was seen once only, between two such times, has no line.
    """
    order = np.lexsort((samples.moment, samples.vehicle))
    vehicle, moment = samples.vehicle[order], samples.moment[order]
    breaks = np.flatnonzero((vehicle[1:] != vehicle[:-1]) | (moment[1:] != moment[:-1] + 1)) + 1
    starts = np.concatenate(([0], breaks)) if len(order) else np.empty(0, dtype=np.int64)
    ends = np.append(breaks, len(order)) if len(order) else starts
    stamps = epoch_s + np.rint(samples.moments_s[moment]).astype(np.int64)
    lon, lat = np.round(samples.lon[order], DIGITS), np.round(samples.lat[order], DIGITS)
    with file.open("w", encoding="utf-8", newline="\n") as text:
        text.write('{"type": "FeatureCollection", "features": [')
        first = True
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            if end - start < 2:
                continue
            mine = slice(start, end)
            points = [
                [x, y, 0, t]
                for x, y, t in zip(lon[mine].tolist(), lat[mine].tolist(), stamps[mine].tolist(), strict=True)
            ]
            feature = {
                "type": "Feature",
                "properties": {"vehicle": str(int(vehicle[start]))},
                "geometry": {"type": "LineString", "coordinates": points},
            }
            text.write(("\n" if first else ",\n") + json.dumps(feature))
            first = False
        text.write("\n]}\n")


def _vehicles(samples: Samples, rows: slice) -> Iterator[str]:
    columns = (
        samples.vehicle[rows].tolist(),
        samples.lon[rows].tolist(),
        samples.lat[rows].tolist(),
        samples.angle[rows].tolist(),
        samples.speed_mps[rows].tolist(),
        samples.link[rows].tolist(),
        np.nan_to_num(samples.along_m[rows]).tolist(),
    )
    for vehicle, lon, lat, angle, speed, link, along in zip(*columns, strict=True):
        lane = f' pos="{along:.2f}" lane="{link}_0"' if link >= 0 else ' pos="0.00" lane=""'
        yield (
            f'        <vehicle id="{vehicle}" x="{lon:.{DIGITS}f}" y="{lat:.{DIGITS}f}" angle="{angle:.2f}" '
            f'type="DEFAULT_VEHTYPE" speed="{speed:.2f}"{lane} slope="0.00"/>\n'
        )


def _seconds(time_s: float) -> str:
    """Write a moment as SUMO does, two decimals, and more only where it needs them."""
    short = f"{time_s:.2f}"
    return short if float(short) == time_s else repr(time_s)
