"""Generalization: recoding that depends on the data (sec 3.1), and a map that is chosen privately (theorem 6).

k-anonymity that depends on the data reveals extreme values; suppression on a grid that is fixed beforehand does not.
Two examples: net worths in a town (sec 3.1), and a single vehicle at the edge of a city. Theorem 6 is about ε-safe
k-anonymization with its map chosen from all devices or from the sample (sec 3.4).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad

from mechanisms.central import LocalRecoding, SampleThenSuppress, apply, cut_clusters
from mechanisms.privacy import SafeDelta, released_differences_delta, worst_crowd_delta
from mechanisms.privacy.audit import delta_lower_bound
from mechanisms.privacy.binomial import mass_at
from mechanisms.privacy.subsampling import least_epsilon
from simulator.pages.charts import Series
from simulator.papers.monte_carlo import ALPHA, Rate, allowed_success
from simulator.papers.published_results import Reproduction

BETA = 0.2
RECODING_K = 20

# In millions: all other net worths are at most `KNOWN_ABOVE`; the rich individual's is a whole number of millions from
# `LOWEST` to `HIGHEST`.
KNOWN_ABOVE, LOWEST, HIGHEST = 10.0, 11, 60
# Bins chosen independently of the data.
EDGES = np.array([0.0, 0.05, 0.1, 0.2, 0.5, 1.0, 10.0, 100.0])


def recoding(results: Reproduction, seed: int) -> None:
    """Attack both kinds of recoding, on net worths and on vehicles, by reading the table and by likelihood."""
    net_worths(results, seed)
    lone_vehicle(results, seed + 1)
    _likelihood(results, seed + 2)
    k = np.arange(2, 41)
    releases = [SampleThenSuppress(k=int(each), sampling=BETA) for each in k]
    exact = [release.claim(crowd=None).delta(1.0) for release in releases]
    curves = [
        Series("clustering and local recoding", k, [BETA] * len(k)),
        Series("fixed cells, theorem 5", k, [release.theorem_5().delta(1.0) for release in releases]),
        Series("fixed cells, exact worst crowd", k, exact),
    ]
    results.add_panel("delta", curves)
    results.add_findings("extreme", delta=exact[RECODING_K - 2])


def _add_guesses(
    results: Reproduction, name: str, right: list[bool], *, theory: float, prior: float, **values: str | None
) -> None:
    """Add a success rate beside theory and what guessing without the table gives."""
    rate = Rate.of(right)
    agrees = rate.agrees_with(theory) and rate.exceeds(prior) == (theory > prior)
    results.add_row(name, rate.share, agrees, rate=rate, theory=theory, prior=prior, **values)


def net_worths(results: Reproduction, seed: int) -> None:
    """Add how often an adversary who reads the table finds the rich individual, for each kind of recoding."""
    rng = np.random.default_rng(seed)
    values = HIGHEST - LOWEST + 1
    # Number of tables of every tuple, and of tables of a sample, which reveal less.
    for sampling, trials, of in ((1.0, 400, "every tuple"), (BETA, 2_000, f"a sample, beta={BETA:g}")):
        read = [_read_net_worths(sampling, present=trial % 2 == 0, rng=rng) for trial in range(trials)]
        present = [guess == (trial % 2 == 0) for trial, (guess, _, _) in enumerate(read)]
        amounts = [right for _, right, _ in read[::2]]
        _add_guesses(results, "presence", present, theory=(1 + sampling) / 2, prior=0.5, of=of)
        theory = sampling + (1 - sampling) / values
        _add_guesses(results, "amount", amounts, theory=theory, prior=1 / values, of=of)
    binned = [guess == (trial % 2 == 0) for trial, (_, _, guess) in enumerate(read)]
    _add_guesses(results, "bins", binned, theory=0.5, prior=0.5)


def _read_net_worths(sampling: float, *, present: bool, rng: np.random.Generator) -> tuple[bool, bool, bool]:
    """Return whether the clusters show the individual, whether they give the amount, and whether the bins show it."""
    others = np.minimum(rng.lognormal(np.log(0.12), 1.0, 200), KNOWN_ABOVE)
    worth = float(rng.integers(LOWEST, HIGHEST + 1))
    worths = np.append(others, worth) if present else others
    sample = worths[rng.random(len(worths)) < sampling]
    clusters = cut_clusters(sample[:, None], np.ones(len(sample), dtype=np.int64), RECODING_K)
    top = max((float(cluster.high[0]) for cluster in clusters), default=0.0)
    guessed = top > KNOWN_ABOVE
    amount = top if guessed else float(rng.integers(LOWEST, HIGHEST + 1))
    kept = apply(lambda value: int(np.searchsorted(EDGES, value, side="left")), sample.tolist(), RECODING_K)
    above = int(np.searchsorted(EDGES, KNOWN_ABOVE, side="left"))
    return guessed, amount == worth, any(group > above for group in kept)


# A grid of SIDE × SIDE cells; traffic is in the first TOWN rows and columns, the lone vehicle is in the far corner.
SIDE, TOWN, VEHICLES = 24, 20, 1_500
BLOCK = 4


def lone_vehicle(results: Reproduction, seed: int) -> None:
    """Add how often an adversary who reads the table finds the vehicle, and its cell."""
    rng = np.random.default_rng(seed)
    places = np.stack(np.divmod(np.arange(SIDE * SIDE), SIDE), axis=1).astype(np.float64)
    recoded = LocalRecoding(k=RECODING_K, places=places)
    suppressed = SampleThenSuppress(k=RECODING_K, sampling=BETA)
    density = _town(places)
    blocks = ((places[:, 0] // BLOCK) * (SIDE // BLOCK) + places[:, 1] // BLOCK).astype(np.int64)
    presence: dict[str, list[bool]] = {"every": [], "sample": [], "blocks": []}
    location: dict[str, list[bool]] = {"every": [], "sample": []}
    for trial in range(2_000):
        present = trial % 2 == 0
        cell = _corner_cell(rng)
        counts = rng.multinomial(VEHICLES, density)
        counts[cell] += present
        tables = [("sample", rng.binomial(counts, BETA)), ("every", counts)]
        for of, table in tables if trial < 200 else tables[:1]:
            read = _read_boxes(recoded, table)
            presence[of].append((read is not None) == present)
            if present:
                location[of].append((_corner_cell(rng) if read is None else read) == cell)
        totals = np.bincount(blocks, weights=counts, minlength=(SIDE // BLOCK) ** 2).astype(np.int64)
        presence["blocks"].append(bool(suppressed.publish(totals, rng=rng).count[-1] > 0) == present)
    prior = 1 / (SIDE - TOWN) ** 2
    for of, sampling in (("every", 1.0), ("sample", BETA)):
        what = "clusters of every vehicle" if of == "every" else f"clusters of a sample, beta={BETA:g}"
        key = f"{what}: is it there?"
        _add_guesses(results, "vehicle", presence[of], theory=(1 + sampling) / 2, prior=0.5, what=key)
        key, theory = f"{what}: in which cell, if there", sampling + (1 - sampling) * prior
        _add_guesses(results, "vehicle", location[of], theory=theory, prior=prior, what=key)
    _add_guesses(results, "blocks", presence["blocks"], theory=0.5, prior=0.5)


def _town(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each cell's share of traffic: three busy places, one avenue in each direction, and a low background."""
    density = np.full(len(places), 0.002)
    for row, column, reach, weight in ((6, 6, 2.0, 1.0), (13, 9, 3.0, 0.6), (9, 16, 1.5, 0.4)):
        density += weight * np.exp(-((places[:, 0] - row) ** 2 + (places[:, 1] - column) ** 2) / (2 * reach**2))
    density[(places[:, 0] == 9) | (places[:, 1] == 6)] += 0.05
    density[(places >= TOWN).any(axis=1)] = 0.0
    return np.asarray(density / density.sum())


def _corner_cell(rng: np.random.Generator) -> int:
    """Return a cell of the far corner, drawn uniformly."""
    row, column = rng.integers(TOWN, SIDE, size=2)
    return int(row * SIDE + column)


def _read_boxes(recoded: LocalRecoding, counts: NDArray[np.int64]) -> int | None:
    """Return the cell at the far corner of a published box that reaches beyond the town; None if no box does."""
    for cluster in recoded.clusters(counts):
        if (cluster.high >= TOWN).all():
            return int(cluster.high[0] * SIDE + cluster.high[1])
    return None


def _likelihood(results: Reproduction, seed: int) -> None:
    """Add the success rate of the best attack on fixed cells: all others known, the likelier world guessed."""
    rng, trials = np.random.default_rng(seed), 100_000
    for crowd in (25, 60, 200):
        release = SampleThenSuppress(k=RECODING_K, sampling=BETA)
        masses = [mass_at(np.arange(crowd + 1), n, BETA) for n in (crowd, crowd - 1)]
        # The published count: nothing, k, k + 1 … crowd.
        present, absent = (np.append(of[:RECODING_K].sum(), of[RECODING_K:]) for of in masses)
        guess = present > absent  # by output
        outputs = [np.maximum(rng.binomial(n, BETA, trials) - RECODING_K + 1, 0) for n in (crowd, crowd - 1)]
        rate = Rate(int(guess[outputs[0]].sum() + (~guess[outputs[1]]).sum()), 2 * trials)
        # The attacker knows the crowd exactly; a claim is for at least so many.
        exact = released_differences_delta(crowd=crowd, k=release.k, sampling=release.sampling, epsilon=0.0)
        theory = allowed_success(0.0, exact)
        steps = range(math.ceil(-50 * math.log1p(-BETA)), 200)
        loosest = min(allowed_success(e / 50, release.theorem_5().delta(e / 50)) for e in steps)
        agrees = rate.agrees_with(theory) and not rate.exceeds(loosest)
        values = {"theory": theory, "loosest": loosest, "sampling": 0.5 * (1 + BETA)}
        results.add_row("likelihood", rate.share, agrees, crowd=crowd, rate=rate, **values)


K, CROWD = 30, 120
# ε that remains for the counts.
REST = 1.0


@dataclass(frozen=True)
class Choice:
    """A_m: the ε₁-differentially private choice to merge the device's cell with the cell of the other n − 1.

    With x = (devices counted in its cell) − (in the other) + offset, the cells are merged with probability
    e^(ε₁x)/(1 + e^ε₁) for x ≤ 0 and 1 − e^(−ε₁(x − 1))/(1 + e^ε₁) for x > 0: the two-sided geometric mechanism and a
    threshold. One device changes x by 1, and the probability of either option by a factor of at most e^ε₁.

    Parameters
    ----------
    epsilon
        ε₁.
    from_sample
        Whether the choice counts the sample, or all devices.
    """

    epsilon: float
    from_sample: bool

    def merged(self, sampled: NDArray[np.float64] | float, others: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of merging, by the counts in the device's own cell and in the other."""
        # The choice changes at the k-th sampled device, or, if it counts all devices, at exactly this crowd.
        x = sampled - others + (K - 1 if self.from_sample else CROWD - 1)
        half = 1.0 + math.exp(self.epsilon)
        low = np.exp(self.epsilon * np.minimum(x, 0.0)) / half
        return np.where(x <= 0, low, 1.0 - np.exp(-self.epsilon * np.maximum(x - 1.0, 0.0)) / half)

    def distributions(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the exact distributions of the published output with the device and without it.

        Outputs: nothing; merged, with j = k … n; separate, with the others' j = k … n. (The device's own cell, of one
        device, is never published.)
        """
        j = np.arange(CROWD + 1, dtype=np.float64)
        others, shifted = mass_at(j, CROWD - 1, BETA), mass_at(j - 1, CROWD - 1, BETA)
        if self.from_sample:
            without, within, counted = self.merged(0.0, j), self.merged(1.0, j - 1), self.merged(1.0, j)
            apart = (1 - BETA) * (1 - without) + BETA * (1 - counted)
            absent, staying = without, without
        else:
            within = staying = self.merged(1.0, np.full_like(j, CROWD - 1.0))
            apart, absent = 1 - within, self.merged(0.0, np.full_like(j, CROWD - 1.0))
        present = (1 - BETA) * others * staying + BETA * shifted * within
        return _published(present, others * apart), _published(others * absent, others * (1 - absent))

    def delta(self, epsilon: float) -> float:
        """Return δ of the published output."""
        return _either_divergence(*self.distributions(), epsilon)


def _either_divergence(p: NDArray[np.float64], q: NDArray[np.float64], epsilon: float) -> float:
    """Return the larger of both hockey-stick divergences; not normalised, so that small ones keep their digits."""
    factor = math.exp(epsilon)
    return max(math.fsum(np.maximum(p - factor * q, 0.0)), math.fsum(np.maximum(q - factor * p, 0.0)))


def _published(merged: NDArray[np.float64], apart: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distribution of the output; all suppressed outputs together are the first entry."""
    return np.concatenate([[merged[:K].sum() + apart[:K].sum()], merged[K:], apart[K:]])


@dataclass(frozen=True)
class BlockChoice:
    """A_m: the ε₁-differentially private choice of the block that the device's cell is merged with.

    Each map merges the cell with one of several blocks, of n − 1 other devices each. A map has the weight e^(ε₁·s) for
    s sampled devices of its block. One more sampled device multiplies one weight by e^ε₁ and raises the sum of all
    weights by at most this factor, so the probability of each map changes by a factor of at most e^ε₁.

    Parameters
    ----------
    epsilon
        ε₁.
    k, sampling, crowd
        k, β and n.
    maps
        Number of maps; infinite for the limit of many.
    """

    epsilon: float
    k: int
    sampling: float
    crowd: int
    maps: float

    def chosen(self) -> NDArray[np.float64]:
        """Return the probability that the chosen block has 0 … n − 1 sampled devices, (n,) float64.

        With R the sum of the other maps' weights, it is proportional to P[s]·e^(ε₁·s)·E[1/(e^(ε₁·s) + R)], and
        1/(a + R) = ∫ e^(−u(a + R)) du over u > 0, in which the other maps are independent factors. In the limit the
        last factor is the same for every s.
        """
        s = np.arange(self.crowd)
        masses, weights = mass_at(s, self.crowd - 1, self.sampling), np.exp(self.epsilon * s)
        mean = float(masses @ weights)
        if math.isinf(self.maps):
            return np.asarray(masses * weights / mean)
        total = self.maps * mean

        def integrand(u: float, own: float) -> float:
            others = float(masses @ np.exp(-u * weights / total))
            return math.exp(-u * own / total) * float(others ** (self.maps - 1.0)) / total

        shares = [quad(integrand, 0.0, 60.0, args=(own,), epsabs=0.0, epsrel=1e-9, limit=400)[0] for own in weights]
        return np.asarray(self.maps * masses * weights * shares)

    def delta(self, epsilon: float) -> float:
        """Return δ of the published count of the chosen block; the whole output, of all blocks, has at least this δ."""
        without = np.append(self.chosen(), 0.0)
        present = (1.0 - self.sampling) * without + self.sampling * np.roll(without, 1)
        p, q = (np.append(each[: self.k].sum(), each[self.k :]) for each in (present, without))
        return _either_divergence(p, q, epsilon)


# ε₁, ε that remains for the counts without its least, k, β, n, and the number of maps.
BLOCKS = (
    (1.0, 1.0, 10, 0.2, 10, 1_000),
    (1.0, 1.0, 10, 0.2, 10, math.inf),
    (0.5, 3.0, 30, 0.4, 30, math.inf),
    (0.25, 3.0, 30, 0.4, 30, math.inf),
    (0.1, 3.0, 30, 0.4, 30, math.inf),
)


def chosen_map(results: Reproduction, seed: int) -> None:
    """Compute δ of both readings of theorem 6 exactly, and measure the one that violates it on random databases."""
    bound: list[float] = []
    sampled: list[float] = []
    whole: list[float] = []
    choices = (0.5, 1.0, 2.0, 3.0)
    for spent in choices:
        epsilon = spent + REST + least_epsilon(BETA)
        printed = SafeDelta(K, BETA, spent, "paper")(epsilon)
        from_all, from_sample = (Choice(spent, from_sample=flag) for flag in (False, True))
        delta, at_sum = from_sample.delta(epsilon), from_sample.delta(epsilon + spent)
        proved = SafeDelta(K, BETA, spent, "chosen on the sample")(epsilon + spent)
        kept = "kept" if at_sum <= proved else "NOT kept"
        values = {"published": printed, "spent": spent, "epsilon": epsilon}
        results.add_row("from_all", from_all.delta(epsilon), from_all.delta(epsilon) <= printed, **values)
        results.add_row("from_sample", delta, delta <= printed, times=delta / printed, **values)
        results.add_row("twice", at_sum, spent=spent, epsilon=epsilon, proved=proved, kept=kept)
        for line, value in ((bound, printed), (sampled, delta), (whole, from_all.delta(epsilon))):
            line.append(max(value, 1e-300))
    for spent, rest, k, beta, crowd, maps in BLOCKS:
        epsilon = spent + rest + least_epsilon(beta)
        delta = BlockChoice(spent, k, beta, crowd, maps).delta(epsilon)
        printed = SafeDelta(k, beta, spent, "paper")(epsilon)
        values = {"published": printed, "spent": spent, "epsilon": epsilon, "k": k, "beta": beta, "crowd": crowd}
        number = "many" if math.isinf(maps) else f"{maps:,}"
        results.add_row("blocks", delta, delta <= printed, maps=number, times=delta / printed, **values)
    _measure(results, seed)
    curves = [
        Series("theorem 6", choices, bound),
        Series("exact, chosen from all devices", choices, whole),
        Series("exact, chosen from the sample", choices, sampled),
    ]
    results.add_panel("delta", curves, epsilon=REST + least_epsilon(BETA))
    rest = worst_crowd_delta(k=K, sampling=BETA, epsilon=REST + least_epsilon(BETA))
    results.add_findings("before_sampling", "composed", found=sampled[-1], bound=bound[-1], rest=rest)


def _measure(results: Reproduction, seed: int) -> None:
    """Add a lower bound of δ from random databases that were sampled, mapped and suppressed."""
    rng, trials = np.random.default_rng(seed), 4_000_000
    choice = Choice(3.0, from_sample=True)
    epsilon = choice.epsilon + REST + least_epsilon(BETA)
    with_device, without_device = choice.distributions()
    event = np.flatnonzero(with_device > math.exp(epsilon) * without_device)
    hits = []
    for present in (True, False):
        others = rng.binomial(CROWD - 1, BETA, trials)
        sampled = (rng.random(trials) < BETA) if present else np.zeros(trials, dtype=np.bool_)
        merged = rng.random(trials) < choice.merged(sampled.astype(np.float64), others.astype(np.float64))
        total = np.where(merged, others + sampled, others)
        output = np.where(total < K, 0, total - K + 1 + np.where(merged, 0, CROWD - K + 1))
        hits.append(int(np.isin(output, event).sum()))
    low = delta_lower_bound(
        hits_p=hits[0], trials_p=trials, hits_q=hits[1], trials_q=trials, epsilon=epsilon, alpha=ALPHA
    )
    printed = SafeDelta(K, BETA, choice.epsilon, "paper")(epsilon)
    values = {"trials": trials, "hits": hits, "epsilon": epsilon, "exact": choice.delta(epsilon)}
    results.add_row("measured", low, low <= printed, published=printed, **values)
