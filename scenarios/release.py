"""``[release]``: what a trusted server does to the counts, or the speeds, before it publishes them."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from scenarios.section import Name, Positive, PositiveProbability, Section, tag_by

MOST_LEVELS = 16
MOST_K = 100_000

Threshold = Annotated[int, Field(ge=1, le=MOST_K)]


class _Context(dict[str, Any]):
    """What a message is made of; hashable, as the members of an optional field's union must be."""

    __hash__ = object.__hash__  # type: ignore[assignment]  # a dict says it has none


class NoRelease(Section):
    """They are published as they are."""

    kind: Literal["none"] = "none"
    sample: PositiveProbability = 1.0
    """Share of a cell's vehicles whose speeds are used, drawn first: a simple random sample."""


class _OfCounts(Section):
    """What every release of counts says."""

    mechanisms: Annotated[tuple[Name, ...], Field(strict=False, min_length=1)] | None = None
    """Whose counts it publishes, by name; left out, those of all the mechanisms it can publish for."""


class Suppress(_OfCounts):
    """Sample the devices, then publish only cells in which at least k were sampled (LQS theorem 5)."""

    kind: Literal["suppress"]
    k: Threshold
    """Fewer sampled devices than this are not published."""
    sampling: PositiveProbability | None = None
    """Probability that a device is sampled; required where the server holds exact counts.

    Sampling Privacy's devices sample themselves: their own sampling is used."""


class Generalise(_OfCounts):
    """Choose privately how coarse the cells must be, then sample and suppress (LQS theorem 6)."""

    kind: Literal["generalise"]
    k: Threshold
    """Fewer sampled devices in a block of cells than this are not published."""
    sampling: PositiveProbability | None = None
    """Probability that a device is sampled, as for ``suppress``."""
    epsilon: Positive
    """Privacy spent on the choice, by the exponential mechanism."""
    levels: Annotated[int, Field(ge=1, le=MOST_LEVELS)]
    """How often the side of a cell may be doubled; the cells themselves are a choice too."""


class Recode(_OfCounts):
    """Cluster the devices and recode every cluster of at least k locally: documented as vulnerable (LQS 3.1)."""

    kind: Literal["recode"]
    k: Threshold
    """Least devices in a cluster."""


class Laplace(_OfCounts):
    """Add Laplace noise to the counts, or to the mean of a cell's speeds."""

    kind: Literal["laplace"]
    epsilon: Positive
    """Privacy of the release, sampling counted in."""
    sampling: PositiveProbability | None = None
    """For counts: probability that a device is sampled first; left out, all are, or as many as sample themselves."""
    sample: PositiveProbability = 1.0
    """For speeds: share of a cell's vehicles drawn first, a simple random sample."""


class SmoothMedian(_OfCounts):
    """Publish the median of a cell's speeds with noise scaled to its smooth sensitivity (HDK eq 4)."""

    kind: Literal["smooth_median"]
    epsilon: Positive
    """Privacy of the release, sampling counted in."""
    delta: Annotated[float, Field(gt=0, lt=1)]
    """Probability with which the limit may fail."""
    sample: PositiveProbability = 1.0
    """Share of a cell's vehicles drawn first, a simple random sample."""


release_tag = tag_by("kind")

KINDS = ("none", "suppress", "generalise", "recode", "laplace", "smooth_median")

Release = Annotated[
    Annotated[NoRelease, Tag("<none>")]
    | Annotated[Suppress, Tag("<suppress>")]
    | Annotated[Generalise, Tag("<generalise>")]
    | Annotated[Recode, Tag("<recode>")]
    | Annotated[Laplace, Tag("<laplace>")]
    | Annotated[SmoothMedian, Tag("<smooth_median>")],
    Discriminator(
        release_tag,
        custom_error_type="choice",
        custom_error_message="must be one of the known kinds",
        custom_error_context=_Context(key="kind", choices=", ".join(KINDS)),
    ),
]
