"""What is wrong with a partition, all of it at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class CellsError(ValueError):
    """A partition that cannot be made.

    Parameters
    ----------
    faults
        One sentence a fault: what is concerned, the rule, the value received.

    Attributes
    ----------
    faults : list of str
        Every fault found, in the order found; never empty.
    """

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = list(faults)
        super().__init__("\n".join(self.faults))
