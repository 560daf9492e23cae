"""lqs-recoding: k-anonymity that depends on the data reveals extreme values; suppression on a fixed grid does not.

Two examples: net worths in a town (LQS sec 3.1), and a single vehicle at the edge of a city.
"""

import math

import numpy as np
from numpy.typing import NDArray

from mechanisms.central import LocalRecoding, SampleThenSuppress, apply, cut_clusters
from mechanisms.privacy.binomial import mass_at
from simulator.reproduction.entry import Curve, Drawing, Entry, Reproduction, Row
from simulator.reproduction.safe_sampling.tables import Rate, allowed_success

# Number of tuples besides the rich individual, the paper's k, β.
OTHERS, K, BETA = 200, 20, 0.2
# Number of tables of every tuple, and of tables of a sample, which reveal less.
TRIALS = {1.0: 400, BETA: 2_000}
# In millions: all other net worths are at most `KNOWN_ABOVE`; the rich individual's is a whole number of millions from
# `LOWEST` to `HIGHEST`.
KNOWN_ABOVE, LOWEST, HIGHEST = 10.0, 11, 60
# Bins chosen independently of the data.
EDGES = np.array([0.0, 0.05, 0.1, 0.2, 0.5, 1.0, 10.0, 100.0])


def net_worth_rows(seed: int) -> list[Row]:
    """Return how often an adversary who reads the table finds the rich individual, for each kind of recoding."""
    rng = np.random.default_rng(seed)
    rows = []
    for sampling in (1.0, BETA):
        seen = [_trial(sampling, held=trial % 2 == 0, rng=rng) for trial in range(TRIALS[sampling])]
        label = "every tuple" if sampling == 1.0 else f"a sample, beta={sampling:g}"
        values = HIGHEST - LOWEST + 1
        rows += [
            _row(
                f"net worth, clusters of {label}: is the individual in the data?",
                [guess == held for held, guess, _, _ in seen],
                theory=(1 + sampling) / 2,
                prior=0.5,
                published='"the rich individual is in the dataset"',
            ),
            _row(
                f"net worth, clusters of {label}: how much, if in the data",
                [right for held, _, right, _ in seen if held],
                theory=sampling + (1 - sampling) / values,
                prior=1 / values,
                published='"net worth is $35 million"',
            ),
        ]
    rows.append(
        _row(
            f"net worth, fixed bins, beta={BETA:g}, k={K}: is the individual in the data?",
            [guess == held for held, _, _, guess in seen],
            theory=0.5,
            prior=0.5,
            published="hidden in a crowd of k",
        )
    )
    return rows


def _trial(sampling: float, *, held: bool, rng: np.random.Generator) -> tuple[bool, bool, bool, bool]:
    """Return whether the individual is in the data; guessed so from clusters; the amount right; guessed from bins."""
    others = np.minimum(rng.lognormal(np.log(0.12), 1.0, OTHERS), KNOWN_ABOVE)
    worth = float(rng.integers(LOWEST, HIGHEST + 1))
    worths = np.append(others, worth) if held else others
    sample = worths[rng.random(len(worths)) < sampling]
    clusters = cut_clusters(sample[:, None], np.ones(len(sample), dtype=np.int64), K)
    top = max((float(cluster.high[0]) for cluster in clusters), default=0.0)
    guessed = top > KNOWN_ABOVE
    amount = top if guessed else float(rng.integers(LOWEST, HIGHEST + 1))
    kept = apply(lambda one: int(np.searchsorted(EDGES, one, side="left")), sample.tolist(), K)
    above = int(np.searchsorted(EDGES, KNOWN_ABOVE, side="left"))
    return held, guessed, amount == worth, any(group > above for group in kept)


def _row(key: str, right: list[bool], *, theory: float, prior: float, published: str) -> Row:
    """Return a success rate beside theory and what guessing without the table gives."""
    rate = Rate(sum(right), len(right))
    agrees = rate.agrees_with(theory) and rate.exceeds(prior) == (theory > prior)
    return Row(key, published, rate.share, agrees, f"{rate}; theory {theory:.4f}, {prior:.4f} without the table.")


# A grid of SIDE × SIDE cells; traffic is in the first TOWN rows and columns, the lone vehicle is in the far corner.
SIDE, TOWN, VEHICLES, LONE_VEHICLE_K, LONE_VEHICLE_BETA = 24, 20, 1_500, 20, 0.2
# Number of tables of a sample, and for how many of those samples a table of every vehicle is made too.
LONE_VEHICLE_TRIALS, WHOLE = 2_000, 200
BLOCK = 4
CORNER = SIDE - TOWN


def lone_vehicle_rows(seed: int) -> list[Row]:
    """Return how often an adversary who reads the table finds the vehicle, and its cell."""
    rng = np.random.default_rng(seed)
    places = np.stack(np.divmod(np.arange(SIDE * SIDE), SIDE), axis=1).astype(np.float64)
    recoding = LocalRecoding(k=LONE_VEHICLE_K, places=places)
    safe = SampleThenSuppress(k=LONE_VEHICLE_K, sampling=LONE_VEHICLE_BETA)
    density = _town(places)
    blocks = ((places[:, 0] // BLOCK) * (SIDE // BLOCK) + places[:, 1] // BLOCK).astype(np.int64)
    hits: dict[str, list[bool]] = {name: [] for name in ("there", "cell", "there sampled", "cell sampled", "blocks")}
    for trial in range(LONE_VEHICLE_TRIALS):
        held = trial % 2 == 0
        cell = _corner_cell(rng)
        counts = rng.multinomial(VEHICLES, density)
        counts[cell] += held
        sampled = rng.binomial(counts, LONE_VEHICLE_BETA)
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
        _lone_vehicle_row("clusters of every vehicle: is it there?", hits["there"], 1.0, 0.5),
        _lone_vehicle_row("clusters of every vehicle: in which cell, if there", hits["cell"], 1.0, prior),
        _lone_vehicle_row(
            f"clusters of a sample, beta={LONE_VEHICLE_BETA:g}: is it there?",
            hits["there sampled"],
            (1 + LONE_VEHICLE_BETA) / 2,
            0.5,
        ),
        _lone_vehicle_row(
            f"clusters of a sample, beta={LONE_VEHICLE_BETA:g}: in which cell, if there",
            hits["cell sampled"],
            LONE_VEHICLE_BETA + (1 - LONE_VEHICLE_BETA) * prior,
            prior,
        ),
        _lone_vehicle_row(
            f"fixed blocks, beta={LONE_VEHICLE_BETA:g}, k={LONE_VEHICLE_K}: is it there?", hits["blocks"], 0.5, 0.5
        ),
    ]


def _town(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each cell's share of traffic: three busy places, one avenue in each direction, and a low background."""
    density = np.full(len(places), 0.002)
    for row, column, reach, weight in ((6, 6, 2.0, 1.0), (13, 9, 3.0, 0.6), (9, 16, 1.5, 0.4)):
        density += weight * np.exp(-((places[:, 0] - row) ** 2 + (places[:, 1] - column) ** 2) / (2 * reach**2))
    density[(places[:, 0] == 9) | (places[:, 1] == 6)] += 0.05
    density[(places >= TOWN).any(axis=1)] = 0.0
    shares: NDArray[np.float64] = density / density.sum()
    return shares


def _corner_cell(rng: np.random.Generator) -> int:
    """Return a cell of the far corner, drawn uniformly."""
    row, column = rng.integers(TOWN, SIDE, size=2)
    return int(row * SIDE + column)


def _read(recoding: LocalRecoding, counts: NDArray[np.int64]) -> int | None:
    """Return the cell at the far corner of a published box that reaches beyond the town; None if no box does."""
    for cluster in recoding.clusters(counts):
        if (cluster.high >= TOWN).all():
            return int(cluster.high[0] * SIDE + cluster.high[1])
    return None


def _lone_vehicle_row(what: str, right: list[bool], theory: float, prior: float) -> Row:
    """Return a success rate beside theory and what guessing without the table gives."""
    rate = Rate(sum(right), len(right))
    agrees = rate.agrees_with(theory) and rate.exceeds(prior) == (theory > prior)
    published = "vulnerable" if theory > prior else "hidden in a crowd of k"
    return Row(
        f"vehicle, {what}",
        published,
        rate.share,
        agrees,
        f"{rate}; theory {theory:.4f}, {prior:.4f} without the table. {VEHICLES:,} others, k = {LONE_VEHICLE_K}.",
    )


RECODING_TRIALS = 100_000


def reproduce(*, seed: int = 0) -> Reproduction:
    """Attack both kinds of recoding, on net worths and on vehicles, by reading the table and by likelihood."""
    rows = [*net_worth_rows(seed), *lone_vehicle_rows(seed + 1), *_likelihood(seed + 2)]
    k = np.arange(2, 41)
    claims = [SampleThenSuppress(k=int(each), sampling=BETA) for each in k]
    drawing = Drawing(
        f"δ at ε = 1 after sampling with β = {BETA:g}",
        "k",
        "δ",
        [
            Curve("clustering and local recoding", k.tolist(), [BETA] * len(k)),
            Curve("fixed cells, theorem 5", k.tolist(), [claim.theorem_5().delta(1.0) for claim in claims]),
            Curve(
                "fixed cells, exact worst crowd", k.tolist(), [claim.claim(crowd=None).delta(1.0) for claim in claims]
            ),
        ],
        log_y=True,
    )
    findings = (
        (
            "Clustering and local recoding publishes the extreme value itself: found in every table, and after "
            "sampling with "
            "β as often as it was sampled, so δ = β at every ε whatever k is. Suppression on a grid fixed "
            "beforehand, of the "
            f"same sample, leaves {claims[K - 2].claim(crowd=None).delta(1.0):.1g} at k = {K}, ε = 1."
        ),
    )
    return Reproduction(rows, (drawing,), findings)


def _likelihood(seed: int) -> list[Row]:
    """Return the success rate of the best attack on fixed cells: all others known, the likelier world guessed."""
    rng = np.random.default_rng(seed)
    rows = []
    for crowd in (25, 60, 200):
        safe = SampleThenSuppress(k=K, sampling=BETA)
        laws = [_law(n, crowd) for n in (crowd, crowd - 1)]
        guess = laws[0] > laws[1]  # by output
        outputs = [np.maximum(rng.binomial(n, BETA, RECODING_TRIALS) - K + 1, 0) for n in (crowd, crowd - 1)]
        rate = Rate(int(guess[outputs[0]].sum() + (~guess[outputs[1]]).sum()), 2 * RECODING_TRIALS)
        exact = safe.claim(crowd=crowd)
        theory = allowed_success(0.0, exact.delta(0.0))
        loosest = min(
            allowed_success(e / 50, safe.theorem_5().delta(e / 50))
            for e in range(math.ceil(-50 * math.log1p(-BETA)), 200)
        )
        rows.append(
            Row(
                f"fixed cells, beta={BETA:g}, k={K}, crowd {crowd}: likelihood attack",
                "protected by theorem 5",
                rate.share,
                rate.agrees_with(theory) and not rate.exceeds(loosest),
                f"Is the device there, everyone else known: {rate}; exact theory ½(1 + δ(0)) = {theory:.4f}, theorem 5 "
                f"allows {loosest:.4f}, sampling alone {0.5 * (1 + BETA):.4f}.",
            )
        )
    return rows


def _law(n: int, crowd: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the distribution of the published count of n devices: nothing, k, k + 1 … crowd."""
    masses = mass_at(np.arange(crowd + 1), n, BETA)
    return np.append(masses[:K].sum(), masses[K:])


RECODING = Entry("lqs-recoding", "LQS", "Sec 3.1: reading extreme values off a k-anonymous table", reproduce)
