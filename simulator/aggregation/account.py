"""Account: what became of every report of one round."""

from dataclasses import dataclass


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


def report_nbytes(tally_shape: tuple[int, ...]) -> int:
    """Return the bytes of one plain report: its outcome's number, or one bit a yes/no question.

    Parameters
    ----------
    tally_shape
        (outputs,), or (questions, outputs per question).
    """
    *questions, outputs = tally_shape
    bits = max(1, (outputs - 1).bit_length())
    for count in questions:
        bits *= count
    return -(-bits // 8)
