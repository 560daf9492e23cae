"""The prior of a coalition, and guesses about the cells of devices."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mechanisms.inference.likelihood import best_guess
from mechanisms.parameter import ParameterError, check_integer
from simulator.aggregation.transcript import HandleKind
from simulator.arrays import Cells, FloatArray, IntArray
from simulator.attacks.observation import Linked

ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Prior:
    """Prior probabilities of a device's cell, (cells + 1,) float64 with [0] outside, for each query.

    Parameters
    ----------
    by_query
        Probabilities by the query's number.
    even
        Whether the prior is uniform. Ties between guesses are then broken at random; otherwise the lowest of equally
        likely cells is guessed, which does not change the expected success.
    exact
        Whether the devices guessed are known to be distributed over the cells in exactly these shares. Reports that
        cannot be linked to a device then reveal nothing more about one (together with linked reports, only by how the
        coins happened to fall, which is not used).
    """

    by_query: Mapping[int, FloatArray]
    even: bool = False
    exact: bool = False

    @classmethod
    def from_counts(cls, counts: Mapping[int, IntArray], *, exact: bool = False) -> "Prior":
        """Return the prior given by the share of devices in each cell.

        Parameters
        ----------
        counts
            (cells + 1,) int64 by query, at least one device in each query.
        exact
            As in the class: whether the counts are those of the devices guessed.

        Raises
        ------
        ParameterError
            If a query has no device.
        """
        for query, places in counts.items():
            if places.sum() < 1:
                raise ParameterError("counts", f"must hold a device in query {query}", 0)
        return cls({query: places / places.sum() for query, places in counts.items()}, exact=exact)

    @classmethod
    def uniform(cls, cells: int, queries: tuple[int, ...]) -> "Prior":
        """Return the uniform prior over all cells and outside."""
        places = check_integer("cells", cells, at_least=1) + 1
        return cls(dict.fromkeys(queries, np.full(places, 1.0 / places)), even=True)

    def of(self, query: int) -> FloatArray:
        """Return the probabilities of one query."""
        return self.by_query[query]

    def tie_rng(self, rng: np.random.Generator) -> np.random.Generator | None:
        """Return the generator that breaks ties if the prior is uniform; otherwise None, for ties broken by order."""
        return rng if self.even else None

    def guess(self, query: int, n: int, *, rng: np.random.Generator) -> Cells:
        """Return the best guesses for n devices of which nothing was observed, (n,) int32."""
        return best_guess(np.tile(self.of(query), (n, 1)), rng=self.tie_rng(rng))

    def usual(self, query: int) -> int | None:
        """Return the cell that `guess` always returns; None if it is drawn."""
        return None if self.even else int(best_guess(self.of(query)[np.newaxis])[0])

    def success(self, query: int) -> float:
        """Return the probability that `guess` is right: the largest of the prior."""
        return float(self.of(query).max())

    def trusted(self, theory: float | None, query: int) -> float:
        """Return an expected success computed for this prior; NaN if devices are not distributed like the prior.

        Under a uniform prior they are not. The expected success is then known only if the observation reveals nothing,
        as every guess is then drawn.
        """
        if theory is None or (self.even and theory > self.success(query) * (1.0 + ROUNDING)):
            return math.nan
        return theory


@dataclass(frozen=True, eq=False)
class Guesses:
    """Guesses about devices of which the coalition received the same kinds of reports in one query.

    Parameters
    ----------
    query
        From 1.
    handle_kind, handles
        (n,) int64, the devices that the guesses are about; None: one guess for any device that no other guess names.
    cells
        (n,) int32, 0 (outside) … V; (1,) if it is one guess for any device.
    theory
        The expected success before the reports are seen; NaN if it is not known.
    probability
        As `cells`, float64: the posterior probability of each guess; None if the attack computes none.

    Raises
    ------
    ValueError
        If handles and cells do not have the same number of devices.
    """

    query: int
    handle_kind: HandleKind
    handles: IntArray | None
    cells: Cells
    theory: float = math.nan
    probability: FloatArray | None = None

    @classmethod
    def about(cls, group: Linked, query: int, cells: Cells, theory: float = math.nan) -> "Guesses":
        """Return guesses about the devices of a group of linked reports, (n,) in its order."""
        return cls(query, group.handle_kind, group.handles, cells, theory)

    def __post_init__(self) -> None:
        """Check that there is one guess for each handle."""
        if (self.handles is None) != (self.handle_kind == "none"):
            raise ValueError(f"handles are required unless handle_kind is 'none', received {self.handle_kind!r}")
        if len(self.cells) != (1 if self.handles is None else len(self.handles)):
            raise ValueError(f"there must be one guess a device, received {len(self.cells)}")
