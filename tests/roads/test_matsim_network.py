"""MATSim networks: units, modes, coordinate systems and faults."""

import numpy as np
import pytest
from matsim_by_hand import network_xml
from read_roads import read_matsim

from simulator.files.errors import InputError
from simulator.formats.matsim.roads import stated_crs


@pytest.fixture
def write(tmp_path):
    def write(**options):
        file = tmp_path / "network.xml"
        file.write_text(network_xml(**options))
        return file

    return write


def test_units_and_names(write):
    roads, report = read_matsim(write())
    edges = {data["matsim_link"]: data for _, _, data in roads.graph.edges(data=True)}
    assert roads.crs == "EPSG:32632"
    assert "far" not in roads.node_names
    assert {name: data["lanes"] for name, data in edges.items()} == {"ab": 2, "bc": 1, "cd": 1, "da": 1, "ba": 2}
    # 7,200 vehicles in two hours, over all lanes.
    np.testing.assert_allclose([edges["ab"]["capacity_vph"], edges["bc"]["capacity_vph"]], [1800, 3600])
    np.testing.assert_allclose([edges["ab"]["speed_mps"], edges["ab"]["length_m"]], [15, 300])
    assert "permlanes of 1 link rounded" in "".join(map(str, report.notes()))


def test_links_for_other_modes_are_left_out(write):
    numbers = 'length="500" freespeed="9" capacity="9" permlanes="1"'
    more = (
        f'<link id="rail" from="a" to="c" {numbers} modes="rail"/><link id="old" from="c" to="a" {numbers}/>'
        f'<link id="loop" from="a" to="a" {numbers}/>'
    )
    roads, report = read_matsim(write(more=more))
    assert {*roads.links_named_by("matsim_link")} == {"ab", "bc", "cd", "da", "ba", "old"}
    notes = "".join(map(str, report.notes()))
    assert "row 6: modes names none of car" in notes
    assert "row 8: it leads from a node to itself" in notes
    assert {*read_matsim(write(more=more), modes=["rail"])[0].links_named_by("matsim_link")} == {"rail"}


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("CH1903_LV03_Plus", "EPSG:2056"),
        ("WGS84_UTM9S", "EPSG:32709"),
        ("EPSG:32632", "EPSG:32632"),
        ("Atlantis", None),
    ],
)
def test_system_in_the_words_of_matsim(write, stated, expected):
    assert stated_crs(write(crs=stated)) == expected


def test_coordinates_without_a_known_system(write):
    roads, report = read_matsim(write(crs=""))
    assert "no crs is given" in "".join(map(str, report.notes()))
    np.testing.assert_allclose(np.ptp(roads.node_xy, axis=0), [300, 300])
    with pytest.raises(InputError, match=r"coordinateReferenceSystem.*state roads.crs.*'nonsense'"):
        read_matsim(write(crs="nonsense"))
    assert read_matsim(write(crs="nonsense"), crs="EPSG:32633")[0].crs == "EPSG:32633"


def test_all_faults_are_listed_by_line(write):
    file = write()
    file.write_text(
        file.read_text()
        .replace("<link id", "\n<link id")
        .replace('to="b"', 'to="z"')
        .replace('id="cd"', 'id="bc"')
        .replace('permlanes="1.5"', 'permlanes="many"')
    )
    with pytest.raises(InputError) as caught:
        read_matsim(file)
    assert [fault.removeprefix(f"{file}: ") for fault in caught.value.faults] == [
        "lines 5, 6: id must be an identifier no other row has, got 'bc'",
        "line 4: to must be the id of a node, got 'z'",
        "line 8: permlanes must be a finite number, 0 or more, got 'many'",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<plans/>", "must begin with <network>"),
        ("<network><nodes/><links/></network>", "it has no <node>"),
        (network_xml().replace("02:00:00", "never"), "capperiod must be a time above 0"),
        (network_xml().replace("car,bus", "pt"), "modes names none of car"),
        (network_xml().replace('.dtd"', ".dtd\" [<!ENTITY e 'e'>]"), "must not declare a document type or entities"),
    ],
)
def test_file_that_is_no_network_is_refused(tmp_path, text, message):
    file = tmp_path / "n.xml"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        read_matsim(file)
