"""Check of a user's own secret sharing: shares of too few servers must not depend on the reports, nor on one another.

Any t − 1 servers' shares of whole vectors are drawn for several vectors and with several seeds. Tested are all words
that they hold, and of every two words the difference, the sum and the exclusive or: of the same device, of devices in
one call, and of calls with different seeds. In a sound sharing each of these has a chance of at most 1/M to take
any stated value, where M is the number of values of a share, and has one law for all vectors.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc
from scipy.stats import poisson

from simulator.aggregation.transcript import Sharing
from simulator.kits.findings import Findings
from simulator.kits.mechanisms.bounds import pairs_apart

ENTRIES, DEVICES, CALLS = 4, 1_000, 3
SUBSETS = 20
LARGE = 10**6
"""A large entry: a sum of shares must hold the count of a city's devices, so every sharing can hold it."""
FEW_REPEATS = 0.1
"""Greatest expected number of repeated words for which repetitions are counted."""
BITS, BINS = 8, 8
LIMITS = (
    f"Not seen: pads drawn from more than about {10 * LARGE:,} values but not all; relations of more than two words "
    "other than sums over servers and what `join` makes of them; leaks of fewer than 1 report in 1,000; pads that "
    "repeat after more devices or queries than were drawn"
)

Words = NDArray[np.uint64]


def check_too_few_shares(sharing: Sharing, findings: Findings, *, rng: np.random.Generator, level: float) -> None:
    """Expect no repetition among the words of t − 1 servers, and no law that depends on the vectors.

    Parameters
    ----------
    sharing
        The sharing, whose `split` returns words of the right shape.
    findings
        Where faults are recorded, and in its figures the number of comparisons.
    rng
        Generator of the seeds and of the choice of servers.
    level
        Greatest probability that a sound sharing fails.
    """
    few, devices = sharing.needed - 1, np.arange(DEVICES)[:, np.newaxis]
    if not few:
        findings.note("one share suffices to read a report, so nothing is claimed of fewer")
        return
    ramp = np.arange(ENTRIES)
    vectors = {
        "of zeros": 0 * ramp,
        "(1, 0, 0, 0)": (ramp == 0) * 1,
        "(0, 1, 2, 3)": ramp,
        "of −1": 0 * ramp - 1,
        f"of {LARGE:,}": 0 * ramp + LARGE,
        # Neighbours differ, so that pads that two devices share show.
        "of zeros and of ones by turns": devices % 2 + 0 * ramp,
    }
    seeds = rng.integers(0, 2**63, size=(len(vectors), CALLS))
    drawn = {
        kind: np.concatenate([_split(sharing, vector, seed) for seed in row])
        for (kind, vector), row in zip(vectors.items(), seeds, strict=True)
    }
    every = list(combinations(range(sharing.servers), few)) if sharing.servers <= SUBSETS else []
    if not 0 < len(every) <= SUBSETS:
        every = [tuple(sorted(rng.permutation(sharing.servers)[:few].tolist())) for _ in range(SUBSETS)]
    values = 1.0 + max(float(shares.max()) for shares in drawn.values())
    expected = (CALLS * DEVICES) ** 2 / 2 / values
    comparisons = len(every) * (2 * len(drawn) - 1) * sum(1 for _ in _views(sharing, drawn["of zeros"], every[0]))
    alpha = level / comparisons
    findings.figures["comparisons"] = comparisons
    least = int(poisson.isf(alpha, expected)) + 1
    if expected > FEW_REPEATS:
        findings.note(f"shares have only {values:,.0f} values: words that repeat are not counted")
    findings.note(LIMITS)
    for servers in every:
        numbers = " and ".join(str(server + 1) for server in servers)
        zeros = dict(_views(sharing, drawn["of zeros"], servers))
        for kind, shares in drawn.items():
            for name, seen in _views(sharing, shares, servers):
                _, often = np.unique(seen, return_counts=True)
                repeats = int((often * (often - 1) // 2).sum())
                if expected <= FEW_REPEATS and repeats >= least:
                    what = f"{name} of server {numbers} repeats in {repeats:,} pairs of {len(seen):,} reports"
                    findings.fault(f"{what}, all {kind}, though {sharing.needed} shares are needed to learn anything")
                    return
                if kind != "of zeros" and _distinct(zeros[name], seen, alpha):
                    what = f"{name} of server {numbers} is distributed otherwise for vectors {kind} than of zeros"
                    findings.fault(f"{what}: {few} shares depend on the report, and {sharing.needed} are needed")
                    return


def _split(sharing: Sharing, vector: NDArray[np.int64], seed: int) -> Words:
    """Return the shares of the vectors of all devices of one call, (devices, servers, entries)."""
    vectors = np.ascontiguousarray(np.broadcast_to(vector, (DEVICES, ENTRIES)), dtype=np.int64)
    return sharing.split(vectors, rng=np.random.default_rng(seed)).swapaxes(0, 1)


def _views(sharing: Sharing, shares: Words, servers: tuple[int, ...]) -> Iterator[tuple[str, Words]]:
    """Yield the words that a coalition holds of each report, and what it can compute from two or from all of them.

    `shares` are the shares of the reports of all calls, (reports, servers, entries); what is yielded is (reports,).
    """
    held = shares[:, list(servers)]
    names = [f"entry {entry + 1} at server {server + 1}" for server in servers for entry in range(ENTRIES)]
    columns = dict(zip(names, held.reshape(len(held), -1).T, strict=True))
    yield from columns.items()
    for (left_name, first), (right_name, second) in combinations(columns.items(), 2):
        yield from _related(first, second, left_name, right_name)
    for lag, who in ((1, "the next device"), (DEVICES // 2 - 1, "another device"), (DEVICES, "another query")):
        for name, column in columns.items():
            # Every report is in one pair, since a report in two pairs would count twice.
            yield from _related(*pairs_apart(column, lag), name, f"that of {who}")
    joined = sharing.join(np.ascontiguousarray(held.swapaxes(0, 1)), np.array(servers) + 1)
    for entry in range(ENTRIES):
        yield f"what join gives for entry {entry + 1}", np.asarray(joined)[:, entry].astype(np.int64).view(np.uint64)
        yield f"the sum of entry {entry + 1}", held[:, :, entry].sum(axis=1, dtype=np.uint64)
        yield f"the xor of entry {entry + 1}", np.bitwise_xor.reduce(held[:, :, entry], axis=1)


def _related(one: Words, other: Words, name: str, other_name: str) -> Iterator[tuple[str, Words]]:
    """Yield what two words of each report give together."""
    yield f"{name} minus {other_name}", one - other
    yield f"{name} plus {other_name}", one + other
    yield f"{name} xor {other_name}", one ^ other


def _distinct(one: Words, other: Words, alpha: float) -> bool:
    """Return whether two samples differ in distribution: in their lowest bits, or in bins of equal shares."""
    edges = np.quantile(np.concatenate([one, other]).astype(np.float64), np.arange(1, BINS) / BINS)
    places: list[list[Any]] = [
        [sample % BITS for sample in (one, other)],
        [np.searchsorted(edges, sample.astype(np.float64)) for sample in (one, other)],
    ]
    for pair in places:
        seen = np.stack([np.bincount(place.astype(np.int64), minlength=BINS) for place in pair])
        seen = seen[:, seen.any(axis=0)]
        expected = np.outer(seen.sum(axis=1), seen.sum(axis=0)) / seen.sum()
        if chdtrc(seen.shape[1] - 1, ((seen - expected) ** 2 / expected).sum()) < alpha / 2:
            return True
    return False
