"""Linear equations over fractions, solved exactly or proved to contradict each other."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

Row: TypeAlias = Sequence[Fraction]
ZERO = Fraction(0)
ONE = Fraction(1)


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Why A·x = b has no solution: weights y of the equations with yᵀA = 0 and yᵀb = 1.

    Parameters
    ----------
    weights : (equations,) of Fraction
    """

    weights: tuple[Fraction, ...]


def solve(rows: Sequence[Row], right: Row) -> tuple[Fraction, ...] | Contradiction:
    """Return one x with A·x = b, or the contradiction, by Gauss-Jordan elimination without rounding.

    Columns that depend on earlier ones get 0: of several solutions, the one that uses the first unknowns.

    Parameters
    ----------
    rows : (equations, unknowns) of Fraction
        A, at least one equation.
    right : (equations,) of Fraction
        b.
    """
    unknowns, equations = len(rows[0]), len(rows)
    # Behind b, the identity: what is done to it says how each row came out of the equations.
    table = [
        [*row, b, *(ONE if i == j else ZERO for j in range(equations))]
        for i, (row, b) in enumerate(zip(rows, right, strict=True))
    ]
    pivots: list[int] = []
    for column in range(unknowns):
        found = next((i for i in range(len(pivots), equations) if table[i][column]), None)
        if found is None:
            continue
        place = len(pivots)
        table[place], table[found] = table[found], table[place]
        scale = table[place][column]
        table[place] = [value / scale if value else ZERO for value in table[place]]
        for i, row in enumerate(table):
            factor = row[column]
            if i != place and factor:
                table[i] = [a - factor * b if b else a for a, b in zip(row, table[place], strict=True)]
        pivots.append(column)
    for row in table[len(pivots) :]:
        if row[unknowns]:
            return Contradiction(tuple(weight / row[unknowns] for weight in row[unknowns + 1 :]))
    solution = [ZERO] * unknowns
    for row, column in zip(table, pivots, strict=False):
        solution[column] = row[unknowns]
    return tuple(solution)
