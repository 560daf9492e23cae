"""sp-fig4 to sp-fig7: breast cancer recurrences by tumour size and age, among 286 and among 10,000 asked.

The marginals are counted from the UCI data set "Breast Cancer" (M. Zwitter, M. Soklic, University Medical Centre,
Institute of Oncology, Ljubljana): 286 patients, 85 recurrences. SP's Fig 6 states the same recurrences by tumour
size.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from simulator.reproduction.entry import Curve, Drawing, Entry, Reproduction, Row
from simulator.reproduction.monte_carlo import rmse_interval, simulate_errors
from simulator.reproduction.sampling_privacy.protocols import (
    FAIR_Z,
    FIRST_COIN,
    RR_Z,
    SAMPLING,
    SP_Z,
    crossover,
    randomized_response,
    sampling_privacy,
    with_outside,
)
from simulator.streams import Streams


@dataclass(frozen=True)
class Bars:
    """The bars of one figure.

    Parameters
    ----------
    devices : int
        Number of devices asked, N.
    truth : (groups,) int64
    sampling_error, response_error : (groups,) float64
        Standard errors of Sampling Privacy at π_s = .45 and of randomized response at .8/.2.
    """

    devices: int
    truth: NDArray[np.int64]
    sampling_error: NDArray[np.float64]
    response_error: NDArray[np.float64]

    def sampling(self, z: float = SP_Z) -> NDArray[np.int64]:
        """Return Sampling Privacy's bars, (groups,): ⌊Y + z·σ⌋, as Fig 6 states them with z = 2."""
        return floor(self.truth + z * self.sampling_error)

    def response(self, z: float = RR_Z) -> NDArray[np.int64]:
        """Return randomized response's bars, (groups,): ⌊Y + z·σ⌋, as Fig 6 states them with z = 2.576."""
        return floor(self.truth + z * self.response_error)


def floor(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Round down, with a tolerance for whole numbers that floating-point error made slightly smaller."""
    return np.floor(values + 1e-9).astype(np.int64)


def bars_of(truth: tuple[int, ...], devices: int) -> Bars:
    """Compute the bars of a question asked of a number of devices; devices in no group are outside."""
    counts = with_outside(truth, devices)
    return Bars(
        devices,
        counts[1:],
        sampling_privacy(len(truth)).std_error(counts),
        randomized_response(len(truth)).std_error(counts),
    )


def sampling_coverage(truth: int, bound: float) -> float:
    """Return the exact probability that Bin(Y, π_s)/π_s, Sampling Privacy's estimate, is within a bound of Y."""
    from scipy.stats import binom  # noqa: PLC0415  imports wait until needed

    sampled = np.arange(truth + 1)
    near = np.abs(sampled / SAMPLING - truth) <= bound + 1e-9
    return float(binom.pmf(sampled, truth, SAMPLING)[near].sum())


def response_coverage(truth: int, devices: int, bound: float) -> float:
    """Return the exact probability that randomized response's estimate of Y is within a bound of it.

    The count of Yes is Bin(Y, p₁) + Bin(N − Y, p₀), whose distribution is a convolution.
    """
    from scipy.stats import binom  # noqa: PLC0415  imports wait until needed

    response = randomized_response(1)
    inside = binom.pmf(np.arange(truth + 1), truth, response.true_yes)
    outside = binom.pmf(np.arange(devices - truth + 1), devices - truth, response.false_yes)
    law = np.convolve(inside, outside)
    estimate = (np.arange(devices + 1) - response.false_yes * devices) / FIRST_COIN
    return math.fsum(law[np.abs(estimate - truth) <= bound + 1e-9])


PATIENTS, SCALED = 286, 10_000


@dataclass(frozen=True)
class Marginal:
    """Numbers of patients by the groups of one attribute, numbered from 1 as in SP sec 5.1.

    Parameters
    ----------
    attribute, unit : str
        The attribute, and its unit.
    groups : tuple of str
        Names of the groups, up to the last group that is not empty.
    recurrences, patients : tuple of int
        Number in each group: of the 85 recurrences, and of all 286 patients.
    """

    attribute: str
    unit: str
    groups: tuple[str, ...]
    recurrences: tuple[int, ...]
    patients: tuple[int, ...]


TUMOUR_SIZE = Marginal(
    "tumour size",
    "mm",
    ("0-4", "5-9", "10-14", "15-19", "20-24", "25-29", "30-34", "35-39", "40-44", "45-49", "50-54"),
    (1, 0, 1, 7, 16, 18, 25, 7, 6, 1, 3),
    (8, 4, 28, 30, 50, 54, 60, 19, 22, 3, 8),
)
AGE = Marginal(
    "age",
    "years",
    ("10-19", "20-29", "30-39", "40-49", "50-59", "60-69", "70-79"),
    (0, 0, 15, 27, 25, 17, 1),
    (0, 1, 36, 90, 96, 57, 6),
)

PRINTED_TRUTH = (1, 0, 1, 7, 16, 18, 25, 7, 6, 1, 3)
PRINTED_SAMPLING = (3, 0, 3, 12, 24, 27, 36, 12, 11, 3, 6)
PRINTED_RESPONSE = (64, 63, 64, 70, 79, 81, 88, 70, 69, 64, 66)
LEVEL, REPEATS = 0.95, 1000
CONSTANT = (
    "“Randomized Response quickly grows in absolute error due to the sampling error while Sampling Privacy maintains "
    "constant error”"
)


def reproduce_figure(marginal: Marginal, devices: int, name: str, *, seed: int) -> Reproduction:
    """Compute a figure whose bars the text does not state (Figs 4, 5 and 7), by the same formula as Fig 6."""
    bars = bars_of(marginal.recurrences, devices)
    note = "the text prints no number of this figure; ⌊Y + 2 σ⌋, as Fig 6's bars are"
    rows = _growth(marginal) if devices == SCALED else []
    rows += _simulated(bars, marginal, name, seed)
    for i, group in enumerate(_names(marginal)):
        rows += [
            Row(f"{group}: truth", None, int(bars.truth[i]), None, "counted in the data set, among the 85 recurrences"),
            Row(f"{group}: Sampling Privacy's bar", None, int(bars.sampling()[i]), None, note),
            Row(
                f"{group}: randomized response's bar",
                None,
                int(bars.response()[i]),
                None,
                note.replace("2 σ", "2.576 σ"),
            ),
        ]
    return Reproduction(
        rows=rows, drawings=[_drawing(bars, marginal), _common(bars, marginal)], findings=_findings(bars)
    )


def reproduce_printed(*, seed: int) -> Reproduction:
    """Compute Fig 6, which the paper states in full: 11 truths and 22 bars."""
    bars = bars_of(TUMOUR_SIZE.recurrences, SCALED)
    exactly, rows = "to every digit", []
    for i, group in enumerate(_names(TUMOUR_SIZE)):
        for what, printed, found in (
            ("truth", PRINTED_TRUTH[i], bars.truth[i]),
            (f"Sampling Privacy, ⌊Y + {SP_Z:g} σ⌋", PRINTED_SAMPLING[i], bars.sampling()[i]),
            (f"randomized response, ⌊Y + {RR_Z:g} σ⌋", PRINTED_RESPONSE[i], bars.response()[i]),
        ):
            rows.append(Row(f"{group}: {what}", printed, int(found), bool(found == printed), exactly))
    one_level = (
        ("Sampling Privacy's bars with 2.576 σ too", PRINTED_SAMPLING, bars.sampling(RR_Z)),
        ("randomized response's bars with 2 σ too", PRINTED_RESPONSE, bars.response(SP_Z)),
    )
    for what, drawn, computed in one_level:
        rows.append(
            Row(
                f"{what}, group 7",
                drawn[6],
                int(computed[6]),
                bool(computed[6] == drawn[6]),
                f"at one level for both, groups 1 to 11: {' '.join(map(str, computed))}",
            )
        )
    rows += [*_coverage(bars), *_growth(TUMOUR_SIZE), *_simulated(bars, TUMOUR_SIZE, "sp-fig6", seed)]
    groups = _names(TUMOUR_SIZE)
    drawing = Drawing(
        f"Bars as printed, and computed ({SCALED:,} asked)",
        "group: tumour size, mm",
        "afflicted, at most",
        [
            Curve("Sampling Privacy", groups, list(PRINTED_SAMPLING), "points", published=True),
            Curve("randomized response", groups, list(PRINTED_RESPONSE), "points", published=True),
            Curve("truth", groups, list(PRINTED_TRUTH), "points", published=True),
            Curve("Sampling Privacy, 2 σ", groups, bars.sampling().tolist(), "bars"),
            Curve("randomized response, 2.576 σ", groups, bars.response().tolist(), "bars"),
            Curve("truth", groups, bars.truth.tolist(), "bars"),
        ],
    )
    ratio = bars.response_error[6] / bars.sampling_error[6]
    findings = [
        (
            f"All 22 bars come out to the digit as ⌊Y + z·σ⌋, but with z = {SP_Z:g} for Sampling Privacy and z = "
            f"{RR_Z:g} for randomized response, both called a 95 % bound. At one level, 2 σ, randomized response's "
            f"bars are {int(bars.response(SP_Z).min())} to {int(bars.response(SP_Z).max())}, not "
            f"{min(PRINTED_RESPONSE)} to {max(PRINTED_RESPONSE)}; in group 7 its error is {ratio:.1f} times Sampling "
            f"Privacy's, not the {ratio * RR_Z / SP_Z:.1f} drawn."
        ),
        *_findings(bars),
    ]
    return Reproduction(rows=rows, drawings=[drawing, _common(bars, TUMOUR_SIZE)], findings=findings)


def _names(marginal: Marginal) -> list[str]:
    return [f"{number}: {group}" for number, group in enumerate(marginal.groups, start=1)]


def _coverage(bars: Bars) -> list[Row]:
    """Return rows of the exact coverage of the bars, the mean over the groups that are not empty."""
    held = [(int(y), i) for i, y in enumerate(bars.truth) if y > 0]
    sampling = [sampling_coverage(y, SP_Z * bars.sampling_error[i]) for y, i in held]
    response = [response_coverage(y, bars.devices, RR_Z * bars.response_error[i]) for y, i in held]
    rows = []
    for name, shares in ((f"Sampling Privacy, {SP_Z:g} σ", sampling), (f"randomized response, {RR_Z:g} σ", response)):
        mean = float(np.mean(shares))
        agrees = round(mean, 2) == LEVEL
        note = (
            f"“95 % confidence bound”; exact, mean of the groups with anybody in them ({min(shares):.3f} to "
            f"{max(shares):.3f})"
        )
        rows.append(Row(f"estimates within the bar: {name}", LEVEL, mean, agrees, note))
    return rows


def _growth(marginal: Marginal) -> list[Row]:
    """Return the text's conclusion on how each error grows from 286 devices asked to 10,000."""
    small, large = bars_of(marginal.recurrences, PATIENTS), bars_of(marginal.recurrences, SCALED)
    top = int(np.argmax(small.truth))
    constant = float(large.sampling_error[top] / small.sampling_error[top])
    grown = float(large.response_error[top] / small.response_error[top])
    where = f"σ at 10,000 asked over σ at 286, group {top + 1}"
    return [
        Row(f"Sampling Privacy: {where}", 1, constant, abs(constant - 1.0) < 1e-12, CONSTANT),
        Row(f"randomized response: {where}", "above 1", grown, grown > 1.0, CONSTANT),
    ]


def _simulated(bars: Bars, marginal: Marginal, name: str, seed: int) -> list[Row]:
    truth, top = with_outside(bars.truth, bars.devices), int(np.argmax(bars.truth))
    cells, rows = len(bars.truth), []
    for words, mechanism, theory in (
        ("Sampling Privacy", sampling_privacy(cells), bars.sampling_error[top]),
        ("randomized response", randomized_response(cells), bars.response_error[top]),
    ):
        drawn = simulate_errors(mechanism, truth, repeats=REPEATS, rng=Streams(seed).of(name, words))
        found, low, high = rmse_interval(drawn[:, top])
        holds = "holds" if low <= theory <= high else "misses"
        note = f"{REPEATS:,} queries, interval {low:.2f} to {high:.2f}: {holds} theory's σ = {theory:.2f}"
        rows.append(
            Row(f"{words}: RMSE in group {top + 1} ({marginal.groups[top]}), simulated", None, found, None, note)
        )
    return rows


def _drawing(bars: Bars, marginal: Marginal) -> Drawing:
    groups = _names(marginal)
    return Drawing(
        f"Bars by the law of Fig 6: 2 σ and 2.576 σ ({bars.devices:,} asked)",
        f"group: {marginal.attribute}, {marginal.unit}",
        "afflicted, at most",
        [
            Curve("truth", groups, bars.truth.tolist(), "bars"),
            Curve("Sampling Privacy, 2 σ", groups, bars.sampling().tolist(), "bars"),
            Curve("randomized response, 2.576 σ", groups, bars.response().tolist(), "bars"),
        ],
    )


def _common(bars: Bars, marginal: Marginal) -> Drawing:
    groups = _names(marginal)

    def curve(name: str, error: Sequence[float]) -> Curve:
        bound = FAIR_Z * np.asarray(error)
        low, high = (bars.truth - bound).tolist(), (bars.truth + bound).tolist()
        return Curve(name, groups, bars.truth.tolist(), "points", low=low, high=high)

    return Drawing(
        f"At one level for both: 1.96 σ each way ({bars.devices:,} asked)",
        f"group: {marginal.attribute}, {marginal.unit}",
        "afflicted",
        [
            curve("randomized response", bars.response_error.tolist()),
            curve("Sampling Privacy", bars.sampling_error.tolist()),
        ],
    )


def _findings(bars: Bars) -> list[str]:
    better = [i + 1 for i in range(len(bars.truth)) if bars.response_error[i] < bars.sampling_error[i]]
    limit = crossover(bars.devices)
    if better:
        groups = ", ".join(map(str, better))
        first = (
            f"With {bars.devices:,} asked, randomized response is the more accurate wherever more than {limit:.1f} are "
            f"in a group: groups {groups}, which hold {sum(int(bars.truth[i - 1]) for i in better)} of the "
            f"{int(bars.truth.sum())}. Bars of 2 σ beside bars of 2.576 σ hide it"
            + ("." if (bars.sampling() <= bars.response()).all() else " only in part.")
        )
    else:
        first = (
            f"With {bars.devices:,} asked, Sampling Privacy is the more accurate in every group; randomized response "
            f"would be from {limit:.0f} in one group on."
        )
    top = int(np.argmax(bars.truth))
    return [
        first,
        (
            "Constant error is not small error: Sampling Privacy's 1.96 σ in the largest group is "
            f"{FAIR_Z * bars.sampling_error[top]:.1f} on a truth of {int(bars.truth[top])}."
        ),
        (
            "The counts are of the 85 recurrences, while the text speaks of 286 breast cancer patients and of 10,000 "
            "− 286 = 9,714 without cancer: the 201 patients without a recurrence answer No like everybody outside."
        ),
    ]


def _entry(name: str, marginal: Marginal, devices: int) -> Entry:
    title = f"Fig {name[-1]}: recurrences by {marginal.attribute}, {devices:,} asked"
    return Entry(name, "SP", title, partial(reproduce_figure, marginal, devices, name))


ENTRIES = (
    _entry("sp-fig4", TUMOUR_SIZE, PATIENTS),
    _entry("sp-fig5", AGE, PATIENTS),
    Entry(
        "sp-fig6", "SP", "Fig 6: recurrences by tumour size, 10,000 asked: all 22 bars as printed", reproduce_printed
    ),
    _entry("sp-fig7", AGE, SCALED),
)
