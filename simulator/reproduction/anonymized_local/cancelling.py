"""alp-cancelling: the first attempt, whose error grows, and the construction whose error does not."""

from simulator.reproduction.anonymized_local.growth import NO_HOLDERS, YES_HOLDERS, grow
from simulator.reproduction.entry import Drawing, Entry, Reproduction, Row

BASE, SHIFT_YES, SHIFT_NO, SHIFT = 0.4, 0.3, 0.1, 0.2


def reproduce(*, seed: int) -> Reproduction:
    """Compare ALP sec VI with sec VII, theory and simulation."""
    from mechanisms.local import (  # noqa: PLC0415  imports wait until needed
        AnonymizedCancelling,
        AnonymizedFirstAttempt,
    )
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
    """Return what the first attempt tells where both kinds are moved alike."""
    from mechanisms.local import AnonymizedFirstAttempt, NotEstimableError  # noqa: PLC0415

    try:
        alike = AnonymizedFirstAttempt(cells=1, base=BASE, shift_yes=SHIFT_NO, shift_no=SHIFT_NO)
        alike.linear_estimator  # noqa: B018  asked for so that it says whether there is one
    except NotEstimableError:
        return "cannot be told"
    return "can be told"


ENTRY = Entry(
    "alp-cancelling", "ALP", "Secs VI and VII: cancelling the noise, the first attempt and the second", reproduce
)
