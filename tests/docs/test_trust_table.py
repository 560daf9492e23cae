"""What pages state about the best mechanism under each trust is what the planner computes."""

import itertools
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

import crowdveil as cv
from mechanisms.planning import CityQuestion, Target, advise, plan

DOCS = Path(__file__).parents[2] / "docs"
FINDINGS = (DOCS / "why" / "findings.md").read_text(encoding="utf-8")
SIZE = {"cells": 100, "population": 10**6, "occupancy": 100, "epsilon": 1.0, "delta": 1e-6}
ROWS = re.findall(r"(?m)^\| ([^|]+) \| [^|]+ \| ([^|]+) \| ([\d.,]+) \| ([\d.,]+) \|$", FINDINGS)
COMMANDS = re.findall(r"(?m)^crowdveil advise (.*)$", FINDINGS)
NAMES = {
    "Laplace noise on the counts": ("laplace_counts",) * 2,
    "discrete Laplace noise": ("server_noise",) * 2,
    "distributed Laplace noise": ("distributed_laplace",) * 2,
    "k-ary randomized response": ("k_randomized_response",) * 2,
    "Sampling Privacy, binary, small differences suppressed": ("sampling_privacy_binary_suppressed",) * 2,
    "subset selection, THE": ("subset_selection", "the"),
}


def digits(value, printed):
    """Return a value as text, with as many digits as a printed number."""
    _, _, decimals = printed.replace(",", "").partition(".")
    return f"{value:,.{len(decimals)}f}"


@pytest.mark.parametrize(("column", "adjacency"), [(0, "move"), (1, "enter_leave")])
def test_table_of_trusts(column, adjacency):
    shares = []
    city = {"people": 10**6, "zones": 100, "answers_per_day": 1, "epsilon": 1.0, "delta": 1e-6}
    rows = advise(CityQuestion(**city, occupancy=(100, 10, 5), adjacency=adjacency), progress=shares.append)
    assert 0.5 < sum(shares) <= 1.0 + 1e-9
    # The commands under the table are for the same question.
    words = COMMANDS[column].split()
    given = dict(itertools.pairwise(words))
    assert {name: float(given[f"--{name.replace('_', '-')}"]) for name in city} == city
    assert (given["--occupancy"], given.get("--adjacency", "move")) == ("100", adjacency)
    alone = [row.plan for row in rows if row.crowd is None]
    assert len(ROWS) == len(alone) == 6
    for (_, name, *errors), made in zip(ROWS, alone, strict=True):
        assert made.name == NAMES[name][column]
        assert digits(made.std_error, errors[column]) == errors[column]


@pytest.mark.parametrize(("column", "adjacency"), [(0, "move"), (1, "enter_leave")])
def test_sentences_about_what_is_published(column, adjacency):
    target = Target(**SIZE, view="released", adjacency=adjacency)
    names = ("sampling_privacy", "sampling_privacy_suppressed", "randomized_response")
    plans = {made.name: made for made in plan(target, names, claims=False).plans}
    [noisy] = plan(replace(target, servers=5, honest=3), ["server_noise"], claims=False).plans
    text = " ".join(FINDINGS.split())
    shares = re.search(r"If three of them do not collude, the second row is ([\d.]+) and ([\d.]+)\.", text)
    assert digits(noisy.std_error, shares[1 + column]) == shares[1 + column]
    assert noisy.aggregation["noise"]["kind"] == "polya"
    stated = re.search(
        r"errs by ([\d.]+) \(a move\) or ([\d.]+) \(entering or leaving\) if at least 100 devices .*? "
        r"and by ([\d.]+) or ([\d.]+), with small .* responses err by ([\d.]+) or ([\d.]+) for any crowd",
        text,
    )
    for place, name in enumerate(names):
        printed = stated[1 + 2 * place + column]
        assert digits(plans[name].std_error, printed) == printed, name
    assert plans["sampling_privacy"].crowd == 100
    assert plans["sampling_privacy_suppressed"].crowd is None
    assert plans["randomized_response"].crowd is None


@pytest.mark.slow
def test_officers_page_explains_what_is_printed(call_in_process, tmp_path):
    page = (DOCS / "start" / "privacy_officer.md").read_text(encoding="utf-8")

    def printed(line):
        return " ".join(call_in_process(*shlex.split(line), cwd=tmp_path).stdout.split())

    alone, colluding = re.findall(r"(?m)^crowdveil (advise .*)$", page)
    quoted = " ".join(re.search(r"```text\n(.*?)```", page, re.DOTALL)[1].split())
    assert quoted in printed(alone)
    assert "no design is better than an estimate of 0" in printed(colluding)
    assert "Its counts err by 93.9" in printed(alone.partition(" --write")[0].replace("day 8", "day 2"))
    statement = (tmp_path / "plan.html").read_text(encoding="utf-8")
    assert [number for number in ("39,105", "ε = 74.0", "0.0040") if number not in statement] == []
    result = cv.run(tmp_path / "city.toml")
    assert result.scores[["scaled_rmse", "scaled_theory_rmse"]].round().to_numpy().tolist() == [[135, 131]]
    assert result.attacks["success"].round(2).tolist() == [0.51]
