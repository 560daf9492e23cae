"""Builds the releases that trusted servers apply before they publish."""

import math
from collections.abc import Callable, Mapping
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
from scenarios.kinds import is_capable
from scenarios.plug_ins import is_own_kind
from scenarios.release import ReleaseRules
from simulator.aggregation.publication import Publication, SampledCounts
from simulator.experiment.assembly.constructors import build_own_kind, constructor_of
from simulator.experiment.study_area import City
from simulator.files.messages import QUESTION, Note, notes_of, warning
from simulator.sensing.speed_survey import SpeedQuestion

INTERVALS = {"laplace": "noise", "smooth_median": "greatest noise"}
BOUNDS = {"lower": "lower_mps", "upper": "upper_mps"}


def build_release(released: ReleaseRules, mechanisms: Mapping[str, Any], city: City) -> dict[str, Any]:
    """Return what a campaign's release determines of a `Campaign`: some of its attributes, by name.

    Raises
    ------
    ParameterError
        If the parameters of the release are invalid.
    """
    build = _of_counts if released.campaign["statistic"] == "count" else _of_speeds
    return build(released, mechanisms, city)


def place_of(released: ReleaseRules, key: str) -> str:
    """Return the key path of an invalid parameter of a release."""
    campaign = f"campaigns.{released.campaign['name']}"
    if key in BOUNDS:
        return f"{campaign}.{BOUNDS[key]}"
    return f"release.{key}" if released.at == ("release",) else f"{campaign}.release.{key}"


def _section(released: ReleaseRules) -> dict[str, Any]:
    left_out = {"mechanisms", "sample" if released.campaign["statistic"] == "count" else "sampling"}
    return {key: value for key, value in released.release.items() if value is not None and key not in left_out}


def _of_counts(released: ReleaseRules, mechanisms: Mapping[str, Any], city: City) -> dict[str, Any]:
    section = _section(released)
    if released.kind == "none":
        return {"release": section}
    publications: dict[str, Publication] = {}
    build, whole = _builder(released), released.whole
    for published in released.published():
        name, themselves = str(published["name"]), is_capable("mechanism", published["kind"], "sampled")
        sampling = mechanisms[name].sampling if themselves else released.release.get("sampling") or 1.0
        made = build(released.release, sampling=sampling, city=city, themselves=themselves)
        if isinstance(made, SampledCounts):
            divided = made if themselves or not whole else None
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
    return {"release": section, "publications": publications, "notes": notes}


def _builder(released: ReleaseRules) -> Callable[..., Any]:
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
    kind = GeneralisedSample if themselves else Generalised
    release = kind(levels=levels, k=given["k"], sampling=sampling, epsilon=given["epsilon"])
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


def _of_speeds(released: ReleaseRules, mechanisms: Mapping[str, Any], city: City) -> dict[str, Any]:
    campaign, release = released.campaign, released.release
    receiver = str(released.published()[0]["name"])
    upper = campaign["upper_mps"]
    if upper is None and not city.has_roads:
        raise ParameterError("upper", "is required where no roads bound speeds", None)
    bounds = {
        "lower": float(campaign["lower_mps"]),
        "upper": float(math.ceil(city.roads.links.speed_mps.max()) if upper is None else upper),
    }
    build, statistic, least = constructor_of("release", released.kind), campaign["statistic"], campaign["min_vehicles"]
    sampled = {**bounds, "sample": float(release["sample"])}
    made: ValueRelease = build(release, bounds=sampled, statistic=statistic)
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
        "release": {**_section(released), **dict(zip(QUESTION, (*bounds.values(), least), strict=True))},
        "speeds": SpeedQuestion(statistic, made, least, receiver, interval, *bounds.values()),
        "notes": tuple(notes),
    }
