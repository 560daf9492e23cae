"""``[[mechanisms]]`` from the literature on local differential privacy, for comparison."""

from typing import Literal

from scenarios.section import Count, NamedByKind, Positive, Probability


class _Budgeted(NamedByKind):
    """A mechanism with ε for its one dial; being outside every cell is one truth more."""

    epsilon: Positive
    """Privacy of one report."""


class KRandomizedResponse(_Budgeted):
    """Say one of the cells, the true one e^ε times as likely as another."""

    kind: Literal["k_randomized_response"]


class SymmetricUnary(_Budgeted):
    """A bit for each cell, each told truly or flipped with the same probability."""

    kind: Literal["sue"]


class OptimisedUnary(_Budgeted):
    """A bit for each cell, with the two flips that give the least error."""

    kind: Literal["oue"]


class HadamardResponse(_Budgeted):
    """Answer with an index of a Hadamard code."""

    kind: Literal["hadamard_response"]


class SubsetSelection(_Budgeted):
    """Answer with a set of cells, the true one more likely in it than another."""

    kind: Literal["subset_selection"]
    size: Count | None = None
    """Cells in the set; left out, the best."""


class LocalHashing(_Budgeted):
    """Hash the cells onto a few buckets, and answer with a noisy bucket."""

    kind: Literal["olh"]
    buckets: Count | None = None
    """How many buckets; left out, the best."""


class ThresholdHistogram(_Budgeted):
    """Add Laplace noise to a one for each cell, and answer which exceed a threshold."""

    kind: Literal["the"]
    threshold: float | None = None
    """Between 1/2 and 1; left out, the best."""


class Warner(NamedByKind):
    """One coin for each cell: heads, the truth; tails, the opposite."""

    kind: Literal["warner"]
    truthful: Probability
    """Probability of the truth; not 1/2."""


class LongitudinalUnary(NamedByKind):
    """A permanent noisy bit for each cell, kept by the device, and flipped anew in every query."""

    kind: Literal["longitudinal_unary"]
    epsilon_permanent: Positive
    """What any number of reports about one place tell."""
    epsilon_first: Positive
    """What one report tells; below `epsilon_permanent`."""
    permanent: Literal["optimised", "symmetric"] = "optimised"
    """How the kept bits are drawn."""


class DistributedLaplace(NamedByKind):
    """Each device adds its share of discrete Laplace noise: for servers that see sums only."""

    kind: Literal["distributed_laplace"]
    epsilon: Positive
    """Privacy of the published sums."""
    devices: Count
    """How many devices the noise is shared among; if fewer are counted, there is less noise and the run claims less."""
