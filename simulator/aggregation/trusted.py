"""Trusted: one server that hears every round and is believed to publish the estimate only."""

import numpy as np
import numpy.typing as npt

from mechanisms.local import Estimate, LocalMechanism
from simulator.aggregation.account import RoundAccount

Counts = npt.NDArray[np.int64]


class TrustedAggregator:
    """Adds up each round's reports of one query and estimates occupancy when it closes.

    It stores the sums alone: (rounds, *tally_shape) int64 and what became of the reports.

    Parameters
    ----------
    mechanism
        Whose reports it adds up.
    """

    def __init__(self, mechanism: LocalMechanism) -> None:
        self._mechanism = mechanism
        self._counts = np.zeros((mechanism.rounds, *mechanism.tally_shape), dtype=np.int64)
        self._accounts: dict[int, RoundAccount] = {}

    def receive(self, round_: int, counts: Counts) -> None:
        """Add the sum of some reports of a round, (*tally_shape) int64."""
        self._counts[round_ - 1] += counts

    def close_round(self, round_: int, account: RoundAccount) -> None:
        """Note what became of the reports of a round."""
        self._accounts[round_] = account

    @property
    def accounts(self) -> list[RoundAccount]:
        """The rounds' accounts, in order."""
        return [self._accounts[round_] for round_ in sorted(self._accounts)]

    @property
    def counted(self) -> list[int]:
        """Reports counted, by round."""
        return [account.counted for account in self.accounts]

    @property
    def asked(self) -> list[int]:
        """Devices asked, by round."""
        return [account.asked for account in self.accounts]

    def estimate(self) -> Estimate:
        """Estimate occupancy from what was counted."""
        return self._mechanism.estimate(self._counts, counted=self.counted, asked=self.asked)
