"""All reports that a device can send, with their probabilities, for mechanisms with few of them."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.inference.direct_encoding import OwnValueLaw
from mechanisms.inference.likelihood import report_law
from mechanisms.inference.subset import SupportLaw, in_set
from mechanisms.inference.unary import CellLaw
from mechanisms.local.hadamard_response import HadamardResponse
from mechanisms.local.sampling_privacy import SamplingPrivacy
from mechanisms.local.subset_selection import SubsetSelection

# With more outcomes the reports of two devices have too many combinations (`crowd`).
MOST_OUTCOMES = 256


@dataclass(frozen=True, eq=False)
class ReportOutcomes:
    """The reports that a device can send in all rounds of a query.

    Parameters
    ----------
    masses : (V + 1, outcomes) float64
        Probability of each outcome given each truth.
    encodings : tuple of (outcomes, *tally_shape) int64
        By round: the encoding of the report.
    """

    masses: NDArray[np.float64]
    encodings: tuple[NDArray[np.int64], ...]


def report_outcomes(mechanism: Any) -> ReportOutcomes | None:
    """Return the outcomes of a mechanism; None if they are too many, or not known.

    Not known are those of users' own mechanisms, of hashing and of Laplace shares.
    """
    law, cells = report_law(mechanism), int(mechanism.cells)
    one_hot = np.eye(cells + 1, dtype=np.int64)
    if isinstance(law, OwnValueLaw) and isinstance(mechanism, SamplingPrivacy):
        pairs = dict(_sampling_pairs(mechanism))
        first, second = np.array(list(pairs)).T
        return ReportOutcomes(np.array(list(pairs.values())).T, (one_hot[first], one_hot[second]))
    if isinstance(law, OwnValueLaw):
        return ReportOutcomes(law.masses + law.sampling * np.eye(cells + 1), (one_hot,))
    if isinstance(law, CellLaw) and len(law.yes) ** cells <= MOST_OUTCOMES:
        codes = np.array(list(itertools.product(range(len(law.yes)), repeat=cells)), dtype=np.int64)
        masses = np.array([np.prod(np.where(_at(cells, truth), law.yes[codes], law.no[codes]), axis=1)
                           for truth in range(cells + 1)])  # fmt: skip
        codes, masses = codes[masses.any(axis=0)], masses[:, masses.any(axis=0)]
        digits = np.unravel_index(codes, law.outputs)
        encodings = [np.eye(outputs, dtype=np.int64)[digit] for digit, outputs in zip(digits, law.outputs, strict=True)]
        return ReportOutcomes(masses, tuple(encodings))
    if isinstance(law, SupportLaw) and isinstance(mechanism, SubsetSelection):
        size = int(mechanism.size or 1)
        support = np.array([one_hot[list(chosen)].sum(axis=0)
                            for chosen in itertools.combinations(range(cells + 1), size)])  # fmt: skip
        weights = np.where(support.T == 1, np.exp(law.epsilon), 1.0)
        return ReportOutcomes(weights / weights.sum(axis=1, keepdims=True), (support,))
    if isinstance(law, SupportLaw) and isinstance(mechanism, HadamardResponse):
        outputs = np.arange(mechanism.outputs)
        weights = np.where(in_set(outputs, np.arange(cells + 1)[:, np.newaxis]), np.exp(law.epsilon), 1.0)
        return ReportOutcomes(weights / weights.sum(axis=1, keepdims=True), (np.eye(len(outputs), dtype=np.int64),))
    return None


def _at(cells: int, truth: int) -> NDArray[np.bool_]:
    """Return which cell a device is in, (cells,) bool; none if it is outside, 0."""
    return np.asarray(np.arange(1, cells + 1) == truth)


def _sampling_pairs(mechanism: SamplingPrivacy) -> Iterator[tuple[tuple[int, int], NDArray[np.float64]]]:
    """Yield each pair of reports of Sampling Privacy, and its probability given each truth, (V + 1,) (SP eqs 12-16)."""
    blanks, sampling, refresh = mechanism.blanks, mechanism.sampling, mechanism.refresh
    joint = (1.0 - refresh) * np.diag(blanks) + refresh * np.outer(blanks, mechanism.redrawn)
    for first, second in np.ndindex(joint.shape):
        masses = np.full(len(blanks), joint[first, second])
        if first == 0:
            masses[second] += sampling
        if masses.any():
            yield (first, second), masses
