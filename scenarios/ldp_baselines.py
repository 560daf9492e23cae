"""``[[mechanisms]]`` from the literature on local differential privacy, for comparison."""

from typing import Literal

from scenarios.section import Count, NamedByKind, Positive, Probability


class _Budgeted(NamedByKind):
    """A mechanism whose one required parameter is ε; "outside every cell" is one more possible truth."""

    epsilon: Positive
    """ε of one report."""


class KRandomizedResponse(_Budgeted):
    """Report one of the cells, the true one e^ε times as likely as any other."""

    kind: Literal["k_randomized_response"]


class SymmetricUnary(_Budgeted):
    """A bit for each cell, each flipped with the same probability."""

    kind: Literal["sue"]


class OptimisedUnary(_Budgeted):
    """A bit for each cell, with the two flip probabilities that give the least error."""

    kind: Literal["oue"]


class HadamardResponse(_Budgeted):
    """Report an index of a Hadamard code."""

    kind: Literal["hadamard_response"]


class SubsetSelection(_Budgeted):
    """Report a set of cells that contains the true one with a higher probability than any other."""

    kind: Literal["subset_selection"]
    size: Count | None = None
    """Number of cells in the set. Default: the best."""


class LocalHashing(_Budgeted):
    """Hash the cells onto a few buckets, and report a noisy bucket."""

    kind: Literal["olh"]
    buckets: Count | None = None
    """Number of buckets. Default: the best."""


class ThresholdHistogram(_Budgeted):
    """Add Laplace noise to the one-hot vector of the cell, and report which entries exceed a threshold."""

    kind: Literal["the"]
    threshold: float | None = None
    """Threshold between 1/2 and 1. Default: the best."""


class Warner(NamedByKind):
    """A yes/no answer for each cell: the truth with probability `truthful`, else the opposite."""

    kind: Literal["warner"]
    truthful: Probability
    """Probability of a true answer; not 1/2."""


class LongitudinalUnary(NamedByKind):
    """A permanent noisy bit for each cell, stored by the device and randomized again in every query."""

    kind: Literal["longitudinal_unary"]
    epsilon_permanent: Positive
    """ε of any number of reports about one place."""
    epsilon_first: Positive
    """ε of one report; below `epsilon_permanent`."""
    permanent: Literal["optimised", "symmetric"] = "optimised"
    """How the permanent bits are drawn."""


class DistributedLaplace(NamedByKind):
    """Add each device's share of discrete Laplace noise to its report: for servers that see sums only."""

    kind: Literal["distributed_laplace"]
    epsilon: Positive
    """ε of the published sums."""
    devices: Count
    """Number of devices among which the noise is divided; if fewer are counted, there is less noise and the run claims
    less privacy."""
