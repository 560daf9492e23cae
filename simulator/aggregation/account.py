"""Account: what became of every report of one round."""

import math
from dataclasses import dataclass

from mechanisms.local import LocalMechanism


@dataclass(frozen=True)
class RoundAccount:
    """One row of `rounds.parquet`; answered = counted + late + lost + rejected + unpaired, always.

    Attributes
    ----------
    asked
        Devices asked.
    answered
        Reports sent; fewer than asked if devices have left.
    counted, late, lost, rejected, unpaired
        Where the answered reports ended up.
    duplicates
        Copies that arrived besides, and were not counted.
    bytes_up
        Bytes sent by devices.
    """

    asked: int
    answered: int
    counted: int
    late: int = 0
    lost: int = 0
    rejected: int = 0
    unpaired: int = 0
    duplicates: int = 0
    bytes_up: int = 0

    def __post_init__(self) -> None:
        accounted = self.counted + self.late + self.lost + self.rejected + self.unpaired
        if accounted != self.answered:
            raise ValueError(
                f"answered must equal counted + late + lost + rejected + unpaired, received {self.answered} "
                f"answered and {accounted} accounted for"
            )


def report_nbytes(mechanism: LocalMechanism) -> int:
    """Return the bytes of one plain report of a mechanism.

    Its own `report_bits` where it states them; else its outcome's number, or as many bits a question as its outputs
    need.
    """
    stated: int | None = getattr(mechanism, "report_bits", None)
    *questions, outputs = mechanism.tally_shape
    bits = max(1, (outputs - 1).bit_length()) * math.prod(questions) if stated is None else stated
    return -(-bits // 8)
