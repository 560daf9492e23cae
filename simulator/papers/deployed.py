"""Systems in use, as published and computed: samples with a threshold, sums of bits, shuffles, counts over time."""

import itertools
import math
from collections import Counter
from functools import partial

import numpy as np

from mechanisms.local import KRandomizedResponse, LocalHashing, SubsetSelection, SymmetricUnary
from mechanisms.privacy import Claim, LinkedReports, ReleasedCounts, Shuffled, worst_crowd_delta
from mechanisms.privacy.blanket import VariationRatioDelta
from mechanisms.privacy.composition import ComposedDelta, composed
from mechanisms.privacy.laplace_noise import SampledLaplaceDelta
from mechanisms.privacy.published_sums import SumsDelta
from mechanisms.privacy.shuffled import ClonesDelta
from simulator.pages.charts import Series
from simulator.pages.charts.styles import PUBLISHED
from simulator.papers.published_results import Reproduction

SAMPLED, THRESHOLD, TARGET, EPSILON = 0.105, 20, 1e-8, 1.0
DEVICES, DELTA = 10**5, 1e-9
CELLS = 100
SHUFFLED_DELTA, LOCAL_EPSILON = 1e-6, 4.0
FLOW_EPSILON, TRIPS, FINENESS = 0.66, (1, 2, 5, 10, 16, 32, 39), 200
STOPS = (1, 5, 10, 20)


def sample_and_threshold_formula(*, sampling: float, threshold: int, epsilon: float) -> float:
    """Return δ = e^(−Cτ), C = ln(1/α) − 1/(1 + α), α = p/(1 − e^−ε) (Bharadwaj and Cormode 2022)."""
    alpha = sampling / -math.expm1(-epsilon)
    return math.exp(-threshold * (math.log(1.0 / alpha) - 1.0 / (1.0 + alpha)))


def sample_and_threshold(results: Reproduction, seed: int) -> None:  # noqa: ARG001 - nothing is drawn
    """Compute the δ of values that at least K sampled devices hold, by the published formula and exactly.

    The exact δ is for the published number of sampled devices, a device entering or leaving, for any others: below K
    nothing is published, and no fewer devices are published with the device than without it.
    """
    formula = sample_and_threshold_formula(sampling=SAMPLED, threshold=THRESHOLD, epsilon=EPSILON)
    exact = worst_crowd_delta(k=THRESHOLD, sampling=SAMPLED, epsilon=EPSILON)
    results.add_row("formula", formula)
    results.add_row("exact", exact, None, formula=formula)
    shares = np.arange(SAMPLED, 0.5, 0.001)
    allowed = [p for p in shares if worst_crowd_delta(k=THRESHOLD, sampling=float(p), epsilon=EPSILON) <= TARGET]
    results.add_row("sampling", round(float(max(allowed)), 3))
    least = next(
        k for k in range(1, THRESHOLD + 1) if worst_crowd_delta(k=k, sampling=SAMPLED, epsilon=EPSILON) <= TARGET
    )
    results.add_row("threshold", least)


def prio_bits(results: Reproduction, seed: int) -> None:  # noqa: ARG001 - nothing is drawn
    """Compute ε of the sums of bits, each flipped with 1/(e^ε₀ + 1), for a move, exactly."""
    for per_bit, printed in zip((5.0, 6.5, 7.0), ("0.317", "0.906", "1.528"), strict=True):
        mechanism = SymmetricUnary(cells=CELLS, epsilon=2.0 * per_bit)
        claim = mechanism.claim(ReleasedCounts(None, 1, DEVICES, adjacency="move"))
        alone = SumsDelta(mechanism.true_yes, mechanism.false_yes, DEVICES, 0, 0, moves=True)
        nobody = Claim.bound(claim.epsilon, alone, "Nobody else in either cell.").epsilon_at(DELTA)
        computed = claim.epsilon_at(DELTA)
        results.add_row("any_others", computed, computed <= float(printed), published=float(printed), per_bit=per_bit)
        results.add_row("nobody", nobody, per_bit=per_bit)


def shuffled_reports(results: Reproduction, seed: int) -> None:  # noqa: ARG001 - nothing is drawn
    """Compute ε of shuffled reports at the documented example of the clones' code, by every bound."""
    ratio = math.exp(LOCAL_EPSILON)
    clones = Claim.bound(LOCAL_EPSILON, ClonesDelta(DEVICES, LOCAL_EPSILON), "Clones.")
    by_clones = clones.epsilon_at(SHUFFLED_DELTA)
    results.add_row("clones", by_clones, 0.16753 <= by_clones <= 0.17280)
    for name, mechanism, beta in (
        ("olh", LocalHashing(cells=CELLS, epsilon=LOCAL_EPSILON, buckets=56), (ratio - 1.0) / (ratio + 55.0)),
        ("subset_selection", SubsetSelection(cells=CELLS, epsilon=LOCAL_EPSILON, size=2), None),
        ("sue", SymmetricUnary(cells=CELLS, epsilon=LOCAL_EPSILON), None),
        ("k_randomized_response", KRandomizedResponse(cells=CELLS, epsilon=LOCAL_EPSILON), None),
    ):
        distance = mechanism.claim(LinkedReports()).delta(0.0) if beta is None else beta
        reduced = reduction_epsilon(ratio, distance, DEVICES, SHUFFLED_DELTA)
        computed = mechanism.claim(Shuffled(1, DEVICES)).epsilon_at(SHUFFLED_DELTA)
        near = abs(computed - reduced) <= 0.01 * reduced
        results.add_row("reduction", computed, near, published=reduced, name=name, distance=distance)
    _counterexample(results)


def _counterexample(results: Reproduction) -> None:
    """Compare the published reduction with the exact δ of three devices that answer with 3-ary randomized response."""
    devices, epsilon, local = 3, 0.6, 1.0
    ratio = math.exp(local)
    distance = (ratio - 1.0) / (ratio + 2.0)
    published = reduction_delta(ratio, distance, devices, epsilon)
    exact = max(
        _enumerated(local, (truth, other_truth), others, epsilon)
        for truth, other_truth in itertools.permutations(range(3), 2)
        for others in itertools.combinations_with_replacement(range(3), devices - 1)
    )
    part = distance / (1.0 - 1.0 / ratio)
    ours = VariationRatioDelta(devices, ratio, part, part, 1.0 - part * (1.0 + 1.0 / ratio), ratio)(epsilon)
    results.add_row("counterexample", exact, exact <= published, published=published)
    results.add_row("repaired", ours, ours >= exact, exact=exact)


def _enumerated(local: float, truths: tuple[int, int], others: tuple[int, ...], epsilon: float) -> float:
    """Return the hockey-stick divergence of the histograms of all devices' 3-ary responses, by enumeration."""
    matrix = np.exp(local * np.eye(3))
    matrix /= matrix.sum(axis=1, keepdims=True)
    laws = []
    for truth in truths:
        law: Counter[tuple[int, ...]] = Counter()
        for reports in itertools.product(range(3), repeat=len(others) + 1):
            mass = math.prod(matrix[cell, report] for cell, report in zip((truth, *others), reports, strict=True))
            law[tuple(sorted(reports))] += mass
        laws.append(law)
    return sum(max(laws[0][key] - math.exp(epsilon) * laws[1][key], 0.0) for key in laws[0])


def reduction_delta(ratio: float, distance: float, devices: int, epsilon: float) -> float:
    """Return δ(ε) of the variation-ratio reduction as published (Wang et al. 2024), with q = p.

    C ~ Bin(n − 1, 2r) and A ~ Bin(C, ½); the device adds 1 to A with probability pα, to C − A with α, and otherwise
    to neither, or the other way round; α = β/(p − 1), r = α.
    """
    from scipy.stats import binom  # noqa: PLC0415 - a second, for this entry only

    alpha = distance / (ratio - 1.0)
    factor, rest = math.exp(epsilon), 1.0 - alpha * (1.0 + ratio)
    # With F the law with the device drawn like the others, P/F is linear in the two numbers a and c − a.
    c = np.arange(devices + 1, dtype=np.float64)
    masses = binom.pmf(c, devices, 2.0 * alpha)
    kept = masses > 1e-18
    c, masses = c[kept], masses[kept]
    slope = (ratio - 1.0) * (1.0 + factor) / devices
    level = c * (1.0 - factor * ratio) / devices + (1.0 - factor) * rest * (devices - c) / (
        devices * (1.0 - 2.0 * alpha)
    )
    last = np.floor(-level / slope)
    above = binom.sf(last, c, 0.5)
    means = slope * c / 2.0 * binom.sf(last - 1.0, c - 1.0, 0.5) + level * above
    means = np.where(c == 0.0, np.maximum(level, 0.0), means)
    return float(masses @ np.maximum(means, 0.0))


def reduction_epsilon(ratio: float, distance: float, devices: int, delta: float) -> float:
    """Return the least ε of the published reduction at this δ, to 10⁻⁴, the upper end."""
    curve = partial(reduction_delta, ratio, distance, devices)
    return Claim.bound(math.log(ratio), curve, "As published.").epsilon_at(delta)


def origin_destination_flows(results: Reproduction, seed: int) -> None:  # noqa: ARG001 - nothing is drawn
    """Compute how often the best observer says rightly whether a person's trips are in the counts, at even odds.

    Each of the person's k trips changes one count by 1, and each count has Laplace noise of scale 1/ε₀. The success is
    (1 + δ(0))/2 of the k counts together, composed from above; the grid makes it too large by less than 10⁻⁵.
    """
    curve = SampledLaplaceDelta(FLOW_EPSILON)
    most = range(1, max(TRIPS) + 1)
    success = [(1.0 + composed(curve, trips, limit=FLOW_EPSILON, fineness=FINENESS)(0.0)) / 2.0 for trips in most]
    results.add_row("stated", 1.0 / (1.0 + math.exp(-FLOW_EPSILON)) - 0.5)
    for trips in TRIPS:
        bound = 1.0 / (1.0 + math.exp(-FLOW_EPSILON * trips))
        results.add_row("criticised" if trips == 32 else "optimum", success[trips - 1], trips=trips, bound=bound)
    published = Series("as stated", [1, 32], [0.66, 0.954], "points", PUBLISHED)
    results.add_panel("success", [Series("best observer", most, success), published])
    results.add_findings("unit", once=success[0], often=success[31])


def sequence_of_stops(results: Reproduction, seed: int) -> None:  # noqa: ARG001 - nothing is drawn
    """Compute what the classes published at a sequence of stops reveal about one passenger, and about the headcount.

    At each stop the class is drawn anew: "empty" with a probability by the headcount. The observer knows all other
    passengers; one passenger changes the headcount at each stop by 1.
    """
    empty, profile = (np.array(results.entry.numbers[name]) for name in ("empty", "profile"))
    results.add_row("stated", math.log(profile[0] / profile[1]))
    for stops in STOPS:
        for name, shares in (("edge", empty[:2]), ("middle", empty[2:4]), ("profile", profile)):
            with_it, without = ((share, 1.0 - share) for share in shares)
            delta = ComposedDelta.from_pair(with_it, without, queries=stops)(0.0)
            results.add_row(name, (1.0 + delta) / 2.0, stops=stops)
        often = np.arange(stops + 1)[:, np.newaxis]
        ways = np.array([[math.comb(stops, count)] for count in range(stops + 1)])
        chances = ways * empty**often * (1.0 - empty) ** (stops - often)
        results.add_row("headcount", chances.max(axis=1).sum() / len(empty), stops=stops, prior=1.0 / len(empty))
