"""All mechanisms compared at one (ε, δ) in one view: planned parameters, simulated errors and a verdict."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mechanisms.central import LaplaceCounts, SampleThenSuppress
from mechanisms.central.grid_noise import draw_noise
from mechanisms.planning import FAMILIES, Plan, Target, plan
from mechanisms.planning.error_distribution import error_interval
from simulator.reproduction.published_results import Curve, Results

EPSILON, DELTA = 1.0, 1e-6
OCCUPANCY = 100
POPULATIONS = (10**4, 10**5, 10**6, 10**7)
CELLS = (10, 100, 1000, 10_000)
POPULATION_OF_CELLS, CELLS_OF_POPULATION = 10**6, 100
VIEWS = {
    "report": "one report, whichever round's, and a device that moves",
    "linked_reports": "all of a device's reports and a device that moves",
    "released": "what is published, with nothing seen behind it, and a device that moves",
    "released, enter_leave": "what is published, with nothing seen behind it, and a device that enters or leaves",
}
"""What is compared: a view, and the adjacency where it is not a move."""


@dataclass(frozen=True)
class Setting:
    """V cells with 100 vehicles each; all other devices asked are outside.

    Parameters
    ----------
    view
        The view in which (ε, δ) must hold, a key of `VIEWS`.
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
        view, _, adjacency = self.view.partition(", ")
        return Target(
            cells=self.cells,
            population=self.population,
            occupancy=OCCUPANCY,
            view=view,
            epsilon=EPSILON,
            delta=DELTA,
            adjacency="enter_leave" if adjacency else "move",
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
    return list(dict.fromkeys([*over_population, *over_cells]))


# The papers' first attempts reduce to randomized response at their best parameters (their plans state so), and so does
# the three-answer form wherever its linked reports must be private; a search over its many parameters would take most
# of the time.
LEFT_OUT = {"sampled_response", "sampling_and_noise", "anonymized_deniable"}
# In the view "released" the first three equal randomized response or Sampling Privacy at their best parameters; and a
# server that samples publishes with the same distribution as devices that sample themselves.
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
class SimulatedPlan:
    """A mechanism planned for a setting, and the error of the plan in a simulation.

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
    simulated: float = math.nan
    low: float = math.nan
    high: float = math.nan

    @property
    def agrees(self) -> bool:
        """Whether the simulated error lies in the interval that theory gives."""
        return self.low <= self.simulated <= self.high


@dataclass(frozen=True)
class Comparison:
    """A setting and the plans of all mechanisms for it.

    Parameters
    ----------
    setting
        The setting.
    plans
        In the order of the families.
    """

    setting: Setting
    plans: Sequence[SimulatedPlan]

    @property
    def ranking(self) -> list[SimulatedPlan]:
        """The mechanisms that meet the target, in ascending order of error."""
        meeting = [one for one in self.plans if one.plan.meets]
        return sorted(meeting, key=lambda one: one.plan.std_error)

    @property
    def least_error(self) -> float:
        """The smallest theoretical error of any mechanism; infinite where none has a plan."""
        return self.error_of(*(one.plan.name for one in self.plans))

    def error_of(self, *names: str) -> float:
        """Return the smallest theoretical error of some mechanisms; infinite where they have no plan."""
        errors = (one.plan.std_error for one in self.plans if one.plan.meets and one.plan.name in names)
        return min(errors, default=math.inf)


def compare_in(setting: Setting, *, rng: np.random.Generator) -> Comparison:
    """Plan every mechanism for the setting, and simulate each plan."""
    left_out = LEFT_OUT | (LEFT_OUT_RELEASED if setting.target.view == "released" else set())
    names = [family.name for family in FAMILIES if family.name not in left_out]
    plans = plan(setting.target, names, claims=False).plans
    return Comparison(setting, [_simulate(made, setting, rng) for made in plans])


def _simulate(made: Plan, setting: Setting, rng: np.random.Generator) -> SimulatedPlan:
    if not made.meets:
        return SimulatedPlan(made)
    repeats = math.ceil(SIMULATED / setting.cells)
    errors = np.concatenate([_estimates(made, setting, rng) - setting.truth[1:] for _ in range(repeats)])
    low, high = error_interval(
        made.std_error, cells=len(errors), excess=made.excess_kurtosis, level=1.0 - FAMILY / MOST_ROWS
    )
    return SimulatedPlan(made, math.sqrt(float(np.mean(errors**2))), low, high)


def _estimates(made: Plan, setting: Setting, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return one query's published counts, (V,) float64."""
    truth, release = setting.truth, made.release
    if made.aggregation is not None:
        servers = made.mechanism.servers
        noise = draw_noise(made.mechanism.noise, servers * setting.cells, rng=rng).reshape(servers, -1)
        return np.asarray(truth[1:] + noise.sum(axis=0), dtype=np.float64)
    if release is not None and release["kind"] == "laplace":
        return LaplaceCounts(epsilon=release["epsilon"]).publish(truth[1:], rng=rng).count
    if release is not None:
        sampling = release.get("sampling", made.parameters.get("sampling"))
        suppressed = SampleThenSuppress(k=release["k"], sampling=sampling)
        if made.kind == "no_privacy":
            return suppressed.publish(truth[1:], rng=rng).count
        first, second = made.mechanism.sample_counts(truth, rng=rng)
        # Counts of values from 0, or of No and Yes about each cell.
        sampled = (second - first)[1:] if second.ndim == 1 else (second - first)[:, 1]
        return suppressed.publish_sampled(sampled).count
    asked = (setting.population,) * made.mechanism.rounds
    counts = made.mechanism.sample_counts(truth, rng=rng)
    estimates: NDArray[np.float64] = made.mechanism.estimate(counts, counted=asked, asked=asked).count
    return estimates


def compare(results: Results, seed: int) -> None:
    """Plan and simulate every mechanism for every view and setting, and find the one with the smallest error."""
    rng = np.random.default_rng(seed)
    comparisons = {view: [compare_in(setting, rng=rng) for setting in settings(view)] for view in VIEWS}
    results.findings.append(answer(comparisons))
    for view, compared in comparisons.items():
        for comparison in compared:
            add_rows(results, comparison)
        draw(results, view, compared)
        results.findings += findings(view, compared)


def add_rows(results: Results, comparison: Comparison) -> None:
    """Add the row of the best mechanism, then one row per mechanism, those that meet the target first."""
    key, ranking = comparison.setting.key, comparison.ranking
    if ranking:
        following = "".join(f"; next {one.plan.name}, {one.plan.std_error:.4g}" for one in ranking[1:2])
        results.add_row("winner", ranking[0].plan.name, key=key, error=comparison.least_error, next=following)
    for one in ranking:
        chosen = {**one.plan.parameters, **(one.plan.release or {})}
        words = ", ".join(f"{name}={_short(value)}" for name, value in chosen.items())
        crowd = "" if one.plan.crowd is None else f", if at least {one.plan.crowd} devices are in the cell"
        values = {"key": key, "name": one.plan.name, "parameters": f"{words}{crowd}"}
        results.add_row("plan", one.simulated, one.agrees, published=one.plan.std_error, **values)
    for one in comparison.plans:
        if not one.plan.meets:
            results.add_row("no_plan", None, key=key, name=one.plan.name, reason=one.plan.reason or "No plan.")


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "/".join(_short(part) for part in value)
    return str(value)


def draw(results: Results, view: str, comparisons: Sequence[Comparison]) -> None:
    """Draw two panels of a view, over the devices asked and over the cells: lines are theory, points are simulation."""
    by_setting = {comparison.setting: comparison for comparison in comparisons}
    title = VIEWS[view][0].upper() + VIEWS[view][1:]
    for panel, x, shown in (
        ("population", POPULATIONS, [by_setting[Setting(view, n, CELLS_OF_POPULATION)] for n in POPULATIONS]),
        ("cells", CELLS, [by_setting[Setting(view, POPULATION_OF_CELLS, v)] for v in CELLS]),
    ):
        curves = []
        for name in (one.plan.name for one in shown[0].plans):
            found = [next((one for one in each.ranking if one.plan.name == name), None) for each in shown]
            if any(one is not None for one in found):
                curves.append(Curve(name, x, [None if one is None else one.plan.std_error for one in found]))
                # A logarithmic axis cannot show a simulated error of 0.
                simulated = [None if one is None or one.simulated == 0.0 else one.simulated for one in found]
                curves.append(Curve(f"{name}, simulated", x, simulated, "points"))
        results.add_panel(panel, curves, view=title)


ALIKE = 1.001
FORMS = ("sampling_privacy", "sampling_privacy_refreshed", "sampling_privacy_suppressed", "sampling_privacy_binary")
SHUFFLED_ONLY = {"k_randomized_response", "olh", "subset_selection", "hadamard_response"}
"""Mechanisms whose claim about what is published holds where a server sees all reports in random order."""


def answer(comparisons: Mapping[str, Sequence[Comparison]]) -> str:
    """Return the answer to whether one should use Sampling Privacy, counted over every view and setting."""
    planned = [(view, one) for view, compared in comparisons.items() for one in compared if one.ranking]
    useful = sum(one.error_of(*FORMS) < OCCUPANCY for _, one in planned)
    won = {view: 0 for view, _ in planned}
    for view, one in planned:
        won[view] += one.error_of(*FORMS) <= one.least_error * ALIKE
    views = ", ".join(f"{count} of {len(comparisons[view])} for {VIEWS[view]}" for view, count in won.items())
    return (
        f"Should one use Sampling Privacy? At ε = {EPSILON:g}, δ = {DELTA:g} some form of it has the least error in "
        f"{sum(won.values())} of {len(planned)} settings ({views}); its error is below the {OCCUPANCY} vehicles of a "
        f"cell in {useful} of them. Errors are of each mechanism planned for that one view: what others then learn is "
        "in its plan (crowdveil plan)."
    )


def findings(view: str, comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Yield sentences about one view.

    Parameters
    ----------
    view
        The view.
    comparisons
        The comparisons of that view, in every setting.
    """
    where = f"At ε = {EPSILON:g}, δ = {DELTA:g} for {VIEWS[view]}"
    yield f"{where}: {_winners(comparisons)}"
    yield f"{where}, Sampling Privacy {_distance(comparisons)}"
    if view.startswith("released"):
        shuffled = [
            Comparison(each.setting, [one for one in each.plans if one.plan.name in SHUFFLED_ONLY])
            for each in comparisons
        ]
        yield f"{where}, of mechanisms that need a shuffler and no more {_winners(shuffled)}"
    useless = [each for each in comparisons if each.ranking and each.least_error >= OCCUPANCY]
    if useless:
        yield (
            f"{where}, in {len(useless)} of {len(comparisons)} settings even the least error is the {OCCUPANCY} "
            "vehicles of a cell or more: to answer 0 everywhere is as good."
        )
    yield f"{where}, {_growth(view, comparisons)}"


def _winners(comparisons: Sequence[Comparison]) -> str:
    won = Counter(comparison.ranking[0].plan.name for comparison in comparisons if comparison.ranking)
    words = [f"{name} has the least error in {count} of {len(comparisons)} settings" for name, count in won.items()]
    return "; ".join(words) + "." if words else "no mechanism meets it."


def _distance(comparisons: Sequence[Comparison]) -> str:
    """Return the ratio of the error of Sampling Privacy's best form to the smallest error, in words."""
    ratios = [each.error_of(*FORMS) / each.least_error for each in comparisons if each.error_of(*FORMS) < math.inf]
    if not ratios:
        return "meets it in no form and no setting."
    low, high, where = min(ratios), max(ratios), f"{len(ratios)} settings where it has a plan."
    if high <= ALIKE:
        return f"in the best of its forms has no larger error than any other in all {where}"
    times = f"{high:.3g}" if high - low < 0.01 * high else f"{low:.3g} to {high:.3g}"
    return f"in the best of its forms has {times} times the least error, over {where}"


def _growth(view: str, comparisons: Sequence[Comparison]) -> str:
    """Return the mechanisms whose error stays constant with the devices asked, and those whose error grows."""
    by_setting = {comparison.setting: comparison for comparison in comparisons}
    first, last = (by_setting[Setting(view, n, CELLS_OF_POPULATION)] for n in (POPULATIONS[0], POPULATIONS[-1]))
    constant: list[str] = []
    growing: list[str] = []
    for one in last.ranking:
        if (before := first.error_of(one.plan.name)) < math.inf:
            (constant if one.plan.std_error <= 1.1 * before else growing).append(one.plan.name)
    words = f"with {POPULATIONS[-1] // POPULATIONS[0]:,} times the devices asked the error of "
    return f"{words}{', '.join(constant) or 'no mechanism'} stays constant" + (
        f", that of {', '.join(growing)} grows." if growing else "."
    )
