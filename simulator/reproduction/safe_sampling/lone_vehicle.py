"""A lone vehicle at the edge of the city: positions on a grid of cells, recoded by clusters, and by fixed blocks."""

import numpy as np
from numpy.typing import NDArray

from mechanisms.central import LocalRecoding, SampleThenSuppress
from simulator.reproduction.entry import Row
from simulator.reproduction.safe_sampling.agreement import Rate

# A grid of SIDE × SIDE cells; traffic keeps to the first TOWN rows and columns, the lone vehicle is in the far corner.
SIDE, TOWN, VEHICLES, K, BETA = 24, 20, 1_500, 20, 0.2
# Tables of a sample, and how many of them are made of every vehicle too.
TRIALS, WHOLE = 2_000, 200
BLOCK = 4
CORNER = SIDE - TOWN


def lone_vehicle_rows(seed: int) -> list[Row]:
    """Return how often an attacker who reads the table finds the vehicle, and its cell."""
    rng = np.random.default_rng(seed)
    places = np.stack(np.divmod(np.arange(SIDE * SIDE), SIDE), axis=1).astype(np.float64)
    recoding = LocalRecoding(k=K, places=places)
    safe = SampleThenSuppress(k=K, sampling=BETA)
    density = _town(places)
    blocks = ((places[:, 0] // BLOCK) * (SIDE // BLOCK) + places[:, 1] // BLOCK).astype(np.int64)
    hits: dict[str, list[bool]] = {name: [] for name in ("there", "cell", "there sampled", "cell sampled", "blocks")}
    for trial in range(TRIALS):
        held = trial % 2 == 0
        cell = _corner_cell(rng)
        counts = rng.multinomial(VEHICLES, density)
        counts[cell] += held
        sampled = rng.binomial(counts, BETA)
        tables = [(sampled, " sampled"), (counts, "")]
        for table, suffix in tables if trial < WHOLE else tables[:1]:
            found = _read(recoding, table)
            hits[f"there{suffix}"].append((found is not None) == held)
            if held:
                hits[f"cell{suffix}"].append((_corner_cell(rng) if found is None else found) == cell)
        totals = np.bincount(blocks, weights=counts, minlength=(SIDE // BLOCK) ** 2).astype(np.int64)
        published = safe.publish(totals, rng=rng).count > 0
        hits["blocks"].append(bool(published[-1]) == held)
    prior = 1 / CORNER**2
    return [
        _row("clusters of every vehicle: is it there?", hits["there"], 1.0, 0.5),
        _row("clusters of every vehicle: in which cell, if there", hits["cell"], 1.0, prior),
        _row(f"clusters of a sample, beta={BETA:g}: is it there?", hits["there sampled"], (1 + BETA) / 2, 0.5),
        _row(
            f"clusters of a sample, beta={BETA:g}: in which cell, if there",
            hits["cell sampled"],
            BETA + (1 - BETA) * prior,
            prior,
        ),
        _row(f"fixed blocks, beta={BETA:g}, k={K}: is it there?", hits["blocks"], 0.5, 0.5),
    ]


def _town(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of traffic of each cell: three busy places, an avenue each way, and a little everywhere."""
    density = np.full(len(places), 0.002)
    for row, column, reach, weight in ((6, 6, 2.0, 1.0), (13, 9, 3.0, 0.6), (9, 16, 1.5, 0.4)):
        density += weight * np.exp(-((places[:, 0] - row) ** 2 + (places[:, 1] - column) ** 2) / (2 * reach**2))
    density[(places[:, 0] == 9) | (places[:, 1] == 6)] += 0.05
    density[(places >= TOWN).any(axis=1)] = 0.0
    shares: NDArray[np.float64] = density / density.sum()
    return shares


def _corner_cell(rng: np.random.Generator) -> int:
    """Return a cell of the far corner, all alike."""
    row, column = rng.integers(TOWN, SIDE, size=2)
    return int(row * SIDE + column)


def _read(recoding: LocalRecoding, counts: NDArray[np.int64]) -> int | None:
    """Return the cell in the far corner of a published box that reaches beyond the town, if one does."""
    for cluster in recoding.clusters(counts):
        if (cluster.high >= TOWN).all():
            return int(cluster.high[0] * SIDE + cluster.high[1])
    return None


def _row(what: str, right: list[bool], theory: float, prior: float) -> Row:
    """Return a success rate beside theory and what guessing without the table gives."""
    rate = Rate(sum(right), len(right))
    agrees = rate.agrees_with(theory) and rate.exceeds(prior) == (theory > prior)
    published = "vulnerable" if theory > prior else "hidden in a crowd of k"
    return Row(
        f"vehicle, {what}",
        published,
        rate.share,
        agrees,
        f"{rate}; theory {theory:.4f}, {prior:.4f} without the table. {VEHICLES:,} others, k = {K}.",
    )
