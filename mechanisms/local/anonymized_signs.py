"""Lemma 7 of Anonymized Local Privacy: YES and σ from every combination of signs."""

from dataclasses import dataclass
from itertools import product
from typing import Literal, TypeAlias

import numpy as np

from mechanisms.local.anonymized_local import AnonymizedLocal
from mechanisms.local.parts.yes_no_silent import SILENT, YES
from mechanisms.parameter import ParameterError, check_integer

Sign: TypeAlias = Literal[-1, 1]
SIGNS: tuple[Sign, Sign] = (1, -1)
# A determinant this small, for probabilities of order one, is rounding.
SINGULAR = 1e-12


@dataclass(frozen=True, slots=True)
class SignSolution:
    """One solution (YES, σ) of eqs 25 and 26.

    Parameters
    ----------
    signs : tuple of int
        The sign of σ in eq 25 and in eq 26.
    yes : float
        YES.
    sigma : float
        σ, not negative.
    excess : float
        What eq 27 is missed by: its left side less DO. 0 where nobody said No; else the count of No, negative.
    """

    signs: tuple[Sign, Sign]
    yes: float
    sigma: float
    excess: float


@dataclass(frozen=True, slots=True)
class SignSolutions:
    """What Lemma 7's system comes to.

    Parameters
    ----------
    solutions : tuple of SignSolution
        Those with neither YES nor σ negative.
    dependent : tuple of tuple of int
        The signs with which the two equations are one, or contradict each other: they determine nothing.
    """

    solutions: tuple[SignSolution, ...]
    dependent: tuple[tuple[Sign, Sign], ...]


def solve_sign_combinations(mechanism: AnonymizedLocal, *, said_yes: int, silent: int, devices: int) -> SignSolutions:
    """Solve E["Yes"] ± σ = Observed("Yes") and E[⊥] ± σ = Observed(⊥) for YES and σ (ALP lemma 7, eqs 25-27).

    Each combination of signs makes eqs 25 and 26 two linear equations with two unknowns; eq 27, their sum set
    to DO, is no third equation where nobody says No, since then Observed("Yes") + Observed(⊥) = DO, and is
    false by the count of No where somebody does. Solutions with a negative YES are dropped, as the paper says,
    and those with a negative σ: they are those of the opposite signs written twice.

    What is found. One σ for both counts is the paper's observation that at π_1 = π_2 = π_3 = 1 the standard
    deviations are equal. They are, for "Yes" and ⊥. For "No" it is not so: nobody says No, σ("No") = 0, and the
    estimator of lemma 3 is 0/0. And exactly there the system gives nothing new: with equal signs the sum of the
    two equations is 2σ = 0, so YES is the estimate of lemma 1, and with opposite signs the equations are one.
    With other parameters each pair of signs has its solution and nothing tells which is right, so the σ found
    is no standard error: two estimates that differ by chance are made equal by a σ that fits. Use the best
    combination of the counts instead.

    Parameters
    ----------
    mechanism : AnonymizedLocal
        The parameters of eqs 6-7.
    said_yes, silent : int
        Observed("Yes") and Observed(⊥), for one cell.
    devices : int
        DO, at least 1.

    Returns
    -------
    SignSolutions

    Raises
    ------
    ParameterError
        If a count is negative, or the two exceed `devices`.
    """
    check_integer("devices", devices, at_least=1)
    check_integer("said_yes", said_yes, at_least=0)
    check_integer("silent", silent, at_least=0)
    if said_yes + silent > devices:
        raise ParameterError("silent", f"must be at most devices − said_yes = {devices - said_yes}", silent)
    yes, no = mechanism.question.in_round(1)
    slope = (yes - no)[[YES, SILENT]]
    seen = np.array([said_yes, silent], dtype=np.float64) - no[[YES, SILENT]] * devices
    solutions: dict[tuple[float, float], SignSolution] = {}
    dependent: list[tuple[Sign, Sign]] = []
    for signs in product(SIGNS, SIGNS):
        determinant = float(slope[0] * signs[1] - slope[1] * signs[0])
        if abs(determinant) <= SINGULAR:
            dependent.append(signs)
            continue
        count = float(signs[1] * seen[0] - signs[0] * seen[1]) / determinant
        sigma = float(slope[0] * seen[1] - slope[1] * seen[0]) / determinant
        # Solved to the last bits of N: what is left of 0 there is 0.
        if abs(sigma) <= SINGULAR * devices:
            sigma = 0.0
        if count >= 0.0 and sigma >= 0.0:
            excess = float(said_yes + silent - devices)
            solutions.setdefault((count, sigma), SignSolution(signs, count, sigma, excess))
    return SignSolutions(tuple(solutions.values()), tuple(dependent))
