"""`[roads]` with the keys that every version accepts, and with common unit names."""

import pytest

import scenarios
from scenarios.field_types import METRES, SECONDS

REST = """
cells = {kind = "square", size_m = 500}
traffic = {vehicles = 10, demand = "uniform"}
campaigns = [{name = "c", start_s = 100, queries = 1}]
mechanisms = [{name = "np", kind = "no_privacy"}]
"""
TNTP = """source = "tntp"
network = "a"
nodes = "b"
length_unit = "{length}"
time_unit = "{time}"
crs = "EPSG:3435"
capacity_vph = 1700
"""
SOURCES = {
    "osm": 'source = "osm"\npath = "a"\ncapacity_vph = 1700\n',
    "sumo": 'source = "sumo"\npath = "a"\ncapacity_vph = 1700\n',
    "tntp": TNTP.format(length="ft", time="min"),
    "gmns": 'source = "gmns"\npath = "g"\ncapacity_vph = 1700\n',
}


def read(folder, roads):
    for name in ("a", "b"):
        (folder / name).write_text("", encoding="utf-8")
    (folder / "g").mkdir(exist_ok=True)
    sections = f'[scenario]\nname = "x"\nseed = 1\nduration_s = 600\n[roads]\n{roads}'
    (folder / "s.toml").write_text(REST + sections, encoding="utf-8")
    return scenarios.load(str(folder / "s.toml"))


@pytest.mark.parametrize("source", sorted(SOURCES))
def test_documented_keys_suffice(source, tmp_path):
    assert read(tmp_path, SOURCES[source]).roads.capacity_vph == 1700


def test_only_a_network_whose_links_are_the_cells_needs_no_coordinates(tmp_path, monkeypatch):
    text = TNTP.format(length="ft", time="min").replace('nodes = "b"\n', "").replace('crs = "EPSG:3435"\n', "")
    with pytest.raises(scenarios.ScenarioError, match=r'roads\.nodes: is required: .* set cells\.kind = "roads"'):
        read(tmp_path, text)
    monkeypatch.setitem(globals(), "REST", REST.replace('kind = "square", size_m = 500', 'kind = "roads"'))
    assert read(tmp_path, text).roads.nodes is None
    with pytest.raises(scenarios.ScenarioError, match=r"roads\.crs: needs nodes"):
        read(tmp_path, text + 'crs = "EPSG:3435"\n')


@pytest.mark.parametrize("unit", sorted(METRES))
def test_every_name_of_a_length_unit_is_accepted(unit, tmp_path):
    assert read(tmp_path, TNTP.format(length=unit, time="h")).roads.length_unit == unit


@pytest.mark.parametrize("unit", sorted(SECONDS))
def test_every_name_of_a_time_unit_is_accepted(unit, tmp_path):
    assert read(tmp_path, TNTP.format(length="mile", time=unit)).roads.time_unit == unit


def test_singular_and_plural_are_one_unit():
    pairs = [(METRES, "metre"), (METRES, "meter"), (METRES, "mile"), (SECONDS, "minute"), (SECONDS, "hour")]
    assert all(units[one] == units[f"{one}s"] for units, one in pairs)
    assert METRES["foot"] == METRES["feet"] == 0.3048
