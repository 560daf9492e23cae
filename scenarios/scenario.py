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
    """What the scenario is called, and how long it runs. Times are seconds from the start of the run."""

    name: Name
    """Its name in listings and results."""
    description: str = ""
    """What it shows, in a sentence or two."""
    seed: Whole = 1
    """Seed of every random choice: the same scenario and seed give the same numbers."""
    duration_s: Positive
    """Length of the run, warm-up included, seconds."""
    warmup_s: NotNegative = 0.0
    """First part of the run, in which vehicles drive and nobody is asked, seconds."""

    @classmethod
    def broken_rules(cls, known: ValidFields) -> Iterator[RuleViolation]:
        """Yield a fault for a warm-up as long as the run."""
        if known.has("duration_s", "warmup_s") and known["warmup_s"] >= known["duration_s"]:
            words = f"must be below duration_s = {number(known['duration_s'])}"
            yield RuleViolation(("warmup_s",), words, known["warmup_s"])


class Scenario(BaseModel):
    """Everything one run is made of.

    Made by `scenarios.load` from a file, or by `model_validate` from tables; both report every fault in plain words.
    Frozen, and equal to another with the same values.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)

    scenario: Heading
    """What it is called, and how long it runs."""
    roads: Roads
    """The road network."""
    cells: Cells
    """How the city is divided."""
    traffic: Traffic
    """The vehicles and what moves them."""
    population: Population = Population()
    """Who takes part."""
    campaigns: Annotated[tuple[Campaign, ...], Field(strict=False, min_length=1)]
    """When vehicles are asked."""
    mechanisms: Annotated[tuple[Mechanism, ...], Field(strict=False, min_length=1)]
    """What runs on the devices; all answer the same queries about the same traffic."""
    channel: Channel = Channel()
    """What happens to reports on their way."""
    aggregation: Aggregation = Aggregation()
    """Who adds up the reports."""
    release: Release = NoRelease()
    """What is done to the counts before they are published; a campaign may have a release of its own."""
    refinements: Annotated[tuple[Refinement, ...], Field(strict=False)] = ()
    """What is made of the estimates afterwards, in rows of their own."""
    claims: Claims = Claims()
    """For which parameters privacy is stated."""
    attacks: Annotated[tuple[Attack, ...], Field(strict=False)] = ()
    """What coalitions try; none changes an estimate."""
    fcd: Fcd | None = None
    """Where every vehicle is, written for other tools; left out, nothing is."""

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
            May hold ``folder``, which relative references to files start from; else the working directory.
        options
            As pydantic's.

        Raises
        ------
        ScenarioError
            If anything is wrong, with every fault found.
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
        """Copy the scenario with other sections.

        Raises
        ------
        TypeError
            If `update` has a key that is no section, such as ``seed``: that is what `scenarios.load(scenario, seed=…)`
            is for.
        """
        unknown = [*(update or {}).keys() - type(self).model_fields.keys()]
        if unknown:
            rule = f"model_copy: update must hold sections ({', '.join(type(self).model_fields)}), got {unknown[0]!r}"
            raise TypeError(f"{rule}; for a seed or single values use scenarios.load(scenario, seed=…, overrides=…)")
        return super().model_copy(update=update, deep=deep)

    def model_post_init(self, context: Any, /) -> None:
        """Keep what the scenario was made of: keys left out there may follow from keys that are changed later."""
        self._given = (context or {}).get("given")
        self._folder = Path((context or {}).get("folder", "")).absolute()
        self._permissions = (context or {}).get("permissions", Permissions())

    def __eq__(self, other: object) -> bool:
        """Compare values, wherever they were read from."""
        return isinstance(other, Scenario) and self.model_dump() == other.model_dump()

    def __hash__(self) -> int:
        return hash((self.name, self.seed))

    @property
    def folder(self) -> Path:
        """What relative references to files start from."""
        return self._folder

    @property
    def permissions(self) -> Permissions:
        """What the scenario may do beyond being read."""
        return self._permissions

    def files_outside(self) -> list[Path]:
        """Return the files it names that are neither in its folder nor in ``CROWDVEIL_DATA``, links followed."""
        files = (path for name in WITH_FILES for _, path in files_of(getattr(self, name)))
        return list(dict.fromkeys(path.resolve() for path in files if is_outside(path, self.folder)))

    def without_unpermitted(self) -> tuple["Scenario", list[str]]:
        """Leave out the plug-ins that may not be imported, and whatever depends on them.

        Returns
        -------
        scenario
            What can be checked without them; it may have no mechanism.
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
            # Which parties there are follows from the rounds of every mechanism.
            "attacks": tuple(one for one in self.attacks if one.mechanisms and names.issuperset(one.mechanisms)),
            "channel": self.channel.model_copy(update={"outages": ()}),
        }
        return self.model_copy(update=update), [one.name for one in self.mechanisms if one.name not in names]

    def tables(self) -> dict[str, Any]:
        """Return the tables the scenario was made of, to be changed and checked again.

        One made otherwise than from tables, or a copy with changes, is given with every default filled in.
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
        """Return what is allowed but probably not meant, one sentence each."""
        doubts = [
            f"mechanisms.{mechanism.name}.{words}"
            for mechanism in self.mechanisms
            if isinstance(mechanism, SamplingPrivacy)
            for words in _doubts(mechanism)
        ]
        return [*doubts, *self.release_warnings()]

    def release_warnings(self) -> list[str]:
        """Return what is known to be wrong with a release that may be chosen all the same."""
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
