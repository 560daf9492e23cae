"""The constructions of the Sampling Privacy paper, and what it compares with, as tables."""

from collections.abc import Sequence
from fractions import Fraction

from mechanisms.algebra.exact import Number, exact_probability
from mechanisms.algebra.protocol import Face, Protocol
from mechanisms.parameter import ParameterError, check_integer

NO, YES = "no", "yes"
SILENT = "∅"


def toy_one(*, sampling: Number) -> Protocol:
    """Answer 1 with π_s and nothing otherwise, whatever the truth (SP sec 3.2, eq 1).

    The paper's reason why it cannot be estimated is one equation with two unknowns. The table says more: both
    kinds have one law, so no further count would help, nor N.
    """
    sampled = exact_probability("sampling", sampling)
    law = {"1": sampled, SILENT: 1 - sampled}
    return Protocol.from_laws("toy 1", {NO: law, YES: law}, outputs=[("1", SILENT)])


def toy_two(*, sampling: Number, first_coin: Number, second_coin: Number) -> Protocol:
    """Answer with π_s: heads on the first coin the truth, else what the second coin says (SP sec 3.3, eqs 2-5)."""
    sampled = exact_probability("sampling", sampling, above_zero=True)
    first, second = exact_probability("first_coin", first_coin), exact_probability("second_coin", second_coin)
    faces = [
        Face(1 - sampled, {NO: SILENT, YES: SILENT}),
        Face(sampled * first, {NO: "0", YES: "1"}),
        Face(sampled * (1 - first) * second, {NO: "1", YES: "1"}),
        Face(sampled * (1 - first) * (1 - second), {NO: "0", YES: "0"}),
    ]
    return Protocol.from_faces("toy 2", faces, outputs=[("0", "1", SILENT)])


def randomized_response(*, first_coin: Number, second_coin: Number) -> Protocol:
    """Two coins: heads on the first, say the truth; else say what the second says (SP sec 3.3 with π_s = 1)."""
    first, second = exact_probability("first_coin", first_coin), exact_probability("second_coin", second_coin)
    faces = [
        Face(first, {NO: "0", YES: "1"}),
        Face((1 - first) * second, {NO: "1", YES: "1"}),
        Face((1 - first) * (1 - second), {NO: "0", YES: "0"}),
    ]
    return Protocol.from_faces("randomized response", faces, outputs=[("0", "1")])


def warner(*, truthful: Number) -> Protocol:
    """Say the truth with this probability, its opposite otherwise (Warner 1965)."""
    honest = exact_probability("truthful", truthful)
    faces = [Face(honest, {NO: "0", YES: "1"}), Face(1 - honest, {NO: "1", YES: "0"})]
    return Protocol.from_faces("Warner's randomized response", faces, outputs=[("0", "1")])


def binary_sampling_privacy(*, sampling: Number, blank_zero: Number | None = None) -> Protocol:
    """Two rounds about one cell, kinds "no" and "yes" (SP eqs 6-11): S → 0, 0 → 0, 1 → 1, then S → the truth.

    Parameters
    ----------
    sampling : number
        π_s, in (0, 1].
    blank_zero : number, optional
        π_0; (1 − π_s)/2 by default.
    """
    sampled = exact_probability("sampling", sampling, above_zero=True)
    zero = (1 - sampled) / 2 if blank_zero is None else exact_probability("blank_zero", blank_zero)
    if sampled + zero > 1:
        raise ParameterError("blank_zero", f"must be at most 1 − sampling = {1 - sampled}", blank_zero)
    faces = [
        Face(sampled, {NO: ("0", "0"), YES: ("0", "1")}),
        Face(zero, {NO: ("0", "0"), YES: ("0", "0")}),
        Face(1 - sampled - zero, {NO: ("1", "1"), YES: ("1", "1")}),
    ]
    return Protocol.from_faces("binary Sampling Privacy", faces, outputs=[("0", "1"), ("0", "1")])


def sampling_privacy(
    *,
    cells: int,
    sampling: Number,
    blank_zero: Number | None = None,
    blank: Number | Sequence[Number] | None = None,
    refresh: Number = 0,
) -> Protocol:
    """Two rounds about all cells (SP eqs 12-16), kinds "outside", "cell 1", …, with refresh ours.

    Round one: S → 0, v → v. Round two: S → the true cell, and an unsampled device repeats its blank, or, with
    probability ρ, throws it anew: v with π_v/(1 − π_s).

    Parameters
    ----------
    cells : int
        V, few: the linked table has (V + 1)² entries with refresh.
    sampling : number
        π_s, in (0, 1].
    blank_zero : number, optional
        π_0.
    blank : number or (cells,) sequence, optional
        π_v. Without either all blanks are equal; with one, the other takes what is left.
    refresh : number
        ρ, 0 by default: the paper's protocol.
    """
    check_integer("cells", cells, at_least=1)
    sampled = exact_probability("sampling", sampling, above_zero=True)
    again = exact_probability("refresh", refresh)
    blanks = _blanks(cells, 1 - sampled, blank_zero, blank)
    values = [str(v) for v in range(cells + 1)]
    kinds = ["outside", *(f"cell {v}" for v in values[1:])]
    faces = [Face(sampled, {kind: ("0", v) for kind, v in zip(kinds, values, strict=True)})]
    for v, p in zip(values, blanks, strict=True):
        faces.append(Face(p * (1 - again), dict.fromkeys(kinds, (v, v))))
        if again and p:
            left = 1 - sampled
            redrawn = zip(values, blanks, strict=True)
            faces += [Face(p * again * q / left, dict.fromkeys(kinds, (v, u))) for u, q in redrawn]
    name = "Sampling Privacy with refresh" if again else "Sampling Privacy"
    return Protocol.from_faces(name, faces, outputs=[values, values])


def _blanks(
    cells: int, left: Fraction, zero: Number | None, blank: Number | Sequence[Number] | None
) -> tuple[Fraction, ...]:
    """Return π_0…π_V, summing to `left` exactly."""
    if blank is None:
        first = left / (cells + 1) if zero is None else exact_probability("blank_zero", zero)
        if first > left:
            raise ParameterError("blank_zero", f"must be at most 1 − sampling = {left}", zero)
        return (first, *([(left - first) / cells] * cells))
    given = list(blank) if isinstance(blank, Sequence) and not isinstance(blank, str) else [blank] * cells
    if len(given) != cells:
        raise ParameterError("blank", f"must be a number, or {cells} of them", blank)
    values = [exact_probability("blank", value) for value in given]
    total = sum(values, Fraction(0))
    first = left - total if zero is None else exact_probability("blank_zero", zero)
    if first < 0 or first + total != left:
        raise ParameterError("blank", f"must, with blank_zero, sum to 1 − sampling = {left}", str(total))
    return (first, *values)
