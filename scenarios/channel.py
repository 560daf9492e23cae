"""``[channel]``: what happens to a report on its way."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Discriminator, Tag

from scenarios.section import NotNegative, Positive, Probability, Section, tag_by


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


class Channel(Section):
    """Between a device and its aggregator. The default is ideal: at once, and nothing lost."""

    model_config = ConfigDict(json_schema_extra=_or_number)

    latency_s: Annotated[Latency, BeforeValidator(_as_table)] = ConstantLatency(kind="constant", value_s=0.0)
    """How long a report takes: seconds, or a distribution."""
    loss: Probability = 0.0
    """Probability that a report is lost, in both rounds."""
    loss_one: Probability | None = None
    """The same in round one, where it differs."""
    loss_two: Probability | None = None
    """The same in round two, where it differs."""
    churn: Probability = 0.0
    """Probability that a device leaves between the rounds of a query."""

    @property
    def losses(self) -> tuple[float, float]:
        """Probability that a report is lost in round one and in round two."""
        one = self.loss if self.loss_one is None else self.loss_one
        two = self.loss if self.loss_two is None else self.loss_two
        return one, two
