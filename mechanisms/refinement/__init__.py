"""Refinement of an unbiased estimate, at the price of bias."""

from mechanisms.refinement.projections import (
    Properties,
    RefinedEstimate,
    clip,
    clipped_law,
    clipped_normal,
    norm_mul,
    norm_sub,
    project_onto_simplex,
    simplex,
    total_of,
)
