import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from html_page import Page
from rich.console import Console
from synthetic_run import SyntheticRun
from test_report_page import HOSTILE, embedded

from mechanisms.privacy.claim import Claim, ListedDelta
from simulator.pages.attacks_section import attack_lines
from simulator.pages.findings_section import sentences
from simulator.pages.privacy_sections import coalition_words, deployment_words
from simulator.pages.report import build_report, write_report
from simulator.pages.terminal_summary import print_summary
from simulator.results.names import OwnerNames
from simulator.results.record import DeploymentRecord
from simulator.results.run import RunResult
from simulator.results.statements import driver_sentence, reviewer_words, sentence

PRIOR = 0.06
NULL_SHARES = {"reports_alone": 0.2, "nobody_moves": 0.1}


def guess(name: str, coalition: str, success: float, theory: float, **other: Any) -> dict[str, Any]:
    gain = success - PRIOR
    return {
        "name": name, "attack": "shares", "coalition": coalition, "colluding": coalition.count(",") + 1, "servers": 3,
        "mechanism": "sampling", "campaign": "rush", "trials": 1000, "prior": PRIOR, "success": success, "gain": gain,
        "gain_low": gain - 0.02, "gain_high": gain + 0.03, "theory": theory, "epsilon_lower": 0.0, "metric": None,
        "value": None, "unit": None, **other,
    }  # fmt: skip


def shift(vehicles: int, metric: str, value: float) -> dict[str, Any]:
    none = dict.fromkeys(("prior", "success", "gain", "gain_low", "gain_high", "epsilon_lower"))
    return guess("liars", f"vehicles:{vehicles}", 0.0, 1.1 * value) | none | {
        "attack": "poisoning", "colluding": vehicles, "trials": 2, "metric": metric, "value": value, "unit": "vehicles",
    }  # fmt: skip


QUERIES = {"attack": "longitudinal", "metric": "queries", "unit": "queries"}
WORTH = {"inflation": 2.2, "crafted_inflation": 2200.0}
FOUND = [
    guess("pool", "server:1", PRIOR, PRIOR),
    guess("pool", "server:1, server:2", PRIOR + 0.001, PRIOR),
    guess("pool", "server:1, server:2, server:3", 0.481, 0.49),
    guess("pool", "server:1, server:2, server:3", 0.62, 0.61, mechanism="randomized"),
    *(guess("again", "server:1", 1 - 0.5**asked, 0.9, value=asked, **QUERIES) for asked in (1.0, 2.0, 4.0)),
    *(shift(count, metric, count * worth) for count in (10, 100) for metric, worth in WORTH.items()),
]


def learnt(coalition: list[str], words: str, epsilon: float | None, delta: float | None, kind: str = "exact") -> Any:
    known = "unknown" if kind == "unknown" else "bound" if kind == "bound" else "exact"
    return {"coalition": coalition, "words": words, "view": "shares", "kind": kind, "epsilon": epsilon, "delta": delta,
            "delta_kind": known}  # fmt: skip


def deployment(kind: str = "secret_shared", **other: Any) -> dict[str, Any]:
    servers = ["server:1", "server:2", "server:3"]
    cost = {"bytes_up": 456, "bytes_down": 16, "stored_bytes": {"server:1": 24, "server:2": 24, "server:3": 321},
            "between_servers": 96, "notes": ["Seeds are not ciphers."]}  # fmt: skip
    views = [
        learnt(["server:1"], "Of a report nothing.", 0.0, 0.0),
        learnt(servers, "Every report.", None, 0.45, "infinite"),
        learnt(["network"], "Who sent something.", None, None, "unknown"),
    ]
    return {"campaign": "rush", "kind": kind, "servers": 3, "paired": False, "robust": False, "handles": "device",
            "mechanisms": [{"mechanism": "sampling", "parties": [*servers, "network"], "cost": cost, "learns": views}],
            **other}  # fmt: skip


def lost(**other: Any) -> dict[str, Any]:
    asked = [10**power for power in range(4, 9)]
    return {"campaign": "rush", "mechanism": "sampling", "rounds": 2, "pairs": False, "independent": True,
            "heard": [0.95, 0.95], "occupancy": 30, "asked": asked, "ideal": [6.0] * 5,
            "unpaired": [0.05 * n**0.5 for n in asked], "paired": [6.5] * 5, **other}  # fmt: skip


def write(directory: Path, *, attacks: Any = FOUND, facts: dict[str, Any] | None = None, **made: Any) -> Path:
    """Write a run whose attacks have every column, with extra keys in `run.json`."""
    run = SyntheticRun(queries=2, **made).write(directory)
    pd.DataFrame(attacks).to_parquet(run / "attacks.parquet")
    told = json.loads((run / "run.json").read_text(encoding="utf-8"))
    (run / "run.json").write_text(json.dumps(told | (facts or {})), encoding="utf-8")
    return run


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("attacked"), facts={"deployments": [deployment()], "loss": [lost()]})


def figures(source: str, start: str) -> list[dict[str, Any]]:
    every: Any = embedded(source)["charts"]
    return [figure for name, figure in every.items() if name.startswith(start)]


def test_run_without_attacks_has_no_attack_sections(small: Path, tmp_path: Path) -> None:
    plain = {**deployment("trusted"), "servers": 1}
    told = write(tmp_path / "run", attacks=pd.DataFrame(FOUND).iloc[:0], facts={"deployments": [plain], "loss": []})
    for directory in (small, told):
        source = build_report(directory)
        for name in ("attacks", "deployments", "loss"):
            assert f'id="{name}"' not in source
            assert f'href="#{name}"' not in source


def test_every_number_of_the_files_is_in_the_report(attacked: Path) -> None:
    source = build_report(attacked)
    page = Page(source)
    frame = pd.read_parquet(attacked / "attacks.parquet")
    for column in ("prior", "success", "theory", "trials"):
        assert set(frame[column].dropna().astype(float)) <= page.values(), column
    assert {456.0, 16.0, 96.0, 0.45} <= page.values()
    assert "server:1 and server:2: 24 each; server:3: 321" in page.text
    assert "nan" not in re.findall(r"[a-z]+", page.text.lower())
    for name in ("attacks", "deployments", "loss"):
        assert f'href="#{name}"' in source


def test_gain_is_drawn_with_theory_and_interval(attacked: Path) -> None:
    source = build_report(attacked)
    (drawn,) = figures(source, "attacks-0")
    own = [row for row in FOUND if row["attack"] == "shares" and row["mechanism"] == "sampling"]
    theory, points = drawn["series"][:2]
    assert points["y"] == pytest.approx([row["gain"] for row in own])
    assert points["high"] == pytest.approx([row["gain"] + 0.03 for row in own])
    assert points["low"] == pytest.approx([row["gain"] - 0.02 for row in own])
    assert theory["mark"] == "line"
    assert theory["y"] == pytest.approx([row["theory"] - PRIOR for row in own])
    assert theory["x"] == points["x"]
    assert [round(at) for at in points["x"]] == [1, 2, 3]
    text = Page(source).text
    assert "The baseline guess is right in 6 % of the cases" in text
    assert "server:1, server:2 had no significant gain" in text
    assert "server:1, server:2, server:3 gained 42.1 to 56.0 points, by mechanism" in text
    assert "rush: shares among 3 servers" in text


def test_success_is_drawn_by_queries_and_inflation_by_vehicles(attacked: Path) -> None:
    source = build_report(attacked)
    (honest,) = figures(source, "attacks-1")
    assert [round(at) for at in honest["series"][1]["x"]] == [0, 1, 2]
    assert honest["series"][1]["y"][::-1] == pytest.approx([0.0, 0.001, 0.421]), "of fewer honest servers more"
    (success,) = figures(source, "attacks-2")
    assert success["series"][1]["x"] == [1.0, 2.0, 4.0]
    assert success["series"][1]["y"] == pytest.approx([0.5, 0.75, 0.9375])
    assert success["series"][-1]["y"] == pytest.approx([PRIOR] * 3), "the prior is drawn"
    (poisoned,) = figures(source, "attacks-3")
    honest, crafted = (series["y"] for series in poisoned["series"] if series["mark"] == "points")
    assert honest == pytest.approx([22.0, 220.0])
    assert crafted == pytest.approx([22e3, 220e3])


def test_loss_is_drawn_paired_and_unpaired(attacked: Path, tmp_path: Path) -> None:
    source = build_report(attacked)
    (drawn,) = figures(source, "loss")
    assert {series["name"]: series["y"][-1] for series in drawn["series"][:3]} == {
        "each round as received": pytest.approx(500.0), "only devices received in every round": 6.5,
        "nothing lost": 6.0,
    }  # fmt: skip
    rmse = pd.read_parquet(attacked / "scores.parquet").set_index("mechanism")["rmse"]
    assert drawn["series"][3]["y"] == pytest.approx([rmse["sampling"]])
    assert (
        "grows from 5.00 to 500 vehicles from 10,000 to 100,000,000 devices asked; paired it stays at 6.50"
        in Page(source).text
    )
    one = write(
        tmp_path / "one", facts={"loss": [lost(mechanism="randomized", rounds=1, paired=None, independent=False)]}
    )
    text = Page(build_report(one)).text
    assert "One round has nothing to pair" in text
    assert "here they are not" in text


def test_constant_error_is_not_claimed_for_a_run_with_loss(attacked: Path, small: Path) -> None:
    text = Page(build_report(attacked)).text
    assert "Where every report arrives, Sampling Privacy’s error stays the same" in text
    assert "This run, which lost reports, measured" in text
    assert "Where every report arrives, Randomized response" not in text  # it lost none
    assert "vehicles in it, where every report arrives. Points: this run." in text
    assert "where every report arrives" not in Page(build_report(small)).text.lower()


def test_deployment_matrix_is_in_plain_words(attacked: Path) -> None:
    text = Page(build_report(attacked)).text
    assert "Any 1 of the 3 servers Of a report nothing. nothing" in text
    assert "All 3 servers Every report. no ε δ = 0.45" in text
    assert "An observer of the network Who sent something. not known" in text


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"kind": "trusted", "servers": 1}, "one trusted server"),
        ({"kind": "trusted", "servers": 1, "handles": "query"}, "one trusted server, one-time pseudonyms"),
        ({"kind": "per_round", "servers": 2, "robust": True}, "a server for each round"),
        ({"kind": "shuffled", "servers": 1}, "a server behind a mixer"),
        (
            {"kind": "secret_shared", "servers": 2, "paired": True, "robust": True, "handles": "query"},
            "shares among 2 servers, paired, with range proofs",
        ),
        (
            {"kind": "trusted", "servers": 1, "min_batch": 20, "min_gap_s": 300.0, "committed": True},
            "one trusted server, sums of 20 reports or more, answers 5 min 0 s apart, committed questions",
        ),
    ],
)
def test_deployment_names(record: dict[str, Any], words: str) -> None:
    assert deployment_words(DeploymentRecord(campaign="rush", mechanisms=[], **record)) == words


@pytest.mark.parametrize(
    ("coalition", "kind", "servers", "words"),
    [
        (["server:2"], "per_round", 3, "Server 2"),
        (["server:1", "server:2"], "per_round", 3, "Servers 1 and 2"),
        (["server:1"], "trusted", 1, "The server"),
        (["server:1", "mixer"], "shuffled", 1, "The server and mixer"),
        (["mixer"], "shuffled", 1, "The mixer"),
        (["server:1", "server:2"], "secret_shared", 4, "Any 2 of the 4 servers"),
    ],
)
def test_coalition_names(coalition: list[str], kind: str, servers: int, words: str) -> None:
    record = DeploymentRecord(campaign="rush", kind=kind, servers=servers, mechanisms=[])
    assert coalition_words(coalition, record) == words


@pytest.mark.parametrize(
    ("colluding", "start"),
    [(1, "One of the 3 servers"), (2, "2 of the 3 servers"), (3, "All 3 servers that combine")],
)
def test_sentence_of_share_claims(colluding: int, start: str) -> None:
    constant = ((1.0, 0.45),)
    claim = Claim.exact(float("inf"), ListedDelta(constant), "why").about(
        mechanism="sampling", view="shares", colluding=colluding, servers=3
    )
    text_of_claim = sentence(claim)
    assert text_of_claim.startswith(start)
    assert ("learns the device’s exact cell" if colluding == 1 else " learn the device’s exact cell") in text_of_claim


def test_browser_draws_the_report_without_errors(attacked: Path, browse: Callable[..., str]) -> None:
    dom = browse(write_report(attacked))
    assert 'data-report="ready"' in dom
    for name in ("attacks-0", "attacks-1", "attacks-2", "attacks-3", "loss-0"):
        place = dom.index(f'data-chart="{name}"')
        assert 'class="chart"' in dom[place : place + 3000], name


def test_attack_names_are_escaped(tmp_path: Path, browse: Callable[..., str]) -> None:
    found = [row | {"name": HOSTILE, "campaign": HOSTILE} for row in FOUND]
    told = {"deployments": [deployment(campaign=HOSTILE)], "loss": [lost(campaign=HOSTILE)]}
    directory = write(tmp_path / "run", attacks=found, facts=told, campaigns=(HOSTILE,))
    source = build_report(directory)
    assert HOSTILE not in source
    dom = browse(write_report(directory))
    assert 'data-report="ready"' in dom
    assert "<title>stolen" not in dom
    assert "<title>1<" not in dom


def test_terminal_summarises_the_attacks(attacked: Path) -> None:
    lines = attack_lines(RunResult.load(attacked))
    assert len(lines) == 4, "guesses of two kinds, and two numbers of a third"
    queries, pooled = (
        "stayed in one cell through 4 queries, server 1",
        "answered a query, servers 1, 2 and 3 together",
    )
    for line, who, right in zip(lines[:2], (queries, pooled), (94, 48), strict=True):
        assert line.startswith(f"Of 100 drivers who {who} would name the right cell for about {right}; ")
        assert line.endswith("guessing without the system, for about 6.")
    assert "at most 220,000 vehicles (vehicles:100, rush, sampling)" in lines[-1]
    stream = io.StringIO()
    print_summary(attacked, Console(file=stream, width=200))
    assert all(line in stream.getvalue() for line in lines)


@pytest.mark.parametrize(
    ("change", "who", "does"),
    [
        ({}, "drivers who answered a query, server 1", "name the right cell for about 43"),
        ({"attack": "mine:Own"}, "drivers who answered a query, server 1", "name the right cell for about 43"),
        ({"metric": "queries", "value": 8.0}, "drivers who stayed in one cell through 8 queries, server 1", "name the"),
        ({"attack": "membership"}, "drivers who were as likely counted as left out, server 1", "say rightly which for"),
        ({"attack": "route", "metric": "whole_path"}, "drivers who were asked again and again, server 1", "name every"),
        ({"metric": "new_thing"}, "drivers who were attacked, server 1", "be right (new thing) for about 43"),
        ({"coalition": "mixer, network"}, "a query, the mixer and an observer of the network together", "name the"),
        ({"coalition": "operator:A/server:2"}, "a query, operator A’s server 2", "name the right"),
        ({"coalition": "none"}, "a query, any reader of what is published", "name the right"),
        ({"coalition": "vehicles:20"}, "a query, 20 corrupted vehicles", "name the right"),
        ({"success": 0.004}, "a query, server 1", "name the right cell for less than 1; guessing"),
        ({"success": 0.998}, "a query, server 1", "name the right cell for more than 99; guessing"),
    ],
)  # fmt: skip
def test_sentence_for_a_driver(change: dict[str, Any], who: str, does: str) -> None:
    found = guess("one", "server:1", 0.43, 0.4, metric="", campaign="rush") | change
    text = driver_sentence(found, OwnerNames())
    assert text.startswith("Of 100 drivers who ")
    assert f"{who} would {does}" in text
    assert text.endswith("; guessing without the system, for about 6.")
    assert driver_sentence(found, OwnerNames("ship", "ships"), "campaign rush").startswith(
        "In campaign rush, of 100 ships who "
    )


def test_numbers_for_a_reviewer_stand_beside_those_of_attacks_that_know_less(tmp_path: Path) -> None:
    none = dict.fromkeys(("prior", "success", "gain", "gain_low", "gain_high", "theory"))
    path = guess("routes", "server:1", 0.301, 0.305, attack="route", metric="whole_path", epsilon_lower=1.239)
    nulls = [path | {"metric": f"{name}_whole_path", "success": share} for name, share in NULL_SHARES.items()]
    others = [path | none | {"metric": "loss_route", "value": 8.0, "unit": "ε"}, path | {"metric": "", "success": 0.6}]
    assert reviewer_words(path, [path, *nulls, *others]) == (
        "30.1 % right; 95 % interval 28.1 % to 33.1 %; in theory 30.5 %; ε at least 1.23; each report alone 20 %; "
        "as if nobody moved 10 %"
    )
    assert reviewer_words(others[1], others).endswith("ε at least 1.23; whole route, ε 8.00")
    near = path | {"metric": "within_200_m", "value": 812.4, "unit": "m", "theory": None, "epsilon_lower": None}
    assert reviewer_words(near).endswith("to 33.1 %; 812 m off on average")
    run = write(tmp_path / "run", attacks=[path, *nulls, *others, *FOUND[:2]])
    said = attack_lines(RunResult.load(run))
    assert len([line for line in said if "every cell of the route" in line]) == 1, "none of an attack that knows less"
    # The guess of the greatest gain is on the first screen, before the errors.
    first = [text for text in sentences(RunResult.load(run)) if text.startswith("Of 100 drivers")]
    assert first == [said[0]]
    assert "name the right cell at one query for about 60; " in said[0]


def test_attack_rows_without_colluders_or_campaigns_are_shown(tmp_path: Path) -> None:
    """As another program might write them: only the columns with results."""
    found = pd.DataFrame(FOUND)[["name", "attack", "coalition", "mechanism", "prior", "success", "theory"]]
    text = Page(build_report(write(tmp_path / "run", attacks=found))).text
    assert "48.1 %" in text
    assert "Gain against the number of colluders" not in text
