"""Run record: the content of `run.json`, written by a run and read by its report."""

from typing import Any, Self

from pydantic import Field, model_validator

from scenarios.kinds import title as title_of
from scenarios.run_clock import RunClock
from simulator.files.messages import Note, release_parameters
from simulator.results.names import NO_PRIVACY, OwnerNames, mechanism_label
from simulator.results.record import (
    CityRecord,
    DeploymentRecord,
    LossRecord,
    MechanismRecord,
    NoteRecord,
    QueryTraffic,
    Record,
    RefinementRecord,
    ReleaseRecord,
    TrafficRecord,
)

BESIDE = "traffic.beside"
"""Place of notes on the comparison engine's traffic."""
RUN_FORMAT = 2
"""Format number of the run directories written now; directories of version 0.1.0 state no number: format 1."""


class RunRecord(Record):
    """Content of `run.json`; docs/reference/columns.md is made from this description.

    Attributes
    ----------
    format
        number of the layout of the run directory.
    version
        version of crowdveil.
    scenario
        name of the scenario.
    description
        its description; null if it has none.
    start
        time of second 0 of the run, from `[scenario] start` or recorded data; null where not known.
    time_zone
        name of the time zone, if it has one.
    scenario_sha256
        sha256 of `scenario.toml`.
    seed
        seed of the run.
    packages
        versions of Python and of the packages used, by name.
    data
        sha256 of the data files read, by name.
    files_outside
        files read outside the scenario's folder and the data folder.
    plug_ins
        sha256 of the file that defines a plug-in's class, by `kind`; null where there is no such file.
    vehicles
        number of vehicles or other data owners.
    called
        the nouns for one data owner and for several.
    participation
        probability that a vehicle takes part.
    assumed_participation
        the participation by which estimates were divided.
    link_crossings
        links that vehicles crossed in the whole run.
    queries
        number of queries of all campaigns.
    device_answers
        reports sent by devices, over all queries, mechanisms and rounds.
    memory_bytes
        memory of `vehicles`, of `routes`, and at the run's `peak`, which is null where the system does not
        report it.
    city
        size of the road network, number of cells, coordinate system, notes.
    traffic
        states of the vehicles at about a hundred moments, by engine.
    motion_every
        n, where `entries.parquet` and `places.parquet` hold every n-th vehicle.
    traffic_at_queries
        states of the vehicles at every query.
    mechanisms
        each mechanism's parameters, theory, and the leakage that its paper states.
    releases
        by campaign, what its release publishes and what is published without it.
    deployments
        by campaign, the parties, the bytes, and what small coalitions can compute.
    loss
        theoretical error under the run's losses, by number of devices asked.
    refinements
        properties and measured errors of each refinement.
    warnings
        what may mislead a reader of the result, in words.
    statements
        everything noticed, each once, warnings included, with code, level, place and text; earlier runs lack it.
    wall_s
        wall time by phase, seconds.
    """

    format: int = 1
    version: str = "unknown"
    scenario: str
    description: str | None = None
    start: str | None = None
    time_zone: str | None = None
    scenario_sha256: str = "–"
    seed: int
    packages: dict[str, str] = {}
    data: dict[str, str] = {}
    files_outside: list[str] = []
    plug_ins: dict[str, str | None] = {}
    vehicles: int
    called: tuple[str, str] = ("vehicle", "vehicles")
    participation: float = 1.0
    assumed_participation: float = 1.0
    link_crossings: int
    queries: int
    device_answers: int
    memory_bytes: dict[str, int | None] = {}
    city: CityRecord = CityRecord()
    traffic: TrafficRecord = TrafficRecord()
    motion_every: int = 1
    traffic_at_queries: list[QueryTraffic] = []
    mechanisms: list[MechanismRecord]
    releases: list[ReleaseRecord] = []
    deployments: list[DeploymentRecord] = []
    loss: list[LossRecord] = []
    refinements: list[RefinementRecord] = []
    warnings: list[str] = []
    statements: list[NoteRecord] = []
    wall_s: dict[str, float] = {}

    @property
    def noticed(self) -> list[Note]:
        """Everything noticed, each once; of earlier runs what the parts list, without a code."""
        if "statements" in self.model_fields_set:
            return [Note(one.code, one.text, one.level, one.where) for one in self.statements]
        parts = {
            "roads": self.city.notes,
            "traffic": self.traffic.notes,
            BESIDE: [text for other in self.traffic.beside for text in other.notes],
            "release": [text for release in self.releases for text in release.notes],
        }
        listed = [(text, where) for where, texts in parts.items() for text in texts]
        return [Note("", text, "warning" if text in self.warnings else "note", where) for text, where in listed]

    @property
    def clock(self) -> RunClock:
        """The clock of the run."""
        return RunClock.starting(self.start, self.time_zone)

    @property
    def owners(self) -> OwnerNames:
        """The nouns for its data owners."""
        return OwnerNames(*self.called)

    @property
    def mechanisms_by_name(self) -> dict[str, MechanismRecord]:
        """The mechanisms by name."""
        return {mechanism.name: mechanism for mechanism in self.mechanisms}

    @property
    def refined(self) -> dict[str, RefinementRecord]:
        """The refined estimates by name."""
        return {refinement.name: refinement for refinement in self.refinements}

    @property
    def deployments_by_campaign(self) -> dict[str, DeploymentRecord]:
        """The deployments by campaign."""
        return {deployment.campaign: deployment for deployment in self.deployments}

    @property
    def private(self) -> dict[str, MechanismRecord]:
        """The mechanisms other than no privacy, by name."""
        return {name: mechanism for name, mechanism in self.mechanisms_by_name.items() if mechanism.kind != NO_PRIVACY}

    @property
    def first_private(self) -> str | None:
        """The mechanism of most interest: the first other than no privacy; None if there is none."""
        return next(iter(self.private), None)

    def rounds_of(self, mechanism: str) -> int:
        """Return the number of answers that a mechanism takes per query; 2 if the run has no such mechanism."""
        found = self.mechanisms_by_name.get(mechanism)
        return 2 if found is None else found.rounds

    def queries_of(self, campaign: str) -> int:
        """Return the number of queries of a campaign, at least 1."""
        return max(1, sum(query.campaign == campaign for query in self.traffic_at_queries))

    def views_seen(self, mechanism: str, campaign: str | None = None) -> dict[str, int] | None:
        """Return the views that coalitions have of a mechanism's reports, by what the deployments store.

        Parameters
        ----------
        mechanism
            Its name.
        campaign
            The campaign in which servers alone collude; by default all campaigns and parties.

        Returns
        -------
        views
            By name of the view, the least number of parties that have it; None where the run recorded no deployment.
        """
        views: dict[str, int] = {}
        recorded = [one for one in self.deployments if campaign in {None, one.campaign}]
        found = [
            seen for one in recorded for own in one.mechanisms if own.mechanism == mechanism for seen in own.learns
        ]
        for seen in found:
            servers = all("server:" in party for party in seen.coalition)
            if seen.view is not None and (servers or campaign is None):
                views[seen.view] = min(len(seen.coalition), views.get(seen.view, len(seen.coalition)))
        if self.rounds_of(mechanism) == 1 and "linked_reports" in views:
            views["report_round_1"] = views["linked_reports"]  # whoever knows the device has its only report
        return views if found else None

    def label(self, mechanism: str) -> str:
        """Return a mechanism's name for display.

        Parameters
        ----------
        mechanism
            Its name in the scenario.

        Returns
        -------
        label
            Its title, with its name where several mechanisms share the title; its name where there is no title; for a
            refined estimate also the refinement's name, and that it is biased.
        """
        if mechanism in self.refined:
            refined = self.refined[mechanism]
            return f"{self.label(refined.mechanism)}, {refined.refinement}{' (biased)' if refined.biased else ''}"
        return mechanism_label(mechanism, {each.name: each.kind for each in self.mechanisms})

    def release_of(self, campaign: str, mechanism: str) -> ReleaseRecord | None:
        """Return the release through which a mechanism's estimates were published; None if they are its own."""
        releases = (one for one in self.releases if one.campaign == campaign and one.release["kind"] != "none")
        return next((release for release in releases if mechanism in release.mechanisms), None)

    def published_label(self, campaign: str, mechanism: str) -> str:
        """Return a label for a published estimate: the mechanism's label and, if there is one, the release.

        Parameters
        ----------
        campaign, mechanism
            Their names.

        Returns
        -------
        label
            For example ``Exact reports, Laplace noise (epsilon = 1)``.
        """
        release = self.release_of(campaign, mechanism)
        label = self.label(mechanism)
        if release is None:
            return label
        parameters = release_parameters(release.release).replace("epsilon", "ε").replace("delta", "δ")
        kind = str(release.release["kind"])
        return f"{label}, {title_of('release', kind, kind)}" + (f" ({parameters})" if parameters else "")

    @property
    def release_notes(self) -> list[str]:
        """What no release covers, and why; one sentence each."""
        return [note for release in self.releases for note in release.notes]

    @model_validator(mode="after")
    def _check_clock(self) -> Self:
        RunClock.starting(self.start, self.time_zone)
        return self


class CellsSettings(Record):
    """What a page needs of a section of cells."""

    kind: str = ""
    partition: str = "cells"


class TrafficSettings(Record):
    """What a page needs of the section of traffic; `waiting` is absent where vehicles that waited were asked."""

    step_s: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    parked: str = "silent"
    waiting: str = "answer"


class Settings(Record):
    """What a run's page needs of its scenario, whose other keys depend on the version that wrote it."""

    cells: CellsSettings | list[CellsSettings] = []
    traffic: TrafficSettings = TrafficSettings()
    attacks: list[dict[str, Any]] = []

    @property
    def districts(self) -> set[str]:
        """The partitions whose cells are zones of a file, with names of their own."""
        sections = self.cells if isinstance(self.cells, list) else [self.cells]
        return {section.partition for section in sections if section.kind == "zones"}
