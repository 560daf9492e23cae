"""Tables of the protocols of the papers on Sampling Privacy and Anonymized Local Privacy, and of Warner's.

The mechanisms of `mechanisms.local` that ask a yes/no question about each cell are these tables, and their fields are
the parameters. A table is exact: it takes a float as the decimal that it was written as, and a third as ``"1/3"``. Its
`in_floats` computes with floats, as the mechanisms do.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import update_wrapper
from typing import Generic, Literal, ParamSpec, TypeAlias, get_args

from mechanisms.parameter import ParameterError, check_chance, check_choice, check_integer
from mechanisms.protocols.protocol import ROUNDING, Face, Number, Protocol, Real, exact, exact_probability, total

NO, YES = "no", "yes"
TWICE = ("0", "1")
SILENT = ("0", "1", "⊥")
TWO, THREE = ("⊥1", "⊥2"), ("⊥1", "⊥2", "⊥3")
Law: TypeAlias = Mapping[str, Real]
Reading = Literal["noise", "value"]
P = ParamSpec("P")


class ProtocolTable(Generic[P]):
    """A function from parameters to an exact protocol, with the float numbers among them read as decimals.

    Parameters
    ----------
    in_floats : callable
        The same function where a float stays one.
    """

    def __init__(self, in_floats: Callable[P, Protocol]) -> None:
        self.in_floats = in_floats
        update_wrapper(self, in_floats)

    def __call__(self, *args: P.args, **parameters: P.kwargs) -> Protocol:
        """Return the exact protocol."""
        read = {field: _read(field, value) for field, value in parameters.items()}
        return self.in_floats(*args, **read)  # type: ignore[arg-type]


def _read(field: str, value: object) -> object:
    """Return a parameter with its floats as fractions."""
    if isinstance(value, list | tuple):
        return tuple(_read(field, each) for each in value)
    return exact(field, value) if isinstance(value, float) else value


def chance(field: str, value: Number, *, above_zero: bool = False) -> Real:
    """Return a parameter: 0 (unless `above_zero`), or 1e-20…1; reject NaN. Only a float stays one."""
    if isinstance(value, str | Fraction) or type(value) is int:
        return exact_probability(field, value, above_zero=above_zero)
    return check_chance(field, value, above_zero=above_zero)


def remainder(field: str, value: Number, *shares: Real) -> Real:
    """Return 1 minus the sum of the shares, or 0 if the result is only a rounding error, up to 1e-9.

    Raises
    ------
    ParameterError
        Naming `field` and its `value`, the last share, if the shares sum to more than 1.
    """
    left = 1 - total(*shares)
    if left < -ROUNDING:
        rule = f"must be at most {float(left + shares[-1]):g}, 1 minus the sum of the others"
        raise ParameterError(field, rule, value)
    return left if left > ROUNDING else 0


def stay_shares(shift: Real, stay: Sequence[Number] | None) -> tuple[Real, ...]:
    """Return π_⊥1, π_⊥2 and π_⊥3, which sum to 1 − shift: the given ones, or equal ones by default.

    Raises
    ------
    ParameterError
        If they are not three probabilities, or do not sum to 1 − shift within 1e-9.
    """
    if stay is None:
        return ((1 - shift) / 3,) * 3
    if not isinstance(stay, list | tuple) or len(stay) != 3:
        raise ParameterError("stay", "must be three probabilities", stay)
    shares = tuple(chance("stay", share) for share in stay)
    if abs(total(*shares) - (1 - shift)) > ROUNDING:
        raise ParameterError("stay", f"must sum to 1 − shift = {float(1 - shift):g}", tuple(stay))
    return shares


def _table(name: str, outputs: tuple[str, ...], *, no: Law, yes: Law) -> Protocol:
    """Return the protocol of No-holders and Yes-holders; an answer is spelled by the last letters of its outputs.

    Probabilities that sum to 1 up to rounding errors are divided by their sum.
    """
    spelled = {output[-1]: output for output in outputs}
    given = {
        kind: {tuple(spelled[letter] for letter in answers): p for answers, p in law.items() if p}
        for kind, law in ((NO, no), (YES, yes))
    }
    if all(isinstance(p, Fraction) for law in given.values() for p in law.values()):
        for kind, law in given.items():
            whole = total(*law.values())
            if 1 - ROUNDING <= whole <= 1 + ROUNDING:
                given[kind] = {answers: p / whole for answers, p in law.items()}
    else:
        given = {kind: {answers: float(p) for answers, p in law.items()} for kind, law in given.items()}
    return Protocol(name, (outputs,) * len(next(iter(no))), given)


@ProtocolTable
def warner(*, truthful: Number) -> Protocol:
    """Return the protocol that answers the truth with probability `truthful`, its opposite otherwise (Warner 1965)."""
    p = chance("truthful", truthful)
    return _table("Warner's randomized response", TWICE, no={"0": p, "1": 1 - p}, yes={"0": 1 - p, "1": p})


@ProtocolTable
def randomized_response(*, first_coin: Number, second_coin: Number) -> Protocol:
    """Return the protocol of two coins: heads on the first, the truth; else the second coin (SP sec 3.3, π_s = 1)."""
    first, second = chance("first_coin", first_coin, above_zero=True), chance("second_coin", second_coin)
    return _table("randomized response", TWICE, **_coins(first, second))


def _coins(first: Real, second: Real) -> dict[str, Law]:
    """Return the answers of each kind of holder, so that an impossible one has probability 0 in floats too."""
    false_yes, false_no = (1 - first) * second, (1 - first) * (1 - second)
    return {NO: {"0": first + false_no, "1": false_yes}, YES: {"0": false_no, "1": 1 - false_no}}


@ProtocolTable
def sampled_response(
    *, sampling: Number, first_coin: Number, second_coin: Number, sampling_no: Number | None = None
) -> Protocol:
    """Return two-coin randomized response of a share of the devices; the others answer ⊥.

    With one share π_s this is SP's toy 2 (sec 3.3, eqs 2-5). With a share for each kind of holder it is ALP's plausible
    deniability (eqs 3-4).
    """
    first, second = chance("first_coin", first_coin, above_zero=True), chance("second_coin", second_coin)
    rates = _rates(sampling, sampling_no)
    laws = {
        kind: {**{answer: rates[kind] * p for answer, p in law.items()}, "⊥": 1 - rates[kind]}
        for kind, law in _coins(first, second).items()
    }
    return _table("sampled response", SILENT, **laws)


@ProtocolTable
def sampling_and_noise(*, sampling: Number, sampling_no: Number | None = None, says: Reading = "noise") -> Protocol:
    """Return the protocol that answers with π_s, else ⊥: "value" as in ALP eq 2, or "noise" as in the paper's text.

    In "noise" a sampled No-holder answers Yes, in "value" No. "noise" with one π_s for all is SP's toy 1 (sec 3.2, eq
    1). The paper states that nothing can be estimated from it, because there is one equation with two unknowns. The
    table shows more: both kinds have the same distribution, so no further count would help, not even N.

    Parameters
    ----------
    sampling : number
        π_s of Yes-holders, above 0.
    sampling_no : number, optional
        π_s of No-holders; the same by default.
    says : {"noise", "value"}
    """
    check_choice("says", says, get_args(Reading))
    rates = _rates(sampling, sampling_no)
    no, yes = rates[NO], rates[YES]
    stated = "1" if says == "noise" else "0"
    return _table("sampling and noise", SILENT, no={stated: no, "⊥": 1 - no}, yes={"1": yes, "⊥": 1 - yes})


def _rates(sampling: Number, sampling_no: Number | None) -> dict[str, Real]:
    """Return π_sNo and π_sYes; by default they are equal."""
    yes = chance("sampling", sampling, above_zero=True)
    return {NO: yes if sampling_no is None else chance("sampling_no", sampling_no), YES: yes}


@ProtocolTable
def binary_sampling_privacy(*, sampling: Number, blank_zero: Number | None = None) -> Protocol:
    """Return Sampling Privacy about one cell, in two rounds (SP eqs 6-11).

    Round one: S → 0, 0 → 0, 1 → 1. Round two: S → the truth; a device that is not sampled repeats its answer.

    Parameters
    ----------
    sampling : number
        π_s, in (0, 1].
    blank_zero : number, optional
        π_0; (1 − π_s)/2 by default.
    """
    sampled = chance("sampling", sampling, above_zero=True)
    zero: Real = (1 - sampled) / 2 if blank_zero is None else chance("blank_zero", blank_zero)
    if sampled + zero > 1 + ROUNDING:
        raise ParameterError("blank_zero", f"must be at most 1 − sampling = {float(1 - sampled):g}", blank_zero)
    zero = min(zero, 1 - sampled)
    one: Real = 1 - zero - sampled
    # Rounding may leave a tiny probability for an impossible outcome: a claim must not depend on it.
    if one <= 1e-15:
        zero, one = 1 - sampled, Fraction(0)
    yes = {"00": zero, "01": sampled, "11": one}
    return _table("binary Sampling Privacy", TWICE, no={"00": zero + sampled, "11": one}, yes=yes)


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


@ProtocolTable
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
    one, two = chance("sampling_yes_one", sampling_yes_one), chance("sampling_yes_two", sampling_yes_two)
    no, third = chance("sampling_no", sampling_no), chance("third_coin", third_coin)
    first, second = chance("first_coin", first_coin), chance("second_coin", second_coin)
    silent = remainder("sampling_yes_two", sampling_yes_two, one, two)
    return _table(
        "anonymized local privacy",
        SILENT,
        no={"0": no * (1 - third), "1": no * third, "⊥": 1 - no},
        yes={"0": one * (1 - first) + two * (1 - second), "1": one * first + two * second, "⊥": silent},
    )


@ProtocolTable
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
    middle = chance("base", base)

    def moved(field: str, given: Number) -> Law:
        share = chance(field, given)
        if share > middle:
            raise ParameterError(field, f"must be at most base = {float(middle):g}", given)
        return {"11": middle - share, "12": 2 * share, "22": remainder(field, given, middle, share)}

    return _table("first attempt", TWO, yes=moved("shift_yes", shift_yes), no=moved("shift_no", shift_no))


@ProtocolTable
def anonymized_cancelling(*, shift: Number, stay: Sequence[Number] | None = None) -> Protocol:
    """Return the protocol of two answers over three outputs whose noise cancels (ALP sec VII).

    Shifted Yes-holders answer ⊥1 and then ⊥3, shifted No-holders ⊥2 and then ⊥3. This is the reading of eqs 36-39
    under which eqs 40-45 hold; rows sum to 1 only if π_Y = π_N, the `shift`.

    Parameters
    ----------
    shift : number
        π_Y = π_N, in (0, 1].
    stay : (3,) sequence of number, optional
        π_⊥1, π_⊥2, π_⊥3, the probabilities of the answer that the others give both times; equal by default.
    """
    moved = chance("shift", shift, above_zero=True)
    staying = dict(zip(("11", "22", "33"), stay_shares(moved, stay), strict=True))
    return _table("cancelling the noise", THREE, no={**staying, "23": moved}, yes={**staying, "13": moved})


@ProtocolTable
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
        s, in (0, 1].
    yes_second, yes_third, no_second, no_third : number
        y₁, y₂, n₁, n₂, the probabilities of shifted devices.
    onward : number
        c.
    onward_yes : number
        The same fraction for Yes-holders, 0 in the paper. If it is positive, no answers come from No-holders only.
    stay : (3,) sequence of number, optional
        The probabilities of the unshifted devices' answers, summing to 1 − s; equal by default.
    """
    moved = chance("shift", shift, above_zero=True)
    given = {"yes_second": yes_second, "yes_third": yes_third, "no_second": no_second, "no_third": no_third}
    to = {field: chance(field, value) for field, value in given.items()}
    on = {NO: chance("onward", onward), YES: chance("onward_yes", onward_yes)}
    one, two, three = stay_shares(moved, stay)

    def moves(kind: str) -> Law:
        second, third = to[f"{kind}_second"], to[f"{kind}_third"]
        still = remainder(f"{kind}_third", given[f"{kind}_third"], second, third)
        return {
            "111": one + moved * still,
            "222": two,
            "333": three,
            "122": moved * second,
            "133": moved * third * (1 - on[kind]),
            "132": moved * third * on[kind],
        }

    return _table("three answers", THREE, yes=moves(YES), no=moves(NO))
