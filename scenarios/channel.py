"""``[channel]`` and ``[aggregation]``: transmission of reports, and the servers that add them up."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from scenarios.cells import HIGHEST
from scenarios.errors import RuleViolation
from scenarios.field_types import SERVER_PATTERN, Count, NotNegative, Positive, Probability, number, without_default
from scenarios.kinds import is_capable
from scenarios.local import LossZone
from scenarios.rules import GIVEN, LEFT_OUT, among, bounded, must, needs, unlike
from scenarios.run_clock import Moment
from scenarios.section import ByKind, OwnKind, OwnParameters, Section, ValidFields


class LatencySection(Section):
    """A distribution of latencies."""

    role = "latency"
    kind: str


class ConstantLatency(LatencySection):
    """The same latency for every report."""

    kind: Literal["constant"]
    value_s: NotNegative
    """Latency, seconds."""


class ExponentialLatency(LatencySection):
    """Latencies with an exponential distribution."""

    kind: Literal["exponential"]
    mean_s: Positive
    """Mean latency, seconds."""


class LognormalLatency(LatencySection):
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


Latency = Annotated[LatencySection, ByKind("latency", shape="must be a number of seconds, or a table with a kind")]


def _or_number(schema: dict[str, Any]) -> None:
    schema["properties"]["latency_s"]["oneOf"].append({"type": "number", "minimum": 0})


_Server = Annotated[str, Field(pattern=SERVER_PATTERN)]


def _as_party(value: Any) -> Any:
    return f"server:{value}" if isinstance(value, int) and not isinstance(value, bool) else value


class Outage(Section):
    """A period during which a server receives nothing."""

    server: Annotated[_Server, BeforeValidator(_as_party, json_schema_input_type=_Server | int)]
    """The server: ``"server:1"``, ``"mixer"``, ``"operator:A/server:1"``, or the server's number."""
    from_s: Moment
    """Start of the outage."""
    to_s: Annotated[Moment, Field(gt=0)]
    """End of the outage."""

    rules = (bounded("to_s", "above", "from_s"),)


def _bursts(valid: ValidFields) -> Iterator[RuleViolation]:
    """Yield a fault for bursts of loss with different probabilities of loss in the two rounds."""
    if not (valid.has("burst_s", "loss") and valid["burst_s"] > 0.0):
        return
    rule = f"must equal loss = {number(valid['loss'])}, or be left out, where burst_s is above 0"
    for name in ("loss_one", "loss_two"):
        if valid.has(name) and valid[name] != valid["loss"]:
            yield valid.violation(name, rule)


class QuestionSection(Section):
    """The way of a round's question to a device. The default is ideal: every device hears it at once."""

    model_config = ConfigDict(json_schema_extra=_or_number)

    loss: Probability = 0.0
    """Probability that a device does not hear the question of a round; it then sends nothing in that round."""
    latency_s: Annotated[Latency, BeforeValidator(_as_table)] = ConstantLatency(kind="constant", value_s=0.0)
    """Time from the question until a device hears it: seconds, or a distribution; it uses up the deadline."""
    bytes: Count = 16
    """Size of a question: by default the query's number and its deadline, 8 bytes each."""


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
    slot_s: NotNegative = 0.0
    """Length of slots, at whose end devices send what they are ready to send, from the question on; at 0, at once."""
    anonymous: bool = False
    """Whether devices send over an anonymous channel: neither the network nor the party that receives a message then
    learns which device sent it."""
    churn: Probability = 0.0
    """Probability that a device leaves between the rounds of a query."""
    duplicates: Probability = 0.0
    """Probability that a message that arrives in time arrives a second time."""
    outages: Annotated[tuple[Outage, ...], Field(strict=False)] = ()
    """Servers that are down for a while: ``[{server = "server:2", from_s = 600, to_s = 700}]``."""
    question: QuestionSection = QuestionSection()
    """The way of a round's question to a device."""
    zones: Annotated[tuple[LossZone, ...], Field(strict=False)] = ()
    """Places and times at which more reports are lost."""

    @property
    def losses(self) -> tuple[float, float]:
        """Probability that a report is lost in round one and in round two."""
        first = self.loss if self.loss_one is None else self.loss_one
        second = self.loss if self.loss_two is None else self.loss_two
        return first, second

    rules = (_bursts,)


MOST_NOISE = 1e3
FEWEST_SHARES = 2
MOST_SHARES = 255


_SHARED = 'kind = "secret_shared"'
_NOISE_NEEDS = 'needs kind = "trusted" or "secret_shared": other servers publish what they received'
_WHOLE_REPORTS = "a single server would hold whole reports"
_NOT_COMPARED = "its servers would have to compare which devices answered in each round, and so link the answers"
_ALL_ALIKE = "its server has nothing that distinguishes one report from another"
_NO_HANDLES = "its mixer knows devices, and its server has no handles"
_PAIRED_SHARES = 'must be "query" where shares are paired: they are filed under one-time pseudonyms'


class NoiseSection(Section):
    """Noise that each server adds."""

    role = "noise"
    kind: str


class GaussianNoise(NoiseSection):
    """Discrete Gaussian noise: P(k) in proportion to e^(−k²/(2σ²))."""

    kind: Literal["discrete_gaussian"]
    sigma: Annotated[float, Field(gt=0, le=MOST_NOISE)]
    """σ, vehicles: about the standard deviation of one server's noise on a cell's count."""


class LaplaceNoise(NoiseSection):
    """Discrete Laplace noise: P(k) in proportion to e^(−|k|/b)."""

    kind: Literal["discrete_laplace"]
    scale: Annotated[float, Field(gt=0, le=MOST_NOISE)]
    """b, vehicles: one server's noise alone has ε = 1/b for a count that changes by 1."""


class PolyaNoise(NoiseSection):
    """Pólya noise, a share of discrete Laplace noise: shares of ``honest`` servers add up to P(k) ~ e^(−|k|/b)."""

    kind: Literal["polya"]
    scale: Annotated[float, Field(gt=0, le=MOST_NOISE)]
    """b, vehicles: the shares of ``honest`` servers have ε = 1/b for a count that changes by 1, fewer shares more."""
    honest: Annotated[int, Field(ge=1, le=MOST_SHARES)]
    """Number of servers whose shares add up to discrete Laplace noise, at most the number of servers."""


Noise = Annotated[NoiseSection, ByKind("noise")]


class AggregationSection(Section):
    """Servers of some kind that add up the reports.

    The capability "mixer": a mixer stands before the server; "per round": there is a server for each round; "shares":
    servers hold shares; "divided": devices are divided over servers, whose number is known when they are built.
    """

    role = "deployment"
    kind: str


class OwnAggregation(AggregationSection, OwnParameters):
    """A user's aggregator, ``package.module:Class``; its other keys are its parameters."""

    kind: OwnKind


def _honest_servers(valid: ValidFields) -> Iterator[RuleViolation]:
    """Yield a fault for noise whose shares come from more servers than there are."""
    shares, servers = getattr(valid.get("noise"), "honest", 1), valid.get("servers") or 1
    if shares > servers:
        yield RuleViolation(("noise", "honest"), f"must be at most the number of servers ({servers})", shares)


class GuardedServers(AggregationSection):
    """Servers, and what limits the questions that they can ask and the sums that they can publish."""

    min_batch: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """Fewest reports of each round that servers add up: from fewer they publish no sum, and every estimate is 0."""
    min_gap_s: NotNegative = 0.0
    """Seconds from a question that a device accepts until it accepts another of the campaign; it refuses others."""
    committed: bool = False
    """Whether devices answer only a question whose hash was published to all before. The question then states the
    parameters, and public randomness draws who is added up with whom."""


class Aggregation(GuardedServers):
    """The servers that add up the reports."""

    title: ClassVar[Mapping[str, str]] = {
        "trusted": "one trusted server",
        "per_round": "a server for each round",
        "shuffled": "a server behind a mixer",
        "secret_shared": "servers that hold shares",
    }
    capabilities: ClassVar[Mapping[str, frozenset[str]]] = {
        "per_round": frozenset({"per round"}),
        "shuffled": frozenset({"mixer"}),
        "secret_shared": frozenset({"shares"}),
    }
    kind: Literal["trusted", "per_round", "shuffled", "secret_shared"] = "trusted"
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

    rules = (
        must("servers", unlike(1), f"must be at least 2 where {_SHARED}: {_WHOLE_REPORTS}", kind="secret_shared"),
        must("servers", LEFT_OUT, f"needs {_SHARED}: per_round has a server for each round", kind="per_round"),
        must("servers", among(None, 1), f"needs {_SHARED}: trusted has one server", kind="trusted"),
        must("servers", among(None, 1), f"needs {_SHARED}: shuffled has one server", kind="shuffled"),
        needs("noise", words=_NOISE_NEEDS, kind=("trusted", "secret_shared")),
        _honest_servers,
        must("paired", LEFT_OUT, f'must be false where kind = "per_round": {_NOT_COMPARED}', kind="per_round"),
        must("paired", LEFT_OUT, f'must be false where kind = "shuffled": {_ALL_ALIKE}', kind="shuffled"),
        must("handles", among(None, "query"), _PAIRED_SHARES, kind="secret_shared", paired=GIVEN),
        must(
            "handles",
            among(None, "device"),
            f'must be left out where kind = "shuffled": {_NO_HANDLES}',
            kind="shuffled",
        ),
    )


class SharingServersSection(GuardedServers):
    """Servers that hold shares of each report."""

    capabilities = frozenset({"shares"})
    servers: int
    paired: bool = False
    """Whether only devices received in every round are counted."""
    handles: Literal["device", "query"] = Field(default="device", json_schema_extra=without_default)
    """Identifier under which servers store shares: the device's number, or a one-time pseudonym, new in each query.

    Default: the device's number, and a pseudonym for paired shares."""

    @classmethod
    def resolve(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Fill in the handles, which depend on pairing."""
        return {"handles": "query" if given.get("paired") is True else "device", **given}

    rules = (must("handles", among(None, "query"), _PAIRED_SHARES, paired=GIVEN),)


class ThresholdShares(SharingServersSection):
    """Servers that hold shares of each report; any ``threshold`` shares suffice."""

    kind: Literal["threshold_shared"]
    title = "servers that hold threshold shares"
    servers: Annotated[int, Field(ge=FEWEST_SHARES, le=MOST_SHARES)] = 3
    """Number of servers among which reports are shared."""
    threshold: Annotated[int, Field(ge=FEWEST_SHARES, le=MOST_SHARES)] = 2
    """Number of servers whose shares suffice, at most ``servers``; fewer servers learn nothing about a report."""

    rules = (bounded("threshold", "at most", "servers"),)


class PrivateWriteSection(SharingServersSection):
    """Two servers that hold keys of the one cell that a report names (a distributed point function)."""

    kind: Literal["private_write"]
    title = "two servers of private writes"
    needs = ("Cryptodome", "crypto")
    servers: Literal[2] = 2
    """Number of servers, one for each of the two keys of a point function."""


class RoadsideUnitsSection(AggregationSection):
    """A road-side unit for each district, to which the devices of the district report; it knows the district."""

    kind: Literal["roadside_units"]
    title = "a road-side unit for each district"
    capabilities = frozenset({"divided"})
    level: Annotated[int, Field(ge=0, le=HIGHEST)] = 1
    """How many times the side of a cell is doubled to obtain a district."""
    paired: bool = False
    """Whether a unit counts only devices received in every round."""
    handles: Literal["device", "query"] = "device"
    """Identifier under which units store reports: the device's number, or a one-time pseudonym, new in each query."""


Servers = Annotated[AggregationSection, ByKind("deployment", default="trusted", plug_in=OwnAggregation)]
