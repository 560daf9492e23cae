"""alp-lemmas: lemmas 1-7 and definition 2, tested."""

import math
from typing import TYPE_CHECKING

import numpy as np

from simulator.reproduction.entry import Entry, Reproduction, Row

if TYPE_CHECKING:
    from mechanisms.local.common.binary_query_mechanism import Choice

YES, NO = 100, 9_900
ONE, TWO, SILENT_NO = 0.3, 0.1, 0.2


def reproduce(*, seed: int) -> Reproduction:  # noqa: ARG001 - nothing is drawn
    """Compute the standard deviations of the counts, the search of eq 5 and the system of lemma 7."""
    from mechanisms.local import (  # noqa: PLC0415
        AnonymizedLocal,
        NotEstimableError,
        minimal_variance_parameters,
        solve_sign_combinations,
    )

    def local(coin: float, estimator: "Choice" = "yes") -> AnonymizedLocal:
        return AnonymizedLocal(
            cells=1,
            sampling_yes_one=ONE,
            sampling_yes_two=TWO,
            sampling_no=SILENT_NO,
            first_coin=coin,
            second_coin=coin,
            third_coin=coin,
            estimator=estimator,
        )

    truth = np.array([NO, YES], dtype=np.int64)
    said_no, said_yes, silent = (float(value) for value in local(1.0).count_std_errors(truth)[:, 0])
    quote = (
        "“setting π_1 = π_2 = π_3 = 1 results in the standard deviation being equal for σ(“Yes”), σ(“No”), and σ(⊥)” "
        "(lemma 7)"
    )
    try:
        local(1.0, "no").std_error(truth)
        estimable = "an estimate"
    except NotEstimableError:
        estimable = "0/0"
    printed = minimal_variance_parameters(1.0, yes_share=YES / (YES + NO), objective="printed")
    says_yes = float(printed.mechanism.question.in_round(1)[0][1])
    useful = minimal_variance_parameters(1.0, yes_share=YES / (YES + NO))
    mixed = local(0.75)
    law_yes, law_no = mixed.question.in_round(1)
    expected = np.rint(YES * law_yes + NO * law_no).astype(int)
    # 20 more "Yes" than expected, as may happen by chance: the σ do not determine which sign is right.
    solutions = solve_sign_combinations(
        mixed, said_yes=int(expected[1]) + 20, silent=int(expected[2]) - 20, devices=YES + NO
    ).solutions
    plain = solve_sign_combinations(local(1.0), said_yes=2_020, silent=7_980, devices=YES + NO)
    rows = [
        Row("π = 1: σ(“Yes”) − σ(⊥)", 0, said_yes - silent, math.isclose(said_yes, silent), quote),
        Row(
            "π = 1: σ(“Yes”) − σ(“No”)",
            0,
            said_yes - said_no,
            math.isclose(said_yes, said_no),
            f"{quote}: nobody says No",
        ),
        Row(
            "π = 1: YES from the count of No (lemma 3)",
            "an estimate",
            estimable,
            estimable == "an estimate",
            "eq 16 divides by 0",
        ),
        Row(
            "what the count of Yes tells where eq 5 is least, ε = 1",
            "utility is maximized",
            "nothing: nobody says Yes" if says_yes == 0.0 else f"something: Yes with {says_yes:.3g}",
            says_yes > 0.0,
            f"“utility is maximized when” eq 5 is least (def 2), where it is {printed.variance:g}",
        ),
        Row(
            "least variance of the estimate, ε = 1: σ of 100 in 10,000",
            None,
            useful.std_error(YES + NO),
            None,
            "what definition 2 should ask for; Warner's randomized response attains it",
        ),
        Row(
            "lemma 7: solutions (YES, σ) that are not negative, π = ¾",
            1,
            len(solutions),
            len(solutions) == 1,
            "“it's not clear that we can immediately guarantee” one: YES = "
            + ", ".join(f"{solution.yes:.1f}" for solution in solutions)
            + f" for a truth of {YES}, and nothing tells which",
        ),
        Row(
            "lemma 7 at π = 1: σ that is found",
            None,
            plain.solutions[0].sigma,
            None,
            f"“Yes” and ⊥ sum to all asked, so σ = 0 and YES = {plain.solutions[0].yes:.1f} is lemma 1's estimate: "
            "nothing new",
        ),
    ]
    findings = [
        (
            f"The three standard deviations are not equal at π_1 = π_2 = π_3 = 1: σ(“Yes”) = σ(⊥) = {said_yes:.1f}, "
            "but nobody says No, so σ(“No”) = 0 and lemma 3's estimator is 0/0."
        ),
        (
            "Equation 5 is least where nobody ever says Yes: definition 2 chooses parameters that tell nothing. Its "
            "variance must be that of the estimate, the count's over (p − q)²."
        ),
        "Lemma 7's σ is no standard error: two estimates that differ by chance are made equal by whatever σ fits.",
        "Lemmas 3 and 4 head their formulas “Yes” where the count of No is meant, and eq 17 has σ(“Yes”) for σ(“No”).",
    ]
    return Reproduction(rows=rows, findings=findings)


ENTRY = Entry(
    "alp-lemmas", "ALP", "Lemmas 1-7 and definition 2: the standard deviations, eq 5, the system of signs", reproduce
)
