"""Transcript: what one party of a deployment stored, and nothing else."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from mechanisms.local import Reports

HandleKind = Literal["device", "query", "none"]
"""How entries are told apart: by the device's own number, the same in every query and at every server; by a one-time
pseudonym, new in each query, the same in its rounds and at every server; or not at all, in an order that says
nothing."""
ContentKind = Literal["reports", "shares", "sealed"]
"""What an entry holds: a plain report, a share of one, or something its keeper cannot read."""

IntArray: TypeAlias = npt.NDArray[np.int64]
ShareVectors: TypeAlias = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Filed:
    """What one party stored of one round of one query, an entry a report that reached it.

    Entries with handles are in the order of the handles, so their order tells nothing that the handles do not.

    Parameters
    ----------
    query, round
        From 1.
    handle_kind
        What the handles are.
    handles
        (n,) int64, no two alike; None where there are none.
    content
        Plain reports of the mechanism, n of them; (n, *tally_shape) uint64 share vectors; None where the party
        cannot read them.
    content_kind
        Which of the three.
    places
        (n,) int64, a mixer's alone: where in the next server's list it put each entry. Together with that list it
        undoes the mixing.

    Raises
    ------
    ValueError
        If handles, content and places are not of the same n entries, or not of the kinds stated.
    """

    query: int
    round: int
    handle_kind: HandleKind
    handles: IntArray | None
    content: Reports | ShareVectors | None
    content_kind: ContentKind
    places: IntArray | None = None

    def __post_init__(self) -> None:
        """Check that the entries are whole."""
        if (self.handles is None) != (self.handle_kind == "none"):
            raise ValueError(f"handles must be there unless handle_kind is 'none', received {self.handle_kind!r}")
        if (self.content is None) != (self.content_kind == "sealed"):
            raise ValueError(f"content must be there unless content_kind is 'sealed', received {self.content_kind!r}")
        lengths = {len(part) for part in (self.handles, self.content, self.places) if part is not None}
        if len(lengths) > 1:
            raise ValueError(f"handles, content and places must be of the same entries, received {sorted(lengths)}")
        if self.handles is not None and len(np.unique(self.handles)) < len(self.handles):
            raise ValueError("handles must differ within a round")

    def __len__(self) -> int:
        """Return the number of entries."""
        entries = self.handles if self.handles is not None else self.content
        return 0 if entries is None else len(entries)


@dataclass(frozen=True, eq=False)
class Released:
    """What a deployment published of one query, for everybody to see.

    Parameters
    ----------
    query
        From 1.
    counted
        Reports behind the counts, by round.
    counts
        (rounds, *tally_shape) int64; None where they were not published.
    differences
        (cells,) int64, a suppressed one as 0; None where they were not published.
    suppressed
        (cells,) bool, which differences were too small to publish; None where none can be.
    """

    query: int
    counted: tuple[int, ...]
    counts: IntArray | None = None
    differences: IntArray | None = None
    suppressed: npt.NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class Transcript:
    """Everything that one party stored of one campaign and mechanism.

    Parameters
    ----------
    party
        "server:1", …, "mixer" or "network".
    campaign, mechanism
        Their names.
    filed
        By query, then round.
    released
        By query; every party has the same.
    """

    party: str
    campaign: str
    mechanism: str
    filed: tuple[Filed, ...]
    released: tuple[Released, ...] = ()
