"""``[[attacks]]``: which coalitions try what, and how well they do."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from scenarios.faults import Breach
from scenarios.section import PARTY_PATTERN, Count, Known, Name, Section, tag_by, without_default

TARGETS = 2_000
MAGNITUDE = 1_000
LARGEST_MAGNITUDE = 10**9
"""So many such numbers from as many vehicles still add up without overflow."""
VEHICLES = "vehicles:"

Party = Annotated[str, Field(pattern=PARTY_PATTERN)]


class MemberSection(Section):
    """A party that is in the coalition during some queries only."""

    party: Party
    """``"server:1"``, …, ``"mixer"``, ``"network"`` or ``"vehicles:N"``."""
    from_query: Count = 1
    """The first query of each campaign of which the coalition has what the party received."""
    to_query: Count | None = None
    """The last one; left out, the campaign's last."""

    @classmethod
    def broken_rules(cls, known: Known) -> Iterator[Breach]:
        """Yield a fault for a party that leaves before it joins."""
        yield from broken_window(known)


def broken_window(known: Known) -> Iterator[Breach]:
    """Yield a fault for a last query before the first one."""
    if known.get("to_query") is not None and known["to_query"] < (known.get("from_query") or 1):
        yield Breach(("to_query",), f"must be at least from_query = {known.get('from_query') or 1}", known["to_query"])


def _member_tag(value: Any) -> str:
    return "<table>" if isinstance(value, dict | MemberSection) else "<name>"


Member = Annotated[
    Annotated[Party, Tag("<name>")] | Annotated[MemberSection, Tag("<table>")], Discriminator(_member_tag)
]


class AttackSection(Section):
    """What a coalition guesses, on some campaigns and mechanisms; it changes no estimate."""

    kind: str
    name: Name = Field(default="", json_schema_extra=without_default)
    """Its name in key paths and results, no two alike; left out, the kind."""
    coalition: Annotated[tuple[Member, ...], Field(strict=False)]
    """The parties that pool what they received: ``"server:1"``, …, ``"mixer"``, ``"network"``, ``"vehicles:N"``; none:
    whoever reads what is published. A party that is a member for some queries only is a table,
    ``{party = "server:2", from_query = 3, to_query = 6}``."""
    from_query: Count | None = None
    """The first query of each campaign at which the coalition exists; left out, the campaign's first."""
    to_query: Count | None = None
    """The last one; left out, the campaign's last."""
    campaigns: Annotated[tuple[Name, ...], Field(strict=False, min_length=1)] | None = None
    """Names of the campaigns attacked; left out, every one that counts and has all the parties."""
    mechanisms: Annotated[tuple[Name, ...], Field(strict=False, min_length=1)] | None = None
    """Names of the mechanisms attacked; left out, all."""
    targets: Count = TARGETS
    """Devices attacked in each query, at most: a random sample of the vehicles asked, the same ones in every query."""
    prior: Literal["occupancy", "uniform"] = "occupancy"
    """What the coalition knows beforehand: the share of its targets in each cell at that moment, more than an outsider
    could; or nothing."""
    growing: bool = False
    """Whether its first member attacks alone too, then the first two, and so on."""

    @classmethod
    def resolve(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Name it after its kind where it has no name."""
        return {"name": str(given.get("kind")), **given}

    @classmethod
    def broken_rules(cls, known: Known) -> Iterator[Breach]:
        """Yield a fault for what is named twice, and for a coalition that cannot grow."""
        coalition = parties_of(known.get("coalition") or ())
        named = {key: known.get(key) or () for key in ("campaigns", "mechanisms", "asked")}
        for key, names in {"coalition": coalition, **named}.items():
            for name, times in Counter(names).items():
                if times > 1:
                    yield Breach((key,), f"must name each once, and {name} is there {times} times")
        yield from broken_window(known)
        if known.get("growing") and len(coalition) < 2:
            yield Breach(("growing",), "must be false where the coalition is a single party", value=True)
        vehicles = [member for member in coalition if member.startswith(VEHICLES)]
        if len(vehicles) > 1:
            yield Breach(("coalition",), "must say once how many vehicles are corrupted", list(vehicles))


class RoundOne(AttackSection):
    """Guess where devices are from round one alone, and who was sampled."""

    kind: Literal["round_one"]


class RoundTwo(AttackSection):
    """Guess where devices are from round two alone."""

    kind: Literal["round_two"]


class SpanningSection(AttackSection):
    """An attack that can be on several campaigns together."""

    together: bool = False
    """Whether the coalition pools what its members received in all of the campaigns, over the same traffic. A party is
    a member wherever a campaign has one of that name."""


class LinkRounds(SpanningSection):
    """Guess where devices are from all rounds, linked where they can be."""

    kind: Literal["link_rounds"]


class Shares(AttackSection):
    """Add up the shares that the coalition holds, and guess from the sum."""

    kind: Literal["shares"]


class KnownOthers(AttackSection):
    """Guess from published differences whether a device is in a cell, where everyone else is known."""

    kind: Literal["known_others"]
    k: Count | None = None
    """Differences below it are suppressed; left out, none are."""


class Longitudinal(SpanningSection):
    """Guess where devices are that stay in one place, from several queries."""

    kind: Literal["longitudinal"]
    asked: Annotated[tuple[Count, ...], Field(strict=False, min_length=1)]
    """From how many of the first queries, of the campaign or of all campaigns together; a list, a row for each."""


class Poisoning(AttackSection):
    """Corrupted vehicles inflate a cell."""

    kind: Literal["poisoning"]
    cell: Count = 1
    """Which cell, from 1."""
    magnitude: Annotated[int, Field(ge=1, le=LARGEST_MAGNITUDE)] = MAGNITUDE
    """The largest number a vehicle writes where servers cannot see what it writes."""

    @classmethod
    def broken_rules(cls, known: Known) -> Iterator[Breach]:
        """Yield a fault for a coalition without vehicles, and for fewer targets than are corrupted."""
        yield from super().broken_rules(known)
        if not known.has("coalition"):
            return
        corrupted = corrupted_in(known["coalition"])
        if not corrupted:
            words = 'must hold corrupted vehicles, as "vehicles:100": they are who poisons'
            yield Breach(("coalition",), words, list(known["coalition"]))
        elif known.has("targets") and corrupted > known["targets"]:
            words = f"must be at least the {corrupted} vehicles of the coalition: they are taken from the targets"
            yield Breach(("targets",), words, known["targets"])


class DropOut(AttackSection):
    """Devices are made to drop out between the rounds, and what is then released tells on the target."""

    kind: Literal["drop_out"]
    dropped: Literal["target", "others"]
    """Who: the target alone, or everybody but the target."""


KINDS = (
    "round_one",
    "round_two",
    "link_rounds",
    "shares",
    "known_others",
    "longitudinal",
    "poisoning",
    "drop_out",
)

attack_tag = tag_by("kind")

Attack = Annotated[
    Annotated[RoundOne, Tag("<round_one>")]
    | Annotated[RoundTwo, Tag("<round_two>")]
    | Annotated[LinkRounds, Tag("<link_rounds>")]
    | Annotated[Shares, Tag("<shares>")]
    | Annotated[KnownOthers, Tag("<known_others>")]
    | Annotated[Longitudinal, Tag("<longitudinal>")]
    | Annotated[Poisoning, Tag("<poisoning>")]
    | Annotated[DropOut, Tag("<drop_out>")],
    Discriminator(
        attack_tag,
        custom_error_type="choice",
        custom_error_message="must be one of the known kinds",
        custom_error_context={"key": "kind", "choices": ", ".join(KINDS)},
    ),
]


def parties_of(coalition: Iterable[Any]) -> tuple[str, ...]:
    """Return the names of a coalition's members."""
    return tuple(member if isinstance(member, str) else str(member.party) for member in coalition)


def corrupted_in(coalition: Iterable[Any]) -> int:
    """Return how many corrupted vehicles are in a coalition."""
    parties = parties_of(coalition)
    return sum(int(member.removeprefix(VEHICLES)) for member in parties if member.startswith(VEHICLES))
