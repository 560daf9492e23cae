"""The leakage the papers print, as they print it: to be shown beside what is exact, never in its place."""

import math

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.parameter import ParameterError, check_probability


def printed_multi_value_leakage(*, sampling: float, blanks: ArrayLike) -> float:
    """Return max ln((π_v + π_s)/π_v) over the cells: SP eq 29, for round two alone.

    It leaves out the dummy 0, which a device outside every cell answers with π_0 + π_s, and whoever links
    a device's two reports.

    Parameters
    ----------
    sampling : float
        π_s.
    blanks : (cells,) float64
        π_1…π_V.
    """
    sampling = check_probability("sampling", sampling, above_zero=True)
    values = np.asarray(blanks, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not (values >= 0).all():
        raise ParameterError("blanks", "must hold π_1…π_V, none negative", values.tolist())
    return _log_ratio(float(values.min()) + sampling, float(values.min()))


def printed_binary_leakage(*, sampling: float, blank_zero: float) -> float:
    """Return max(ln((π_0 + π_s)/π_0), ln((1 − π_0)/(1 − π_0 − π_s))): SP eqs 18-25, for round two and one question.

    Asked about every cell, the two add up.

    Parameters
    ----------
    sampling, blank_zero : float
        π_s and π_0.
    """
    sampling = check_probability("sampling", sampling, above_zero=True)
    blank_zero = check_probability("blank_zero", blank_zero)
    blank_one = max(0.0, 1.0 - blank_zero - sampling)
    return max(_log_ratio(blank_zero + sampling, blank_zero), _log_ratio(1.0 - blank_zero, blank_one))


def printed_randomized_response_leakage(*, first_coin: float, second_coin: float) -> float:
    """Return ln((π_1 + (1 − π_1)π_2)/((1 − π_1)π_2)): SP eq 30, the answer Yes to one question.

    It leaves out the answer No, and that every cell is asked about.

    Parameters
    ----------
    first_coin, second_coin : float
        π_1, that the truth is told; π_2, that Yes is said otherwise.
    """
    first_coin = check_probability("first_coin", first_coin, above_zero=True)
    false_yes = (1.0 - first_coin) * check_probability("second_coin", second_coin)
    return _log_ratio(first_coin + false_yes, false_yes)


def _log_ratio(more: float, less: float) -> float:
    """Return ln(more/less), infinite where less is 0."""
    return math.log(more / less) if less > 0.0 else math.inf
