"""Contest: all mechanisms in one setting, planned, and simulated at what was planned."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.central import LaplaceCounts, SampleThenSuppress
from mechanisms.planning import FAMILIES, Plan, plan
from mechanisms.planning.spread import error_interval
from simulator.reproduction.rivals.setting import Setting

# The papers' false starts come to randomized response at their best (their plans say so), and so does the three-answer
# form wherever its linked reports must be private; its many parameters would take most of the time.
LEFT_OUT = {"sampled_response", "sampling_and_noise", "anonymized_deniable"}
# Where what is published must be private, the first three are bounded by linked reports only, which leaves randomized
# response, and a server that samples publishes by the law of devices that sample themselves.
LEFT_OUT_RELEASED = {
    "sampling_privacy_refreshed",
    "anonymized_first_attempt",
    "anonymized_local",
    "sample_then_suppress",
}
SIMULATED = 1000
# Probability that any of the simulations of one run falls outside its interval though theory holds.
FAMILY, MOST_ROWS = 1e-4, 500


@dataclass(frozen=True)
class Contestant:
    """A mechanism in a setting.

    Parameters
    ----------
    plan
        Its plan; `meets` says whether there is one.
    simulated
        Root mean square error of the simulated cells; NaN without a plan.
    low, high
        Where theory has it, all simulations of a run together failing one time in ten thousand.
    """

    plan: Plan
    simulated: float
    low: float
    high: float

    @property
    def agrees(self) -> bool:
        """Whether the simulation is where theory has it."""
        return self.low <= self.simulated <= self.high


@dataclass(frozen=True)
class Contest:
    """A setting and its contestants.

    Parameters
    ----------
    setting
        Where.
    contestants
        In the order of the families.
    """

    setting: Setting
    contestants: Sequence[Contestant]

    @property
    def ranking(self) -> list[Contestant]:
        """Those that meet the target, least error first."""
        meeting = [one for one in self.contestants if one.plan.meets]
        return sorted(meeting, key=lambda one: one.plan.std_error)

    def error_of(self, name: str) -> float:
        """Return theory's error of a mechanism; infinite where it has no plan."""
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
