"""What is wrong with data sets, all of it at once."""

from collections.abc import Iterable


class DatasetError(ValueError):
    """A data set that is unknown, absent, not what the manifest says, or cannot be read.

    Parameters
    ----------
    faults
        One sentence a fault: data set or file, and row where there is one; the rule; the value received.

    Attributes
    ----------
    faults : list of str
        Every fault found, in the order found; never empty.
    """

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = list(faults)
        super().__init__("\n".join(self.faults))
