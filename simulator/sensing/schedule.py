"""Schedule: when a campaign asks."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """When a campaign asks.

    Attributes
    ----------
    start_s, every_s
        Round one of the first query, and seconds from query to query.
    queries
        How many.
    round_gap_s
        Seconds between two rounds.
    deadline_s
        Seconds a round stays open after it is asked.
    """

    start_s: float
    every_s: float
    queries: int
    round_gap_s: float
    deadline_s: float
