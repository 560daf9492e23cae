"""Refinement of an estimate: to possible counts at the price of bias, or for devices that were less likely to count."""

from mechanisms.refinement.projections import (
    Properties,
    RefinedEstimate,
    clip,
    norm_mul,
    norm_sub,
    project_onto_simplex,
    simplex,
    total_of,
)
from mechanisms.refinement.weighting import inverse_probability
