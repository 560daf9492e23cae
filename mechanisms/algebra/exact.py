"""Exact numbers: what a caller writes for a probability, as a fraction."""

import math
from fractions import Fraction
from typing import TypeAlias

from mechanisms.parameter import ParameterError

Number: TypeAlias = int | float | Fraction | str


def exact(field: str, value: object) -> Fraction:
    """Return a number as the fraction it was written as.

    Rank decisions, and whether a variance is 0, hang on equalities that rounding would break. A float is
    taken as the shortest decimal that prints it, so 0.45 is 9/20; a third is ``Fraction(1, 3)`` or ``"1/3"``.

    Raises
    ------
    ParameterError
        If it is no finite number.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction | str):
        raise ParameterError(field, "must be a number, or a fraction such as '1/3'", value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ParameterError(field, "must be finite", value)
        return Fraction(repr(float(value)))
    try:
        return Fraction(value)
    except (ValueError, ZeroDivisionError):
        raise ParameterError(field, "must be a number, or a fraction such as '1/3'", value) from None


def exact_probability(field: str, value: object, *, above_zero: bool = False) -> Fraction:
    """Return `value` as a fraction in [0, 1], or in (0, 1] with `above_zero`."""
    number = exact(field, value)
    if above_zero and not 0 < number <= 1:
        raise ParameterError(field, "must be a probability above 0", value)
    if not 0 <= number <= 1:
        raise ParameterError(field, "must be a probability, 0 to 1", value)
    return number
