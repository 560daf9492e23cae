"""``[channel]``: what happens to a report on its way."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, Tag

from scenarios.faults import Breach
from scenarios.section import SERVER_PATTERN, Known, NotNegative, Positive, Probability, Section, number, tag_by


class ConstantLatency(Section):
    """Every report takes equally long."""

    kind: Literal["constant"]
    value_s: NotNegative
    """Latency, seconds."""


class ExponentialLatency(Section):
    """Latencies with an exponential distribution."""

    kind: Literal["exponential"]
    mean_s: Positive
    """Mean latency, seconds."""


class LognormalLatency(Section):
    """Latencies whose logarithm has a normal distribution."""

    kind: Literal["lognormal"]
    median_s: Positive
    """Median latency, seconds."""
    sigma: Positive
    """Standard deviation of the natural logarithm of the latency."""


def _as_table(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"kind": "constant", "value_s": value}
    return value


Latency = Annotated[
    Annotated[ConstantLatency, Tag("<constant>")]
    | Annotated[ExponentialLatency, Tag("<exponential>")]
    | Annotated[LognormalLatency, Tag("<lognormal>")],
    Discriminator(
        tag_by("kind"),
        custom_error_type="choice",
        custom_error_message="must be a number of seconds or one of the known kinds",
        custom_error_context={
            "key": "kind",
            "choices": "constant, exponential, lognormal",
            "shape": "must be a number of seconds, or a table with a kind",
        },
    ),
]


def _or_number(schema: dict[str, Any]) -> None:
    latency = schema["properties"]["latency_s"]
    latency["oneOf"].append({"type": "number", "minimum": 0})


def _as_party(value: Any) -> Any:
    return f"server:{value}" if isinstance(value, int) and not isinstance(value, bool) else value


class Outage(Section):
    """A server that hears nothing for a while."""

    server: Annotated[str, BeforeValidator(_as_party), Field(pattern=SERVER_PATTERN)]
    """Which: ``"server:1"``, ``"mixer"``, or its number."""
    from_s: NotNegative
    """From when, seconds from the start of the run."""
    to_s: Positive
    """Until when."""

    @classmethod
    def broken_rules(cls, known: Known) -> Iterator[Breach]:
        """Yield a fault for an outage that ends before it begins."""
        if known.has("from_s", "to_s") and known["to_s"] <= known["from_s"]:
            yield Breach(("to_s",), f"must be above from_s = {number(known['from_s'])}", known["to_s"])


class Channel(Section):
    """Between a device and its aggregator. The default is ideal: at once, and nothing lost."""

    model_config = ConfigDict(json_schema_extra=_or_number)

    latency_s: Annotated[Latency, BeforeValidator(_as_table)] = ConstantLatency(kind="constant", value_s=0.0)
    """How long a message takes: seconds, or a distribution."""
    loss: Probability = 0.0
    """Probability that a message is lost, in both rounds; a report of shares is a message to each server."""
    loss_one: Probability | None = None
    """The same in round one, where it differs."""
    loss_two: Probability | None = None
    """The same in round two, where it differs."""
    burst_s: NotNegative = 0.0
    """Seconds that a device's link stays down when it is; 0: every report is lost independently of others."""
    anonymous: bool = False
    """Whether devices send over an anonymous channel: neither the network nor the party that receives a message can
    then tell which device sent it."""
    churn: Probability = 0.0
    """Probability that a device leaves between the rounds of a query."""
    duplicates: Probability = 0.0
    """Probability that a message that arrives in time arrives a second time."""
    outages: Annotated[tuple[Outage, ...], Field(strict=False)] = ()
    """Servers that are down for a while: ``[{server = "server:2", from_s = 600, to_s = 700}]``."""

    @property
    def losses(self) -> tuple[float, float]:
        """Probability that a report is lost in round one and in round two."""
        one = self.loss if self.loss_one is None else self.loss_one
        two = self.loss if self.loss_two is None else self.loss_two
        return one, two

    @classmethod
    def broken_rules(cls, known: Known) -> Iterator[Breach]:
        """Yield a fault for links that stay down, but are down more often in one round than in the other."""
        if not (known.has("burst_s", "loss") and known["burst_s"] > 0.0):
            return
        for name in ("loss_one", "loss_two"):
            if known.get(name) is not None and known[name] != known["loss"]:
                words = f"must equal loss = {number(known['loss'])}, or be left out, where burst_s is above 0"
                yield Breach((name,), words, known[name])
