"""``[release]``: how a trusted server protects counts or speeds before publication, and the valid combinations.

``[[refinements]]``: post-processing of estimates, in separate result rows that are marked as biased.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from scenarios.errors import RuleViolation
from scenarios.field_types import Name, Positive, PositiveProbability, number
from scenarios.kinds import is_capable, names_of
from scenarios.rules import EachOnce
from scenarios.section import ByKind, NamedByKind, Section, ValidFields

MOST_LEVELS = 16
MOST_K = 100_000

Threshold = Annotated[int, Field(ge=1, le=MOST_K)]


class ReleaseSection(Section):
    """A release of some kind.

    Its capabilities are the statistics of campaigns that it can publish; "whole": it publishes only if all reports were
    received; "exact": it needs the true counts of all devices.
    """

    role = "release"
    kind: str


class NoRelease(ReleaseSection):
    """Publish counts or speeds unchanged."""

    kind: Literal["none"] = "none"
    title = "no release"
    capabilities = frozenset({"count", "mean_speed", "median_speed"})
    sample: PositiveProbability = 1.0
    """Share of a cell's vehicles whose speeds are used: a simple random sample drawn beforehand."""


class _OfCounts(ReleaseSection):
    """Fields that all releases of counts have in common."""

    mechanisms: Annotated[tuple[Name, ...], Field(strict=False, min_length=1)] | None = None
    """Names of the mechanisms whose counts are published. Default: all the mechanisms that the release supports."""


class Suppress(_OfCounts):
    """Sample the devices, then publish only cells in which at least k were sampled (LQS theorem 5)."""

    kind: Literal["suppress"]
    title = "suppression"
    capabilities = frozenset({"count"})
    k: Threshold
    """Cells with fewer sampled devices than this are not published."""
    sampling: PositiveProbability | None = None
    """Probability that a device is sampled; required where the server holds exact counts.

    Devices of Sampling Privacy sample themselves: the mechanism's own sampling probability is used."""


class Generalise(_OfCounts):
    """Choose the coarseness of the cells privately, then sample and suppress (LQS theorem 6)."""

    kind: Literal["generalise"]
    title = "generalisation"
    capabilities = frozenset({"count", "whole"})
    k: Threshold
    """Blocks of cells with fewer sampled devices than this are not published."""
    sampling: PositiveProbability | None = None
    """Probability that a device is sampled, as for ``suppress``."""
    epsilon: Positive
    """ε spent on the choice, by the exponential mechanism."""
    levels: Annotated[int, Field(ge=1, le=MOST_LEVELS)]
    """How many times the side of a cell may be doubled; the original cells are one of the choices."""


class Recode(_OfCounts):
    """Cluster the devices and recode every cluster of at least k locally: documented as vulnerable (LQS 3.1)."""

    kind: Literal["recode"]
    title = "local recoding"
    capabilities = frozenset({"count", "whole", "exact"})
    k: Threshold
    """Minimum number of devices in a cluster."""


class Laplace(_OfCounts):
    """Add Laplace noise to the counts, or to the mean of a cell's speeds."""

    kind: Literal["laplace"]
    title = "Laplace noise"
    capabilities = frozenset({"count", "mean_speed"})
    epsilon: Positive
    """ε of the release, including amplification by sampling."""
    sampling: PositiveProbability | None = None
    """For counts: probability that a device is sampled beforehand. Default: all devices are used, or those that sample
    themselves."""
    sample: PositiveProbability = 1.0
    """For speeds: share of a cell's vehicles in a simple random sample drawn beforehand."""


class ThresholdRelease(_OfCounts):
    """Add Laplace noise to the counts, and publish only cells whose noisy count is at least k."""

    kind: Literal["threshold"]
    title = "noise and threshold"
    capabilities = frozenset({"count", "whole", "exact"})
    k: Threshold
    """Cells with a smaller noisy count than this are not published."""
    epsilon: Positive
    """ε of the noise."""


class SmoothMedianSection(_OfCounts):
    """Publish the median of a cell's speeds with noise scaled to its smooth sensitivity (HDK eq 4)."""

    kind: Literal["smooth_median"]
    title = "median with smooth sensitivity"
    capabilities = frozenset({"median_speed"})
    epsilon: Positive
    """ε of the release, including amplification by sampling."""
    delta: Annotated[float, Field(gt=0, lt=1)]
    """δ: the probability with which the limit ε may fail."""
    sample: PositiveProbability = 1.0
    """Share of a cell's vehicles in a simple random sample drawn beforehand."""


Release = Annotated[ReleaseSection, ByKind("release")]


@dataclass(frozen=True)
class ReleaseRules:
    """One campaign's release, with everything its rules depend on.

    Parameters
    ----------
    campaign, release
        Valid fields of each.
    at
        Path of the release: in the campaign, or at the root for all campaigns without their own.
    mechanisms
        Valid fields of each mechanism.
    channel, aggregation
        Valid fields of each; the aggregation is the campaign's own, or the default one.
    """

    campaign: ValidFields
    release: ValidFields
    at: tuple[str | int, ...]
    mechanisms: Sequence[ValidFields]
    channel: ValidFields
    aggregation: ValidFields

    @property
    def kind(self) -> str:
        """The kind of release."""
        return str(self.release["kind"])

    @property
    def whole(self) -> bool:
        """Whether it publishes only if all reports were received."""
        return is_capable("release", self.kind, "whole")

    def obstacle(self, mechanism: ValidFields) -> str | None:
        """Return the reason why the release cannot publish this mechanism's counts, or None if it can."""
        why = None
        if is_capable("mechanism", mechanism["kind"], "exact"):
            if self.whole and not self.everything_arrives():
                why = f"{self.kind} takes the counts of all devices asked, so every report must arrive"
        elif self.campaign["statistic"] != "count":
            why = "devices report their speed to a trusted server, so it needs kind no_privacy"
        elif not is_capable("mechanism", mechanism["kind"], "sampled"):
            why = "its server holds noisy answers, not numbers of devices"
        elif mechanism.get("refresh"):
            why = "its differences are numbers of sampled devices only with refresh = 0"
        elif is_capable("release", self.kind, "exact"):
            why = f"{self.kind} needs the exact counts of all devices, and its server has those of the sampled ones"
        elif not self.everything_arrives():
            why = "its differences are the sampled devices' counts only where every report arrives"
        return why

    def everything_arrives(self) -> bool:
        """Return whether the channel loses no report and every report arrives before the deadline."""
        question, loses = (
            self.channel.section("question"),
            ("loss", "loss_one", "loss_two", "churn", "outages", "zones"),
        )
        if question.get("loss") or any(self.channel.get(key) for key in loses):
            return False
        latencies = [latency for way in (question, self.channel) if (latency := way.get("latency_s")) is not None]
        if any(latency.kind != "constant" for latency in latencies):
            return False
        takes_s = sum(latency.value_s for latency in latencies)
        return bool(takes_s <= self.campaign.get("deadline_s", takes_s))

    def published(self) -> list[ValidFields]:
        """Return the mechanisms whose counts or speeds the release publishes."""
        named = self.release.get("mechanisms")
        able = [mechanism for mechanism in self.mechanisms if self.obstacle(mechanism) is None]
        return able if named is None else [mechanism for mechanism in able if mechanism["name"] in named]


def broken_release(released: ReleaseRules) -> Iterator[RuleViolation]:
    """Yield each broken rule of one campaign's release; paths start at the root."""
    if not all(mechanism.has("kind", "name") for mechanism in released.mechanisms):
        return  # mechanisms without a valid kind or name have faults of their own
    release, at, statistic = released.release, released.at, released.campaign["statistic"]
    counted = statistic == "count"
    if not counted and not any(is_capable("mechanism", each["kind"], "exact") for each in released.mechanisms):
        return  # reported as a fault of the campaign
    fitting = names_of("release", statistic)
    if released.kind not in fitting:
        listed = " or ".join(f'"{kind}"' for kind in fitting)
        campaign = "" if at[0] == "campaigns" else f", as in campaigns.{released.campaign.get('name')}: give it its own"
        yield RuleViolation((*at, "kind"), f'must be {listed} where statistic = "{statistic}"{campaign}', released.kind)
        return
    if counted and release.get("sample", 1.0) != 1.0:
        rule = 'needs statistic = "mean_speed" or "median_speed"; for counts use sampling'
        yield RuleViolation((*at, "sample"), rule, release["sample"])
    if not counted and release.get("sampling") is not None:
        rule = 'needs statistic = "count"; for speeds use sample'
        yield RuleViolation((*at, "sampling"), rule, release["sampling"])
    if released.kind != "none":
        yield from _servers(released)
        yield from _mechanisms(released)
        if counted and "sampling" in release:
            yield from _sampling(released)


def _servers(released: ReleaseRules) -> Iterator[RuleViolation]:
    kind, paired = released.aggregation.get("kind", "trusted"), released.aggregation.get("paired")
    if kind != "trusted" or paired:
        reports = "paired reports" if kind == "trusted" else f'aggregation.kind = "{kind}"'
        rule = f"needs one trusted server that counts all reports received, and does not support {reports}"
        yield RuleViolation((*released.at, "kind"), rule, released.kind)


def _mechanisms(released: ReleaseRules) -> Iterator[RuleViolation]:
    kind, at, named = released.kind, released.at, released.release.get("mechanisms")
    if named is None:
        if not released.published():
            why = "; ".join(f"{m['name']}: {released.obstacle(m)}" for m in released.mechanisms)
            yield RuleViolation((*at, "kind"), f"can publish for none of the mechanisms ({why})", kind)
        return
    by_name = {mechanism["name"]: mechanism for mechanism in released.mechanisms}
    for index, name in enumerate(named):
        place = (*at, "mechanisms", index)
        if name not in by_name:
            yield RuleViolation(place, f"there is no mechanism of this name; there are {', '.join(by_name)}", name)
        elif name in named[:index]:
            yield RuleViolation(place, "names must differ", name)
        elif (obstacle := released.obstacle(by_name[name])) is not None:
            yield RuleViolation(place, f"{kind} cannot publish for it: {obstacle}", name)


def _sampling(released: ReleaseRules) -> Iterator[RuleViolation]:
    sampling, at = released.release["sampling"], (*released.at, "sampling")
    for mechanism in released.published():
        name = mechanism["name"]
        if is_capable("mechanism", mechanism["kind"], "exact"):
            if sampling is None and released.kind != "laplace":
                rule = (
                    f"is required, because the server of mechanisms.{name} has exact counts; or name other mechanisms "
                    "in mechanisms"
                )
                yield RuleViolation(at, rule)
        elif sampling is not None and mechanism.has("sampling") and sampling != mechanism["sampling"]:
            rule = (
                f"must be left out or be the devices' own, mechanisms.{name}.sampling = "
                f"{number(mechanism['sampling'])}: they sample themselves; or name other mechanisms in mechanisms"
            )
            yield RuleViolation(at, rule, sampling)


def released_by(scenario: ValidFields, index: int) -> ReleaseRules | None:
    """Return the release of the campaign at `index`, its own or the default, or None if a fault leaves it undetermined.

    Parameters
    ----------
    scenario
        Valid fields of the scenario.
    index
        Index of the campaign in the list of campaigns.
    """
    campaign = scenario.sections("campaigns")[index]
    if "release" not in campaign or not campaign.has("statistic"):
        return None
    of_campaign = campaign["release"] is not None
    release = campaign.section("release") if of_campaign else scenario.section("release")
    if not release.has("kind"):
        return None
    at: tuple[str | int, ...] = ("campaigns", index, "release") if of_campaign else ("release",)
    aggregation = scenario.section("aggregation")
    if campaign.has("aggregation"):
        aggregation = campaign.section("aggregation")
    elif campaign["statistic"] != "count":
        aggregation = ValidFields()  # speeds are reported to a trusted server
    return ReleaseRules(
        campaign, release, at, scenario.sections("mechanisms"), scenario.section("channel"), aggregation
    )


class RefinementSection(NamedByKind):
    """A refinement of some mechanisms' estimates; results name its rows ``MECHANISM+REFINEMENT``."""

    role = "refinement"
    mechanisms: Annotated[tuple[Name, ...], Field(strict=False, min_length=1)] | None = None
    """Names of the mechanisms refined. Default: all except the baselines without privacy."""

    rules = (EachOnce(("mechanisms",)),)


class Clip(RefinementSection):
    """Counts below 0 become 0, and counts above the number of devices asked become that number."""

    kind: Literal["clip"]


class ToTotal(RefinementSection):
    """A refinement whose counts have a given sum."""

    total: Literal["estimated", "asked"] = "estimated"
    """The sum of the refined counts: the sum of the unrefined estimates, limited to between 0 and the number of devices
    asked; or the number of devices asked, which assumes that every one of them is in some cell."""


class NormSub(ToTotal):
    """Counts below 0 become 0, then the same amount is subtracted from (or added to) all others, until the sum fits."""

    kind: Literal["norm_sub"]


class NormMul(ToTotal):
    """Counts below 0 become 0, and all others are multiplied by the factor that gives the required sum."""

    kind: Literal["norm_mul"]


class Simplex(ToTotal):
    """The nearest non-negative counts with the required sum; equal to norm_sub if the total is estimated."""

    kind: Literal["simplex"]


class InverseProbability(RefinementSection):
    """Counts divided by the known probability that a vehicle of the cell takes part and that its report arrives.

    The probabilities come from `population.participation` and `population.rates`, and from `[channel]`. They must be
    known by cell: rates and zones are by time, or by `cells` of the campaign's own partition.
    """

    kind: Literal["inverse_probability"]


Refinement = Annotated[RefinementSection, ByKind("refinement")]
