"""`crowdveil roads`: printed output, written files, refusals."""

import pytest

PLACES = ((1, -96.78, 43.61), (2, -96.70, 43.60), (3, -96.74, 43.58))
LINKS = ((1, 2), (2, 3), (3, 1), (2, 1))
SCENARIO = """
scenario = {{name = "mine", duration_s = 120}}
cells = {{kind = "square", size_m = 2000}}
traffic = {{vehicles = 20}}
campaigns = [{{start_s = 30, round_gap_s = 10}}]
mechanisms = [{{kind = "sampling_privacy", sampling = 0.4}}]
[roads]
{roads}
"""
TNTP = """source = "tntp"
network = "net.tntp"
nodes = "node.tntp"
length_unit = "km"
time_unit = "minutes"
"""


@pytest.fixture
def folder(tmp_path):
    """The folder of a scenario, in which `call` calls."""
    rows = "".join(f"{a} {b} 1800 8 10 0.15 4 0 0 1 ;\n" for a, b in LINKS)
    header = "<NUMBER OF ZONES> 3\n<NUMBER OF NODES> 3\n<FIRST THRU NODE> 1\n<NUMBER OF LINKS> 4\n<END OF METADATA>\n"
    (tmp_path / "net.tntp").write_text(header + rows, encoding="utf-8")
    nodes = "node X Y ;\n" + "".join(f"{node} {x} {y} ;\n" for node, x, y in PLACES)
    (tmp_path / "node.tntp").write_text(nodes, encoding="utf-8")
    (tmp_path / "mine.toml").write_text(SCENARIO.format(roads=TNTP), encoding="utf-8")
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_show_prints_size_and_notes(call):
    done = call("roads", "show", "mine.toml")
    assert done.returncode == 0, done.stderr
    words = done.stdout.split()
    for name, value in (("nodes", "3"), ("links", "4"), ("length", "32.0"), ("zones", "3"), ("crs", "EPSG:32614")):
        assert words[words.index(name) + 1] == value
    assert "note: " in done.stdout
    assert "lanes are guessed, one for each 1800 vehicles/h" in done.stdout


@pytest.mark.usefixtures("folder")
def test_set_changes_the_roads_that_are_read(call):
    done = call("roads", "show", "mine.toml", "--set", "roads.length_unit=miles")
    assert "51.5 km" in done.stdout


def test_exported_roads_are_read_back_unchanged(call, folder):
    done = call("roads", "export", "mine.toml", "out.gpkg")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "out.gpkg: 3 nodes and 4 links written\n"
    roads = 'source = "geopackage"\npath = "out.gpkg"'
    (folder / "again.toml").write_text(SCENARIO.format(roads=roads), encoding="utf-8")
    shown = call("roads", "show", "again.toml")
    assert "32.0 km" in shown.stdout
    assert "EPSG:32614" in shown.stdout
    checked = call("scenarios", "check", "again.toml")
    assert checked.returncode == 0, checked.stderr
    refused = call("roads", "export", "mine.toml", "out.gpkg")
    assert refused.returncode == 2
    assert "overwrite" in refused.stderr
    assert call("roads", "export", "again.toml", "out.gpkg", "--overwrite").returncode == 0
    assert "32.0 km" in call("roads", "show", "again.toml").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(("show", "nowhere"), "no scenario of this name", id="no scenario"),
        pytest.param(("export", "mine.toml", "out.shp"), "must end in .gpkg", id="suffix"),
        pytest.param(("export", "mine.toml", "net.tntp/out.gpkg"), "net.tntp", id="file"),
        pytest.param(("export", "mine.toml", "out.gpkg", "--format", "gmns"), "--format", id="option"),
        pytest.param(("show", "mine.toml", "--set", "roads.crs=EPSG:3435"), "node.tntp: lines 2, 3", id="crs"),
        pytest.param(("show", "mine.toml", "--set", "roads.length_unit=yards"), "roads.length_unit", id="unit"),
    ],
)
def test_invalid_arguments_give_one_message_and_exit_with_2(call, folder, arguments, message):
    before = sorted(folder.iterdir())
    done = call("roads", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(folder.iterdir()) == before


def test_a_malformed_file_is_named_with_its_line(call, folder):
    text = (folder / "net.tntp").read_text(encoding="utf-8")
    (folder / "net.tntp").write_text(text.replace("2 3 1800", "2 2 1800"), encoding="utf-8")
    done = call("run", "mine.toml")
    assert done.returncode == 2
    assert "net.tntp: line 7: term_node must be another node than init_node, got '2'" in done.stderr
    assert not (folder / "runs").exists()


def test_a_scenario_without_roads(call, folder):
    roads = 'source = "none"'
    text = SCENARIO.format(roads=roads)
    (folder / "none.toml").write_text(text, encoding="utf-8")
    done = call("roads", "show", "none.toml")
    assert done.returncode == 2
    assert "roads" in done.stderr
