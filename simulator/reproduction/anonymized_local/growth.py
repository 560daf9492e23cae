"""alp-cancelling and alp-scaling: the growth of standard errors as No-holders are added, in theory and simulated."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from simulator.reproduction.entry import Curve, Drawing, Entry, Reproduction, Row
from simulator.reproduction.monte_carlo import Z, rmse_interval, simulate_errors
from simulator.streams import Streams

if TYPE_CHECKING:
    from mechanisms.local import LocalMechanism

NO_HOLDERS = [10**power for power in range(3, 8)]
YES_HOLDERS, REPEATS = 100, 500


@dataclass(frozen=True)
class Growth:
    """One mechanism's errors for 100 Yes-holders among a growing number of No-holders.

    Parameters
    ----------
    name : str
    theory : tuple of float
        Exact standard errors at `NO_HOLDERS`.
    rmse, low, high : tuple of float
        Simulated RMSE and the ends of its interval.
    bias : float
        The largest mean error, in standard errors of a mean.
    """

    name: str
    theory: tuple[float, ...]
    rmse: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    bias: float

    @property
    def power(self) -> float:
        """The power of NO with which the error grows over the last decade."""
        return math.log10(self.theory[-1] / self.theory[-2])

    def at(self, no_holders: int) -> float:
        """Return the exact standard error at a number of No-holders."""
        return self.theory[NO_HOLDERS.index(no_holders)]

    def curves(self) -> list[Curve]:
        """Return theory as a line and simulation as points with their intervals."""
        return [
            Curve(f"{self.name}, theory", NO_HOLDERS, self.theory),
            Curve(f"{self.name}, simulated", NO_HOLDERS, self.rmse, "points", low=self.low, high=self.high),
        ]

    def simulated_rows(self) -> list[Row]:
        """Return rows of the simulated RMSE beside theory, one per number of No-holders."""
        rows = []
        for place, count in enumerate(NO_HOLDERS):
            holds = "holds" if self.low[place] <= self.theory[place] <= self.high[place] else "misses"
            note = (
                f"theory σ = {self.theory[place]:,.2f}; {REPEATS:,} queries, interval {self.low[place]:,.2f} to "
                f"{self.high[place]:,.2f}: {holds} it"
            )
            rows.append(Row(f"{self.name}: RMSE simulated, NO = {count:,}", None, self.rmse[place], None, note))
        return rows

    def unbiased_row(self) -> Row:
        """Return the row that checks whether the estimates are unbiased."""
        note = (
            f"largest distance of a mean of {REPEATS:,} estimates from {YES_HOLDERS}, in its standard errors; at most "
            f"{Z:g}"
        )
        return Row(f"{self.name}: estimates are unbiased", "unbiased", self.bias, self.bias <= Z, note)


def grow(name: str, mechanism: "LocalMechanism", *, seed: int) -> Growth:
    """Compute and simulate a mechanism of one cell."""
    theory, found, bias = [], [], 0.0
    for count in NO_HOLDERS:
        truth = np.array([count, YES_HOLDERS], dtype=np.int64)
        theory.append(float(mechanism.std_error(truth)[0]))
        drawn = simulate_errors(mechanism, truth, repeats=REPEATS, rng=Streams(seed).of("alp-growth", name, count))[
            :, 0
        ]
        found.append(rmse_interval(drawn))
        bias = max(bias, abs(float(drawn.mean())) * math.sqrt(REPEATS) / float(drawn.std(ddof=1)))
    rmse, low, high = zip(*found, strict=True)
    return Growth(name, tuple(theory), rmse, low, high, bias)


BASE, SHIFT_YES, SHIFT_NO, SHIFT = 0.4, 0.3, 0.1, 0.2


def reproduce_cancelling(*, seed: int) -> Reproduction:
    """Compare ALP sec VI with sec VII, theory and simulation."""
    from mechanisms.local import AnonymizedCancelling, AnonymizedFirstAttempt  # noqa: PLC0415
    from mechanisms.privacy import LinkedReports, Report  # noqa: PLC0415

    first_attempt = AnonymizedFirstAttempt(cells=1, base=BASE, shift_yes=SHIFT_YES, shift_no=SHIFT_NO)
    cancelling = AnonymizedCancelling(cells=1, shift=SHIFT)
    first = grow("first attempt", first_attempt, seed=seed)
    constant = grow("noise cancelled", cancelling, seed=seed)
    told = cancelling.claim(LinkedReports())
    grown = constant.at(NO_HOLDERS[-1]) / constant.at(NO_HOLDERS[0])
    rows = [
        Row(
            "noise cancelled: σ at NO = 10⁷ over σ at NO = 10³",
            1,
            grown,
            abs(grown - 1.0) < 1e-9,
            "“the estimation error is now only due to estimating the sampled YES population” (sec VII)",
        ),
        Row(
            "first attempt: power of NO by which σ grows",
            "grows",
            first.power,
            first.power > 0.0,
            "“the variance of the total population multiplied by the π_N contributes error as the NO population "
            "grows” (sec VI); by √NO",
        ),
        Row(
            "first attempt with π_Y = π_N: YES from the two answers",
            "cannot be told",
            _uniform(),
            _uniform() == "cannot be told",
            "“performing uniform sampling … also cancels out the YES terms” (sec VI)",
        ),
        Row(
            "noise cancelled: δ of whoever links the two answers",
            "no plausible deniability",
            told.delta(10.0),
            told.kind == "infinite",
            "“there is no plausible deniability as the YES population is exposed” (sec VII-B): no finite ε; (⊥1, ⊥3) "
            "is given by Yes-holders alone, with probability π_Y",
        ),
        Row(
            f"sum of eq 37's probabilities, π_Y = {SHIFT:g} and π_N = {SHIFT_NO:g}",
            1,
            1.0 - SHIFT + SHIFT_NO,
            SHIFT == SHIFT_NO,
            "where eq 36's sum to one: the text gives π_Y and π_N apart, but they must be equal",
        ),
        Row(
            "noise cancelled: ε of one answer alone, A",
            None,
            cancelling.claim(Report(1)).epsilon,
            None,
            "the share of ⊥1, ⊥2, ⊥3 left after the shift is divided equally here; the text gives no parameters",
        ),
        first.unbiased_row(),
        constant.unbiased_row(),
        *first.simulated_rows(),
        *constant.simulated_rows(),
    ]
    drawing = Drawing(
        f"Error of an estimate of {YES_HOLDERS} Yes-holders",
        "No-holders",
        "standard error",
        [*first.curves(), *constant.curves()],
        log_x=True,
        log_y=True,
    )
    findings = [
        (
            f"Sec VII keeps its promise: the error of {YES_HOLDERS} is √(YES(1 − π_Y)/π_Y) = {constant.theory[0]:.1f} "
            f"from 10³ to 10⁷ No-holders, where the first attempt's goes from {first.theory[0]:.0f} to "
            f"{first.theory[-1]:,.0f}. It is Sampling Privacy's error law, and its price: whoever links a device's "
            "answers is told its truth with probability π_Y."
        ),
        (
            "Printed wrongly, and read here so that eqs 40-45 hold: eqs 37 and 39 mix π_⊥N with π_⊥2, eq 41 has "
            "π_⊥1·NO where π_⊥2·NO is meant, eq 45 is headed ⊥3A and is ⊥3B."
        ),
        (
            f"Eqs 32-33 need TOTAL to be known. With it the first attempt is unbiased at π_Y = {SHIFT_YES}, π_N = "
            f"{SHIFT_NO}, and its error grows as √NO."
        ),
    ]
    return Reproduction(rows=rows, drawings=[drawing], findings=findings)


def _uniform() -> str:
    """Return whether the first attempt has an estimator where Yes- and No-holders have the same shift."""
    from mechanisms.local import AnonymizedFirstAttempt, NotEstimableError  # noqa: PLC0415

    try:
        alike = AnonymizedFirstAttempt(cells=1, base=BASE, shift_yes=SHIFT_NO, shift_no=SHIFT_NO)
        alike.linear_estimator  # noqa: B018  asked for so that it says whether there is one
    except NotEstimableError:
        return "cannot be told"
    return "can be told"


CANCELLING = Entry(
    "alp-cancelling",
    "ALP",
    "Secs VI and VII: cancelling the noise, the first attempt and the second",
    reproduce_cancelling,
)

YES_SECOND, YES_THIRD, NO_SECOND, NO_THIRD, ONWARD = 0.6, 0.4, 0.7, 0.3, 0.6


def reproduce_scaling(*, seed: int) -> Reproduction:
    """Compute and simulate ALP's three answers over three outputs (sec VII-B, in a fixed reading of eqs 46-55)."""
    from mechanisms.local import AnonymizedCancelling, AnonymizedDeniable, RandomizedResponse  # noqa: PLC0415  imports wait until needed
    from mechanisms.privacy import LinkedReports  # noqa: PLC0415

    deniable = AnonymizedDeniable(
        cells=1,
        shift=SHIFT,
        yes_second=YES_SECOND,
        yes_third=YES_THIRD,
        no_second=NO_SECOND,
        no_third=NO_THIRD,
        onward=ONWARD,
    )
    cancelling = AnonymizedCancelling(cells=1, shift=SHIFT)
    last = np.array([NO_HOLDERS[-1], YES_HOLDERS], dtype=np.int64)
    found = grow("plausible deniability", deniable, seed=seed)
    constant = grow("noise cancelled", cancelling, seed=seed)
    best = best_errors()
    response = float(RandomizedResponse(cells=1, first_coin=0.8, second_coin=0.2).std_error(last)[0])
    only_from_yes, only_from_no = deniable.question.only_from_yes, deniable.question.only_from_no
    certain = deniable.claim(LinkedReports())
    rows = [
        Row(
            "answers that Yes-holders alone can give",
            "none",
            len(only_from_yes),
            not only_from_yes,
            "“we achieve [plausible deniability] by utilizing an output space of three with three separate answers” "
            "(sec VII-B)",
        ),
        Row(
            "answers that No-holders alone can give",
            "none",
            len(only_from_no),
            not only_from_no,
            f"{', '.join(map(deniable.question.name, only_from_no))}: deniability is the Yes-holders' alone, and the "
            f"three answers linked have no finite ε (δ = {certain.delta(10.0):.3g})",
        ),
        Row(
            "power of NO by which σ grows",
            None,
            found.power,
            None,
            "over the last decade; sec VII had cancelled the growth",
        ),
        *(
            Row(
                f"σ over randomized response's, NO = {NO_HOLDERS[-1]:,}: {words}",
                "below 1",
                error / response,
                error < response,
                "“constructions with better accuracy than randomized response” (sec I); coins .8/.2",
            )
            for words, error in (("solved backwards", found.theory[-1]), ("the best estimator", best[NO_HOLDERS[-1]]))
        ),
        *(
            Row(f"σ solved backwards, NO = {count:,}", None, found.at(count), None, _law(count, found.at(count)))
            for count in NO_HOLDERS
        ),
        *(
            Row(
                f"least σ of any estimator from the same counts, NO = {count:,}",
                None,
                best[count],
                None,
                f"the linear estimator of least variance, computed exactly: {found.at(count) / best[count]:.1f} times "
                "better",
            )
            for count in NO_HOLDERS
        ),
        found.unbiased_row(),
        *found.simulated_rows(),
    ]
    drawing = Drawing(
        f"Error of an estimate of {YES_HOLDERS} Yes-holders",
        "No-holders",
        "standard error",
        [
            *found.curves(),
            Curve("the best estimator from the same counts", NO_HOLDERS, list(best.values())),
            *constant.curves(),
        ],
        log_x=True,
        log_y=True,
    )
    return Reproduction(rows=rows, drawings=[drawing], findings=_findings(found, constant, best, response))


def best_errors() -> dict[int, float]:
    """Return the smallest standard error of any linear estimator from the counts, by number of No-holders."""
    from mechanisms.algebra import NotEstimable, Tallies, anonymized_deniable, best_estimator  # noqa: PLC0415  imports wait until needed

    protocol = anonymized_deniable(
        shift=str(SHIFT),
        yes_second=str(YES_SECOND),
        yes_third=str(YES_THIRD),
        no_second=str(NO_SECOND),
        no_third=str(NO_THIRD),
        onward=str(ONWARD),
    )
    tallies = Tallies.by_round(protocol)
    errors = {}
    for count in NO_HOLDERS:
        people = {"no": count, "yes": YES_HOLDERS}
        best = best_estimator(tallies, "yes", population=people)
        if isinstance(best, NotEstimable):
            raise TypeError(f"the counts do not determine YES: {best}")
        errors[count] = float(best.std_error(people))
    return errors


def _law(count: int, error: float) -> str:
    """Return a note that compares the closed form of the standard error with the computed one."""
    variance = YES_HOLDERS * (1 / (SHIFT * YES_SECOND) - 1)
    variance += count * NO_SECOND * (1 + NO_SECOND / (NO_THIRD * ONWARD)) / (SHIFT * YES_SECOND**2)
    same = "the same" if math.isclose(error, math.sqrt(variance), rel_tol=1e-9) else f"{math.sqrt(variance):.1f}"
    return f"√(YES(1/(s·y₁) − 1) + NO·n₁(1 + n₁/(n₂c))/(s·y₁²)) is {same}; the text prints no number"


def _findings(found: Growth, constant: Growth, best: dict[int, float], response: float) -> list[str]:
    return [
        (
            f"Deniability bought back the growth: with s = {SHIFT}, y₁ = {YES_SECOND}, n₁ = {NO_SECOND}, n₂ = "
            f"{NO_THIRD}, c = {ONWARD} the error of {YES_HOLDERS} Yes-holders is {found.at(10**3):.0f} at 10³ "
            f"No-holders and {found.at(10**5):,.0f} at 10⁵; without deniability it is {constant.at(10**5):.0f} at both."
        ),
        (
            "“Working backwards” is not the best use of the counts: the estimator of least variance has "
            f"{best[10**3]:.0f} and {best[10**5]:,.0f}. It grows by √NO too."
        ),
        (
            f"Randomized response of coins .8/.2 has {response:,.0f} at 10⁷ No-holders, where this construction has "
            f"{found.theory[-1]:,.0f} and the best estimator {best[10**7]:,.0f}: with deniability it is the less "
            "accurate."
        ),
        (
            "The algebra as printed does not determine the protocol: NO_f lacks the π_f that YES_f has (eq 46), and "
            "eqs 50 and 53 are identical, so ⊥1 says nothing new in C. The reading taken is in docs/mechanisms.md."
        ),
    ]


SCALING = Entry("alp-scaling", "ALP", "Sec VII-B: with plausible deniability the error grows as √NO", reproduce_scaling)
