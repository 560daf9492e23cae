import math
from typing import Any

import pandas as pd
import pytest
from synthetic_run import claim

from mechanisms.privacy.claim import Claim, Reason
from simulator.files.messages import warning
from simulator.results.claims import by_crowd, claims_in, worth_reading
from simulator.results.statements import one_line, say, sentence

UNKNOWN = {"mechanism": "m", "view": "released_counts", "queries": 1, "crowd": 10, "k": None, "colluding": None,
           "servers": None, "epsilon": math.nan, "delta": math.nan, "kind": "unknown", "basis": ""}  # fmt: skip


def gathered(*rows: list[dict[str, Any]], rounds: int = 2) -> list[Claim]:
    return claims_in(pd.DataFrame([row for group in rows for row in group]), {"m": rounds})


def only(view: str, epsilon: float, kind: str, deltas: list[float], rounds: int = 2, **parameters: Any) -> Claim:
    (found,) = gathered(claim("m", view, epsilon, kind, deltas, basis="why", **parameters), rounds=rounds)
    return found


def test_rows_of_a_view_become_one_claim() -> None:
    found = only("released_differences", math.inf, "infinite", [0.2, 0.1, 0.01, 0.001], crowd=5)
    assert (found.crowd, found.epsilon, found.kind, found.delta_kind, found.basis) == (
        5,
        math.inf,
        "infinite",
        "exact",
        "why",
    )
    assert found.points == ((0.5, 0.2), (1.0, 0.1), (2.0, 0.01), (4.0, 0.001))


def test_row_of_delta_zero_is_found_in_any_order() -> None:
    rows = claim("m", "report_round_1", 1.5, "exact", [0.4, 0.2, 0.0, 0.0], basis="")
    (found,) = gathered(rows[::-1])
    assert found.epsilon == 1.5
    assert found.points == ((0.5, 0.4), (1.0, 0.2), (2.0, 0.0), (4.0, 0.0))


@pytest.mark.parametrize(
    ("view", "epsilon", "kind", "deltas", "parameters", "words"),
    [
        (
            "report_round_1", 0.0, "exact", [0.0] * 4, {},
            ("A server that receives only the first answer of a device learns nothing about where the device is: "
            "the observation is equally likely wherever it is."),
        ),
        (
            "report_round_2", math.log(3.2), "exact", [0.1], {},
            ("A server that receives only the second answer of a device can shift the odds between any two places "
            "where the device might be at most 3.20-fold (ε = 1.17)."),
        ),
        ("report_round_2", 1.0, "bound", [0.1], {}, "(ε = 1); the truth may be better."),
        ("report_round_2", 9.0, "exact", [0.1], {}, "8,104-fold, which is hardly a limit (ε = 9)."),
        (
            "linked_reports", math.inf, "infinite", [0.45] * 4, {},
            ("Two servers that link the two answers of a device learn the device’s exact cell with probability "
            "45 %; no ε changes that (δ = 0.45 at every ε)."),
        ),
        (
            "report_round_1", math.inf, "infinite", [1.0] * 4, {"rounds": 1},
            ("A server that receives a device’s answer learns where the device is, for certain. There is no protection "
             "here."),
        ),
        (
            "released_differences", math.inf, "infinite", [0.02, 0.0027, 3.4e-4, 3.4e-4], {"crowd": 10},
            ("Any reader of the published estimates, if 10 devices, including this one, are in its cell, can "
            "shift the odds between any two places where the device might be at most 2.72-fold (ε = 1) except with "
            "probability 0.27 %; no ε holds always."),
        ),
    ],
)  # fmt: skip
def test_sentence_of_a_claim(
    view: str, epsilon: float, kind: str, deltas: list[float], parameters: dict[str, Any], words: str
) -> None:
    assert sentence(only(view, epsilon, kind, deltas, **parameters)).endswith(words)


def test_sentence_of_a_crowd_of_one() -> None:
    alone = sentence(only("released_differences", math.inf, "infinite", [0.45] * 4, crowd=1))
    assert (
        "if the device is alone in its cell, learns for certain that the device was there with probability 45 %"
        in alone
    )


def test_unknown_claim_is_not_infinite() -> None:
    (found,) = gathered([UNKNOWN])
    assert (found.epsilon, found.kind, found.points) == (math.inf, "unknown", ())
    text = sentence(found)
    assert "may learn anything: no limit is proved" in text
    assert "certain" not in text


def test_infinite_claim_with_bounded_delta_says_at_most() -> None:
    rows = claim("m", "linked_reports", math.inf, "infinite", [0.3] * 4, basis="")
    for row in rows[1:]:
        row["kind"] = "bound"
    (found,) = gathered(rows)
    assert "with probability at most 30 %" in sentence(found)
    assert one_line([found]) == "linked reports: δ ≤ 0.3 at every ε"


@pytest.mark.parametrize(
    ("view", "parameters", "rounds", "subject"),
    [
        ("linked_reports", {}, 3, "Three servers that link the three answers of a device"),
        ("linked_reports", {}, 1, "An observer that knows which device sent an answer"),
        ("shuffled_round_1", {"crowd": 1000}, 2,
         "A server that receives round 1’s answers shuffled among 1,000 devices"),
        ("shares", {"colluding": 2, "servers": 3}, 2, "2 of the 3 servers that combine their shares"),
        ("released_counts", {"crowd": 1, "k": 20}, 2,
         ("Any reader of the published counts of every round, if the device is alone in its cell, where counts below "
          "20")),
        ("report_round_2", {"queries": 10}, 2,
         "A server that receives only the second answer of a device, over 10 queries"),
        ("some_later_view", {}, 2, "Some later view"),
    ],
)  # fmt: skip
def test_sentence_names_every_observer(view: str, parameters: dict[str, Any], rounds: int, subject: str) -> None:
    assert sentence(only(view, 1.0, "exact", [0.0], rounds, **parameters)).startswith(subject)


def test_one_line() -> None:
    claims = gathered(
        claim("m", "report_round_1", 0.0, "exact", [0.0] * 4, basis=""),
        claim("m", "report_round_2", 3.2, "exact", [0.1] * 4, basis=""),
        claim("m", "linked_reports", math.inf, "infinite", [0.45] * 4, basis=""),
    )
    assert one_line(claims) == "answer 2 alone: ε = 3.2 (exact); linked reports: δ = 0.45 at every ε"
    assert one_line([only("report_round_2", 3.2, "exact", [0.1] * 4, rounds=1)]) == "its answer: ε = 3.2 (exact)"
    assert one_line([]) == "no claim was made"
    changing = only("linked_reports", math.inf, "infinite", [0.3, 0.2, 0.1, 0.0])
    assert one_line([changing]) == "linked reports: δ = 0.2 at ε = 1, no finite ε"
    assert one_line(gathered([{**UNKNOWN, "view": "linked_reports"}])) == "linked reports: not known"
    assert (
        one_line([only("report_round_1", math.inf, "infinite", [1.0] * 4, rounds=1)])
        == "its answer: everything (δ = 1)"
    )


def test_table_omits_uninformative_claims() -> None:
    counts = [
        claim("m", "released_counts", math.inf, "infinite", [1.0] * 4, basis="", crowd=crowd) for crowd in (1, 10)
    ]
    rows = (
        claim("m", "report_round_1", 3.2, "exact", [0.1] * 4, basis=""),
        claim("m", "linked_reports", 3.2, "exact", [0.1] * 4, basis=""),
        [{**UNKNOWN, "view": "released_differences"}],
        *counts,
    )
    one_round = worth_reading(gathered(*rows, rounds=1))
    assert [(item.view, item.crowd) for item in one_round] == [("report_round_1", None), ("released_counts", None)]
    assert len(worth_reading(gathered(*rows))) == 4


def test_claims_about_different_releases_are_rows_of_their_own() -> None:
    """Equal limits of two releases are stated for both, and two releases are no two crowds."""
    releases = [f"laplace (epsilon = {epsilon})" for epsilon in (1, 2)]
    equal = gathered(
        *(
            claim("m", "released_counts", 1.0, "exact", [0.1] * 4, basis="noise.", release=release)
            for release in releases
        )
    )
    assert [one.release for one in worth_reading(equal)] == releases
    assert [len(alike) for alike in by_crowd(equal)] == [1, 1]
    crowds = gathered(
        *(
            claim("m", "released_counts", 1.0, "exact", [0.1 / crowd] * 4, basis="noise.", release=release, crowd=crowd)
            for release in releases
            for crowd in (10, 100)
        )
    )
    assert [[one.crowd for one in alike] for alike in by_crowd(worth_reading(crowds))] == [[10, 100]] * 2


def test_claims_notes_and_reasons_are_said_in_words() -> None:
    assert say(only("report_round_1", 0.0, "exact", [0.0] * 4)).startswith("A server that receives only the first")
    assert say(warning("gridlock", "roads are full", "traffic")) == "roads are full"
    assert [say(reason) for reason in Reason] == [
        "Rounds counted different devices",
        "Servers are combined other than by addition",
    ]


@pytest.mark.parametrize(
    ("epsilon", "kind", "deltas", "code"),
    [
        (1.0, "exact", [0.1], "always"),
        (math.inf, "infinite", [0.45] * 4, "constant"),
        (math.inf, "infinite", [1.0] * 4, "everything"),
        (math.inf, "infinite", [0.3, 0.2, 0.1, 0.0], "except"),
        (math.inf, "infinite", [], "never"),
    ],
)
def test_limit_of_a_claim_has_a_code(epsilon: float, kind: str, deltas: list[float], code: str) -> None:
    assert only("linked_reports", epsilon, kind, deltas).limit.code == code


def test_basis_decides_nothing() -> None:
    """Two bases of one claim are one claim, and equal words of two campaigns are two."""
    rows = claim("m", "released_counts", 1.0, "exact", [0.1] * 4, basis="first")
    other = [{**row, "basis": "x"} for row in rows[1:]]
    assert len(gathered(rows[:1], other)) == 1
    assert len(gathered(*([{**row, "campaign": name} for row in rows] for name in ("a", "b")))) == 2
