"""What may be done to an unbiased estimate afterwards, at the price of bias; and combining several queries."""

from mechanisms.refinement.clipping import ClippedMoments, clip, clipped_law, clipped_normal
from mechanisms.refinement.combination import Combination, combine, minimum_variance_weights, spread
from mechanisms.refinement.normalization import norm_mul, norm_sub
from mechanisms.refinement.refined_estimate import Properties, RefinedEstimate
from mechanisms.refinement.simplex import project_onto_simplex, simplex
from mechanisms.refinement.total import Total, total_of
from mechanisms.refinement.variance_law import variance_law

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
