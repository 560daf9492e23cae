"""Builds the releases that trusted servers apply before they publish."""

import math
from collections.abc import Callable, Mapping
from functools import singledispatch
from typing import Any

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
from scenarios import release as sections
from scenarios.kinds import is_capable
from simulator.aggregation.publication import Publication, SampledCounts
from simulator.experiment.assembly.own_kinds import accepted
from simulator.experiment.study_area import City
from simulator.files.messages import QUESTION, Note, notes_of, warning
from simulator.sensing.speed_survey import SpeedQuestion

INTERVALS = {"laplace": "noise", "smooth_median": "greatest noise"}
BOUNDS = {"lower": "lower_mps", "upper": "upper_mps"}


def build_release(
    released: sections.ReleaseRules, section: sections.ReleaseSection, mechanisms: Mapping[str, Any], city: City
) -> dict[str, Any]:
    """Return what a campaign's release determines of a `Campaign`: some of its attributes, by name.

    Raises
    ------
    ParameterError
        If the parameters of the release are invalid.
    """
    build = _of_counts if released.campaign["statistic"] == "count" else _of_speeds
    return build(released, section, mechanisms, city)


def place_of(released: sections.ReleaseRules, key: str) -> str:
    """Return the key path of an invalid parameter of a release."""
    campaign = f"campaigns.{released.campaign['name']}"
    if key in BOUNDS:
        return f"{campaign}.{BOUNDS[key]}"
    return f"release.{key}" if released.at == ("release",) else f"{campaign}.release.{key}"


def _keys(released: sections.ReleaseRules) -> dict[str, Any]:
    left_out = {"mechanisms", "sample" if released.campaign["statistic"] == "count" else "sampling"}
    return {key: value for key, value in released.release.items() if value is not None and key not in left_out}


def _of_counts(
    released: sections.ReleaseRules, section: sections.ReleaseSection, mechanisms: Mapping[str, Any], city: City
) -> dict[str, Any]:
    if isinstance(section, sections.NoRelease):
        return {"release": _keys(released)}
    publications: dict[str, Publication] = {}
    for published in released.published():
        name, themselves = str(published["name"]), is_capable("mechanism", published["kind"], "sampled")
        sampling = mechanisms[name].sampling if themselves else released.release.get("sampling") or 1.0
        made = counts_release(section, sampling=sampling, city=city, themselves=themselves)
        if isinstance(made, SampledCounts):
            divided = made if themselves or not released.whole else None
            publications[name] = Publication(made.release_at(1.0), divided, differences=themselves)
        else:
            publications[name] = Publication(made)
    where = f"campaigns.{released.campaign['name']}"
    uncovered = (
        f"{where}: {mechanism['name']} publishes its own estimates, not through "
        f"{released.kind}: {released.obstacle(mechanism) or 'release.mechanisms does not name it'}"
        for mechanism in released.mechanisms
        if mechanism["name"] not in publications
    )
    notes = tuple(notes_of("not_released", uncovered, where))
    return {"release": _keys(released), "publications": publications, "notes": notes}


@singledispatch
def counts_release(
    section: sections.ReleaseSection, *, sampling: float, city: City, themselves: bool
) -> SampledCounts | CountRelease:
    """Return the release of a mechanism's counts, by the function for the class of the section.

    Parameters
    ----------
    section
        The section of the release.
    sampling
        Probability with which a device is sampled.
    city
        The city with the cells of the campaign.
    themselves
        Whether devices sample themselves, so that no server has all counts.
    """
    raise NotImplementedError(type(section).__name__)


@counts_release.register
def _suppress(section: sections.Suppress, *, sampling: float, city: City, themselves: bool) -> SampledCounts:  # noqa: ARG001 - as `counts_release`
    return SampledCounts(sampling, lambda share: SampleThenSuppress(k=section.k, sampling=sampling * share))


@counts_release.register
def _generalise(section: sections.Generalise, *, sampling: float, city: City, themselves: bool) -> SampledCounts:
    levels = [city.cells.coarsened(level) for level in range(section.levels + 1)]
    kind = GeneralisedSample if themselves else Generalised
    release = kind(levels=levels, k=section.k, sampling=sampling, epsilon=section.epsilon)
    return SampledCounts(sampling, lambda share: release)  # noqa: ARG005 - the release is the same for any share


@counts_release.register
def _recode(section: sections.Recode, *, sampling: float, city: City, themselves: bool) -> LocalRecoding:  # noqa: ARG001 - as `counts_release`
    return LocalRecoding(k=section.k, places=city.centres())  # the places of the devices, as far as they are known


@counts_release.register
def _laplace(section: sections.Laplace, *, sampling: float, city: City, themselves: bool) -> SampledCounts:  # noqa: ARG001 - as `counts_release`
    noise = LaplaceCounts(epsilon=section.epsilon, sampling=sampling).sample_epsilon

    def release_at(share: float) -> LaplaceCounts:
        # The noise does not change: if only a part is received, it protects more than requested.
        epsilon = math.log1p(sampling * share * math.expm1(noise))
        return LaplaceCounts(epsilon=epsilon, sampling=sampling * share)

    return SampledCounts(sampling, release_at)


@counts_release.register
def _threshold(section: sections.ThresholdRelease, *, sampling: float, city: City, themselves: bool) -> ThresholdCounts:  # noqa: ARG001 - as `counts_release`
    return ThresholdCounts(epsilon=section.epsilon, k=section.k)


SPEED_RELEASES: Mapping[type[sections.ReleaseSection], Callable[..., ValueRelease]] = {
    sections.NoRelease: ExactStatistic,
    sections.Laplace: LaplaceMean,
    sections.SmoothMedianSection: SmoothMedian,
}
"""The release of a cell's speeds by the class of its section; parameters are the section's keys, and others."""


def _of_speeds(
    released: sections.ReleaseRules, section: sections.ReleaseSection, mechanisms: Mapping[str, Any], city: City
) -> dict[str, Any]:
    campaign, release = released.campaign, released.release
    receiver = str(released.published()[0]["name"])
    upper = campaign["upper_mps"]
    if upper is None and not city.has_roads:
        raise ParameterError("upper", "is required where no roads bound speeds", None)
    bounds = {
        "lower": float(campaign["lower_mps"]),
        "upper": float(math.ceil(city.roads.links.speed_mps.max()) if upper is None else upper),
    }
    statistic, least = campaign["statistic"], campaign["min_vehicles"]
    build = SPEED_RELEASES[type(section)]
    made = build(**accepted(build, {**section.model_dump(), **bounds, "statistic": statistic.removesuffix("_speed")}))
    interval = INTERVALS.get(released.kind, "exact" if release["sample"] == 1.0 else "sampling")
    others = ", ".join(name for name in mechanisms if name != receiver)
    where = f"campaigns.{campaign['name']}"
    text = f"{where}: speeds are reported to {receiver}; {others} take no part"
    notes = [Note("not_asked", text, where=where)] if others else []
    if city.has_roads and (fastest := city.roads.links.speed_mps.max()) > bounds["upper"]:
        text = (
            f"{where}.upper_mps = {bounds['upper']:g} m/s is below the speed of the fastest link, {fastest:.3g} m/s: "
            "releases with noise take greater speeds as this bound"
        )
        notes.append(warning("speed_bound", text, f"{where}.upper_mps"))
    return {
        "release": {**_keys(released), **dict(zip(QUESTION, (*bounds.values(), least), strict=True))},
        "speeds": SpeedQuestion(statistic, made, least, receiver, interval, *bounds.values()),
        "notes": tuple(notes),
    }
