"""Parameter rules of mechanisms, and the error that names field, rule and value."""

import math
from collections.abc import Collection, Iterable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # scenarios are checked without numpy
    import numpy as np
    from numpy.typing import NDArray


class ParameterWarning(UserWarning):
    """Warning about parameters that are allowed but not advised."""


class ParameterError(ValueError):
    """Error for a parameter value that breaks a rule.

    Parameters
    ----------
    field : str
        The name of the parameter.
    rule : str
        The rule, as the predicate of a sentence whose subject is the field: ``"must be at least 1"``.
    value : object
        The value received.
    choices : sequence of str
        The values allowed, if these are a list of names.
    """

    def __init__(self, field: str, rule: str, value: object, choices: Collection[str] = ()) -> None:
        super().__init__(field, rule, value, tuple(choices))
        self.field = field
        self.rule = rule
        self.value = value
        self.choices = tuple(choices)

    def __str__(self) -> str:
        """Return field, rule and value in one sentence."""
        return f"{self.field} {self.rule}, got {self.value!r}"


def check_integer(field: str, value: object, *, at_least: int, at_most: int | None = None) -> int:
    """Return `value` as an int within its bounds; reject a bool or a float."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ParameterError(field, "must be an integer", value)
    number = int(value)
    if number < at_least or (at_most is not None and number > at_most):
        bounds = f"at least {at_least}" if at_most is None else f"in {at_least}..{at_most}"
        raise ParameterError(field, f"must be {bounds}", value)
    return number


def check_probability(field: str, value: object, *, above_zero: bool = False) -> float:
    """Return `value` as a float in [0, 1], or in (0, 1] with `above_zero`; reject NaN."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ParameterError(field, "must be a number", value)
    value = float(value)
    if not 0.0 <= value <= 1.0 or (above_zero and value == 0.0):
        rule = "must be a probability above 0" if above_zero else "must be a probability, 0 to 1"
        raise ParameterError(field, rule, value)
    return value


# The least probability of a mechanism above 0: products of several, squared, and their ratios are then doubles.
LEAST_CHANCE = 1e-20


def check_chance(field: str, value: object, *, above_zero: bool = False) -> float:
    """Return a mechanism's probability as a float: 0 (unless `above_zero`), or 1e-20…1; reject NaN."""
    chance = check_probability(field, value, above_zero=above_zero)
    if 0.0 < chance < LEAST_CHANCE:
        raise ParameterError(field, f"must be {'' if above_zero else '0 or '}at least {LEAST_CHANCE:g}", value)
    return chance


def to_number(value: object) -> float:
    """Return a number as a float; NaN for anything else."""
    return float(value) if not isinstance(value, bool) and isinstance(value, Real) else math.nan


def check_epsilon(value: object) -> float:
    """Return the privacy parameter ε as a float ≥ 0 (infinity allowed); reject NaN."""
    number = to_number(value)
    if math.isnan(number) or number < 0:
        raise ParameterError("epsilon", "must be a number of at least 0", value)
    return number


# Below LEAST, double precision does not separate a mechanism's two probabilities; above GREATEST, there is no privacy.
LEAST, GREATEST = 1e-6, 50.0


def check_number(field: str, value: object, *, at_least: float | None = None, at_most: float | None = None) -> float:
    """Return `value` as a float within its bounds; reject NaN."""
    number = to_number(value)
    if math.isnan(number):
        raise ParameterError(field, "must be a number", value)
    low, high = -math.inf if at_least is None else at_least, math.inf if at_most is None else at_most
    if not low <= number <= high:
        bounds = f"at least {low:g}" if at_most is None else f"in {low:g}..{high:g}"
        raise ParameterError(field, f"must be {bounds}", value)
    return number


def check_budget(field: str, value: object) -> float:
    """Return the ε of a mechanism as a float in 1e-6…50; reject 0, NaN and infinity."""
    return check_number(field, value, at_least=LEAST, at_most=GREATEST)


def check_choice(field: str, value: str, choices: Collection[str]) -> None:
    """Reject a value that is not among the choices."""
    if value not in choices:
        raise ParameterError(field, f"must be one of {', '.join(choices)}", value, choices)


def check_counts(
    field: str, value: object, shape: tuple[int, ...] | None = None, *, signed: bool = True
) -> "NDArray[np.int64]":
    """Return `value` as an int64 array of exactly this shape; reject floats and, unless `signed`, negative numbers."""
    import numpy as np  # noqa: PLC0415 - scenarios are checked without numpy

    array = np.asarray(value)
    if array.dtype.kind not in "iu":
        raise ParameterError(field, "must hold integers", str(array.dtype))
    if shape is not None and array.shape != shape:
        raise ParameterError(field, f"must have shape {shape}", array.shape)
    if not signed and array.size and array.min() < 0:
        raise ParameterError(field, "must not be negative", int(array.min()))
    return array.astype(np.int64, copy=False)


def check_true_counts(value: object, cells: int) -> "NDArray[np.int64]":
    """Return the true counts of devices outside ([0]) and in each cell ([1..V]), (cells + 1,) int64, none negative."""
    return check_counts("true_counts", value, (cells + 1,), signed=False)


def check_per_round(field: str, value: Iterable[Any], rounds: int) -> tuple[int, ...]:
    """Return one number of devices per round as a tuple of ints ≥ 0."""
    array = check_counts(field, value if hasattr(value, "dtype") else list(value), (rounds,))
    if array.min() < 0:
        raise ParameterError(field, "must not be negative", array.tolist())
    return tuple(array.tolist())
