"""All mechanisms compared at one (ε, δ) in one view: planned parameters, simulated errors and a verdict."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mechanisms.central import LaplaceCounts, SampleThenSuppress
from mechanisms.planning import FAMILIES, Plan, Target, plan
from mechanisms.planning.error_distribution import error_interval
from simulator.reproduction.entry import Curve, Drawing, Entry, Reproduction, Row

EPSILON, DELTA = 1.0, 1e-6
OCCUPANCY = 100
POPULATIONS = (10**4, 10**5, 10**6, 10**7)
CELLS = (10, 100, 1000, 10_000)
POPULATION_OF_CELLS, CELLS_OF_POPULATION = 10**6, 100
VIEWS = {
    "report": "one report, whichever round's",
    "linked_reports": "all of a device's reports",
    "released": "what is published",
}


@dataclass(frozen=True)
class Setting:
    """V cells with 100 vehicles each; all other devices asked are outside.

    Parameters
    ----------
    view
        The view in which (ε, δ) must hold.
    population
        N, the number of devices asked.
    cells
        V, the number of cells.
    """

    view: str
    population: int
    cells: int

    @property
    def key(self) -> str:
        """The setting's name in the keys of rows."""
        return f"{self.view}, N={self.population:,}, V={self.cells:,}"

    @property
    def target(self) -> Target:
        """The target that plans must meet."""
        return Target(
            cells=self.cells,
            population=self.population,
            occupancy=OCCUPANCY,
            view=self.view,
            epsilon=EPSILON,
            delta=DELTA,
        )

    @cached_property
    def truth(self) -> NDArray[np.int64]:
        """Number of devices outside and in each cell, (V + 1,)."""
        counts = np.full(self.cells + 1, OCCUPANCY, dtype=np.int64)
        counts[0] = self.population - OCCUPANCY * self.cells
        return counts


def settings(view: str) -> list[Setting]:
    """Return every population with 100 cells, and every number of cells with a million devices."""
    over_population = [Setting(view, population, CELLS_OF_POPULATION) for population in POPULATIONS]
    over_cells = [Setting(view, POPULATION_OF_CELLS, cells) for cells in CELLS]
    return [*over_population, *(setting for setting in over_cells if setting not in over_population)]


# The papers' first attempts reduce to randomized response at their best parameters (their plans state so), and so does
# the three-answer form wherever its linked reports must be private; a search over its many parameters would take most
# of the time.
LEFT_OUT = {"sampled_response", "sampling_and_noise", "anonymized_deniable"}
# In the view "released", the first three are bounded by their linked reports only, where randomized response remains;
# and a server that samples publishes with the same distribution as devices that sample themselves.
LEFT_OUT_RELEASED = {
    "sampling_privacy_refreshed",
    "anonymized_first_attempt",
    "anonymized_local",
    "sample_then_suppress",
}
SIMULATED = 1000
# Probability that any simulation of one run falls outside its interval although theory holds.
FAMILY, MOST_ROWS = 1e-4, 500


@dataclass(frozen=True)
class Contestant:
    """A mechanism in a setting.

    Parameters
    ----------
    plan
        Its plan; `meets` states whether there is one.
    simulated
        Root mean square error of the simulated cells; NaN without a plan.
    low, high
        The interval that theory gives for `simulated`; over all simulations of a run, the probability that any
        falls outside its interval is one in ten thousand.
    """

    plan: Plan
    simulated: float
    low: float
    high: float

    @property
    def agrees(self) -> bool:
        """Whether the simulated error lies in the interval that theory gives."""
        return self.low <= self.simulated <= self.high


@dataclass(frozen=True)
class Contest:
    """A setting and its contestants.

    Parameters
    ----------
    setting
        The setting.
    contestants
        In the order of the families.
    """

    setting: Setting
    contestants: Sequence[Contestant]

    @property
    def ranking(self) -> list[Contestant]:
        """The mechanisms that meet the target, in ascending order of error."""
        meeting = [one for one in self.contestants if one.plan.meets]
        return sorted(meeting, key=lambda one: one.plan.std_error)

    def error_of(self, name: str) -> float:
        """Return the theoretical error of a mechanism; infinite where it has no plan."""
        return next((one.plan.std_error for one in self.ranking if one.plan.name == name), math.inf)


def hold(setting: Setting, *, rng: np.random.Generator) -> Contest:
    """Plan every mechanism for the setting, and simulate each plan."""
    left_out = LEFT_OUT | (LEFT_OUT_RELEASED if setting.view == "released" else set())
    names = [family.name for family in FAMILIES if family.name not in left_out]
    plans = plan(setting.target, names, claims=False).plans
    return Contest(setting, tuple(_enter(made, setting, rng) for made in plans))


def _enter(made: Plan, setting: Setting, rng: np.random.Generator) -> Contestant:
    if not made.meets:
        return Contestant(made, math.nan, math.nan, math.nan)
    repeats = math.ceil(SIMULATED / setting.cells)
    errors = np.concatenate([_estimates(made, setting, rng) - setting.truth[1:] for _ in range(repeats)])
    low, high = error_interval(
        made.std_error, cells=len(errors), excess=made.excess_kurtosis, level=1.0 - FAMILY / MOST_ROWS
    )
    return Contestant(made, math.sqrt(float(np.mean(errors**2))), low, high)


def _estimates(made: Plan, setting: Setting, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return one query's published counts, (V,) float64."""
    truth, release = setting.truth, made.release
    if release is not None and release["kind"] == "laplace":
        return LaplaceCounts(epsilon=release["epsilon"]).publish(truth[1:], rng=rng).count
    if release is not None:
        sampling = release.get("sampling", made.parameters.get("sampling"))
        suppressed = SampleThenSuppress(k=release["k"], sampling=sampling)
        if made.kind == "no_privacy":
            return suppressed.publish(truth[1:], rng=rng).count
        first, second = made.mechanism.sample_counts(truth, rng=rng)[:, 1:]
        return suppressed.publish_sampled(second - first).count
    asked = (setting.population,) * made.mechanism.rounds
    counts = made.mechanism.sample_counts(truth, rng=rng)
    estimates: NDArray[np.float64] = made.mechanism.estimate(counts, counted=asked, asked=asked).count
    return estimates


ERROR = "RMSE of a cell of 100, vehicles"


def draw(view: str, contests: Sequence[Contest]) -> tuple[Drawing, Drawing]:
    """Return two panels of a view: lines are theory, points are simulation.

    Parameters
    ----------
    view
        The view.
    contests
        The contests of that view, in every setting.
    """
    by_setting = {contest.setting: contest for contest in contests}
    populations = [by_setting[Setting(view, n, CELLS_OF_POPULATION)] for n in POPULATIONS]
    cells = [by_setting[Setting(view, POPULATION_OF_CELLS, v)] for v in CELLS]
    return (
        _panel(
            f"{VIEWS[view]}: {CELLS_OF_POPULATION} cells",
            "devices asked",
            populations,
            lambda setting: setting.population,
        ),
        _panel(f"{VIEWS[view]}: {POPULATION_OF_CELLS:,} devices asked", "cells", cells, lambda setting: setting.cells),
    )


def _panel(title: str, x_title: str, contests: Sequence[Contest], x_of: Callable[[Setting], int]) -> Drawing:
    names = [one.plan.name for one in contests[0].contestants]
    curves = []
    for name in names:
        found = [next((one for one in contest.ranking if one.plan.name == name), None) for contest in contests]
        if any(one is not None for one in found):
            x = [x_of(contest.setting) for contest in contests]
            curves.append(Curve(name, x, [None if one is None else one.plan.std_error for one in found]))
            curves.append(_points(name, x, found))
    return Drawing(
        f"{title[0].upper()}{title[1:]}; points are simulated", x_title, ERROR, curves, log_x=True, log_y=True
    )


def _points(name: str, x: Sequence[int], found: Sequence[Contestant | None]) -> Curve:
    """Return the simulated errors, without those of 0, which a logarithmic axis cannot show."""
    y = [None if one is None or one.simulated == 0.0 else one.simulated for one in found]
    return Curve(f"{name}, simulated", x, y, kind="points")


SAMPLING = "sampling_privacy"
ALIKE = 1.001
FORMS = (SAMPLING, "sampling_privacy_refreshed", "sampling_privacy_suppressed", "sampling_privacy_binary")

HELPED = {"laplace_counts", "sample_then_suppress", "distributed_laplace"}


def answer(contests: Mapping[str, Sequence[Contest]]) -> str:
    """Return the answer to whether one should use Sampling Privacy, counted over every view and setting."""
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
        The view.
    contests
        The contests of that view, in every setting.
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
    """Return the ratio of the error of Sampling Privacy's best form to the smallest error, in words."""
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
    """Return the mechanisms whose error stays constant with the devices asked, and those whose error grows."""
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


RULE = "theory in the place of published; agrees: simulation within theory's interval, family-wise 1 in 10,000"


def reproduce(*, seed: int = 1) -> Reproduction:
    """Plan and simulate every mechanism for every view and setting, and find the one with the smallest error.

    Parameters
    ----------
    seed
        Seed of the simulations.
    """
    rng = np.random.default_rng(seed)
    contests = {view: [hold(setting, rng=rng) for setting in settings(view)] for view in VIEWS}
    rows = [row for held in contests.values() for contest in held for row in _rows(contest)]
    drawings = [panel for view, held in contests.items() for panel in draw(view, held)]
    return Reproduction(rows=tuple(rows), drawings=tuple(drawings), findings=tuple(_all_findings(contests)))


def _all_findings(contests: dict[str, list[Contest]]) -> Iterator[str]:
    yield answer(contests)
    for view, held in contests.items():
        yield from findings(view, held)


def _rows(contest: Contest) -> Iterator[Row]:
    """Yield the row of the best mechanism, then one row per mechanism, those that meet the target first."""
    key = contest.setting.key
    ranking = contest.ranking
    if ranking:
        best = ranking[0].plan
        beaten = [one.plan.name for one in ranking[1:2]]
        note = f"RMSE {best.std_error:.4g} vehicles in a cell of 100" + (
            f"; next {beaten[0]}, {ranking[1].plan.std_error:.4g}" if beaten else ""
        )
        yield Row(f"{key}: winner", None, best.name, None, note)
    for one in ranking:
        made = one.plan
        chosen = {**made.parameters, **({} if made.release is None else made.release)}
        words = ", ".join(f"{name}={_short(value)}" for name, value in chosen.items())
        yield Row(f"{key}, {made.name}", made.std_error, one.simulated, one.agrees, f"{RULE}; at {words}")
    for one in contest.contestants:
        if not one.plan.meets:
            yield Row(f"{key}, {one.plan.name}", None, None, None, one.plan.reason or "No plan.")


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "/".join(_short(part) for part in value)
    return str(value)


ENTRIES: tuple[Entry, ...] = (
    Entry("rivals", "crowdveil", "Every mechanism at one (ε, δ) for one view: theory beside simulation", reproduce),
)
