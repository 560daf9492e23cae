"""Deployment `trusted`: one server that receives every round and publishes only the estimate."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mechanisms.local import LocalMechanism
from mechanisms.privacy import LinkedReports, View
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

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Trusted(Deployment):
    """Deployment in which one server reads every report and is trusted to publish only the counts.

    It stores each report, plain, under its device's number, or under a pseudonym that the device draws anew in each
    query.

    Parameters
    ----------
    handles
        "device" or "query".
    paired
        Whether it counts only devices received in every round. It needs no pseudonyms for that.
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
    paired: bool = False
    robust: bool = False
    anonymous: bool = False
    kind: ClassVar[str] = "trusted"

    def __post_init__(self) -> None:
        """Check the handles."""
        check_handles(self.handles)

    def parties(self, mechanism: LocalMechanism) -> tuple[Party, ...]:  # noqa: ARG002 - one server for any
        """Return the one server, and the network."""
        return ("server:1", NETWORK)

    def route(self, round_: int, mechanism: LocalMechanism) -> tuple[tuple[Party, ...], ...]:  # noqa: ARG002 - one for all rounds
        """Return one message, to the server."""
        return (("server:1",),)

    def aggregator(
        self,
        mechanism: LocalMechanism,
        *,
        devices: int,  # noqa: ARG002 - its sums are the same for any number
        rng: np.random.Generator,  # noqa: ARG002 - it draws nothing
    ) -> Aggregator:
        """Return the aggregator of one query."""
        bytes_up = self.cost(mechanism).bytes_up
        return Aggregator(mechanism, sums=PlainSums(mechanism), paired=self.paired, bytes_up=bytes_up)

    def file(
        self,
        recorded: RecordedMessages,
        mechanism: LocalMechanism,  # noqa: ARG002 - reports are kept as they are
        *,
        rng: np.random.Generator,  # noqa: ARG002 - it draws nothing
    ) -> dict[Party, list[StoredEntries]]:
        """Return the entries that the server stores: every round's plain reports, under handles."""
        filed = [
            file_round(
                recorded,
                "server:1",
                round_,
                self.handles,
                reports.__getitem__,
                paired=self.paired,
                anonymous=self.anonymous,
            )
            for round_, reports in enumerate(recorded.reports, start=1)
        ]
        return {"server:1": filed, **file_network(recorded, paired=self.paired, anonymous=self.anonymous)}

    def cost(self, mechanism: LocalMechanism) -> Cost:
        """Return the cost: a device sends one plain report."""
        nbytes, handle = report_nbytes(mechanism), handle_nbytes(self.handles)
        return Cost(
            bytes_up=nbytes + pseudonym_nbytes(self.handles),
            bytes_down=QUESTION_NBYTES,
            stored_bytes={"server:1": nbytes + handle},
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
        """Return the view of all of a device's reports, linked, if the server is in the coalition."""
        members = check_coalition(coalition, self, mechanism)
        handles = identified_by(self.handles, members, anonymous=self.anonymous)
        return LinkedReports(queries=linked_queries(handles, queries)) if members.servers else None

    def learns(self, coalition: Iterable[str], mechanism: LocalMechanism) -> str:
        """Return what the coalition can compute about one device."""
        members = check_coalition(coalition, self, mechanism)
        if not members.servers:
            return says_nothing(members)
        rounds = "both reports" if mechanism.rounds == 2 else "every report"
        handles = identified_by(self.handles, members, anonymous=self.anonymous)
        return f"{rounds.capitalize()} of each device as sent, {followed(handles)}."
