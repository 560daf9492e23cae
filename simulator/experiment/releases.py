"""Releases of each campaign's trusted servers, built from the scenario."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mechanisms.central import (
    CountRelease,
    Generalised,
    LaplaceCounts,
    LaplaceMean,
    LocalRecoding,
    SampleThenSuppress,
    SmoothMedian,
    ThresholdCounts,
    ValueRelease,
)
from mechanisms.central.generalisation import GeneralisedSample
from mechanisms.central.simple_random_sample import ExactStatistic
from mechanisms.local import ParameterError
from scenarios import Fault, Scenario, ScenarioError
from scenarios.kinds import is_capable
from scenarios.plug_ins import is_own_kind
from scenarios.release import Released
from simulator.aggregation.publication import Publication, PublishedCounts, PublishedDifferences, SampledCounts
from simulator.experiment.build.constructors import build_own_kind, constructor_of
from simulator.experiment.error_theory import OCCUPANCIES
from simulator.experiment.study_area import City
from simulator.results.record import OccupancyTheory, ReleaseRecord
from simulator.sensing.speed_survey import SpeedQuestion

INTERVALS = {"laplace": "noise", "smooth_median": "greatest noise"}
QUESTION = ("lower_mps", "upper_mps", "min_vehicles")
"""Parameters of a campaign of speeds that are not part of its release."""
BOUNDS = {"lower": "lower_mps", "upper": "upper_mps"}


@dataclass(frozen=True, eq=False)
class CampaignRelease:
    """Release that one campaign's trusted servers apply before they publish.

    Attributes
    ----------
    campaign, statistic
        Name of the campaign, and the statistic that it estimates.
    section
        The release as the scenario specifies it: `kind` and its parameters.
    counts
        For counts: each mechanism's release, by name; the other mechanisms publish their own estimates.
    publications
        How these releases are applied to the server's counts.
    speeds
        For speeds: the question asked; otherwise None.
    notes
        What is not under the release, and why, in words.
    """

    campaign: str
    statistic: str
    section: Mapping[str, Any]
    counts: Mapping[str, CountRelease] = field(default_factory=dict)
    publications: Mapping[str, Publication] = field(default_factory=dict)
    speeds: SpeedQuestion | None = None
    notes: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The release in a few words: its kind and its parameters."""
        given = [
            f"{key} = {value:g}"
            for key, value in self.section.items()
            if isinstance(value, int | float) and key not in QUESTION and (key, value) != ("sample", 1.0)
        ]
        return f"{self.section['kind']} ({', '.join(given)})" if given else str(self.section["kind"])


def build_releases(scenario: Scenario, mechanisms: Mapping[str, Any], city: City) -> dict[str, CampaignRelease]:
    """Build every campaign's release, by the campaign's name.

    Raises
    ------
    ScenarioError
        If the parameters of a release are invalid.
    """
    built, faults = {}, []
    for released in scenario.released():
        name = str(released.campaign["name"])
        try:
            build = _of_counts if released.campaign["statistic"] == "count" else _of_speeds
            built[name] = build(released, mechanisms, city)
        except ParameterError as error:
            faults.append(Fault(_place(released, error.field), error.rule, error.value))
    if faults:
        raise ScenarioError(scenario.name, faults)
    return built


def _place(released: Released, key: str) -> str:
    """Return the key path of an invalid parameter of a release."""
    campaign = f"campaigns.{released.campaign['name']}"
    if key in BOUNDS:
        return f"{campaign}.{BOUNDS[key]}"
    return f"release.{key}" if released.at == ("release",) else f"{campaign}.release.{key}"


def _section(released: Released) -> dict[str, Any]:
    left_out = {"mechanisms", "sample" if released.campaign["statistic"] == "count" else "sampling"}
    return {key: value for key, value in released.release.items() if value is not None and key not in left_out}


def _of_counts(released: Released, mechanisms: Mapping[str, Any], city: City) -> CampaignRelease:
    name = str(released.campaign["name"])
    if released.kind == "none":
        return CampaignRelease(name, "count", _section(released))
    counts: dict[str, CountRelease] = {}
    publications: dict[str, Publication] = {}
    build, whole = _builder(released), released.whole
    for published in released.published():
        mechanism_name, themselves = str(published["name"]), is_capable("mechanism", published["kind"], "sampled")
        sampling = mechanisms[mechanism_name].sampling if themselves else released.release.get("sampling") or 1.0
        made = build(released.release, sampling=sampling, city=city, themselves=themselves)
        counts[mechanism_name] = made.release_at(1.0) if isinstance(made, SampledCounts) else made
        if themselves:
            publications[mechanism_name] = PublishedDifferences(made)
        else:
            publications[mechanism_name] = PublishedCounts(counts[mechanism_name], None if whole else made)
    notes = tuple(
        f"campaigns.{name}: {mechanism['name']} publishes its own estimates, not through {released.kind}: "
        + (released.obstacle(mechanism) or "release.mechanisms does not name it")
        for mechanism in released.mechanisms
        if mechanism["name"] not in counts
    )
    return CampaignRelease(name, "count", _section(released), counts, publications, notes=notes)


def _builder(released: Released) -> Callable[..., Any]:
    """Return what builds the release of a mechanism's counts."""
    if not is_own_kind("release", released.kind):
        return constructor_of("release", released.kind)
    parameters = {key: value for key, value in released.release.items() if key not in {"kind", "mechanisms"}}

    def build(_: Mapping[str, Any], *, city: City, **__: object) -> CountRelease:
        release: CountRelease = build_own_kind("release", released.kind, parameters, cells=city.cells)
        return release

    return build


def build_suppress(given: Mapping[str, Any], *, sampling: float, **_: object) -> SampledCounts:
    """Build the release that suppresses small counts of sampled devices."""
    return SampledCounts(sampling, lambda share: SampleThenSuppress(k=given["k"], sampling=sampling * share))


def build_laplace(
    given: Mapping[str, Any], *, sampling: float = 1.0, bounds: Mapping[str, float] | None = None, **_: object
) -> SampledCounts | LaplaceMean:
    """Build the release that adds Laplace noise: to the mean of speeds where these have `bounds`, else to counts."""
    if bounds is not None:
        return LaplaceMean(epsilon=given["epsilon"], **bounds)
    noise = LaplaceCounts(epsilon=given["epsilon"], sampling=sampling).sample_epsilon

    def release_at(share: float) -> LaplaceCounts:
        # The noise does not change: if only a part is received, it protects more than requested.
        epsilon = math.log1p(sampling * share * math.expm1(noise))
        return LaplaceCounts(epsilon=epsilon, sampling=sampling * share)

    return SampledCounts(sampling, release_at)


def build_generalise(given: Mapping[str, Any], *, sampling: float, city: City, themselves: bool) -> SampledCounts:
    """Build the release over coarser cells; `themselves` if devices sample themselves and no server has all counts."""
    levels = [city.cells.coarsened(level) for level in range(given["levels"] + 1)]
    whole = Generalised(levels=levels, k=given["k"], sampling=sampling, epsilon=given["epsilon"])
    release = GeneralisedSample(whole) if themselves else whole
    return SampledCounts(sampling, lambda share: release)  # noqa: ARG005 - the release is the same for any share


def build_recode(given: Mapping[str, Any], *, city: City, **_: object) -> LocalRecoding:
    """Build the release that recodes clusters of devices, which are at the centres of their cells."""
    centres = city.cells.polygons().geometry.centroid
    return LocalRecoding(k=given["k"], places=np.column_stack([centres.x, centres.y]))


def build_threshold(given: Mapping[str, Any], **_: object) -> ThresholdCounts:
    """Build the release of noisy counts from a threshold on."""
    return ThresholdCounts(epsilon=given["epsilon"], k=given["k"])


def build_smooth_median(given: Mapping[str, Any], *, bounds: Mapping[str, float], **_: object) -> SmoothMedian:
    """Build the release of medians of speeds."""
    return SmoothMedian(epsilon=given["epsilon"], delta=given["delta"], **bounds)


def build_none(_: Mapping[str, Any], *, bounds: Mapping[str, float], statistic: str) -> ExactStatistic:
    """Build the release that publishes speeds unchanged; its only parameter, the sample, is among the bounds."""
    return ExactStatistic(statistic="mean" if statistic == "mean_speed" else "median", **bounds)


def _of_speeds(released: Released, mechanisms: Mapping[str, Any], city: City) -> CampaignRelease:
    campaign, release = released.campaign, released.release
    receiver = str(released.published()[0]["name"])
    upper = campaign["upper_mps"]
    if upper is None and not city.has_roads:
        raise ParameterError("upper", "is required where no roads bound speeds", None)
    bounds = {
        "lower": float(campaign["lower_mps"]),
        "upper": float(math.ceil(city.roads.links.speed_mps.max()) if upper is None else upper),
        "sample": float(release["sample"]),
    }
    build, statistic = constructor_of("release", released.kind), campaign["statistic"]
    made: ValueRelease = build(release, bounds=bounds, statistic=statistic)
    interval = INTERVALS.get(released.kind, "exact" if release["sample"] == 1.0 else "sampling")
    own = {"lower_mps": bounds["lower"], "upper_mps": bounds["upper"], "min_vehicles": campaign["min_vehicles"]}
    section = {**_section(released), **own}
    others = ", ".join(name for name in mechanisms if name != receiver)
    words = f"campaigns.{campaign['name']}: speeds are reported to {receiver}; {others} take no part"
    notes = (words,) if others else ()
    least = campaign["min_vehicles"]
    question = SpeedQuestion(statistic, made, least, receiver, interval, bounds["lower"], bounds["upper"])
    return CampaignRelease(str(campaign["name"]), statistic, section, speeds=question, notes=notes)


def describe_releases(releases: Mapping[str, CampaignRelease]) -> list[ReleaseRecord]:
    """Return the record in `run.json` of every campaign of speeds or under a release."""
    return [
        ReleaseRecord(
            campaign=release.campaign,
            statistic=release.statistic,
            unit="vehicles" if release.statistic == "count" else "m/s",
            release=dict(release.section),
            words=release.words,
            mechanisms=[release.speeds.mechanism] if release.speeds else list(release.counts),
            notes=list(release.notes),
            theory={name: theory for name, of in release.counts.items() if (theory := _theory(of)) is not None},
        )
        for release in releases.values()
        if release.speeds or release.counts
    ]


def _theory(release: CountRelease) -> OccupancyTheory | None:
    if not isinstance(release, LaplaceCounts):
        return None  # suppressed counts are not noise around the truth
    shown = np.array(OCCUPANCIES, dtype=np.int64)
    return OccupancyTheory(occupancy=shown.tolist(), std_error=release.std_error(shown).tolist())
