"""Tables of the protocols of the papers on Sampling Privacy and Anonymized Local Privacy, and of other mechanisms."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from mechanisms.algebra.protocol import Face, Number, Protocol, exact_probability
from mechanisms.parameter import ParameterError, check_integer

NO, YES = "no", "yes"
SILENT = "∅"


def toy_one(*, sampling: Number) -> Protocol:
    """Return the protocol that answers 1 with π_s and nothing otherwise, for any truth (SP sec 3.2, eq 1).

    The paper states that nothing can be estimated, because there is one equation with two unknowns. The table shows
    more: both kinds have the same distribution, so no further count would help, not even N.
    """
    sampled = exact_probability("sampling", sampling)
    law = {"1": sampled, SILENT: 1 - sampled}
    return Protocol.from_laws("toy 1", {NO: law, YES: law}, outputs=[("1", SILENT)])


def toy_two(*, sampling: Number, first_coin: Number, second_coin: Number) -> Protocol:
    """Return two-coin randomized response after sampling (SP sec 3.3, eqs 2-5).

    A device answers with probability π_s: the truth if its first coin shows heads, else the result of the second coin.
    """
    sampled = exact_probability("sampling", sampling, above_zero=True)
    return _sampled_coins("toy 2", sampled, sampled, first_coin, second_coin, silent=SILENT)


def randomized_response(*, first_coin: Number, second_coin: Number) -> Protocol:
    """Return the protocol of two coins: heads on the first, the truth; else the second coin (SP sec 3.3, π_s = 1)."""
    first, second = exact_probability("first_coin", first_coin), exact_probability("second_coin", second_coin)
    faces = [
        Face(first, {NO: "0", YES: "1"}),
        Face((1 - first) * second, {NO: "1", YES: "1"}),
        Face((1 - first) * (1 - second), {NO: "0", YES: "0"}),
    ]
    return Protocol.from_faces("randomized response", faces, outputs=[("0", "1")])


def warner(*, truthful: Number) -> Protocol:
    """Return the protocol that answers the truth with this probability, its opposite otherwise (Warner 1965)."""
    honest = exact_probability("truthful", truthful)
    faces = [Face(honest, {NO: "0", YES: "1"}), Face(1 - honest, {NO: "1", YES: "0"})]
    return Protocol.from_faces("Warner's randomized response", faces, outputs=[("0", "1")])


def binary_sampling_privacy(*, sampling: Number, blank_zero: Number | None = None) -> Protocol:
    """Return Sampling Privacy about one cell, in two rounds with kinds "no" and "yes" (SP eqs 6-11).

    Round one: S → 0, 0 → 0, 1 → 1. Round two: S → the truth; a device that is not sampled repeats its answer.

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
    """Return Sampling Privacy about all cells, in two rounds with kinds "outside", "cell 1", … (SP eqs 12-16).

    Round one: S → 0, v → v. Round two: S → the true cell, and an unsampled device repeats its blank, or, with
    probability ρ, draws it anew: v with π_v/(1 − π_s). This refresh is not in the paper.

    Parameters
    ----------
    cells : int
        V; it must be small, because the linked table has (V + 1)² entries with refresh.
    sampling : number
        π_s, in (0, 1].
    blank_zero : number, optional
        π_0.
    blank : number or (cells,) sequence, optional
        π_v. If neither is given, all blanks are equal; if only one is given, the other gets the remaining probability.
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


APART = "⊥"
ONE, TWO, THREE = "⊥1", "⊥2", "⊥3"


def sampling_and_noise(
    *, sampling: Number, sampling_no: Number | None = None, says: Literal["noise", "value"] = "noise"
) -> Protocol:
    """Return the protocol that answers with π_s, else ⊥: "value" as in ALP eq 2, or "noise" as in the paper's text.

    Parameters
    ----------
    sampling : number
        π_s of Yes-holders.
    sampling_no : number, optional
        π_s of No-holders; the same by default, which for "noise" is `toy_one`.
    says : {"noise", "value"}
        Whether a sampled No-holder answers Yes ("noise") or No ("value").
    """
    yes = exact_probability("sampling", sampling)
    no = yes if sampling_no is None else exact_probability("sampling_no", sampling_no)
    if says not in ("noise", "value"):
        raise ParameterError("says", "must be 'noise' or 'value'", says)
    laws = {NO: {"1" if says == "noise" else "0": no, APART: 1 - no}, YES: {"1": yes, APART: 1 - yes}}
    return Protocol.from_laws("sampling and noise", laws, outputs=[("0", "1", APART)])


def plausible_deniability(
    *, sampling: Number, first_coin: Number, second_coin: Number, sampling_no: Number | None = None
) -> Protocol:
    """Return two-coin randomized response with a sampling rate per kind (ALP eqs 3-4): `toy_two` for equal rates."""
    yes = exact_probability("sampling", sampling)
    no = yes if sampling_no is None else exact_probability("sampling_no", sampling_no)
    return _sampled_coins("plausible deniability", yes, no, first_coin, second_coin, silent=APART)


def _sampled_coins(
    name: str, yes: Fraction, no: Fraction, first_coin: Number, second_coin: Number, *, silent: str
) -> Protocol:
    """Return two-coin randomized response of a share of each kind of holder; the others answer `silent`."""
    first, second = exact_probability("first_coin", first_coin), exact_probability("second_coin", second_coin)
    false_yes = (1 - first) * second
    laws = {
        kind: {"0": rate * (1 - says_yes), "1": rate * says_yes, silent: 1 - rate}
        for kind, rate, says_yes in ((NO, no, false_yes), (YES, yes, first + false_yes))
    }
    return Protocol.from_laws(name, laws, outputs=[("0", "1", silent)])


def anonymized_local(
    *,
    sampling_yes_one: Number,
    sampling_yes_two: Number,
    sampling_no: Number,
    first_coin: Number,
    second_coin: Number,
    third_coin: Number,
) -> Protocol:
    """Return the paper's mechanism: Yes, No or ⊥, with rates and coins for each kind (ALP eqs 6-7).

    Parameters
    ----------
    sampling_yes_one, sampling_yes_two : number
        π_Y1 and π_Y2, the shares of Yes-holders that answer by the first and by the second coin; their sum is at most
        1.
    sampling_no : number
        π_No, the share of No-holders that answers, by the third coin.
    first_coin, second_coin, third_coin : number
        π_1, π_2 and π_3, the coins' probabilities of Yes.
    """
    one = exact_probability("sampling_yes_one", sampling_yes_one)
    two = exact_probability("sampling_yes_two", sampling_yes_two)
    if one + two > 1:
        raise ParameterError("sampling_yes_two", f"must be at most 1 − sampling_yes_one = {1 - one}", sampling_yes_two)
    no, third = exact_probability("sampling_no", sampling_no), exact_probability("third_coin", third_coin)
    yes = one * exact_probability("first_coin", first_coin) + two * exact_probability("second_coin", second_coin)
    laws = {
        NO: {"0": no * (1 - third), "1": no * third, APART: 1 - no},
        YES: {"0": one + two - yes, "1": yes, APART: 1 - one - two},
    }
    return Protocol.from_laws("anonymized local privacy", laws, outputs=[("0", "1", APART)])


def anonymized_first_attempt(*, base: Number, shift_yes: Number, shift_no: Number) -> Protocol:
    """Return the protocol of two answers over two outputs whose noise does not cancel yet (ALP sec VI, eqs 28-31).

    Both answers use one uniform draw, with the probabilities in the order of the equations: ⊥1 in A if it is below
    π_⊥1 + π_k, and ⊥1 in B if it is below π_⊥1 − π_k, for π_k = π_Y or π_N.

    Parameters
    ----------
    base : number
        π_⊥1.
    shift_yes, shift_no : number
        π_Y and π_N, at most π_⊥1 and 1 − π_⊥1.
    """
    middle = exact_probability("base", base)
    laws: dict[str, dict[tuple[str, ...], Number]] = {}
    for kind, field, given in ((NO, "shift_no", shift_no), (YES, "shift_yes", shift_yes)):
        share = exact_probability(field, given)
        if share > min(middle, 1 - middle):
            raise ParameterError(field, f"must be at most {min(middle, 1 - middle)}", given)
        laws[kind] = {(ONE, ONE): middle - share, (ONE, TWO): 2 * share, (TWO, TWO): 1 - middle - share}
    return Protocol.from_laws("first attempt", laws, outputs=[(ONE, TWO), (ONE, TWO)])


def anonymized_cancelling(*, shift: Number, stay: Sequence[Number] | None = None) -> Protocol:
    """Return the protocol of two answers over three outputs whose noise cancels (ALP sec VII).

    Shifted Yes-holders answer ⊥1 and then ⊥3, shifted No-holders ⊥2 and then ⊥3. This is the reading of eqs 36-39
    under which eqs 40-45 hold; rows sum to 1 only if π_Y = π_N, the `shift`.

    Parameters
    ----------
    shift : number
        π_Y = π_N.
    stay : (3,) sequence of number, optional
        π_⊥1, π_⊥2, π_⊥3, the probabilities of the answer that the others give both times; equal by default.
    """
    moved = exact_probability("shift", shift)
    shares = zip((ONE, TWO, THREE), _stay(moved, stay), strict=True)
    faces = [Face(p, dict.fromkeys((NO, YES), (o, o))) for o, p in shares]
    faces.append(Face(moved, {NO: (TWO, THREE), YES: (ONE, THREE)}))
    return Protocol.from_faces("cancelling the noise", faces, outputs=[(ONE, TWO, THREE)] * 2)


def anonymized_deniable(
    *,
    shift: Number,
    yes_second: Number,
    yes_third: Number,
    no_second: Number,
    no_third: Number,
    onward: Number,
    onward_yes: Number = 0,
    stay: Sequence[Number] | None = None,
) -> Protocol:
    """Return plausible deniability with three answers A, B, C over three outputs (ALP sec VII-B, in a fixed reading).

    A share s of all devices is shifted and answers ⊥1 in A. In B, shifted Yes-holders move to ⊥2 and ⊥3 with y₁ and
    y₂, shifted No-holders with n₁ and n₂. In C, a fraction c of the No-holders that moved to ⊥3 moves on to ⊥2. All
    other devices give the same answer three times.

    Parameters
    ----------
    shift : number
        s.
    yes_second, yes_third, no_second, no_third : number
        y₁, y₂, n₁, n₂, the probabilities of shifted devices.
    onward : number
        c.
    onward_yes : number
        The same fraction for Yes-holders, 0 in the paper. If it is positive, no answers come from No-holders only.
    stay : (3,) sequence of number, optional
        The probabilities of the unshifted devices' answers, summing to 1 − s; equal by default.
    """
    moved = exact_probability("shift", shift)
    moves = ((NO, no_second, no_third, onward, "onward"), (YES, yes_second, yes_third, onward_yes, "onward_yes"))
    laws: dict[str, dict[tuple[str, ...], Number]] = {}
    for kind, second, third, further, field in moves:
        on = exact_probability(field, further)
        to_two, to_three = exact_probability(f"{kind}_second", second), exact_probability(f"{kind}_third", third)
        if to_two + to_three > 1:
            raise ParameterError(f"{kind}_third", f"must be at most 1 − {kind}_second = {1 - to_two}", third)
        still, *others = _stay(moved, stay)
        laws[kind] = {
            (ONE, ONE, ONE): still + moved * (1 - to_two - to_three),
            **{(o, o, o): p for o, p in zip((TWO, THREE), others, strict=True)},
            (ONE, TWO, TWO): moved * to_two,
            (ONE, THREE, THREE): moved * to_three * (1 - on),
            (ONE, THREE, TWO): moved * to_three * on,
        }
    return Protocol.from_laws("three answers", laws, outputs=[(ONE, TWO, THREE)] * 3)


def _stay(moved: Fraction, stay: Sequence[Number] | None) -> tuple[Fraction, ...]:
    """Return the probabilities of the unshifted devices' answers, three numbers that sum to 1 − shift."""
    if stay is None:
        return ((1 - moved) / 3,) * 3
    shares = tuple(exact_probability("stay", share) for share in stay)
    if len(shares) != 3 or sum(shares) != 1 - moved:
        raise ParameterError("stay", f"must be three probabilities that sum to 1 − shift = {1 - moved}", tuple(stay))
    return shares
