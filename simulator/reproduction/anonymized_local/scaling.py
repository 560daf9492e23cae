"""alp-scaling: with plausible deniability the error grows again."""

import math

import numpy as np

from simulator.reproduction.anonymized_local.growth import NO_HOLDERS, YES_HOLDERS, Growth, grow
from simulator.reproduction.entry import Curve, Drawing, Entry, Reproduction, Row

SHIFT, YES_SECOND, YES_THIRD, NO_SECOND, NO_THIRD, ONWARD = 0.2, 0.6, 0.4, 0.7, 0.3, 0.6


def reproduce(*, seed: int) -> Reproduction:
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
    told_by_yes, told_by_no = deniable.question.told_by_yes, deniable.question.told_by_no
    certain = deniable.claim(LinkedReports())
    rows = [
        Row(
            "answers that Yes-holders alone can give",
            "none",
            len(told_by_yes),
            not told_by_yes,
            "“we achieve [plausible deniability] by utilizing an output space of three with three separate answers” "
            "(sec VII-B)",
        ),
        Row(
            "answers that No-holders alone can give",
            "none",
            len(told_by_no),
            not told_by_no,
            f"{', '.join(map(deniable.question.name, told_by_no))}: deniability is the Yes-holders' alone, and the "
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
    """Return the least standard error of any linear estimator from the counts, by number of No-holders."""
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
    """Return what the closed form gives."""
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


ENTRY = Entry("alp-scaling", "ALP", "Sec VII-B: with plausible deniability the error grows as √NO", reproduce)
