"""Keys of ``[traffic] engine = "trace"``, ``[fcd]`` and ``[report]``, and the errors they refuse."""

from __future__ import annotations

import pytest

import scenarios
from scenarios import ScenarioError

RUN = """
scenario = {name = "replay", duration_s = 600}
roads = {source = "none"}
cells = {kind = "square", size_m = 500}
campaigns = [{start_s = 120}]
mechanisms = [{kind = "no_privacy"}]
[traffic]
engine = "trace"
trace = "cab.csv"
"""


@pytest.fixture
def load_trace(load, tmp_path):
    (tmp_path / "cab.csv").write_text("vehicle,time,lon,lat\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "bus.csv").write_text("vehicle,time,lon,lat\n")

    def with_lines(*lines: str, after: str = "") -> scenarios.Scenario:
        text = RUN.replace(
            'trace = "cab.csv"', "\n".join(['trace = "cab.csv"', *lines]) if lines else 'trace = "cab.csv"'
        )
        return load(text + after)

    return with_lines


def _faults(load, *lines, after=""):
    with pytest.raises(ScenarioError) as caught:
        load(*lines, after=after)
    return {fault.path: fault.rule for fault in caught.value.faults}


def test_trace_may_be_a_file_a_list_or_a_folder(load_trace, load, tmp_path):
    assert load_trace().traffic.trace == (str(tmp_path / "cab.csv"),)
    several = load(RUN.replace('"cab.csv"', '["cab.csv", "more"]'))
    assert several.traffic.trace == (str(tmp_path / "cab.csv"), str(tmp_path / "more"))
    found = dict(scenarios.files_of(several.traffic))
    assert sorted(path.name for path in found.values()) == ["bus.csv", "cab.csv"]
    assert load(RUN, overrides=["traffic.trace=more"]).traffic.trace == (str(tmp_path / "more"),)


def test_trace_section_round_trips(load_trace, reloaded):
    scenario = load_trace(
        'columns = {vehicle = "v", time = "t", lon = "x", lat = "y", speed_kph = "s"}',
        'start = "2008-05-17T10:00:00Z"',
        'time_unit = "min"',
        'match = "hmm"',
        "match_noise_m = 5",
        after='\n[fcd]\nevery_s = 5\nformats = ["sumo", "parquet"]\n',
    )
    assert reloaded(scenario) == scenario
    assert scenario.traffic.columns.mapping() == {
        "vehicle": "v", "time": "t", "lon": "x", "lat": "y", "speed_kph": "s"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "path", "words"),
    [
        ("gap_s = 0", "traffic.gap_s", "0"),
        ("hold_s = -1", "traffic.hold_s", "0"),
        ('format = "excel"', "traffic.format", "auto"),
        ('order = "down"', "traffic.order", "any"),
        ("start = true", "traffic.start", "recorded time"),
        ('crs = "EPSG:32632"\ncolumns = {lon = "a", lat = "b"}', "traffic.crs", "needs x and y"),
        ('columns = {x = "a", y = "b"}', "traffic.crs", "need a coordinate reference system"),
        ('crs = "nowhere"', "traffic.crs", "PROJ"),
        ('columns = {x = "a", lon = "b"}', "traffic.columns", "lon and lat, or x and y"),
        ('columns = {speed_mps = "a", speed_kph = "b"}', "traffic.columns", "one speed"),
        ("match_m = 5", "traffic.match_m", "needs match = nearest or hmm"),
        ('match = "nearest"\nmatch_noise_m = 5', "traffic.match_noise_m", "needs match = hmm"),
        ("vehicles = 5", "traffic.vehicles", "unknown key"),
    ],
)
def test_invalid_trace_keys_are_refused(load_trace, line, path, words):
    faults = _faults(load_trace, line)
    assert words in faults[path]


def test_missing_file_is_refused(load):
    with pytest.raises(ScenarioError, match=r"traffic\.trace.*there is no such file"):
        load(RUN.replace("cab.csv", "none.csv"))
    with pytest.raises(ScenarioError, match=r"traffic\.trace"):
        load(RUN.replace('trace = "cab.csv"', "trace = []"))


@pytest.mark.parametrize(
    ("lines", "path", "words"),
    [
        ("every_s = 0", "fcd.every_s", "0"),
        ("formats = []\nevery_s = 1", "fcd.formats", ""),
        ('formats = ["sumo", "sumo"]\nevery_s = 1', "fcd.formats", "must name each once, and sumo occurs 2 times"),
        ('formats = ["excel"]\nevery_s = 1', "fcd.formats[0]", "parquet"),
        ("every_s = 1\nfrom_s = 30\nto_s = 20", "fcd.from_s", "at most to_s = 20"),
        ("every_s = 1\nto_s = 601", "fcd.to_s", "at most scenario.duration_s = 600"),
        ("", "fcd.every_s", "required"),
        ("every_s = 1\ncolour = 3", "fcd.colour", "unknown key"),
    ],
)
def test_invalid_fcd_keys_are_refused(load_trace, lines, path, words):
    faults = _faults(load_trace, after=f"\n[fcd]\n{lines}\n")
    assert words in faults[path]


def test_fcd_is_none_without_its_section(load_trace):
    assert load_trace().fcd is None


@pytest.mark.parametrize("written", ["%H:%M:%S", "%d/%m/%Y", "dd/mm/yyyy", "%Q", ""])
def test_time_format_needs_date_and_time_of_day(load_trace, written):
    faults = _faults(load_trace, f'time_format = "{written}"')
    assert "must be the format of a date and a time of day" in faults["traffic.time_format"]


def test_time_format_excludes_time_unit(load_trace):
    assert load_trace('time_format = "%d/%m/%Y %H:%M:%S%z"').traffic.time_format == "%d/%m/%Y %H:%M:%S%z"
    assert (
        "must be left out"
        in _faults(load_trace, 'time_format = "%m-%d-%y %H:%M"', 'time_unit = "min"')["traffic.time_unit"]
    )


def test_single_vehicles_of_recordings_are_shown_only_on_request(load_trace):
    assert scenarios.load("tiny").shows_vehicles
    assert not load_trace().shows_vehicles
    assert load_trace(after="\n[report]\nvehicles = true\n").shows_vehicles
    assert not scenarios.load("breast-cancer").shows_vehicles  # engine static
    assert list(_faults(load_trace, after="\n[report]\nvehicles = 1\n")) == ["report.vehicles"]
