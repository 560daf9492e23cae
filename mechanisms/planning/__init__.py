"""Planning: find mechanism parameters that meet a target of privacy or error, or the reason that none do."""

from mechanisms.planning.families import FAMILIES, family_names
from mechanisms.planning.plan import Plan, PlannedClaim, Planning, plan
from mechanisms.planning.target import VIEWS, Target

__all__ = ["FAMILIES", "VIEWS", "Plan", "PlannedClaim", "Planning", "Target", "family_names", "plan"]
