"""`crowdveil plan`: from a target to a table or JSON whose sections are valid."""

import json
import math
import os
import re
from dataclasses import MISSING, fields
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import scenarios
from mechanisms import planning
from mechanisms.local import Warner
from mechanisms.planning import Target, search
from mechanisms.privacy import LinkedReports
from mechanisms.privacy.rounding import rounded_up
from simulator.cli.commands import load_command
from simulator.experiment import build_cache
from simulator.experiment.assembly.mechanisms import build_mechanisms
from simulator.studies.tables import Goal

CITY = ("--cells", "4", "--population", "400")


@pytest.fixture
def plan(call, monkeypatch):
    monkeypatch.setattr(build_cache, "_of_process", lambda: build_cache.BuildCache(None))  # nothing of earlier calls
    return partial(call, "plan")


def tiny_with(section, tmp_path):
    """The shipped scenario `tiny` with this section in place of its mechanisms."""
    text = scenarios.source_text("tiny")
    path = tmp_path / "planned.toml"
    path.write_text(text[: text.index("[[mechanisms]]")] + section, encoding="utf-8")
    return scenarios.load(path)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    "target",
    [
        ("--epsilon", "1", "--delta", "0.02"),
        ("--epsilon", "2", "--view", "report"),
        ("--epsilon", "1", "--delta", "0.001", "--view", "released"),
        ("--epsilon", "1", "--delta", "0.001", "--view", "released", "--k", "5"),
        ("--error", "20", "--delta", "0.001", "--view", "released_counts"),
        ("--epsilon", "1", "--delta", "0.001", "--queries", "5"),
    ],
    ids=["linked", "report", "released", "suppressed", "error", "queries"],
)
def test_json_lists_all_plans_with_valid_sections(plan, target, tmp_path):
    done = plan(*CITY, *target, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert {"target", "plans", "best", "best_without_crowd", "better_than_zero"} == found.keys()
    assert found["target"]["cells"] == 4
    names = {made["mechanism"] for made in found["plans"]}
    assert {"sampling_privacy", "sampling_privacy_refreshed", "oue", "distributed_laplace", "laplace_counts"} <= names
    meeting = [made for made in found["plans"] if made["meets"]]
    assert len(meeting) > 8
    for made in found["plans"]:
        assert made["meets"] or made["reason"]
        assert (made["scenario"] is not None) == made["meets"]
    for made in meeting:
        low, high = made["error_interval"]
        assert low <= made["std_error"] <= high
        for claim in made["claims"]:
            assert claim["kind"] in {"exact", "bound", "infinite", "unknown"}
            assert (claim["epsilon"] is None) == (
                claim["kind"] in {"infinite", "unknown"} and claim["delta"] in {0, None}
            )
        # Only the user knows when her campaign asks.
        timed = "[[campaigns]]\nstart_s = 60\nevery_s = 30\nround_gap_s = 10\ndeadline_s = 10"
        scenario = tiny_with(made["scenario"].replace("[[campaigns]]", timed), tmp_path)
        assert (made["budget"] is None) == all(campaign.budget is None for campaign in scenario.campaigns)
        [section] = scenario.mechanisms
        assert section.kind == made["kind"]
        build_mechanisms(scenario, 4)
    best = next(made for made in meeting if made["mechanism"] == found["best"])
    if found["target"]["error"] is None:
        assert best["std_error"] == min(made["std_error"] for made in meeting)
    else:
        finite = [made["epsilon"] for made in meeting if made["epsilon"] is not None]
        assert best["epsilon"] == min(finite)


def test_planned_sections_build_mechanisms_that_meet_the_target(plan, tmp_path):
    done = plan(*CITY, "--epsilon", "1", "--delta", "0.02", "--json")
    checked = 0
    for made in json.loads(done.stdout)["plans"]:
        if made["meets"]:
            [mechanism] = build_mechanisms(tiny_with(made["scenario"], tmp_path), 4).values()
            assert mechanism.claim(LinkedReports()).delta(1.0) <= 0.02, made["mechanism"]
            checked += 1
    assert checked > 12


def test_table_gives_reasons_and_the_best_plan(plan):
    done = plan(*CITY, "--occupancy", "40", "--epsilon", "3")
    assert done.returncode == 0
    assert "Target: linked_reports with ε = 3, δ = 0" in done.stdout
    assert "none sampling_privacy: Linked reports reveal the cell with probability π_s at every ε" in done.stdout
    assert "k_randomized_response" in done.stdout
    assert "Best: " in done.stdout
    assert "[[mechanisms]]" in done.stdout
    only = plan(*CITY, "--epsilon", "3", "--mechanism", "oue", "--mechanism", "sue")
    assert "warner" not in only.stdout
    assert "Best: " in only.stdout


@pytest.mark.parametrize("view", ["report", "shuffled"])
def test_first_line_says_what_a_target_leaves_open(plan, view):
    target = (*CITY, "--epsilon", "1", "--delta", "0.02", "--view", view)
    best = " ".join(plan(*target, "--mechanism", "sampling_privacy").stdout.split("\n\n")[0].split())
    assert best.startswith("Best: sampling_privacy")
    linked = json.loads(plan(*target, "--mechanism", "sampling_privacy", "--json").stdout)["plans"][0]["claims"]
    delta = next(claim["delta"] for claim in linked if claim["view"] == "linked_reports" and claim["delta"])
    linked = f"left open: whoever has all of a device's reports, linked: ε infinite, δ = {rounded_up(delta)} at ε = 1"
    assert linked in best
    assert "; readers of what is published: ε infinite" not in best
    alone = " ".join(plan(*target, "--mechanism", "sampling_privacy", "--unpublished").stdout.split("\n\n")[0].split())
    assert "; readers of what is published: ε infinite, δ" in alone
    assert ("left open" in plan(*target, "--mechanism", "oue").stdout) == (view == "shuffled")
    assert "left open" not in plan(*CITY, "--epsilon", "1", "--mechanism", "oue").stdout
    released = plan(*CITY, "--epsilon", "1", "--view", "released", "--mechanism", "laplace_counts").stdout
    assert "left open: whoever has all of a device's reports, linked: ε infinite, δ = 1 at ε = 1" in released


def test_errors_are_those_of_the_stated_count_and_of_everybody(plan):
    out = " ".join(plan("--cells", "1", "--population", "1", "--epsilon", "1", "--mechanism", "oue").stdout.split())
    assert "Errors are for a cell of exactly 1, with 0 outside it; with all 1 in it and nobody outside" in out
    arguments = (*CITY, "--occupancy", "40", "--epsilon", "1", "--mechanism", "warner", "--json")
    [made] = json.loads(plan(*arguments).stdout)["plans"]
    exact = Warner(cells=4, truthful=made["parameters"]["truthful"]).std_error(np.array([0, 400, 0, 0, 0]))[0]
    assert made["full_error"] == pytest.approx(exact, rel=1e-12)


def test_all_operators_may_collude(plan):
    out = plan(*CITY, "--epsilon", "1", "--view", "released", "--honest", "0").stdout
    assert "all operators collude" in out
    assert "none laplace_counts" in out
    assert "none server_noise" in out


def test_parameters_far_from_a_name_are_said_beside_it(plan):
    target = ("--cells", "20", "--population", "10000", "--epsilon", "1", "--delta", "0.1")
    out = " ".join(plan(*target, "--mechanism", "olh").stdout.split())
    assert re.search(
        r"olh \(.*, far from its name: its reports have ε = [\d.]+; the target is met only with δ = 0.1\)", out
    )
    assert "far from" not in plan(*target[:-2], "--mechanism", "olh").stdout


def test_truncated_search_is_reported(plan, monkeypatch):
    monkeypatch.setattr(search, "MOST", 60)
    arguments = (*CITY, "--epsilon", "1.37", "--mechanism", "anonymized_first_attempt", "--mechanism", "oue")
    assert "note anonymized_first_attempt: Its search was cut short after 60 candidates" in plan(*arguments).stdout
    attempt, other = sorted(json.loads(plan(*arguments, "--json").stdout)["plans"], key=lambda made: made["mechanism"])
    assert attempt["meets"]
    assert "cut short after 60 candidates" in attempt["cut_short"]
    assert other["cut_short"] is None


def test_a_class_of_ones_own_is_planned_by_the_dial_that_it_declares(plan, tmp_path, monkeypatch):
    (tmp_path / "mine_to_plan.py").write_text(
        "from crowdveil import Declared, Parameter\n"
        "from mechanisms.local import KRandomizedResponse\n"
        "class Mine(KRandomizedResponse):\n"
        "    declared = Declared(title='My own response', parameters=(\n"
        "        Parameter(name='epsilon', about='ε.', type='number', least=1e-6, most=50, dial='log'),))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    sized = ("--cells", "20", "--population", "100000", "--epsilon", "1", "--json")
    done = plan(*sized, "--mechanism", "mine_to_plan:Mine", "--mechanism", "k_randomized_response")
    built_in, own = json.loads(done.stdout)["plans"]
    assert (own["kind"], own["title"], own["parameters"]) == ("mine_to_plan:Mine", "My own response", {"epsilon": 1.0})
    assert own["std_error"] == built_in["std_error"]
    assert built_in["title"] == "k-ary randomized response"


def test_a_result_is_kept_by_its_target_and_a_class_of_ones_own_is_planned_anew(plan, tmp_path, monkeypatch):
    monkeypatch.setattr(build_cache, "_of_process", lambda: build_cache.BuildCache(tmp_path / "cache"))
    arguments = (*CITY, "--epsilon", "1.25", "--mechanism", "oue")
    first, find = plan(*arguments).stdout, planning.plan
    searches = []
    monkeypatch.setattr(
        planning, "plan", lambda target, *_, **own: searches.append(target) or find(target, ("oue",), **own)
    )
    assert plan(*arguments).stdout == first
    assert searches == []
    plan(*CITY, "--epsilon", "1.26", "--mechanism", "oue")
    plan(*arguments, "--mechanism", "mechanisms.local.unary_encoding:OptimisedUnary")
    assert [target.epsilon for target in searches] == [1.26, 1.25]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has no accounts of this kind")
def test_a_cache_where_others_may_write_is_not_used_and_the_plan_is_the_same(plan, tmp_path, monkeypatch):
    arguments = (*CITY, "--epsilon", "1.25", "--mechanism", "oue")
    wanted = plan(*arguments).stdout
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    monkeypatch.setenv("CROWDVEIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(build_cache, "_of_process", lambda: build_cache.BuildCache(build_cache.default_folder()))
    done = plan(*arguments)
    assert (done.returncode, done.stdout) == (0, wanted)
    assert "other accounts may write there" in done.stderr
    assert [*(tmp_path / "cache").iterdir()] == []


def test_unreachable_target_gives_no_plan(plan):
    done = plan(*CITY, "--epsilon", "1", "--mechanism", "sampling_privacy")
    assert "No mechanism meets this target." in done.stdout
    found = json.loads(plan(*CITY, "--epsilon", "1", "--mechanism", "sampling_privacy", "--json").stdout)
    assert found["best"] is None
    assert found["plans"][0]["std_error"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (CITY, ("epsilon", "must be given")),
        ((*CITY, "--epsilon", "1", "--error", "5"), ("error", "must not be given together with epsilon (1)", "5")),
        (("--cells", "0", "--population", "9", "--epsilon", "1"), ("cells", "1..1000000", "0")),
        (("--cells", "3", "--population", "0", "--epsilon", "1"), ("population", "1..", "0")),
        ((*CITY, "--epsilon", "-1"), ("epsilon", "at least 0", "-1")),
        ((*CITY, "--epsilon", "nan"), ("epsilon", "nan")),
        ((*CITY, "--epsilon", "inf"), ("epsilon", "finite")),
        ((*CITY, "--epsilon", "1", "--trusts"), ("trusts", "crowdveil advise")),
        ((*CITY, "--epsilon", "1", "--delta", "1"), ("delta", "below 1")),
        ((*CITY, "--error", "0"), ("error", "above 0")),
        ((*CITY, "--epsilon", "1", "--occupancy", "401"), ("occupancy", "400", "401")),
        ((*CITY, "--epsilon", "1", "--view", "everything"), ("view", "linked_reports", "everything")),
        ((*CITY, "--epsilon", "1", "--k", "3"), ("k", "released view", "3")),
        ((*CITY, "--epsilon", "1", "--view", "released", "--crowd", "500"), ("crowd", "population (400)", "500")),
        ((*CITY, "--epsilon", "1", "--mechanism", "magic"), ("mechanism", "sampling_privacy", "magic")),
        ((*CITY, "--epsilon", "1", "--queries", "0"), ("queries", "0")),
        (("--population", "5", "--epsilon", "1"), ("--cells",)),
    ],
)
def test_invalid_arguments_give_one_message_and_exit_code_2(plan, arguments, words):
    done = plan(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr
    assert math.isclose(done.stderr.count("crowdveil:"), 1) or "--cells" in words


@pytest.mark.parametrize("more", [("--mechanism", "sue"), pytest.param((), marks=pytest.mark.slow)])
def test_first_line_says_that_an_estimate_of_0_errs_no_more(plan, more):
    useless = ("--cells", "4", "--population", "40", "--queries", "50", "--epsilon", "0.01", *more)
    first = plan(*useless).stdout.split("\n")[0]
    assert first == "No planned mechanism errs less than an estimate of 0 everywhere."
    assert first not in plan(*CITY, "--epsilon", "3", *more).stdout


def test_json_names_no_plan_best_that_errs_no_less_than_an_estimate_of_0(plan):
    """The least error is 18.000003 in a cell of 18."""
    target = ("--cells", "1344", "--population", "151835", "--occupancy", "18", "--view", "report", "--queries", "7")
    wanted = (
        "--epsilon",
        ".0645",
        "--delta",
        "1e-6",
        "--mechanism",
        "sampling_privacy_suppressed",
        "--mechanism",
        "sue",
    )
    found = json.loads(plan(*target, *wanted, "--json").stdout)
    assert (found["best"], found["best_without_crowd"], found["better_than_zero"]) == (None, None, False)
    errors = [(made["better_than_zero"], made["std_error"]) for made in found["plans"] if made["meets"]]
    assert errors
    assert all(better is False and error >= 18 for better, error in errors)
    useful = json.loads(plan(*CITY, "--epsilon", "3", "--mechanism", "sue", "--json").stdout)
    assert (useful["best"], useful["better_than_zero"]) == ("sue", True)
    none = json.loads(plan(*CITY, "--epsilon", "1", "--mechanism", "distributed_laplace", "--json").stdout)
    assert (none["best"], none["better_than_zero"], none["plans"][0]["better_than_zero"]) == (None, None, None)


def test_every_parameter_of_a_target_is_an_option_with_its_default_and_meaning():
    options = {option.name: option for option in load_command("plan").params}
    documented = (Path(__file__).parents[2] / "docs/how/plan.md").read_text(encoding="utf-8")
    meanings = " ".join((Target.__doc__ or "").split())
    for field in fields(Target):
        option = options[field.name]
        assert option.required == (field.default is MISSING)
        assert option.required or option.default == field.default
        unit = f" : {option.metavar}" if option.metavar else ""
        assert f" {field.name}{unit} {option.help}" in meanings
        assert f"`--{field.name}`" in documented or field.name in {"published", "simulated"}
    of_evaluation = {option.name: option.help for option in load_command("evaluate").params}
    for field in fields(Goal):
        assert of_evaluation[field.name] == options[field.name].help
