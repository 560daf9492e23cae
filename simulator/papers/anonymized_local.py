"""ALP: J. Joy and M. Gerla, Anonymized Local Privacy: accuracy, lemmas 1-7, and the growth of standard errors."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.local import (
    AnonymizedCancelling,
    AnonymizedDeniable,
    AnonymizedFirstAttempt,
    AnonymizedLocal,
    LocalMechanism,
    NotEstimableError,
    RandomizedResponse,
    SampledResponse,
    minimal_variance_parameters,
    solve_sign_combinations,
)
from mechanisms.local.yes_no import EstimatorChoice
from mechanisms.privacy import LinkedReports, Report
from mechanisms.protocols import NotEstimable, Tallies, best_estimator
from simulator.pages.charts import Series
from simulator.papers.data import PEMS, locate, read_table
from simulator.papers.monte_carlo import SimulatedError, Z, one_cell, simulate_error, simulated_series, std_error
from simulator.papers.published_results import DataError, Reproduction
from simulator.streams import Streams

RECORDS, HOURS = 50_000, 24
SAMPLED = 0.05


def read_station() -> tuple[int, NDArray[np.int64]]:
    """Read the mainline station whose typical weekday is nearest to 50,000 vehicles.

    Returns
    -------
    number : int
        Its number in PeMS.
    flows : (24,) int64
        Vehicles over all lanes in each hour, median of the days observed.

    Raises
    ------
    DataError
        If the file is missing or malformed, or no station was observed every hour.
    """
    types = {"station": "int64", "type": "str", "hour": "float64", "median_flow": "float64"}
    table = read_table(PEMS, columns=list(types), header=True, dtype=types)
    table = table[table["type"] == "ML"].drop_duplicates(["station", "hour"]).dropna()
    days = table.groupby("station")["median_flow"].agg(["sum", "count"])
    whole = days[days["count"] == HOURS]["sum"]
    if whole.empty:
        raise DataError(f"{locate(PEMS)} has no mainline station with all 24 hours.")
    nearest = (whole - RECORDS).abs().sort_index()
    number = int(nearest.index.to_numpy(dtype=np.int64)[int(np.argmin(nearest.to_numpy()))])
    flows = table[table["station"] == number].sort_values("hour")["median_flow"].to_numpy(dtype=np.float64)
    return number, np.rint(flows).astype(np.int64)


def compared_mechanisms(share: float) -> dict[str, LocalMechanism]:
    """Return the mechanisms compared: all ask one question, and all with a finite ε have the same ε.

    Parameters
    ----------
    share
        Share of Yes-holders for which the best parameters are searched (ALP def 2, of the estimate's variance).
    """
    response = RandomizedResponse(cells=1, first_coin=0.8, second_coin=0.2)
    epsilon = response.claim(Report(1)).epsilon
    best: AnonymizedLocal = minimal_variance_parameters(epsilon, yes_share=share).mechanism
    few: AnonymizedLocal = minimal_variance_parameters(epsilon, yes_share=share, most_sampled=SAMPLED).mechanism
    return {
        "randomized response, .8/.2": response,
        "Yes, No, ⊥ with the best parameters": best,
        "Yes, No, ⊥ with 5 % answering": few,
        "two answers, noise cancelled, 5 % shifted": AnonymizedCancelling(cells=1, shift=SAMPLED),
    }


def accuracy(results: Reproduction, seed: int) -> None:
    """Scale the population of ALP's evaluation and compare every construction with randomized response."""
    station, flows = read_station()
    day, inside = int(flows.sum()), int(flows.max())
    populations = [day * times for times in (1, 10, 100, 1000)]
    ends = (populations[0], populations[-1])
    mechanisms = compared_mechanisms(inside / day)
    errors = {name: [std_error(of, inside, n) for n in populations] for name, of in mechanisms.items()}
    response, best, few, cancelling = errors.values()
    epsilon = mechanisms["randomized response, .8/.2"].claim(Report(1)).epsilon
    linked = mechanisms["two answers, noise cancelled, 5 % shifted"].claim(LinkedReports())
    results.add_row("records", day, station=station)
    for row, error in (("best", best), ("few", few), ("cancelling", cancelling)):
        for place, devices in zip((0, -1), ends, strict=True):
            ratio = error[place] / response[place]
            results.add_row(row, ratio, devices=devices, epsilon=epsilon, delta=linked.delta(10.0))
    sampled = SampledResponse(cells=1, sampling=0.1, first_coin=0.8, second_coin=0.2)
    results.add_row("million", 1.96 * std_error(sampled, inside, 1_000_000) / inside, inside=inside)
    curves, biased = [Series(f"{name}, theory", populations, of) for name, of in errors.items()], set()
    for name, of in errors.items():
        for devices, exact in zip(populations, of, strict=True):
            results.add_row("theory", exact, devices=devices, name=name)
    for name, mechanism in mechanisms.items():
        simulated: list[SimulatedError] = []
        for devices in ends:
            rng = Streams(seed).of("alp", name, devices)
            simulated.append(simulate_error(mechanism, one_cell(inside, devices), repeats=400, rng=rng))
            results.add_row("simulated", simulated[-1].rmse, devices=devices, name=name, found=simulated[-1])
            if simulated[-1].bias > Z:
                biased.add(name)
        curves.append(simulated_series(name, ends, simulated))
    results.add_panel("scaling", curves, inside=inside)
    _draw_day(results, station, flows, seed)
    results.add_findings(
        "no_evaluation",
        "coin",
        "growth",
        gains=(1 - best[0] / response[0], 1 - best[-1] / response[-1]),
        loss=few[0] / response[0],
        ends=ends,
        cancelling=cancelling[0],
        response=(response[0], response[-1]),
        inside=inside,
    )
    if biased:
        results.add_findings("biased", names=", ".join(sorted(biased)))


def _draw_day(results: Reproduction, station: int, flows: NDArray[np.int64], seed: int) -> None:
    """Draw one query about every hour, with a hundred times the population."""
    devices = 100 * int(flows.sum())
    truth = np.concatenate([[devices - flows.sum()], flows])
    hours = np.arange(HOURS, dtype=np.float64)
    curves = [Series("truth", hours, flows)]
    mechanisms: tuple[tuple[str, LocalMechanism, float], ...] = (
        ("randomized response, .8/.2", RandomizedResponse(cells=HOURS, first_coin=0.8, second_coin=0.2), -0.15),
        ("noise cancelled, 5 % shifted", AnonymizedCancelling(cells=HOURS, shift=SAMPLED), 0.15),
    )
    for name, mechanism, offset in mechanisms:
        counts = mechanism.sample_counts(truth, rng=Streams(seed).of("alp-day", name))
        asked = [devices] * mechanism.rounds
        count = mechanism.estimate(counts, counted=asked, asked=asked).count
        reach = 1.96 * mechanism.std_error(truth)
        curves.append(
            Series(f"{name}, one query", hours + offset, count, "points", low=count - reach, high=count + reach)
        )
    results.add_panel("day", curves, station=station, devices=devices)


def lemmas(results: Reproduction, _seed: int) -> None:
    """Compute the standard deviations of the counts, the search of eq 5 and the system of lemma 7."""
    yes, no = 100, 9_900

    def local(coin: float, estimator: EstimatorChoice = "yes") -> AnonymizedLocal:
        return AnonymizedLocal(
            cells=1,
            sampling_yes_one=0.3,
            sampling_yes_two=0.1,
            sampling_no=0.2,
            first_coin=coin,
            second_coin=coin,
            third_coin=coin,
            estimator=estimator,
        )

    truth = one_cell(yes, yes + no)
    said_no, said_yes, silent = (float(value) for value in local(1.0).count_std_errors(truth)[:, 0])
    try:
        local(1.0, "no").std_error(truth)
        estimable = "an estimate"
    except NotEstimableError:
        estimable = "0/0"
    printed = minimal_variance_parameters(1.0, yes_share=yes / (yes + no), objective="printed")
    yes_probability = float(printed.mechanism.binary_query.in_round(1)[0][1])
    information = (
        "nothing: no device answers Yes" if yes_probability == 0.0 else f"something: Yes with {yes_probability:.3g}"
    )
    useful = minimal_variance_parameters(1.0, yes_share=yes / (yes + no))
    mixed = local(0.75)
    answers_yes, answers_no = mixed.binary_query.in_round(1)
    expected = np.rint(yes * answers_yes + no * answers_no).astype(int)
    # 20 more "Yes" than expected, as may happen by chance: the σ do not determine which sign is right.
    solutions = solve_sign_combinations(
        mixed, said_yes=int(expected[1]) + 20, silent=int(expected[2]) - 20, devices=yes + no
    ).solutions
    plain = solve_sign_combinations(local(1.0), said_yes=2_020, silent=7_980, devices=yes + no).solutions[0]
    results.add_row("yes_silent", said_yes - silent, math.isclose(said_yes, silent))
    results.add_row("yes_no", said_yes - said_no, math.isclose(said_yes, said_no))
    results.add_row("lemma_3", estimable)
    results.add_row("definition_2", information, yes_probability > 0.0, variance=printed.variance)
    results.add_row("least_variance", useful.std_error(yes + no))
    yes_counts = ", ".join(f"{solution.yes:.1f}" for solution in solutions)
    results.add_row("lemma_7", len(solutions), found=yes_counts, truth=yes)
    results.add_row("lemma_7_plain", plain.sigma, yes=plain.yes)
    results.add_findings("not_equal", "eq_5", "sigma", said_yes=said_yes)


NO_HOLDERS = [10**power for power in range(3, 8)]
YES_HOLDERS = 100


@dataclass(frozen=True)
class Growth:
    """One mechanism's errors for 100 Yes-holders among a growing number of No-holders.

    Parameters
    ----------
    name : str
    simulated : list of SimulatedError
        Errors at `NO_HOLDERS`.
    """

    name: str
    simulated: list[SimulatedError]

    @property
    def theory(self) -> list[float]:
        """Exact standard errors at `NO_HOLDERS`."""
        return [error.theory for error in self.simulated]

    @property
    def power(self) -> float:
        """The power of NO with which the error grows over the last decade."""
        return math.log10(self.theory[-1] / self.theory[-2])

    def at(self, no_holders: int) -> float:
        """Return the exact standard error at a number of No-holders."""
        return self.theory[NO_HOLDERS.index(no_holders)]

    def curves(self) -> list[Series]:
        """Return theory as a line and simulation as points with their intervals."""
        theory = Series(f"{self.name}, theory", NO_HOLDERS, self.theory)
        return [theory, simulated_series(self.name, NO_HOLDERS, self.simulated)]

    def add_unbiased(self, results: Reproduction) -> None:
        """Add the row that checks whether the estimates are unbiased, by the largest mean error in standard errors."""
        bias = max(error.bias for error in self.simulated)
        results.add_row("unbiased", bias, bias <= Z, name=self.name, found=self.simulated[0])

    def add_simulated(self, results: Reproduction) -> None:
        """Add the simulated RMSE beside theory, one row per number of No-holders."""
        for count, error in zip(NO_HOLDERS, self.simulated, strict=True):
            results.add_row("growth", error.rmse, name=self.name, count=count, found=error)


def grow(name: str, mechanism: LocalMechanism, *, seed: int) -> Growth:
    """Compute and simulate a mechanism of one cell."""
    truths = {count: one_cell(YES_HOLDERS, count + YES_HOLDERS) for count in NO_HOLDERS}
    streams = Streams(seed)
    simulated = [
        simulate_error(mechanism, truth, repeats=500, rng=streams.of("alp-growth", name, count))
        for count, truth in truths.items()
    ]
    return Growth(name, simulated)


SHIFT_YES, SHIFT_NO, SHIFT = 0.3, 0.1, 0.2


def cancelling(results: Reproduction, seed: int) -> None:
    """Compare ALP sec VI with sec VII, theory and simulation."""
    mechanism = AnonymizedCancelling(cells=1, shift=SHIFT)
    first = grow(
        "first attempt", AnonymizedFirstAttempt(cells=1, base=0.4, shift_yes=SHIFT_YES, shift_no=SHIFT_NO), seed=seed
    )
    constant = grow("noise cancelled", mechanism, seed=seed)
    linked = mechanism.claim(LinkedReports())
    results.add_row("constant", constant.theory[-1] / constant.theory[0])
    results.add_row("power", first.power)
    results.add_row("uniform", _uniform_shift())
    results.add_row("linked", linked.delta(10.0), linked.kind == "infinite")
    results.add_row("eq_37", 1.0 - SHIFT + SHIFT_NO)
    results.add_row("one_answer", mechanism.claim(Report(1)).epsilon)
    first.add_unbiased(results)
    constant.add_unbiased(results)
    first.add_simulated(results)
    constant.add_simulated(results)
    results.add_panel("growth", [*first.curves(), *constant.curves()])
    results.add_findings("constant", "total", constant=constant.theory, first=first.theory)


def _uniform_shift() -> str:
    """Return whether the first attempt has an estimator where Yes- and No-holders have the same shift."""
    try:
        alike = AnonymizedFirstAttempt(cells=1, base=0.4, shift_yes=SHIFT_NO, shift_no=SHIFT_NO)
        alike.linear_estimator  # noqa: B018  the property raises if there is no estimator
    except NotEstimableError:
        return "cannot be estimated"
    return "can be estimated"


# Parameters of the three answers over three outputs (sec VII-B), which the text does not give.
DENIABLE = AnonymizedDeniable(
    cells=1, shift=SHIFT, yes_second=0.6, yes_third=0.4, no_second=0.7, no_third=0.3, onward=0.6
)


def best_errors() -> dict[int, float]:
    """Return the smallest standard error of any linear estimator from the counts, by number of No-holders."""
    tallies = Tallies.by_round(DENIABLE.protocol)
    errors = {}
    for count in NO_HOLDERS:
        people = {"no": count, "yes": YES_HOLDERS}
        best = best_estimator(tallies, "yes", population=people)
        if isinstance(best, NotEstimable):
            raise TypeError(f"the counts do not determine YES: {best}")
        errors[count] = float(best.std_error(people))
    return errors


def scaling(results: Reproduction, seed: int) -> None:
    """Compute and simulate ALP's three answers over three outputs (sec VII-B, in a fixed reading of eqs 46-55)."""
    deniable = grow("plausible deniability", DENIABLE, seed=seed)
    constant = grow("noise cancelled", AnonymizedCancelling(cells=1, shift=SHIFT), seed=seed)
    best = best_errors()
    coins = RandomizedResponse(cells=1, first_coin=0.8, second_coin=0.2)
    response = std_error(coins, YES_HOLDERS, NO_HOLDERS[-1] + YES_HOLDERS)
    query, delta = DENIABLE.binary_query, DENIABLE.claim(LinkedReports()).delta(10.0)
    names = ", ".join(map(query.name, query.only_from_no))
    results.add_row("yes_alone", len(query.only_from_yes), not query.only_from_yes)
    results.add_row("no_alone", len(query.only_from_no), not query.only_from_no, names=names, delta=delta)
    results.add_row("power", deniable.power)
    for estimator, error in (("solved backwards", deniable.theory[-1]), ("the best estimator", best[NO_HOLDERS[-1]])):
        results.add_row("over_response", error / response, count=NO_HOLDERS[-1], words=estimator)
    for count in NO_HOLDERS:
        results.add_row("backwards", deniable.at(count), count=count, form=_closed_form(count, deniable.at(count)))
    for count in NO_HOLDERS:
        results.add_row("least", best[count], count=count, times=deniable.at(count) / best[count])
    deniable.add_unbiased(results)
    deniable.add_simulated(results)
    least = Series("the best estimator from the same counts", NO_HOLDERS, list(best.values()))
    results.add_panel("growth", [*deniable.curves(), least, *constant.curves()])
    results.add_findings(
        "growth",
        "backwards",
        "response",
        "reading",
        found=[deniable.at(count) for count in NO_HOLDERS],
        constant=constant.at(10**5),
        best=list(best.values()),
        response=response,
    )


def _closed_form(count: int, error: float) -> str:
    """Return how the closed form of the standard error compares with the computed one."""
    yes, no = DENIABLE.yes_second, DENIABLE.no_second
    variance = YES_HOLDERS * (1 / (SHIFT * yes) - 1)
    variance += count * no * (1 + no / (DENIABLE.no_third * DENIABLE.onward)) / (SHIFT * yes**2)
    return "the same" if math.isclose(error, math.sqrt(variance), rel_tol=1e-9) else f"{math.sqrt(variance):.1f}"
