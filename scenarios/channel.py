"""``[channel]`` and ``[aggregation]``: transmission of reports, and the servers that add them up."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from scenarios.cells import HIGHEST
from scenarios.errors import RuleViolation
from scenarios.field_types import SERVER_PATTERN, NotNegative, Positive, Probability, number, without_default
from scenarios.kinds import is_capable
from scenarios.run_clock import Moment
from scenarios.section import ByKind, OneOf, OwnKind, Section, ValidFields, broken_parameters


class ConstantLatency(Section):
    """The same latency for every report."""

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


class OwnLatency(Section):
    """A user's distribution of latencies, ``package.module:Class``; its other keys are its parameters."""

    model_config = ConfigDict(extra="allow")

    kind: OwnKind

    rules = (broken_parameters,)


def _as_table(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"kind": "constant", "value_s": value}
    return value


Latency = Annotated[
    ConstantLatency | ExponentialLatency | LognormalLatency | OwnLatency,
    ByKind(
        "latency", shape="must be a number of seconds, or a table with a kind", plug_in="scenarios.channel:OwnLatency"
    ),
]


def _or_number(schema: dict[str, Any]) -> None:
    latency = schema["properties"]["latency_s"]
    latency["oneOf"].append({"type": "number", "minimum": 0})


def _as_party(value: Any) -> Any:
    return f"server:{value}" if isinstance(value, int) and not isinstance(value, bool) else value


class Outage(Section):
    """A period during which a server receives nothing."""

    server: Annotated[str, BeforeValidator(_as_party), Field(pattern=SERVER_PATTERN)]
    """The server: ``"server:1"``, ``"mixer"``, or the server's number."""
    from_s: Moment
    """Start of the outage."""
    to_s: Annotated[Moment, Field(gt=0)]
    """End of the outage."""

    @classmethod
    def broken_rules(cls, valid: ValidFields) -> Iterator[RuleViolation]:
        """Yield a fault for an outage that ends before it begins."""
        if valid.has("from_s", "to_s") and valid["to_s"] <= valid["from_s"]:
            yield valid.violation("to_s", f"must be above from_s = {number(valid['from_s'])} s")


class ChannelSection(Section):
    """The channel between a device and its aggregator. The default is ideal: no latency and no loss."""

    model_config = ConfigDict(json_schema_extra=_or_number)

    latency_s: Annotated[Latency, BeforeValidator(_as_table)] = ConstantLatency(kind="constant", value_s=0.0)
    """Latency of a message: seconds, or a distribution."""
    loss: Probability = 0.0
    """Probability that a message is lost, in both rounds; a secret-shared report is one message to each server."""
    loss_one: Probability | None = None
    """Probability of loss in round one, if it differs."""
    loss_two: Probability | None = None
    """Probability of loss in round two, if it differs."""
    burst_s: NotNegative = 0.0
    """How long a device's connection stays down once it is down, seconds; at 0, every report is lost independently of
    others."""
    anonymous: bool = False
    """Whether devices send over an anonymous channel: neither the network nor the party that receives a message then
    learns which device sent it."""
    churn: Probability = 0.0
    """Probability that a device leaves between the rounds of a query."""
    duplicates: Probability = 0.0
    """Probability that a message that arrives in time arrives a second time."""
    outages: Annotated[tuple[Outage, ...], Field(strict=False)] = ()
    """Servers that are down for a while: ``[{server = "server:2", from_s = 600, to_s = 700}]``."""

    @property
    def losses(self) -> tuple[float, float]:
        """Probability that a report is lost in round one and in round two."""
        first = self.loss if self.loss_one is None else self.loss_one
        second = self.loss if self.loss_two is None else self.loss_two
        return first, second

    @classmethod
    def broken_rules(cls, valid: ValidFields) -> Iterator[RuleViolation]:
        """Yield a fault for bursts of loss with different probabilities of loss in the two rounds."""
        if not (valid.has("burst_s", "loss") and valid["burst_s"] > 0.0):
            return
        for name in ("loss_one", "loss_two"):
            if valid.get(name) is not None and valid[name] != valid["loss"]:
                rule = f"must equal loss = {number(valid['loss'])}, or be left out, where burst_s is above 0"
                yield valid.violation(name, rule)


MOST_NOISE = 1e3
FEWEST_SHARES = 2
MOST_SHARES = 255

_CANNOT_PAIR = {  # by capability of the deployment
    "per round": "its servers would have to compare which devices answered in each round, and so link the answers",
    "mixer": "its server has nothing that distinguishes one report from another",
}


class GaussianNoise(Section):
    """Discrete Gaussian noise: P(k) in proportion to e^(−k²/(2σ²))."""

    kind: Literal["discrete_gaussian"]
    sigma: Annotated[float, Field(gt=0, le=MOST_NOISE)]
    """σ, vehicles: about the standard deviation of one server's noise on a cell's count."""


class LaplaceNoise(Section):
    """Discrete Laplace noise: P(k) in proportion to e^(−|k|/b)."""

    kind: Literal["discrete_laplace"]
    scale: Annotated[float, Field(gt=0, le=MOST_NOISE)]
    """b, vehicles: one server's noise alone has ε = 1/b for a count that changes by 1."""


class PolyaNoise(Section):
    """Pólya noise, a share of discrete Laplace noise: those of ``honest`` servers add up to P(k) ~ e^(−|k|/b)."""

    kind: Literal["polya"]
    scale: Annotated[float, Field(gt=0, le=MOST_NOISE)]
    """b, vehicles: the shares of ``honest`` servers have ε = 1/b for a count that changes by 1, those of fewer more."""
    honest: Annotated[int, Field(ge=1, le=MOST_SHARES)]
    """Number of servers whose shares add up to discrete Laplace noise, at most the number of servers."""


Noise = Annotated[GaussianNoise | LaplaceNoise | PolyaNoise, ByKind("noise")]


class AggregationSection(Section):
    """Servers of some kind that add up the reports."""

    kind: str


class OwnAggregation(AggregationSection):
    """A user's aggregator, ``package.module:Class``; its other keys are its parameters."""

    model_config = ConfigDict(extra="allow")

    kind: OwnKind

    rules = (broken_parameters,)


class Aggregation(AggregationSection):
    """The servers that add up the reports."""

    kind: Annotated[str, OneOf("deployment", "Aggregation")] = "trusted"
    """One server that sees every report; one server for each round; one server behind a mixer that removes the
    identities of devices; or several servers that hold shares of each report."""
    servers: Annotated[int, Field(ge=1, le=MOST_SHARES)] | None = Field(default=None, json_schema_extra=without_default)
    """Number of servers among which reports are shared, 2 or more (``secret_shared`` only). Default: 2."""
    paired: bool = False
    """Whether only devices received in every round are counted (``secret_shared`` and ``trusted``)."""
    robust: bool = False
    """Whether devices prove that what they share is a valid report; no effect where servers read reports."""
    noise: Noise | None = None
    """Noise that each server adds to every cell's count before it publishes (``trusted`` and ``secret_shared``)."""
    handles: Literal["device", "query"] = Field(default="device", json_schema_extra=without_default)
    """Identifier under which servers store reports: the device's number, or a one-time pseudonym, new in each query.

    Default: the device's number, and a pseudonym for paired shares."""

    @classmethod
    def resolve(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Fill in the number of servers and the handles, which depend on the kind."""
        shared = is_capable("deployment", given.get("kind"), "shares")
        servers = {"servers": FEWEST_SHARES} if shared and given.get("servers") is None else {}
        handles = "query" if shared and given.get("paired") is True else "device"
        return {"handles": handles, **given, **servers}

    @classmethod
    def broken_rules(cls, valid: ValidFields) -> Iterator[RuleViolation]:
        """Yield a fault for servers, pairing and handles that the kind cannot have."""
        if not valid.has("kind"):
            return
        kind = valid["kind"]
        if valid.has("servers"):
            yield from _servers(valid)
        if valid.get("noise") is not None and any(is_capable("deployment", kind, each) for each in _CANNOT_PAIR):
            rule = f'needs kind = "trusted" or "secret_shared": servers of {kind} publish what they received'
            yield RuleViolation(("noise",), rule, valid["noise"].kind)
        shares, servers = getattr(valid.get("noise"), "honest", 1), valid.get("servers") or 1
        if shares > servers:
            yield RuleViolation(("noise", "honest"), f"must be at most the number of servers ({servers})", shares)
        for capability, why in _CANNOT_PAIR.items():
            if valid.get("paired") and is_capable("deployment", kind, capability):
                yield RuleViolation(("paired",), f'must be false where kind = "{kind}": {why}', value=True)
        if is_capable("deployment", kind, "shares"):
            yield from _paired_shares(valid)
        if valid.get("handles") == "query" and is_capable("deployment", kind, "mixer"):
            rule = 'must be left out where kind = "shuffled": its mixer knows devices, and its server has no handles'
            yield RuleViolation(("handles",), rule, "query")


def _paired_shares(valid: ValidFields) -> Iterator[RuleViolation]:
    if valid.get("paired") and valid.get("handles") == "device":
        rule = 'must be "query" where shares are paired: they are filed under one-time pseudonyms'
        yield RuleViolation(("handles",), rule, "device")


def _servers(valid: ValidFields) -> Iterator[RuleViolation]:
    kind, servers = valid["kind"], valid["servers"]
    if is_capable("deployment", kind, "shares"):
        if servers < FEWEST_SHARES:
            rule = f'must be at least {FEWEST_SHARES} where kind = "{kind}": a single server would hold whole reports'
            yield valid.violation("servers", rule)
    elif is_capable("deployment", kind, "per round"):
        yield valid.violation("servers", 'needs kind = "secret_shared": per_round has a server for each round')
    elif servers != 1:
        yield valid.violation("servers", f'needs kind = "secret_shared": {kind} has one server')


class ThresholdShares(AggregationSection):
    """Servers that hold shares of each report, of which any ``threshold`` suffice."""

    kind: Literal["threshold_shared"]
    servers: Annotated[int, Field(ge=FEWEST_SHARES, le=MOST_SHARES)] = 3
    """Number of servers among which reports are shared."""
    threshold: Annotated[int, Field(ge=FEWEST_SHARES, le=MOST_SHARES)] = 2
    """Number of servers whose shares suffice, at most ``servers``; fewer servers learn nothing about a report."""
    paired: bool = False
    """Whether only devices received in every round are counted."""
    handles: Literal["device", "query"] = Field(default="device", json_schema_extra=without_default)
    """Identifier under which servers store shares: the device's number, or a one-time pseudonym, new in each query.

    Default: the device's number, and a pseudonym for paired shares."""

    @classmethod
    def resolve(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Fill in the handles, which depend on pairing."""
        return {"handles": "query" if given.get("paired") is True else "device", **given}

    @classmethod
    def broken_rules(cls, valid: ValidFields) -> Iterator[RuleViolation]:
        """Yield a fault for a threshold above the number of servers, and for pairing under device numbers."""
        if valid.has("servers", "threshold") and valid["threshold"] > valid["servers"]:
            yield valid.violation("threshold", f"must be at most servers = {valid['servers']}")
        yield from _paired_shares(valid)


class RoadsideUnitsSection(AggregationSection):
    """A road-side unit for each district, to which the devices of the district report; it knows the district."""

    kind: Literal["roadside_units"]
    level: Annotated[int, Field(ge=0, le=HIGHEST)] = 1
    """How many times the side of a cell is doubled to obtain a district."""
    paired: bool = False
    """Whether a unit counts only devices received in every round."""
    handles: Literal["device", "query"] = "device"
    """Identifier under which units store reports: the device's number, or a one-time pseudonym, new in each query."""


Servers = Annotated[
    AggregationSection, ByKind("deployment", default="trusted", plug_in="scenarios.channel:OwnAggregation")
]
