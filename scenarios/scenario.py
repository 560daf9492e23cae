"""`Scenario`: the checked content of a scenario file."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator

from scenarios.attacks import Attack
from scenarios.campaigns import Campaign, Claims, Population
from scenarios.cells import Cells
from scenarios.channel import Aggregation, Channel
from scenarios.errors import Fault, RuleViolation, ScenarioError
from scenarios.fcd import Fcd
from scenarios.mechanisms import Mechanism, PlugIn, SamplingPrivacy
from scenarios.overrides import plain
from scenarios.permissions import Permissions
from scenarios.references import WITH_FILES, files_of, is_outside
from scenarios.refinements import Refinement
from scenarios.release import NoRelease, Release, Released, released_by
from scenarios.roads import Roads
from scenarios.rules import Outline, broken_between_sections
from scenarios.section import Name, NotNegative, Positive, Section, ValidFields, Whole, known_of, number, refuse
from scenarios.traffic import Traffic


class Heading(Section):
    """Name, seed and duration of a scenario. Times are seconds from the start of the run."""

    name: Name
    """Name of the scenario in listings and results."""
    description: str = ""
    """What the scenario shows, in a sentence or two."""
    seed: Whole = 1
    """Seed of every random choice: the same scenario and seed give the same numbers."""
    duration_s: Positive
    """Length of the run, warm-up included, seconds."""
    warmup_s: NotNegative = 0.0
    """First part of the run, in which vehicles drive and there are no queries, seconds."""

    @classmethod
    def broken_rules(cls, known: ValidFields) -> Iterator[RuleViolation]:
        """Yield a fault for a warm-up as long as the run."""
        if known.has("duration_s", "warmup_s") and known["warmup_s"] >= known["duration_s"]:
            words = f"must be below duration_s = {number(known['duration_s'])}"
            yield RuleViolation(("warmup_s",), words, known["warmup_s"])


class Scenario(BaseModel):
    """The complete description of one run.

    `scenarios.load` makes one from a file, and `model_validate` from tables; both report every fault in plain words.
    Scenarios are frozen, and compare equal if they have the same values.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)

    scenario: Heading
    """Name, seed and duration."""
    roads: Roads
    """The road network."""
    cells: Cells
    """The division of the city into cells."""
    traffic: Traffic
    """The vehicles and the engine that moves them."""
    population: Population = Population()
    """The devices that take part."""
    campaigns: Annotated[tuple[Campaign, ...], Field(strict=False, min_length=1)]
    """The campaigns: when vehicles are asked."""
    mechanisms: Annotated[tuple[Mechanism, ...], Field(strict=False, min_length=1)]
    """The mechanisms on the devices; all answer the same queries about the same traffic."""
    channel: Channel = Channel()
    """The transmission of reports: latency, loss and outages."""
    aggregation: Aggregation = Aggregation()
    """The servers that add up the reports."""
    release: Release = NoRelease()
    """Processing of counts or speeds before publication; a campaign may have a release of its own."""
    refinements: Annotated[tuple[Refinement, ...], Field(strict=False)] = ()
    """Post-processing of the estimates, in separate result rows."""
    claims: Claims = Claims()
    """Parameters of the claims table."""
    attacks: Annotated[tuple[Attack, ...], Field(strict=False)] = ()
    """Attacks by coalitions; none changes an estimate."""
    fcd: Fcd | None = None
    """Export of all vehicles' positions for other tools. Default: no export."""

    _given: dict[str, Any] | None = PrivateAttr(default=None)
    _folder: Path = PrivateAttr(default_factory=Path)
    _permissions: Permissions = PrivateAttr(default_factory=Permissions)

    @classmethod
    def model_validate(cls, obj: Any, *, context: Any | None = None, **options: Any) -> "Scenario":
        """Check the tables of a scenario, as `tomllib.loads` returns them, by the same rules as `scenarios.load`.

        Parameters
        ----------
        obj
            A mapping of sections; a `Scenario` is returned as it is.
        context
            May hold ``folder``, to which file references are relative; else they are relative to the working directory.
        options
            Options of pydantic's `model_validate`.

        Raises
        ------
        ScenarioError
            If the scenario has a fault; the error carries every fault found.
        """
        from scenarios.validation import validate  # noqa: PLC0415  # it reads the fields of this class

        if isinstance(obj, Scenario):
            return obj
        tables = plain(obj)
        if not isinstance(tables, dict):
            raise ScenarioError("given as tables", [Fault("", "must be a mapping of sections", tables)])
        checked = validate(tables, Path((context or {}).get("folder", "")), **options)
        if isinstance(checked, Scenario):
            return checked
        raise ScenarioError("given as tables", checked)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> "Scenario":
        """Return a copy of the scenario with some sections replaced.

        Raises
        ------
        TypeError
            If `update` has a key that is not a section, such as ``seed``; use `scenarios.load(scenario, seed=…)` for
            that.
        """
        unknown = [*(update or {}).keys() - type(self).model_fields.keys()]
        if unknown:
            rule = f"model_copy: update must hold sections ({', '.join(type(self).model_fields)}), got {unknown[0]!r}"
            raise TypeError(f"{rule}; for a seed or single values use scenarios.load(scenario, seed=…, overrides=…)")
        return super().model_copy(update=update, deep=deep)

    def model_post_init(self, context: Any, /) -> None:
        """Keep the tables the scenario was made of: omitted keys may depend on keys that are overridden later."""
        self._given = (context or {}).get("given")
        self._folder = Path((context or {}).get("folder", "")).absolute()
        self._permissions = (context or {}).get("permissions", Permissions())

    def __eq__(self, other: object) -> bool:
        """Compare values; the source they were read from does not matter."""
        return isinstance(other, Scenario) and self.model_dump() == other.model_dump()

    def __hash__(self) -> int:
        return hash((self.name, self.seed))

    @property
    def folder(self) -> Path:
        """The folder to which file references are relative."""
        return self._folder

    @property
    def permissions(self) -> Permissions:
        """The permissions of the scenario."""
        return self._permissions

    def files_outside(self) -> list[Path]:
        """Return the files it names that are outside its folder and ``CROWDVEIL_DATA``, with links resolved."""
        files = (path for name in WITH_FILES for _, path in files_of(getattr(self, name)))
        return list(dict.fromkeys(path.resolve() for path in files if is_outside(path, self.folder)))

    def without_unpermitted(self) -> tuple["Scenario", list[str]]:
        """Return the scenario without the plug-ins that may not be imported, and without everything that needs them.

        Returns
        -------
        scenario
            The part that can be checked without them; it may have no mechanism.
        left_out
            Names of the mechanisms left out.
        """
        kept = tuple(one for one in self.mechanisms if self.permissions.allow_plugins or not isinstance(one, PlugIn))
        names = {one.name for one in kept}
        if len(kept) == len(self.mechanisms):
            return self, []
        refinements = [
            one.model_copy(update={"mechanisms": one.mechanisms and tuple(m for m in one.mechanisms if m in names)})
            for one in self.refinements
        ]
        update = {
            "mechanisms": kept,
            "refinements": tuple(one for one in refinements if one.mechanisms != ()),
            # The parties depend on the number of rounds of every mechanism.
            "attacks": tuple(one for one in self.attacks if one.mechanisms and names.issuperset(one.mechanisms)),
            "channel": self.channel.model_copy(update={"outages": ()}),
        }
        return self.model_copy(update=update), [one.name for one in self.mechanisms if one.name not in names]

    def tables(self) -> dict[str, Any]:
        """Return the tables from which the scenario was made, to be changed and checked again.

        If the scenario was not made from tables, or is a changed copy, every default is filled in.
        """
        from scenarios.validation import validate  # noqa: PLC0415  # it reads the fields of this class

        if self._given is not None and validate(plain(self._given), self._folder) == self:
            return dict(plain(self._given))
        return dict(plain(self))

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return self.scenario.name

    @property
    def seed(self) -> int:
        """Seed of the run."""
        return self.scenario.seed

    def released(self) -> list[Released]:
        """Return every campaign's release, its own or the default one, in the order of the campaigns."""
        mechanisms, channel = [known_of(mechanism) for mechanism in self.mechanisms], known_of(self.channel)
        default = known_of(self.release)
        each = [
            released_by(
                known_of(campaign),
                index=index,
                default=default,
                mechanisms=mechanisms,
                channel=channel,
                aggregation=known_of(self.aggregation),
            )
            for index, campaign in enumerate(self.campaigns)
        ]
        return [released for released in each if released is not None]

    def warnings(self) -> list[str]:
        """Return a sentence for each setting that is allowed but probably not intended."""
        doubts = [
            f"mechanisms.{mechanism.name}.{words}"
            for mechanism in self.mechanisms
            if isinstance(mechanism, SamplingPrivacy)
            for words in _doubts(mechanism)
        ]
        return [*doubts, *self.release_warnings()]

    def release_warnings(self) -> list[str]:
        """Return the known weaknesses of releases that may be chosen nevertheless."""
        recoded = [released.campaign["name"] for released in self.released() if released.kind == "recode"]
        if not recoded:
            return []
        why = "its clusters follow the devices and show where the outermost are (LQS 3.1)"
        return [f"release: recode, in campaigns {', '.join(recoded)}, is documented as vulnerable: {why}"]

    @model_validator(mode="after")
    def _keep_rules(self) -> Self:
        outline = Outline(
            heading=known_of(self.scenario),
            traffic=known_of(self.traffic),
            campaigns=[known_of(campaign) for campaign in self.campaigns],
            mechanisms=[known_of(mechanism) for mechanism in self.mechanisms],
            population=known_of(self.population),
            channel=known_of(self.channel),
            release=known_of(self.release),
            aggregation=known_of(self.aggregation),
            refinements=[known_of(refinement) for refinement in self.refinements],
            attacks=[known_of(attack) for attack in self.attacks],
            fcd=ValidFields() if self.fcd is None else known_of(self.fcd),
        )
        refuse(list(broken_between_sections(outline)))
        return self


def _doubts(mechanism: SamplingPrivacy) -> list[str]:
    doubts = []
    if mechanism.sampling >= 0.5:
        doubts.append(f"sampling is {number(mechanism.sampling)}: the papers ask for less than one half (SP 3.1)")
    if mechanism.silent_blank:
        doubts.append('blank_zero is 0: an output of 0 in round one then shouts "sampled"')
    return doubts
