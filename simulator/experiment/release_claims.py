"""Release claims: what each release proves of what it publishes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from mechanisms.local import LocalMechanism, SamplingPrivacy
from mechanisms.privacy import PrivacyClaim, ReleasedCounts, ReleasedDifferences
from simulator.experiment.releases import CampaignRelease

RELEASED_VALUES = "released_values"
"""The view of a published statistic of values. Neighbours differ in one device's value (bounded, HDK 2.1): it says
nothing of where a device is, and so is no view of a mechanism that hides places."""

STATISTICS = {"mean_speed": "mean speeds", "median_speed": "median speeds"}

Place = Mapping[str, int | None]


def released_claims(
    name: str,
    mechanism: LocalMechanism,
    releases: Iterable[CampaignRelease],
    queries: int,
    crowds: Sequence[int],
) -> Iterator[tuple[str, Place, PrivacyClaim]]:
    """Yield the view, its parameters and the claim of each different release of one mechanism.

    Parameters
    ----------
    name, mechanism
        Whose counts or speeds.
    releases
        Of all campaigns; the same release of several campaigns is stated once. What campaigns tell together is not.
    queries
        Queries under one release.
    crowds
        Devices in the cell, besides "whatever the crowd".
    """
    alike: dict[tuple[str, str], list[CampaignRelease]] = {}
    for release in releases:
        if name in release.counts or (release.speeds and release.speeds.mechanism == name):
            alike.setdefault((release.statistic, release.words), []).append(release)
    for (statistic, words), group in alike.items():
        campaigns = "campaign " if len(group) == 1 else "campaigns "
        told = f"Released by {words}, {campaigns}{', '.join(release.campaign for release in group)}: "
        first = group[0]
        if first.speeds is not None:
            claim = first.speeds.release.claim(queries=queries)
            yield RELEASED_VALUES, {}, replace(claim, basis=f"{told}{STATISTICS[statistic]}. {claim.basis}")
            continue
        differences = isinstance(mechanism, SamplingPrivacy)
        view = ReleasedDifferences(1).name if differences else ReleasedCounts(1).name
        k = first.section.get("k")
        for crowd in (None, *crowds):
            claim = first.counts[name].claim(crowd=crowd, queries=queries)
            yield view, {"crowd": crowd, "k": k}, replace(claim, basis=f"{told}{claim.basis}")
