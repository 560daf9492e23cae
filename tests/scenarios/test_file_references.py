"""References to files are found, kept runnable from anywhere, or explained."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import scenarios
from scenarios import ScenarioError
from scenarios.references import data_set, manifest_path


def test_relative_reference_is_resolved_from_the_scenario_file(load, tables_text, tmp_path, monkeypatch):
    scenario = load(tables_text)
    assert scenario.roads.nodes == str((tmp_path / "nodes.csv").resolve())
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    again = elsewhere / "again.toml"
    again.write_text(scenarios.dump(scenario), encoding="utf-8")
    assert scenarios.load(again) == scenario


def test_dumped_scenario_names_files_relative_to_its_folder(load, tables_text, tmp_path):
    scenario = load(tables_text)
    folder = tmp_path / "runs" / "small-1"
    folder.mkdir(parents=True)
    text = scenarios.dump(scenario, folder=folder)
    assert 'nodes = "../../nodes.csv"' in text
    (folder / "scenario.toml").write_text(text, encoding="utf-8")
    assert scenarios.load(folder / "scenario.toml") == scenario
    assert scenarios.dump(scenario, folder=Path("/no/such/folder")) == scenarios.dump(scenario)


def test_data_reference_is_kept_unchanged(load, tables_text, tmp_path, monkeypatch):
    monkeypatch.setenv("CROWDVEIL_DATA", str(tmp_path))
    file = tmp_path / "mine" / "deep" / "nodes.csv"
    file.parent.mkdir(parents=True)
    file.touch()
    reference = "data:mine/deep/nodes.csv"
    assert load(tables_text, overrides=[f"roads.nodes='{reference}'"]).roads.nodes == reference
    assert scenarios.locate(reference) == file
    assert scenarios.locate(str(file)) == file


@pytest.mark.parametrize("folder_is_set", [True, False])
def test_missing_data_message_names_file_source_and_instructions(monkeypatch, tmp_path, folder_is_set):
    if folder_is_set:
        monkeypatch.setenv("CROWDVEIL_DATA", str(tmp_path))
    else:
        monkeypatch.delenv("CROWDVEIL_DATA", raising=False)
    with pytest.raises(ScenarioError) as caught:
        scenarios.load("manhattan-osm")
    assert [fault.path for fault in caught.value.faults] == ["roads.nodes", "roads.edges"]
    nodes, edges = str(caught.value).splitlines()[1:]
    for file, line in (("nodes", nodes), ("edges", edges)):
        assert f"osm_drive_graphs/manhattan_{file}.csv.gz" in line
        assert "CROWDVEIL_DATA" in line
    for fragment in (
        "https://github.com/humbertocarmona/CrackingCities",
        "licence: not stated; derived from OpenStreetMap",
        "To get it: ",
    ):
        assert fragment in nodes
        assert fragment not in edges  # one data set is named once


def test_data_reference_unknown_to_the_manifest_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("CROWDVEIL_DATA", str(tmp_path))
    with pytest.raises(ScenarioError, match="has no folder nowhere"):
        scenarios.locate("data:nowhere/file.csv")
    with pytest.raises(ScenarioError, match=r"lists no file oslo\.csv"):
        scenarios.locate("data:osm_drive_graphs/oslo.csv")


def test_the_manifest_is_complete():
    tables = tomllib.loads(manifest_path().read_text(encoding="utf-8"))["dataset"]
    assert len({table["folder"] for table in tables}) == len(tables)
    for table in tables:
        for key in ("title", "owner_page", "origin", "licence", "attribution", "obtain", "defects"):
            assert table[key], (table["folder"], key)
        assert data_set(table["folder"]) is not None
        for file in table["files"]:
            assert int(file["sha256"], 16).bit_length() > 200
            assert len(file["sha256"]) == 64
            assert file["bytes"] > 0
            assert file["compression"] in {"gzip", "none"}


def test_missing_file_is_refused():
    with pytest.raises(ScenarioError, match="no such file"):
        scenarios.locate("not/there.csv")
