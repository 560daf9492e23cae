"""The examples in collusion.md, over_time.md and week.md run, and show what the pages say."""

import re
import tomllib
from pathlib import Path

import pytest

import scenarios
from simulator import run
from simulator.pages.report import build_report

DOCS = Path(__file__).parents[2] / "docs"


def blocks_of(page):
    return re.findall(r"```toml\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)


def run_scenario_of(page, folder):
    path = folder / "mine.toml"
    path.write_text(*(text for text in blocks_of(page) if text.startswith("[scenario]")), encoding="utf-8")
    return run(path)


def test_two_operators_and_their_ledger(tmp_path):
    found = run_scenario_of("how/over_time.md", tmp_path)
    stored = found.claims[(found.claims["view"] == "received") & found.claims["at_delta_zero"]]
    limits = stored.set_index("coalition")["epsilon"]
    assert limits[["operator:transit/*", "operator:city/*", "operator:*/*"]].tolist() == [2.0, 3.0, 5.0]
    alone, share, both = found.attacks["theory"]
    assert (alone, both) == (pytest.approx(0.444, abs=1e-3), pytest.approx(0.476, abs=1e-3))
    assert share == pytest.approx(alone, abs=1e-12)
    assert found.ledger["outcome"].tolist() == ["asked"] * 5 + ["skipped"]
    assert found.ledger["reached"].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert "Who spent what of a driver’s budget" in build_report(found.save(tmp_path / "run"))


def test_own_coalition_runs():
    town = {"scenario.duration_s": 450, "traffic.vehicles": 1000, "traffic.parked": "answer", "campaigns.0.queries": 4}
    changed = scenarios.load("tiny").with_(town | tomllib.loads(blocks_of("how/collusion.md")[-1]))
    one, two, linked, last = run(changed).attacks.itertuples()
    assert last.coalition == "server:1, server:2 (from query 3 to 4), network, vehicles:50"
    assert (one.colluding, two.colluding, linked.colluding, last.colluding) == (1, 2, 3, 53)
    assert one.gain == 0
    assert two.gain_low > 0
    assert linked.theory > two.theory
    assert linked.gain_low > two.gain
    assert last.trials < linked.trials


def test_traces_over_several_queries(tmp_path):
    found = run_scenario_of("how/week.md", tmp_path).attacks.set_index(["name", "mechanism"])
    text, rows = (DOCS / "how/week.md").read_text(encoding="utf-8"), found[found["value"].isna()]["success"]
    shown = re.findall(r"^\| (pseudonyms|by bits|by response).*?\| (.+) % \| (.+) % \| (.+) % \|$", text, re.MULTILINE)
    for (_, *shares), name in zip(shown, ("link_pseudonyms", "bits_alone", "times_alone"), strict=True):
        assert [100 * rows[name, mechanism] for mechanism in ("exact", "kary", "memoised")] == pytest.approx(
            list(map(float, shares)), abs=0.05
        )
    assert rows["trace_counts", "exact"] == pytest.approx(0.9128, abs=5e-4)
    known = found[found["metric"] == "known_4"].loc["known_points"]["success"]
    assert known["exact"].round(3).tolist() == [0.0, 0.267]
