"""Deployment `per_round`: one server for each round, which receives that round's plain reports."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.local import LocalMechanism
from mechanisms.privacy import LinkedReports, Report, View
from simulator.aggregation.accumulators import PlainSums
from simulator.aggregation.aggregator import Aggregator
from simulator.aggregation.deployment import QUESTION_NBYTES, Cost, Deployment, Handles, Party, RecordedMessages
from simulator.aggregation.round_statistics import report_nbytes
from simulator.aggregation.storage import (
    READ_PLAIN,
    channel_notes,
    check_coalition,
    check_handles,
    file_network,
    file_round,
    followed,
    handle_nbytes,
    identified_by,
    linked_queries,
    pseudonym_nbytes,
    says_nothing,
)
from simulator.aggregation.transcript import NETWORK, StoredEntries


@dataclass(frozen=True)
class PerRound(Deployment):
    """Deployment in which server r receives round r of every query and no other round.

    SP 3.1 assumes such a setting: several aggregators, one of which is honest. A server stores each report of its
    round, plain, under a handle that is the same at every server. Servers publish their counts. They cannot pair,
    because comparing handles would link answers.

    Parameters
    ----------
    handles
        "device" or "query".
    robust
        Has no effect: a plain report is one of the mechanism's outputs, or it is no report.
    anonymous
        Whether devices send over an anonymous channel.

    Raises
    ------
    ParameterError
        If the kind of handle is unknown.
    """

    handles: Handles = "device"
    robust: bool = False
    anonymous: bool = False
    kind: ClassVar[str] = "per_round"

    def __post_init__(self) -> None:
        """Check the handles."""
        check_handles(self.handles)

    def parties(self, mechanism: LocalMechanism) -> tuple[Party, ...]:
        """Return a server for each round, and the network."""
        return (*(f"server:{round_}" for round_ in range(1, mechanism.rounds + 1)), NETWORK)

    def route(self, round_: int, mechanism: LocalMechanism) -> tuple[tuple[Party, ...], ...]:  # noqa: ARG002 - the same for any
        """Return one message, to the server of the round."""
        return ((f"server:{round_}",),)

    def aggregator(
        self,
        mechanism: LocalMechanism,
        *,
        devices: int,  # noqa: ARG002 - its sums are the same for any number
        rng: np.random.Generator,  # noqa: ARG002 - it draws nothing
    ) -> Aggregator:
        """Return the aggregator of one query, which holds the counts of all servers."""
        return Aggregator(mechanism, sums=PlainSums(mechanism), bytes_up=self.cost(mechanism).bytes_up)

    def file(
        self,
        recorded: RecordedMessages,
        mechanism: LocalMechanism,  # noqa: ARG002 - reports are kept as they are
        *,
        rng: np.random.Generator,  # noqa: ARG002 - they draw nothing
    ) -> dict[Party, list[StoredEntries]]:
        """Return the entries that each server stores: its round's plain reports, under handles."""
        filed = {
            f"server:{round_}": [
                file_round(
                    recorded,
                    f"server:{round_}",
                    round_,
                    self.handles,
                    reports.__getitem__,
                    anonymous=self.anonymous,
                )
            ]
            for round_, reports in enumerate(recorded.reports, start=1)
        }
        return {**filed, **file_network(recorded, anonymous=self.anonymous)}

    def cost(self, mechanism: LocalMechanism) -> Cost:
        """Return the cost: a device sends one plain report, and the round's server stores it."""
        nbytes, handle = report_nbytes(mechanism), handle_nbytes(self.handles)
        return Cost(
            bytes_up=nbytes + pseudonym_nbytes(self.handles),
            bytes_down=QUESTION_NBYTES,
            stored_bytes={f"server:{round_}": nbytes + handle for round_ in range(1, mechanism.rounds + 1)},
            notes=(*((READ_PLAIN,) if self.robust else ()), *channel_notes(self.handles, anonymous=self.anonymous)),
        )

    def view(
        self,
        coalition: Iterable[str],
        mechanism: LocalMechanism,
        *,
        devices: int = 1,  # noqa: ARG002 - nobody hides among others
        crowd: int = 1,  # noqa: ARG002 - nor here
        queries: int = 1,
    ) -> View | None:
        """Return the view of one round's report, or of all rounds' reports linked.

        For two servers or more the view has the reports of all rounds, even if the coalition sees only some of them.
        """
        members = check_coalition(coalition, self, mechanism)
        servers = members.servers
        followed_queries = linked_queries(identified_by(self.handles, members, anonymous=self.anonymous), queries)
        if not servers:
            return None
        if len(servers) == 1:
            return Report(min(servers), queries=followed_queries)
        return LinkedReports(queries=followed_queries)

    def learns(self, coalition: Iterable[str], mechanism: LocalMechanism) -> str:
        """Return what the coalition can compute about one device."""
        members = check_coalition(coalition, self, mechanism)
        if not members.servers:
            return says_nothing(members)
        rounds = [str(server) for server in sorted(members.servers)]
        handles = identified_by(self.handles, members, anonymous=self.anonymous)
        if len(rounds) == 1:
            return f"Each device's report of round {rounds[0]} as sent, {followed(handles)}."
        listed = f"{', '.join(rounds[:-1])} and {rounds[-1]}"
        return f"Each device's reports of rounds {listed}, linked to one another, {followed(handles)}."
