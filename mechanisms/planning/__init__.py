"""Planning: find mechanism parameters that meet a target of privacy or error, or the reason that none do."""

from mechanisms.planning.advice import Advised, CityQuestion, Learned, advise
from mechanisms.planning.families import FAMILIES, family_names
from mechanisms.planning.least_number import LeastNumber, find_least
from mechanisms.planning.plan import Plan, Planning, plan
from mechanisms.planning.target import RELEASED, VIEWS, Target
