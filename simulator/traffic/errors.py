"""What is wrong with traffic, all of it at once."""

from collections.abc import Iterable


class TrafficError(ValueError):
    """Demand, a recording or an engine that cannot be used.

    Parameters
    ----------
    faults
        One sentence a fault: file and row, or what is concerned; the rule; the value received.

    Attributes
    ----------
    faults : list of str
        Every fault found, in the order found; never empty.
    """

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = list(faults)
        super().__init__("\n".join(self.faults))
