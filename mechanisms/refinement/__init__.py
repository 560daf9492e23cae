"""Refinement of an unbiased estimate, at the price of bias, and combination of several queries."""

from mechanisms.refinement.combination import Combination, combine, minimum_variance_weights, spread, variance_law
from mechanisms.refinement.projections import (
    ClippedMoments,
    Properties,
    RefinedEstimate,
    Total,
    clip,
    clipped_law,
    clipped_normal,
    norm_mul,
    norm_sub,
    project_onto_simplex,
    simplex,
    total_of,
)

__all__ = [
    "ClippedMoments",
    "Combination",
    "Properties",
    "RefinedEstimate",
    "Total",
    "clip",
    "clipped_law",
    "clipped_normal",
    "combine",
    "minimum_variance_weights",
    "norm_mul",
    "norm_sub",
    "project_onto_simplex",
    "simplex",
    "spread",
    "total_of",
    "variance_law",
]
