"""The constructions of the Anonymized Local Privacy paper as tables: kinds "no" and "yes"."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from mechanisms.algebra.exact import Number, exact_probability
from mechanisms.algebra.protocol import Face, Protocol
from mechanisms.algebra.sampling_protocols import NO, YES
from mechanisms.parameter import ParameterError

APART = "⊥"
ONE, TWO, THREE = "⊥1", "⊥2", "⊥3"


def sampling_and_noise(
    *, sampling: Number, sampling_no: Number | None = None, says: Literal["noise", "value"] = "noise"
) -> Protocol:
    """Say something with π_s, else ⊥ (ALP eq 2): "value", as the equation stands, or "noise", as the text does.

    Parameters
    ----------
    sampling : number
        π_s of Yes-holders.
    sampling_no : number, optional
        π_s of No-holders; the same by default, which for "noise" is SP's toy 1.
    says : {"noise", "value"}
        Whether a sampled No-holder says Yes, or No.
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
    """Two coins after sampling, a rate for each kind (ALP eqs 3-4): SP's toy 2 where the rates agree."""
    yes = exact_probability("sampling", sampling)
    no = yes if sampling_no is None else exact_probability("sampling_no", sampling_no)
    first, second = exact_probability("first_coin", first_coin), exact_probability("second_coin", second_coin)
    false_yes = (1 - first) * second
    true_yes = first + false_yes
    laws = {
        NO: {"0": no * (1 - false_yes), "1": no * false_yes, APART: 1 - no},
        YES: {"0": yes * (1 - true_yes), "1": yes * true_yes, APART: 1 - yes},
    }
    return Protocol.from_laws("plausible deniability", laws, outputs=[("0", "1", APART)])


def anonymized_local(
    *,
    sampling_yes_one: Number,
    sampling_yes_two: Number,
    sampling_no: Number,
    first_coin: Number,
    second_coin: Number,
    third_coin: Number,
) -> Protocol:
    """Answer Yes, No or ⊥, each kind with its own rates and coins: the paper's mechanism (ALP eqs 6-7).

    Parameters
    ----------
    sampling_yes_one, sampling_yes_two : number
        π_Y1 and π_Y2, the shares of Yes-holders that answer by the first and by the second coin; their sum at
        most 1.
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
    said = one * exact_probability("first_coin", first_coin) + two * exact_probability("second_coin", second_coin)
    laws = {
        NO: {"0": no * (1 - third), "1": no * third, APART: 1 - no},
        YES: {"0": one + two - said, "1": said, APART: 1 - one - two},
    }
    return Protocol.from_laws("anonymized local privacy", laws, outputs=[("0", "1", APART)])


def anonymized_first_attempt(*, base: Number, shift_yes: Number, shift_no: Number) -> Protocol:
    """Two answers over two outputs, the noise not yet cancelled (ALP sec VI, eqs 28-31).

    One die for both answers, its faces laid side by side as the equations list them: ⊥1 in A below π_⊥1 + π_k,
    ⊥1 in B below π_⊥1 − π_k, for π_k = π_Y or π_N.

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
    """Two answers over three outputs: shifted Yes-holders go ⊥1 → ⊥3, shifted No-holders ⊥2 → ⊥3 (ALP sec VII).

    The reading of eqs 36-39 under which 40-45 hold; rows sum to one only if π_Y = π_N, the `shift`.

    Parameters
    ----------
    shift : number
        π_Y = π_N.
    stay : (3,) sequence of number, optional
        π_⊥1, π_⊥2, π_⊥3, what the others answer both times; equal by default.
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
    """Plausible deniability with three answers A, B, C over three outputs (ALP sec VII-B, in a fixed reading).

    A share s of everybody is shifted and answers ⊥1 in A. In B shifted Yes-holders move to ⊥2 and ⊥3 with y₁
    and y₂, shifted No-holders with n₁ and n₂. In C a fraction c of the No-holders moved to ⊥3 moves on to ⊥2.
    Everybody else answers the same three times.

    Parameters
    ----------
    shift : number
        s.
    yes_second, yes_third, no_second, no_third : number
        y₁, y₂, n₁, n₂: of the shifted.
    onward : number
        c.
    onward_yes : number
        The same fraction of Yes-holders, 0 in the paper: above it, no answer is a No-holder's alone.
    stay : (3,) sequence of number, optional
        What the unshifted answer; equal by default.
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
    """Return what the devices that are not shifted answer, three probabilities summing to 1 − shift."""
    if stay is None:
        return ((1 - moved) / 3,) * 3
    shares = tuple(exact_probability("stay", share) for share in stay)
    if len(shares) != 3 or sum(shares) != 1 - moved:
        raise ParameterError("stay", f"must be three probabilities that sum to 1 − shift = {1 - moved}", tuple(stay))
    return shares
