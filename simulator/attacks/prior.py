"""What an attacker knows before it observes anything, and the guesses that an attack returns."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanisms.inference import best_guess
from mechanisms.parameter import ParameterError, check_integer
from simulator.aggregation.transcript import HandleKind, IntArray

FloatArray = npt.NDArray[np.float64]

ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Prior:
    """Probabilities of where a device is, (cells + 1,) float64 with [0] outside, for each query.

    Parameters
    ----------
    by_query
        By the query's number.
    even
        Whether all places are alike. Guesses between equals are then drawn; else the lowest of equals is guessed,
        which changes no expected success.
    exact
        Whether the devices guessed are known to be spread over the places exactly so. Reports that nothing ties to a
        device then tell nothing more about one.
    """

    by_query: Mapping[int, FloatArray]
    even: bool = False
    exact: bool = False

    @classmethod
    def from_counts(cls, counts: Mapping[int, npt.NDArray[np.int64]], *, exact: bool = False) -> "Prior":
        """Return the shares of devices in each place.

        Parameters
        ----------
        counts
            (cells + 1,) int64 by query, at least one device in each.
        exact
            As of the class: whether the counts are those of the devices guessed.

        Raises
        ------
        ParameterError
            If there is nobody in a query.
        """
        for query, places in counts.items():
            if places.sum() < 1:
                raise ParameterError("counts", f"must hold a device in query {query}", 0)
        return cls({query: places / places.sum() for query, places in counts.items()}, exact=exact)

    @classmethod
    def uniform(cls, cells: int, queries: tuple[int, ...]) -> "Prior":
        """Return a prior to which all places are alike, outside among them."""
        places = check_integer("cells", cells, at_least=1) + 1
        return cls(dict.fromkeys(queries, np.full(places, 1.0 / places)), even=True)

    def of(self, query: int) -> FloatArray:
        """Return the probabilities of one query."""
        return self.by_query[query]

    def tie_rng(self, rng: np.random.Generator) -> np.random.Generator | None:
        """Return what breaks ties: nothing but order, unless all places are alike."""
        return rng if self.even else None

    def guess(self, query: int, n: int, *, rng: np.random.Generator) -> npt.NDArray[np.int32]:
        """Return the best guess of n devices of which nothing was seen, (n,) int32."""
        return best_guess(np.tile(self.of(query), (n, 1)), rng=self.tie_rng(rng))

    def usual(self, query: int) -> int | None:
        """Return the place that guess always is; None where it is drawn."""
        return None if self.even else int(best_guess(self.of(query)[np.newaxis])[0])

    def success(self, query: int) -> float:
        """Return how often that guess is right: the largest probability."""
        return float(self.of(query).max())

    def trusted(self, theory: float | None, q: FloatArray) -> float | None:
        """Return an expected success worked out for this prior, if devices are where the prior has them.

        Where all places are alike they are not: then it is known only if what is seen tells nothing, for every guess
        is drawn.
        """
        if self.even and theory is not None and theory > q.max() * (1.0 + ROUNDING):
            return None
        return theory


@dataclass(frozen=True, eq=False)
class Guesses:
    """Guesses about devices of which the coalition saw the same things in one query.

    Parameters
    ----------
    query
        From 1.
    handle_kind, handles
        (n,) int64, whom they are about; None: about any device whatsoever.
    cells
        (n,) int32, 0 outside … V; (1,) where it is about any device.
    theory
        The expected success, before the reports are seen; None where it is not known.

    Raises
    ------
    ValueError
        If handles and cells are not of the same devices.
    """

    query: int
    handle_kind: HandleKind
    handles: IntArray | None
    cells: npt.NDArray[np.int32]
    theory: float | None

    def __post_init__(self) -> None:
        """Check that there is one guess a handle."""
        if (self.handles is None) != (self.handle_kind == "none"):
            raise ValueError(f"handles must be there unless handle_kind is 'none', received {self.handle_kind!r}")
        if len(self.cells) != (1 if self.handles is None else len(self.handles)):
            raise ValueError(f"there must be one guess a device, received {len(self.cells)}")
