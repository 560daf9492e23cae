"""World of a game: what a coalition can observe, the truth about its targets, and what every game must have."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from simulator.aggregation.transcript import VEHICLES, HandleKind, is_member
from simulator.arrays import IntArray, Mask
from simulator.attacks.guesses import Prior
from simulator.attacks.observation import Observation, OwnReports, read_round
from simulator.attacks.records import CampaignRecord, StoredTranscripts, places_of
from simulator.attacks.scores import Score
from simulator.sensing.query import QueryRecord


@dataclass(frozen=True)
class Member:
    """A party of a coalition, and the queries during which it is one.

    Attributes
    ----------
    party
        "server:1", "operator:A/server:1", …, "mixer", "network", "vehicles:N"; "server:*" and "all" stand for several.
    from_query, to_query
        The first and the last query of a campaign for which the coalition has what the party received.
    """

    party: str
    from_query: int = 1
    to_query: float = math.inf

    @property
    def vehicles(self) -> int:
        """Number of corrupted vehicles, 0 for other parties."""
        return int(self.party.removeprefix(VEHICLES)) if self.party.startswith(VEHICLES) else 0

    def among(self, parties: Collection[str]) -> "list[Member]":
        """Return the members that it stands for where there are these parties; itself where it stands for none."""
        return [replace(self, party=party) for party in parties if is_member(party, [self.party])] or [self]

    def at(self, query: int) -> bool:
        """Return whether the party is a member during a query, given by its number in its campaign."""
        return self.from_query <= query <= self.to_query

    def __str__(self) -> str:
        if self.from_query == 1 and self.to_query == math.inf:
            return self.party
        last = f" to {self.to_query}" if self.to_query < math.inf else ""
        return f"{self.party} (from query {self.from_query}{last})"


@dataclass(frozen=True, eq=False)
class Observer:
    """A coalition, which observes the queries of one or more campaigns.

    Attributes
    ----------
    stored
        What each party stored of the recorded devices.
    coalition
        Members of the coalition.
    corrupted
        (n,) int64: the numbers of its corrupted vehicles, which are no targets; None without such vehicles.
    last_vehicle
        Whether all vehicles but one are corrupted.
    """

    stored: StoredTranscripts
    coalition: tuple[Member, ...] = ()
    corrupted: IntArray | None = None
    last_vehicle: bool = False

    def observe(self, queries: Sequence[int]) -> Observation:
        """Return the coalition's observation of some queries."""
        return Observation.pooled([self.observe_query(self.stored.query(query)) for query in queries])

    def observe_query(self, query: QueryRecord) -> Observation:
        """Return the coalition's observation of one query, whose reports may have been altered."""
        campaign = self.stored.campaigns[query.campaign]
        names = campaign.parties
        members = [member for member in self.coalition if member.at(query.number_in_campaign)]
        corrupted = self._own(query, campaign) if any(member.vehicles for member in members) else None
        return Observation.of(
            self.stored.transcripts(query),
            # A coalition that spans campaigns may have parties that one of the campaigns does not have.
            [names.get(member.party, member.party) for member in members if member.vehicles or member.party in names],
            mechanism=campaign.mechanism,
            released=(replace(campaign.released(query), leaves=query.leaves),),
            own=() if corrupted is None else (corrupted,),
            asked={query.number: int(query.asked[0])},
            keys=[names.get(member.party, member.party) for member in self.coalition],
            last_vehicle=self.last_vehicle,
            moments={query.number: query.time_s},
        )

    def places(self, targets: QueryRecord, kind: HandleKind, handles: IntArray | None) -> IntArray:
        """Return the position of each handle's device among a query's targets, (n,) int64; −1 for other devices.

        Without handles the device is the only target.
        """
        if handles is None:
            return np.zeros(1, dtype=np.int64)
        return places_of(self.stored.devices(targets.number, kind, handles), targets.recorded.devices)

    def rounds_read(self, targets: QueryRecord, observation: Observation) -> Mask:
        """Return which of the targets' reports the coalition reads, (rounds, n) bool."""
        read = np.zeros((observation.mechanism.rounds, len(targets.truth)), dtype=np.bool_)
        for row in range(len(read)):
            reports = read_round(observation, targets.number, row + 1)
            if reports is None:
                continue
            if reports.handles is not None:
                places = self.places(targets, reports.handle_kind, reports.handles)
                read[row, places[places >= 0]] = True
            elif observation.unknown_devices(targets.number) == 1 and len(reports) == 1:
                read[row] = True
        return read

    def _own(self, query: QueryRecord, campaign: CampaignRecord) -> OwnReports | None:
        """Return the knowledge of the corrupted vehicles about a query; None if it asked none of them."""
        if self.corrupted is None:
            return None
        places = np.flatnonzero(np.isin(query.recorded.devices, self.corrupted))
        if not len(places):
            return None
        sent = query.recorded.among(places)
        return OwnReports(
            query.number,
            sent.devices,
            sent.pseudonyms,
            query.truth[places],
            tuple(sent.reports),
            sent.counted(paired=campaign.deployment.paired),
            {party: np.isfinite(times) for party, times in sent.arrived_s.items()},
        )


@dataclass(frozen=True, eq=False)
class Truth:
    """The targets of a game: where they were and what they sent.

    Attributes
    ----------
    record
        The queries with the targets only, without the queries during which the coalition has no member.
    given
        The prior, if it does not follow from the targets' cells.
    shares
        By query, (cells + 1,) int64: number of targets by cell, over all choices of corrupted vehicles together. None:
        the targets of this record are counted.
    """

    record: CampaignRecord
    given: Prior | None = None
    shares: Mapping[int, IntArray] | None = None

    @property
    def queries(self) -> list[QueryRecord]:
        """The queries that have targets."""
        return [query for query in self.record.queries if len(query.truth)]

    @property
    def numbers(self) -> list[int]:
        """Numbers of these queries."""
        return [query.number for query in self.queries]

    def prior(self) -> Prior:
        """Return the prior of every query that has targets: the given one, or the share of targets in each cell.

        The shares are the targets' shares, not the shares of all vehicles asked; the targets are a sample of them. This
        is more than an adversary could know. But the success without the observation is then exactly the largest share,
        and coins are the only randomness, although the same vehicles are asked repeatedly. If most vehicles are
        corrupted there are few targets in a world; the shares are then the shares of the targets of all worlds.
        """
        if self.given is not None:
            return self.given
        cells = self.record.mechanism.cells
        if self.shares is not None:
            return Prior.from_counts({query.number: self.shares[query.number] for query in self.queries})
        counts = {query.number: np.bincount(query.truth, minlength=cells + 1) for query in self.queries}
        return Prior.from_counts(counts, exact=True)


class Game:
    """An attack with its evaluation, which is played in each world and scored over all of them."""

    forges = False
    """Whether the coalition's corrupted vehicles are drawn from the targets, to send false reports."""
    spans_partitions = False
    """Whether campaigns that are attacked together may ask about the cells of different partitions."""

    def play(self, observer: Observer, truth: Truth, *, rng: np.random.Generator) -> Iterator[Score]:
        """Yield the scores of each query, or of all queries together.

        Parameters
        ----------
        observer
            Makes the observations of the coalition: all that its guesses are computed from.
        truth
            The targets, with which guesses are compared, and from which sums are computed that did not occur.
        rng
            Generator of all that the game draws; scores are pooled with it after all worlds were played.

        Raises
        ------
        NotPlayableError, NoLikelihoodError, NotEstimableError
            If the game cannot be played on the mechanism, its release or its servers.
        ParameterError, InputError, WrongGuessesError
            If the attack's parameters do not fit the campaign, or a user's own attack returns what is no answer.
        """
        raise NotImplementedError

    def unsuited(self, record: CampaignRecord, *, named: bool) -> str:  # noqa: ARG002 - the signature of all games
        """Return why the attack is not tried on a campaign and mechanism; empty if it is.

        Parameters
        ----------
        record
            The campaign's record.
        named
            Whether the attack names the mechanism. Otherwise it is tried on those for which it is derived.
        """
        return ""

    def lacking(self, queries: int) -> str:  # noqa: ARG002 - the signature of all games
        """Return why there is no score although the game was played, from the number of queries."""
        return "there is nothing to attack"
