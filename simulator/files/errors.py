"""What is wrong with what a user gave, all of it at once."""

from collections.abc import Iterable


class FaultsError(ValueError):
    """Something a user gave that cannot be used; every room has a kind of its own, and names it to what reads for it.

    Parameters
    ----------
    faults
        One sentence a fault: file and line or row, or what is concerned; the rule; the value received.

    Attributes
    ----------
    faults : list of str
        Every fault found, in the order found; never empty.
    """

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = list(faults)
        # What it was made of, so that it can be made again: SimPy does so with what a process raises.
        super().__init__(self.faults)

    def __str__(self) -> str:
        """Write one fault a line."""
        return "\n".join(self.faults)
