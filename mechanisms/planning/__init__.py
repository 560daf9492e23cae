"""Planning: find mechanism parameters that meet a target of privacy or error, or the reason that none do."""

from mechanisms.planning.families import FAMILIES, family_names
from mechanisms.planning.plan import Plan, Planning, plan
from mechanisms.planning.target import RELEASED, VIEWS, Target
from mechanisms.planning.trusts import LeastNumber, TrustCost, compare_trusts, find_least
