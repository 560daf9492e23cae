"""SP: J. Joy and M. Gerla, Differential Privacy By Sampling: standard deviations, error bounds and leakage.

The counts of Figs 4 to 7 come from the UCI data set "Breast Cancer" (M. Zwitter, M. Soklic, University Medical Centre,
Institute of Oncology, Ljubljana): 286 patients, 85 recurrences. SP's Fig 6 states the same recurrences by tumour size.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.stats import binom

from mechanisms.local import LocalMechanism, RandomizedResponse, SamplingPrivacy
from mechanisms.privacy import (
    LinkedReports,
    Report,
    printed_binary_leakage,
    printed_multi_value_leakage,
    printed_randomized_response_leakage,
)
from mechanisms.privacy.sampling_privacy_claims import round_two_claim
from simulator.pages.charts import Series
from simulator.pages.charts.styles import PUBLISHED
from simulator.papers.data import GOWALLA, locate, read_table
from simulator.papers.monte_carlo import one_cell, simulate_error, simulated_series, std_error
from simulator.papers.published_results import DataError, Reproduction
from simulator.streams import Streams

FIRST_COIN, SECOND_COIN = 0.8, 0.2
SAMPLING, SAMPLING_TWO = 0.45, 0.25
SP_Z, RR_Z = 2.0, 2.576
"""Standard deviations in the bars that Fig 6 states as 95 %: they differ between both, as all 22 bars show."""
FAIR_Z = 1.96


def sampling_privacy(cells: int, sampling: float = SAMPLING) -> SamplingPrivacy:
    """Return "H Privacy": Sampling Privacy with equal blanks, which the paper omits and errors do not depend on."""
    return SamplingPrivacy(cells=cells, sampling=sampling)


def randomized_response(cells: int) -> RandomizedResponse:
    """Return randomized response with coin probabilities .8 and .2."""
    return RandomizedResponse(cells=cells, first_coin=FIRST_COIN, second_coin=SECOND_COIN)


def with_outside(inside: ArrayLike, devices: int) -> NDArray[np.int64]:
    """Return (cells + 1,) counts: the devices outside every cell, then those in each."""
    counts = np.asarray(inside, dtype=np.int64)
    return np.concatenate([[devices - counts.sum()], counts])


def crossover(devices: int, sampling: float = SAMPLING) -> float:
    """Return the occupancy Y above which randomized response has the smaller standard error.

    Y(1 − π_s)/π_s = (Y·p₁(1 − p₁) + (N − Y)·p₀(1 − p₀))/π_1², solved for Y; infinite if there is none.
    """
    false_yes = (1.0 - FIRST_COIN) * SECOND_COIN
    true_yes = FIRST_COIN + false_yes
    noise = false_yes * (1.0 - false_yes)
    slope = FIRST_COIN**2 * (1.0 - sampling) / sampling - (true_yes * (1.0 - true_yes) - noise)
    return noise * devices / slope if slope > 0.0 else math.inf


INSIDE = 100
"""Vehicles in the cell whose standard deviation the paper's introduction states."""


def standard_deviation(results: Reproduction, seed: int) -> None:
    """Compute √((1 − .85)·.3·N), and the quantities it may denote, at N = 10⁴ and 10⁶ (SP sec 1)."""
    first_coin, printed_divisor, repeats = 0.85, 0.8, 2000
    response = RandomizedResponse(cells=1, first_coin=first_coin, second_coin=0.3)
    p1, p0 = response.true_yes, response.false_yes

    def count_error(devices: int) -> float:
        return math.sqrt(INSIDE * p1 * (1 - p1) + (devices - INSIDE) * p0 * (1 - p0))

    populations = [int(devices) for devices in results.entry.numbers["devices"]]
    simulated = [
        simulate_error(response, one_cell(INSIDE, n), repeats=repeats, rng=Streams(seed).of("sp-sec1-sigma", n))
        for n in populations
    ]
    for devices, printed, error in zip(populations, results.entry.printed["sigma"], simulated, strict=True):
        results.add_row("formula", math.sqrt(p0 * devices), printed=printed, devices=devices)
        results.add_row("count", count_error(devices), printed=printed, devices=devices)
        results.add_row("estimate", error.theory, printed=printed, devices=devices)
        results.add_row("simulated", error.rmse, devices=devices, found=error)
    truthful, asked = 60, 100
    surplus = truthful * p1 + (asked - truthful) * p0 - p0 * asked
    estimate = surplus / printed_divisor
    results.add_row("divisor", first_coin)
    results.add_row("footnote", estimate, factor=first_coin / printed_divisor, unbiased=surplus / first_coin)
    drawn = [10**power for power in (3, 4, 5, 6, 7)]
    constant = std_error(SamplingPrivacy(cells=1, sampling=SAMPLING), INSIDE, 10_000)
    printed_sigma = [float(text) for text in results.entry.printed["sigma"]]
    curves = [
        Series("√((1−.85)·.3·N)", populations, printed_sigma, "points", style=PUBLISHED),
        Series("σ of the count", drawn, [count_error(n) for n in drawn]),
        Series("σ of the estimate", drawn, [std_error(response, INSIDE, n) for n in drawn]),
        Series("Sampling Privacy, π_s = .45", drawn, [constant] * len(drawn)),
        simulated_series("RMSE of the estimate", populations, simulated),
    ]
    results.add_panel("errors", curves)
    results.add_findings(
        "formula",
        "divisor",
        "total",
        counts=[count_error(n) for n in populations],
        errors=[error.theory for error in simulated],
        understated=1 - 212 / std_error(response, INSIDE, 1_000_000),
        estimate=estimate,
    )


def discretisation(results: Reproduction, _seed: int) -> None:
    """Check the arithmetic of SP sec 4: identifiers, sections and square miles."""
    identifiers, side, section = 2**32, 9_500, 0.15
    sections = (side / section) ** 2
    results.add_row("identifiers", identifiers)
    results.add_row("sections", sections)
    results.add_row("area", float(side**2))
    for city, miles in zip(results.entry.printed["cities"], results.entry.numbers["square_miles"], strict=True):
        results.add_row("city", round(miles / section**2), city=city, miles=miles)
    results.add_findings("spare", spare=1 - sections / identifiers)


MILLION, PLACES = 1_000_000, 4


@dataclass(frozen=True)
class CheckIns:
    """The values that Fig 2 needs from the data.

    Parameters
    ----------
    total : int
        Number of check-ins in New York City.
    places : tuple of int
        Location ids of the busiest places.
    counts, users : (places,) int64
        Number of check-ins at each place, and of people who made them.
    most : int
        The largest number of check-ins of one person at one of these places.
    """

    total: int
    places: tuple[int, ...]
    counts: NDArray[np.int64]
    users: NDArray[np.int64]
    most: int


def read_check_ins() -> CheckIns:
    """Read the check-ins and find the busiest places.

    Raises
    ------
    DataError
        If the file is missing or malformed.
    """
    columns = ("user", "time", "latitude", "longitude", "place")
    table = read_table(
        GOWALLA, columns=columns, header=False, separator="\t", dtype={"user": "int64", "place": "int64"}
    )
    busiest = table["place"].value_counts().sort_index().sort_values(ascending=False, kind="stable").head(PLACES)
    if len(busiest) < PLACES or table["place"].isna().any():
        raise DataError(f"{locate(GOWALLA)} names {len(busiest)} places; the figure needs {PLACES}.")
    chosen = table[table["place"].isin(busiest.index)]
    visits = chosen.groupby(["place", "user"]).size()
    return CheckIns(
        total=len(table),
        places=tuple(int(place) for place in busiest.index),
        counts=np.array(busiest.to_list(), dtype=np.int64),
        users=np.array([len(visits.loc[place]) for place in busiest.index], dtype=np.int64),
        most=int(visits.max()),
    )


PROTOCOLS: dict[str, LocalMechanism] = {
    "Sampling Privacy, π_s = .45": sampling_privacy(PLACES),
    "Sampling Privacy, π_s = .25": sampling_privacy(PLACES, SAMPLING_TWO),
    "randomized response, .8/.2": randomized_response(PLACES),
}


def error_ratios(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the ratio of randomized response's σ to Sampling Privacy's, (2, places): π_s = .45, then .25."""
    truth = with_outside(counts, MILLION)
    first, second, response = (mechanism.std_error(truth) for mechanism in PROTOCOLS.values())
    return response / np.stack([first, second])


def check_ins(results: Reproduction, seed: int) -> None:
    """Compare the error bounds at the four busiest places of New York City (SP Fig 2, sec 5.1)."""
    observed = read_check_ins()
    scaled = np.rint(observed.counts * (MILLION / observed.total)).astype(np.int64)
    fair, uneven, unscaled = error_ratios(scaled), error_ratios(scaled) * RR_Z / SP_Z, error_ratios(observed.counts)
    results.add_row("total", observed.total)
    for bars, ratios in (("both bars 1.96 σ", fair), ("bars of 2 σ and 2.576 σ, as in Fig 6", uneven)):
        results.add_row("lowest", ratios.min(), bars=bars, low=ratios.min(), high=ratios.max())
        results.add_row("highest", ratios.max(), bars=bars, low=ratios.min(), high=ratios.max())
    results.add_row("lowest_unscaled", unscaled.min())
    results.add_row("highest_unscaled", unscaled.max())
    truth = with_outside(scaled, MILLION)
    names = [f"location {place}" for place in observed.places]
    bars_drawn = [Series("truth", names, scaled, "bars")]
    for name, mechanism in PROTOCOLS.items():
        error = simulate_error(mechanism, truth, repeats=500, rng=Streams(seed).of("sp-fig2", name))
        results.add_row("simulated", error.rmse, name=name, found=error)
        reach = FAIR_Z * mechanism.std_error(truth)
        bars_drawn.append(Series(name, names, scaled, "bars", low=scaled - reach, high=scaled + reach))
    results.add_panel("check_ins", bars_drawn)
    limits = [
        Series("1.6, “lowest”", names, [1.6] * PLACES, style=PUBLISHED),
        Series("3.5, “highest”", names, [3.5] * PLACES, style=PUBLISHED),
        Series("over π_s = .45, both 1.96 σ", names, fair[0], "points"),
        Series("over π_s = .25, both 1.96 σ", names, fair[1], "points"),
        Series("over π_s = .45, 2.576 σ over 2 σ", names, uneven[0], "points"),
        Series("over π_s = .25, 2.576 σ over 2 σ", names, uneven[1], "points"),
    ]
    results.add_panel("ratios", limits)
    results.add_findings(
        "ratios",
        "crossover",
        "people",
        uneven=(uneven.min(), uneven.max()),
        fair=(fair.min(), fair.max()),
        limit=crossover(MILLION),
        limits=[crossover(MILLION, sampling) / MILLION for sampling in (SAMPLING, SAMPLING_TWO)],
        count=observed.counts[0],
        users=observed.users[0],
        most=observed.most,
    )


GROUPS = 11
LARGEST_COIN = 1.0 - SAMPLING
"""The largest π_V' of a categorical draw with π_s = .45: all the remaining probability."""


def printed_response(coin: float) -> float:
    """Return SP eq 30 at flip1 = .8, which covers the answer Yes only."""
    return printed_randomized_response_leakage(first_coin=FIRST_COIN, second_coin=coin)


def exact_response(coin: float, cells: int = 1) -> float:
    """Return the exact ε of one report; a move changes one answer if there is one cell, and two otherwise."""
    return RandomizedResponse(cells=cells, first_coin=FIRST_COIN, second_coin=coin).claim(Report(1)).epsilon


def printed_sampling(blank: float) -> float:
    """Return SP eq 29 at π_s = .45, ln((π_V' + π_s)/π_V')."""
    return printed_multi_value_leakage(sampling=SAMPLING, blanks=[blank])


def leakage_ratio(coin: float) -> float:
    """Return eq 30 over eq 29 at π_2 = π_V' = coin; above .55 no such categorical draw exists, only the formula."""
    return printed_response(coin) / math.log((coin + SAMPLING) / coin)


def leakage(results: Reproduction, _seed: int) -> None:
    """Compute every curve of Fig 3, ε against the coin, and check the text's conclusions from it (SP sec 5.2)."""
    claimed = 4.0
    eleven = sampling_privacy(GROUPS)
    blank = float(eleven.blanks[1])
    no_blank_zero = np.array([0.0] + [LARGEST_COIN / GROUPS] * GROUPS)
    evaluated, binary = printed_response(SECOND_COIN), printed_binary_leakage(sampling=SAMPLING, blank_zero=0.275)
    reached = float(brentq(lambda coin: leakage_ratio(coin) - claimed, LARGEST_COIN, 1.0))
    # ln((π + π_s)/π) = ε/4, solved for π.
    enough = SAMPLING / math.expm1(evaluated / claimed)
    four = printed_sampling(float(sampling_privacy(PLACES).blanks[1]))
    first, last = printed_sampling(0.01), printed_sampling(LARGEST_COIN)
    low, high = exact_response(0.5), exact_response(0.9)
    results.add_row("eleven_groups", evaluated / printed_sampling(blank))
    results.add_row("four_places", evaluated / four)
    results.add_row("one_coin", leakage_ratio(LARGEST_COIN), reached=reached, total=reached + SAMPLING)
    results.add_row("any_draw", evaluated / last)
    results.add_row("eq_29", "decreases" if last < first else "increases", first=first, last=last)
    results.add_row("exact_response", "decreases" if high < low else "increases", low=low, high=high)
    eq_29 = printed_sampling(blank)
    results.add_row("binary", "more leakage" if eq_29 > binary else "less leakage", eq_29=eq_29, binary=binary)
    results.add_row("response_printed", evaluated)
    results.add_row("response_exact", exact_response(SECOND_COIN))
    results.add_row("response_every_cell", exact_response(SECOND_COIN, GROUPS))
    results.add_row("sampling_printed", printed_sampling(blank))
    results.add_row("sampling_exact", eleven.claim(Report(2)).epsilon)
    without = round_two_claim(sampling=SAMPLING, blanks=no_blank_zero, queries=1)
    results.add_row("sampling_no_blank_zero", without.epsilon)
    linked = eleven.claim(LinkedReports())
    results.add_row("sampling_linked", linked.epsilon, delta=linked.delta(10.0))
    coins = np.round(np.linspace(0.01, 0.99, 99), 2).tolist()
    possible = [coin for coin in coins if coin <= LARGEST_COIN]
    impossible = [coin for coin in coins if coin >= LARGEST_COIN]
    circle = [printed_response(SECOND_COIN)]
    curves = [
        Series("randomized response, eq 30", coins, [printed_response(coin) for coin in coins]),
        Series("Sampling Privacy, eq 29 (round two alone)", possible, [printed_sampling(coin) for coin in possible]),
        Series("randomized response, exact, one question", coins, [exact_response(coin) for coin in coins]),
        Series("randomized response, exact, every cell asked", coins, [exact_response(coin, 2) for coin in coins]),
        Series("the paper's red circle at flip2 = .2", [SECOND_COIN], circle, "points", style=PUBLISHED),
        Series("eq 29 at eleven groups' equal blanks", [blank], [printed_sampling(blank)], "points"),
    ]
    results.add_panel("epsilon", curves)
    curves = [
        Series("“as much as four times”", [coins[0], coins[-1]], [claimed, claimed], style=PUBLISHED),
        Series("valid categorical draws", possible, [leakage_ratio(coin) for coin in possible]),
        Series("π_V' + π_s > 1: no distribution", impossible, [leakage_ratio(coin) for coin in impossible]),
    ]
    results.add_panel("ratio", curves)
    results.add_findings(
        "four_times",
        "directions",
        "one_round",
        ratios=(evaluated / printed_sampling(blank), evaluated / four, leakage_ratio(LARGEST_COIN)),
        reached=reached,
        enough=enough,
        total=2 * enough + SAMPLING,
        high=(high, printed_response(0.9)),
    )


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


def bars_of(truth: Sequence[float], devices: int) -> Bars:
    """Compute the bars of a question asked of a number of devices; devices in no group are outside."""
    counts = with_outside(truth, devices)
    errors = [of(len(truth)).std_error(counts) for of in (sampling_privacy, randomized_response)]
    return Bars(devices, counts[1:], *errors)


def sampling_coverage(truth: int, bound: float) -> float:
    """Return the exact probability that Bin(Y, π_s)/π_s, Sampling Privacy's estimate, is within a bound of Y."""
    sampled = np.arange(truth + 1)
    near = np.abs(sampled / SAMPLING - truth) <= bound + 1e-9
    return float(binom.pmf(sampled, truth, SAMPLING)[near].sum())


def response_coverage(truth: int, devices: int, bound: float) -> float:
    """Return the exact probability that randomized response's estimate of Y is within a bound of it.

    The count of Yes is Bin(Y, p₁) + Bin(N − Y, p₀), whose distribution is a convolution.
    """
    response = randomized_response(1)
    inside = binom.pmf(np.arange(truth + 1), truth, response.true_yes)
    outside = binom.pmf(np.arange(devices - truth + 1), devices - truth, response.false_yes)
    probabilities = np.convolve(inside, outside)
    estimate = (np.arange(devices + 1) - response.false_yes * devices) / FIRST_COIN
    return math.fsum(probabilities[np.abs(estimate - truth) <= bound + 1e-9])


PATIENTS, SCALED = 286, 10_000
TUMOUR_SIZE, AGE = "tumour size, mm", "age, years"
FIGURES = {
    "sp-fig4": (TUMOUR_SIZE, PATIENTS),
    "sp-fig5": (AGE, PATIENTS),
    "sp-fig6": (TUMOUR_SIZE, SCALED),
    "sp-fig7": (AGE, SCALED),
}
"""Attribute with its unit, and number of devices asked, of each figure."""


def breast_cancer(results: Reproduction, seed: int) -> None:
    """Compute a figure whose bars the text does not state (Figs 4, 5 and 7), by the same formula as Fig 6."""
    attribute, devices = FIGURES[results.entry.name]
    recurrences, groups = results.entry.numbers[f"recurrences by {attribute}"], results.entry.printed[attribute]
    bars = bars_of(recurrences, devices)
    names = [f"{number}: {group}" for number, group in enumerate(groups, start=1)]
    if devices == SCALED:
        _growth(results, recurrences)
    _simulated(results, bars, groups, seed)
    for name, truth, sampling, response in zip(names, bars.truth, bars.sampling(), bars.response(), strict=True):
        results.add_row("truth", truth, name=name)
        results.add_row("sampling_bar", sampling, name=name)
        results.add_row("response_bar", response, name=name)
    results.add_panel("bars", _curves(bars, names), devices=devices, attribute=attribute)
    _compare_at_one_level(results, bars, names, attribute)


def breast_cancer_printed(results: Reproduction, seed: int) -> None:
    """Compute Fig 6, which the paper states in full: 11 truths and 22 bars."""
    attribute, devices = FIGURES[results.entry.name]
    recurrences, groups = results.entry.numbers[f"recurrences by {attribute}"], results.entry.printed[attribute]
    bars = bars_of(recurrences, devices)
    names = [f"{number}: {group}" for number, group in enumerate(groups, start=1)]
    printed = {
        name: [int(value) for value in results.entry.numbers[name]] for name in ("truth", "sampling", "response")
    }
    computed = {"truth": bars.truth, "sampling": bars.sampling(), "response": bars.response()}
    for i, group in enumerate(names):
        for name, values in computed.items():
            results.add_row(f"printed_{name}", values[i], published=printed[name][i], name=group)
    for name, values in (("sampling", bars.sampling(RR_Z)), ("response", bars.response(SP_Z))):
        bar = printed[name][6]
        results.add_row(f"{name}_one_level", values[6], published=bar, bars=" ".join(map(str, values)))
    occupied = [(int(count), i) for i, count in enumerate(bars.truth) if count > 0]
    for name, shares in (
        ("sampling", [sampling_coverage(y, SP_Z * bars.sampling_error[i]) for y, i in occupied]),
        ("response", [response_coverage(y, devices, RR_Z * bars.response_error[i]) for y, i in occupied]),
    ):
        results.add_row(f"{name}_coverage", np.mean(shares), low=min(shares), high=max(shares))
    _growth(results, recurrences)
    _simulated(results, bars, groups, seed)
    curves = [
        Series(name, names, printed[key], "points", style=PUBLISHED)
        for name, key in (("Sampling Privacy", "sampling"), ("randomized response", "response"), ("truth", "truth"))
    ]
    truth, sampling, response = _curves(bars, names)
    results.add_panel("printed_bars", [*curves, sampling, response, truth], devices=devices, attribute=attribute)
    ratio = bars.response_error[6] / bars.sampling_error[6]
    at_one_level, drawn = bars.response(SP_Z), printed["response"]
    results.add_findings(
        "digits",
        one_level=(at_one_level.min(), at_one_level.max()),
        drawn=(min(drawn), max(drawn)),
        ratios=(ratio, ratio * RR_Z / SP_Z),
    )
    _compare_at_one_level(results, bars, names, attribute)


def _growth(results: Reproduction, recurrences: Sequence[float]) -> None:
    """Add the text's conclusion on how each error grows from 286 devices asked to 10,000."""
    small, large = bars_of(recurrences, PATIENTS), bars_of(recurrences, SCALED)
    top = int(np.argmax(small.truth))
    results.add_row("sampling_growth", large.sampling_error[top] / small.sampling_error[top], group=top + 1)
    results.add_row("response_growth", large.response_error[top] / small.response_error[top], group=top + 1)


def _simulated(results: Reproduction, bars: Bars, groups: Sequence[str], seed: int) -> None:
    """Add the simulated errors in the largest group."""
    truth, top = with_outside(bars.truth, bars.devices), int(np.argmax(bars.truth))
    mechanisms: dict[str, Callable[[int], LocalMechanism]] = {
        "Sampling Privacy": sampling_privacy,
        "randomized response": randomized_response,
    }
    for name, make in mechanisms.items():
        rng = Streams(seed).of(results.entry.name, name)
        error = simulate_error(make(len(bars.truth)), truth, repeats=1000, rng=rng, cell=top)
        results.add_row("group_simulated", error.rmse, words=name, found=error, group=top + 1, range=groups[top])


def _curves(bars: Bars, names: Sequence[str]) -> tuple[Series, Series, Series]:
    return (
        Series("truth", names, bars.truth, "bars"),
        Series("Sampling Privacy, 2 σ", names, bars.sampling(), "bars"),
        Series("randomized response, 2.576 σ", names, bars.response(), "bars"),
    )


def _compare_at_one_level(results: Reproduction, bars: Bars, names: Sequence[str], attribute: str) -> None:
    """Draw both protocols at one confidence level, and find in which groups randomized response is more accurate."""
    curves = []
    for name, error in (("randomized response", bars.response_error), ("Sampling Privacy", bars.sampling_error)):
        reach = FAIR_Z * error
        curves.append(Series(name, names, bars.truth, "points", low=bars.truth - reach, high=bars.truth + reach))
    results.add_panel("one_level", curves, devices=bars.devices, attribute=attribute)
    better = np.flatnonzero(bars.response_error < bars.sampling_error)
    hidden = bool((bars.sampling() <= bars.response()).all())
    top = int(np.argmax(bars.truth))
    results.add_findings(
        ("response_better" if hidden else "response_better_in_part") if len(better) else "sampling_better",
        "constant_error",
        "patients",
        devices=bars.devices,
        limit=crossover(bars.devices),
        groups=", ".join(str(i + 1) for i in better),
        held=bars.truth[better].sum(),
        total=bars.truth.sum(),
        reach=FAIR_Z * bars.sampling_error[top],
        largest=bars.truth[top],
    )
