"""``[[attacks]]``: which coalitions try what, and how well they do."""

from collections import Counter
from collections.abc import Iterator
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


class AttackSection(Section):
    """What a coalition guesses, on some campaigns and mechanisms; it changes no estimate."""

    kind: str
    name: Name = Field(default="", json_schema_extra=without_default)
    """Its name in key paths and results, no two alike; left out, the kind."""
    coalition: Annotated[tuple[Party, ...], Field(strict=False, min_length=1)]
    """The parties that pool what they stored: ``"server:1"``, …, ``"mixer"``, ``"network"``, ``"vehicles:N"``."""
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
        for key in ("coalition", "campaigns", "mechanisms", "asked"):
            for name, times in Counter(known.get(key) or ()).items():
                if times > 1:
                    yield Breach((key,), f"must name each once, and {name} is there {times} times")
        coalition = known.get("coalition") or ()
        if known.get("growing") and len(coalition) == 1:
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


class LinkRounds(AttackSection):
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


class Longitudinal(AttackSection):
    """Guess where devices are that stay in one place, from several queries."""

    kind: Literal["longitudinal"]
    asked: Annotated[tuple[Count, ...], Field(strict=False, min_length=1)]
    """From how many of the campaign's first queries; a list, a row for each."""


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


def corrupted_in(coalition: tuple[str, ...]) -> int:
    """Return how many corrupted vehicles are in a coalition."""
    return sum(int(member.removeprefix(VEHICLES)) for member in coalition if member.startswith(VEHICLES))
