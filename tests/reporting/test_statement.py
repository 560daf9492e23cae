"""The privacy statement: its figures are those of a run's tables and of theory, and its page prints on one A4."""

import json
import math
import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe

from mechanisms.local import KRandomizedResponse, OptimisedUnary
from mechanisms.parameter import ParameterError
from mechanisms.privacy import Claim, ConstantDelta, LinkedReports
from simulator.api import run
from simulator.cli import main
from simulator.pages.statement import Recipient, Statement, best_success, statement_of_run, write_statement
from simulator.results.run import RunResult
from simulator.results.tables import records

SURE = Claim.exact(math.inf, ConstantDelta(0.45), "A sampled device shows its cell.").listed(0.0, 1.0)


def written(*recipients: Recipient, **other: object) -> Statement:
    facts = {
        "people": 2_000_000,
        "cells": 500,
        "model": "local",
        "implementation": "Noise",
        "deployment": "Two operators",
    }
    errors = [("a mean cell", 4000.0, 32.0, 4000.0), ("a mean cell at night", 5.0, 32.0, 6.0)]
    names = {"title": "A city", "made_from": "a plan", "unit": "one day", "contributions": 24}
    return Statement(**(facts | names | {"recipients": recipients, "errors": errors} | other))


def test_success_is_the_distance_of_the_laws_and_bounded_without_it():
    for epsilon in (0.5, 2.0):
        odds = math.exp(epsilon)
        exact = {
            KRandomizedResponse(cells=1, epsilon=epsilon): odds / (1 + odds),
            # One bit of two differs: they are set with probability 1/2 and 1/(1 + e^ε), independently.
            OptimisedUnary(cells=9, epsilon=epsilon): 0.5 + 0.25 * math.tanh(epsilon / 2),
        }
        for mechanism, success in exact.items():
            claim = mechanism.claim(LinkedReports())
            for known in (claim, claim.listed(0.0, 1.0)):
                assert best_success(known) == (pytest.approx(success), True)
            bound, reached = best_success(claim.listed(1.0))
            assert success - 1e-12 <= bound <= odds / (1 + odds) + 1e-12
            assert not reached
    # Flows of a city with Laplace noise of scale 1/.66: one trip is told from none in 64 of 100 guesses.
    assert best_success(Claim.exact(0.66, lambda at: max(0.0, -math.expm1((at - 0.66) / 2)), "Laplace"))[0] == (
        pytest.approx(0.6405, abs=5e-5)
    )


@pytest.mark.parametrize(
    "name",
    ["manhattan", "releases", *(pytest.param(name, marks=pytest.mark.slow) for name in ("collusion", "server-noise"))],
)
def test_figures_are_those_of_the_claims_and_attacks(shipped_run, name):
    run = RunResult.load(shipped_run(name))
    for deployment in run.record.deployments:
        for own in deployment.mechanisms:
            made = statement_of_run(run, own.mechanism, deployment.campaign)
            keys = f"mechanism == {own.mechanism!r} and campaign == {deployment.campaign!r}"
            (score,) = records(run.scores.query(keys))
            assert made.errors[0][2] == score["rmse"]
            assert len(made.recipients) == 1 + len(own.learns)
            for one, seen in zip(made.recipients[1:], own.learns, strict=True):
                success = best_success(one.claim)[0]
                if seen.view is None:
                    assert success == 0.5
                    continue
                rows = run.claims.query(f"mechanism == {own.mechanism!r} and adjacency == 'move' and epsilon == 0")
                rows = rows[(rows["view"] == one.claim.view) & (rows["queries"] == made.contributions)]
                assert any(math.isclose(2 * success - 1, delta, abs_tol=1e-12) for delta in rows["delta"])
                # No guess of a cell gains more than 1 − prior times the distance of two laws.
                tried = run.findings.query(f"{keys} and coalition == {', '.join(seen.coalition)!r} and metric == ''")
                tried = tried[tried["attack"].isin(["link_rounds", "shares", "round_two", "known_others"])]
                for row in records(tried):
                    assert row["gain_low"] <= (1.0 - row["prior"]) * (2.0 * success - 1.0) + 1e-12
                    if row["attack"] == "link_rounds":
                        assert one.guess == row["success"] or one.guess > row["success"]


@pytest.mark.slow
def test_figures_of_servers_do_not_depend_on_a_named_operator(shipped_run):
    named = run("server-noise", overrides={"campaigns.occupancy.operator": "A"})
    own, others = (
        [(one.claim.colluding, *best_success(one.claim)) for one in statement_of_run(made).recipients]
        for made in (RunResult.load(shipped_run("server-noise")), named)
    )
    assert own == others
    assert {colluding for colluding, *_ in own} >= {1, 4}


def test_wordings_and_what_is_never_invented(tmp_path):
    guessed = Recipient("Both operators together", "every answer", SURE.about(queries=3), 2, guess=0.48, prior=0.06)
    crowd = Claim.bound(math.inf, ConstantDelta(0.1), "Others hide it.").listed(0.0).about(crowd=10)
    anyone = Recipient("Anyone", "counts", SURE, 0, crowded=crowd)
    write_statement(written(anyone, guessed, purpose="<b>roads</b>"), tmp_path / "a.md")
    text = (tmp_path / "a.md").read_text("utf-8")
    for words in (
        "who stayed in one of two places, they would be right for about 73; guessing without the system, for about 50.",
        "about 73, even if nobody else is there (at most 55 where at least 10 are); guessing without",
        "The place of about 45 is certain. An attack on drivers in the run named the right one of all cells for about",
        "32.0 in a mean cell of 4,000 (0.8 %); 32.0 in a mean cell at night of 5.00 (640 %), no better than 0",
        "δ × people = 0.45 × 2,000,000 = at most 900,000 drivers expected",
        "**Retention:** ____________________ (not stated)",
    ):
        assert words in text
    write_statement(
        written(guessed, Recipient("Anyone", "counts", SURE, 0), purpose="<b>roads</b>"), tmp_path / "a.html"
    )
    assert "&lt;b&gt;roads" in (tmp_path / "a.html").read_text("utf-8")
    with pytest.raises(ParameterError, match="unit must name the unit of privacy"):
        written(guessed, unit=" ")


def test_command(shipped_run, tmp_path, capsys, monkeypatch):
    def call(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["crowdveil", "statement", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        return int(end.value.code or 0), "".join(capsys.readouterr())

    run, out = shipped_run("manhattan"), tmp_path / "page.json"
    code, said = call(run, "--mechanism", "randomized", "--retention", "30 days", "--out", out)
    assert (code, "--mechanism: baseline, randomized, sampling" in said) == (0, True)
    facts = json.loads(out.read_text("utf-8"))
    assert {
        "retention": "30 days",
        "flavour": "pure DP",
        "privacy_loss": 4.836281906951478 * 6,
    }.items() <= facts.items()
    for wrong, message in (
        ((run, "--out", out), "there is a file already"),
        ((run, "--mechanism", "none"), "got none in any"),
        ((run, "--out", tmp_path / "page.pdf"), "must end in .html, .md or .json"),
        ((tmp_path,), "no finished run here"),
    ):
        code, said = call(*wrong)
        assert (code, message in said, said.count("crowdveil:")) == (2, True, 1), said


@pytest.mark.slow
@pytest.mark.parametrize("name", ["manhattan", "collusion", "on-device", "releases", "longitudinal", "server-noise"])
def test_the_page_prints_on_one_a4(shipped_run, tmp_path, chromium, name):
    run = RunResult.load(shipped_run(name))
    for deployment in run.record.deployments:
        path = tmp_path / f"{deployment.campaign}.html"
        write_statement(statement_of_run(run, "", deployment.campaign), path)
        page = chromium.new_page(viewport={"width": 390, "height": 900})
        page.goto(Path(path).as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert Axe().run(page).response["violations"] == []
        assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(prefer_css_page_size=True))) == 1
        page.close()
