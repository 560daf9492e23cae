"""OpenStreetMap files that cannot be used."""

from __future__ import annotations

import bz2
import gzip

import pytest
from osm_town import NODES, WAYS, write_pbf, xml
from read_roads import read_osm

from simulator.files.errors import InputError

pytest.importorskip("osmnx", reason="OpenStreetMap is read by osmium and osmnx")
pytest.importorskip("osmium", reason="OpenStreetMap is read by osmium and osmnx")


@pytest.fixture
def write(tmp_path):
    def _write(content, name="town.osm"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return _write


def faults_of(path, **more):
    with pytest.raises(InputError) as caught:
        read_osm(path, **more)
    return caught.value.faults


def town(**changed):
    """The town with some nodes moved; node 1 is in line 3."""
    return xml(nodes=NODES | {int(node.removeprefix("n")): place for node, place in changed.items()})


def test_many_faults_are_reported_up_to_a_limit(write):
    faults = faults_of(write(town(n1=(24.9, 99.0), n2=(199.0, 60.0))))
    assert ["node 1:" in faults[0], "node 2:" in faults[1], len(faults)] == [True, True, 2]
    crowd = dict.fromkeys(range(1000), (24.9, 99.0))
    faults = faults_of(write(xml(nodes=crowd, ways={1: (tuple(crowd), {"highway": "residential"})})))
    assert len(faults) == 21
    assert "reading stopped here" in faults[-1]


def test_pole_has_no_utm_zone_but_accepts_a_crs(write):
    polar = {node: (lon, lat + 26) for node, (lon, lat) in NODES.items()}
    assert "no UTM zone about longitude" in faults_of(write(xml(nodes=polar)))[0]
    roads, _ = read_osm(write(xml(nodes=polar)), crs="EPSG:5041")
    assert len(roads.links) == 8


def test_files_that_contradict_their_suffix_are_refused(write, tmp_path):
    assert "the name must end in one of .osm, .osm.bz2" in faults_of(write(xml(), "town.xml"))[0]
    assert "no such file" in faults_of(tmp_path / "none.osm")[0]
    assert "no such file" in faults_of(tmp_path / "none.osm.pbf")[0]
    for suffix, pack in (("gz", gzip.compress), ("bz2", bz2.compress)):
        assert "cannot be read" in faults_of(write(xml(), f"plain.osm.{suffix}"))[0]
        assert "cannot be read" in faults_of(write(pack(xml().encode())[:-20], f"cut.osm.{suffix}"))[0]
    folder = tmp_path / "folder.osm"
    folder.mkdir()
    assert "cannot be read" in faults_of(folder)[0]
    assert "cannot be read as OpenStreetMap's PBF" in faults_of(write(xml(), "xml.osm.pbf"))[0]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_several_streams_in_a_file_and_packed_files_of_any_name_are_read(write, pack):
    """Programs that compress in parallel write many streams."""
    whole = xml().encode()
    roads, _ = read_osm(write(pack(whole[:300]) + pack(whole[300:]), "town.osm"))
    assert len(roads.links) == 8


def test_pbf_without_streets_is_refused(tmp_path):
    path = write_pbf(tmp_path / "feet.osm.pbf", ways={14: WAYS[14]})
    assert "the road network is empty: of its 1 way, none is a street open to cars" in faults_of(path)[0]
