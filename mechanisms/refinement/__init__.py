"""Refinement of an unbiased estimate, at the price of bias, and combination of several queries."""

# A name imported as itself is exported.
from mechanisms.refinement.combination import combine as combine
from mechanisms.refinement.combination import minimum_variance_weights as minimum_variance_weights
from mechanisms.refinement.combination import spread as spread
from mechanisms.refinement.combination import variance_law as variance_law
from mechanisms.refinement.projections import Properties as Properties
from mechanisms.refinement.projections import RefinedEstimate as RefinedEstimate
from mechanisms.refinement.projections import clip as clip
from mechanisms.refinement.projections import clipped_law as clipped_law
from mechanisms.refinement.projections import clipped_normal as clipped_normal
from mechanisms.refinement.projections import norm_mul as norm_mul
from mechanisms.refinement.projections import norm_sub as norm_sub
from mechanisms.refinement.projections import project_onto_simplex as project_onto_simplex
from mechanisms.refinement.projections import simplex as simplex
from mechanisms.refinement.projections import total_of as total_of
