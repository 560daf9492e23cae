"""Traces on data at hand: recovered from published counts, unique by a few points, and sets of home and work."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mechanisms.compiled import Floats
from mechanisms.inference.traces import SCORES, null_traces, recover_traces, trace_scores
from simulator.formats.recordings.reading import read_trace
from simulator.formats.tntp.trips import read_tntp_trips
from simulator.papers.data import GOWALLA, locate, read_table
from simulator.papers.published_results import Reproduction

FILES = {"T-Drive": "beijing_tdrive_sample/Beijing_taxi.csv.gz", "acosta": "sumo_fcd/acosta_fcd_0_1800_10s.csv.gz"}
SECOND_DAY_S = 1_202_083_200
"""4 February 2008, 0:00, as T-Drive's clocks have it: no time zone is stated."""
STEPS = {"T-Drive": (SECOND_DAY_S + np.arange(0, 86_401, 600), 72), "acosta": (np.arange(600, 900, 10), 30)}
"""Of traces that are recovered: the steps, seconds, and how often a vehicle must have been seen during these: taxis
every 20 minutes on average."""
PLACEMENTS = 10
"""Placements of the lines of a grid over which scores are averaged."""
TRACES, POINTS, SMALL = 400, (1, 2, 3, 4), 10.0


def read_fixes(data: str) -> pd.DataFrame:
    """Read who was seen where and when: ``vehicle``, ``time_s`` from some midnight on, and ``x``, ``y`` in metres.

    Raises
    ------
    DataError
        If the file is missing or malformed.
    """
    if data in FILES:
        fixes = read_trace(locate(FILES[data])).frame()
    else:
        columns = ["vehicle", "time", "lat", "lon", "place"]
        fixes = read_table(GOWALLA, columns=columns, header=False, separator="\t", parse_dates=["time"])
        fixes["time_s"] = (fixes["time"] - fixes["time"].min().normalize()).dt.total_seconds()
    metres = 111_320.0 * np.cos(np.radians(fixes["lat"].mean()))
    return fixes.assign(x=metres * fixes["lon"], y=110_540.0 * fixes["lat"])


def recovery(results: Reproduction, seed: int) -> None:
    """Recover traces from exact counts in cells of several sizes, and score them and two attacks that know nothing."""
    rng, means = np.random.default_rng(seed), {}
    for data, sizes in results.entry.numbers.items():
        places = places_at(read_fixes(data), *STEPS[data])
        for size_m in sizes:
            tried = np.stack([scores_of(places, size_m, rng) for _ in range(PLACEMENTS)])
            means[data, size_m] = tried.mean(axis=0)
            for score, each in zip(SCORES, np.moveaxis(tried, 2, 0), strict=True):
                found, still, random = each.mean(axis=0)
                nulls = {"still": still, "random": random, "low": each[:, 0].min(), "high": each[:, 0].max()}
                results.add_row(score, found, data=data, size=f"{size_m:,} m", **nulls)
    fine, coarse, taxis = means["acosta", 50], means["acosta", 500], means["T-Drive", 500]
    results.add_findings("coarser", fine=fine[0, 0], coarse=coarse[0, 0], still=coarse[1, 0])
    results.add_findings("nobody", found=taxis[0, 2], still=taxis[1, 2])


def places_at(fixes: pd.DataFrame, steps: NDArray[np.int64], least: int) -> Floats:
    """Return where vehicles were last seen at each step, (vehicles, steps, 2), of those seen at least so often."""
    places = []
    for _, own in fixes.groupby("vehicle"):
        if own["time_s"].between(steps[0], steps[-1]).sum() >= least:
            last = np.searchsorted(own["time_s"], steps, side="right") - 1
            places.append(own[["x", "y"]].to_numpy()[np.maximum(last, 0)])
    return np.stack(places)


def scores_of(places: Floats, size_m: float, rng: np.random.Generator) -> Floats:
    """Return the scores of recovered traces, if nobody moves, and of random traces, (3, scores), on a random grid."""
    squares = np.floor((places + rng.uniform(0.0, size_m, 2)) / size_m)
    cells, numbers = np.unique(squares.reshape(-1, 2), axis=0, return_inverse=True)
    true = rng.permutation(numbers.reshape(places.shape[:2]))  # the published score depends on their order
    counts = np.stack([np.bincount(step, minlength=len(cells)) for step in true.T])
    distances = np.hypot(*(cells[:, np.newaxis] - cells).T)
    traces = recover_traces(counts, [distances] * (len(counts) - 1))
    return np.array([[*trace_scores(true, one).values()] for one in null_traces(traces, rng=rng).values()])


def unicity(results: Reproduction, seed: int) -> None:
    """Compute how many people one to four points of their own trace distinguish from everybody else."""
    rng = np.random.default_rng(seed)
    for data, sizes in results.entry.numbers.items():
        fixes = read_fixes(data)
        for size_m, every_s in zip(sizes[::2], sizes[1::2], strict=True):
            squares = np.floor(fixes[["x", "y", "time_s"]].to_numpy() / (size_m, size_m, every_s))
            for known, share in unique_shares(fixes["vehicle"], squares, rng):
                size = f"{size_m:,} m × {every_s:,} s"
                results.add_row("unique", share, data=data, size=size, known=known, traces=TRACES)
    weeks, minutes = (results.rows[place].computed for place in (3, -1))
    results.add_findings("four", weeks=weeks, minutes=minutes)


def unique_shares(person: object, points: Floats, rng: np.random.Generator) -> Iterator[tuple[int, float]]:
    """Yield numbers of known points k, and the share of people whom k points of their own trace tell from all others.

    Each was seen at a point, a row of `points`. `TRACES` times somebody who has k different points is drawn, and so are
    the points that are known.
    """
    numbers = np.unique(points, axis=0, return_inverse=True)[1]
    seen = pd.DataFrame({"person": person, "point": numbers}).drop_duplicates()
    traces, people = seen.groupby("person")["point"].agg(list), seen.groupby("point")["person"].agg(set)
    for known in POINTS:
        some = traces[traces.map(len) >= known].sample(TRACES, replace=True, random_state=rng)
        tried = [rng.choice(trace, known, replace=False) for trace in some]
        yield known, float(np.mean([len(set.intersection(*people[each])) == 1 for each in tried]))


def sets_of_home_and_work(results: Reproduction, seed: int) -> None:  # noqa: ARG001 - nothing is drawn
    """Compute how many people share a person's home and work (Golle and Partridge 2009), trips taken for people."""
    for name, (file,) in results.entry.printed.items():
        table = read_tntp_trips(locate(file))
        sizes = np.sort(table.trips[table.origin != table.destination])
        people = np.cumsum(sizes)
        results.add_row("median", sizes[np.searchsorted(people, people[-1] / 2.0)], name=name)
        results.add_row("small", sizes[sizes < SMALL].sum() / people[-1], name=name)
