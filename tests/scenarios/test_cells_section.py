"""``[cells]``: each kind with its keys, and what is wrong with them."""

from __future__ import annotations

import pytest


@pytest.fixture
def load_cells(load, valid_text, tmp_path):
    (tmp_path / "places.csv").write_text("name,lon,lat\na,1,2\n")
    (tmp_path / "districts.geojson").write_text("{}")
    start, end = valid_text.index("[cells]"), valid_text.index("[traffic]")

    def load_section(section):
        return load(valid_text[:start] + f"[cells]\n{section}\n" + valid_text[end:])

    return load_section


VALID = {
    "h3": 'kind = "h3"\nresolution = 9\nbounds = [0, 0, 500, 500]',
    "zones": 'kind = "zones"\nfile = "districts.geojson"\nname = "district"\nlevel = 1',
    "layer": 'kind = "zones"\nfile = "districts.geojson"\nlayer = "parks"',
    "roads": 'kind = "roads"\nper = "road"\nclasses = ["primary", "trunk"]\ntop = 50\nlevel = 2',
    "stations": 'kind = "stations"\nfile = "places.csv"\ncolumns = {name = "name", lon = "lon", lat = "lat"}\n'
    'names = ["a"]\nlabels = {a = "the first"}\nradius_m = 250',
    "numbered": 'kind = "stations"\nfile = "places.csv"\nheader = false\ncolumns = {name = 1, x = 2, y = 3}\n'
    'crs = "EPSG:32618"\nseparator = ";"\nwhere = {1 = "a", 2 = [1, 2]}',
    "locations": 'kind = "locations"\ntop = 10',
    "named": 'kind = "locations"\nnames = ["b", "a"]\nlevel = 1',
    "of a file": 'kind = "locations"\nfile = "places.csv"\ncolumns = {name = "name", lon = "lon", lat = "lat"}',
    "merged": 'kind = "square"\nsize_m = 50\nlevel = 3',
}


@pytest.mark.parametrize("case", VALID)
def test_valid_section_round_trips(load_cells, reloaded, case):
    scenario = load_cells(VALID[case])
    assert reloaded(scenario) == scenario


def test_section_values_are_kept(load_cells):
    stations = load_cells(VALID["numbered"]).cells
    assert stations.columns.mapping() == {"name": 1, "x": 2, "y": 3}
    assert stations.where == {"1": ("a",), "2": (1, 2)}
    assert load_cells('kind = "roads"').cells.within_m == 30.0
    assert load_cells('kind = "roads"').cells.level == 0


FILE = 'file = "places.csv"\n'
COLUMNS = 'columns = {name = "name", lon = "lon", lat = "lat"}\n'
WRONG = [
    ('kind = "hexagon"', "cells.kind", '"roads", "stations", "locations"'),
    ('kind = "h3"', "cells.resolution", "required"),
    ('kind = "zones"', "cells.file", "required"),
    ('kind = "zones"\nfile = "nowhere.geojson"', "cells.file", "no such file"),
    ('kind = "h3"\nresolution = 16', "cells.resolution", "15"),
    ('kind = "h3"\nresolution = 9\nbounds = [5, 0, 5, 9]', "cells.bounds", "x_min must be below x_max"),
    ('kind = "roads"\nper = "lane"', "cells.per", "link"),
    ('kind = "roads"\ntop = 0', "cells.top", "at least 1"),
    ('kind = "roads"\nlevel = -1', "cells.level", "at least 0"),
    ('kind = "roads"\nsize_m = 3', "cells.size_m", "unknown key"),
    ('kind = "stations"\n' + COLUMNS, "cells.file", "required"),
    ('kind = "stations"\nfile = "none.csv"\n' + COLUMNS, "cells.file", "there is no such file"),
    ('kind = "stations"\n' + FILE + 'columns = {name = "n", lon = "a"}', "cells.columns", "either lon and lat"),
    ('kind = "stations"\n' + FILE + "columns = {name = 0, lon = 1, lat = 2}", "cells.columns.name", "from 1"),
    ('kind = "stations"\n' + FILE + 'columns = {name = "n", x = "a", y = "b"}', "cells.crs", "EPSG:32618"),
    ('kind = "stations"\n' + FILE + COLUMNS + 'crs = "EPSG:32618"', "cells.crs", "needs x and y"),
    ('kind = "stations"\n' + FILE + COLUMNS + 'separator = "::"', "cells.separator", "one character"),
    ('kind = "stations"\n' + FILE + COLUMNS + "where = {a = []}", "cells.where.a", "or a list of them"),
    ('kind = "stations"\n' + FILE + COLUMNS + "names = []", "cells.names", "1"),
    ('kind = "locations"\n' + FILE, "cells.columns", "required with file"),
    ('kind = "locations"\n' + COLUMNS, "cells.columns", "needs file"),
    ('kind = "locations"\nheader = false', "cells.header", "needs file"),
    ('kind = "locations"\ntop = 3\nnames = ["a"]', "cells.top", "left out where names are given"),
    ('kind = "locations"\ntop = 3\n' + FILE + COLUMNS, "cells.top", "cannot be used with file"),
]


@pytest.mark.parametrize(("section", "where", "words"), WRONG, ids=[str(i) for i in range(len(WRONG))])
def test_each_invalid_section_names_its_rule(load_cells, only_fault, section, where, words):
    only_fault(lambda: load_cells(section), where, words)
