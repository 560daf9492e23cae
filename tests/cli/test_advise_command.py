"""`crowdveil advise`: the sentences, the JSON, and the written scenario, whose run has the stated error."""

import json
import math
import tomllib

import pytest

import crowdveil
from simulator.experiment import build_cache

TOWN = ("--people", "4000", "--zones", "20", "--answers-per-day", "3", "--delta", "1e-3")


@pytest.fixture
def advise(call, monkeypatch):
    monkeypatch.setattr(build_cache, "_of_process", lambda: build_cache.BuildCache(None))

    def advise_(*arguments):
        done = call("advise", *arguments)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
        return done.stdout

    return advise_


def test_answer_comes_first_and_marks_what_is_useless(advise):
    arguments = (*TOWN, "--colluding", "2", "--epsilon", ".3")
    text = " ".join(advise(*arguments).split())
    assert text.startswith("If 2 of 2 operators collude, no design is better than an estimate of 0: the best errs by")
    assert "With a third independent operator it is possible: " in text
    assert "δ × people: 4.00 vehicles expected to be exposed" in text
    found = json.loads(advise(*arguments, "--json"), parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert found["sentences"][0] == text[: len(found["sentences"][0])]
    _, noise, _, _, rounds, nobody = found["rows"]
    assert (found["advised"], noise["holds"], noise["parties"], rounds["parties"]) == (2, False, 3, 0)
    assert rounds["plan"] is None
    assert nobody["cells"]["night"]["better_than_zero"] is False
    assert "no better than 0" in text.partition("│ nobody")[2]
    assert [each["party"] for each in noise["learns"]] == ["one operator", "2 who collude", "readers"]
    assert "claim" not in noise["learns"][0]


@pytest.mark.parametrize(
    "more",
    [
        ("--parties", "1", "--colluding", "0", "--trust", "server"),
        ("--parties", "3", "--trust", "noise", "--participation", ".4", "--loss", ".1"),
        ("--trust", "shares", "--participation", ".4"),
        ("--trust", "shuffler", "--loss", ".2"),
        ("--trust", "nobody", "--epsilon", "6", "--people", "40000", "--zones", "8"),
    ],
    ids=lambda more: more[more.index("--trust") + 1],
)
def test_written_scenario_has_the_stated_error_and_success(advise, tmp_path, more):
    given = (*TOWN, *more, "--write", "design.toml")
    before = advise(*given, "--json")
    row = next(row for row in json.loads(before)["rows"] if row["crowd"] is None)
    with pytest.raises(AssertionError, match="there without --overwrite"):
        advise(*given)
    file = tmp_path / "design.toml"
    assert f"{row['run']['error']:.5g}" in file.read_text(encoding="utf-8")
    run = crowdveil.run(file, seed=4)
    [scores] = run.scores.to_dict("records")
    assert scores["scaled_theory_rmse"] == pytest.approx(row["run"]["error"], rel=0.02)
    assert row["run"]["low"] <= scores["scaled_rmse"] <= row["run"]["high"]
    attacks = tomllib.loads(file.read_text(encoding="utf-8")).get("attacks", [])
    assert bool(attacks) == ("--loss" not in more and row["trust"] in {"server", "shares"})
    for attack in run.attacks.to_dict("records"):
        played = 20 * row["run"]["queries"]
        assert attack["theory"] <= row["run"]["success"] + 1e-6
        assert attack["success"] <= row["run"]["success"] + 3 * math.sqrt(0.25 / played)


def test_a_profile_and_a_scenario_give_what_no_option_gives(advise, tmp_path):
    lines = [f"{hour},{zone},{people * (1 + hour)}" for hour in range(4) for zone, people in (("a", 100), ("b", 300))]
    (tmp_path / "hours.csv").write_text("\n".join(["hour,zone,people", *lines]))
    found = json.loads(advise("--profile", "hours.csv", "--trust", "server", "--json"))
    assert (found["question"]["people"], found["question"]["zones"]) == (1600, 2)
    assert found["question"]["occupancy"] == [500.0, 250.0 + 0.1 * 500.0, 200.0]
    found = json.loads(advise("tiny", "--trust", "server", "--json"))
    assert (found["question"]["people"], found["question"]["zones"]) == (60, 9)


def test_statement_and_refusals(advise, tmp_path):
    advise(*TOWN, "--parties", "3", "--colluding", "2", "--trust", "noise", "--page", "page.md")
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "3 operators who hold shares and add noise" in page
    advise(*TOWN, "--colluding", "2", "--participation", ".5", "--trust", "shares", "--page", "page.md", "--overwrite")
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    for words in (
        "**Loss:** ε = 1 with δ ≤ ",
        "; at δ = 0: ε = ",
        " (at ε = 1) × 2,000 = ",
        "50 % of the vehicles take part",
        "It needs 3 independent operators: with 2 no design is of use.",
    ):
        assert words in page
    for arguments, words in (
        (("--people", "9"), "--zones"),
        ((*TOWN, "--trust", "magic"), "'server', 'noise'"),
        ((*TOWN, "--trust", "rounds", "--write", "a.toml"), "not written"),
        ((*TOWN, "--colluding", "4"), "colluding"),
        ((*TOWN, "--page", "page.pdf"), "--page must end in .html or .md or .json; got page.pdf"),
        ((*TOWN, "--write", "town.txt"), "--write must end in .toml; got town.txt"),
        ((*TOWN, "--trip-min", "20"), "--trip-min needs --per trip; got --per day"),
    ):
        with pytest.raises(AssertionError, match=words):
            advise(*arguments)
    assert not (tmp_path / "a.toml").exists()
