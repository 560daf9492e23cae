"""Runs over static data owners: synthetic ones, and the papers' data sets if available."""

import pytest

from scenarios import ScenarioError
from simulator import run

TEXT = """
scenario = {{name = "counted", duration_s = 600}}
roads = {{source = "none"}}
mechanisms = [
    {{name = "baseline", kind = "no_privacy"}},
    {{name = "sampling", kind = "sampling_privacy", sampling = 0.45}},
]
[cells]
{cells}
[traffic]
engine = "static"
owners = "owners.csv"
columns = {columns}
{traffic}
[[campaigns]]
name = "all"
start_s = 0
queries = 3
every_s = 200
round_gap_s = 20
"""
STATIONS = "station,n,lon,lat\nnorth,5,-73.99,40.75\nsouth,300,-73.99,40.74\nfar,7,-73.90,40.75\n"


@pytest.fixture
def scenario(tmp_path):
    def write(rows, *, cells, columns, traffic=""):
        (tmp_path / "owners.csv").write_text(rows)
        path = tmp_path / "counted.toml"
        path.write_text(TEXT.format(cells=cells, columns=columns, traffic=traffic))
        return path

    return write


def truths(result, query=1):
    rows = result.estimates
    rows = rows[(rows["mechanism"] == "baseline") & (rows["query"] == query)].sort_values("cell")
    assert (rows["estimate"] == rows["truth"]).all()
    return dict(zip(result.cells["name"], rows["truth"].astype(int), strict=True))


COLUMNS = '{place = "station", count = "n", lon = "lon", lat = "lat"}'


def test_owners_are_counted_at_named_locations(scenario):
    result = run(scenario(STATIONS, cells='kind = "locations"', columns=COLUMNS))
    assert truths(result) == {"north": 5, "south": 300, "far": 7}
    assert result.facts["vehicles"] == 312
    assert result.facts["city"]["crs"] == "EPSG:32618"
    assert (result.cells.geometry.geom_type == "Point").all()
    chosen = 'kind = "locations"\nnames = ["far", "south"]\nlabels = {far = "Far away"}'
    assert truths(run(scenario(STATIONS, cells=chosen, columns=COLUMNS))) == {"Far away": 7, "south": 300}


def test_choice_of_busiest_locations_by_truth_is_noted(scenario):
    result = run(scenario(STATIONS, cells='kind = "locations"\ntop = 2', columns=COLUMNS))
    assert truths(result) == {"south": 300, "far": 7}
    (note,) = [note for note in result.facts["city"]["notes"] if "busiest" in note]
    assert "chosen by the truth itself" in note


def test_owners_are_counted_in_squares_hexagons_and_at_stations(scenario, tmp_path):
    for cells in ('kind = "square"\nsize_m = 500', 'kind = "h3"\nresolution = 9', 'kind = "geographic"'):
        found = truths(run(scenario(STATIONS, cells=cells, columns=COLUMNS)))
        assert sorted(count for count in found.values() if count) == [5, 7, 300]
    (tmp_path / "places.csv").write_text("id;x;y\n1;-73.99;40.7501\n2;-73.9;40.7\n")
    near = 'kind = "stations"\nfile = "places.csv"\nseparator = ";"\ncolumns = {name = "id", lon = "x", lat = "y"}'
    assert truths(run(scenario(STATIONS, cells=near, columns=COLUMNS))) == {"1": 5, "2": 0}
    wide = near + "\nradius_m = 1200"
    assert truths(run(scenario(STATIONS, cells=wide, columns=COLUMNS))) == {"1": 305, "2": 0}


def test_unmapped_groups_merge_with_their_neighbours(scenario):
    rows = "size\n" + "10-14\n" * 4 + "0-4\n" * 2 + "5-9\n" * 3
    result = run(scenario(rows, cells='kind = "locations"', columns='{place = "size"}'))
    assert truths(result) == {"0-4": 2, "5-9": 3, "10-14": 4}
    merged = run(scenario(rows, cells='kind = "locations"\nlevel = 1', columns='{place = "size"}'))
    assert truths(merged) == {"0-4 +1": 5, "10-14": 4}


def test_owners_are_counted_only_between_arrival_and_departure(scenario):
    rows = "p,t\na,0\na,100\nb,150\nb,500\n"
    timed = {"cells": 'kind = "locations"', "columns": '{place = "p", time = "t"}'}
    result = run(scenario(rows, **timed, traffic="dwell_s = 110"))
    # The truth is of round two, at 20, 220 and 420 s, of the owners present in round one, at 0, 200 and 400 s.
    assert [truths(result, query) for query in (1, 2, 3)] == [{"a": 1, "b": 0}, {"a": 1, "b": 1}, {"a": 0, "b": 0}]
    result = run(scenario(rows, **timed, traffic='dwell_s = 110\nparked = "answer"'))
    assert [truths(result, query) for query in (1, 2, 3)] == [{"a": 1, "b": 0}, {"a": 2, "b": 1}, {"a": 2, "b": 1}]
    traffic_totals = result.facts["traffic_at_queries"]
    assert [(row["departed"], row["on_road"], row["arrived"]) for row in traffic_totals] == [
        (1, 1, 0),
        (3, 2, 1),
        (3, 0, 3),
    ]


FAULTS = [
    ('kind = "roads"', COLUMNS, "", "cells", 'kind = "roads" needs roads'),
    ('kind = "locations"\nnames = ["nord"]', COLUMNS, "", "cells", "there is no place 'nord' (did you mean north?)"),
    (
        'kind = "locations"',
        '{lon = "lon", lat = "lat", count = "n"}',
        "",
        "cells",
        "the data owners' places have no names",
    ),
    ('kind = "locations"', '{place = "stop"}', "", "traffic", "no column 'stop'"),
    ('kind = "locations"', '{place = "station"}', "where = {n = 8}", "traffic", "of its 3 rows, none has n = 8"),
    ('kind = "locations"\nlabels = {nord = "N"}', COLUMNS, "", "cells", "labels: there is no place 'nord'"),
]


@pytest.mark.parametrize(("cells", "columns", "traffic", "path", "words"), FAULTS, ids=range(len(FAULTS)))
def test_section_that_does_not_fit_the_data_is_a_scenario_fault(scenario, cells, columns, traffic, path, words):
    with pytest.raises(ScenarioError) as caught:
        run(scenario(STATIONS, cells=cells, columns=columns, traffic=traffic))
    assert [fault.path for fault in caught.value.faults] == [path]
    assert words in caught.value.faults[0].rule


def test_static_owners_have_no_speed(scenario):
    path = scenario(STATIONS, cells='kind = "locations"', columns=COLUMNS)
    path.write_text(path.read_text().replace('name = "all"', 'name = "all"\nstatistic = "mean_speed"'))
    with pytest.raises(ScenarioError, match=r"campaigns\.all\.upper_mps: is required where no roads bound speeds"):
        run(path)
    path.write_text(path.read_text().replace('name = "all"', 'name = "all"\nupper_mps = 30'))
    with pytest.raises(ScenarioError, match=r"campaigns\.all\.statistic: .* data owners do not move"):
        run(path)
