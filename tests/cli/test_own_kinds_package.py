"""A package with a kind of one's own for each role, installed by pip: used by its names, and by Python, and checked."""

import json
import os

import pytest
from installation import execute

CLASSES = ("PlainResponse", "TrimmedMean", "MostFrequent")
SCENARIO = """
scenario = {{name = "own-kinds", duration_s = 900}}
roads = {{source = "grid", rows = 4, columns = 4, spacing_m = 200}}
cells = {{kind = "square", size_m = 300}}
traffic = {{vehicles = 300}}
campaigns = [{{start_s = 120, queries = 2, every_s = 120}}]
mechanisms = [
    {{kind = "{mechanism}", name = "own", epsilon = 2.0}},
    {{kind = "no_privacy"}},
]
aggregation = {{kind = "{aggregator}", servers = 5}}
attacks = [{{kind = "{attack}", coalition = ["server:1", "server:2", "server:3", "server:4", "server:5"]}}]
"""
NAMES = {"mechanism": "plain-response", "aggregator": "trimmed-mean", "attack": "most-frequent"}
DOTTED = {
    "mechanism": "own_kinds:PlainResponse",
    "aggregator": "own_kinds:TrimmedMean",
    "attack": "own_kinds:MostFrequent",
}

pytestmark = pytest.mark.slow


@pytest.fixture
def call(installed, tmp_path):
    """Call a program of the installation, in an empty folder and without this process's environment variables."""
    named = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CROWDVEIL"))}
    return lambda name, *arguments, status=0: execute(
        installed / name, *arguments, status=status, cwd=tmp_path, env=named
    )


@pytest.mark.parametrize("names", [NAMES, DOTTED], ids=["entry points", "dotted"])
def test_scenario_uses_every_role(call, tmp_path, names):
    (tmp_path / "own.toml").write_text(SCENARIO.format(**names), encoding="utf-8")
    if names is NAMES:
        refused = call("crowdveil", "run", "own.toml", status=2)
        assert refused.count("only with permission") == 3
        call("crowdveil", "scenarios", "check", "own.toml", "--allow-plugins")
    call("crowdveil", "run", "own.toml", "--allow-plugins", "--out", "kept", "--quiet")
    facts = json.loads((tmp_path / "kept" / "run.json").read_text(encoding="utf-8"))
    assert set(facts["plug_ins"]) == set(names.values())
    assert all(len(checksum) == 64 for checksum in facts["plug_ins"].values())
    assert facts["vehicles"] == 300
    assert (tmp_path / "kept" / "report.html").is_file()


def test_python_uses_the_classes(call):
    code = """
import crowdveil as cv, own_kinds as own
result = cv.run(cv.Scenario(
    scenario={"name": "own", "duration_s": 900},
    roads={"source": "grid", "rows": 4, "columns": 4, "spacing_m": 200},
    cells={"kind": "square", "size_m": 300},
    traffic={"vehicles": 300},
    campaigns=[{"start_s": 120, "queries": 2, "every_s": 120}],
    mechanisms=[{"kind": own.PlainResponse, "name": "own", "epsilon": 2.0}, {"kind": "no_privacy"}],
    aggregation={"kind": own.TrimmedMean(5)},
    attacks=[{"kind": own.MostFrequent, "coalition": ["server:1"]}],
))
assert set(result.attacks["mechanism"]) == {"own", "no_privacy"}
print(result.scores[["mechanism", "rmse"]])
"""
    assert "no_privacy" in call("python", "-c", code)


@pytest.mark.parametrize("name", CLASSES)
def test_kinds_pass_their_kits(call, name):
    parameters = ("--set", "epsilon=1", "--quick") if name == "PlainResponse" else ()
    call("crowdveil", "check", f"own_kinds:{name}", *parameters)
