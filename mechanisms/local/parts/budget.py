"""The privacy budget a mechanism is built for: a finite ε above 0."""

import math

import numpy as np

from mechanisms.parameter import ParameterError

# Below, doubles cannot tell a mechanism's two probabilities apart well enough; above, nothing is hidden.
LEAST, GREATEST = 1e-6, 50.0


def check_budget(field: str, value: object) -> float:
    """Return the ε a mechanism shall have as a float in 1e-6…50; 0, NaN and infinity are refused."""
    number = float(value) if isinstance(value, int | float | np.number) and not isinstance(value, bool) else math.nan
    if math.isnan(number):
        raise ParameterError(field, "must be a number", value)
    if not LEAST <= number <= GREATEST:
        raise ParameterError(field, f"must be in {LEAST:g}..{GREATEST:g}", value)
    return number
