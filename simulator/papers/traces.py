"""Traces on data at hand: recovered from published counts, unique by a few points, and sets of home and work."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mechanisms.inference.traces import SCORES, recover_traces, still_traces, trace_scores, unique_share
from simulator.files.errors import InputError
from simulator.formats.tntp.trips import read_tntp_trips
from simulator.papers.data import GOWALLA, locate, read_table
from simulator.papers.published_results import DataError, Reproduction

TAXIS = "beijing_tdrive_sample/Beijing_taxi.csv.gz"
CARS = "sumo_fcd/acosta_fcd_0_1800_10s.csv.gz"
SECOND_DAY, DAY_S = pd.Timestamp("2008-02-04"), 86_400.0
PLACEMENTS = 10
"""Placements of the lines of a grid over which scores are averaged."""
TRACES = 400
POINTS = (1, 2, 3, 4)
SMALL = 10.0

Floats = NDArray[np.float64]


def recovery(results: Reproduction, seed: int) -> None:
    """Recover traces from exact counts in cells of several sizes, and score them and two attacks that know nothing."""
    rng, published = np.random.default_rng(seed), {}
    for data, places, sizes in (("T-Drive", _taxis(), (500, 2000, 5000)), ("acosta", _cars(), (50, 200, 500))):
        for size_m in sizes:
            tried = [_scores(places, size_m, rng) for _ in range(PLACEMENTS)]
            scores = {name: np.mean([each[name] for each in tried], axis=0) for name in tried[0]}
            for place, score in enumerate(SCORES):
                spread = [each["attack"][place] for each in tried]
                named = {name: values[place] for name, values in scores.items()}
                results.add_row(
                    score, named["attack"], data=data, size_m=size_m, low=min(spread), high=max(spread), **named
                )
            published[data, size_m] = scores
    fine, coarse, taxis = published["acosta", 50], published["acosta", 500], published["T-Drive", 500]
    results.add_findings("coarser", fine=fine["attack"][0], coarse=coarse["attack"][0], still=coarse["still"][0])
    results.add_findings("nobody", attack=taxis["attack"][2], still=taxis["still"][2])


def _scores(places: Floats, size_m: float, rng: np.random.Generator) -> dict[str, list[float]]:
    """Return the scores of the recovered traces and of both nulls, in cells with a grid placed at random."""
    squares = np.floor((places + rng.uniform(0.0, size_m, 2)) / size_m)
    cells, numbers = np.unique(squares.reshape(-1, 2), axis=0, return_inverse=True)
    true = numbers.reshape(places.shape[:2])
    counts = np.stack([np.bincount(step, minlength=len(cells)) for step in true.T])
    distances = np.hypot(*(cells[:, np.newaxis] - cells).T)
    traces = recover_traces(counts, [distances] * (len(counts) - 1))
    nulls = {"attack": traces, "still": still_traces(traces), "random": rng.permuted(traces, axis=0)}
    return {name: [*trace_scores(true, each).values()] for name, each in nulls.items()}


def _metres(lon: Floats, lat: Floats) -> Floats:
    """Return places in the plane, (…, 2) float64, metres from longitude 0 and latitude 0."""
    return np.stack([lon * 111_320.0 * np.cos(np.radians(lat.mean())), lat * 110_540.0], axis=-1)


def _read_taxis() -> pd.DataFrame:
    """Return the fixes of the taxis by taxi and time, with seconds from the second day's midnight."""
    fixes = read_table(TAXIS, columns=["TaxiID", "TimeStamp", "Longitude", "Latitude"], header=True)
    fixes["s"] = (pd.to_datetime(fixes["TimeStamp"]) - SECOND_DAY).dt.total_seconds()
    return fixes.sort_values(["TaxiID", "s"], kind="stable")


def _taxis() -> Floats:
    """Return where each taxi was last seen, every 10 minutes of the second day, of those seen 72 times that day."""
    fixes, times, places = _read_taxis(), np.arange(0.0, DAY_S + 1.0, 600.0), []
    for _, own in fixes.groupby("TaxiID"):
        if own["s"].between(0.0, DAY_S).sum() >= DAY_S / 1200.0:
            last = np.searchsorted(own["s"], times, side="right") - 1
            places.append(own[["Longitude", "Latitude"]].to_numpy()[np.maximum(last, 0)])
    return _metres(*np.moveaxis(np.stack(places), -1, 0))


def _cars() -> Floats:
    """Return where each car was every 10 s of five minutes, of those that drove throughout."""
    fixes = read_table(CARS, columns=["time", "vehicle", "lon", "lat"], header=True)
    driven = fixes[fixes["time"].between(600.0, 890.0)].pivot(index="vehicle", columns="time", values=["lon", "lat"])
    return _metres(*np.split(driven.dropna().to_numpy(), 2, axis=1))


def unicity(results: Reproduction, seed: int) -> None:
    """Compute how many people one to four points of their own trace distinguish from everybody else."""
    rng = np.random.default_rng(seed)
    for data, size_m, every_s, person, places, s in _seen():
        squares = np.floor(np.column_stack([places / size_m, s / every_s]))
        point = np.unique(squares, axis=0, return_inverse=True)[1]
        for known in POINTS:
            share = unique_share(person, point, known=known, most=TRACES, rng=rng)
            row = "four" if known == POINTS[-1] else "unique"
            results.add_row(row, share, data=data, size=f"{size_m:,} m × {every_s:,} s", known=known, traces=TRACES)


def _seen() -> Iterator[tuple[str, int, int, NDArray[np.int64], Floats, Floats]]:
    """Yield who was seen where and when in each data set, with the sizes of cells in metres and seconds."""
    columns = ["user", "time", "lat", "lon", "place"]
    check_ins = read_table(GOWALLA, columns=columns, header=False, separator="\t", parse_dates=["time"])
    check_ins["s"] = (check_ins["time"] - check_ins["time"].min().normalize()).dt.total_seconds()
    taxis = _read_taxis().rename(columns={"TaxiID": "user", "Longitude": "lon", "Latitude": "lat"})
    cars = read_table(CARS, columns=["time", "vehicle", "lon", "lat"], header=True)
    cars = cars.rename(columns={"vehicle": "user", "time": "s"})
    for data, fixes, sizes in (
        ("Gowalla in New York", check_ins, ((1000, 3600), (5000, 86_400))),
        ("T-Drive", taxis, ((5000, 3600),)),
        ("acosta", cars, ((50, 10), (200, 60), (500, 300))),
    ):
        places = _metres(fixes["lon"].to_numpy(), fixes["lat"].to_numpy())
        for size_m, every_s in sizes:
            yield data, size_m, every_s, pd.factorize(fixes["user"])[0], places, fixes["s"].to_numpy()


def sets_of_home_and_work(results: Reproduction, seed: int) -> None:  # noqa: ARG001 - nothing is drawn
    """Compute how many people share a person's home and work in each trip table."""
    for name, file in (
        ("Sioux Falls", "SiouxFalls/SiouxFalls_trips.tntp"),
        ("Anaheim", "Anaheim/Anaheim_trips.tntp"),
        ("Chicago-Sketch", "Chicago-Sketch/ChicagoSketch_trips.tntp.gz"),
        ("Berlin-Mitte", "Berlin-Mitte-Center/berlin-mitte-center_trips.tntp"),
    ):
        try:
            table = read_tntp_trips(locate(f"tntp/{file}"))
        except InputError as error:
            raise DataError(error.faults[0]) from error
        median, small = home_and_work(table.trips[table.origin != table.destination])
        results.add_row("median", median, name=name)
        results.add_row("small", small, name=name)


def home_and_work(trips: Floats) -> tuple[float, float]:
    """Return the median number of people with one's home and work, and the share of people with fewer than 10.

    Parameters
    ----------
    trips : (pairs,) float64
        The number of trips from each origin to each destination (Golle and Partridge 2009, *On the Anonymity of
        Home/Work Location Pairs*): the people of a set.
    """
    sizes = np.sort(trips)
    people = np.cumsum(sizes)
    return float(sizes[np.searchsorted(people, people[-1] / 2.0)]), float(sizes[sizes < SMALL].sum() / people[-1])
