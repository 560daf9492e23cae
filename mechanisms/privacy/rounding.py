"""Rounding of claimed numbers for display: never to a smaller number, which would claim too much."""

import math
from decimal import ROUND_CEILING, Decimal

COMPUTED = Decimal("1e-12")
"""Relative rounding error of a computed number that is not displayed: ε = 2.0000000000000004 is written as 2."""

NEGLIGIBLE = 1e-25
"""Probabilities below it are not distinguished: sums of many leave out 1e-30 each."""
_WHOLE_FROM = 2.0**53
"""Every floating-point number of this size is whole, and one of 29 digits is too long to be rounded as a decimal."""


def round_up(value: float, decimals: int) -> float:
    """Return the least number with so many decimals that is not below a finite one; they may be negative.

    A number within `COMPUTED` of one with so many decimals is that one.
    """
    if abs(value) >= _WHOLE_FROM and decimals >= 0:
        return float(value)
    exact = Decimal(repr(float(value)))
    nearest = round(exact, decimals)
    if abs(nearest - exact) <= COMPUTED * abs(exact):
        return float(nearest)
    return float(exact.quantize(Decimal(1).scaleb(-decimals), ROUND_CEILING))


def rounded_up(value: float, digits: int = 3) -> str:
    """Return a claimed number rounded up to so many significant digits.

    Zeros at the end are left out only of a number that has no more digits: ``4`` for 4, ``4.00`` for 3.9923.
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    up = round_up(value, digits - 1 - math.floor(math.log10(abs(value))))
    same = math.isclose(up, value, rel_tol=float(COMPUTED))
    return f"{up:.{digits}g}" if same else f"{up:#.{digits}g}".rstrip(".")
