"""``[traffic] engine = "static"``: columns, rows that count, times, and what is wrong with them."""

from __future__ import annotations

import pytest

from scenarios import ScenarioError

PLACE = 'columns = {place = "p"}\n'


@pytest.fixture
def load_static(load, valid_text, tmp_path):
    (tmp_path / "owners.csv").write_text("p,n\na,1\n")
    start, end = valid_text.index("[traffic]"), valid_text.index("[[campaigns]]")

    def load_section(section, owners='owners = "owners.csv"\n'):
        return load(valid_text[:start] + f'[traffic]\nengine = "static"\n{owners}{section}\n' + valid_text[end:])

    return load_section


VALID = {
    "one row an owner": PLACE,
    "counts": 'columns = {place = "p", lon = "x", lat = "y", count = "n", period = "h"}\nduplicates = "greatest"\n'
    'fractions = "nearest"\nwhere = {h = 17, kind = ["ML", "OR"], open = true}\nwindow = [-75, 40, -73, 41]',
    "numbered": 'header = false\nseparator = "\\t"\ncolumns = {owner = 1, time = 2, lat = 3, lon = 4, place = 5}\n'
    'one_per = "owner"\nstart = "2010-01-01"\ndwell_s = 3600\nparked = "answer"',
    "planar": 'columns = {x = "x", y = "y", time = "t"}\ncrs = "EPSG:32618"\nstart = 5\ntime_unit = "h"',
}


@pytest.mark.parametrize("case", VALID)
def test_valid_section_round_trips(load_static, reloaded, case):
    scenario = load_static(VALID[case])
    assert reloaded(scenario) == scenario


def test_section_values_are_kept(load_static):
    traffic = load_static(VALID["counts"]).traffic
    assert traffic.where == {"h": (17,), "kind": ("ML", "OR"), "open": (True,)}
    assert traffic.columns.mapping() == {"place": "p", "lon": "x", "lat": "y", "count": "n", "period": "h"}
    assert traffic.window == (-75.0, 40.0, -73.0, 41.0)
    assert load_static(PLACE).traffic.duplicates is None


WRONG = [
    ("", "traffic.columns", "required"),
    ("columns = {}", "traffic.columns", "must give the position of owners"),
    ('columns = {place = "p", lon = "x"}', "traffic.columns", "lon and lat, or x and y, or neither"),
    ('columns = {lon = "a", lat = "b", x = "c", y = "d"}', "traffic.columns", "or neither"),
    ("columns = {place = true}", "traffic.columns.place", "name of a column, or its number"),
    ('columns = {place = ""}', "traffic.columns.place", "name of a column, or its number"),
    ('columns = {x = "x", y = "y"}', "traffic.crs", "need a coordinate reference system"),
    (PLACE + 'crs = "EPSG:32618"', "traffic.crs", "needs x and y"),
    (PLACE + "dwell_s = 5", "traffic.dwell_s", "needs columns.time"),
    (PLACE + "start = 5", "traffic.start", "needs columns.time"),
    ('columns = {place = "p", time = "t"}\nstart = true', "traffic.start", "text, or a number"),
    ('columns = {place = "p", time = "t"}\ndwell_s = 0', "traffic.dwell_s", "above 0"),
    (PLACE + 'one_per = "owner"', "traffic.one_per", "needs columns.owner"),
    ('columns = {place = "p", owner = "o", count = "n"}\none_per = "owner"', "traffic.one_per", "a row has several"),
    (PLACE + 'duplicates = "greatest"', "traffic.duplicates", "without columns.count"),
    (PLACE + 'duplicates = "mean"', "traffic.duplicates", "first"),
    (PLACE + "window = [1, 2, 3]", "traffic.window", "four numbers"),
    ('columns = {lon = "a", lat = "b"}\nwindow = [1, 2, 0, 3]', "traffic.window", "lon_min must be below lon_max"),
    (PLACE + "window = [1, 2, 3, 4]", "traffic.window", "needs columns.lon"),
    (PLACE + "where = {h = [[1]]}", "traffic.where.h", "or a list of them"),
    (PLACE + "vehicles = 5", "traffic.vehicles", "unknown key"),
]


@pytest.mark.parametrize(("section", "where", "words"), WRONG, ids=[str(i) for i in range(len(WRONG))])
def test_each_invalid_section_names_its_rule(load_static, only_fault, section, where, words):
    only_fault(lambda: load_static(section), where, words)


def test_owner_table_must_exist(load_static):
    with pytest.raises(ScenarioError, match="there is no such file"):
        load_static(PLACE, owners='owners = "none.csv"\n')
    with pytest.raises(ScenarioError, match=r"traffic\.owners"):
        load_static(PLACE, owners="")
