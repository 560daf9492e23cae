"""Verdicts: what the table says of Sampling Privacy, computed from it."""

from collections.abc import Iterator, Mapping, Sequence

from simulator.reproduction.rivals.contest import Contest
from simulator.reproduction.rivals.setting import (
    CELLS_OF_POPULATION,
    DELTA,
    EPSILON,
    OCCUPANCY,
    POPULATIONS,
    VIEWS,
    Setting,
)

SAMPLING = "sampling_privacy"
ALIKE = 1.001
FORMS = (SAMPLING, "sampling_privacy_refreshed", "sampling_privacy_suppressed", "sampling_privacy_binary")

HELPED = {"laplace_counts", "sample_then_suppress", "distributed_laplace"}


def answer(contests: Mapping[str, Sequence[Contest]]) -> str:
    """Return the answer to whether Sampling Privacy is the mechanism to use, counted over every view and setting."""
    won: dict[str, int] = {}
    settings, useful = 0, 0
    for view, held in contests.items():
        for contest in held:
            if not contest.ranking:
                continue
            best = contest.ranking[0].plan.std_error
            ours = min(contest.error_of(name) for name in FORMS)
            settings += 1
            useful += ours < OCCUPANCY
            won[view] = won.get(view, 0) + (ours <= best * ALIKE)
    views = ", ".join(f"{count} of {len(contests[view])} for {VIEWS[view]}" for view, count in won.items())
    return (
        f"Should one use Sampling Privacy? At ε = {EPSILON:g}, δ = {DELTA:g} some form of it errs least in "
        f"{sum(won.values())} of {settings} settings ({views}); its error is below the {OCCUPANCY} vehicles of a cell "
        f"in {useful} of them. Errors are of each mechanism planned for that one view: what others then learn is in "
        "its plan (crowdveil plan)."
    )


def findings(view: str, contests: Sequence[Contest]) -> Iterator[str]:
    """Yield sentences about one view.

    Parameters
    ----------
    view
        Which.
    contests
        Of that view, in every setting.
    """
    where = f"At ε = {EPSILON:g}, δ = {DELTA:g} for {VIEWS[view]}"
    yield f"{where}: {_winners(contests)}"
    yield f"{where}, Sampling Privacy {_distance(contests)}"
    alone = [
        Contest(contest.setting, [one for one in contest.contestants if one.plan.name not in HELPED])
        for contest in contests
    ]
    if view == "released":
        yield f"{where}, of mechanisms that need neither a trusted server nor secret shares {_winners(alone)}"
    useless = [contest for contest in contests if contest.ranking and contest.ranking[0].plan.std_error >= OCCUPANCY]
    if useless:
        yield (
            f"{where}, in {len(useless)} of {len(contests)} settings even the best errs by the {OCCUPANCY} vehicles of "
            "a cell or more: to answer 0 everywhere is as good."
        )
    yield f"{where}, {_growth(view, contests)}"


def _winners(contests: Sequence[Contest]) -> str:
    won: dict[str, list[Contest]] = {}
    for contest in contests:
        if contest.ranking:
            won.setdefault(contest.ranking[0].plan.name, []).append(contest)
    total = len(contests)
    words = [f"{name} errs least in {len(held)} of {total} settings" for name, held in won.items()]
    return "; ".join(words) + "." if words else "no mechanism meets it."


def _distance(contests: Sequence[Contest]) -> str:
    """Return how far Sampling Privacy, in the best of its forms, is from the winner."""
    ratios = []
    for contest in contests:
        ours = min(contest.error_of(name) for name in FORMS)
        if contest.ranking and ours < float("inf"):
            ratios.append(ours / contest.ranking[0].plan.std_error)
    if not ratios:
        return "meets it in no form and no setting."
    if max(ratios) <= ALIKE:
        return (
            f"in the best of its forms errs no more than any other in all {len(ratios)} settings where it has a plan."
        )
    if max(ratios) - min(ratios) < 0.01 * max(ratios):
        return (
            f"in the best of its forms errs {max(ratios):.3g} times as much as the winner, in {len(ratios)} settings."
        )
    return (
        f"in the best of its forms errs {min(ratios):.3g} to {max(ratios):.3g} times as much as the winner, over "
        f"{len(ratios)} settings where it has a plan."
    )


def _growth(view: str, contests: Sequence[Contest]) -> str:
    """Return whose error does not grow with the devices asked."""
    by_setting = {contest.setting: contest for contest in contests}
    first, last = (by_setting[Setting(view, n, CELLS_OF_POPULATION)] for n in (POPULATIONS[0], POPULATIONS[-1]))
    constant: list[str] = []
    growing: list[str] = []
    for one in last.ranking:
        name = one.plan.name
        if (before := first.error_of(name)) < float("inf"):
            (constant if one.plan.std_error <= 1.1 * before else growing).append(name)
    times = POPULATIONS[-1] // POPULATIONS[0]
    return f"with {times:,} times the devices asked the error of {', '.join(constant) or 'no mechanism'} stays" + (
        f", that of {', '.join(growing)} grows." if growing else "."
    )
