"""What sums of many devices' reports reveal about one of them: report laws tilted to the sums.

The posterior of a device in a crowd is q_t Σ P(o | t)·G(s − o) over its outcomes o that agree with what is linked to
it, where s is the sum of all devices' reports and G the law of the others' sum; `crowd` computes it exactly for a few
devices. In a large crowd G(s − o) is nearly proportional to a product of one factor for each round's report. The
factors are found by matching the margins of one round after the other (iterative proportional fitting, Deming and
Stephan 1940); they are those with which the expected sums equal s. The relative error of a posterior is of the order of
1/n. For Sampling Privacy without refresh the sums determine how often each pair of reports occurred, so that the limit
of the iteration is exact.

A guess is no claim: where the factors are only nearly right, it succeeds slightly less often than the best one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from mechanisms.compiled import Floats, Integers, Mask
from mechanisms.inference.laws import CellLaw, OwnValueLaw, SupportLaw
from mechanisms.inference.likelihood import report_law
from mechanisms.inference.report_law import INVALID, Logs, read_answers, read_values
from mechanisms.local.local_hashing import LocalHashing
from mechanisms.local.sampling_privacy import SamplingPrivacy
from mechanisms.local.subset_selection import SubsetSelection

STEPS = 300
"""Number of times that the margins are matched."""
CERTAIN = 1e3
"""Log ratio that stands for +∞."""
LEAST_SHARE = 1e-9
"""Stands for the share of devices that were sampled in a cell if there are none."""
ROUNDING = 1e-13
"""Sums of the same probabilities differ by at most this, relatively, from rounding."""


class CrowdLaw(Protocol):
    """The law of some of a device's reports, given sums of the reports of all devices."""

    def logs(self, reports: Mapping[int, Any]) -> Logs:
        """Return log P(linked reports, by round, and sums | truth) up to a constant per row, (n, V + 1).

        Without linked reports there is one row, for any device.
        """


def crowd_law(mechanism: Any, prior: Floats, sums: Mapping[int, Integers], devices: int) -> CrowdLaw | None:
    """Return the law given the sums of some rounds' reports of some devices; None if none is known.

    Parameters
    ----------
    mechanism : LocalMechanism
    prior : (V + 1,) float64
    sums : by round, (*tally_shape,) int64
    devices : int
        n, whose reports of every round are in the sums.
    """
    rounds = tuple(sorted(sums))
    law = report_law(mechanism, rounds)
    if isinstance(law, OwnValueLaw) and len(rounds) == 2:
        return TiltedPairs.of_sums(mechanism, prior, sums[1] / devices, sums[2] / devices)
    if isinstance(law, CellLaw):
        return TiltedCells.of_sums(law, rounds, prior, [sums[round_] / devices for round_ in rounds])
    if isinstance(law, SupportLaw) and isinstance(mechanism, SubsetSelection | LocalHashing):
        shares = np.clip(sums[1] / devices, 0.0, 1.0)
        yes, no = mechanism.true_yes, mechanism.false_yes
        mixed = prior * yes + (1.0 - prior) * no
        with np.errstate(divide="ignore"):
            return _SupportSums(np.log(yes * shares / mixed + (1.0 - yes) * (1.0 - shares) / (1.0 - mixed)))
    return None


@dataclass(frozen=True, eq=False)
class _SupportSums:
    """The law given how many reports support each symbol; each symbol's number is used alone."""

    anyone: Floats

    def logs(self, reports: Mapping[int, Any]) -> Logs:  # noqa: ARG002 - the signature of all crowd laws
        """Return the logarithms for a device without linked reports, (1, V + 1)."""
        return self.anyone[np.newaxis]


@dataclass(frozen=True, eq=False)
class TiltedPairs:
    """The law of Sampling Privacy's reports, with or without refresh, given the sums of both rounds.

    Parameters
    ----------
    mechanism : SamplingPrivacy
    prior : (V + 1,) float64
    first, second : (V + 1,) float64
        The factors of the reports of rounds one and two.
    """

    mechanism: SamplingPrivacy
    prior: Floats
    first: Floats
    second: Floats

    @classmethod
    def of_sums(cls, mechanism: SamplingPrivacy, prior: Floats, first: Floats, second: Floats) -> "TiltedPairs":
        """Return the law given the shares of the devices that reported each value, (V + 1,) by round."""
        law = cls(mechanism, prior, np.ones_like(prior), np.ones_like(prior))
        for _ in range(STEPS):
            rows = law.blanks_then
            rows[0] += mechanism.sampling * float((prior * law.second).sum())
            law = replace(law, first=_ratio(first, rows))
            columns = law.then_blanks + mechanism.sampling * law.first[0] * prior
            law = replace(law, second=_ratio(second, columns))
        return law

    @classmethod
    def of_differences(
        cls, mechanism: SamplingPrivacy, prior: Floats, differences: Floats, shown: Mask
    ) -> "TiltedPairs":
        """Return the law without refresh, given the shares of devices sampled in each cell, (V,), where they are shown.

        A pair of reports (w, v) adds 1 to the difference of v and takes 1 from the difference of w. So the two factors
        of a value are reciprocal, and a blank, which is sent twice, has factor 1.
        """
        expected = mechanism.sampling * np.where(shown, prior[1:], 0.0)
        seen = np.where(shown, np.maximum(differences, LEAST_SHARE), 0.0)
        others = max(1.0 - float(seen.sum()), LEAST_SHARE) / (1.0 - float(expected.sum()))
        second = np.ones_like(prior)
        second[1:] = np.where(expected > 0.0, _ratio(seen, expected) / others, 1.0)
        return cls(mechanism, prior, 1.0 / second, second)

    @property
    def blanks_then(self) -> Floats:
        """Tilted mass of each first blank with any second report, without the factor of the first, (V + 1,)."""
        blanks, refresh = self.mechanism.blanks, self.mechanism.refresh
        return blanks * ((1.0 - refresh) * self.second + refresh * float((self.mechanism.redrawn * self.second).sum()))

    @property
    def then_blanks(self) -> Floats:
        """Tilted mass of each second blank with any first report, without the factor of the second, (V + 1,)."""
        blanks, refresh, again = self.mechanism.blanks, self.mechanism.refresh, self.mechanism.redrawn
        return (1.0 - refresh) * blanks * self.first + refresh * again * float((blanks * self.first).sum())

    def logs(self, reports: Mapping[int, Any]) -> Logs:
        """Return the logarithms from one round's reports, or from none."""
        sampling, outputs = self.mechanism.sampling, len(self.prior)
        if not reports:
            blank = float((self.first * self.blanks_then).sum())
            weights = (sampling * self.first[0] * self.second + blank)[np.newaxis]
        else:
            ((round_, report),) = reports.items()
            values = read_values(report, outputs=outputs)
            reported = np.maximum(values, 0)
            blank_masses = self.blanks_then if round_ == 1 else self.then_blanks
            weights = np.repeat(blank_masses[reported][:, np.newaxis], outputs, axis=1)
            if round_ == 1:
                weights[reported == 0] += sampling * self.second
            else:
                weights[np.arange(len(reported)), reported] += sampling * self.first[0]
            weights[values == INVALID] = 0.0
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(weights))


def _ratio(above: Floats, below: Floats) -> Floats:
    """Return the quotient, 0 where the divisor is 0."""
    return np.divide(above, below, out=np.zeros_like(below), where=below > 0.0)


@dataclass(frozen=True, eq=False)
class TiltedCells:
    """The law of answers about each cell, given how often each answer was given in each round about each cell.

    Parameters
    ----------
    law : CellLaw
    rounds : tuple of int
        The rounds of the law, ascending.
    factors : (rounds, V, codes) float64
        By round and cell, the factor of each combination of answers.
    """

    law: CellLaw
    rounds: tuple[int, ...]
    factors: Floats

    @classmethod
    def of_sums(cls, law: CellLaw, rounds: tuple[int, ...], prior: Floats, shares: Sequence[Floats]) -> "TiltedCells":
        """Return the law given the shares of the devices that gave each answer, (V, outputs) by round."""
        digits = np.unravel_index(np.arange(len(law.yes)), law.outputs)
        inside = prior[1:, np.newaxis]
        mixed = inside * law.yes + (1.0 - inside) * law.no
        factors = np.ones((len(shares), *mixed.shape))
        for _ in range(STEPS if len(shares) > 1 else 1):
            for round_, (share, digit) in enumerate(zip(shares, digits, strict=True)):
                table = mixed * factors.prod(axis=0)
                sums = np.stack([table[:, digit == output].sum(axis=1) for output in range(share.shape[1])], axis=1)
                factors[round_] *= _ratio(share, sums)[:, digit]
        return cls(law, rounds, factors)

    def logs(self, reports: Mapping[int, Any]) -> Logs:
        """Return the log ratio of "in the cell" to "not in it" for each cell, from the answers of some rounds."""
        unseen = [row for row, round_ in enumerate(self.rounds) if round_ not in reports]
        tilt = self.factors[unseen].prod(axis=0)
        digits = np.unravel_index(np.arange(len(self.law.yes)), self.law.outputs)
        cells = len(tilt)
        codes, places = np.zeros(len(self.law.yes), dtype=np.int64), np.zeros((1, cells), dtype=np.int64)
        broken = np.zeros(1, dtype=np.bool_)
        for round_, size, digit in zip(self.rounds, self.law.outputs, digits, strict=True):
            if round_ in reports:
                answers = read_answers(reports[round_], cells=cells, outputs=size)
                broken = broken | (answers == INVALID).any(axis=1)
                codes, places = codes * size + digit, places * size + np.maximum(answers, 0)
        given = (codes[:, np.newaxis] == np.arange(codes.max() + 1)).astype(np.float64)
        yes, no = ((law * tilt) @ given for law in (self.law.yes, self.law.no))
        with np.errstate(divide="ignore", invalid="ignore"):
            different = ~np.isclose(yes, no, rtol=ROUNDING, atol=0.0)
            ratio = np.minimum(np.where(different, np.log(yes) - np.log(no), 0.0), CERTAIN)
        logs = np.zeros((len(places), cells + 1))
        logs[:, 1:] = ratio[np.arange(cells), places]
        logs[broken] = -np.inf
        return logs
