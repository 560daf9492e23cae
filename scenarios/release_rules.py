"""Rules of a release: which statistic it fits, and which mechanisms' counts it can publish."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scenarios.faults import Breach
from scenarios.section import Known, known_of, number

STATISTICS = {
    "count": ("none", "suppress", "generalise", "recode", "laplace"),
    "mean_speed": ("none", "laplace"),
    "median_speed": ("none", "smooth_median"),
}
"""What a campaign may estimate, and the kinds of release that fit it."""


WHOLE = ("generalise", "recode")
"""Kinds that publish nothing of what was heard only in part."""


@dataclass(frozen=True)
class Released:
    """One campaign's release, with all that its rules look at.

    Parameters
    ----------
    campaign, release
        Their valid fields.
    at
        Where the release is written: in the campaign, or at the root, for all campaigns without their own.
    mechanisms
        Of each mechanism, its valid fields.
    channel, aggregation
        Their valid fields; the aggregation is the campaign's own, or the default one.
    """

    campaign: Known
    release: Known
    at: tuple[str | int, ...]
    mechanisms: Sequence[Known]
    channel: Known
    aggregation: Known

    @property
    def kind(self) -> str:
        """The kind of release."""
        return str(self.release["kind"])

    def obstacle(self, mechanism: Known) -> str | None:
        """Say why the release cannot publish this mechanism's counts; None where it can."""
        why = None
        if mechanism["kind"] == "no_privacy":
            if self.kind in WHOLE and not self.everything_arrives():
                why = f"{self.kind} takes the counts of all devices asked, so every report must arrive"
        elif self.campaign["statistic"] != "count":
            why = "devices tell their speed to a trusted server, so it takes kind no_privacy"
        elif mechanism["kind"] != "sampling_privacy":
            why = "its server holds noisy answers, not numbers of devices"
        elif mechanism.get("form") != "multi" or mechanism.get("refresh"):
            why = 'only with form = "multi" and refresh = 0 are its differences numbers of sampled devices'
        elif self.kind == "recode":
            why = "recode needs the exact counts of all devices, and its server has those of the sampled ones"
        elif not self.everything_arrives():
            why = "its differences are the sampled devices' counts only where every report arrives"
        return why

    def everything_arrives(self) -> bool:
        """Whether the channel loses nothing and the deadline waits for all."""
        if any(self.channel.get(key) for key in ("loss", "loss_one", "loss_two", "churn", "outages")):
            return False
        latency = self.channel.get("latency_s")
        if latency is None:
            return True
        return bool(latency.kind == "constant" and latency.value_s <= self.campaign.get("deadline_s", latency.value_s))

    def published(self) -> list[Known]:
        """Return the mechanisms whose counts, or speeds, it publishes."""
        named = self.release.get("mechanisms")
        able = [mechanism for mechanism in self.mechanisms if self.obstacle(mechanism) is None]
        return able if named is None else [mechanism for mechanism in able if mechanism["name"] in named]


def broken_release(released: Released) -> Iterator[Breach]:
    """Yield each broken rule of one campaign's release; paths start at the root."""
    if not all(mechanism.has("kind", "name") for mechanism in released.mechanisms):
        return  # what cannot be told apart is at fault itself
    release, at, statistic = released.release, released.at, released.campaign["statistic"]
    counted = statistic == "count"
    if not counted and not any(mechanism["kind"] == "no_privacy" for mechanism in released.mechanisms):
        return  # the campaign's own fault
    fitting = STATISTICS[statistic]
    if released.kind not in fitting:
        listed = " or ".join(f'"{kind}"' for kind in fitting)
        own = "" if at[0] == "campaigns" else f", as in campaigns.{released.campaign.get('name')}: give it its own"
        yield Breach((*at, "kind"), f'must be {listed} where statistic = "{statistic}"{own}', released.kind)
        return
    if counted and release.get("sample", 1.0) != 1.0:
        words = 'goes with statistic = "mean_speed" or "median_speed"; counts are sampled through sampling'
        yield Breach((*at, "sample"), words, release["sample"])
    if not counted and release.get("sampling") is not None:
        words = 'goes with statistic = "count"; of a cell\'s speeds a share is drawn through sample'
        yield Breach((*at, "sampling"), words, release["sampling"])
    if released.kind != "none":
        yield from _servers(released)
        yield from _mechanisms(released)
        if counted and "sampling" in release:
            yield from _sampling(released)


def _servers(released: Released) -> Iterator[Breach]:
    kind, paired = released.aggregation.get("kind", "trusted"), released.aggregation.get("paired")
    if kind != "trusted" or paired:
        who = "paired reports" if kind == "trusted" else f'aggregation.kind = "{kind}"'
        words = f"is the work of one trusted server that counts whatever it hears, and not for {who}"
        yield Breach((*released.at, "kind"), words, released.kind)


def _mechanisms(released: Released) -> Iterator[Breach]:
    kind, at, named = released.kind, released.at, released.release.get("mechanisms")
    if named is None:
        if not released.published():
            why = "; ".join(f"{m['name']}: {released.obstacle(m)}" for m in released.mechanisms)
            yield Breach((*at, "kind"), f"can publish for none of the mechanisms ({why})", kind)
        return
    known = {mechanism["name"]: mechanism for mechanism in released.mechanisms}
    for index, name in enumerate(named):
        place = (*at, "mechanisms", index)
        if name not in known:
            yield Breach(place, f"there is no mechanism of this name; there are {', '.join(known)}", name)
        elif name in named[:index]:
            yield Breach(place, "names must differ", name)
        elif (obstacle := released.obstacle(known[name])) is not None:
            yield Breach(place, f"{kind} cannot publish for it: {obstacle}", name)


def _sampling(released: Released) -> Iterator[Breach]:
    sampling, at = released.release["sampling"], (*released.at, "sampling")
    for mechanism in released.published():
        name = mechanism["name"]
        if mechanism["kind"] == "no_privacy":
            if sampling is None and released.kind != "laplace":
                words = (
                    f"is required, for the server of mechanisms.{name} holds exact counts; or name other mechanisms "
                    "in mechanisms"
                )
                yield Breach(at, words)
        elif sampling is not None and mechanism.has("sampling") and sampling != mechanism["sampling"]:
            words = (
                f"must be left out or be the devices' own, mechanisms.{name}.sampling = "
                f"{number(mechanism['sampling'])}: they sample themselves; or name other mechanisms in mechanisms"
            )
            yield Breach(at, words, sampling)


def released_by(
    campaign: Known,
    *,
    index: int,
    default: Known,
    mechanisms: Sequence[Known],
    channel: Known,
    aggregation: Known,
) -> Released | None:
    """Return a campaign's release, its own or the default one; None where a fault in it hides which.

    Parameters
    ----------
    campaign
        Its valid fields.
    index
        Its place among the campaigns.
    default
        The valid fields of ``[release]``.
    mechanisms, channel
        Valid fields.
    aggregation
        The valid fields of ``[aggregation]``, for campaigns without their own.
    """
    if "release" not in campaign or not campaign.has("statistic"):
        return None
    own = campaign["release"]
    release = default if own is None else known_of(own)
    if not release.has("kind"):
        return None
    at: tuple[str | int, ...] = ("release",) if own is None else ("campaigns", index, "release")
    servers = campaign.get("aggregation")
    if servers is not None:
        aggregation = known_of(servers)
    elif campaign["statistic"] != "count":
        aggregation = Known()  # speeds are told to a trusted server
    return Released(campaign, release, at, mechanisms, channel, aggregation)
