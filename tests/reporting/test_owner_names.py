"""Names of the counted owners in the report and the command."""

from __future__ import annotations

import re

import pytest

import scenarios
from scenarios import ScenarioError
from simulator import run
from simulator.pages.report import write_report
from simulator.results.names import OwnerNames
from simulator.results.run_record import RunRecord

PATIENTS = """
[scenario]
name = "ward"
duration_s = 100
[roads]
source = "none"
[cells]
kind = "locations"
[traffic]
engine = "static"
owners = "ward.csv"
columns = {place = "age"}
CALLED
[[campaigns]]
start_s = 0
queries = 2
every_s = 20
round_gap_s = 5
deadline_s = 5
[[mechanisms]]
kind = "sampling_privacy"
sampling = 0.45
"""


def _scenario(folder, words):
    (folder / "ward.csv").write_text("age\n" + "30-39\n" * 7 + "40-49\n" * 5)
    path = folder / "ward.toml"
    path.write_text(PATIENTS.replace("CALLED", words), encoding="utf-8")
    return path


def test_report_uses_the_given_names_of_owners(tmp_path):
    result = run(_scenario(tmp_path, 'called = ["patient", "patients"]'))
    result.save(tmp_path / "out")
    page = write_report(tmp_path / "out").read_text(encoding="utf-8")
    words = page[: page.index('id="traffic"')]
    body = re.sub(r"<[^>]*>", " ", words[words.index("<body") :])
    assert re.search(r"The error in a cell is [\d.]+ patients \(root mean square\)", body)
    assert "patients in the run" in body
    assert "Who can learn what about a patient" in body
    assert not re.search("vehicle|driver", body)


def test_default_owner_names_are_vehicles(tmp_path):
    result = run(_scenario(tmp_path, ""))
    assert result.facts["called"] == ["vehicle", "vehicles"]
    assert RunRecord.model_fields["called"].default == tuple(result.facts["called"]) == OwnerNames()
    assert OwnerNames().person == "a driver"
    assert OwnerNames("owner", "owners").person == "an owner"
    assert OwnerNames("owner", "owners").unit("m/s") == "m/s"


@pytest.mark.parametrize("words", ['["patient"]', '["", "patients"]', '"patients"', '["a", "b", "c"]', "[1, 2]"])
def test_owner_names_need_two_words(tmp_path, words):
    with pytest.raises(ScenarioError, match=r"traffic\.called"):
        scenarios.load(_scenario(tmp_path, f"called = {words}"))
